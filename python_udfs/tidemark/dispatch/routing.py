"""Under which name a table is written: `target-schema` and `target-table` of the dispatch rules.

The first rule that names a target and takes the table decides; rules without a target are passed over, and a target that is empty is the name in
the source. Filters, topics, partitions and column selectors know tables by their names in the source, whatever they are written as.

A database is written under the one name that all rules for its tables agree on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidemark.dispatch.errors import AmbiguousTarget
from tidemark.dispatch.table_filter import TableFilter
from tidemark.wire.table_info import TableInfo

if TYPE_CHECKING:
    from tidemark.config import Settings

SCHEMA, TABLE = "{schema}", "{table}"


@dataclass(frozen=True)
class RoutingRule:
    matcher: tuple[str, ...]
    target_schema: str
    target_table: str


def routing_rules(settings: Settings) -> list[RoutingRule]:
    """The dispatch rules that name a target."""
    return [
        RoutingRule(rule.matcher, rule.target_schema, rule.target_table)
        for rule in settings.sink.dispatchers
        if rule.target_schema or rule.target_table
    ]


class Routing:
    def __init__(self, rules: Iterable[RoutingRule], *, case_sensitive: bool):
        self._rules = [(rule, TableFilter(rule.matcher, case_sensitive=case_sensitive)) for rule in rules]
        self._targets: dict[tuple[str, str], tuple[str, str]] = {}
        # By identity: readers and encoders keep what they made for a table by the object.
        self._tables: dict[int, tuple[TableInfo, TableInfo]] = {}

    @classmethod
    def of(cls, settings: Settings) -> Routing:
        return cls(routing_rules(settings), case_sensitive=settings.changefeed.case_sensitive)

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Routing:
        """What `routing_document` made."""
        rules = (
            RoutingRule(tuple(rule["matcher"]), rule["schema"], rule["table"]) for rule in document["rules"]
        )
        return cls(rules, case_sensitive=document["case_sensitive"])

    def __bool__(self) -> bool:
        """Whether any table may be written under another name."""
        return bool(self._rules)

    def target(self, schema: str, table: str) -> tuple[str, str]:
        """Database and table that a table is written to. With an empty table: the database."""
        if not self._rules or not schema:
            return schema, table
        found = self._targets.get((schema, table))
        if found is None:
            found = self._target(schema, table) if table else (self._database(schema), "")
            self._targets[schema, table] = found
        return found

    def table(self, table: TableInfo) -> TableInfo:
        """The same table, with where it is written to."""
        if not self._rules:
            return table
        known, routed = self._tables.get(id(table), (None, None))
        if known is not table:
            target = self.target(table.schema, table.table)
            routed = table if target == (table.schema, table.table) else replace(table, written_to=target)
            self._tables[id(table)] = (table, routed)
        return routed

    def _target(self, schema: str, table: str) -> tuple[str, str]:
        for rule, matcher in self._rules:
            if matcher.matches(schema, table):
                return (
                    _named(rule.target_schema, schema, table) or schema,
                    _named(rule.target_table, schema, table) or table,
                )
        return schema, table

    def _database(self, schema: str) -> str:
        found: dict[str, RoutingRule] = {}
        for rule, matcher in self._rules:
            if matcher.matches_schema(schema):
                found.setdefault(_named(rule.target_schema, schema, TABLE) or schema, rule)
        if len(found) > 1 or any(TABLE in name for name in found):
            raise AmbiguousTarget(
                f"database {schema}: its tables are written to more than one database "
                f"({', '.join(sorted(found))}), so a statement about the database has no target; leave such statements "
                "out with an event filter, or give all its tables one target-schema"
            )
        return next(iter(found), schema)


def routing_document(settings: Settings) -> dict[str, Any]:
    """The rules as JSON, for SQL."""
    return {
        "case_sensitive": settings.changefeed.case_sensitive,
        "rules": [
            {"matcher": list(rule.matcher), "schema": rule.target_schema, "table": rule.target_table}
            for rule in routing_rules(settings)
        ],
    }


def _named(expression: str, schema: str, table: str) -> str:
    return expression.replace(SCHEMA, schema).replace(TABLE, table)
