"""Which columns of a table are sent.

Virtual generated columns have no value in a stream; all protocols but Avro leave them out. `column-selectors` of the changefeed may leave out more: the first
selector whose matcher takes the table decides. Its column rules are patterns of the table filter without the part for the schema (`a*`,
`!secret`), never mind the case; the last rule that matches a column decides, and a column that no rule matches is left out. As in TiCDC, the columns of
the handle key and those that a dispatch rule hashes cannot be left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidemark.dispatch.table_filter import TableFilter
from tidemark.encode.errors import DroppedColumn, EncodeError
from tidemark.wire.table_info import TableInfo

if TYPE_CHECKING:
    from tidemark.config import Settings


class ColumnSelectors:
    """The selectors of a changefeed; the first whose matcher takes a table decides."""

    def __init__(self, settings: Settings):
        case_sensitive = settings.changefeed.case_sensitive
        self._selectors = [
            (TableFilter(selector.matcher, case_sensitive=case_sensitive), column_filter(selector.columns))
            for selector in settings.sink.column_selectors
        ]

    def dropped(self, schema: str, table: str, names: Iterable[str]) -> list[str]:
        """Those of the columns that are left out."""
        columns = next(
            (chosen for matcher, chosen in self._selectors if matcher.matches(schema, table)), None
        )
        return [] if columns is None else [name for name in names if not columns.matches("", name)]

    def check(self, schema: str, table: str, names: Iterable[str], use: str) -> None:
        """DroppedColumn where one of the columns is left out; `use` says what they are needed for."""
        if dropped := self.dropped(schema, table, names):
            number = next(
                number
                for number, (matcher, _) in enumerate(self._selectors)
                if matcher.matches(schema, table)
            )
            raise DroppedColumn(
                f"table {schema}.{table}: sink.column-selectors[{number}] leaves out {', '.join(dropped)}, "
                f"which {use}; add it to the columns of the selector"
            )


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


def column_filter(rules: tuple[str, ...]) -> TableFilter:
    lines = []
    for rule in rules:
        text = rule.strip()
        if text.startswith("@"):
            raise EncodeError(f"column-selectors: {rule!r} names a file; write the column rules themselves")
        negated, pattern = text.startswith("!"), text.removeprefix("!")
        lines.append(text if not text or text.startswith("#") else f"{'!' if negated else ''}*.{pattern}")
    return TableFilter(lines, case_sensitive=False)


def rows_of(columns: pa.RecordBatch, rows: np.ndarray) -> pa.RecordBatch:
    """These rows; the same object where they are all, in order."""
    if len(rows) == columns.num_rows and np.array_equal(rows, np.arange(len(rows))):
        return columns
    return columns.take(pa.array(rows))
