"""The rules of canal-json messages, one test each."""

import json
from decimal import Decimal

import numpy as np
import pytest
from encode_support import BYTES, TEXT, TS, batch_of, canal_settings, column, inserts, table_of, texts

from tidemark.config import load
from tidemark.encode import EncodeError, encoder_for
from tidemark.encode.ddl import DdlStatement
from tidemark.wire import types

KEY = column("id", types.INT, flag=types.PRIMARY_KEY | types.NOT_NULL)
NAME = column("name", types.VARCHAR, **TEXT)
EXTENSION = "&enable-tidb-extension=true"


def messages(batch, query="", changefeed=None):
    return [
        json.loads(text) for text in texts(encoder_for(canal_settings(query, changefeed)).encode_rows(batch))
    ]


def cell(kind, value, more=None):
    (message,) = messages(inserts(table_of(column("c", kind, **(more or {}))), [value]))
    return message["data"][0]["c"]


def test_a_message_has_all_keys_in_order():
    encoder = encoder_for(canal_settings(EXTENSION), clock=lambda: 42)
    (text,) = texts(encoder.encode_rows(inserts(table_of(KEY, NAME), [1], ["a"])))
    assert text == (
        '{"id":0,"database":"db","table":"t","pkNames":["id"],"isDdl":false,"type":"INSERT",'
        f'"es":{TS >> 18},"ts":42,"sql":"","sqlType":{{"id":4,"name":12}},"mysqlType":{{"id":"int","name":"varchar"}},'
        f'"old":null,"data":[{{"id":"1","name":"a"}}],"_tidb":{{"commitTs":{TS}}}}}'
    )


def test_an_update_has_the_old_row_and_a_delete_is_its_data():
    update, delete = messages(batch_of(table_of(KEY, NAME), ("U", [1, "a"], [1, None]), ("D", [1, None])))
    assert (update["type"], update["old"], update["data"]) == (
        "UPDATE",
        [{"id": "1", "name": "a"}],
        [{"id": "1", "name": None}],
    )
    assert (delete["type"], delete["old"], delete["data"]) == ("DELETE", None, [{"id": "1", "name": None}])


def test_only_changed_columns_are_in_the_old_row_if_so_configured():
    table = table_of(KEY, NAME, column("v", types.INT))
    batch = batch_of(
        table,
        ("U", [1, "a", 1], [1, "b", 1]),
        ("U", [1, None, 1], [1, None, None]),
        ("U", [1, None, 1], [1, "", 1]),
        ("U", [1, "a", 1], [1, "a", 1]),
        ("I", [1, "a", 1]),
    )
    got = messages(batch, "&only-output-updated-columns=true")
    assert [message["old"] for message in got] == [
        [{"name": "a"}],
        [{"v": "1"}],
        [{"name": None}],
        [{}],
        None,
    ]
    assert all(len(message["data"][0]) == 3 for message in got)


def test_deletes_hold_the_handle_key_only_if_so_configured():
    changefeed = {"sink": {"delete-only-output-handle-key-columns": True}}
    batch = batch_of(table_of(KEY, NAME), ("D", [1, "a"]), ("I", [2, "b"]), ("D", [3, "c"]))
    first, insert, last = messages(batch, "", changefeed)
    assert (first["data"], first["sqlType"], first["mysqlType"]) == ([{"id": "1"}], {"id": 4}, {"id": "int"})
    assert insert["data"] == [{"id": "2", "name": "b"}]
    assert last["data"] == [{"id": "3"}]


def test_a_delete_without_a_handle_key_holds_nothing():
    changefeed = {"sink": {"delete-only-output-handle-key-columns": True}}
    (message,) = messages(batch_of(table_of(NAME), ("D", ["a"])), "", changefeed)
    assert (message["pkNames"], message["data"], message["sqlType"], message["mysqlType"]) == (
        [],
        [{}],
        None,
        None,
    )


def test_the_row_key_is_added_to_the_extension():
    (message,) = messages(inserts(table_of(KEY), [1]), EXTENSION + "&output-row-key=true")
    assert message["_tidb"] == {"commitTs": TS, "rowkey": "a2V5MA=="}


def test_without_the_extension_there_is_no_row_key_either():
    (message,) = messages(inserts(table_of(KEY), [1]), "&output-row-key=true")
    assert "_tidb" not in message


def test_content_compatible_types_have_parameters():
    table = table_of(
        column("n", types.INT, flen=10, flag=types.UNSIGNED | types.ZEROFILL),
        column("e", types.ENUM, elems=("a'b", "c")),
    )
    batch = inserts(table, [1], [1])
    assert messages(batch)[0]["mysqlType"] == {"n": "int unsigned zerofill", "e": "enum"}
    assert messages(batch, "&content-compatible=true")[0]["mysqlType"] == {
        "n": "int(10) unsigned zerofill",
        "e": "enum('a''b','c')",
    }


@pytest.mark.parametrize(
    ("kind", "limit", "narrow", "wide"),
    [
        (types.TINYINT, 2**7, -6, 5),
        (types.SMALLINT, 2**15, 5, 4),
        (types.MEDIUMINT, 2**23, 4, 4),
        (types.INT, 2**31, 4, -5),
        (types.BIGINT, 2**63, -5, 3),
    ],
)
def test_an_unsigned_value_that_java_cannot_hold_has_the_next_type(kind, limit, narrow, wide):
    table = table_of(column("n", kind, flag=types.UNSIGNED))
    got = messages(inserts(table, [limit - 1, limit, None]))
    assert [message["sqlType"]["n"] for message in got] == [narrow, wide, narrow]


@pytest.mark.parametrize(
    ("kind", "value", "more", "text"),
    [
        (types.ENUM, 0, {"elems": ("a",)}, "0"),
        (types.ENUM, 300, {"elems": ("a",)}, "300"),
        (types.SET, 2**63, {"elems": ("a",)}, "9223372036854775808"),
        (types.BIT, 2**64 - 1, {"flen": 64}, "18446744073709551615"),
        (types.DOUBLE, 1e21, {}, "1000000000000000000000"),
        (types.DOUBLE, 12573022109339.33, {}, "12573022109339.33"),
        (types.FLOAT, 1.5e-7, {}, "0.00000015"),
        (types.DECIMAL, Decimal("1.50"), {"flen": 10, "decimal": 2}, "1.50"),
        (types.JSON, '{"a": "b"}', {}, '{"a": "b"}'),
        (types.YEAR, 1999, {"flag": types.UNSIGNED}, "1999"),
        (types.VARCHAR, "null", TEXT, "null"),
        (types.VARCHAR, "", TEXT, ""),
        (types.BLOB_TYPE, bytes(range(256)), BYTES, bytes(range(256)).decode("latin-1")),
        (types.TIME, "-00:00:01", {}, "-00:00:01"),
    ],
)
def test_every_value_is_text(kind, value, more, text):
    assert cell(kind, value, more) == text


def test_strings_are_escaped_as_go_does():
    (text,) = texts(
        encoder_for(canal_settings()).encode_rows(
            inserts(table_of(NAME), ['"\\<>&\t\n\r\x00\x1f\x7f\u2028\u2029é😀'])
        )
    )
    assert (
        '"data":[{"name":"\\"\\\\\\u003c\\u003e\\u0026\\t\\n\\r\\u0000\\u001f\x7f\\u2028\\u2029é😀"}]' in text
    )


def test_names_are_escaped_too():
    table = table_of(column('a"<', types.INT), schema="s\\", table="t&")
    (message,) = messages(inserts(table, [1]))
    assert (message["database"], message["table"], message["data"]) == ("s\\", "t&", [{'a"<': "1"}])


def test_each_byte_that_is_no_utf8_is_one_replacement_character():
    table = table_of(NAME)
    (text, other) = texts(
        encoder_for(canal_settings()).encode_rows(inserts(table, [b"a\xff\xed\xa0\x80\\\xe2\x80", "\ufffd"]))
    )
    assert '{"name":"a\\ufffd\\ufffd\\ufffd\\ufffd\\\\\\ufffd\\ufffd"}' in text
    assert '{"name":"\ufffd"}' in other


def test_a_character_may_not_lie_across_two_values():
    values = [b"\xc3", b"\xa9"]
    got = messages(inserts(table_of(NAME), values))
    assert [message["data"][0]["name"] for message in got] == ["\ufffd", "\ufffd"]


def test_a_message_that_is_too_large_is_an_error():
    encoded = encoder_for(canal_settings("&max-message-bytes=1000")).encode_rows(
        inserts(table_of(KEY, NAME), [1, 2], ["a", "b" * 1000])
    )
    assert encoded.error[0].as_py() is None
    assert "max-message-bytes is 1000" in encoded.error[1].as_py()
    assert encoded.value[1].as_py() is None


def test_a_message_that_is_too_large_is_sent_with_the_handle_key_if_so_configured():
    changefeed = {
        "sink": {"kafka-config": {"large-message-handle": {"large-message-handle-option": "handle-key-only"}}}
    }
    batch = inserts(table_of(KEY, NAME), [1, 2], ["a", "b" * 1000])
    small, large = messages(batch, EXTENSION + "&max-message-bytes=1000", changefeed)
    assert small["data"] == [{"id": "1", "name": "a"}]
    assert large["data"] == [{"id": "2"}]
    assert large["_tidb"] == {"commitTs": TS, "onlyHandleKey": True}


def test_claim_checks_are_refused():
    changefeed = {
        "sink": {
            "kafka-config": {
                "large-message-handle": {
                    "large-message-handle-option": "claim-check",
                    "claim-check-storage-uri": "file:///c",
                }
            }
        }
    }
    with pytest.raises(EncodeError, match="claim-check"):
        encoder_for(canal_settings(EXTENSION, changefeed))


def test_watermarks_need_the_extension():
    assert encoder_for(canal_settings()).encode_watermark(TS) is None
    message = json.loads(encoder_for(canal_settings(EXTENSION)).encode_watermark(TS).value)
    assert (message["type"], message["_tidb"], message["isDdl"]) == (
        "TIDB_WATERMARK",
        {"watermarkTs": TS},
        False,
    )


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (3, "CREATE"),
        (4, "ERASE"),
        (7, "CINDEX"),
        (8, "DINDEX"),
        (11, "TRUNCATE"),
        (14, "RENAME"),
        (61, "ALTER"),
        (21, "QUERY"),
        (250, "QUERY"),
    ],
)
def test_a_ddl_message_has_canals_word_for_the_statement(number, word):
    ddl = DdlStatement(number, "db", "t", "a < b", TS, None)
    value = encoder_for(canal_settings()).encode_ddl(ddl).value
    message = json.loads(value)
    assert (message["type"], message["isDdl"], message["sql"], message["data"]) == (word, True, "a < b", None)
    assert b"a \\u003c b" in value


def test_files_have_the_terminator_after_each_object():
    settings = load({"sink": {"terminator": "\n"}}, "file:///x?protocol=canal-json")
    file = encoder_for(settings).encode_file(inserts(table_of(KEY), [1, 2]))
    assert bytes(file.data).count(b"}\n") == 2
    assert file.lengths.sum() == len(file.data)


def test_files_do_not_depend_on_when_they_are_written():
    encoder = encoder_for(load(None, "file:///x?protocol=canal-json&enable-tidb-extension=true"))
    message = json.loads(bytes(encoder.encode_file(inserts(table_of(KEY), [1])).data))
    assert message["ts"] == message["es"] == TS >> 18
    assert json.loads(encoder.encode_watermark(TS).value)["ts"] == TS >> 18


def test_the_messages_of_a_storage_sink_are_its_lines_of_any_size():
    encoder = encoder_for(load(None, "file:///x?protocol=canal-json&max-message-bytes=100"))
    batch = inserts(table_of(KEY, NAME), [1], ["x" * 1000])
    assert encoder.encode_rows(batch).value[0].as_py() == bytes(encoder.encode_file(batch).data)


def test_no_rows_give_no_messages():
    encoder = encoder_for(canal_settings(EXTENSION))
    batch = inserts(table_of(KEY, NAME), [], [])
    assert len(encoder.encode_rows(batch)) == 0
    assert bytes(encoder.encode_file(batch).data) == b""


def test_many_rows_are_written_like_one():
    """Large batches take shortcuts that small ones do not."""
    count = 6000
    random = np.random.default_rng(1)
    cents = [Decimal(number).scaleb(-2) for number in random.integers(-(10**6), 10**6, count).tolist()]
    weights = (random.integers(-(10**6), 10**6, count) / 1000).tolist()
    members = random.integers(1, 3, count).tolist()
    table = table_of(
        column("cents", types.DECIMAL, flen=15, decimal=2),
        column("weight", types.DOUBLE),
        column("e", types.ENUM, elems=("a", "b")),
    )
    got = [message["data"][0] for message in messages(inserts(table, cents, weights, members))]
    assert [row["cents"] for row in got] == [f"{cent:.2f}" for cent in cents]
    assert [float(row["weight"]) for row in got] == weights
    assert [row["e"] for row in got] == [str(member) for member in members]
