"""The row batches of logs in stream order, for commands that look at rows.

Consecutive batches of one dispatcher and table version are joined, since decoding many at once costs far less per row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from tidemark.cli.log_events import Tally, log_events, read_logs
from tidemark.wire.errors import InvalidField, WireError
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.rows import RowBatch, decode_batches
from tidemark.wire.table_info import TableInfo
from tidemark.wire.tracker import SchemaTracker

_JOINED = 32


def row_batches(paths: Iterable[str], command: str) -> Iterator[RowBatch]:
    tracker, tally = SchemaTracker(), Tally(command)
    for _, _, batch in read_logs(paths, tally, lambda log: _found(log, tracker, tally)):
        yield batch


def _found(log: BinaryIO, tracker: SchemaTracker, tally: Tally) -> Iterator[tuple[int, RowBatch | WireError]]:
    waiting: list[tuple[int, BatchDMLEvent]] = []
    source: tuple[bytes, TableInfo] | None = None
    for offset, event in log_events(log, tracker, tally):
        if isinstance(event, WireError):
            yield offset, event
            continue
        if not isinstance(event, BatchDMLEvent) or not event.transactions:
            continue
        schema = tracker.in_force(event.dispatcher_id)
        if schema is None:
            yield (
                offset,
                InvalidField(
                    f"rows of dispatcher {event.dispatcher_id.hex()}, before whose rows no readable Handshake came",
                    offset=offset,
                ),
            )
            continue
        if waiting and (source != (event.dispatcher_id, schema.table) or len(waiting) == _JOINED):
            yield from _decoded(waiting, source[1])
            waiting = []
        source = (event.dispatcher_id, schema.table)
        waiting.append((offset, event))
    if waiting:
        yield from _decoded(waiting, source[1])


def _decoded(
    waiting: list[tuple[int, BatchDMLEvent]], table: TableInfo
) -> Iterator[tuple[int, RowBatch | WireError]]:
    batch, errors = decode_batches(waiting, table)
    if batch is not None:
        yield waiting[-1][0], batch
    yield from errors
