"""What-if: how rules spread a history of row changes over partitions, compared with the rules in force.

    skew            rows of the fullest partition / mean rows of all partitions of the rule set's topics
    moved key       has a change that goes to another topic or partition than under the rules in force
    broken key      has changes in more than one partition, so that a consumer may see them out of order

Counts of rows are exact. Keys are remembered by fingerprint, with the lowest and highest partition they were seen in; beyond `max_keys` of them
only those whose fingerprint falls into a shrinking share of all fingerprints are kept, with their whole history, and counts are scaled up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from tidemark.config.settings import Settings
from tidemark.dispatch.keys import key_fingerprints
from tidemark.dispatch.router import Route, Router
from tidemark.dispatch.row_policy import NOT_SENT, RowPolicy
from tidemark.dispatch.table_filter import TableFilter
from tidemark.wire.rows import RowBatch

DEFAULT_MAX_KEYS = 1_000_000
_NOT_SENT = -1
# Changes collected before they are merged into the known keys.
_MERGE_ROWS = 262_144


@dataclass(frozen=True)
class TopicSpread:
    topic: str
    # Rows per partition.
    rows: tuple[int, ...]


@dataclass(frozen=True)
class TableSpread:
    schema: str
    table: str
    route: Route
    rows: int
    keys: int
    moved_keys: int
    broken_keys: int


@dataclass(frozen=True)
class Spread:
    """What one rule set makes of the history."""

    name: str
    topics: tuple[TopicSpread, ...]
    tables: tuple[TableSpread, ...]

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)

    @property
    def keys(self) -> int:
        return sum(table.keys for table in self.tables)

    @property
    def moved_keys(self) -> int:
        return sum(table.moved_keys for table in self.tables)

    @property
    def broken_keys(self) -> int:
        return sum(table.broken_keys for table in self.tables)

    @property
    def skew(self) -> float:
        counts = [rows for topic in self.topics for rows in topic.rows]
        return max(counts) * len(counts) / sum(counts) if sum(counts) else 0.0


@dataclass
class _RuleSet:
    name: str
    router: Router
    filter: TableFilter
    policy: RowPolicy
    rows: dict[int, int] = field(default_factory=dict)  # by place

    def places(self, batch: RowBatch, place_of: _Numbering) -> np.ndarray:
        """Where every change goes, as a number for its topic and partition."""
        table = batch.table
        if not self.filter.matches(table.schema, table.table):
            return np.full(len(batch.changes), _NOT_SENT, np.int32)
        topic = self.router.route(table.schema, table.table).topic
        first = place_of.number(topic)
        partitions = self.router.partitions(batch)
        is_sent = self.policy.ops(batch) != NOT_SENT
        for partition, count in enumerate(np.bincount(partitions[is_sent])):
            if count:
                self.rows[first + partition] = self.rows.get(first + partition, 0) + int(count)
        return np.where(is_sent, partitions + np.int32(first), np.int32(_NOT_SENT))


class _Numbering(dict):
    """Topic -> number of its partition 0. Topics are `width` numbers apart."""

    def __init__(self, width: int):
        self.width = width

    def number(self, topic: str) -> int:
        return self.setdefault(topic, len(self) * self.width)


@dataclass
class _Keys:
    """The known keys, sorted by fingerprint. `low`, `high` and `moved` have one column per rule set."""

    fingerprint: np.ndarray
    table: np.ndarray
    low: np.ndarray
    high: np.ndarray
    moved: np.ndarray

    @classmethod
    def of_changes(cls, fingerprint: np.ndarray, table: np.ndarray, places: np.ndarray) -> _Keys:
        low = np.where(places == _NOT_SENT, np.iinfo(np.int32).max, places)
        return cls(fingerprint, table, low, places, places != places[:, :1])

    def merged(self, others: list[_Keys]) -> _Keys:
        parts = [self, *others]
        fingerprint, table, low, high, moved = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("fingerprint", "table", "low", "high", "moved")
        )
        if not len(fingerprint):
            return self
        order = np.argsort(fingerprint, kind="stable")
        fingerprint = fingerprint[order]
        starts = np.flatnonzero(np.r_[True, fingerprint[1:] != fingerprint[:-1]])
        return _Keys(
            fingerprint[starts],
            table[order[starts]],
            np.minimum.reduceat(low[order], starts),
            np.maximum.reduceat(high[order], starts),
            np.logical_or.reduceat(moved[order], starts),
        )

    def sample(self, one_in: int) -> _Keys:
        last = np.uint64(2**64 // one_in - 1)
        kept = slice(int(np.searchsorted(self.fingerprint, last, side="right")))
        return _Keys(
            self.fingerprint[kept], self.table[kept], self.low[kept], self.high[kept], self.moved[kept]
        )


class Report:
    """Feed row batches to `add`, then read `spreads`. The first rule set is the one in force."""

    def __init__(self, rule_sets: Iterable[tuple[str, Settings]], max_keys: int = DEFAULT_MAX_KEYS):
        self._sets = [
            _RuleSet(
                name,
                Router(settings),
                TableFilter(
                    settings.changefeed.filter_rules, case_sensitive=settings.changefeed.case_sensitive
                ),
                RowPolicy(settings, table_flags=False),
            )
            for name, settings in rule_sets
        ]
        self._places = _Numbering(max(rules.router.partition_num for rules in self._sets))
        self._tables: dict[tuple[str, str], int] = {}
        # By table: the rows that each rule set sends.
        self._table_rows: list[np.ndarray] = []
        self._max_keys = max_keys
        # One key in `sampled` is kept.
        self.sampled = 1
        none = np.zeros((0, len(self._sets)), np.int32)
        self._keys = _Keys.of_changes(np.zeros(0, np.uint64), np.zeros(0, np.int32), none)
        self._pending: list[_Keys] = []
        self._pending_rows = 0

    def add(self, batch: RowBatch) -> None:
        name = (batch.table.schema, batch.table.table)
        number = self._tables.setdefault(name, len(self._tables))
        if number == len(self._table_rows):
            self._table_rows.append(np.zeros(len(self._sets), np.int64))
        count = len(batch.changes)
        places = np.stack([rules.places(batch, self._places) for rules in self._sets], axis=1)
        self._table_rows[number] += (places != _NOT_SENT).sum(axis=0)
        changes = _Keys.of_changes(key_fingerprints(batch), np.full(count, number, np.int32), places)
        self._pending.append(changes)
        self._pending_rows += count
        if self._pending_rows >= _MERGE_ROWS:
            self._merge()

    def _merge(self) -> None:
        self._keys = self._keys.merged(self._pending).sample(self.sampled)
        self._pending, self._pending_rows = [], 0
        while len(self._keys.fingerprint) > self._max_keys:
            self.sampled *= 2
            self._keys = self._keys.sample(self.sampled)

    def spreads(self) -> list[Spread]:
        self._merge()
        return [self._spread(column, rules) for column, rules in enumerate(self._sets)]

    def _spread(self, column: int, rules: _RuleSet) -> Spread:
        keys, count = self._keys, rules.router.partition_num
        sent = keys.high[:, column] != _NOT_SENT

        def per_table(chosen: np.ndarray) -> list[int]:
            return (np.bincount(keys.table[chosen], minlength=len(self._tables)) * self.sampled).tolist()

        key_counts = per_table(sent)
        moved = per_table(keys.moved[:, column])
        broken = per_table(sent & (keys.low[:, column] != keys.high[:, column]))
        tables = tuple(
            TableSpread(
                schema,
                table,
                rules.router.route(schema, table),
                int(self._table_rows[number][column]),
                key_counts[number],
                moved[number],
                broken[number],
            )
            for (schema, table), number in self._tables.items()
            if rules.filter.matches(schema, table)
        )
        topics = dict.fromkeys(table.route.topic for table in tables)
        return Spread(
            rules.name,
            tuple(
                TopicSpread(
                    topic,
                    tuple(rules.rows.get(self._places[topic] + partition, 0) for partition in range(count)),
                )
                for topic in topics
            ),
            tables,
        )
