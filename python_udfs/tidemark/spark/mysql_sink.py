"""Data source `tidemark_mysql`, writer: decided rows become statements on TiDB or MySQL.

Name          tidemark_mysql
Options       settings  changefeed, sink URI and compat, as spark/sink_settings.py makes it: passwords are expanded in the tasks
              schemas   places of the tables in force, as for tidemark_row_changes
Rows          decisions (sinks/logged_rows.py). Active-active: all rows of a key in one task. Otherwise all rows of a table, in order
Guarantees    When the insert ends, all rows are committed. When it fails, some are: the same rows again end in the right state (tables without a key
              excepted), since every statement says what a row is, not how it changes. Tasks must not run twice at the same time: no speculation.
Example       see models/sinks/sink_tidb.sql
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from tidemark.dispatch.routing import Routing
from tidemark.log_schemas import LogSchemas
from tidemark.sinks.logged_rows import logged_rows
from tidemark.sinks.mysql.decided import write_decided
from tidemark.spark.sink_settings import settings_of

SCHEMA = "upstream_id string, file string, `offset` bigint, row_number int, policy_op string"


class MysqlSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "tidemark_mysql"

    def schema(self) -> str:
        return SCHEMA

    def writer(self, schema, overwrite) -> MysqlWriter:
        return MysqlWriter(dict(self.options))


@dataclass
class Committed(WriterCommitMessage):
    rows: int


class MysqlWriter(DataSourceArrowWriter):
    def __init__(self, options: dict[str, str]):
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Committed:
        settings = settings_of(self.options)
        schemas = LogSchemas(json.loads(self.options["schemas"]), Routing.of(settings))
        return Committed(write_decided(settings, logged_rows(iterator, schemas)).rows)

    def commit(self, messages: list[Committed | None]) -> None:
        """Every task has committed."""

    def abort(self, messages: list[Committed | None]) -> None:
        """What is committed stays; the checkpoint does not move, so the next run writes it again."""
