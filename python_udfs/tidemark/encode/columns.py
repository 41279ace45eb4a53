"""Which columns of a table are sent.

Virtual generated columns have no value in a stream; all protocols but Avro leave them out. The column selectors of the changefeed may leave out more, but no column of the handle key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidemark.dispatch.column_selectors import ColumnSelectors
from tidemark.encode.errors import EncodeError
from tidemark.wire.table_info import TableInfo

if TYPE_CHECKING:
    from tidemark.config import Settings


class ColumnChoice:
    def __init__(self, settings: Settings, *, with_virtual: bool = False):
        self._with_virtual = with_virtual
        self._selectors = ColumnSelectors(settings)
        self._chosen: dict[int, tuple[TableInfo, list[int]]] = {}

    def of(self, table: TableInfo) -> list[int]:
        """Positions of the columns that are sent."""
        found = self._chosen.get(id(table))
        if found is None or found[0] is not table:
            found = self._chosen[id(table)] = (table, self._choose(table))
        return found[1]

    def _choose(self, table: TableInfo) -> list[int]:
        chosen = [
            position
            for position, column in enumerate(table.columns)
            if self._with_virtual or not column.is_virtual_generated
        ]
        name = table.schema, table.table
        self._selectors.check(*name, table.handle_key, "is part of the key of its rows")
        dropped = set(self._selectors.dropped(*name, (column.name for column in table.columns)))
        chosen = [position for position in chosen if table.columns[position].name not in dropped]
        if not chosen:
            raise EncodeError(
                f"table {table.schema}.{table.table}: no column is left to send; check column-selectors"
            )
        return chosen


def rows_of(columns: pa.RecordBatch, rows: np.ndarray) -> pa.RecordBatch:
    """These rows; the same object where they are all, in order."""
    if len(rows) == columns.num_rows and np.array_equal(rows, np.arange(len(rows))):
        return columns
    return columns.take(pa.array(rows))
