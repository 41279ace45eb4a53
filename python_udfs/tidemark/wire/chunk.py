"""The row chunk: the values of all rows of a batch, column after column.

    chunk  := column*                                       (all integers little-endian)
    column := rows:u32 nulls:u32 bitmap? offsets? data
    bitmap := ceil(rows/8) bytes, there if nulls > 0        (least significant bit first, 1 = value present)
    offsets := i64*(rows+1)                                 (variable-width columns)
    data   := width*rows, or offsets[rows] bytes

This is nearly Arrow's layout: bitmap and fixed-width data are taken as they are. Chunks of one table version are joined column by column before
any value is looked at, since one numpy call for 30,000 cells costs little more than one for 1,000. What a cell means is in `columns/`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidemark.wire.columns import decode_cells, encode_cells
from tidemark.wire.columns.cells import MAX_COLUMN_BYTES, Cells
from tidemark.wire.errors import InvalidField, TrailingBytes, TruncatedPayload, WireError
from tidemark.wire.table_info import Column, TableInfo
from tidemark.wire.types import FIXED_WIDTH, Kind

COLUMN_HEAD = struct.Struct("<II")
OFFSET = struct.Struct("<q")


@dataclass
class _Parts:
    """The pieces of one column in all chunks, in order."""

    bitmaps: list
    offsets: list
    data: list
    nulls: int = 0


class WireCells(NamedTuple):
    """The cells that columns were made from, by position, of the kinds in KEPT_KINDS. They are those of `columns` and of no other record batch."""

    columns: pa.RecordBatch
    by_position: Mapping[int, Cells]


# A hash reads them faster than Arrow's values: packed datetimes are smaller than their texts, and asking Arrow for its buffers takes time as well.
KEPT_KINDS = {Kind.INTEGER, Kind.STRING, Kind.DATETIME}


def decode_chunks(chunks: list[memoryview], table: TableInfo) -> tuple[pa.RecordBatch, list[int], WireCells]:
    """The rows of all chunks in one record batch, the number of rows of each, and cells."""
    widths = [FIXED_WIDTH.get(column.kind, 0) for column in table.columns]
    parts = [_Parts([], [], []) for _ in widths]
    rows = [_split(memoryview(chunk), table.columns, widths, parts) for chunk in chunks]
    starts = np.cumsum([0, *rows])
    arrays: list[pa.Array] = []
    kept = {}
    for column, width, pieces in zip(table.columns, widths, parts, strict=True):
        try:
            cells = _join(column, width, pieces, rows, starts)
            arrays.append(decode_cells(cells, column))
            if column.kind in KEPT_KINDS:
                kept[len(arrays) - 1] = cells
        except WireError as error:
            error.message = f"column {column.name!r}: {error.message}"
            raise
    columns = pa.RecordBatch.from_arrays(arrays, schema=table.arrow_schema)
    return columns, rows, WireCells(columns, kept)


def encode_chunk(columns: pa.RecordBatch, table: TableInfo) -> bytes:
    """The chunk that holds these rows. The fields must be those of `table.arrow_schema`."""
    return encode_chunks(columns, table, [0, columns.num_rows])[0]


def encode_chunks(columns: pa.RecordBatch, table: TableInfo, bounds: list[int]) -> list[bytes]:
    """One chunk for the rows between each two neighbouring bounds. The cells of all are made at once, as in `decode_chunks`."""
    if columns.schema.names != table.arrow_schema.names or columns.schema.types != table.arrow_schema.types:
        raise InvalidField(
            f"rows of {table.schema}.{table.table} must have the columns of the table",
            expected=table.arrow_schema.to_string(),
            actual=columns.schema.to_string(),
        )
    chunks: list[list] = [[] for _ in bounds[1:]]
    for column, array in zip(table.columns, columns.columns, strict=True):
        cells, width = encode_cells(array, column), FIXED_WIDTH.get(column.kind, 0)
        for chunk, start, end in zip(chunks, bounds, bounds[1:], strict=False):
            chunk += _column_parts(cells, width, start, end)
    return [b"".join(chunk) for chunk in chunks]


def _column_parts(cells: Cells, width: int, start: int, end: int) -> Iterator[bytes | memoryview]:
    """The bytes of one column of a chunk that holds the rows [start, end)."""
    valid = None if cells.valid is None else cells.valid[start:end]
    nulls = 0 if valid is None else end - start - int(np.count_nonzero(valid))
    yield COLUMN_HEAD.pack(end - start, nulls)
    if nulls:
        yield np.packbits(valid, bitorder="little").data
    if width:
        yield cells.data[start * width : end * width].data
    else:
        offsets = cells.offsets[start : end + 1]
        yield (offsets - offsets[0]).astype("<i8", copy=False).data
        yield cells.data[offsets[0] : offsets[-1]].data


def _split(chunk: memoryview, columns: tuple[Column, ...], widths: list[int], parts: list[_Parts]) -> int:
    """Cut one chunk into the pieces of its columns; gives the number of rows."""
    position, end, rows = 0, len(chunk), None
    # A batch without transactions has no chunk at all.
    if not end:
        columns = ()
    for column, width, pieces in zip(columns, widths, parts, strict=False):
        if end - position < COLUMN_HEAD.size:
            raise _short(column, "its counts", position, COLUMN_HEAD.size, end - position)
        count, nulls = COLUMN_HEAD.unpack_from(chunk, position)
        if rows is None:
            rows = count
        if count != rows or nulls > count:
            raise InvalidField(
                f"column {column.name!r} has {count} rows with {nulls} NULLs, the first column has {rows} rows",
                offset=position,
                expected=rows,
                actual=count,
            )
        position += COLUMN_HEAD.size
        bitmap = (count + 7) // 8 if nulls else 0
        offsets = 0 if width else (count + 1) * OFFSET.size
        if end - position < bitmap + offsets:
            raise _short(column, "its NULL bitmap and offsets", position, bitmap + offsets, end - position)
        pieces.nulls += nulls
        pieces.bitmaps.append(chunk[position : position + bitmap] if nulls else None)
        position += bitmap
        if width:
            size = count * width
        else:
            (first,) = OFFSET.unpack_from(chunk, position)
            (size,) = OFFSET.unpack_from(chunk, position + offsets - OFFSET.size)
            if first != 0 or size < 0:
                raise InvalidField(
                    f"column {column.name!r}: offsets run from {first} to {size}, they start at 0",
                    offset=position,
                    expected=0,
                    actual=first,
                )
            pieces.offsets.append(chunk[position : position + offsets])
            position += offsets
        if end - position < size:
            raise _short(column, "its values", position, size, end - position)
        pieces.data.append(chunk[position : position + size])
        position += size
    if position != end:
        raise TrailingBytes(
            f"{end - position} bytes follow the last column of the chunk",
            offset=position,
            expected=0,
            actual=end - position,
        )
    if rows is None:
        for pieces in parts:
            pieces.bitmaps.append(None)
            pieces.offsets.append(bytes(OFFSET.size))
    return rows or 0


def _short(column: Column, what: str, position: int, expected: int, actual: int) -> TruncatedPayload:
    return TruncatedPayload(
        f"column {column.name!r}: {what} take {expected} bytes, {actual} are left",
        offset=position,
        expected=expected,
        actual=actual,
    )


def _join(column: Column, width: int, pieces: _Parts, rows: list[int], starts: np.ndarray) -> Cells:
    total = int(starts[-1])
    data = np.frombuffer(bytearray().join(pieces.data), dtype=np.uint8)
    if not width and len(data) > MAX_COLUMN_BYTES:
        raise InvalidField(
            "more than 2 GiB of values; decode fewer batches at once",
            expected=MAX_COLUMN_BYTES,
            actual=len(data),
        )
    return Cells(
        rows=total,
        valid=_validity(pieces, rows, starts, total) if pieces.nulls else None,
        offsets=None if width else _offsets(pieces.offsets, rows, starts, total),
        data=data,
    )


def _validity(pieces: _Parts, rows: list[int], starts: np.ndarray, total: int) -> np.ndarray:
    """One boolean per row. The bitmaps of chunks end at byte borders, rows do not."""
    valid = np.ones(total, dtype=np.uint8)
    for bitmap, count, start in zip(pieces.bitmaps, rows, starts, strict=False):
        if bitmap is not None:
            valid[start : start + count] = np.unpackbits(
                np.frombuffer(bitmap, dtype=np.uint8), count=count, bitorder="little"
            )
    found = total - int(np.count_nonzero(valid))
    if found != pieces.nulls:
        raise InvalidField(
            f"{pieces.nulls} NULLs announced, {found} in the bitmap", expected=pieces.nulls, actual=found
        )
    return valid.view(bool)


def _offsets(pieces: list, rows: list[int], starts: np.ndarray, total: int) -> np.ndarray:
    """Offsets into the joined data. Each piece starts at 0 and ends inside its data, so that monotone means in range."""
    offsets = np.zeros(total + 1, dtype=np.int64)
    base = 0
    for piece, count, start in zip(pieces, rows, starts, strict=False):
        values = np.frombuffer(piece, dtype="<i8")
        np.add(values, base, out=offsets[start : start + count + 1])
        base = offsets[start + count]
    if not (offsets[1:] >= offsets[:-1]).all():
        raise InvalidField("the offsets of the values go backwards", expected="offsets in ascending order")
    return offsets
