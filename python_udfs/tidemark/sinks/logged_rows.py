"""The row changes that a sink was told to send, read from the logs again.

SQL decides which rows are sent, as what, where and in which order. What travels from there to a sink's tasks are *decisions*, narrow rows with the columns

    upstream_id, file, offset, row_number     the place of a row change: its frame, and its number within the frame
    policy_op                                 insert, update or delete: what it is sent as; null: as what it is in the log
    …                                         whatever else the sink wants to know (topic, partition, …)

and the tasks decode the frames again: payloads and JSON never travel.

Decisions are taken in chunks. Every frame of a chunk is read once, frames of one dispatcher and table version are decoded together, and of the decoded rows only
those that were decided on are kept. So memory is bounded by CHUNK_BYTES (about) and JOINED_BYTES, or by one frame where a frame is larger. It pays to sort decisions so that
the rows of a frame are near each other, which an order by commit ts does; a frame whose rows are in many chunks is decoded for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.errors import TidemarkError
from tidemark.joined_frames import BadFrame, DecodedFrames, frames_at
from tidemark.log_schemas import LogSchemas
from tidemark.logs import open_frames
from tidemark.sinks.row_batches import compacted, joined, take
from tidemark.wire.rows import DELETE, INSERT, NO_ROW, RowBatch, op_names
from tidemark.wire.tracker import SchemaInForce

CHUNK_ROWS, FIRST_CHUNK_ROWS, SMALLEST_CHUNK_ROWS = 64 * 1024, 8 * 1024, 256
CHUNK_BYTES = 64 * 1024 * 1024
# Besides the numbers of insert, update and delete.
_AS_LOGGED = 255
_PLACE = ("upstream_id", "file", "offset", "row_number", "policy_op")


class LogChanged(TidemarkError):
    """A log no longer holds what was read from it before."""


@dataclass(frozen=True)
class LoggedRows:
    """The decided row changes of one dispatcher and table version in one chunk, in the order of their decisions."""

    upstream_id: str
    schema: SchemaInForce
    # With the op after policy: a delete has no new image, an insert no old one.
    batch: RowBatch
    # The other columns of the decisions, one row per row change.
    decisions: pa.RecordBatch
    # Where in the chunk each decision was: to put the rows of several of these in one order.
    position: np.ndarray


def logged_rows(decisions: Iterable[pa.RecordBatch], schemas: LogSchemas) -> Iterator[list[LoggedRows]]:
    """The decided row changes, chunk by chunk; the chunks follow each other in the order of the decisions."""
    chunks = _Chunks(decisions)
    for chunk in chunks:
        found = _rows_of(chunk, schemas)
        chunks.adapt(sum(rows.batch.columns.nbytes for rows in found))
        yield found


class _Chunks:
    """Cuts a stream of batches into chunks. Begins with a small one, and then follows how large rows are."""

    def __init__(self, batches: Iterable[pa.RecordBatch]):
        self._batches = iter(batches)
        self._rows = FIRST_CHUNK_ROWS
        self._last = 0

    def adapt(self, size: int) -> None:
        fitting = CHUNK_BYTES * self._last // max(size, 1)
        self._rows = min(max(fitting, SMALLEST_CHUNK_ROWS), CHUNK_ROWS)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        waiting: list[pa.RecordBatch] = []
        count = 0
        for batch in self._batches:
            waiting.append(batch)
            count += batch.num_rows
            while count >= self._rows:
                together = _one_batch(waiting)
                chunk, rest = together.slice(0, self._rows), together.slice(self._rows)
                waiting, count = [rest], rest.num_rows
                self._last = chunk.num_rows
                yield chunk
        if count:
            self._last = count
            yield _one_batch(waiting)


def _one_batch(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _rows_of(chunk: pa.RecordBatch, schemas: LogSchemas) -> list[LoggedRows]:
    offsets = chunk.column("offset").to_numpy()
    numbers = chunk.column("row_number").to_numpy().astype(np.int64)
    ops = _op_numbers(chunk.column("policy_op"))
    parts: dict[tuple[str, bytes, int], list[tuple[np.ndarray, RowBatch]]] = {}
    in_force: dict[int, SchemaInForce] = {}
    for upstream_id, file, inside in _files(chunk):
        wanted = _Wanted(file, inside, offsets[inside])
        for schema, decoded in _decoded(upstream_id, file, wanted.frames, schemas):
            position, change = wanted.changes(decoded, numbers)
            batch = _with_ops(take(decoded.batch, change), ops[position], file)
            if batch is not decoded.batch:
                batch = compacted(batch)
            in_force[id(schema)] = schema
            key = upstream_id, batch.dispatcher_id, id(schema)
            parts.setdefault(key, []).append((position, batch))
    rest = chunk.select([name for name in chunk.schema.names if name not in _PLACE])
    return [
        _in_order(upstream_id, in_force[schema], found, rest)
        for (upstream_id, _, schema), found in parts.items()
    ]


def _op_numbers(names: pa.Array) -> np.ndarray:
    found = pc.index_in(names, op_names())
    if found.null_count > names.null_count:
        unknown = names.filter(pc.and_(found.is_null(), names.is_valid()))
        raise TidemarkError(f"a decision says {unknown[0]}, which is no row change")
    return found.fill_null(_AS_LOGGED).to_numpy().astype(np.uint8)


def _files(chunk: pa.RecordBatch) -> Iterator[tuple[str, str, np.ndarray]]:
    """The files of a chunk, each with the positions of its decisions."""
    upstreams, files = (chunk.column(name).dictionary_encode() for name in ("upstream_id", "file"))
    codes = upstreams.indices.to_numpy().astype(np.int64) * len(files.dictionary) + files.indices.to_numpy()
    for code in np.flatnonzero(np.bincount(codes)).tolist():
        upstream, file = divmod(code, len(files.dictionary))
        yield (
            upstreams.dictionary[upstream].as_py(),
            files.dictionary[file].as_py(),
            np.flatnonzero(codes == code),
        )


class _Wanted:
    """The decisions of one file, by frame."""

    def __init__(self, file: str, inside: np.ndarray, offsets: np.ndarray):
        self._file = file
        order = np.argsort(offsets, kind="stable")
        self._position = inside[order]
        # Offsets of the frames, ascending, and where the decisions of each begin.
        self.frames, starts = np.unique(offsets[order], return_index=True)
        self._ends = np.append(starts, len(order))

    def changes(self, decoded: DecodedFrames, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For frames that were decoded, the decisions on their rows in order: position in the chunk, and row change of the batch."""
        frames, first = np.unique(decoded.offset, return_index=True)
        counts = np.diff(np.append(first, len(decoded.offset)))
        which = np.searchsorted(self.frames, frames)
        position = np.concatenate([self._position[self._ends[n] : self._ends[n + 1]] for n in which.tolist()])
        decided = self._ends[which + 1] - self._ends[which]
        number = numbers[position]
        if (number >= np.repeat(counts, decided)).any():
            raise LogChanged(_changed(self._file, int(frames[0]), "it has fewer rows than before"))
        change = number + np.repeat(first, decided)
        order = np.argsort(position, kind="stable")
        return position[order], change[order]


def _decoded(
    upstream_id: str, file: str, offsets: np.ndarray, schemas: LogSchemas
) -> Iterator[tuple[SchemaInForce, DecodedFrames]]:
    """The frames at these offsets, which ascend."""
    try:
        with open_frames(file) as log:
            for found in frames_at(offsets.tolist(), upstream_id, log, schemas):
                decoded, bad = (None, [found]) if isinstance(found, BadFrame) else found.decode()
                for frame in bad:
                    raise LogChanged(_changed(file, frame.offset, frame.error))
                if decoded is not None:
                    yield found.schema, decoded
    except OSError as error:
        raise LogChanged(f"{file}: {error}; its rows are not sent yet, so the log is still needed") from None


def _changed(file: str, offset: int, problem: object) -> str:
    return (
        f"{file}: offset {offset}: a frame that was read before cannot be read again: {problem}. "
        "Its rows are not sent yet: put the log back as it was"
    )


def _with_ops(batch: RowBatch, op: np.ndarray, file: str) -> RowBatch:
    changes = batch.changes
    op = np.where(op == _AS_LOGGED, changes.op, op)
    if np.array_equal(op, changes.op):
        return batch
    pre = np.where(op == INSERT, NO_ROW, changes.pre)
    post = np.where(op == DELETE, NO_ROW, changes.post)
    if ((op != INSERT) & (pre == NO_ROW)).any() or ((op != DELETE) & (post == NO_ROW)).any():
        raise LogChanged(f"{file}: a row change is to be sent as one whose old or new row it does not have")
    return replace(batch, changes=replace(changes, op=op, pre=pre, post=post))


def _in_order(
    upstream_id: str,
    schema: SchemaInForce,
    found: list[tuple[np.ndarray, RowBatch]],
    decisions: pa.RecordBatch,
) -> LoggedRows:
    position = np.concatenate([positions for positions, _ in found])
    batch = joined([part for _, part in found])
    if (position[1:] < position[:-1]).any():
        order = np.argsort(position, kind="stable")
        position, batch = position[order], take(batch, order)
    if len(position) != decisions.num_rows:
        decisions = decisions.take(pa.array(position))
    return LoggedRows(upstream_id, schema, batch, decisions, position)
