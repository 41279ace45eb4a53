"""What a changefeed leaves out: tables by its filter rules, DDL statements also by its event filters.

Row changes are judged by the model `row_policy`, and by row_policy.py for tools without models; here is what tools and sinks need outside of SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tidemark.config.changefeed import Changefeed, EventFilter
from tidemark.config.ddl_kinds import DDL_KINDS
from tidemark.dispatch.go_regexp import GoRegexp
from tidemark.dispatch.table_filter import TableFilter


class Statement(Protocol):
    type: int
    schema: str
    table: str
    query: str
    old_schema: str
    old_table: str
    start_ts: int


class ChangefeedFilter:
    def __init__(self, changefeed: Changefeed):
        exact = changefeed.case_sensitive
        self._tables = TableFilter(changefeed.filter_rules, case_sensitive=exact)
        self._start_ts = frozenset(changefeed.filter.ignore_txn_start_ts)
        self._ignored = [
            (TableFilter(each.matcher, case_sensitive=exact), _ignores(each))
            for each in changefeed.filter.event_filters
        ]

    def takes_table(self, schema: str, table: str) -> bool:
        return self._tables.matches(schema, table)

    def takes_ddl(self, ddl: Statement) -> bool:
        """A rename is taken when one of the two names is. A statement is a transaction, too: ignore-txn-start-ts leaves it out."""
        if ddl.start_ts in self._start_ts:
            return False
        if not ddl.table:
            is_taken = self._tables.matches_schema(ddl.schema)
        else:
            names = [(ddl.schema, ddl.table)] + [(ddl.old_schema, ddl.old_table)] * bool(ddl.old_table)
            is_taken = any(self._tables.matches(*name) for name in names)
        return is_taken and not any(
            _is_meant(matcher, ddl) and ignores(ddl) for matcher, ignores in self._ignored
        )


def _is_meant(matcher: TableFilter, ddl: Statement) -> bool:
    """Whether an event filter is for a statement; a rename is known by the old name."""
    if not ddl.table:
        return matcher.matches_schema(ddl.schema)
    if ddl.type in DDL_KINDS["rename table"] and ddl.old_table:
        return matcher.matches(ddl.old_schema, ddl.old_table)
    return matcher.matches(ddl.schema, ddl.table)


def _ignores(event_filter: EventFilter) -> Callable[[Statement], bool]:
    """Whether a statement is left out, by its kind or by its text."""
    if event_filter.ignores_all_ddl:
        return lambda ddl: True
    kinds = event_filter.ignored_ddl
    patterns = [GoRegexp(pattern, ignore_case=True) for pattern in event_filter.ignore_sql]
    return lambda ddl: ddl.type in kinds or any(pattern.search(ddl.query) for pattern in patterns)
