"""Data source `tidemark_events`: the frames of event logs.

Name          tidemark_events
Options       segments  JSON list of [batch_id, upstream_id, file, start, end, log size]: what to read, as log_plan.py plans it
              family    dml, ddl, resolved, syncpoint, handshake or control: other frames, and versions that nobody can decode, stay in the
                        reader (default: all frames, and corrupt ranges too)
              payload   `full` (default), `transactions`: without what a BatchDML says of rows, or `header`: only the first 16 bytes
                        of each frame, and more of those of unknown types and versions
Partitioning  neighbouring segments together, up to 32 MiB each, or 256 MiB where row chunks stay in the log; a small file counts as 256 KiB
Guarantees    Every frame of a segment once, with its place. Bytes that belong to no frame come as a row with `skip_reason` and at most
              QUARANTINE_BYTES of them. Memory is bounded by BATCH_BYTES, or by one frame where a frame is larger.
Example       create temporary view frames using tidemark_events options (segments '[[1, "1", "/data/log/a.bin", 0, 4096, 4096]]')
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from tidemark.logs import open_log, read_exactly
from tidemark.wire.columns.cells import plain_bytes
from tidemark.wire.errors import WireError
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.framing import HEADER_DTYPE, MAGIC_WORD, FrameRun, Skipped, TornTail, scan_runs
from tidemark.wire.header import HEADER_SIZE, write_header
from tidemark.wire.header_columns import is_known
from tidemark.wire.registry import EVENT_TYPES
from tidemark.wire.transactions import without_rows

PARTITION_BYTES = 32 * 1024 * 1024
BATCH_BYTES = 8 * 1024 * 1024
BATCH_ROWS = 64 * 1024
QUARANTINE_BYTES = 4096
# A task could read this part of its bytes in the time that opening a file takes.
_OPENING_PART = 128
# Record batches below this part of their limit wait for others, so that thousands of small files do not travel one by one.
_SMALL_BATCH_PART = 8

SCHEMA = "batch_id bigint, upstream_id string, file string, `offset` bigint, length bigint, skip_reason string, frame binary"
ARROW_SCHEMA = pa.schema(
    [
        ("batch_id", pa.int64()),
        ("upstream_id", pa.string()),
        ("file", pa.string()),
        ("offset", pa.int64()),
        ("length", pa.int64()),
        ("skip_reason", pa.string()),
        ("frame", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class Segment:
    batch_id: int
    upstream_id: str
    file: str
    start: int
    end: int
    log_size: int


class EventLogSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "tidemark_events"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema) -> EventLogReader:
        return EventLogReader(self.options)


class Segments(InputPartition):
    def __init__(self, segments: list[Segment]):
        self.segments = segments


def pack_segments(segments: list[Segment], limit: int) -> list[Segments]:
    """Neighbouring segments together, up to `limit` bytes; Spark wants one partition even where there is nothing to read."""
    packed: list[list[Segment]] = []
    room = 0
    for segment in segments:
        size = max(segment.end - segment.start, PARTITION_BYTES // _OPENING_PART)
        if not packed or size > room:
            packed.append([])
            room = limit
        packed[-1].append(segment)
        room -= size
    return [Segments(chosen) for chosen in packed] or [Segments([])]


class EventLogReader(DataSourceReader):
    def __init__(self, options):
        self.segments = [Segment(*row) for row in json.loads(options.get("segments", "[]"))]
        family = options.get("family")
        self.event_types = (
            [kind.id for kind in EVENT_TYPES.values() if kind.family == family] if family else None
        )
        self.payload = options.get("payload", "full")
        self.header_only = self.payload == "header"
        self.moves_chunks = self.payload == "full" and family in (None, "dml")

    def partitions(self) -> list[Segments]:
        # Row chunks are most of a log. Where they stay in it, a task is given more of the log: starting one costs more than the scan.
        return pack_segments(self.segments, PARTITION_BYTES * (1 if self.moves_chunks else 8))

    def read(self, partition: Segments) -> Iterator[pa.RecordBatch]:
        return _join_small(self._read(partition))

    def _read(self, partition: Segments) -> Iterator[pa.RecordBatch]:
        for segment in partition.segments:
            with open_log(segment.file) as log:
                for piece in _join_runs(scan_runs(log, segment.start, segment.end, segment.log_size)):
                    if isinstance(piece, FrameRun):
                        yield from self._frames(log, segment, piece)
                    elif isinstance(piece, Skipped) and self.event_types is None:
                        yield self._skipped(log, segment, piece)

    def _frames(self, log, segment: Segment, run: FrameRun) -> Iterator[pa.RecordBatch]:
        known = is_known(run.event_type, run.version)
        if self.event_types is not None:
            chosen = known & np.isin(run.event_type, self.event_types)
            run, known = run.filter(chosen), known[chosen]
        shipped = run.length
        if self.header_only:
            # What nobody can decode goes to quarantine with its bytes.
            shipped = np.minimum(run.length, np.where(known, HEADER_SIZE, QUARANTINE_BYTES))
        for part in _bounded_slices(shipped):
            offset, length = run.offset[part], run.length[part]
            if self.header_only and known[part].all():
                frames = _write_headers(length, run.event_type[part], run.version[part])
            else:
                frames = _read_frames(log, offset, shipped[part])
            if self.payload == "transactions":
                frames = _without_rows(frames, run.event_type[part], run.version[part])
            yield _batch(segment, offset, length, pa.nulls(len(frames), pa.string()), frames)

    @staticmethod
    def _skipped(log, segment: Segment, piece: Skipped) -> pa.RecordBatch:
        log.seek(piece.offset)
        kept = log.read(min(piece.length, QUARANTINE_BYTES))
        return _batch(
            segment,
            np.array([piece.offset]),
            np.array([piece.length]),
            pa.array([piece.error.reason]),
            pa.array([kept], type=pa.binary()),
        )


def _join_runs(pieces: Iterator[FrameRun | Skipped | TornTail]) -> Iterator[FrameRun | Skipped | TornTail]:
    """The same pieces with neighbouring runs together, so that a log of big frames does not travel one frame at a time."""
    waiting: list[FrameRun] = []
    waiting_bytes = 0
    for piece in pieces:
        joinable = isinstance(piece, FrameRun)
        if waiting and (not joinable or waiting_bytes >= BATCH_BYTES):
            yield FrameRun(*(np.concatenate(columns) for columns in zip(*waiting, strict=True)))
            waiting, waiting_bytes = [], 0
        if joinable:
            waiting.append(piece)
            waiting_bytes += piece.end - int(piece.offset[0])
        else:
            yield piece
    if waiting:
        yield FrameRun(*(np.concatenate(columns) for columns in zip(*waiting, strict=True)))


def _join_small(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, with small record batches that follow each other together."""
    limit = BATCH_BYTES // _SMALL_BATCH_PART
    waiting: list[pa.RecordBatch] = []
    waiting_bytes = 0
    for batch in batches:
        size = batch.nbytes
        if waiting and waiting_bytes + size > limit:
            yield _as_one(waiting)
            waiting, waiting_bytes = [], 0
        if size > limit:
            yield batch
        elif batch.num_rows:
            waiting.append(batch)
            waiting_bytes += size
    if waiting:
        yield _as_one(waiting)


def _as_one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _bounded_slices(shipped: np.ndarray) -> Iterator[slice]:
    """Slices of at most BATCH_BYTES and BATCH_ROWS, or of one frame."""
    first, count = 0, len(shipped)
    total = np.concatenate([[0], np.cumsum(shipped)])
    while first < count:
        last = int(np.searchsorted(total, total[first] + BATCH_BYTES, side="right")) - 1
        last = min(max(last, first + 1), first + BATCH_ROWS, count)
        yield slice(first, last)
        first = last


def _write_headers(length: np.ndarray, event_type: np.ndarray, version: np.ndarray) -> pa.Array:
    """The headers of frames. The scan has read them, so they are written again instead of read again."""
    headers = np.empty(len(length), dtype=HEADER_DTYPE)
    headers["magic"] = MAGIC_WORD
    headers["type"], headers["version"] = event_type, version
    headers["length"] = length - HEADER_SIZE
    return _binary_array(np.full(len(length), HEADER_SIZE), headers)


def _read_frames(log, offset: np.ndarray, length: np.ndarray) -> pa.Array:
    """The bytes at [offset, offset + length); without copying them where no other frame stands between."""
    start, ends = int(offset[0]), offset + length
    span, total = int(ends[-1]) - start, int(length.sum())
    if total == span:
        return _binary_array(length, read_exactly(log, start, span))
    holes = np.flatnonzero(offset[1:] != ends[:-1])
    stretches = zip(offset[[0, *(holes + 1)]].tolist(), ends[[*holes, -1]].tolist(), strict=True)
    if span <= 2 * total:
        # Mostly wanted: one read for all of it.
        data = memoryview(read_exactly(log, start, span))
        parts = [data[first - start : last - start] for first, last in stretches]
    else:
        parts = [read_exactly(log, first, last - first) for first, last in stretches]
    return _binary_array(length, b"".join(parts))


def _binary_array(lengths: np.ndarray, data) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _without_rows(frames: pa.Array, event_type: np.ndarray, version: np.ndarray) -> pa.Array:
    """BatchDML frames with the fixed fields of their transactions only; a frame whose transactions cannot be read stays whole, and its decoder says why."""
    offsets, data = plain_bytes(frames)
    view = memoryview(data)
    kept = [view[start:end] for start, end in pairwise(offsets.tolist())]
    batches = np.flatnonzero(event_type == BatchDMLEvent.type_id).tolist()
    for place, payload in zip(
        batches, _payloads_without_rows([kept[place] for place in batches]), strict=True
    ):
        if payload is not None:
            kept[place] = write_header(BatchDMLEvent.type_id, int(version[place]), len(payload)) + payload
    return _binary_array(np.array([len(frame) for frame in kept]), b"".join(kept))


def _payloads_without_rows(frames: list[memoryview]) -> list[bytes | None]:
    payloads = [frame[HEADER_SIZE:] for frame in frames]
    try:
        return without_rows(payloads)
    except WireError:
        if len(payloads) == 1:
            return [None]
        return [found for frame in frames for found in _payloads_without_rows([frame])]


def _batch(segment: Segment, offset, length, skip_reason: pa.Array, frames: pa.Array) -> pa.RecordBatch:
    count = len(frames)
    return pa.RecordBatch.from_arrays(
        [
            pa.repeat(pa.scalar(segment.batch_id, pa.int64()), count),
            pa.repeat(pa.scalar(segment.upstream_id), count),
            pa.repeat(pa.scalar(segment.file), count),
            pa.array(offset, type=pa.int64()),
            pa.array(length, type=pa.int64()),
            skip_reason,
            frames,
        ],
        schema=ARROW_SCHEMA,
    )
