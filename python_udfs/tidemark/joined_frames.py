"""BatchDML frames of event logs, decoded many at once.

Frames of one dispatcher and table version are joined as far as they follow each other closely: a few megabytes at once cost far less per row
than frames one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from tidemark.log_schemas import LogSchemas
from tidemark.logs import read_exactly
from tidemark.wire.errors import WireError
from tidemark.wire.header import HEADER_SIZE, read_header
from tidemark.wire.rows import RowBatch, decode_batches
from tidemark.wire.tracker import SchemaInForce
from tidemark.wire.transactions import first_place, read_transactions

# About what one decode call does best with.
JOINED_BYTES = 3 * 1024 * 1024
# Of all dispatchers together: thousands of them must not wait until each has enough.
WAITING_BYTES = 16 * JOINED_BYTES


@dataclass(frozen=True)
class BadFrame:
    offset: int
    payload: memoryview
    error: WireError


@dataclass(frozen=True)
class DecodedFrames:
    """Row changes with their place: the offset of their frame, and the number of the row change within it."""

    batch: RowBatch
    offset: np.ndarray
    row_number: np.ndarray


@dataclass
class FrameGroup:
    """Frames to be decoded together, by their offset."""

    dispatcher_id: bytes
    schema: SchemaInForce
    frames: list[tuple[int, memoryview]] = field(default_factory=list)
    size: int = 0

    def decode(self) -> tuple[DecodedFrames | None, list[BadFrame]]:
        """The rows of all frames, and the frames that cannot be decoded."""
        batch, errors = decode_batches(self.frames, self.schema.table)
        failed = dict(errors)
        bad = [
            BadFrame(offset, payload, failed[offset]) for offset, payload in self.frames if offset in failed
        ]
        if batch is None:
            return None, bad
        return _with_places(batch, [frame for frame in self.frames if frame[0] not in failed]), bad


class FrameJoiner:
    """Give it frames one by one; it gives back the groups that are complete."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, FrameGroup] = {}
        self._size = 0

    def add(
        self, dispatcher_id: bytes, schema: SchemaInForce, offset: int, payload: memoryview
    ) -> Iterator[FrameGroup]:
        group = self._waiting.get(dispatcher_id)
        if group is None or group.schema is not schema:
            if group is not None:
                self._size -= group.size
                yield group
            group = self._waiting[dispatcher_id] = FrameGroup(dispatcher_id, schema)
        group.frames.append((offset, payload))
        group.size += len(payload)
        self._size += len(payload)
        if group.size >= JOINED_BYTES:
            self._size -= group.size
            yield self._waiting.pop(dispatcher_id)
        elif self._size >= WAITING_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[FrameGroup]:
        waiting, self._waiting, self._size = self._waiting, {}, 0
        yield from waiting.values()


def frames_at(
    offsets: Iterable[int], upstream_id: str, log: BinaryIO, schemas: LogSchemas
) -> Iterator[FrameGroup | BadFrame]:
    """The frames at these offsets of a log, joined where that is possible."""
    joiner = FrameJoiner()
    with schemas.reading():
        for offset in offsets:
            payload = memoryview(b"")
            try:
                length = read_header(read_exactly(log, offset, HEADER_SIZE)).payload_length
                payload = memoryview(read_exactly(log, offset + HEADER_SIZE, length))
                place = first_place(payload)
                schema = schemas.in_force(upstream_id, *place)
            except WireError as error:
                yield BadFrame(offset, payload, error)
                continue
            yield from joiner.add(place[0], schema, offset, payload)
    yield from joiner.rest()


def _with_places(batch: RowBatch, frames: list[tuple[int, memoryview]]) -> DecodedFrames:
    transactions = read_transactions([payload for _, payload in frames])[0]
    rows = np.zeros(len(transactions.heads) + 1, np.int64)
    np.cumsum(transactions.column("row_count", np.int64), out=rows[1:])
    # A frame may have no transactions at all.
    ends = rows[np.cumsum([0, *transactions.per_batch])]
    rows_per_frame = np.diff(ends)
    return DecodedFrames(
        batch,
        np.repeat(np.array([offset for offset, _ in frames], np.int64), rows_per_frame),
        np.arange(len(batch.changes)) - np.repeat(ends[:-1], rows_per_frame),
    )
