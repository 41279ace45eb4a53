"""The SQL of the sink. Values are parameters, always; only names of databases, tables and columns are part of the text, quoted.

    upsert  := INSERT INTO t (c,…) VALUES (?,…),… ON DUPLICATE KEY UPDATE c = IF(condition, VALUES(c), c),…
    replace := REPLACE INTO t (c,…) VALUES (?,…),…
    insert  := INSERT INTO t (c,…) VALUES (?,…),…                             (tables without a key)
    delete  := DELETE FROM t WHERE k IN (?,…)
             | DELETE FROM t WHERE (k1 = ? AND k2 = ?) OR …
             | DELETE FROM t WHERE c1 <=> ? AND … LIMIT 1                     (tables without a key: one row each)

`condition` is last write wins: IFNULL(_tidb_origin_ts, _tidb_commit_ts) <= VALUES(_tidb_origin_ts). Assignments are done from left to right, and _tidb_origin_ts
is itself assigned. With `@cond := (condition)` in the first assignment the condition is evaluated before anything changes and only once per row; repeated per
column (TiCDC) it stays true after the assignment, since then both sides are equal.

Not written, ever: generated columns, and _tidb_commit_ts, which the downstream TiDB fills in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.compat import Compat
from tidemark.config.uri import DEFAULT_COMMIT_TS_COLUMN
from tidemark.encode.ddl_names import quote
from tidemark.sinks.mysql.errors import MissingHiddenColumn
from tidemark.wire import types
from tidemark.wire.table_info import Column, TableInfo
from tidemark.wire.types import Kind, decimal_digits

ORIGIN_TS = "_tidb_origin_ts"
COMMIT_TS = DEFAULT_COMMIT_TS_COLUMN
SOFT_DELETE_TIME = "_tidb_softdelete_time"
# Texts that an index holds whole, and that may be sent twice.
_SHORT_TEXTS = (types.STRING, types.VARCHAR, types.VAR_STRING)


def qualified(schema: str, table: str) -> str:
    return f"{quote(schema)}.{quote(table)}"


@dataclass(frozen=True)
class Statement:
    """One kind of statement on one table, for any number of rows. `columns` are those that its parameters are taken from, per row; one may be there twice."""

    kind: str
    table: str
    columns: tuple[Column, ...]
    head: str
    row: str
    between: str = ","
    tail: str = ""
    # The most rows of one statement; 0: no limit of its own.
    most_rows: int = 0

    def sql(self, rows: int) -> str:
        return self.head + self.between.join([self.row] * rows) + self.tail


def written_columns(table: TableInfo) -> tuple[Column, ...]:
    return tuple(column for column in table.columns if not column.generated_expr and column.name != COMMIT_TS)


def lww_upsert(table: TableInfo, compat: Compat, *, commit_ts_column: str = COMMIT_TS) -> Statement:
    """Last write wins. `commit_ts_column` is the column for the commit ts of a downstream that has no hidden one: option commit-ts-column of the sink URI."""
    missing = [name for name in compat.active_active_columns if name not in table.columns_by_name]
    if missing:
        way_out = (
            "; TiCDC sends tables that do not list it: take them with compat {base: design, active_active_columns: ticdc}"
            if COMMIT_TS in missing
            else ""
        )
        raise MissingHiddenColumn(
            f"{table.schema}.{table.table}: an active-active table needs the columns {', '.join(compat.active_active_columns)}, "
            f"{', '.join(missing)} is not there; make the table active-active upstream, or leave it out with a table filter{way_out}"
        )
    columns = written_columns(table)
    origin = quote(ORIGIN_TS)
    condition = f"(IFNULL({origin}, {quote(commit_ts_column)}) <= VALUES({origin}))"
    first, others = (
        (f"(@cond := {condition})", "@cond") if compat.lww_condition_variable else (condition, condition)
    )
    assignments = (
        f"{name} = IF({others if place else first}, VALUES({name}), {name})"
        for place, name in enumerate(quote(column.name) for column in columns)
    )
    insert = _insert("INSERT", "upsert", table, columns)
    return _with_tail(insert, " ON DUPLICATE KEY UPDATE " + ",".join(assignments))


def replace_rows(table: TableInfo) -> Statement:
    """Inserts and updates of a table with a key: whatever row has the key, it is this one afterwards."""
    return _insert("REPLACE", "replace", table, written_columns(table))


def insert_rows(table: TableInfo) -> Statement:
    return _insert("INSERT", "insert", table, written_columns(table))


def delete_rows(table: TableInfo) -> Statement:
    """Deletes of a table with a key, by the key."""
    key = handle_columns(table)
    head = f"DELETE FROM {_target(table)} WHERE "
    shown = _shown(table)
    if len(key) == 1:
        return Statement("delete", shown, key, f"{head}{quote(key[0].name)} IN (", "?", tail=")")
    row = "(" + " AND ".join(f"{quote(column.name)} = ?" for column in key) + ")"
    return Statement("delete", shown, key, head, row, between=" OR ")


def delete_whole_row(table: TableInfo) -> Statement:
    """Deletes of a table without a key: one of the rows that are equal in all columns."""
    conditions = [
        (column, condition) for column in written_columns(table) for condition in _conditions(column)
    ]
    return Statement(
        "delete",
        _shown(table),
        tuple(column for column, _ in conditions),
        f"DELETE FROM {_target(table)} WHERE ",
        " AND ".join(condition for _, condition in conditions),
        tail=" LIMIT 1",
        most_rows=1,
    )


def handle_columns(table: TableInfo) -> tuple[Column, ...]:
    return tuple(table.columns_by_name[name] for name in table.handle_key)


def unique_keys(table: TableInfo) -> list[tuple[str, ...]]:
    """The columns of each unique key."""
    return [tuple(index.columns) for index in table.indexes if index.is_unique]


def has_other_unique_keys(table: TableInfo) -> bool:
    """Whether rows of different handle keys can collide."""
    return any(set(key) != set(table.handle_key) for key in unique_keys(table))


def _insert(verb: str, kind: str, table: TableInfo, columns: Sequence[Column]) -> Statement:
    names = ",".join(quote(column.name) for column in columns)
    row = "(" + ",".join("?" * len(columns)) + ")"
    head = f"{verb} INTO {_target(table)} ({names}) VALUES "
    return Statement(kind, _shown(table), tuple(columns), head, row)


def _target(table: TableInfo) -> str:
    return qualified(table.target_schema, table.target_table)


def _shown(table: TableInfo) -> str:
    return f"{table.target_schema}.{table.target_table}"


def _with_tail(statement: Statement, tail: str) -> Statement:
    return Statement(
        statement.kind, statement.table, statement.columns, statement.head, statement.row, tail=tail
    )


def _conditions(column: Column) -> list[str]:
    """Equal as values of the upstream, NULL included. Each condition has one parameter.

    A DECIMAL and a text would be compared as floating point numbers; JSON and vectors never equal a text. Collations take different texts for equal, those
    called `_bin` too: for most of them spaces at the end do not count. So texts are compared as the bytes of one character set.
    """
    name = quote(column.name)
    if column.kind is Kind.DECIMAL:
        precision, scale = decimal_digits(column)
        return [f"{name} <=> CAST(? AS DECIMAL({precision},{scale}))"]
    if column.kind in (Kind.JSON, Kind.VECTOR):
        return [_same_bytes(f"CAST({name} AS CHAR)")]
    if column.kind is not Kind.STRING or column.charset == types.BINARY_CHARSET:
        return [f"{name} <=> ?"]
    if column.collate.endswith("_bin") and column.mysql_type in _SHORT_TEXTS:
        # For an index: it knows nothing of the bytes.
        return [f"{name} <=> ?", _same_bytes(name)]
    return [_same_bytes(name)]


def _same_bytes(text: str) -> str:
    # The connection sends utf8mb4, a column may have another character set.
    return f"CAST(CONVERT({text} USING utf8mb4) AS BINARY) <=> CAST(? AS BINARY)"
