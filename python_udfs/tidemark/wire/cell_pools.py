"""The row chunks of many tables, decoded together.

A numpy call for nine cells costs as much as one for a thousand, so tables with a few rows each are not decoded table by table. The cells of all columns that are read alike make one
*pool*, whatever table they belong to, and each pool is decoded at once. The chunks of all tables are cut in step: first the first column of every chunk, then the second one.

Whatever is wrong with a chunk makes the whole call fail, with a message that does not say where. The caller then decodes its tables one by one (`rows.decode_batches`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidemark.wire.columns import decode_cells
from tidemark.wire.columns.cells import MAX_COLUMN_BYTES, Cells
from tidemark.wire.columns.temporal import text_width
from tidemark.wire.errors import InvalidField
from tidemark.wire.table_info import Column
from tidemark.wire.types import FIXED_WIDTH, TIMESTAMP, Kind, arrow_type, bit_width, fsp

_HEAD = _OFFSET = 8
NO_COLUMN = -1
# Layouts that are remembered. A process meets those of its tables.
_MOST_LAYOUTS = 20_000


class Layout(NamedTuple):
    """The columns of a table as the pools see them."""

    columns: tuple[Column, ...]
    # Bytes per cell, 0 where cells have offsets.
    widths: np.ndarray
    # The number of each column's pool.
    pools: np.ndarray


_pools: dict[tuple, int] = {}
_pool_columns: list[Column] = []
_layouts: dict[int, Layout] = {}


def layout_of(columns: tuple[Column, ...]) -> Layout:
    found = _layouts.get(id(columns))
    if found is None:
        if len(_layouts) >= _MOST_LAYOUTS:
            _layouts.clear()
        widths = np.array([FIXED_WIDTH.get(column.kind, 0) for column in columns], np.int64)
        pools = np.array([_pool_of(column) for column in columns], np.int64)
        # It holds the columns, so that no others can get their id.
        found = _layouts[id(columns)] = Layout(columns, widths, pools)
    return found


def pool_column(pool: int) -> Column:
    """One of the columns of a pool: what is asked of it holds for all of them, but for its name and its collation."""
    return _pool_columns[pool]


def _pool_of(column: Column) -> int:
    key = _pool_key(column)
    found = _pools.get(key)
    if found is None:
        _pool_columns.append(column)
        found = _pools[key] = len(_pools)
    return found


def _pool_key(column: Column) -> tuple:
    """All that decoders and text forms ask of a column."""
    kind = column.kind
    more: tuple = ()
    if kind is Kind.DATETIME:
        more = (text_width(column), column.mysql_type == TIMESTAMP)
    elif kind is Kind.TIME:
        more = (fsp(column),)
    elif kind in (Kind.ENUM, Kind.SET):
        more = (len(column.elems),)
    elif kind is Kind.BIT:
        more = (bit_width(column),)
    elif kind is Kind.VECTOR:
        more = (column.flen,)
    return kind, arrow_type(column), column.is_binary, *more


class Pool(NamedTuple):
    """The cells of some columns of some chunks, one column of one chunk after the other."""

    values: pa.Array
    # Of each stretch of cells: its chunk, its column, how many cells it has.
    chunk: np.ndarray
    column: np.ndarray
    count: np.ndarray


@dataclass(frozen=True)
class CellPools:
    # By number.
    pools: dict[int, Pool]
    # Rows of each chunk.
    rows: np.ndarray
    # [chunk, column]: where in its pool the cells of a column begin.
    first_cell: np.ndarray


class _Pieces(NamedTuple):
    """Columns of chunks: where their parts are, and how many rows and NULLs they have."""

    chunk: np.ndarray
    column: np.ndarray
    count: np.ndarray
    nulls: np.ndarray
    bitmap: np.ndarray
    offsets: np.ndarray
    data: np.ndarray
    size: np.ndarray

    def some(self, which: np.ndarray) -> _Pieces:
        return _Pieces(*(part[which] for part in self))


def decode_together(
    chunks: Sequence[memoryview], layouts: Sequence[Layout], which: np.ndarray, group: np.ndarray
) -> CellPools:
    """The cells of all chunks. `which`: the layout of each chunk; `group`: its table version, ascending, whose cells of a column are next to each other."""
    # So many more bytes that the widest cell can be read at the end, too.
    data = np.frombuffer(b"".join([*chunks, bytes(64)]), np.uint8)
    _check(np.array(len(data) <= MAX_COLUMN_BYTES), "more than 2 GiB of chunks")
    ends = np.cumsum([len(chunk) for chunk in chunks])
    begins = np.append(0, ends[:-1])
    widths = padded([layout.widths for layout in layouts])[which]
    rows, pieces = _split(data, begins, ends, widths)
    pool = padded([layout.pools for layout in layouts])[which][pieces.chunk, pieces.column]
    order = np.lexsort((pieces.chunk, pieces.column, group[pieces.chunk], pool))
    pieces, pool = pieces.some(order), pool[order]
    first_cell = np.zeros(widths.shape, np.int64)
    pools = {}
    bounds = np.flatnonzero(np.diff(pool, prepend=-1))
    for low, high in zip(bounds.tolist(), [*bounds[1:].tolist(), len(pool)], strict=False):
        number = int(pool[low])
        here = pieces.some(slice(low, high))
        first_cell[here.chunk, here.column] = np.cumsum(here.count) - here.count
        cells = _cells(data, here, int(widths[here.chunk[0], here.column[0]]))
        values = decode_cells(cells, pool_column(number))
        pools[number] = Pool(values, here.chunk, here.column, here.count)
    return CellPools(pools, rows, first_cell)


def padded(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Rows of different lengths as a matrix."""
    lengths = np.array([len(part) for part in parts])
    matrix = np.full((len(parts), lengths.max(initial=0)), NO_COLUMN, np.int64)
    matrix[np.arange(matrix.shape[1]) < lengths[:, None]] = np.concatenate(parts)
    return matrix


def counted_up(first: np.ndarray, count: np.ndarray, step: int = 1) -> np.ndarray:
    """first, first + step, first + 2 * step, … so many of each."""
    steps = np.repeat(first - step * (np.cumsum(count) - count), count)
    steps += np.arange(0, step * len(steps), step)
    return steps


def _split(
    data: np.ndarray, begins: np.ndarray, ends: np.ndarray, widths: np.ndarray
) -> tuple[np.ndarray, _Pieces]:
    """Rows of each chunk, and the pieces that it consists of (the grammar is in chunk.py)."""
    rows = np.zeros(len(begins), np.int64)
    # A batch without transactions has no chunk at all.
    live = np.flatnonzero(begins < ends)
    position, limit = begins[live], ends[live]
    found: list[tuple[np.ndarray, ...]] = []
    for column in range(widths.shape[1]):
        goes_on = widths[live, column] != NO_COLUMN
        if not goes_on.all():
            _check((position == limit)[~goes_on], "bytes follow the last column of a chunk")
            live, position, limit = live[goes_on], position[goes_on], limit[goes_on]
        width = widths[live, column]
        _check(limit - position >= _HEAD, "a chunk ends within the counts of a column")
        count, nulls = _read(data, "<u4", position), _read(data, "<u4", position + 4)
        if not column:
            rows[live] = count
        _check((count == rows[live]) & (nulls <= count), "columns of a chunk with different rows")
        bitmap = position + _HEAD
        offsets = bitmap + np.where(nulls, (count + 7) // 8, 0)
        values = offsets + np.where(width, 0, (count + 1) * _OFFSET)
        _check(values <= limit, "a chunk ends within the offsets of a column")
        size = count * width
        listed = np.flatnonzero(width == 0)
        if len(listed):
            size[listed] = _read(data, "<i8", values[listed] - _OFFSET)
            _check(_read(data, "<i8", offsets[listed]) == 0, "offsets that do not start at 0")
        _check((size >= 0) & (size <= limit - values), "a chunk ends within the values of a column")
        found.append((live, np.full(len(live), column), count, nulls, bitmap, offsets, values, size))
        position = values + size
    _check(position == limit, "bytes follow the last column of a chunk")
    if not found:
        none = np.zeros(0, np.int64)
        return rows, _Pieces(*[none] * len(_Pieces._fields))
    return rows, _Pieces(*(np.concatenate(part) for part in zip(*found, strict=True)))


def _check(good: np.ndarray, problem: str) -> None:
    if not good.all():
        raise InvalidField(problem)


def _read(data: np.ndarray, dtype: str, places: np.ndarray) -> np.ndarray:
    """The numbers that start at these bytes."""
    return _windows(data, dtype)[places].astype(np.int64)


def _windows(data: np.ndarray, dtype: str) -> np.ndarray:
    """Every position of the data as the start of a value, without copying it."""
    kind = np.dtype(dtype)
    return np.ndarray(len(data) - kind.itemsize + 1, kind, buffer=data, strides=(1,))


def _cells(data: np.ndarray, pieces: _Pieces, width: int) -> Cells:
    total = int(pieces.count.sum())
    valid = _validity(data, pieces, total) if pieces.nulls.any() else None
    if width:
        cells = _windows(data, f"V{width}")[counted_up(pieces.data, pieces.count, width)]
        return Cells(total, valid, None, cells.view(np.uint8))
    offsets = np.empty(total + 1, np.int64)
    offsets[:-1] = _read(data, "<i8", counted_up(pieces.offsets, pieces.count, _OFFSET))
    ends = np.cumsum(pieces.size)
    offsets[:-1] += np.repeat(ends - pieces.size, pieces.count)
    offsets[-1] = ends[-1]
    _check(offsets[1:] >= offsets[:-1], "the offsets of the values go backwards")
    return Cells(total, valid, offsets, _joined(data, pieces))


def _validity(data: np.ndarray, pieces: _Pieces, total: int) -> np.ndarray:
    """One boolean per cell; the bits of every piece must have as many zeros as it announces."""
    valid = np.ones(total, bool)
    starts = np.cumsum(pieces.count) - pieces.count
    some = np.flatnonzero(pieces.nulls)
    count = pieces.count[some]
    bit = counted_up(np.zeros(len(some), np.int64), count)
    bits = data[np.repeat(pieces.bitmap[some], count) + (bit >> 3)] >> (bit & 7).astype(np.uint8) & 1
    valid[counted_up(starts[some], count)] = bits
    zeros = count - np.add.reduceat(bits, np.cumsum(count) - count, dtype=np.int64)
    _check(zeros == pieces.nulls[some], "other NULLs in a bitmap than announced")
    return valid


def _joined(data: np.ndarray, pieces: _Pieces) -> np.ndarray:
    """The values of all pieces, one after the other."""
    order = np.argsort(pieces.data)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    # The pieces and what is between them take turns, so that Arrow copies a piece as it copies a text.
    bounds = np.empty(2 * len(order), np.int32)
    bounds[0::2], bounds[1::2] = pieces.data[order], (pieces.data + pieces.size)[order]
    between = pa.Array.from_buffers(
        pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    joined = between.take(pa.array(2 * place)).buffers()[2]
    total = int(pieces.size.sum())
    return np.frombuffer(joined, np.uint8, total) if total else np.zeros(0, np.uint8)
