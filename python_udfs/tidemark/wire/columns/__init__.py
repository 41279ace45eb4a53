"""One module per family of chunk cells: `decode(cells, column)` gives an Arrow array, `encode(array, column)` gives cells.

A new family is a new module and a line in FAMILIES.
"""

from __future__ import annotations

import pyarrow as pa

from tidemark.wire.columns import decimals, elements, json, numbers, strings, temporal, vector
from tidemark.wire.columns.cells import Cells
from tidemark.wire.table_info import Column
from tidemark.wire.types import Kind

FAMILIES = {
    Kind.INTEGER: numbers,
    Kind.FLOAT: numbers,
    Kind.DOUBLE: numbers,
    Kind.DECIMAL: decimals,
    Kind.DATETIME: temporal.DATETIMES,
    Kind.TIME: temporal.TIMES,
    Kind.ENUM: elements.ENUMS,
    Kind.SET: elements.SETS,
    Kind.BIT: elements.BITS,
    Kind.STRING: strings,
    Kind.JSON: json,
    Kind.VECTOR: vector,
}


def decode_cells(cells: Cells, column: Column) -> pa.Array:
    return FAMILIES[column.kind].decode(cells, column)


def encode_cells(array: pa.Array, column: Column) -> Cells:
    return FAMILIES[column.kind].encode(array, column)
