"""crc32(name + text) of a key column, for whole batches.

Text is the canonical text, but: binary as its bytes, float and double without exponent. Integers, strings and datetimes that come from the wire are hashed from
their cells, which are at hand and smaller than their texts; all other values from the Arrow column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.dispatch.crc_datetimes import crc32_datetimes
from tidemark.dispatch.crc_integers import crc32_integers
from tidemark.dispatch.crc_texts import crc32_bytes, crc32_texts
from tidemark.wire.columns.cells import Cells
from tidemark.wire.columns.temporal import text_width
from tidemark.wire.floats import go_f
from tidemark.wire.rows import RowBatch
from tidemark.wire.table_info import Column
from tidemark.wire.text import canonical_text
from tidemark.wire.types import Kind, arrow_type


@dataclass(frozen=True)
class ColumnHash:
    """Of the column at a position: how its values are hashed, and its cells where that is quicker."""

    position: int
    of_array: Callable[[pa.Array], np.ndarray]
    of_cells: Callable[[Cells], np.ndarray] | None = None

    def crcs(self, batch: RowBatch) -> np.ndarray:
        """One uint32 per physical row, 0 for NULL."""
        cells = batch.wire_cells(self.position) if self.of_cells else None
        if cells is None:
            values = batch.columns.column(self.position)
            return without_nulls(self.of_array(values), values)
        crcs = self.of_cells(cells)
        if cells.valid is not None:
            crcs[~cells.valid] = 0
        return crcs


def column_hash(column: Column, position: int) -> ColumnHash:
    name, kind = column.name.encode(), column.kind
    if kind is Kind.INTEGER:
        dtype = np.uint64 if pa.types.is_uint64(arrow_type(column)) else np.int64
        return ColumnHash(
            position,
            lambda values: crc32_integers(name, _numbers(values)),
            lambda cells: crc32_integers(name, cells.data.view(dtype)),
        )
    if kind in (Kind.ENUM, Kind.SET, Kind.BIT):
        return ColumnHash(position, lambda values: crc32_integers(name, _numbers(values)))
    if kind is Kind.STRING:
        return ColumnHash(
            position,
            lambda values: crc32_texts(name, values),
            lambda cells: crc32_bytes(name, cells.data, cells.offsets, cells.is_plain),
        )
    if kind is Kind.DATETIME:
        width = text_width(column)
        return ColumnHash(
            position,
            lambda values: crc32_texts(name, values),
            lambda cells: crc32_datetimes(name, cells.data.view(np.uint64), width),
        )
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        return ColumnHash(position, lambda values: crc32_texts(name, _float_texts(values)))
    return ColumnHash(position, lambda values: crc32_texts(name, canonical_text(values, column)))


def without_nulls(crcs: np.ndarray, values: pa.Array) -> np.ndarray:
    if values.null_count:
        crcs[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return crcs


def _numbers(values: pa.Array) -> np.ndarray:
    dtype = np.uint64 if pa.types.is_uint64(values.type) else np.int64
    return np.frombuffer(values.buffers()[1], dtype, len(values), values.offset * 8)


def _float_texts(values: pa.Array) -> pa.Array:
    # What MySQL cannot store, an infinity or a NaN, counts as zero.
    return go_f(pc.if_else(pc.is_finite(values), values, pa.scalar(0, values.type)))
