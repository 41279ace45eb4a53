"""CSV: one line per row change.

    line := op,table,schema[,commit-ts][,is-update],column,… terminator

`op` is I, U or D. A delete line holds the old row, every other line the new one. With output-old-value an update is a D line with the old
row and an I line with the new one, and `is-update` tells them from real ones. Virtual generated columns are left out.

Names, text, dates, decimals, ENUM and SET names, JSON and vectors are strings: quoted, with quotes inside doubled; without a quote, CR, LF,
backslash and each byte of a delimiter are escaped with a backslash. Numbers and BIT are bare. Binary values are base64 or hex strings. DATETIME and
TIMESTAMP have six digits of fraction; with `compat: ticdc` as many as the column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.encode import types
from tidemark.encode.columns import ColumnChoice
from tidemark.encode.ddl import DdlStatement
from tidemark.encode.parts import (
    Coded,
    Part,
    integers,
    joined,
    only_where_valid,
    picked,
    quoted,
    runs,
    split_decimal,
    split_float,
)
from tidemark.encode.protocol import (
    EncodedFile,
    FileBody,
    Message,
    Messages,
    PlainBody,
    RowMessages,
    first_error,
)
from tidemark.encode.strings import (
    as_bytes,
    as_text,
    contiguous,
    hex_text,
    offsets_of,
    replaced,
    replaced_at_once,
)
from tidemark.encode.values import enum_index, set_names
from tidemark.wire.floats import go_g
from tidemark.wire.rows import DELETE, INSERT, UPDATE, RowBatch
from tidemark.wire.table_info import Column, TableInfo
from tidemark.wire.text import base64_text, decimal_text
from tidemark.wire.types import DATETIME, TIMESTAMP, Kind, fsp

if TYPE_CHECKING:
    from tidemark.config import Settings

# By the number of the operation.
_OP_LETTERS = ("D", "I", "U")
# What numbers are printed with.
_NUMERALS = frozenset("0123456789.-")
_HEADER = ("ticdc-meta$operation", "ticdc-meta$table", "ticdc-meta$schema")
_HEADER_COMMIT_TS = "ticdc-meta$commit-ts"
_HEADER_IS_UPDATE = "ticdc-meta$is-update"
# The digits of fraction in the design document.
_FRACTION_DIGITS = 6
_BYTES_AS_TEXT: dict[str, Callable[[pa.Array], pa.StringArray]] = {"base64": base64_text, "hex": hex_text}


class CsvEncoder(RowMessages):
    extension = ".csv"

    def __init__(self, settings: Settings, clock: Callable[[], int] | None = None):
        csv = settings.sink.csv
        self._columns = ColumnChoice(settings)
        self._terminator = settings.sink.terminator
        self._delimiter, self._quote, self._null = csv.delimiter, csv.quote, csv.null
        self._commit_ts = csv.include_commit_ts
        self._old_value = csv.output_old_value
        self._field_header = csv.output_field_header
        self._six_digit_fractions = settings.compat.csv_six_digit_fractions
        self._bytes_as_text = _BYTES_AS_TEXT[csv.binary_encoding_method]
        # A delimiter is escaped byte by byte; each byte is written as the character of that number, as TiCDC does.
        delimiter = "".join(f"\\{chr(byte)}" for byte in csv.delimiter.encode())
        self._may_occur_in_numbers = not _NUMERALS.isdisjoint(csv.quote or csv.delimiter)
        self._escapes = [("\\", "\\\\"), ("\r", "\\r"), ("\n", "\\n"), (csv.delimiter, delimiter)]
        # Such a delimiter occurs in the escapes of other characters.
        self._delimiter_in_escapes = "\\" in csv.delimiter or csv.delimiter.startswith(("n", "r"))

    def encode_rows(self, batch: RowBatch) -> Messages:
        value, error = self._lines(batch)
        count = len(batch.changes)
        header = self.file_header(batch.table)
        key = pa.repeat(pa.scalar(header, pa.binary()), count) if header else pa.nulls(count, pa.binary())
        if error is None:
            return Messages(np.arange(count), key, value, pa.nulls(count, pa.string()))
        failed = error.is_valid()
        value = pc.if_else(failed, pa.scalar(None, pa.binary()), value)
        return Messages(np.arange(count), pc.if_else(failed, pa.scalar(None, pa.binary()), key), value, error)

    def encode_file(self, batch: RowBatch) -> EncodedFile:
        value, error = self._lines(batch)
        lengths = np.diff(offsets_of(value)).astype(np.int64)
        if error is not None:
            lengths[error.is_valid().to_numpy(zero_copy_only=False)] = 0
            value = value.filter(error.is_null())
        return EncodedFile(contiguous(value), lengths, error)

    def file_header(self, table: TableInfo) -> bytes:
        if not self._field_header:
            return b""
        names = [*_HEADER]
        names += [_HEADER_COMMIT_TS] * self._commit_ts + [_HEADER_IS_UPDATE] * self._old_value
        names += [table.columns[position].name for position in self._columns.of(table)]
        return (self._delimiter.join(names) + self._terminator).encode("utf-8", "surrogateescape")

    def file_body(self, table: TableInfo) -> FileBody:
        return PlainBody()

    def encode_ddl(self, ddl: DdlStatement) -> Message | None:
        return None

    def encode_watermark(self, ts: int) -> Message | None:
        return None

    def _lines(self, batch: RowBatch) -> tuple[pa.BinaryArray, pa.StringArray | None]:
        """(the lines of each row change, why a row change has none)"""
        changes = batch.changes
        rows = np.where(changes.op == DELETE, changes.pre, changes.post)
        letters, commit_ts, is_update = changes.op, changes.commit_ts, changes.op == UPDATE
        ends = None
        if self._old_value and is_update.any():
            # Two lines per update: the old row goes in front of the new one.
            ends = np.cumsum(1 + is_update)
            change = np.repeat(np.arange(len(changes)), 1 + is_update)
            old_lines = ends[is_update] - 2
            rows, letters = rows[change], np.where(is_update, INSERT, changes.op)[change]
            rows[old_lines], letters[old_lines] = changes.pre[is_update], DELETE
            commit_ts, is_update = commit_ts[change], is_update[change]
        in_order = np.array_equal(rows, np.arange(batch.columns.num_rows))
        parts: list[Part] = [self._prefix(batch.table, letters, commit_ts, is_update)]
        errors = []
        for position in self._columns.of(batch.table):
            array, column = batch.columns.column(position), batch.table.columns[position]
            if in_order:
                field, error = self._field(array, column)
            elif pa.types.is_string(array.type) and column.kind is not Kind.JSON:
                # Texts that are hardly worked on: they are picked once, where the line is put together.
                field, error = picked(self._field(array, column)[0], rows), None
            else:
                field, error = self._field(array.take(pa.array(rows)), column)
            errors += [] if error is None else [error]
            parts += [self._delimiter, *field]
        parts.append(self._terminator)
        lines = as_bytes(joined(parts, self._null))
        error = first_error(errors)
        if ends is None:
            return lines, error
        edges = offsets_of(lines)[np.concatenate(([0], ends))]
        merged = pa.Array.from_buffers(
            pa.binary(), len(ends), [None, pa.py_buffer(edges), lines.buffers()[2]]
        )
        if error is not None:
            # Of the two lines of an update either may fail.
            last = pa.array(ends - 1)
            first = pa.array(np.concatenate(([0], ends[:-1])))
            error = pc.coalesce(error.take(first), error.take(last))
        return merged, error

    def _prefix(
        self, table: TableInfo, ops: np.ndarray, commit_ts: np.ndarray, is_update: np.ndarray
    ) -> Coded:
        """Everything in front of the columns, made once per run of rows that share it."""
        letters, (name, schema) = (
            self._words(_OP_LETTERS),
            self._words([table.target_table, table.target_schema]),
        )
        names = self._delimiter + name + self._delimiter + schema
        first, run = runs(ops, commit_ts, is_update) if self._commit_ts else runs(ops, is_update)
        parts: list[Part] = [Coded(ops[first], pa.array(letters)), names]
        if self._commit_ts:
            parts += [self._delimiter, pa.array(commit_ts[first]).cast(pa.string())]
        if self._old_value:
            parts += [self._delimiter, Coded(is_update[first].view(np.int8), pa.array(["false", "true"]))]
        return Coded(run, joined(parts, self._null))

    def _field(self, array: pa.Array, column: Column) -> tuple[list[Part], pa.StringArray | None]:
        """(the parts of a field, why a row has none)"""
        kind = column.kind
        if kind is Kind.ENUM:
            index, error = enum_index(array, column)
            return [Coded(index, pa.array([*self._words(column.elems), self._null]))], error
        if kind is Kind.SET:
            names, error = set_names(array, column)
            return self._quoted(names), error
        if kind is Kind.DECIMAL:
            split = split_decimal(array)
            if split is not None and not self._may_occur_in_numbers:
                return quoted(array, split, self._quote), None
            return self._quoted(decimal_text(array)), None
        if kind in (Kind.FLOAT, Kind.DOUBLE):
            return split_float(array) or [go_g(array)], None
        if kind in (Kind.INTEGER, Kind.BIT):
            return integers(array), None
        if types.holds_bytes(column):
            return self._quoted(self._bytes_as_text(array)), None
        zeros = fraction_zeros(column) if self._six_digit_fractions else ""
        return self._moment(as_text(array), zeros) if zeros else self._quoted(as_text(array)), None

    def _moment(self, text: pa.StringArray, zeros: str) -> list[Part]:
        """Dates and times whose fraction goes on with `zeros`."""
        if self._may_occur_in_numbers:
            return self._quoted(pc.binary_join_element_wise(text, zeros, ""))
        if not self._quote:
            text = self._escaped(text)
        return quoted(text, [text, only_where_valid(text, zeros)], self._quote)

    def _quoted(self, text: pa.StringArray) -> list[Part]:
        if not self._quote:
            return [self._escaped(text)]
        return quoted(text, [replaced(text, [(self._quote, self._quote * 2)])], self._quote)

    def _words(self, words: Iterable[str]) -> list[str]:
        if self._quote:
            return [self._quote + word.replace(self._quote, self._quote * 2) + self._quote for word in words]
        return self._escaped(pa.array(words, pa.string())).to_pylist()

    def _escaped(self, text: pa.StringArray) -> pa.StringArray:
        if self._delimiter_in_escapes:
            # The delimiter goes first: it may begin with a backslash.
            return replaced_at_once(text, self._escapes[::-1])
        return replaced(text, self._escapes)


def fraction_zeros(column: Column) -> str:
    """What a DATETIME or TIMESTAMP lacks to have six digits of fraction."""
    if column.mysql_type not in (DATETIME, TIMESTAMP):
        return ""
    digits = fsp(column)
    return ("" if digits else ".") + "0" * (_FRACTION_DIGITS - digits) if digits < _FRACTION_DIGITS else ""
