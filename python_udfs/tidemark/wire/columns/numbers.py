"""Integers, YEAR, FLOAT and DOUBLE: 8-byte (FLOAT: 4-byte) little-endian cells, which are Arrow's values already."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemark.wire.columns.cells import Cells, plain_numbers, primitive_array, validity
from tidemark.wire.table_info import Column
from tidemark.wire.types import Kind, arrow_type


def decode(cells: Cells, column: Column) -> pa.Array:
    return primitive_array(arrow_type(column), cells, cells.data)


def encode(array: pa.Array, column: Column) -> Cells:
    dtype = {Kind.FLOAT: "<f4", Kind.DOUBLE: "<f8"}.get(column.kind, "<u8" if column.is_unsigned else "<i8")
    return Cells(len(array), validity(array), None, plain_numbers(array, dtype).view(np.uint8))
