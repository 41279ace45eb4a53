"""canal-json: one JSON object per row change, DDL statement or watermark.

    {"id":0,"database":…,"table":…,"pkNames":[…],"isDdl":false,"type":"INSERT","es":commit ms,"ts":build ms,"sql":"",
     "sqlType":{column: java.sql.Types},"mysqlType":{column: type},"old":null|[{…}],"data":[{column: "text"|null}],
     "_tidb":{"commitTs":…,"rowkey":base64}}                      (the last with enable-tidb-extension)

All values are strings or null: ENUM, SET and BIT as numbers, binary values as the characters U+0000 to U+00FF, floats without exponent. An
unsigned value that its Java type cannot hold is reported under the next wider type. Virtual generated columns are left out. Keys are
in the order of columns; Go's escapes. In files `ts` is the commit time too, so that they can be written again with the same bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.encode import types
from tidemark.encode.columns import ColumnChoice, rows_of
from tidemark.encode.ddl import DdlStatement
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
from tidemark.encode.protocol import EncodedFile, FileBody, Message, Messages, PlainBody, RowMessages
from tidemark.encode.strings import (
    as_bytes,
    as_text,
    contiguous,
    json_latin1_text,
    json_string,
    json_text,
    offsets_of,
)
from tidemark.wire.floats import go_f
from tidemark.wire.rows import DELETE, UPDATE, RowBatch
from tidemark.wire.table_info import Column, TableInfo
from tidemark.wire.text import base64_text, decimal_text
from tidemark.wire.types import Kind

if TYPE_CHECKING:
    from tidemark.config import Settings

# By the number of the operation.
_TYPE_WORDS = ("DELETE", "INSERT", "UPDATE")
_NULL = "null"
_WATERMARK = "TIDB_WATERMARK"
# The low bits of a ts count within a millisecond.
_TS_LOGICAL_BITS = 18

# Canal's word for a kind of DDL, by TiDB's number; QUERY for all others.
_DDL_WORDS = {
    "CREATE": (3,),
    "RENAME": (14, 47),
    "CINDEX": (7, 9, 32),
    "DINDEX": (8, 10, 33),
    "ALTER": (5, 6, 12, 13, 15, 17, 18, 19, 20, 22, 23, 37, 38, 41, 61, 64, 71, 72),
    "ERASE": (4,),
    "TRUNCATE": (11,),
}
_DDL_WORD = {number: word for word, numbers in _DDL_WORDS.items() for number in numbers}


def _now() -> int:
    return int(time.time() * 1000)


class CanalJsonEncoder(RowMessages):
    extension = ".json"

    def __init__(self, settings: Settings, clock: Callable[[], int] | None = None):
        options = settings.uri.options
        self._columns = ColumnChoice(settings)
        is_storage = settings.sink_kind == "storage"
        # Files must not depend on when they are written: there, the build time is the commit time.
        self._clock = clock if clock is not None or is_storage else _now
        self._terminator = settings.sink.terminator
        self._message_end = self._terminator if is_storage else ""
        self._extension = options.enable_tidb_extension
        self._row_key = options.output_row_key
        self._full_types = options.content_compatible
        self._only_updated = options.only_output_updated_columns
        self._delete_only_handle_key = settings.sink.delete_only_output_handle_key_columns
        self._max_message_bytes = largest_message(settings)
        self._handle_key_when_large = handle_key_when_large(settings)

    def encode_rows(self, batch: RowBatch) -> Messages:
        changes = batch.changes
        count = len(changes)
        value = as_bytes(self._objects(batch, self._message_end))
        error = pa.nulls(count, pa.string())
        lengths = np.diff(offsets_of(value)) + RECORD_OVERHEAD
        if count and lengths.max() > self._max_message_bytes:
            value, error = self._shrunk(batch, value, lengths)
        return Messages(np.arange(count), pa.nulls(count, pa.binary()), value, error)

    def encode_file(self, batch: RowBatch) -> EncodedFile:
        value = as_bytes(self._objects(batch, self._terminator))
        return EncodedFile(contiguous(value), np.diff(offsets_of(value)).astype(np.int64), None)

    def file_header(self, table: TableInfo) -> bytes:
        return b""

    def file_body(self, table: TableInfo) -> FileBody:
        return PlainBody()

    def encode_ddl(self, ddl: DdlStatement) -> Message | None:
        extension = f'{{"commitTs":{ddl.finished_ts}}}' if ddl.finished_ts else "{}"
        word = _DDL_WORD.get(ddl.type, "QUERY")
        return self._event(ddl.schema, ddl.table, True, word, ddl.finished_ts, ddl.query, extension)

    def encode_watermark(self, ts: int) -> Message | None:
        if not self._extension:
            return None
        return self._event("", "", False, _WATERMARK, ts, "", f'{{"watermarkTs":{ts}}}' if ts else "{}")

    def _event(
        self, schema: str, table: str, is_ddl: bool, word: str, ts: int, query: str, extension: str
    ) -> Message:
        text = (
            f'{{"id":0,"database":{json_string(schema)},"table":{json_string(table)},"pkNames":null,'
            f'"isDdl":{"true" if is_ddl else "false"},"type":"{word}","es":{ts >> _TS_LOGICAL_BITS},"ts":{self._build_time(ts)},'
            f'"sql":{json_string(query)},"sqlType":null,"mysqlType":null,"data":null,"old":null'
        )
        text += f',"_tidb":{extension}}}' if self._extension else "}"
        return Message(None, text.encode())

    def _build_time(self, ts: int) -> int:
        return ts >> _TS_LOGICAL_BITS if self._clock is None else self._clock()

    def _objects(self, batch: RowBatch, terminator: str) -> pa.StringArray:
        """The object of each row change, and the terminator."""
        deletes = batch.changes.op == DELETE
        if not (self._delete_only_handle_key and deletes.any()):
            return self._some(batch, np.arange(len(deletes)), terminator)
        kept = [np.flatnonzero(~deletes), np.flatnonzero(deletes)]
        parts = [
            self._some(batch, kept[0], terminator),
            self._some(batch, kept[1], terminator, only_handle_key=True),
        ]
        return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(kept))))

    def _shrunk(
        self, batch: RowBatch, value: pa.BinaryArray, lengths: np.ndarray
    ) -> tuple[pa.Array, pa.Array]:
        """Messages above the limit with the handle key only, if so configured; an error for those that are still too large."""
        large = lengths > self._max_message_bytes
        if self._handle_key_when_large:
            small = self._some(batch, np.flatnonzero(large), "", only_handle_key=True, is_large=True)
            value = pc.replace_with_mask(value, pa.array(large), as_bytes(small))
            lengths = np.diff(offsets_of(value)) + RECORD_OVERHEAD
        error = too_large(lengths, self._max_message_bytes)
        return pc.if_else(error.is_valid(), pa.scalar(None, pa.binary()), value), error

    def _some(
        self,
        batch: RowBatch,
        which: np.ndarray,
        terminator: str,
        only_handle_key: bool = False,
        is_large: bool = False,
    ) -> pa.StringArray:
        changes, table = batch.changes, batch.table
        if len(which) == 0:
            return pa.array([], pa.string())
        everything = len(which) == len(changes)
        op, commit_ts = (
            (changes.op, changes.commit_ts) if everything else (changes.op[which], changes.commit_ts[which])
        )
        rows = np.where(changes.op == DELETE, changes.pre, changes.post)[which]
        positions = [
            position
            for position in self._columns.of(table)
            if not only_handle_key or table.columns[position].is_handle_key
        ]
        columns = [table.columns[position] for position in positions]
        chosen = rows_of(batch.columns.select(positions), rows)

        updates = op == UPDATE
        old: Part = _NULL
        if updates.any():
            before = rows_of(batch.columns.select(positions), changes.pre[which][updates])
            after = chosen.filter(pa.array(updates)) if self._only_updated else None
            old = scattered(_old(before, after, columns), updates, _NULL)

        first, run = runs(op, commit_ts)
        parts: list[Part] = [Coded(run, self._heads(table, op[first], commit_ts[first]))]
        parts += _sql_types(chosen.columns, columns)
        parts += [
            f',"mysqlType":{self._mysql_types(columns)},"old":',
            old,
            ',"data":[',
            *data_object(chosen, columns),
            "]",
        ]
        if self._extension:
            ts = Coded(run, pa.array(commit_ts[first]).cast(pa.string()))
            parts += [',"_tidb":{"commitTs":', ts, ',"onlyHandleKey":true' if is_large else ""]
            if self._row_key:
                keys = changes.row_key if everything else changes.row_key.take(pa.array(which))
                parts += [',"rowkey":"', base64_text(keys), '"']
            parts.append("}")
        return joined([*parts, "}" + terminator], _NULL)

    def _heads(self, table: TableInfo, op: np.ndarray, commit_ts: np.ndarray) -> pa.StringArray:
        """Everything in front of the types, for runs of rows that share it."""
        keys = ",".join(json_string(column.name) for column in table.columns if column.is_primary_key)
        start = (
            f'{{"id":0,"database":{json_string(table.target_schema)},"table":{json_string(table.target_table)},'
            f'"pkNames":[{keys}],"isDdl":false,"type":"'
        )
        milliseconds = pa.array(commit_ts >> np.uint64(_TS_LOGICAL_BITS)).cast(pa.string())
        words = Coded(op, pa.array(_TYPE_WORDS))
        built = milliseconds if self._clock is None else str(self._clock())
        return joined([start, words, '","es":', milliseconds, ',"ts":', built, ',"sql":"","sqlType":'], _NULL)

    def _mysql_types(self, columns: list[Column]) -> str:
        if not columns:
            return _NULL
        pairs = (
            f"{json_string(column.name)}:{json_string(types.mysql_type(column, full=self._full_types))}"
            for column in columns
        )
        return "{" + ",".join(pairs) + "}"


def _text(array: pa.Array, column: Column) -> pa.StringArray:
    """The value as it stands between quotes."""
    kind = column.kind
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        return go_f(array)
    if kind is Kind.DECIMAL:
        return decimal_text(array)
    if types.holds_bytes(column):
        return json_latin1_text(array)
    text = as_text(array)
    return json_text(text) if kind in (Kind.STRING, Kind.JSON) else text


def data_value(array: pa.Array, column: Column) -> list[Part]:
    if array.null_count == len(array):
        return [pa.nulls(len(array), pa.string())]
    parts: list[Part] | None = None
    if column.kind is Kind.DECIMAL:
        parts = split_decimal(array)
    elif column.kind is Kind.DOUBLE:
        parts = split_float(array)
    elif pa.types.is_integer(array.type):
        parts = integers(array)
    return quoted(array, [_text(array, column)] if parts is None else parts, '"')


def data_object(rows: pa.RecordBatch, columns: list[Column]) -> list[Part]:
    parts: list[Part] = ["{"]
    for position, (array, column) in enumerate(zip(rows.columns, columns, strict=True)):
        parts += [("," if position else "") + json_string(column.name) + ":", *data_value(array, column)]
    return [*parts, "}"]


def _old(before: pa.RecordBatch, after: pa.RecordBatch | None, columns: list[Column]) -> pa.StringArray:
    """`[{…}]` of the rows before; given the rows after, only the columns that differ."""
    if after is None:
        return joined(["[", *data_object(before, columns), "]"], _NULL)
    pairs = []
    for old_array, new_array, column in zip(before.columns, after.columns, columns, strict=True):
        old, new = _text(old_array, column), _text(new_array, column)
        same = pc.or_(pc.fill_null(pc.equal(old, new), False), pc.and_(old.is_null(), new.is_null()))
        pair = joined(["," + json_string(column.name) + ":", *quoted(old, [old], '"')], _NULL)
        pairs.append(pc.if_else(same, "", pair))
    changed = pc.binary_replace_slice(joined(pairs, ""), start=0, stop=1, replacement="")
    return joined(["[{", changed, "}]"], _NULL)


def _sql_types(arrays: list[pa.Array], columns: list[Column]) -> list[Part]:
    if not columns:
        return [_NULL]
    parts: list[Part] = ["{"]
    for position, (array, column) in enumerate(zip(arrays, columns, strict=True)):
        parts.append(("," if position else "") + json_string(column.name) + ":")
        number = str(types.sql_type(column))
        wide = types.mapping(column).jdbc_wide
        if column.is_unsigned and wide is not None:
            is_wide = pc.fill_null(pc.greater(array, pa.scalar(wide[0], array.type)), False)
            if pc.any(is_wide).as_py():
                parts.append(pc.if_else(is_wide, str(wide[1]), number))
                continue
        parts.append(number)
    return [*parts, "}"]
