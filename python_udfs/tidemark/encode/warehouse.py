"""Rows as they stand in the warehouse: one JSON object per row image, one JSON array per key.

Values are those of canal-json's `data`: every value a string or null, numbers as text, enum and set as their number, bytes as one character each
(U+0000 to U+00FF). So a row reads the same in the warehouse and in a canal-json message, and SQL takes a column out with `from_json`.
"""

from __future__ import annotations

import pyarrow as pa

from tidemark.encode.canal_json import data_object, data_value
from tidemark.encode.collation import folded
from tidemark.encode.parts import Part, joined
from tidemark.wire.table_info import Column, TableInfo

_NULL = "null"


def value_texts(rows: pa.RecordBatch, table: TableInfo) -> pa.StringArray:
    """The object of each row. Virtual generated columns are left out: the sender does not have their values."""
    kept = [place for place, column in enumerate(table.columns) if not column.is_virtual_generated]
    return joined(data_object(rows.select(kept), [table.columns[place] for place in kept]), _NULL)


def key_texts(rows: pa.RecordBatch, columns: list[Column]) -> pa.StringArray:
    """The values of the key columns of each row: the same text from every upstream, whatever its table id, and for all texts that the collation
    takes for equal.
    """
    parts: list[Part] = ["["]
    for place, (array, column) in enumerate(zip(rows.columns, columns, strict=True)):
        parts += ["," if place else "", *data_value(folded(array, column), column)]
    return joined([*parts, "]"], _NULL)
