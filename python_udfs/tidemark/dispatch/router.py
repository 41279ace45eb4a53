"""Topic and partition of row changes and DDL, by the dispatch rules of a changefeed.

The first rule whose matcher takes a table decides on its topic and on its partition expression; a table that no rule takes is dispatched by the table's
name to the topic of the sink URI. DDL goes to partition 0 with canal and canal-json, and to all partitions with every other protocol.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidemark.compat import Compat
from tidemark.config import dispatch_rule as rules
from tidemark.config.dispatch_rule import DispatchRule
from tidemark.config.settings import Settings
from tidemark.dispatch.column_selectors import ColumnSelectors
from tidemark.dispatch.errors import MissingColumns, MissingIndex, NoPartitions
from tidemark.dispatch.partition import ByCommitTs, Fixed, Partitioner, by_columns, by_table
from tidemark.dispatch.table_filter import TableFilter
from tidemark.dispatch.topic import parse_topic
from tidemark.wire.rows import RowBatch
from tidemark.wire.table_info import Column, Index, TableInfo

_DDL_TO_PARTITION_ZERO = {"canal", "canal-json"}


@dataclass(frozen=True)
class Route:
    """Where the rows of one table go."""

    # Position of the rule in the changefeed file, from 0; None where no rule takes the table.
    rule: int | None
    topic: str
    # The partition expression as written, with the columns or the index that it takes.
    partition: str


class Router:
    def __init__(self, settings: Settings, compat: Compat | None = None):
        self.partition_num = _partition_num(settings)
        self._skip_missing = (compat or settings.compat).dispatch_skips_missing_columns
        self._default_topic = settings.default_topic
        self._rules = [
            (
                rule,
                TableFilter(rule.matcher, case_sensitive=settings.changefeed.case_sensitive),
                parse_topic(rule.topic, settings.sink_kind, settings.protocol, settings.default_topic),
            )
            for rule in settings.sink.dispatchers
        ]
        self._selectors = ColumnSelectors(settings)
        self._routes: dict[tuple[str, str], tuple[DispatchRule | None, Route]] = {}
        # By table name: the table's version that was seen last, and its partitioner.
        self._partitioners: dict[tuple[str, str], tuple[TableInfo, Partitioner]] = {}

    @classmethod
    def for_topics(cls, settings: Settings) -> Router | None:
        """A router that is only asked for topics, so the number of partitions may stay unknown. None for sinks without topics."""
        if settings.sink_kind not in ("kafka", "pulsar"):
            return None
        options = settings.uri.options
        if options.partition_num is None:
            numbers = [rule.number for rule in settings.sink.dispatchers if rule.number is not None]
            options = replace(options, partition_num=1 + max(numbers, default=0))
        return cls(replace(settings, uri=replace(settings.uri, options=options)))

    def route(self, schema: str, table: str) -> Route:
        return self._matched(schema, table)[1]

    def check(self, table: TableInfo) -> None:
        """An error where rows of the table cannot be dispatched."""
        self._partitioner(table)

    def partitions(self, batch: RowBatch) -> np.ndarray:
        """The partition of every row change, as int32."""
        return self._partitioner(batch.table).partitions(batch, self.partition_num)

    def partition_keys(self, batch: RowBatch) -> pa.StringArray:
        """What the partition was made from: the table's name, the commit ts, the hash, the number or the fixed key."""
        return self._partitioner(batch.table).keys(batch)

    def warnings(self, table: TableInfo) -> list[str]:
        """What TiCDC would not accept for the table although its rows can be dispatched."""
        rule, _ = self._matched(table.schema, table.table)
        if rule is None or rule.kind != rules.INDEX_VALUE or not rule.index_name:
            return []
        index = _index(table, rule)
        if index.is_unique:
            return []
        return [
            f"table {table.schema}.{table.table}: index {index.name!r} is not unique, so changes of one row may go to several partitions"
        ]

    def ddl_topic(self, schema: str, table: str, old_schema: str = "", old_table: str = "") -> str:
        """The topic of a DDL; of a rename, that of the old name. A DDL without a table goes to the topic of the sink URI."""
        if old_schema:
            schema, table = old_schema, old_table
        return self.route(schema, table).topic if table else self._default_topic

    def ddl_partitions(self, protocol: str) -> range:
        return range(1) if protocol in _DDL_TO_PARTITION_ZERO else range(self.partition_num)

    def watermark_partitions(self) -> range:
        """Progress concerns all partitions, whatever the protocol."""
        return range(self.partition_num)

    def _matched(self, schema: str, table: str) -> tuple[DispatchRule | None, Route]:
        found = self._routes.get((schema, table))
        if found is None:
            found = (None, Route(None, self._default_topic, rules.DEFAULT))
            for rule, matcher, topic in self._rules:
                if matcher.matches(schema, table):
                    found = (
                        rule,
                        Route(rule.index, topic.name(schema, table), _described(rule)),
                    )
                    break
            self._routes[schema, table] = found
        return found

    def _partitioner(self, table: TableInfo) -> Partitioner:
        name = (table.schema, table.table)
        known, found = self._partitioners.get(name, (None, None))
        # Batches of one table version usually share the object, so that its fields are rarely compared.
        if known is not table and known != table:
            rule, _ = self._matched(*name)
            found = _partitioner(rule, table, self._skip_missing, self._selectors)
            self._partitioners[name] = (table, found)
        return found


def _described(rule: DispatchRule) -> str:
    if rule.kind == rules.COLUMNS and not rule.partition.strip().startswith("["):
        return f"{rule.partition} [{', '.join(rule.columns)}]"
    if rule.index_name:
        return f"{rule.partition} {rule.index_name}"
    return rule.partition or rules.DEFAULT


def _partition_num(settings: Settings) -> int:
    if settings.sink_kind not in ("kafka", "pulsar"):
        raise NoPartitions(
            f"sink URI {settings.uri.shown}: this sink has no topics and partitions; allowed: kafka:// and pulsar://"
        )
    count = settings.uri.options.partition_num
    if count is None:
        raise NoPartitions(
            f"sink URI {settings.uri.shown}: the number of partitions is not known; add partition-num=N, the partitions of the topic"
        )
    for rule in settings.sink.dispatchers:
        if rule.number is not None and rule.number >= count:
            raise NoPartitions(
                f"dispatch rule {rule.index}: partition = {rule.number}; allowed: 0 to {count - 1}"
            )
    return count


def _partitioner(
    rule: DispatchRule | None, table: TableInfo, skip_missing: bool, selectors: ColumnSelectors
) -> Partitioner:
    kind = rules.DEFAULT if rule is None else rule.kind
    if kind in (rules.DEFAULT, rules.TABLE):
        return by_table(table)
    if kind == rules.TS:
        return ByCommitTs()
    if kind == rules.NUMBER:
        return Fixed(rule.number, str(rule.number))
    if kind == rules.KEY:
        return Fixed(0, rule.partition)
    if kind == rules.INDEX_VALUE:
        names = _index(table, rule).columns if rule.index_name else table.handle_key
        columns = [table.columns_by_name[name] for name in names]
    else:
        columns = _named_columns(table, rule, skip_missing)
        if skip_missing and not columns:
            return Fixed(0, "")
    selectors.check(
        table.schema,
        table.table,
        [column.name for column in columns],
        f"sink.dispatchers[{rule.index}] dispatches by",
    )
    return by_columns(table, columns)


def _index(table: TableInfo, rule: DispatchRule) -> Index:
    for index in table.indexes:
        if index.name.lower() == rule.index_name.lower():
            return index
    known = ", ".join(index.name for index in table.indexes) or "none"
    raise MissingIndex(
        f"table {table.schema}.{table.table} has no index {rule.index_name!r} that dispatch rule {rule.index} hashes "
        f"(its indexes: {known}); narrow the rule's matcher or name another index"
    )


def _named_columns(table: TableInfo, rule: DispatchRule, skip_missing: bool) -> list[Column]:
    """The columns of the rule. A virtual generated column is not in the stream, so it counts as missing."""
    by_name = {column.name.lower(): column for column in table.columns if not column.is_virtual_generated}
    missing = [name for name in rule.columns if name.lower() not in by_name]
    if missing and not skip_missing:
        raise MissingColumns(
            f"table {table.schema}.{table.table} has no column {', '.join(map(repr, missing))} that dispatch rule {rule.index} hashes; "
            f"narrow the rule's matcher, or use compat = design, which hashes the columns that exist"
        )
    return [by_name[name.lower()] for name in rule.columns if name.lower() in by_name]
