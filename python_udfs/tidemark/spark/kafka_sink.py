"""Data source `tidemark_kafka`, writer: decided rows and DDL statements become messages of Kafka topics.

Name          tidemark_kafka
Options       settings  changefeed, sink URI and compat, as spark/sink_settings.py makes it: passwords are expanded in the tasks
              prepared  what was found out about the topics (sinks/kafka/prepare.py), as JSON
              schemas   places of the tables in force, as for tidemark_row_changes
              up_to_ts  the end of the range: the watermark when all is sent
Rows          decisions with topic and partition (sinks/kafka/decided.py), all of a partition in one task and in the order of the partition
Guarantees    When the insert ends, every message is acknowledged by all in-sync replicas. When it fails, some were sent: the next run sends the range again, so a message may
              be there twice, as with TiCDC. Within a partition rows are ordered by commit ts in each run. Tasks must not run twice at the same time: no speculation.
Example       see models/sinks/sink_kafka.sql
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from tidemark.config import Settings
from tidemark.dispatch.routing import Routing
from tidemark.log_schemas import LogSchemas
from tidemark.sinks.kafka.decided import send_decided, send_watermark
from tidemark.sinks.kafka.prepare import Prepared
from tidemark.spark.sink_settings import settings_of

SCHEMA = (
    "upstream_id string, file string, `offset` bigint, row_number int, policy_op string,"
    " topic string, partition int"
)


class KafkaSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "tidemark_kafka"

    def schema(self) -> str:
        return SCHEMA

    def writer(self, schema, overwrite) -> KafkaWriter:
        return KafkaWriter(dict(self.options))


@dataclass
class Acknowledged(WriterCommitMessage):
    messages: int


class KafkaWriter(DataSourceArrowWriter):
    def __init__(self, options: dict[str, str]):
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Acknowledged:
        settings = self._settings()
        schemas = LogSchemas(json.loads(self.options["schemas"]), Routing.of(settings))
        return Acknowledged(send_decided(settings, iterator, schemas))

    def commit(self, messages: list[Acknowledged | None]) -> None:
        send_watermark(self._settings(), self._prepared().watermark_topics, int(self.options["up_to_ts"]))

    def abort(self, messages: list[Acknowledged | None]) -> None:
        """What is sent stays; the checkpoint does not move, so the next run sends it again."""

    def _prepared(self) -> Prepared:
        return Prepared(**json.loads(self.options["prepared"]))

    def _settings(self) -> Settings:
        return self._prepared().settings(settings_of(self.options))
