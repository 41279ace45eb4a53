"""The open protocol: messages of several row changes, each a key and a value in JSON behind its length.

    key   := version:u64 = 1 (length:u64 json)*                       (big endian)
    value := (length:u64 json)*

    row        {"ts":commit ts,"scm":schema,"tbl":table,"t":1[,"ohk":true][,"ptn":partition id]}
               {"u":columns} | {"u":columns,"p":columns} | {"d":columns}           insert, update with its old row, delete
    DDL        {"ts":finish ts,"scm":…,"tbl":…,"t":2}   {"q":query,"t":TiDB's number}
    resolved   {"ts":ts,"t":3}   nothing

    columns := {name:{"t":MySQL type[,"h":true],"f":flags,"v":value}}        h: part of the handle key

Numbers are numbers, ENUM, SET and BIT too; DECIMAL, dates and times, JSON and vectors are strings; TEXT and BLOB are base64, BINARY and VARBINARY the inside of a quoted Go string.
Virtual generated columns are left out. A message holds up to max-batch-size row changes, and no more than fit into max-message-bytes. The protocol is one of queues: there
are no files of it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.encode import avro_binary as binary
from tidemark.encode import types
from tidemark.encode.columns import ColumnChoice, rows_of
from tidemark.encode.ddl import DdlStatement
from tidemark.encode.go_quote import go_quoted
from tidemark.encode.limits import RECORD_OVERHEAD, handle_key_when_large, largest_message, too_large
from tidemark.encode.parts import (
    Coded,
    Part,
    integers,
    joined,
    quoted,
    runs,
    scattered,
    split_decimal,
    split_float,
)
from tidemark.encode.protocol import Message, Messages
from tidemark.encode.strings import as_bytes, as_text, json_plain_string, json_plain_text, offsets_of
from tidemark.wire.floats import go_json
from tidemark.wire.rows import DELETE, UPDATE, RowBatch
from tidemark.wire.table_info import Column, TableInfo
from tidemark.wire.text import base64_text, decimal_text
from tidemark.wire.types import BINARY_CHARSET, Kind

if TYPE_CHECKING:
    from tidemark.config import Settings

_LENGTH = struct.Struct(">Q")
_VERSION = _LENGTH.pack(1)
_ROW, _DDL, _RESOLVED = 1, 2, 3
_NULL = "null"
# Flags of a column.
_BINARY, _HANDLE_KEY, _GENERATED, _PRIMARY_KEY, _UNIQUE_KEY, _MULTIPLE_KEY, _NULLABLE, _UNSIGNED = (
    1 << bit for bit in range(8)
)
# With only-output-updated-columns, an old value that is the zero of its type is null, as in TiCDC.
_ZERO_TEXTS = {Kind.STRING: "", Kind.VECTOR: "[]"}


class OpenProtocolEncoder:
    def __init__(
        self, settings: Settings, clock: Callable[[], int] | None = None, *, keeps_first_flags: bool = False
    ):
        """`keeps_first_flags`: the flags of a table's columns are those of its first row, as those of TiCDC's encoder are while it sees no DDL; a column that
        is added later has none. Messages carry no build time.
        """
        options = settings.uri.options
        self._columns = ColumnChoice(settings)
        self._old_values = settings.sink.open_protocol.output_old_value
        self._only_updated = options.only_output_updated_columns
        self._delete_only_handle_key = settings.sink.delete_only_output_handle_key_columns
        self._max_batch_size = options.max_batch_size
        self._max_message_bytes = largest_message(settings)
        self._handle_key_when_large = handle_key_when_large(settings)
        # physical table id -> column -> flags
        self._first_flags: dict[int, dict[str, int]] | None = {} if keeps_first_flags else None

    def encode_rows(self, batch: RowBatch) -> Messages:
        count = len(batch.changes)
        everything = np.arange(count)
        key, value, error = self._rows(batch, everything)
        lengths = self._lengths(key, value)
        if lengths.max(initial=0) > self._max_message_bytes:
            if self._handle_key_when_large:
                large = np.flatnonzero(lengths > self._max_message_bytes)
                mask = pa.array(lengths > self._max_message_bytes)
                small = self._rows(batch, large, only_handle_key=True)
                key, value, error = (
                    pc.replace_with_mask(whole, mask, part)
                    for whole, part in zip((key, value, error), small, strict=True)
                )
                lengths = self._lengths(key, value)
            error = pc.coalesce(error, too_large(lengths, self._max_message_bytes))
        if error.null_count < count:
            nothing, failed = pa.scalar(None, pa.binary()), error.is_valid()
            key, value = pc.if_else(failed, nothing, key), pc.if_else(failed, nothing, value)
        return Messages(everything, key, value, error)

    def pack(
        self, key: pa.BinaryArray, value: pa.BinaryArray
    ) -> tuple[pa.BinaryArray, pa.BinaryArray, np.ndarray]:
        first = self._batch_starts(self._lengths(key, value) - RECORD_OVERHEAD - len(_VERSION))
        if len(first) == len(key):
            return key, value, first
        is_first = np.zeros(len(key), bool)
        is_first[first] = True
        # Only the first row change of a message has the version in front of it.
        rest = pc.binary_replace_slice(key, 0, len(_VERSION), b"")
        return _merged(pc.if_else(pa.array(is_first), key, rest), first), _merged(value, first), first

    def encode_ddl(self, ddl: DdlStatement) -> Message | None:
        key = _key(ddl.schema, ddl.table, ddl.finished_ts, _DDL)
        return _message(key, f'{{"q":{json_plain_string(ddl.query)},"t":{ddl.type}}}')

    def encode_watermark(self, ts: int) -> Message | None:
        return _message(f'{{"ts":{ts},"t":{_RESOLVED}}}', "")

    def _lengths(self, key: pa.BinaryArray, value: pa.BinaryArray) -> np.ndarray:
        """What each message takes in Kafka."""
        return np.diff(offsets_of(key)).astype(np.int64) + np.diff(offsets_of(value)) + RECORD_OVERHEAD

    def _batch_starts(self, sizes: np.ndarray) -> np.ndarray:
        """Where the messages begin, for row changes of these sizes."""
        count, most = len(sizes), self._max_batch_size
        starts = np.arange(0, count, most)
        limit = self._max_message_bytes - RECORD_OVERHEAD - len(_VERSION)
        if not count or np.add.reduceat(sizes, starts).max() <= limit:
            return starts
        ends, found, start = np.cumsum(sizes), [], 0
        while start < count:
            found.append(start)
            before = ends[start - 1] if start else 0
            fitting = int(np.searchsorted(ends[start : start + most], before + limit, side="right"))
            start += max(1, fitting)
        return np.array(found)

    def _rows(
        self, batch: RowBatch, which: np.ndarray, only_handle_key: bool = False
    ) -> tuple[pa.BinaryArray, pa.BinaryArray, pa.StringArray]:
        """(keys, values, why a row change has none)"""
        deletes = batch.changes.op[which] == DELETE
        narrow = only_handle_key | (deletes & self._delete_only_handle_key)
        keys = self._keys(batch, which, only_handle_key)
        error = pa.nulls(len(which), pa.string())
        if narrow.any() and not batch.table.handle_key:
            error = pc.if_else(pa.array(narrow), "the table has no handle key to send", error)
            narrow = np.zeros(len(which), bool)
        if not narrow.any() or narrow.all():
            values = self._values(batch, which, bool(len(narrow)) and bool(narrow[0]))
        else:
            places = [np.flatnonzero(~narrow), np.flatnonzero(narrow)]
            parts = [self._values(batch, which[some], bool(number)) for number, some in enumerate(places)]
            values = pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(places))))
        return _framed(keys, _VERSION), _framed(values), error

    def _keys(self, batch: RowBatch, which: np.ndarray, only_handle_key: bool) -> pa.StringArray:
        if not len(which):
            return pa.array([], pa.string())
        table, changes = batch.table, batch.changes
        commit_ts, physical_id = changes.commit_ts[which], changes.physical_table_id[which]
        first, run = runs(commit_ts, physical_id)
        more = ',"ohk":true' if only_handle_key else ""
        parts: list[Part] = [
            '{"ts":',
            pa.array(commit_ts[first]).cast(pa.string()),
            f',{_names(table.target_schema, table.target_table)},"t":{_ROW}{more}',
        ]
        if table.is_partition:
            parts += [',"ptn":', pa.array(physical_id[first]).cast(pa.string())]
        return joined([Coded(run, joined([*parts, "}"], _NULL))], _NULL)

    def _values(self, batch: RowBatch, which: np.ndarray, only_handle_key: bool) -> pa.StringArray:
        if not len(which):
            return pa.array([], pa.string())
        changes, table = batch.changes, batch.table
        op = changes.op[which]
        rows = np.where(changes.op == DELETE, changes.pre, changes.post)[which]
        positions = [
            position
            for position in self._columns.of(table)
            if not only_handle_key or table.columns[position].is_handle_key
        ]
        heads = self._heads(batch, positions)
        columns, chosen = [table.columns[position] for position in positions], batch.columns.select(positions)
        now = rows_of(chosen, rows)
        old: Part = ""
        updates = op == UPDATE
        if self._old_values and updates.any():
            before = rows_of(chosen, changes.pre[which][updates])
            if self._only_updated:
                after = now.filter(pa.array(updates))
                objects = joined(["{", _updated(before, after, columns, heads), "}"], _NULL)
            else:
                objects = joined(_object(before, columns, heads), _NULL)
            old = scattered(pc.binary_join_element_wise(',"p":', objects, ""), updates, "")
        start = Coded((op == DELETE).view(np.int8), pa.array(['{"u":', '{"d":']))
        return joined([start, *_object(now, columns, heads), old, "}"], _NULL)

    def _heads(self, batch: RowBatch, positions: list[int]) -> list[str]:
        """What stands in front of the value of each column."""
        table = batch.table
        flags = column_flags(table)
        if self._first_flags is not None:
            # A batch is that of a dispatcher, which reads one physical table.
            flags = self._first_flags.setdefault(int(batch.changes.physical_table_id[0]), flags)
        heads = []
        for position in positions:
            column = table.columns[position]
            handle = ',"h":true' if column.is_handle_key else ""
            name, flag = json_plain_string(column.name), flags.get(column.name, 0)
            heads.append(f'{name}:{{"t":{column.mysql_type}{handle},"f":{flag},"v":')
        return heads


def column_flags(table: TableInfo) -> dict[str, int]:
    """Column -> flags. MySQL marks only the first column of an index; here all of them are marked."""
    flags = {}
    for column in table.columns:
        primary = column.is_primary_key
        flags[column.name] = (
            _BINARY * (column.charset == BINARY_CHARSET)
            | _HANDLE_KEY * (primary and table.pk_is_handle)
            | _GENERATED * bool(column.generated_expr)
            | _PRIMARY_KEY * primary
            | _UNIQUE_KEY * column.is_unique_key
            | _MULTIPLE_KEY * column.is_multiple_key
            | _NULLABLE * (not column.is_not_null)
            | _UNSIGNED * column.is_unsigned
        )
    for index in table.indexes:
        for name in index.columns:
            column = table.columns_by_name.get(name)
            if column is None or column.generated_expr:
                continue
            flags[name] |= (
                _PRIMARY_KEY * index.is_primary
                | _UNIQUE_KEY * (index.is_unique and not index.is_primary)
                | _MULTIPLE_KEY * (len(index.columns) > 1)
                | _HANDLE_KEY * column.is_handle_key
            )
    return flags


def _object(rows: pa.RecordBatch, columns: list[Column], heads: list[str]) -> list[Part]:
    parts: list[Part] = ["{"]
    for place, (array, column, head) in enumerate(zip(rows.columns, columns, heads, strict=True)):
        parts += [("," if place else "") + head, *_value(array, column), "}"]
    return [*parts, "}"]


def _updated(
    before: pa.RecordBatch, after: pa.RecordBatch, columns: list[Column], heads: list[str]
) -> pa.StringArray:
    """The columns of the rows before that differ from those after, one behind the other."""
    texts = []
    for old, new, column, head in zip(before.columns, after.columns, columns, heads, strict=True):
        same = pc.or_(pc.fill_null(pc.equal(old, new), False), pc.and_(old.is_null(), new.is_null()))
        # A value that becomes NULL is shown as it was, whatever it is.
        hidden = pc.and_(_is_zero(old, column), new.is_valid())
        value = pc.if_else(hidden, _NULL, joined(_value(old, column), _NULL))
        texts.append(pc.if_else(same, "", joined([f",{head}", value, "}"], _NULL)))
    return pc.binary_replace_slice(joined(texts, ""), start=0, stop=1, replacement="")


def _is_zero(array: pa.Array, column: Column) -> pa.BooleanArray:
    """Empty texts and bytes, the numbers of ENUM, SET and DECIMAL, and dates and times that are zero."""
    if column.kind in _ZERO_TEXTS:
        return pc.fill_null(pc.equal(as_text(array), _ZERO_TEXTS[column.kind]), False)
    if column.kind in (Kind.ENUM, Kind.SET, Kind.DECIMAL):
        zero = Decimal(0) if column.kind is Kind.DECIMAL else 0
        return pc.fill_null(pc.equal(array, pa.scalar(zero, array.type)), False)
    if column.kind in (Kind.DATETIME, Kind.TIME):
        return pc.fill_null(pc.match_substring_regex(array, "^[-0: .]*$"), False)
    return pa.repeat(pa.scalar(False), len(array))


def _value(array: pa.Array, column: Column) -> list[Part]:
    kind = column.kind
    if array.null_count == len(array):
        return [pa.nulls(len(array), pa.string())]
    if kind in (Kind.INTEGER, Kind.BIT, Kind.ENUM, Kind.SET):
        return integers(array)
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        return split_float(array) or [go_json(array)]
    if kind is Kind.DECIMAL:
        return quoted(array, split_decimal(array) or [decimal_text(array)], '"')
    return quoted(array, [_text(array, column)], '"')


def _text(array: pa.Array, column: Column) -> pa.StringArray:
    if types.mapping(column).shape is types.Shape.BLOB:
        return base64_text(array)
    if types.holds_bytes(column):
        return go_quoted(array)
    return json_plain_text(as_text(array)) if column.kind in (Kind.STRING, Kind.JSON) else array


def _names(schema: str, table: str) -> str:
    return f'"scm":{json_plain_string(schema)},"tbl":{json_plain_string(table)}'


def _key(schema: str, table: str, ts: int, kind: int) -> str:
    return f'{{"ts":{ts},{_names(schema, table)},"t":{kind}}}'


def _message(key: str, value: str) -> Message:
    raw_key, raw_value = key.encode(), value.encode()
    return Message(_VERSION + _LENGTH.pack(len(raw_key)) + raw_key, _LENGTH.pack(len(raw_value)) + raw_value)


def _framed(texts: pa.StringArray, head: bytes = b"") -> pa.BinaryArray:
    """Each text behind `head` and its length."""
    count = len(texts)
    lengths = binary.fixed(np.diff(offsets_of(texts)).astype(">u8"))
    return binary.joined([binary.constant(head, count), lengths, as_bytes(texts)], count)


def _merged(values: pa.BinaryArray, first: np.ndarray) -> pa.BinaryArray:
    """Neighbours as one value, from each of `first` on. No bytes are moved."""
    offsets = offsets_of(values)
    edges = np.append(offsets[first], offsets[-1]).astype(np.int32)
    buffers = [None, pa.py_buffer(edges), values.buffers()[2]]
    return pa.Array.from_buffers(pa.binary(), len(first), buffers)
