"""What a changefeed leaves out: tables by its filter rules, DDL statements also by its event filters.

Row changes are judged by the model `row_policy`; here is what tools and sinks need outside of SQL.
"""

from __future__ import annotations

from typing import Protocol

from tidemark.config.changefeed import ALL_DDL, Changefeed, EventFilter
from tidemark.dispatch.go_regexp import GoRegexp
from tidemark.dispatch.table_filter import TableFilter


class Statement(Protocol):
    schema: str
    table: str
    query: str
    old_schema: str
    old_table: str


class ChangefeedFilter:
    def __init__(self, changefeed: Changefeed):
        exact = changefeed.case_sensitive
        self._tables = TableFilter(changefeed.filter_rules, case_sensitive=exact)
        self._ignored = [
            (TableFilter(each.matcher, case_sensitive=exact), _ignores(each))
            for each in changefeed.filter.event_filters
        ]

    def takes_table(self, schema: str, table: str) -> bool:
        return self._tables.matches(schema, table)

    def takes_ddl(self, ddl: Statement) -> bool:
        """A rename is taken when one of the two names is."""
        if not ddl.table:
            return self._tables.matches_schema(ddl.schema)
        names = [(ddl.schema, ddl.table)] + [(ddl.old_schema, ddl.old_table)] * bool(ddl.old_table)
        if not any(self._tables.matches(*name) for name in names):
            return False
        return not any(
            matcher.matches(ddl.schema, ddl.table) and ignores(ddl.query)
            for matcher, ignores in self._ignored
        )


def _ignores(event_filter: EventFilter):
    """Whether a statement is left out by its text; `all ddl` leaves out every one."""
    if any(kind.strip().lower() == ALL_DDL for kind in event_filter.ignore_event):
        return lambda query: True
    patterns = [GoRegexp(pattern, ignore_case=True) for pattern in event_filter.ignore_sql]
    return lambda query: any(pattern.search(query) for pattern in patterns)
