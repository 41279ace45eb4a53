"""The progress table: up to which ts each table was written, for whoever wants to remove tombstones for good.

One row per changefeed, upstream cluster, database and table, in `tidb_cdc`. Under `compat: design` name and columns are the design document's and a
checkpoint never moves back; under `compat: ticdc` the statements are those of TiCDC. When it is written, and which tables are gone, is for the caller to
say (models/sinks/sink_progress.sql). Rows of tables that are gone are removed, or their old checkpoint would hold up everybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidemark.compat import Compat
from tidemark.sinks.mysql.connection import Connection, ServerSaid
from tidemark.sinks.mysql.retrying import Doing, Session
from tidemark.sinks.mysql.statements import quote

DATABASE = "tidb_cdc"
# Tables of one statement.
BATCH = 256
_COMMENT = "TiCDC synchronization progress table for HardDelete safety check"
_KEY_TOO_LONG = 1071
# The document's key has 4 x 255 characters: with 4 bytes each it is longer than a key may be, with 3 it is not. Names in MySQL need no more than 3.
_SHORT_CHARACTERS = " DEFAULT CHARACTER SET utf8 COLLATE utf8_bin"

TableName = tuple[str, str]
SqlAndParams = tuple[str, list]


@dataclass(frozen=True)
class ProgressStatements:
    """The statements for one changefeed of one upstream, with `?` for parameters."""

    compat: Compat
    changefeed: str
    upstream: str

    @property
    def table(self) -> str:
        return ".".join(map(quote, self.compat.progress_table.split(".")))

    @property
    def _columns(self) -> tuple[str, ...]:
        return ("changefeed_id", self.compat.progress_upstream_column, "database_name", "table_name")

    def create(self) -> list[str]:
        return [f"CREATE DATABASE IF NOT EXISTS {quote(DATABASE)}", self._create_table()]

    def create_with_short_characters(self) -> str:
        """The same table for servers on which the key would be too long."""
        return self._create_table() + _SHORT_CHARACTERS

    def _create_table(self) -> str:
        comments = (
            _TICDC_COMMENTS
            if self.compat.progress_column_comments
            else dict.fromkeys((*self._columns, "checkpoint_ts"), "")
        )
        varchar = f"VARCHAR({self.compat.progress_varchar_length}) NOT NULL"
        columns = [f"{name} {varchar}{comments[name]}" for name in self._columns]
        columns.append(f"checkpoint_ts BIGINT UNSIGNED NOT NULL{comments['checkpoint_ts']}")
        columns.append(f"PRIMARY KEY ({', '.join(self._columns)})")
        return f"CREATE TABLE IF NOT EXISTS {self.table} ({','.join(columns)}) COMMENT='{_COMMENT}'"

    def upsert(self, tables: Iterable[TableName], checkpoint_ts: int) -> Iterator[SqlAndParams]:
        """The checkpoint of every table, in the order of names."""
        newest = (
            "GREATEST(checkpoint_ts, VALUES(checkpoint_ts))"
            if self.compat.progress_never_back
            else "VALUES(checkpoint_ts)"
        )
        for some in _batches(sorted(set(tables))):
            rows = ",".join(["(?,?,?,?,?)"] * len(some))
            sql = f"INSERT INTO {self.table} ({', '.join((*self._columns, 'checkpoint_ts'))}) VALUES {rows} ON DUPLICATE KEY UPDATE checkpoint_ts = {newest}"
            yield (
                sql,
                [value for name in some for value in (self.changefeed, self.upstream, *name, checkpoint_ts)],
            )

    def remove_tables(self, tables: Iterable[TableName]) -> Iterator[SqlAndParams]:
        for some in _batches(list(tables)):
            which = " OR ".join(["(database_name = ? AND table_name = ?)"] * len(some))
            yield (
                f"{self._delete()} AND ({which})",
                [self.changefeed, self.upstream, *(part for name in some for part in name)],
            )

    def remove_database(self, database: str) -> SqlAndParams:
        return f"{self._delete()} AND database_name = ?", [self.changefeed, self.upstream, database]

    def _delete(self) -> str:
        return (
            f"DELETE FROM {self.table} WHERE changefeed_id = ? AND {self.compat.progress_upstream_column} = ?"
        )


_TICDC_COMMENTS = {
    "changefeed_id": " COMMENT 'Unique identifier for the changefeed synchronization task'",
    "cluster_id": " COMMENT 'TiCDC cluster ID'",
    "database_name": " COMMENT 'Name of the upstream database'",
    "table_name": " COMMENT 'Name of the upstream table'",
    "checkpoint_ts": " COMMENT 'Safe watermark CommitTS indicating the data has been synchronized'",
}


class ProgressWriter:
    """Writes the progress table. Every call is one transaction, tried again as `Session` does."""

    def __init__(self, session: Session, statements: ProgressStatements):
        self._session = session
        self._statements = statements
        self._is_created = False

    def write(self, tables: Iterable[TableName], checkpoint_ts: int) -> None:
        tables = set(tables)
        if tables:
            self._execute(list(self._statements.upsert(tables, checkpoint_ts)))

    def remove(self, tables: Iterable[TableName] = (), database: str | None = None) -> None:
        statements = list(self._statements.remove_tables(tables))
        if database is not None:
            statements.append(self._statements.remove_database(database))
        if statements:
            self._execute(statements)

    def _execute(self, statements: list[SqlAndParams]) -> None:
        def work(connection: Connection, doing: Doing) -> None:
            doing.table, doing.statement = self._statements.compat.progress_table, "progress"
            if not self._is_created:
                self._create(connection)
            for sql, params in statements:
                connection.execute(sql.replace("?", "%s"), params)
            connection.commit()
            self._is_created = True

        self._session.run(work)

    def _create(self, connection: Connection) -> None:
        database, table = self._statements.create()
        connection.execute(database)
        try:
            connection.execute(table)
        except ServerSaid as error:
            if error.code != _KEY_TOO_LONG:
                raise
            connection.execute(self._statements.create_with_short_characters())


def _batches(names: list[TableName]) -> Iterator[list[TableName]]:
    for start in range(0, len(names), BATCH):
        yield names[start : start + BATCH]
