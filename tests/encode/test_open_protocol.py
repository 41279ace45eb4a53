"""The open protocol: the vectors of TiCDC, and one test per rule. Messages are taken apart by a reader that shares nothing with the encoder."""

import base64
import json
import struct
import unicodedata
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from encode_support import (
    BYTES,
    TEXT,
    TS,
    batch_of,
    batches,
    column,
    ddl_events,
    inserts,
    settings_of,
    table_of,
)
from hypothesis import given, strategies

from support import golden, jsonl
from tidemark.cli import main
from tidemark.config import check, load
from tidemark.config.findings import ERROR
from tidemark.encode import encoder_for
from tidemark.encode.ddl import DdlStatement, statements
from tidemark.encode.go_quote import go_quoted
from tidemark.encode.open_protocol import OpenProtocolEncoder, column_flags
from tidemark.encode.protocol import packed
from tidemark.wire import types
from tidemark.wire.floats import go_json
from tidemark.wire.table_info import Index, TableInfo

SCENARIOS = ("orders", "alltypes", "evolve", "active_active")
U64 = struct.Struct(">Q")
KEY = column("id", types.INT, flag=types.PRIMARY_KEY | types.NOT_NULL)
NAME = column("name", types.VARCHAR, **TEXT)
KAFKA = "kafka://127.0.0.1:9092/topic?protocol=open-protocol"


def settings(query="", changefeed=None, compat="design"):
    return load(changefeed, KAFKA + query, compat)


def errors(changefeed, uri):
    """What `tidemark check` and dbt refuse."""
    return [finding for finding in check(changefeed, uri) if finding.severity == ERROR]


def texts(data: bytes, version: bool) -> list[bytes]:
    """The JSON texts of a key or value."""
    place = 0
    if version:
        assert U64.unpack_from(data)[0] == 1
        place = 8
    found = []
    while place < len(data):
        (length,) = U64.unpack_from(data, place)
        found.append(data[place + 8 : place + 8 + length])
        assert len(found[-1]) == length
        place += 8 + length
    return found


def read(key: bytes, value: bytes) -> list[tuple[dict, dict]]:
    pairs = zip(texts(key, True), texts(value, False), strict=True)
    return [(json.loads(one), json.loads(other) if other else None) for one, other in pairs]


def rows(batch, query="", changefeed=None, encoder=None):
    """(key, value) of every row change, each sent alone."""
    made = (encoder or encoder_for(settings(query, changefeed))).encode_rows(batch)
    assert made.error.null_count == len(made), made.error.to_pylist()
    pairs = zip(made.key.to_pylist(), made.value.to_pylist(), strict=True)
    return [row for key, value in pairs for row in read(key, value)]


def cell(kind, value, more=None):
    ((_, message),) = rows(inserts(table_of(column("c", kind, **(more or {}))), [value]))
    return message["u"]["c"]["v"]


def raw(line: dict, part: str) -> bytes:
    text = line.get(f"{part}_text")
    return base64.b64decode(line[part]) if text is None else text.encode()


# --- vectors --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_rows_are_those_of_ticdc(scenario):
    encoder = OpenProtocolEncoder(settings_of("open.default"), keeps_first_flags=True)
    made = [encoder.encode_rows(batch) for batch in batches(scenario)]
    got = [pair for one in made for pair in zip(one.key.to_pylist(), one.value.to_pylist(), strict=True)]
    want = [(raw(line, "key"), raw(line, "value")) for line in jsonl(f"encode/{scenario}/open.default.jsonl")]
    assert got == want


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_ddl_and_resolved_messages_are_those_of_ticdc(scenario):
    encoder = encoder_for(settings_of("open.default"))
    made = [encoder.encode_ddl(one) for event in ddl_events(scenario) for one in statements(event)]
    want = jsonl(f"encode/{scenario}/open.default.ddl.jsonl")
    for line in want:
        if "checkpoint_ts" in line:
            made.append(encoder.encode_watermark(int(line["checkpoint_ts"])))
    assert [(one.key, one.value) for one in made] == [(raw(line, "key"), raw(line, "value")) for line in want]


def test_the_command_prints_the_rows_of_ticdc(capfdbinary):
    arguments = ["--sink-uri", f"{KAFKA}&max-batch-size=1", "--compat", "ticdc"]
    assert main(["encode", str(golden("streams/evolve.bin")), *arguments]) == 0
    shown = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    got = [(raw(one, "key"), raw(one, "value")) for one in shown if one["kind"] == "row"]
    want = [(raw(line, "key"), raw(line, "value")) for line in jsonl("encode/evolve/open.default.jsonl")]
    assert got == want
    assert {one["kind"] for one in shown} == {"row", "ddl", "watermark"}


def test_flags_are_those_of_the_table_in_force(capfdbinary):
    """TiCDC's encoder alone, without DDL, keeps those of the first row of a table: a column that was added has none. No sink does that."""
    for compat, flag in (("design", 1), ("ticdc", 0)):
        arguments = ["--sink-uri", f"{KAFKA}&max-batch-size=1", "--compat", compat]
        assert main(["encode", str(golden("streams/evolve.bin")), *arguments]) == 0
        shown = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
        third = [one for one in shown if one["kind"] == "row"][2]
        assert read(raw(third, "key"), raw(third, "value"))[0][1]["u"]["b"]["f"] == flag
    sent = rows(batches("evolve")[1], encoder=encoder_for(settings(compat="ticdc")))
    assert {row["u"]["b"]["f"] for _, row in sent if "b" in row["u"]} == {1}


# --- rows -----------------------------------------------------------------------------------------------------------------------


def test_a_message_has_version_lengths_and_texts():
    made = encoder_for(settings()).encode_rows(inserts(table_of(KEY, NAME), [1], ["a"]))
    key = f'{{"ts":{TS},"scm":"db","tbl":"t","t":1}}'.encode()
    value = b'{"u":{"id":{"t":3,"h":true,"f":11,"v":1},"name":{"t":15,"f":64,"v":"a"}}}'
    assert made.key.to_pylist() == [U64.pack(1) + U64.pack(len(key)) + key]
    assert made.value.to_pylist() == [U64.pack(len(value)) + value]


def test_an_update_has_its_old_row_and_a_delete_is_its_row():
    batch = batch_of(table_of(KEY, NAME), ("U", [1, "a"], [1, None]), ("D", [1, None]))
    update, delete = (
        {part: {name: one["v"] for name, one in columns.items()} for part, columns in value.items()}
        for _, value in rows(batch)
    )
    assert update == {"u": {"id": 1, "name": None}, "p": {"id": 1, "name": "a"}}
    assert delete == {"d": {"id": 1, "name": None}}


def test_old_rows_can_be_left_out():
    batch = batch_of(table_of(KEY, NAME), ("U", [1, "a"], [1, None]))
    ((_, value),) = rows(batch, "", {"sink": {"open": {"output-old-value": False}}})
    assert list(value) == ["u"]


def test_old_rows_can_hold_only_what_changed():
    query = "&only-output-updated-columns=true"
    table = table_of(
        KEY,
        NAME,
        column("n", types.INT),
        column("e", types.ENUM, elems=("a",)),
        column("d", types.DECIMAL, flen=5, decimal=2),
        column("at", types.DATETIME),
    )
    full, zero = (
        [1, "a", 1, 1, Decimal("1.50"), "2024-01-02 03:04:05"],
        [1, "", 0, 0, Decimal(0), "0000-00-00 00:00:00"],
    )
    nothing = [1, None, None, None, None, None]
    changes = [
        ("U", full, full),
        ("U", full, zero),
        ("U", zero, full),
        ("U", zero, nothing),
        ("U", nothing, full),
    ]
    old = [
        {name: one["v"] for name, one in value["p"].items()}
        for _, value in rows(batch_of(table, *changes), query)
    ]
    names = [item.name for item in table.columns[1:]]
    assert old[0] == {}
    assert old[1] == dict(zip(names, ["a", 1, 1, "1.50", "2024-01-02 03:04:05"], strict=True))
    # As TiCDC does: the zero of a type is null, but for numbers, where the new value is none.
    assert old[2] == {**dict.fromkeys(names), "n": 0}
    assert old[3] == dict(zip(names, ["", 0, 0, "0.00", "0000-00-00 00:00:00"], strict=True))
    assert old[4] == dict.fromkeys(names)


def test_deletes_can_hold_the_handle_key_only():
    changefeed = {"sink": {"delete-only-output-handle-key-columns": True}}
    batch = batch_of(table_of(KEY, NAME), ("D", [1, "a"]), ("I", [2, "b"]), ("D", [3, "c"]))
    found = [(list(value), list(next(iter(value.values())))) for _, value in rows(batch, "", changefeed)]
    assert found == [(["d"], ["id"]), (["u"], ["id", "name"]), (["d"], ["id"])]
    made = encoder_for(settings("", changefeed)).encode_rows(
        batch_of(table_of(NAME), ("I", ["a"]), ("D", ["a"]))
    )
    assert made.value.is_valid().to_pylist() == [True, False]
    assert "no handle key" in made.error[1].as_py()


def test_partitions_have_their_id():
    table = TableInfo.build("db", "t", 100, 1, columns=table_of(KEY).columns, is_partition=True)
    ((key, _),) = rows(inserts(table, [1]))
    assert key == {"ts": TS, "scm": "db", "tbl": "t", "t": 1, "ptn": 100}


def test_virtual_columns_and_those_of_column_selectors_are_left_out():
    table = table_of(KEY, NAME, column("v", types.INT, generated_expr="id + 1"))
    changefeed = {"sink": {"column-selectors": [{"matcher": ["*.*"], "columns": ["id", "v"]}]}}
    ((_, value),) = rows(inserts(table, [1], ["a"], [None]), "", changefeed)
    assert list(value["u"]) == ["id"]


@pytest.mark.parametrize(
    ("kind", "value", "more", "text"),
    [
        (types.BIGINT, 2**64 - 1, {"flag": types.UNSIGNED}, "18446744073709551615"),
        (types.YEAR, 1999, {"flag": types.UNSIGNED}, "1999"),
        (types.BIT, 5, {"flen": 8}, "5"),
        (types.ENUM, 0, {"elems": ("a",)}, "0"),
        (types.SET, 3, {"elems": ("a", "b")}, "3"),
        (types.FLOAT, 0.1, {}, "0.1"),
        (types.FLOAT, 1e-7, {}, "1e-07"),
        (types.DOUBLE, 1e20, {}, "100000000000000000000"),
        (types.DOUBLE, -1e21, {}, "-1e+21"),
        (types.DECIMAL, Decimal("-0.50"), {"flen": 10, "decimal": 2}, '"-0.50"'),
        (types.TIME, "-838:59:59", {}, '"-838:59:59"'),
        (types.JSON, '{"a": "é<>&"}', {}, '"{\\"a\\": \\"é<>&\\"}"'),
        (types.VECTOR, "[1,2.5]", {}, '"[1,2.5]"'),
        (types.VARCHAR, 'a"\\\n\x01<>&\u2028é', TEXT, '"a\\"\\\\\\n\\u0001<>&\u2028é"'),
        (types.BLOB_TYPE, b"\xff\x00", BYTES, '"/wA="'),
        (types.LONGBLOB, "text", TEXT, '"dGV4dA=="'),
        (types.VARCHAR, b'\x00\xff"\\\n', BYTES, '"\\\\x00\\\\xff\\\\\\"\\\\\\\\\\\\n"'),
        (types.STRING, "é\u00ad".encode(), BYTES, '"é\\\\u00ad"'),
    ],
)
def test_every_type_has_its_form(kind, value, more, text):
    made = encoder_for(settings()).encode_rows(inserts(table_of(column("c", kind, **more)), [value, None]))
    first, second = (texts(one, False)[0].decode() for one in made.value.to_pylist())
    assert f'"v":{text}}}' in first
    assert '"v":null}' in second


def test_text_that_is_no_utf8_is_passed_on():
    made = encoder_for(settings()).encode_rows(inserts(table_of(NAME), [b"\xff"]))
    assert b'"v":"\xff"' in made.value[0].as_py()


def test_names_are_escaped_as_json_asks_for():
    table = table_of(column('a"<', types.INT), schema="s\\", table="t&")
    ((key, value),) = rows(inserts(table, [1]))
    assert (key["scm"], key["tbl"], list(value["u"])) == ("s\\", "t&", ['a"<'])
    assert b'"tbl":"t&"' in encoder_for(settings()).encode_rows(inserts(table, [1])).key[0].as_py()


def test_names_and_queries_that_are_no_utf8_are_readable_json():
    broken = b"a\xff".decode("utf-8", "surrogateescape")
    ((key, _),) = rows(inserts(table_of(KEY, table=broken), [1]))
    assert key["tbl"] == "a\ufffd"
    ddl = encoder_for(settings()).encode_ddl(DdlStatement(5, "db", broken, broken, TS, None))
    assert read(ddl.key, ddl.value)[0][1]["q"] == "a\ufffd"


# --- flags ----------------------------------------------------------------------------------------------------------------------


def test_flags_follow_columns_and_indexes():
    flag = types.NOT_NULL
    columns = [
        column("a", types.INT, flag=flag | types.UNSIGNED),
        column("b", types.VARCHAR, flag=flag, **TEXT),
        column("c", types.INT, flag=types.MULTIPLE_KEY),
        column("g", types.INT, generated_expr="a + 1", is_stored_generated=True),
    ]
    indexes = [
        Index("u", ("a", "b"), True, id=1),
        Index("i", ("c", "g"), False, id=2),
    ]
    assert column_flags(table_of(*columns, indexes=indexes)) == {
        "a": 1 | 2 | 16 | 32 | 128,
        "b": 2 | 16 | 32,
        "c": 1 | 32 | 64,
        "g": 1 | 4 | 64,
    }


def test_a_primary_key_that_is_no_index_is_the_handle_key():
    assert column_flags(table_of(KEY)) == {"id": 1 | 2 | 8}


# --- batches --------------------------------------------------------------------------------------------------------------------


def numbered(count, size=1):
    return inserts(table_of(KEY, NAME), list(range(count)), ["x" * size] * count)


@pytest.mark.parametrize(
    ("query", "sizes"),
    [("", [16, 16, 8]), ("&max-batch-size=7", [7] * 5 + [5]), ("&max-batch-size=1", [1] * 40)],
)
def test_a_message_holds_up_to_max_batch_size_rows(query, sizes):
    encoder = encoder_for(settings(query))
    made = packed(encoder, encoder.encode_rows(numbered(40)))
    found = [read(*pair) for pair in zip(made.key.to_pylist(), made.value.to_pylist(), strict=True)]
    assert [len(one) for one in found] == sizes
    assert [row["u"]["id"]["v"] for one in found for _, row in one] == list(range(40))
    assert made.change.tolist() == np.cumsum([0, *sizes])[:-1].tolist()


def test_a_message_is_no_larger_than_max_message_bytes():
    """As TiCDC counts: what Kafka adds to a message, the version, and the lengths, too."""
    one = encoder_for(settings()).encode_rows(numbered(1))
    alone = len(one.key[0].as_py()) + len(one.value[0].as_py()) + 36
    each = alone - 36 - 8
    for limit, size in ((alone, 1), (alone + each - 1, 1), (alone + each, 2), (alone + 4 * each, 5)):
        encoder = encoder_for(settings(f"&max-message-bytes={limit}"))
        made = packed(encoder, encoder.encode_rows(numbered(10)))
        lengths = [
            len(key) + len(value) + 36
            for key, value in zip(made.key.to_pylist(), made.value.to_pylist(), strict=True)
        ]
        assert len(lengths) == 10 // size
        assert max(lengths) <= limit


def test_large_rows_among_small_ones_begin_new_messages():
    sizes = [1, 300, 1, 1, 500, 500, 1]
    batch = inserts(table_of(KEY, NAME), list(range(7)), ["x" * size for size in sizes])
    encoder = encoder_for(settings("&max-message-bytes=700"))
    made = packed(encoder, encoder.encode_rows(batch))
    found = [read(*pair) for pair in zip(made.key.to_pylist(), made.value.to_pylist(), strict=True)]
    assert [len(one) for one in found] == [2, 2, 1, 1, 1]
    assert [row["u"]["id"]["v"] for one in found for _, row in one] == list(range(7))


def test_a_row_that_is_too_large_is_an_error_of_its_own():
    batch = inserts(table_of(KEY, NAME), [1, 2, 3], ["a", "x" * 500, "b"])
    encoder = encoder_for(settings("&max-message-bytes=400"))
    made = packed(encoder, encoder.encode_rows(batch))
    assert made.change.tolist() == [0, 1, 2]
    assert [one is None for one in made.error.to_pylist()] == [True, False, True]
    assert "max-message-bytes is 400" in made.error[1].as_py()
    assert made.value[1].as_py() is None


def test_a_row_that_is_too_large_can_be_sent_with_its_handle_key():
    large = {"large-message-handle-option": "handle-key-only"}
    changefeed = {"sink": {"kafka-config": {"large-message-handle": large}}}
    batch = batch_of(table_of(KEY, NAME), ("I", [1, "a"]), ("U", [2, "x" * 500], [2, "y" * 500]))
    small, only_key = rows(batch, "&max-message-bytes=400", changefeed)
    assert "ohk" not in small[0]
    assert only_key[0]["ohk"] is True
    assert {part: list(columns) for part, columns in only_key[1].items()} == {"u": ["id"], "p": ["id"]}


@pytest.mark.parametrize(
    "large",
    [
        {"large-message-handle-option": "claim-check", "claim-check-storage-uri": "file:///x"},
        {"large-message-handle-compression": "lz4"},
    ],
)
def test_what_is_not_built_in_is_refused(large):
    changefeed = {"sink": {"kafka-config": {"large-message-handle": large}}}
    assert ["large-message-handle" in one.message for one in errors(changefeed, KAFKA)] == [True]


def test_the_protocol_has_no_files():
    assert [one.key for one in errors(None, "file:///x?protocol=open-protocol")] == ["protocol"]
    assert errors(None, KAFKA) == errors(None, "kafka://127.0.0.1:9092/t?protocol=default") == []


@pytest.mark.parametrize("protocol", ["canal", "maxwell", "simple"])
def test_protocols_without_an_encoder_are_refused_by_name(protocol, capsys):
    uri = f"kafka://127.0.0.1:9092/t?protocol={protocol}"
    assert main(["encode", str(golden("streams/orders.bin")), "--sink-uri", uri]) == 2
    said = capsys.readouterr().err
    assert protocol in said
    assert "open-protocol" in said


def test_the_command_shows_batches(capfdbinary):
    assert main(["encode", str(golden("streams/orders.bin")), "--sink-uri", KAFKA]) == 0
    shown = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    found = [read(raw(one, "key"), raw(one, "value")) for one in shown if one["kind"] == "row"]
    assert sum(map(len, found)) == len(jsonl("streams/orders.rows.jsonl")) > len(found)


def test_ddl_and_resolved_messages():
    encoder = encoder_for(settings())
    ddl = encoder.encode_ddl(DdlStatement(5, "db", "t", 'alter table t add c text default "<é>"', TS, None))
    ((key, value),) = read(ddl.key, ddl.value)
    assert key == {"ts": TS, "scm": "db", "tbl": "t", "t": 2}
    assert value == {"q": 'alter table t add c text default "<é>"', "t": 5}
    assert "<é>".encode() in ddl.value
    resolved = encoder.encode_watermark(TS)
    assert read(resolved.key, resolved.value) == [({"ts": TS, "t": 3}, None)]


def test_no_row_changes_make_no_messages():
    made = encoder_for(settings()).encode_rows(inserts(table_of(KEY), []))
    assert len(made) == 0


# --- texts ----------------------------------------------------------------------------------------------------------------------

NAMED = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def quoted(value: bytes) -> str:
    """Go's strconv.Quote without the quotes, character by character."""
    made = ""
    for character in value.decode("utf-8", "surrogateescape"):
        code = ord(character)
        if 0xDC80 <= code <= 0xDCFF:
            made += f"\\x{code - 0xDC00:02x}"
        elif code in NAMED:
            made += NAMED[code]
        elif code < 32 or code == 127:
            made += f"\\x{code:02x}"
        elif code == 32 or unicodedata.category(character)[0] not in "CZ":
            made += character
        else:
            made += f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return made


SPECIAL = [
    b"\xc2\x80",
    b"\xe0\x80\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xf0\x9f\x98\x80",
    b"\xe2\x80\xa8",
    b"\xc2",
    b"\xf3\xa0\x80\x81",
]
PIECES = strategies.lists(
    strategies.one_of(strategies.binary(max_size=6), strategies.sampled_from(SPECIAL)), max_size=5
)


@given(strategies.lists(strategies.one_of(strategies.none(), PIECES.map(b"".join)), max_size=8))
def test_bytes_are_quoted_as_go_does(values):
    found = go_quoted(pa.array([b"before", *values], pa.binary())[1:]).to_pylist()
    wanted = [
        None if value is None else json.dumps(quoted(value), ensure_ascii=False)[1:-1] for value in values
    ]
    assert found == wanted


@given(strategies.lists(strategies.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_floats_are_those_of_gos_json(values):
    with np.errstate(over="ignore"):
        narrow = np.array(values, np.float64).astype(np.float32)
    for array in (pa.array(values), pa.array(narrow)):
        for text, value in zip(go_json(array).to_pylist(), array.to_pylist(), strict=True):
            if not np.isfinite(value):
                continue
            kind = array.type.to_pandas_dtype()
            assert kind(text) == kind(value)
            assert ("e" in text) == (value != 0 and not kind(1e-6) <= kind(abs(value)) < kind(1e21))
