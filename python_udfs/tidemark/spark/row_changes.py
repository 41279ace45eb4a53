"""Data source `tidemark_row_changes`: the row changes of event logs, decoded with the schema in force.

Name          tidemark_row_changes
Options       segments  JSON list of [batch_id, upstream_id, file, start, end, log size], as for tidemark_events
              schemas   JSON list of [upstream_id, dispatcher_id, epoch, seq, file, offset, length]: where the Handshake and DDL frames are
                        whose tables are in force, by epoch of a dispatcher and from which seq on
              after_ts, up_to_ts  JSON objects upstream_id -> ts: transactions outside (after, up to] stay in the reader
Partitioning  neighbouring segments together, up to 32 MiB each
Guarantees    Frames are decoded where they are read: a payload never travels. A batch that cannot be decoded gives one row with its place and
              `error_reason`, and nothing else. Rows of one frame come in the order of the log.
Example       see macros/log/row_changes.sql
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader

from tidemark.encode.warehouse import key_texts, value_texts
from tidemark.joined_frames import BadFrame, DecodedFrames, FrameGroup, FrameJoiner
from tidemark.log_schemas import LogSchemas
from tidemark.logs import open_log, read_exactly
from tidemark.spark.event_log import PARTITION_BYTES, QUARANTINE_BYTES, Segment, pack_segments
from tidemark.wire.errors import WireError
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.framing import FrameRun, scan_runs
from tidemark.wire.header import HEADER_SIZE
from tidemark.wire.header_columns import is_known
from tidemark.wire.rows import NO_ROW, OP_NAMES, RowBatch
from tidemark.wire.table_info import TableInfo
from tidemark.wire.transactions import read_transactions

ARROW_SCHEMA = pa.schema(
    [
        ("upstream_id", pa.string()),
        ("file", pa.string()),
        ("offset", pa.int64()),
        ("dispatcher_id", pa.string()),
        ("epoch", pa.int64()),
        ("seq", pa.int64()),
        ("row_number", pa.int32()),
        ("schema_name", pa.string()),
        ("table_name", pa.string()),
        ("table_id", pa.int64()),
        ("physical_table_id", pa.int64()),
        ("table_version", pa.int64()),
        ("table_info_version", pa.int64()),
        ("start_ts", pa.int64()),
        ("commit_ts", pa.int64()),
        ("op", pa.string()),
        ("row_key", pa.binary()),
        ("key", pa.string()),
        ("pre", pa.string()),
        ("post", pa.string()),
        ("is_active_active", pa.bool_()),
        ("is_soft_delete", pa.bool_()),
        ("old_softdelete_time", pa.string()),
        ("new_softdelete_time", pa.string()),
        ("origin_ts", pa.int64()),
        ("error_reason", pa.string()),
        ("error_message", pa.string()),
        ("error_bytes", pa.binary()),
    ]
)
_SQL_TYPES = {
    pa.int64(): "bigint",
    pa.int32(): "int",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
}
SCHEMA = ", ".join(f"`{field.name}` {_SQL_TYPES[field.type]}" for field in ARROW_SCHEMA)

# The hidden columns of soft-delete and active-active tables.
ORIGIN_TS, SOFTDELETE_TIME = "_tidb_origin_ts", "_tidb_softdelete_time"


class RowChangeSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "tidemark_row_changes"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema) -> RowChangeReader:
        return RowChangeReader(self.options)


class RowChangeReader(DataSourceReader):
    def __init__(self, options):
        self.segments = [Segment(*row) for row in json.loads(options.get("segments", "[]"))]
        self.schemas = json.loads(options.get("schemas", "[]"))
        self.after_ts = {key: int(ts) for key, ts in json.loads(options.get("after_ts", "{}")).items()}
        self.up_to_ts = {key: int(ts) for key, ts in json.loads(options.get("up_to_ts", "{}")).items()}

    def partitions(self):
        return pack_segments(self.segments, PARTITION_BYTES)

    def read(self, partition) -> Iterator[pa.RecordBatch]:
        schemas = LogSchemas(self.schemas)
        for segment in partition.segments:
            with open_log(segment.file) as log:
                for found in self._joined(log, segment, schemas):
                    if isinstance(found, BadFrame):
                        yield _error_batch(segment, found)
                        continue
                    decoded, bad = found.decode()
                    if decoded is not None:
                        version = found.schema.table_info_version
                        yield row_change_batch(segment.upstream_id, segment.file, decoded, version)
                    for frame in bad:
                        yield _error_batch(segment, frame)

    def _joined(self, log, segment: Segment, schemas: LogSchemas) -> Iterator[FrameGroup | BadFrame]:
        joiner = FrameJoiner()
        for offset, length in self._frames(log, segment):
            payload = memoryview(read_exactly(log, offset + HEADER_SIZE, length - HEADER_SIZE))
            try:
                heads = read_transactions([payload])[0].heads
                if not self._wanted(segment.upstream_id, heads["commit_ts"]):
                    continue
                dispatcher_id = heads["dispatcher_id"][0].tobytes()
                place = int(heads["epoch"][0]), int(heads["seq"][0])
                schema = schemas.in_force(segment.upstream_id, dispatcher_id, *place)
            except WireError as error:
                yield BadFrame(offset, payload, error)
                continue
            yield from joiner.add(dispatcher_id, schema, offset, payload)
        yield from joiner.rest()

    @staticmethod
    def _frames(log, segment: Segment) -> Iterator[tuple[int, int]]:
        for run in scan_runs(log, segment.start, segment.end, segment.log_size):
            if isinstance(run, FrameRun):
                chosen = (run.event_type == BatchDMLEvent.type_id) & is_known(run.event_type, run.version)
                yield from zip(run.offset[chosen].tolist(), run.length[chosen].tolist(), strict=True)

    def _wanted(self, upstream_id: str, commit_ts: np.ndarray) -> bool:
        after, up_to = self.after_ts.get(upstream_id, 0), self.up_to_ts.get(upstream_id, 0)
        return bool(((commit_ts > after) & (commit_ts <= up_to)).any())


def _error_batch(segment: Segment, frame: BadFrame) -> pa.RecordBatch:
    row = {
        "upstream_id": segment.upstream_id,
        "file": segment.file,
        "offset": frame.offset,
        "error_reason": frame.error.reason,
        "error_message": str(frame.error),
        "error_bytes": bytes(frame.payload[:QUARANTINE_BYTES]),
    }
    return pa.RecordBatch.from_pylist([row], schema=ARROW_SCHEMA)


def row_change_batch(
    upstream_id: str, file: str, decoded: DecodedFrames, table_info_version: int
) -> pa.RecordBatch:
    """Decoded rows as they stand in the warehouse."""
    batch = decoded.batch
    table, changes, count = batch.table, batch.changes, len(batch.changes)
    values = value_texts(batch.columns, table)
    columns = {
        "upstream_id": _constant(upstream_id, count),
        "file": _constant(file, count),
        "offset": pa.array(decoded.offset),
        "dispatcher_id": _constant(batch.dispatcher_id.hex(), count),
        "epoch": pa.array(changes.epoch.astype(np.int64)),
        "seq": pa.array(changes.seq.astype(np.int64)),
        "row_number": pa.array(decoded.row_number.astype(np.int32)),
        "schema_name": _constant(table.schema, count),
        "table_name": _constant(table.table, count),
        "table_id": _constant(table.table_id, count),
        "physical_table_id": pa.array(changes.physical_table_id),
        "table_version": _constant(table.version, count),
        "table_info_version": _constant(table_info_version, count),
        "start_ts": pa.array(changes.start_ts.astype(np.int64)),
        "commit_ts": pa.array(changes.commit_ts.astype(np.int64)),
        "op": _OPS.take(pa.array(changes.op)),
        "row_key": changes.row_key,
        "key": _keys(batch),
        "pre": _images(values, changes.pre),
        "post": _images(values, changes.post),
        "is_active_active": _constant(table.is_active_active, count),
        "is_soft_delete": _constant(table.is_soft_delete, count),
        "old_softdelete_time": _hidden(batch, SOFTDELETE_TIME, changes.pre, pa.string()),
        "new_softdelete_time": _hidden(batch, SOFTDELETE_TIME, changes.post, pa.string()),
        "origin_ts": _hidden(batch, ORIGIN_TS, changes.post, pa.int64()),
        "error_reason": pa.nulls(count, pa.string()),
        "error_message": pa.nulls(count, pa.string()),
        "error_bytes": pa.nulls(count, pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns, schema=ARROW_SCHEMA)


_OPS = pa.array([OP_NAMES[number] for number in range(len(OP_NAMES))])


def _constant(value, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value), count)


def _images(values: pa.StringArray, rows: np.ndarray) -> pa.Array:
    return values.take(pa.array(rows, mask=rows == NO_ROW))


def _hidden(batch: RowBatch, name: str, rows: np.ndarray, kind: pa.DataType) -> pa.Array:
    """A hidden column of the given images; null for tables that do not have it."""
    if name not in batch.table.columns_by_name:
        return pa.nulls(len(rows), kind)
    return batch.columns.column(name).cast(kind).take(pa.array(rows, mask=rows == NO_ROW))


def _keys(batch: RowBatch) -> pa.Array:
    """The handle key of each row, null where the table has none."""
    changes, table = batch.changes, batch.table
    if not table.handle_key:
        return pa.nulls(len(changes), pa.string())
    rows = np.where(changes.post == NO_ROW, changes.pre, changes.post)
    return key_texts(batch.columns.select(list(table.handle_key)), _handle_columns(table)).take(
        pa.array(rows)
    )


def _handle_columns(table: TableInfo):
    return [table.columns_by_name[name] for name in table.handle_key]
