"""Which columns the `column-selectors` of a changefeed leave out.

The first selector whose matcher takes a table decides. Its column rules are patterns of the table filter without the part for the schema (`a*`, `!secret`), never mind the
case; the last rule that matches a column decides, and a column that no rule matches is left out. As in TiCDC, the columns of the handle key and those that
a dispatch rule hashes cannot be left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidemark.dispatch.errors import DroppedColumn, InvalidColumnRule
from tidemark.dispatch.table_filter import TableFilter

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


def column_filter(rules: tuple[str, ...]) -> TableFilter:
    lines = []
    for rule in rules:
        text = rule.strip()
        if text.startswith("@"):
            raise InvalidColumnRule(
                f"column-selectors: {rule!r} names a file; write the column rules themselves"
            )
        negated, pattern = text.startswith("!"), text.removeprefix("!")
        lines.append(text if not text or text.startswith("#") else f"{'!' if negated else ''}*.{pattern}")
    return TableFilter(lines, case_sensitive=False)
