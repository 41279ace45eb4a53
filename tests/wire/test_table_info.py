"""TableInfo: every golden one both ways, tables made by code, and bytes that are none."""

import dataclasses
import json
import re
import struct
from contextlib import nullcontext

import pytest
from tables import STREAMS, column, events, table, text_column

from support import jsonl
from tidemark.wire import types
from tidemark.wire.errors import InvalidField, TruncatedPayload, WireError
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.json_text import MAX_DEPTH, read_object
from tidemark.wire.table_info import Column, Index, TableInfo


def golden_tables() -> list[bytes]:
    found = {}
    for stream in STREAMS:
        for _, event in events(stream):
            if isinstance(event, HandshakeEvent):
                found[event.table_info] = None
            elif isinstance(event, DDLEvent):
                found.update(dict.fromkeys((event.table_info, *event.extra_table_infos)))
    return [raw for raw in found if raw]


GOLDEN = golden_tables()
SAMPLE = GOLDEN[0]


def without_digest(raw: bytes) -> bytes:
    return re.sub(rb'"digest":\{[^}]*\}', b"", raw)[:-8]


def test_golden_bytes_come_back():
    assert len(GOLDEN) > 60
    for raw in GOLDEN:
        assert TableInfo.from_bytes(raw).to_bytes() == raw


def test_a_table_written_anew_has_the_keys_and_values_of_the_sender():
    for raw in GOLDEN:
        parsed = TableInfo.from_bytes(raw)
        if not parsed.is_view:
            written = dataclasses.replace(parsed).to_bytes()
            assert without_digest(written) == without_digest(raw)
            assert TableInfo.from_bytes(written) == parsed


def test_a_changed_copy_is_not_written_as_the_original():
    parsed = TableInfo.from_bytes(SAMPLE)
    renamed = dataclasses.replace(parsed, table="renamed")
    assert TableInfo.from_bytes(renamed.to_bytes()).table == "renamed"


@pytest.mark.parametrize("stream", STREAMS)
def test_every_golden_schema(stream):
    by_version = {}
    for _, event in events(stream):
        if isinstance(event, HandshakeEvent | DDLEvent) and event.table_info:
            extra = event.extra_tables() if isinstance(event, DDLEvent) else ()
            for parsed in (event.table(), *extra):
                by_version[parsed.schema, parsed.table, str(parsed.table_id), str(parsed.version)] = parsed
    for want in jsonl(f"streams/{stream}.schemas.jsonl"):
        parsed = by_version[want["schema"], want["table"], want["table_id"], want["table_version"]]
        assert parsed.is_active_active == want["active_active"]
        assert parsed.is_soft_delete == want["soft_delete"]
        assert parsed.is_partition == want["is_partition"]
        assert parsed.pk_is_handle == want["pk_is_handle"]
        assert parsed.has_pk_or_not_null_uk == want["has_pk_or_not_null_uk"]
        assert (parsed.charset, parsed.collate) == (want["charset"], want["collate"])
        for col, expected in zip(parsed.columns, want["columns"], strict=True):
            got = {
                "id": col.id,
                "name": col.name,
                "offset": col.offset,
                "mysql_type": col.mysql_type,
                "flag": col.flag,
                "flen": col.flen,
                "decimal": col.decimal,
                "charset": col.charset,
                "collate": col.collate,
                "elems": list(col.elems) or None,
                "default": col.default,
                "origin_default": col.origin_default,
                "unsigned": col.is_unsigned,
                "not_null": col.is_not_null,
                "pk": col.is_primary_key,
                "binary_flag": col.is_binary,
                "handle_key": col.is_handle_key,
                "hidden": col.hidden,
                "stored_generated": col.is_stored_generated,
                "virtual_generated": col.is_virtual_generated,
            }
            assert got == {key: expected[key] for key in got}


KEY = types.PRIMARY_KEY | types.NOT_NULL
ID = column("id", types.BIGINT, flag=KEY)


@pytest.mark.parametrize(
    ("columns", "indexes", "key", "is_handle"),
    [
        ([ID], [], ("id",), True),
        ([text_column("id", flag=KEY)], [Index("PRIMARY", ("id",), True, True)], ("id",), False),
        ([column("a", types.BIGINT), column("b", types.BIGINT, id=2)], [], (), False),
        ([column("a", types.BIGINT)], [Index("uk", ("a",), True)], (), False),
        (
            [column("a", types.BIGINT, flag=1, id=1), column("b", types.BIGINT, flag=1, id=2)],
            [
                Index("two", ("a", "b"), True, id=1),
                Index("one", ("b",), True, id=2),
                Index("later", ("a",), True, id=3),
            ],
            ("b",),
            False,
        ),
        (
            [column("v", types.BIGINT, flag=1, id=1, generated_expr="`a`"), column("a", types.BIGINT, id=2)],
            [Index("on_virtual", ("v",), True)],
            (),
            False,
        ),
    ],
    ids=[
        "integer primary key",
        "primary index",
        "no key",
        "nullable unique key",
        "shortest unique key, smallest id",
        "unique key on a virtual column",
    ],
)
def test_the_handle_key_of_a_table_made_by_code(columns, indexes, key, is_handle):
    made = TableInfo.build("db", "t", 1, 2, columns=columns, indexes=indexes)
    assert (made.handle_key, made.pk_is_handle, made.has_pk_or_not_null_uk) == (key, is_handle, bool(key))
    assert TableInfo.from_bytes(made.to_bytes()) == made


def test_names_that_go_escapes_survive():
    made = table(text_column('<a>&\u2028`"', elems=("x<y",)))
    raw = made.to_bytes()
    assert b"\\u003ca\\u003e\\u0026\\u2028" in raw
    assert TableInfo.from_bytes(raw) == made


def edited(**changes) -> bytes:
    """The sample with keys of its columns document replaced; `None` removes the key."""
    (length,) = struct.unpack(">Q", SAMPLE[-8:])
    head, document = SAMPLE[: -8 - length], json.loads(SAMPLE[-8 - length : -8])
    document.update(changes)
    body = json.dumps({key: value for key, value in document.items() if value != "absent"}).encode()
    return head + body + struct.pack(">Q", len(body))


def test_a_sender_without_a_handle_key_list_gets_the_derived_one():
    assert TableInfo.from_bytes(edited(handle_key_id_list="absent")) == TableInfo.from_bytes(SAMPLE)


def with_default(key: str, text: str) -> bytes:
    """The sample with one column, whose default is a JSON text."""
    item = {"id": 1, "name": {"O": "a"}, "offset": 0, "type": {"Tp": 16, "Flen": 8}, key: "?"}
    slices = {"row_col_field_tps_slice": "absent", "handle_key_id_list": [], "index_info": []}
    raw = edited(cols=[item], **slices)
    (length,) = struct.unpack(">Q", raw[-8:])
    body = raw[-8 - length : -8].replace(b'"?"', text.encode())
    return raw[: -8 - length] + body + struct.pack(">Q", len(body))


@pytest.mark.parametrize("key", ["default", "origin_default"])
def test_a_default_is_a_text_or_a_number_of_64_bits(key):
    for text in ('"x"', "true", "1.5", "-9223372036854775808", "18446744073709551615"):
        (found,) = TableInfo.from_bytes(with_default(key, text)).columns
        assert getattr(found, key) == json.loads(text)
    for text in ("1e400", "-1e400", "-9223372036854775809", "18446744073709551616", "1" * 400, "[]"):
        with pytest.raises(InvalidField, match=f"'{key}' cannot be"):
            TableInfo.from_bytes(with_default(key, text))


@pytest.mark.parametrize("key", ["default_bit", "origin_default_bit"])
def test_the_default_of_a_bit_column_is_base64(key):
    for text in ("", "/w==", "Aqo="):
        (found,) = TableInfo.from_bytes(with_default(key, f'"{text}"')).columns
        assert getattr(found, key) == text
    for text in ("é", "abc", "!!!!"):
        with pytest.raises(InvalidField, match=f"'{key}' cannot be"):
            TableInfo.from_bytes(with_default(key, f'"{text}"'))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0" * 7,
        struct.pack(">Q", 2**64 - 1),
        struct.pack(">Q", 1),
        struct.pack(">Q", 0),
        b"{}" + struct.pack(">Q", 2),
        b"[" * 100_000 + struct.pack(">Q", 50_000),
        b"{}\xff\xfe" + struct.pack(">Q", 2),
        edited(cols=5),
        edited(cols=[1]),
        edited(cols=[{}]),
        edited(cols=[{"id": 1.5, "name": {"O": "a"}, "offset": 0, "type": {"Tp": 3}}]),
        edited(cols=[{"id": 1, "name": {"O": "a"}, "offset": 0, "type": {"Tp": 99}}]),
        edited(
            cols=[{"id": 1, "name": {"O": "a"}, "offset": 0, "type": {"Tp": 246, "Flen": 66, "Decimal": 0}}]
        ),
        edited(cols=[{"id": 1, "name": {"O": "a"}, "offset": 0, "type": {"Tp": 16, "Flen": 65}}]),
        edited(cols=[{"id": 1, "name": {"O": "a"}, "offset": 0, "type": {"Tp": 12, "Decimal": 7}}]),
        edited(row_col_field_tps_slice=[]),
        edited(handle_key_id_list=[99]),
        edited(handle_key_id_list=["1"]),
        edited(index_info=[{"idx_name": {"O": "x"}, "idx_cols": [{"name": {"O": "nowhere"}}]}]),
    ],
)
def test_bytes_that_are_no_table_info(raw):
    with pytest.raises(WireError):
        TableInfo.from_bytes(raw)


def test_every_truncation_is_a_typed_error():
    for length in range(0, len(SAMPLE), 3):
        with pytest.raises((TruncatedPayload, InvalidField)):
            TableInfo.from_bytes(SAMPLE[:length])


@pytest.mark.parametrize(
    ("text", "is_deep"),
    [
        (b'{"a": [' + b"{}," * 1000 + b"{}]}", False),
        (b'{"a": [' + b'"[[{",' * 1000 + b"{}]}", False),
        (b'{"a": ["\\"[", ' + b"[[]]," * 100 + b"{}]}", False),
        (b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH, False),
        (b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), True),
        (b'{"a": "", "b": ' + b"[" * 100 + b"]" * 100 + b', "c": ""}', True),
        (b"[" * 100_000, True),
    ],
)
def test_only_brackets_outside_of_texts_nest(text, is_deep):
    with pytest.raises(InvalidField, match="levels deep") if is_deep else nullcontext():
        read_object(text, "a document", 0)


def test_tables_with_the_same_columns_share_them():
    columns = [Column(1, "id", 0, types.INT, flag=types.PRIMARY_KEY | types.NOT_NULL, flen=11)]
    first, second = (
        TableInfo.from_bytes(TableInfo.build("d", name, number, 1, columns=columns).to_bytes())
        for number, name in enumerate(("a", "b"))
    )
    assert (first.table, second.table) == ("a", "b")
    assert first.columns is second.columns
    assert first.arrow_schema is second.arrow_schema
