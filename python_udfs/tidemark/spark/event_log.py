"""Data source `tidemark_events`: the frames of event logs.

Name          tidemark_events
Options       segments  JSON list of [batch_id, upstream_id, file, start, end, log size]: what to read, as planned by tidemark_log_plan
              family    dml, ddl, resolved, syncpoint, handshake or control: other frames, and versions that nobody can decode, stay in the
                        reader (default: all frames, and corrupt ranges too)
              payload   `full` (default), `transactions`: without the row chunk of a BatchDML, or `header`: only the first 16 bytes
                        of each frame, and more of those of unknown types and versions
Partitioning  neighbouring segments together, up to 32 MiB each
Guarantees    Every frame of a segment once, with its place. Bytes that belong to no frame come as a row with `skip_reason` and at most
              QUARANTINE_BYTES of them. Memory is bounded by BATCH_BYTES, or by one frame where a frame is larger.
Example       create temporary view frames using tidemark_events options (segments '[[1, "1", "/data/log/a.bin", 0, 4096, 4096]]')
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from tidemark.logs import open_log
from tidemark.wire.errors import WireError
from tidemark.wire.framing import FrameRun, Skipped, TornTail, scan_runs
from tidemark.wire.header import HEADER_SIZE
from tidemark.wire.header_columns import is_known
from tidemark.wire.registry import EVENT_TYPES
from tidemark.wire.transactions import chunk_start

PARTITION_BYTES = 32 * 1024 * 1024
BATCH_BYTES = 8 * 1024 * 1024
BATCH_ROWS = 64 * 1024
QUARANTINE_BYTES = 4096

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
        size = segment.end - segment.start
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

    def partitions(self) -> list[Segments]:
        # A header-only read moves little: give a task more of the log.
        return pack_segments(self.segments, PARTITION_BYTES * (8 if self.header_only else 1))

    def read(self, partition: Segments) -> Iterator[pa.RecordBatch]:
        for segment in partition.segments:
            with open_log(segment.file) as log:
                for piece in _join_runs(scan_runs(log, segment.start, segment.end, segment.log_size)):
                    if isinstance(piece, FrameRun):
                        yield from self._frames(log, segment, piece)
                    elif isinstance(piece, Skipped) and self.event_types is None:
                        yield self._skipped(log, segment, piece)

    def _frames(self, log, segment: Segment, run: FrameRun) -> Iterator[pa.RecordBatch]:
        offset, length = run.offset, run.length
        known = is_known(run.event_type, run.version)
        if self.event_types is not None:
            chosen = known & np.isin(run.event_type, self.event_types)
            offset, length = offset[chosen], length[chosen]
            known = known[chosen]
        shipped = length
        if self.header_only:
            # What nobody can decode goes to quarantine with its bytes.
            shipped = np.minimum(length, np.where(known, HEADER_SIZE, QUARANTINE_BYTES))
        for first, last in _bounded_slices(offset, shipped, contiguous=not self.header_only):
            part = slice(first, last)
            frames = _read_frames(log, offset[part], shipped[part])
            if self.payload == "transactions":
                frames = _without_chunks(frames)
            yield _batch(segment, offset[part], length[part], pa.nulls(last - first, pa.string()), frames)

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


def _bounded_slices(offset: np.ndarray, shipped: np.ndarray, contiguous: bool) -> Iterator[tuple[int, int]]:
    """Index ranges of at most BATCH_BYTES and BATCH_ROWS; when `contiguous`, without a hole in the log inside a range."""
    first, count = 0, len(offset)
    total = np.concatenate([[0], np.cumsum(shipped)])
    ends = offset + shipped
    while first < count:
        last = int(np.searchsorted(total, total[first] + BATCH_BYTES, side="right")) - 1
        last = min(max(last, first + 1), first + BATCH_ROWS, count)
        if contiguous:
            holes = np.flatnonzero(offset[first + 1 : last] != ends[first : last - 1])
            if len(holes):
                last = first + 1 + int(holes[0])
        yield first, last
        first = last


def _read_frames(log, offset: np.ndarray, shipped: np.ndarray) -> pa.Array:
    """The bytes at [offset, offset + shipped) as one binary array; where they are contiguous, without copying them."""
    ends = np.concatenate([[0], np.cumsum(shipped)]).astype(np.int32)
    if np.array_equal(offset[1:], offset[:-1] + shipped[:-1]):
        data = read_exactly(log, int(offset[0]), int(ends[-1]))
    else:
        span = int(offset[-1] + shipped[-1] - offset[0])
        if span <= BATCH_BYTES:
            window = np.frombuffer(read_exactly(log, int(offset[0]), span), dtype=np.uint8)
            starts = np.repeat(offset - offset[0] - ends[:-1], shipped)
            data = window[starts + np.arange(ends[-1])].tobytes()
        else:
            data = b"".join(
                read_exactly(log, position, size)
                for position, size in zip(offset.tolist(), shipped.tolist(), strict=True)
            )
    return pa.Array.from_buffers(pa.binary(), len(offset), [None, pa.py_buffer(ends), pa.py_buffer(data)])


def _without_chunks(frames: pa.Array) -> pa.Array:
    """BatchDML frames up to their row chunk; a frame in which it cannot be found stays whole, and its decoder says why."""
    kept = []
    for frame in frames:
        view = memoryview(frame.as_buffer())
        try:
            kept.append(view[: HEADER_SIZE + chunk_start(view[HEADER_SIZE:])])
        except WireError:
            kept.append(view)
    return pa.array(kept, type=pa.binary())


def read_exactly(log, position: int, size: int) -> bytes:
    log.seek(position)
    data = log.read(size)
    while len(data) < size:
        more = log.read(size - len(data))
        if not more:
            raise OSError(
                f"{getattr(log, 'name', 'the log')} ends at byte {position + len(data)} while it is being read"
            )
        data += more
    return data


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
