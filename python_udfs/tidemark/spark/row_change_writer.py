"""Data source `tidemark_row_changes`: transactions become row changes, written as parquet by the tasks that decode them.

Name          tidemark_row_changes
Options       path      folder of the table; a batch goes to {path}/batch_id={batch}
              schemas   JSON list of [upstream_id, dispatcher_id, epoch, seq, file, offset, length]: where the Handshake and DDL frames are
                        whose tables are in force, by epoch of a dispatcher and from which seq on
              batches   JSON list of the batches to write
              time_zones  JSON object: the time zone of the timestamps of an upstream, where that is not UTC
              Without options it is an empty relation of the columns of int_row_changes.
Rows          transactions: their batch, and their place in a log, best sorted by it
Guarantees    Payloads and JSON never travel between Python and the JVM, which is what the decoding of rows used to cost most. Nothing refers to the files before
              the commit, which also removes what earlier attempts left in the folders of these batches.
              A frame that cannot be decoded, or whose hidden columns hold what they cannot, gives one row with its place and `error_reason`, and nothing else.
Example       see macros/materializations/decoded.sql
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
]
# So many cost less one by one than together.
_FEW_GROUPS = 4
# Where one of many groups is bad, it is looked for in parts of them.
_PARTS = 8
_STATISTICS_COLUMNS = ["upstream_id", "schema_name", "table_name", "commit_ts", "old_key", "error_reason"]


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
        files = BatchFiles(self.options["path"])
        for transactions in iterator:
            for batch_id, rows in row_change_batches(transactions, schemas, zones):
                files.add(batch_id, rows)
        return Written(files.close())

    def commit(self, messages: list[Written | None]) -> None:
        filesystem, root = filesystem_of(self.options["path"])
        kept = {file for message in messages if message for file in message.files}
        for batch_id in json.loads(self.options["batches"]):
            folder = fs.FileSelector(f"{root}/batch_id={batch_id}", allow_not_found=True)
            for entry in filesystem.get_file_info(folder):
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
        raise TidemarkError(
            f"{file}: {error}; it was planned for this run and its rows are still to be read: put the log back"
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


class BatchFiles:
    """The parquet files of one task: one per batch, with row groups of bounded size."""

    def __init__(self, path: str):
        self._filesystem, self._root = filesystem_of(path)
        self._writers: dict[int, pq.ParquetWriter] = {}
        self._waiting: dict[int, list[pa.RecordBatch]] = {}
        self._bytes: dict[int, int] = {}
        self._files: list[str] = []

    def add(self, batch_id: int, rows: pa.RecordBatch) -> None:
        self._waiting.setdefault(batch_id, []).append(rows)
        self._bytes[batch_id] = self._bytes.get(batch_id, 0) + rows.nbytes
        if self._bytes[batch_id] >= ROW_GROUP_BYTES:
            self._write(batch_id)

    def _write(self, batch_id: int) -> None:
        table = pa.Table.from_batches(self._waiting.pop(batch_id), schema=ARROW_SCHEMA).unify_dictionaries()
        del self._bytes[batch_id]
        if batch_id not in self._writers:
            folder = f"{self._root}/batch_id={batch_id}"
            self._filesystem.create_dir(folder)
            self._files.append(f"{folder}/{uuid4().hex}.parquet")
            self._writers[batch_id] = pq.ParquetWriter(
                self._files[-1],
                ARROW_SCHEMA,
                filesystem=self._filesystem,
                use_dictionary=_DICTIONARY_COLUMNS,
                write_statistics=_STATISTICS_COLUMNS,
                compression="snappy",
                store_schema=False,
            )
        self._writers[batch_id].write_table(table, row_group_size=table.num_rows or 1)

    def close(self) -> list[str]:
        for batch_id in list(self._waiting):
            self._write(batch_id)
        for writer in self._writers.values():
            writer.close()
        return self._files


def filesystem_of(path: str) -> tuple[fs.FileSystem, str]:
    """A folder as Spark names it: file:/folder, or a URI of another file system."""
    if path.startswith("file:"):
        return fs.LocalFileSystem(), "/" + path.removeprefix("file:").lstrip("/")
    if "://" not in path:
        return fs.LocalFileSystem(), path
    return fs.FileSystem.from_uri(path)
