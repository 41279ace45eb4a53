"""Avro messages: one test per rule, read back with an independent reader."""

import json
from decimal import Decimal

import numpy as np
import pytest
from avro_support import KEY, NOT_NULL, Reader, avro_settings, simple_table
from encode_support import BYTES, TEXT, TS, batch_of, column, inserts, row_batch, table_of

from tidemark.config import ConfigError, load
from tidemark.encode import encoder_for
from tidemark.encode.avro import FRAME, AvroEncoder
from tidemark.encode.avro_schema import AvroOptions, value_schema
from tidemark.encode.avro_tables import SharedTopic
from tidemark.encode.ddl import DdlStatement
from tidemark.registry.embedded import EmbeddedRegistry
from tidemark.registry.errors import IncompatibleSchema, RegistryUnreachable
from tidemark.registry.sequential import SequentialIds
from tidemark.wire import types
from tidemark.wire.table_info import Index


def test_data_mapping_all_generated_schema_and_data_are_correct():
    """With protocol=avro&enable-tidb-extension=false&avro-decimal-handling-mode=precise&avro-bigint-unsigned-handling-mode=long."""
    unsigned = {"flag": types.UNSIGNED}
    table = table_of(
        KEY,
        column("tiny", types.TINYINT),
        column("uint", types.INT, **unsigned),
        column("big", types.BIGINT),
        column("ubig", types.BIGINT, **unsigned),
        column("f", types.FLOAT),
        column("d", types.DOUBLE),
        column("dec", types.DECIMAL, flen=10, decimal=2),
        column("wide", types.DECIMAL, flen=65, decimal=30),
        column("txt", types.BLOB_TYPE, **TEXT),
        column("bin", types.VARCHAR, **BYTES),
        column("dt", types.DATETIME, decimal=3),
        column("y", types.YEAR, **unsigned),
        column("bits", types.BIT, flen=9),
        column("e", types.ENUM, elems=("a", "b"), **TEXT),
        column("s", types.SET, elems=("x", "y", "z"), **TEXT),
        column("j", types.JSON),
    )
    full = [
        1,
        -128,
        2**32 - 1,
        -(2**63),
        2**64 - 1,
        1.5,
        -2.25,
        Decimal("-1.50"),
        Decimal("1e-30"),
        "é",
        b"\xff\x00",
        "2024-01-02 03:04:05.678",
        2024,
        257,
        2,
        5,
        '{"a": 1}',
    ]
    empty = [2] + [None] * (len(full) - 1)
    reader = Reader(
        avro_settings("&avro-decimal-handling-mode=precise&avro-bigint-unsigned-handling-mode=long")
    )
    (key, value), (_, nulls) = reader.rows(batch_of(table, ("I", full), ("I", empty)))
    assert key == {"id": 1}
    want = dict(zip([item.name for item in table.columns], full, strict=True))
    want |= {"ubig": -1, "bits": b"\x01\x01", "e": "b", "s": "x,z"}
    assert value == want
    assert nulls == dict.fromkeys(want, None) | {"id": 2}


@pytest.mark.parametrize(("compat", "name"), [("design", "double"), ("ticdc", "float")])
def test_data_mapping_a_float_is_a_double_of_the_same_number(compat, name):
    reader = Reader(avro_settings(compat=compat))
    table = table_of(KEY, column("f", types.FLOAT, default="0.1"), column("d", types.DOUBLE))
    (_, value), (_, nulls) = reader.rows(batch_of(table, ("I", [1, 0.1, 0.1]), ("I", [2, None, None])))
    assert value == {"id": 1, "f": float(np.float32(0.1)), "d": 0.1}
    assert nulls == {"id": 2, "f": None, "d": None}
    made = AvroOptions.of(avro_settings(compat=compat))
    field = json.loads(value_schema(table, made).text)["fields"][1]
    assert (field["type"][0]["type"], field["default"]) == (name, float(np.float32(0.1)))


def test_data_mapping_with_enable_tidb_extension_schema_and_value_have_its_fields():
    reader = Reader(avro_settings("&enable-tidb-extension=true"))
    rows = reader.rows(batch_of(simple_table(), ("I", [1, "a"]), ("U", [1, "a"], [1, "b"]), ("D", [1, "b"])))
    extension = {"_tidb_commit_ts": TS, "_tidb_commit_physical_time": TS >> 18}
    assert rows == [
        ({"id": 1}, {"id": 1, "name": "a", "_tidb_op": "c", **extension}),
        ({"id": 1}, {"id": 1, "name": "b", "_tidb_op": "u", **extension}),
        ({"id": 1}, None),
    ]


def test_data_mapping_with_avro_decimal_handling_mode_string_decimal_is_a_string():
    table = simple_table(column("d", types.DECIMAL, flen=40, decimal=20))
    rows = Reader(avro_settings("&avro-decimal-handling-mode=string")).rows(
        batch_of(table, ("I", [1, "a", Decimal("1.5")]), ("I", [2, "b", None]))
    )
    assert [value["d"] for _, value in rows] == ["1.50000000000000000000", None]


def test_data_mapping_with_avro_bigint_unsigned_handling_mode_string_bigint_unsigned_is_a_string():
    table = table_of(column("k", types.BIGINT, flag=types.NOT_NULL | types.PRIMARY_KEY | types.UNSIGNED))
    rows = Reader(avro_settings("&avro-bigint-unsigned-handling-mode=string")).rows(
        batch_of(table, ("I", [2**64 - 1]), ("I", [0]))
    )
    assert rows == [({"k": str(2**64 - 1)},) * 2, ({"k": "0"},) * 2]


def test_dml_insert_row():
    assert Reader().rows(batch_of(simple_table(), ("I", [1, "a"]))) == [({"id": 1}, {"id": 1, "name": "a"})]


def test_dml_update_row_has_the_new_values():
    assert Reader().rows(batch_of(simple_table(), ("U", [1, "a"], [1, None]))) == [
        ({"id": 1}, {"id": 1, "name": None})
    ]


def test_dml_delete_row_has_the_key_and_no_value():
    assert Reader().rows(batch_of(simple_table(), ("D", [1, "a"]))) == [({"id": 1}, None)]


@pytest.mark.parametrize(("compat", "key"), [("design", {"b": 2}), ("ticdc", None)])
def test_a_unique_key_without_nulls_is_the_key_of_a_table_without_a_primary_key(compat, key):
    """Document 001: the key has the fields of the valid index; the shipped TiCDC takes a primary key only."""
    unique = {"flag": types.NOT_NULL | types.UNIQUE_KEY}
    table = table_of(
        column("a", types.INT), column("b", types.INT, **unique), indexes=[Index("u", ("b",), True, id=1)]
    )
    reader = Reader(avro_settings(compat=compat))
    rows = reader.rows(batch_of(table, ("I", [1, 2]), ("D", [1, 2])))
    assert rows == [(key, {"a": 1, "b": 2}), (key, None)]
    assert reader.encoder.has_key(table) is (key is not None)


def test_a_primary_key_is_the_key_whatever_other_keys_there_are():
    table = table_of(
        KEY,
        column("u", types.INT, flag=types.NOT_NULL | types.UNIQUE_KEY),
        indexes=[Index("u", ("u",), True, id=1)],
    )
    for compat in ("design", "ticdc"):
        assert Reader(avro_settings(compat=compat)).rows(batch_of(table, ("D", [1, 2]))) == [
            ({"id": 1}, None)
        ]


def test_a_nullable_unique_key_is_no_key():
    table = table_of(column("u", types.INT, flag=types.UNIQUE_KEY), indexes=[Index("u", ("u",), True, id=1)])
    assert not Reader().encoder.has_key(table)


EVENTS = "&enable-tidb-extension=true&avro-enable-watermark=true"


def test_a_delete_of_ticdc_has_a_marker_and_its_commit_ts_where_watermarks_are_sent():
    """Without it TiCDC's consumer keeps the row."""
    batch = batch_of(simple_table(), ("I", [1, "a"]), ("D", [1, "a"]), ("D", [2, None]))
    for compat, query, marked in [
        ("ticdc", EVENTS, True),
        ("ticdc", "&enable-tidb-extension=true", False),
        ("design", EVENTS, False),
    ]:
        messages = AvroEncoder(avro_settings(query, compat=compat), registry=SequentialIds()).encode_rows(
            batch
        )
        marker = b"\x03" + TS.to_bytes(8, "big") if marked else None
        values = messages.value.to_pylist()
        assert values[1:] == [marker, marker]
        assert values[0][:1] == b"\0"
        assert messages.error.null_count == 3
        assert None not in messages.key.to_pylist()


@pytest.mark.parametrize(("form", "marked"), [("messages", True), ("container", False)])
def test_files_of_messages_have_the_marker_too(form, marked, tmp_path):
    """Container files have a schema, which says null."""
    settings = load(None, f"file://{tmp_path}?protocol=avro&avro-file-format={form}{EVENTS}", "ticdc")
    encoder = AvroEncoder(settings, registry=SequentialIds())
    data = bytes(encoder.encode_file(batch_of(simple_table(), ("D", [1, "a"]))).data)
    assert data.endswith(b"\x03" + TS.to_bytes(8, "big") if marked else b"\0")


def test_rows_of_a_table_without_primary_key_have_no_key():
    table = table_of(column("a", types.INT))
    rows = Reader().rows(batch_of(table, ("I", [1]), ("D", [1]), ("I", [2])))
    assert rows == [(None, {"a": 1}), (None, None), (None, {"a": 2})]


def test_a_default_puts_the_null_branch_last():
    table = table_of(column("a", types.INT, default="7"))
    messages = AvroEncoder(avro_settings(), registry=SequentialIds()).encode_rows(inserts(table, [None, 1]))
    assert [value[FRAME.size :] for value in messages.value.to_pylist()] == [b"\x02", b"\x00\x02"]


def test_only_deletes_register_no_value_schema():
    reader = Reader()
    reader.encoder.encode_rows(batch_of(simple_table(), ("D", [1, "a"])))
    assert list(reader.schemas()) == ["db_t-key"]
    reader.encoder.encode_rows(batch_of(simple_table(), ("I", [1, "a"])))
    assert list(reader.schemas()) == ["db_t-value"]


def test_a_schema_is_registered_once_per_version():
    reader = Reader()
    table = simple_table()
    for _ in range(3):
        reader.encoder.encode_rows(batch_of(table, ("I", [1, "a"])))
    reader.encoder.encode_rows(batch_of(simple_table(), ("I", [1, "a"])))
    assert [made.subject for made in reader.registry.take()] == ["db_t-key", "db_t-value"]
    reader.encoder.encode_rows(batch_of(simple_table(column("n", types.INT)), ("I", [1, "a", 2])))
    assert [made.subject for made in reader.registry.take()] == ["db_t-value"]


def test_an_enum_number_without_a_member_is_an_error_of_its_row_only():
    table = simple_table(column("e", types.ENUM, elems=("a", "b"), **TEXT))
    batch = batch_of(table, ("I", [1, "x", 1]), ("I", [2, "y", 0]), ("D", [3, "z", 0]), ("I", [4, "w", 3]))
    messages = AvroEncoder(avro_settings(), registry=SequentialIds()).encode_rows(batch)
    assert [error and error[:10] for error in messages.error.to_pylist()] == [
        None,
        "column 'e'",
        None,
        "column 'e'",
    ]
    assert [key is None for key in messages.key.to_pylist()] == [False, True, False, True]
    assert [value is None for value in messages.value.to_pylist()] == [False, True, True, True]


def test_an_enum_without_members_has_errors_and_no_crash():
    table = table_of(column("e", types.ENUM, **NOT_NULL, **TEXT))
    messages = AvroEncoder(avro_settings(), registry=SequentialIds()).encode_rows(inserts(table, [1, 0]))
    assert messages.error.null_count == 0


def test_no_row_changes_make_no_messages_and_no_schemas():
    reader = Reader()
    batch = batch_of(simple_table(), ("I", [1, "a"]))
    empty = row_batch(batch.table, [[], []], [], [], [], TS)
    assert len(reader.encoder.encode_rows(empty)) == 0
    assert reader.schemas() == {}


def test_a_set_number_without_members_is_an_error_of_its_row():
    table = table_of(column("s", types.SET, elems=("a", "b"), **TEXT))
    messages = AvroEncoder(avro_settings(), registry=SequentialIds()).encode_rows(
        inserts(table, [3, 4, None])
    )
    assert [error is None for error in messages.error.to_pylist()] == [True, False, True]


@pytest.mark.parametrize(
    "item", [column("v", types.INT, **NOT_NULL), column("v", types.ENUM, elems=("a",), **NOT_NULL, **TEXT)]
)
def test_null_in_a_column_that_is_not_null_is_an_error_of_its_row(item):
    messages = AvroEncoder(avro_settings(), registry=SequentialIds()).encode_rows(
        inserts(table_of(item), [None, 1])
    )
    assert messages.error.to_pylist() == ["column 'v': NULL, but the column is NOT NULL", None]


def test_a_virtual_generated_column_is_null():
    table = simple_table(column("v", types.INT, generated_expr="`id` + 1"))
    assert Reader().rows(batch_of(table, ("I", [1, "a", None])))[0][1] == {"id": 1, "name": "a", "v": None}


def test_a_table_without_a_schema_has_an_error_for_each_row_that_needs_it():
    table = simple_table(column("n", types.INT, default="nextval(`s`)"))
    batch = batch_of(table, ("I", [1, "a", 2]), ("D", [1, "a", 2]))
    messages = AvroEncoder(avro_settings(), registry=SequentialIds()).encode_rows(batch)
    first, second = messages.error.to_pylist()
    assert "db.t, column 'n'" in first
    assert second is None


def test_column_selectors_choose_the_fields():
    chosen = {"sink": {"column-selectors": [{"matcher": ["db.*"], "columns": ["*", "!name"]}]}}
    assert Reader(avro_settings(changefeed=chosen)).rows(batch_of(simple_table(), ("I", [1, "a"]))) == [
        ({"id": 1}, {"id": 1})
    ]


def test_a_message_above_the_limit_is_an_error_that_tells_its_size():
    encoder = AvroEncoder(avro_settings("&max-message-bytes=200"), registry=SequentialIds())
    messages = encoder.encode_rows(batch_of(simple_table(), ("I", [1, "a" * 300]), ("I", [2, "b"])))
    key, value = 6, FRAME.size + 1 + 1 + 2 + 300
    assert messages.error.to_pylist() == [
        f"a message of {key + value + 36} bytes; max-message-bytes is 200",
        None,
    ]
    assert messages.value[0].as_py() is None


def test_a_file_of_messages_has_their_lengths():
    table = simple_table(column("e", types.ENUM, elems=("a",), **TEXT))
    batch = batch_of(table, ("I", [1, "x", 1]), ("I", [2, "y", 0]), ("D", [3, "z", 1]))
    encoder = AvroEncoder(avro_settings(), registry=SequentialIds())
    messages, file = encoder.encode_rows(batch), encoder.encode_file(batch)
    data = bytes(file.data)
    want = b""
    for key, value, error in zip(
        messages.key.to_pylist(), messages.value.to_pylist(), messages.error.to_pylist(), strict=True
    ):
        if error is None:
            for part in (key, value):
                want += (-1 if part is None else len(part)).to_bytes(4, "big", signed=True) + (part or b"")
    assert data == want
    assert file.lengths.tolist() == [len(want) - (4 + 6 + 4), 0, 4 + 6 + 4]
    assert file.error.to_pylist() == messages.error.to_pylist()


def test_ddl_and_watermarks_are_messages_only_when_asked_for():
    ddl = DdlStatement(3, "db", "t", "create table t (a int)", 7, None)
    quiet = AvroEncoder(avro_settings("&enable-tidb-extension=true"), registry=SequentialIds())
    assert (quiet.encode_ddl(ddl), quiet.encode_watermark(7)) == (None, None)
    loud = AvroEncoder(
        avro_settings("&enable-tidb-extension=true&avro-enable-watermark=true"), registry=SequentialIds()
    )
    assert loud.encode_watermark(7).value == b"\x02" + bytes(7) + b"\x07"
    assert loud.encode_ddl(ddl).value == (
        b'\x01{"query":"create table t (a int)","type":3,"schema":"db","table":"t","commitTs":7}'
    )


def test_the_encoder_of_the_protocol_uses_the_registry_of_the_sink_uri(tmp_path):
    encoder = encoder_for(avro_settings(registry=f"file://{tmp_path}"))
    encoder.encode_rows(batch_of(simple_table(), ("I", [1, "a"])))
    assert (tmp_path / "schemas.json").exists()


def test_an_unreachable_registry_names_table_and_subject():
    pytest.importorskip("confluent_kafka")
    with pytest.raises(RegistryUnreachable, match=r"table db\.t, subject 'db_t-key'"):
        encoder_for(avro_settings()).encode_rows(batch_of(simple_table(), ("I", [1, "a"])))


def test_schema_not_in_registry_a_fresh_new_schema_is_created(tmp_path):
    registry = EmbeddedRegistry(tmp_path)
    Reader(registry=registry).rows(batch_of(simple_table(), ("I", [1, "a"])))
    assert registry.subjects() == ["db_t-key", "db_t-value"]
    assert registry.versions("db_t-value") == [1]


def test_schema_in_registry_and_compatible_a_new_version_is_created(tmp_path):
    registry = EmbeddedRegistry(tmp_path)
    Reader(registry=registry).rows(batch_of(simple_table(), ("I", [1, "a"])))
    wider = simple_table(column("n", types.INT))
    assert Reader(registry=registry).rows(batch_of(wider, ("I", [1, "a", 5])))[0][1]["n"] == 5
    assert (registry.versions("db_t-key"), registry.versions("db_t-value")) == ([1], [1, 2])


def test_schema_in_registry_and_incompatible_reports_error(tmp_path):
    registry = EmbeddedRegistry(tmp_path)
    Reader(registry=registry).rows(batch_of(simple_table(), ("I", [1, "a"])))
    broken = simple_table(column("n", types.INT, **NOT_NULL))
    with pytest.raises(IncompatibleSchema, match=r"table db\.t, subject 'db_t-value'.*'n' without a default"):
        Reader(registry=registry).rows(batch_of(broken, ("I", [1, "a", 5])))
    assert registry.versions("db_t-value") == [1]


def test_subject_name_strategy_only_default_topic_can_replicate_one_table_only():
    reader = Reader(avro_settings(changefeed={}))
    reader.rows(batch_of(simple_table(), ("I", [1, "a"])))
    with pytest.raises(SharedTopic, match=r"topic 't': db\.t and db\.other"):
        reader.rows(batch_of(simple_table(table="other"), ("I", [1, "a"])))


def test_subject_name_strategy_is_left_to_the_registry_with_compat_ticdc():
    reader = Reader(avro_settings(changefeed={}, compat="ticdc"))
    for name in ("t", "other"):
        reader.rows(batch_of(simple_table(table=name), ("I", [1, "a"])))


def test_subject_name_strategy_topics_that_differ_in_a_dot_share_their_subjects():
    rules = {"sink": {"dispatchers": [{"matcher": ["*.*"], "topic": "{schema}.{table}"}]}}
    reader = Reader(avro_settings(changefeed=rules))
    reader.rows(batch_of(simple_table(schema="a", table="b_c"), ("I", [1, "a"])))
    with pytest.raises(SharedTopic):
        reader.rows(batch_of(simple_table(schema="a_b", table="c"), ("I", [1, "a"])))


def test_subject_name_strategy_invalid_topic_rule_reports_error():
    for topic in ("{schema}", "{table}_x", "{table}_{schema}"):
        rules = {"sink": {"dispatchers": [{"matcher": ["*.*"], "topic": topic}]}}
        with pytest.raises(ConfigError, match="topic"):
            avro_settings(changefeed=rules)
