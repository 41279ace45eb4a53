"""Which columns of a table are sent.

Virtual generated columns have no value in a stream; all protocols but Avro leave them out. `column-selectors` of the changefeed may leave out more: the first
selector whose matcher takes the table decides. Its column rules are patterns of the table filter without the part for the schema (`a*`,
`!secret`), never mind the case; the last rule that matches a column decides, and a column that no rule matches is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.dispatch.table_filter import TableFilter
from tidemark.encode.errors import EncodeError
from tidemark.wire.table_info import TableInfo

if TYPE_CHECKING:
    from tidemark.config import Settings


class ColumnChoice:
    def __init__(self, settings: Settings, *, with_virtual: bool = False):
        self._with_virtual = with_virtual
        case_sensitive = settings.changefeed.case_sensitive
        self._selectors = [
            (TableFilter(selector.matcher, case_sensitive=case_sensitive), column_filter(selector.columns))
            for selector in settings.sink.column_selectors
        ]
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
        for matcher, columns in self._selectors:
            if matcher.matches(table.schema, table.table):
                chosen = [
                    position for position in chosen if columns.matches("", table.columns[position].name)
                ]
                break
        if not chosen:
            raise EncodeError(
                f"table {table.schema}.{table.table}: no column is left to send; check column-selectors"
            )
        return chosen


def column_filter(rules: tuple[str, ...]) -> TableFilter:
    lines = []
    for rule in rules:
        text = rule.strip()
        if text.startswith("@"):
            raise EncodeError(f"column-selectors: {rule!r} names a file; write the column rules themselves")
        negated, pattern = text.startswith("!"), text.removeprefix("!")
        lines.append(text if not text or text.startswith("#") else f"{'!' if negated else ''}*.{pattern}")
    return TableFilter(lines, case_sensitive=False)
