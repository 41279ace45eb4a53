"""Random changes of a few keys by several clusters, as the event streams their changefeeds would send.

A cluster has a state of its own, so that its updates and deletes carry the rows that were there. Clusters commit at the same ts, and replicated rows
(`_tidb_origin_ts` is set) carry the ts of an earlier write to the same key. Everything follows from the seed.

    Table        what clusters write to
    Change       one row change
    Transaction  row changes of one table: deletes, updates, inserts
    write_history(…) -> {upstream: [Transaction, …]}, by commit ts
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tidemark.wire import types
from tidemark.wire.table_info import Column, Index, TableInfo

START_TS = 450_000_000_000_000_000
ORIGIN_TS, SOFT_DELETE_TIME, COMMIT_TS = "_tidb_origin_ts", "_tidb_softdelete_time", "_tidb_commit_ts"
ZERO_TIME = "0000-00-00 00:00:00.000000"
TEXTS = (
    None,
    "",
    "a",
    "A",
    'say "hi"',
    "it's",
    "back\\slash",
    "line\nbreak",
    "grün 🌊",
    "0",
    "null",
    ",;[]{}",
)
TEXT_KEYS = ("", "a", "A", "b,c", '["x"]', "ü", "🌊", "it's", "\\", "1", "01", "null")
# How many keys of a table are written at a time.
WINDOW = 6
# Large enough that a number passed through a float would change.
NUMBERS = (None, 0, -1, 7, 9_007_199_254_740_993, -(2**63), 2**63 - 1)

_KEY = types.NOT_NULL | types.PRIMARY_KEY
_TEXT = {"charset": "utf8mb4", "collate": "utf8mb4_bin"}
_TYPES = {
    "int": {"mysql_type": types.INT, "flen": 11},
    "bigint": {"mysql_type": types.BIGINT, "flen": 20},
    "bigint unsigned": {"mysql_type": types.BIGINT, "flen": 20, "flag": types.UNSIGNED},
    "varchar(40)": {"mysql_type": types.VARCHAR, "flen": 40, **_TEXT},
    "timestamp(6)": {"mysql_type": types.TIMESTAMP, "flen": 26, "decimal": 6},
}
PLAIN = {"v": "varchar(40)", "n": "bigint"}
SOFT_DELETE = {**PLAIN, SOFT_DELETE_TIME: "timestamp(6)"}
ACTIVE_ACTIVE = {**SOFT_DELETE, ORIGIN_TS: "bigint unsigned", COMMIT_TS: "bigint unsigned"}


@dataclass(frozen=True)
class Table:
    """`key` and `others` are {column: SQL type}; `keys` are the key values that are written, all of them again and again."""

    name: str
    key: dict[str, str]
    others: dict[str, str]
    keys: tuple[tuple, ...]
    flags: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, str]:
        return {**self.key, **self.others}

    def info(self, schema: str, table_id: int) -> TableInfo:
        columns = []
        for place, (name, sql_type) in enumerate(self.columns.items()):
            form = dict(_TYPES[sql_type])
            flag = form.pop("flag", 0) | (_KEY if name in self.key else 0)
            columns.append(Column(place + 1, name, place, form.pop("mysql_type"), flag=flag, **form))
        is_int = list(self.key.values()) == ["int"]
        primary = [] if is_int else [Index("PRIMARY", tuple(self.key), is_unique=True, is_primary=True)]
        return TableInfo.build(
            schema,
            self.name,
            table_id,
            START_TS,
            columns=columns,
            indexes=primary,
            is_common_handle=not is_int,
            **dict.fromkeys(self.flags, True),
        )

    def ddl(self, schema: str) -> str:
        columns = [f"`{name}` {sql_type}" for name, sql_type in self.key.items()]
        columns += [f"`{name}` {sql_type} null" for name, sql_type in self.others.items()]
        return (
            f"create table `{schema}`.`{self.name}` ({', '.join(columns)}, primary key ({', '.join(self.key)})) "
            "default charset utf8mb4 collate utf8mb4_bin"
        )


def keyed_tables(others: dict[str, str], *flags: str, size: int, prefix: str = "") -> list[Table]:
    """One table by number, one by text, one by both, of about `size` keys each."""
    texts = [*TEXT_KEYS, *(f"k{n}" for n in range(size))][:size]
    pairs = [(n, text) for text in TEXT_KEYS[:4] for n in range(-1, size // 4)][:size]
    return [
        Table(f"{prefix}by_number", {"id": "int"}, others, tuple((n,) for n in range(size)), flags),
        Table(f"{prefix}by_text", {"name": "varchar(40)"}, others, tuple((text,) for text in texts), flags),
        Table(f"{prefix}by_both", {"id": "int", "name": "varchar(40)"}, others, tuple(pairs), flags),
    ]


@dataclass(frozen=True)
class Change:
    op: str
    pre: dict | None
    post: dict | None


@dataclass(frozen=True)
class Transaction:
    upstream: str
    table: Table
    start_ts: int
    commit_ts: int
    changes: tuple[Change, ...]


_ORDER = {"delete": 0, "update": 1, "insert": 2}


def write_history(
    dice: random.Random, tables: list[Table], upstreams: list[str], *, ticks: int
) -> dict[str, list[Transaction]]:
    """At each tick some upstreams commit, all at the same ts. Writes move on from key to key: those of one key are close together."""
    history: dict[str, list[Transaction]] = {upstream: [] for upstream in upstreams}
    states: dict[str, dict[tuple, dict]] = {upstream: {} for upstream in upstreams}
    versions: dict[tuple, list[int]] = {}
    for tick in range(1, ticks + 1):
        commit_ts = START_TS + 2 * tick
        for upstream in dice.sample(upstreams, dice.randint(1, len(upstreams))):
            # Now and then a transaction writes several tables: each has its share of it, under the same timestamps.
            for table in dice.sample(tables, dice.choice((1, 1, 1, 2))):
                first = (len(table.keys) - WINDOW) * tick // ticks
                keys = table.keys[first : first + WINDOW]
                changes = tuple(_changes(dice, table, keys, commit_ts, states[upstream], versions))
                history[upstream].append(Transaction(upstream, table, commit_ts - 1, commit_ts, changes))
    return history


def _changes(
    dice: random.Random, table: Table, keys: tuple, commit_ts: int, state: dict, versions: dict
) -> list[Change]:
    made = []
    for key in dice.sample(keys, dice.choice((1, 1, 2, 3, 4))):
        place = table.name, key
        seen = versions.setdefault(place, [])
        old = state.get(place)
        is_removed = old is not None and dice.random() < 0.15
        if is_removed:
            made.append(Change("delete", old, None))
            state[place] = old = None
        # A row whose key changes and changes back: the sender makes a delete and, at the end, an insert of it.
        if not is_removed or dice.random() < 0.4:
            row = _row(dice, table, key, old or {}, seen)
            made.append(Change("update" if old else "insert", old, row))
            state[place] = row
            seen.append(row.get(ORIGIN_TS) or commit_ts)
    return sorted(made, key=lambda change: _ORDER[change.op])


def _row(dice: random.Random, table: Table, key: tuple, old: dict, seen: list[int]) -> dict:
    row = {**dict(zip(table.key, key, strict=True)), "v": dice.choice(TEXTS), "n": dice.choice(NUMBERS)}
    if SOFT_DELETE_TIME in table.others:
        # Soft deletes and undeletes are as frequent as leaving it.
        row[SOFT_DELETE_TIME] = old.get(SOFT_DELETE_TIME) if dice.random() < 0.5 else _soft_delete_time(dice)
    if ORIGIN_TS in table.others:
        # Written by replication: as new as the newest version of the row, or older.
        row[ORIGIN_TS] = dice.choice((max(seen), *seen[-3:])) if seen and dice.random() < 0.4 else None
        row[COMMIT_TS] = None
    return row


def _soft_delete_time(dice: random.Random) -> str | None:
    if dice.random() < 0.45:
        return None
    return (
        ZERO_TIME
        if dice.random() < 0.2
        else f"2025-01-{dice.randint(1, 28):02d} 10:00:00.{dice.randint(0, 999999):06d}"
    )


def in_order_of_application(history: dict[str, list[Transaction]]) -> Iterator[tuple[Transaction, Change]]:
    """By commit ts, then upstream, then start ts, then as the sender sent them."""
    everything = [transaction for upstream in sorted(history) for transaction in history[upstream]]
    for transaction in sorted(everything, key=lambda item: (item.commit_ts, item.upstream, item.start_ts)):
        for change in transaction.changes:
            yield transaction, change
