"""Data source `tidemark_row_changes`: transactions become row changes, written as parquet by the tasks that decode them.

Name          tidemark_row_changes
Options       path      the folder to write to
              schemas   JSON list of [upstream_id, dispatcher_id, epoch, seq, file, offset, length]: where the Handshake and DDL frames are
                        whose tables are in force, by epoch of a dispatcher and from which seq on
              time_zones  JSON object: the time zone of the timestamps of an upstream, where that is not UTC
              Without options it is an empty relation of the columns of int_row_changes.
Rows          transactions: their batch, and their place in a log, best sorted by it
Guarantees    Payloads and JSON never travel between Python and the JVM, which is what the decoding of rows used to cost most. Nothing refers to the files before
              the commit, which also removes what earlier attempts left in the folder.
              A frame that cannot be decoded, or whose hidden columns hold what they cannot, gives one row with its place and `error_reason`, and nothing else.
Example       see macros/materializations/batched.sql
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceReader, WriterCommitMessage

from tidemark.errors import TidemarkError
from tidemark.joined_frames import JOINED_BYTES, BadFrame, DecodedFrames, FrameGroup, frames_at
from tidemark.log_schemas import LogSchemas
from tidemark.logs import open_frames
from tidemark.pooled_frames import can_be_pooled
from tidemark.sinks.row_batches import compacted, take
from tidemark.spark.pooled_row_changes import LoggedGroup, pooled_row_change_batch
from tidemark.spark.row_changes import ARROW_SCHEMA, SCHEMA, error_batch, row_change_batch
from tidemark.wire.errors import WireError

TRANSACTIONS = "upstream_id string, file string, `offset` bigint, seq bigint, batch_id bigint"
ROW_GROUP_BYTES = 64 * 1024 * 1024
# Few values, or the same one for many rows.
_DICTIONARY_COLUMNS = [
    *("upstream_id", "file", "dispatcher_id", "schema_name", "table_name", "op", "epoch", "offset"),
    *("table_id", "physical_table_id", "table_version", "table_info_version", "seq", "commit_ts", "start_ts"),
    "batch_id",
]
_STATISTICS_COLUMNS = [
    *("upstream_id", "schema_name", "table_name", "commit_ts", "old_key", "error_reason", "batch_id"),
]
BATCH_ID = pa.field("batch_id", pa.int64())
FILE_SCHEMA = ARROW_SCHEMA.append(BATCH_ID)
# So many cost less one by one than together.
_FEW_GROUPS = 4
# Where one of many groups is bad, it is looked for in parts of them.
_PARTS = 8


class RowChangeSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "tidemark_row_changes"

    def schema(self) -> str:
        return TRANSACTIONS if "path" in self.options else SCHEMA

    def reader(self, schema) -> NoRows:
        return NoRows()

    def writer(self, schema, overwrite) -> RowChangeWriter:
        return RowChangeWriter(dict(self.options))


class NoRows(DataSourceReader):
    def partitions(self):
        return []

    def read(self, partition):
        return iter(())


@dataclass
class Written(WriterCommitMessage):
    files: list[str]


class RowChangeWriter(DataSourceArrowWriter):
    def __init__(self, options: dict[str, str]):
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        schemas = LogSchemas(json.loads(self.options["schemas"]))
        zones = json.loads(self.options.get("time_zones", "{}"))
        files = RowFile(self.options["path"])
        for transactions in iterator:
            for batch_id, rows in row_change_batches(transactions, schemas, zones):
                files.add(batch_id, rows)
        return Written(files.close())

    def commit(self, messages: list[Written | None]) -> None:
        filesystem, root = filesystem_of(self.options["path"])
        kept = {file for message in messages if message for file in message.files}
        # Also where there are no rows: who reads the folder finds it.
        filesystem.create_dir(root)
        for entry in filesystem.get_file_info(fs.FileSelector(root)):
            if entry.path not in kept:
                filesystem.delete_file(entry.path)

    def abort(self, messages: list[Written | None]) -> None:
        """The next attempt removes what is there."""


def row_change_batches(
    transactions: pa.RecordBatch, schemas: LogSchemas, zones: Mapping[str, str]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The row changes of some transactions, with their batch. Tables with a few rows are decoded together, also those of several logs."""
    offsets, seqs = (transactions.column(name).to_numpy() for name in ("offset", "seq"))
    for batch_id, logs in groupby(_logs(transactions), lambda log: log[0][0]):
        small = _SmallGroups()
        for (_, upstream_id, file), inside in logs:
            wanted = _Wanted(offsets[inside], seqs[inside])
            zone = zones.get(upstream_id)
            for found in _frames(file, wanted, upstream_id, schemas):
                if isinstance(found, BadFrame):
                    yield batch_id, error_batch(upstream_id, file, found)
                    continue
                logged = LoggedGroup(upstream_id, file, found, zone, wanted.seqs)
                rows = small.add(logged) if can_be_pooled(found) else _rows_of_one(logged)
                yield from ((batch_id, batch) for batch in rows)
        yield from ((batch_id, batch) for batch in small.rest())


def _frames(
    file: str, wanted: _Wanted, upstream_id: str, schemas: LogSchemas
) -> Iterator[FrameGroup | BadFrame]:
    try:
        with open_frames(file) as log:
            yield from frames_at(wanted.frames.tolist(), upstream_id, log, schemas)
    except OSError as error:
        # The definitions of a table may be in an earlier file than its rows.
        missing = error.filename or file
        why = "its rows are" if str(missing) == file else f"the table definitions for rows of {file} are"
        raise TidemarkError(
            f"{missing}: {error}; {why} still to be read in this run: put the log back"
        ) from None


class _SmallGroups:
    """Groups of frames that wait for others to be decoded with."""

    def __init__(self) -> None:
        self._waiting: list[LoggedGroup] = []
        self._size = 0

    def add(self, logged: LoggedGroup) -> Iterator[pa.RecordBatch]:
        self._waiting.append(logged)
        self._size += logged.group.size
        if self._size >= JOINED_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        waiting, self._waiting, self._size = self._waiting, [], 0
        if waiting:
            yield from _rows_of_many(waiting)


def _rows_of_many(groups: Sequence[LoggedGroup]) -> Iterator[pa.RecordBatch]:
    """A frame that cannot be read costs its group the company of the others, and nobody else."""
    if len(groups) <= _FEW_GROUPS:
        for logged in groups:
            yield from _rows_of_one(logged)
        return
    try:
        yield pooled_row_change_batch(groups)
        return
    except WireError:
        size = -(-len(groups) // _PARTS)
    for first in range(0, len(groups), size):
        yield from _rows_of_many(groups[first : first + size])


def _rows_of_one(logged: LoggedGroup) -> Iterator[pa.RecordBatch]:
    upstream_id, file, group, zone, _ = logged
    decoded, bad = group.decode()
    # Transactions without rows are allowed.
    if decoded is not None and len(decoded.offset):
        rows, refused = _rows(upstream_id, file, _wanted_of(logged, decoded), group, zone)
        yield from rows
        bad = bad + refused
    for frame in bad:
        yield error_batch(upstream_id, file, frame)


def _rows(
    upstream_id: str, file: str, decoded: DecodedFrames, group: FrameGroup, zone: str | None
) -> tuple[list[pa.RecordBatch], list[BadFrame]]:
    """Rows as they stand in the warehouse, and the frames whose rows cannot stand there."""
    version = group.schema.table_info_version
    try:
        return [row_change_batch(upstream_id, file, decoded, version, zone)], []
    except WireError:
        # One of the frames that were joined, or more. The others have done nothing wrong.
        payloads = dict(group.frames)
    rows, bad = [], []
    for offset in np.unique(decoded.offset).tolist():
        which = np.flatnonzero(decoded.offset == offset)
        try:
            rows.append(row_change_batch(upstream_id, file, _some(decoded, which), version, zone))
        except WireError as error:
            bad.append(BadFrame(offset, payloads[offset], error.at(offset)))
    return rows, bad


def _some(decoded: DecodedFrames, which: np.ndarray) -> DecodedFrames:
    return DecodedFrames(
        compacted(take(decoded.batch, which)), decoded.offset[which], decoded.row_number[which]
    )


def _logs(transactions: pa.RecordBatch) -> Iterator[tuple[tuple[int, str, str], np.ndarray]]:
    """The logs that transactions are in, by batch, each with the numbers of its transactions."""
    names = ("batch_id", "upstream_id", "file")
    coded = [transactions.column(name).dictionary_encode() for name in names]
    codes = np.zeros(transactions.num_rows, np.int64)
    for column in coded:
        codes = codes * len(column.dictionary) + column.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    bounds = np.flatnonzero(np.diff(codes[order])) + 1
    for inside in np.split(order, bounds) if len(order) else ():
        yield tuple(transactions.column(name)[int(inside[0])].as_py() for name in names), inside


class _Wanted:
    """The transactions of one log, by frame."""

    def __init__(self, offsets: np.ndarray, seqs: np.ndarray):
        order = np.argsort(offsets, kind="stable")
        self._seqs = seqs[order].astype(np.uint64)
        # Offsets of the frames, ascending, and where the transactions of each begin.
        self.frames, starts = np.unique(offsets[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        self._spans = dict(zip(self.frames.tolist(), zip(starts.tolist(), ends, strict=True), strict=True))

    def seqs(self, offset: int) -> np.ndarray:
        first, last = self._spans[offset]
        return self._seqs[first:last]


def _wanted_of(logged: LoggedGroup, decoded: DecodedFrames) -> DecodedFrames:
    """The rows of decoded frames that are wanted: a frame may also hold transactions that were sent twice, or are not complete yet."""
    frames, first = np.unique(decoded.offset, return_index=True)
    last = np.append(first[1:], len(decoded.offset))
    seq = decoded.batch.changes.seq
    kept = np.zeros(len(seq), bool)
    for offset, low, high in zip(frames.tolist(), first, last, strict=True):
        kept[low:high] = np.isin(seq[low:high], logged.wanted(offset))
    if kept.all():
        return decoded
    return _some(decoded, np.flatnonzero(kept))


class RowFile:
    """The parquet file of one task, with row groups of bounded size; a task without rows writes none."""

    def __init__(self, path: str):
        self._filesystem, self._root = filesystem_of(path)
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = 0
        self._files: list[str] = []

    def add(self, batch_id: int, rows: pa.RecordBatch) -> None:
        numbered = rows.append_column(BATCH_ID, pa.array(np.full(rows.num_rows, batch_id)))
        self._waiting.append(numbered)
        self._bytes += rows.nbytes
        if self._bytes >= ROW_GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        table = pa.Table.from_batches(self._waiting, schema=FILE_SCHEMA).unify_dictionaries()
        self._waiting, self._bytes = [], 0
        if self._writer is None:
            self._filesystem.create_dir(self._root)
            self._files.append(f"{self._root}/{uuid4().hex}.parquet")
            self._writer = pq.ParquetWriter(
                self._files[-1],
                FILE_SCHEMA,
                filesystem=self._filesystem,
                use_dictionary=_DICTIONARY_COLUMNS,
                write_statistics=_STATISTICS_COLUMNS,
                compression="snappy",
                store_schema=False,
            )
        self._writer.write_table(table, row_group_size=table.num_rows or 1)

    def close(self) -> list[str]:
        if self._waiting:
            self._write()
        if self._writer is not None:
            self._writer.close()
        return self._files


def filesystem_of(path: str) -> tuple[fs.FileSystem, str]:
    """A folder as Spark names it: file:/folder, or a URI of another file system."""
    if path.startswith("file:"):
        return fs.LocalFileSystem(), "/" + path.removeprefix("file:").lstrip("/")
    if "://" not in path:
        return fs.LocalFileSystem(), path
    return fs.FileSystem.from_uri(path)
