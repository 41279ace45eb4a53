"""Writer of the data source `tidemark_storage`: decided rows become files of a storage tree.

Name          tidemark_storage
Options       settings           changefeed, sink URI and compat, as spark/sink_settings.py makes it
              lease              token of the lease of the tree, which the driver holds over the whole run
              after_ts, up_to_ts the range of the run; with takes_late_rows (true, false) there are rows from before it, too
              position           how much of the logs the tree has then (sinks/storage/record.py), as JSON
              schemas            places of the tables in force, as for tidemark_row_changes
              ddl                JSON list of [file, offset, length]: the DDL statements of the range, by finish ts
Rows          decisions in blocks (sinks/decision_blocks.py), all of a folder in one task, sorted by folder and then as their rows are to stand in the files
Guarantees    Tasks only stage; the commit publishes data, then index, then checkpoint. A task may be retried or run twice. See docs/storage-sink.md.
Example       see models/sinks/sink_storage.sql
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from tidemark.dispatch.changefeed_filter import ChangefeedFilter
from tidemark.dispatch.routing import Routing
from tidemark.log_schemas import LogSchemas
from tidemark.logs import open_log, read_exactly
from tidemark.sinks.decision_blocks import decisions_of
from tidemark.sinks.logged_rows import logged_rows
from tidemark.sinks.storage.filesystem import store_of
from tidemark.sinks.storage.layout import StorageLayout
from tidemark.sinks.storage.lease import Lease
from tidemark.sinks.storage.publish import publish
from tidemark.sinks.storage.record import Position
from tidemark.sinks.storage.report import Report, write_report
from tidemark.sinks.storage.schema_versions import schema_files_of_ddl
from tidemark.sinks.storage.span import Span
from tidemark.sinks.storage.staging import stage_decided
from tidemark.sinks.storage.writer import StagedStream
from tidemark.spark.sink_settings import settings_of
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.registry import decode

SCHEMA = "upstream_id string, file string, `offset` bigint, block int, sent_rows bigint, deleted_rows bigint"


@dataclass
class Staged(WriterCommitMessage):
    # StagedStream as JSON.
    streams: list[str]


class StorageWriter(DataSourceArrowWriter):
    def __init__(self, options: dict[str, str]):
        self.options = options
        self.span = Span(
            int(options["after_ts"]), int(options["up_to_ts"]), json.loads(options["takes_late_rows"])
        )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        settings = settings_of(self.options)
        schemas = LogSchemas(json.loads(self.options["schemas"]), Routing.of(settings))
        rows = logged_rows(decisions_of(iterator), schemas)
        return Staged(
            [stream.to_json() for stream in stage_decided(store_of(settings), self.span, settings, rows)]
        )

    def commit(self, messages: list[Staged | None]) -> None:
        settings = settings_of(self.options)
        store, layout = store_of(settings), StorageLayout(settings)
        lease = Lease.attach(store, self.options["lease"])
        staged = [StagedStream.from_json(text) for message in messages if message for text in message.streams]
        kept, warnings = ChangefeedFilter(settings.changefeed), []
        schema_files: dict[str, bytes] = {}
        for event in self._ddl_events():
            schema_files |= schema_files_of_ddl(event, layout, warnings, kept)
        published = publish(
            store,
            lease,
            layout,
            self.span,
            staged,
            schema_files,
            accept_missing_files=settings.accepts_missing_files,
            position=Position(**json.loads(self.options["position"])),
        )
        files = [file for stream in staged for file in stream.files]
        rows, warnings = sum(file.rows for file in files), [*warnings, *published.warnings]
        write_report(store, Report(self.span.start, self.span.end, rows, len(files), warnings))

    def abort(self, messages: list[Staged | None]) -> None:
        """What was staged is removed by the next run; a publication that began is finished by it."""

    def _ddl_events(self) -> Iterator[DDLEvent]:
        for file, offset, length in json.loads(self.options["ddl"]):
            with open_log(file) as log:
                yield decode(read_exactly(log, offset, length), offset=offset)
