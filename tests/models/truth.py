"""What a real database holds after the changes were applied one by one."""

from __future__ import annotations

from collections.abc import Iterable

from histories import COMMIT_TS, ORIGIN_TS, SOFT_DELETE_TIME, ZERO_TIME, Change, Table, Transaction

from tidemark.compat import Compat
from tidemark.sinks.mysql.connection import Connection
from tidemark.sinks.mysql.statements import delete_rows, lww_upsert, replace_rows

SCHEMA = "truth"


class Truth:
    def __init__(self, connection: Connection, tables: list[Table]):
        self._connection = connection
        self._infos = {table.name: table.info(SCHEMA, 1) for table in tables}
        self._tables = tables
        connection.execute(f"drop database if exists {SCHEMA}")
        connection.execute(f"create database {SCHEMA}")
        for table in tables:
            connection.execute(table.ddl(SCHEMA))

    def upsert(self, transaction: Transaction, row: dict) -> None:
        """The statement of the design document."""
        statement = lww_upsert(self._infos[transaction.table.name], Compat.named("design"))
        origin_ts = transaction.commit_ts if row[ORIGIN_TS] is None else row[ORIGIN_TS]
        self._run(statement, {**row, ORIGIN_TS: origin_ts})

    def put(self, table: Table, row: dict) -> None:
        self._run(replace_rows(self._infos[table.name]), row)

    def remove(self, table: Table, row: dict) -> None:
        self._run(delete_rows(self._infos[table.name]), row)

    def _run(self, statement, row: dict) -> None:
        # The driver marks parameters with %s; no name here has a question mark.
        sql = statement.sql(1).replace("?", "%s")
        self._connection.execute(sql, [row[column.name] for column in statement.columns])

    def rows(self) -> dict[tuple, dict]:
        """(table, key …) -> the row, as texts."""
        self._connection.commit()
        found = {}
        for table in self._tables:
            names = [name for name in table.columns if name != COMMIT_TS]
            chosen = ", ".join(f"cast(`{name}` as char)" for name in names)
            for values in self._connection.query(f"select {chosen} from {SCHEMA}.{table.name}"):
                row = dict(zip(names, values, strict=True))
                found[(table.name, *(row[name] for name in table.key))] = row
        return found


def upserted(
    truth: Truth, changes: Iterable[tuple[Transaction, Change]], *, loop_guard: bool
) -> dict[tuple, dict]:
    """Active-active: deletes are ignored, and with the loop guard replicated rows are, too."""
    for transaction, change in changes:
        if change.post is not None and not (loop_guard and change.post[ORIGIN_TS] is not None):
            truth.upsert(transaction, change.post)
    return truth.rows()


def applied(truth: Truth, changes: Iterable[tuple[Transaction, Change]]) -> dict[tuple, dict]:
    """Normal mode: soft-delete tables get deletes from soft deletes only, other tables what is in the log."""
    for transaction, change in changes:
        table, pre, post = transaction.table, change.pre, change.post
        if table.flags and change.op == "delete":
            continue
        is_soft_delete = table.flags and change.op == "update" and is_there(pre) and not is_there(post)
        if change.op == "delete" or is_soft_delete:
            truth.remove(table, pre)
        else:
            truth.put(table, post)
    return truth.rows()


def is_there(row: dict) -> bool:
    return row.get(SOFT_DELETE_TIME) in (None, ZERO_TIME)
