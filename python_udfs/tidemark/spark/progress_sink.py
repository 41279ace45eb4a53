"""Data source `tidemark_progress`, writer: the rows of the progress table in the database downstream.

Name          tidemark_progress
Options       settings       changefeed, sink URI and compat, as spark/sink_settings.py makes it
              changefeed_id  its name in the progress table
Rows          upstream_id, schema_name, table_name, checkpoint_ts, is_gone: a table and how far it is written, or one whose row is to be removed
Guarantees    Written when all rows are known, over one connection. Under `compat: design` a checkpoint never moves back. Writing it twice changes nothing.
Example       see models/sinks/sink_progress.sql
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from tidemark.sinks.mysql.connection import Target
from tidemark.sinks.mysql.progress import ProgressStatements, ProgressWriter
from tidemark.sinks.mysql.retrying import Session
from tidemark.spark.sink_settings import settings_of

SCHEMA = "upstream_id string, schema_name string, table_name string, checkpoint_ts bigint, is_gone boolean"


class ProgressSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "tidemark_progress"

    def schema(self) -> str:
        return SCHEMA

    def writer(self, schema, overwrite) -> ProgressTableWriter:
        return ProgressTableWriter(dict(self.options))


@dataclass
class Tables(WriterCommitMessage):
    # (upstream, database, table, checkpoint ts, whether it is gone)
    rows: list[tuple[str, str, str, int, bool]]


class ProgressTableWriter(DataSourceArrowWriter):
    def __init__(self, options: dict[str, str]):
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Tables:
        return Tables([tuple(row.values()) for batch in iterator for row in batch.to_pylist()])

    def commit(self, messages: list[Tables | None]) -> None:
        settings = settings_of(self.options)
        session = Session(Target.from_settings(settings))
        gone: dict[str, list[tuple[str, str]]] = {}
        there: dict[tuple[str, int], list[tuple[str, str]]] = {}
        for upstream, database, table, checkpoint_ts, is_gone in (
            row for message in messages if message for row in message.rows
        ):
            tables = (
                gone.setdefault(upstream, []) if is_gone else there.setdefault((upstream, checkpoint_ts), [])
            )
            tables.append((database, table))
        try:
            for upstream, tables in gone.items():
                self._progress(session, settings.compat, upstream).remove(tables)
            for (upstream, checkpoint_ts), tables in there.items():
                self._progress(session, settings.compat, upstream).write(tables, checkpoint_ts)
        finally:
            session.close()

    def _progress(self, session: Session, compat, upstream: str) -> ProgressWriter:
        return ProgressWriter(session, ProgressStatements(compat, self.options["changefeed_id"], upstream))

    def abort(self, messages: list[Tables | None]) -> None:
        """Nothing was written."""
