"""Which folder a row change goes to.

A *folder stream* is what goes into the files of one folder in one order, by commit ts: the rows of one table version, and of one partition
(with the partition separator), one date (with a date separator) and one dispatcher (with tables across nodes). It is the unit of parallel work: one
task writes one stream, so that files do not depend on the number of tasks.

The version in a stream is the dispatcher's `table_info_version`. Which version folder it becomes is decided when it is published
(schema_versions.py). The date is that of the commit ts, in UTC or the zone of the URI's `time-zone`.

The order inside a stream is (commit ts, start ts, physical table id, seq). Whatever has the same commit and start ts is one transaction of the table and stays in
one file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import timezone, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from tidemark.dispatch.routing import Routing
from tidemark.encode import paths
from tidemark.encode.ddl import DdlStatement
from tidemark.encode.parts import runs
from tidemark.encode.paths import DataFolder
from tidemark.encode.routed_ddl import routed_statement
from tidemark.encode.schema_file import SchemaFile
from tidemark.sinks.storage.errors import StorageError
from tidemark.wire.ids import id_text
from tidemark.wire.rows import RowBatch
from tidemark.wire.table_info import TableInfo

if TYPE_CHECKING:
    from tidemark.config import Settings

_TS_LOGICAL_BITS = 18
# No zone has changed its distance from UTC inside of one of these since TiDB exists.
_QUARTER_HOUR_MS = 15 * 60 * 1000


@dataclass(frozen=True, order=True)
class FolderStream:
    schema: str
    table: str
    version: int
    # Physical table id that is the table's folder, with table-id paths.
    table_id: int | None = None
    # Physical table id of a partition with a folder of its own.
    partition: int | None = None
    date: str = ""
    # Printed dispatcher id, with tables across nodes.
    dispatcher: str = ""

    def key(self) -> str:
        """A short name, the same on every machine."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def folder(self, version: int) -> DataFolder:
        return DataFolder(self.schema, self.table, version, self.partition, self.date, self.table_id)


class StorageLayout:
    """The settings that decide about paths."""

    def __init__(self, settings: Settings):
        options, sink = settings.uri.options, settings.sink
        self.digits = sink.file_index_digit
        self.table_id_paths = options.use_table_id_as_path
        self.column_ids = sink.cloud_storage.output_column_id
        self.across_nodes = settings.changefeed.scheduler.enable_table_across_nodes
        self.encode_names = settings.compat.encode_path_names
        self.design_schema_files = settings.compat.schema_file_design_fields
        self._partitions = sink.enable_partition_separator
        self._date_separator = sink.date_separator
        self._zone = _zone(options.time_zone)
        self.routing = Routing.of(settings)

    def stream(
        self,
        table: TableInfo,
        table_info_version: int,
        physical_table_id: int,
        commit_ts: int,
        dispatcher_id: bytes = b"",
    ) -> FolderStream:
        """The stream of a row."""
        return FolderStream(
            table.target_schema,
            table.target_table,
            table_info_version,
            physical_table_id if self.table_id_paths else None,
            physical_table_id
            if self._partitions and table.is_partition and not self.table_id_paths
            else None,
            paths.date_folder(commit_ts, self._date_separator, self._zone),
            id_text(dispatcher_id) if self.across_nodes else "",
        )

    def split(self, batch: RowBatch, table_info_version: int) -> list[tuple[FolderStream, np.ndarray]]:
        """The streams of a batch, each with the positions of its row changes; order inside a stream is kept."""
        changes = batch.changes
        if len(changes) == 0:
            return []
        quarters = (changes.commit_ts >> np.uint64(_TS_LOGICAL_BITS)).astype(np.int64) // _QUARTER_HOUR_MS
        # Rows come by commit ts, so that runs are few and rows need not be sorted.
        first, run = runs(changes.physical_table_id, quarters)
        tables, table = np.unique(changes.physical_table_id[first], return_inverse=True)
        times, time = np.unique(quarters[first], return_inverse=True)
        places, place = np.unique(table * len(times) + time, return_inverse=True)
        streams: dict[FolderStream, int] = {}
        numbers = []
        for code in places.tolist():
            table_id, quarter = int(tables[code // len(times)]), int(times[code % len(times)])
            ts = quarter * _QUARTER_HOUR_MS << _TS_LOGICAL_BITS
            stream = self.stream(batch.table, table_info_version, table_id, ts, batch.dispatcher_id)
            numbers.append(streams.setdefault(stream, len(streams)))
        if len(streams) == 1:
            return [(stream, np.arange(len(changes)))]
        of_row = np.array(numbers)[place][run]
        return [(stream, np.flatnonzero(of_row == number)) for stream, number in streams.items()]

    def data_folder(self, folder: DataFolder) -> str:
        return paths.data_folder(folder, encode=self.encode_names)

    def index_path(self, stream: FolderStream, version: int) -> str:
        return paths.index_file(stream.folder(version), stream.dispatcher, encode=self.encode_names)

    def file_name(self, stream: FolderStream, number: int, extension: str) -> str:
        return paths.file_name(number, extension, self.digits, stream.dispatcher)

    def schema_file_path(self, file: SchemaFile, table_id: int | None) -> str:
        return file.path(table_id if self.table_id_paths else None, encode=self.encode_names)

    def schema_file_content(self, file: SchemaFile) -> bytes:
        return file.content(design=self.design_schema_files)

    def schema_file_of(self, table: TableInfo, version: int) -> SchemaFile:
        """For a table that no DDL statement was seen for."""
        return SchemaFile.of_table(table, version, self.column_ids)

    def schema_file_of_ddl(self, ddl: DdlStatement) -> SchemaFile:
        return SchemaFile.of_ddl(routed_statement(ddl, self.routing), self.column_ids)


def _zone(name: str) -> tzinfo:
    if name.upper() in ("", "UTC"):
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise StorageError(
            f"time-zone {name!r} of the sink URI is not known here; give one such as UTC or Asia/Shanghai"
        ) from None
