"""The row batches of logs in stream order, for commands that look at rows.

Consecutive batches of one dispatcher and table version are joined, since decoding many at once costs far less per row. What cannot be decoded is told on
stderr with file and offset, and everything around it is still read. Several logs are read as one stream.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from tidemark.cli.progress import Progress
from tidemark.logs import find_logs, open_log
from tidemark.wire.errors import InvalidField, WireError
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.framing import Frame, Skipped, scan
from tidemark.wire.registry import decode
from tidemark.wire.rows import RowBatch, decode_batches
from tidemark.wire.table_info import TableInfo
from tidemark.wire.tracker import SchemaTracker

_JOINED = 32


def row_batches(paths: Iterable[str], command: str) -> Iterator[RowBatch]:
    tracker = SchemaTracker()
    bad = 0
    for file in (file for path in paths for file in find_logs(path)):
        progress = Progress(file.path)
        with open_log(file.path) as log:
            for offset, found in _found(log, tracker):
                progress.advance(offset, file.size)
                if isinstance(found, WireError):
                    bad += 1
                    print(f"tidemark {command}: {file.path}: offset {offset}: {found}", file=sys.stderr)
                else:
                    yield found
        progress.close()
    if bad:
        print(f"tidemark {command}: {bad} pieces could not be decoded", file=sys.stderr)


def _found(log: BinaryIO, tracker: SchemaTracker) -> Iterator[tuple[int, RowBatch | WireError]]:
    waiting: list[tuple[int, BatchDMLEvent]] = []
    source: tuple[bytes, TableInfo] | None = None
    for offset, event in _events(log, tracker):
        if isinstance(event, WireError):
            yield offset, event
            continue
        schema = tracker.in_force(event.dispatcher_id)
        if schema is None:
            yield (
                offset,
                InvalidField(
                    f"rows of dispatcher {event.dispatcher_id.hex()}, before whose rows no readable Handshake came"
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


def _events(log: BinaryIO, tracker: SchemaTracker) -> Iterator[tuple[int, BatchDMLEvent | WireError]]:
    """The batches that have rows, and the pieces that are wrong. Schemas are followed on the way."""
    for piece in scan(log):
        if isinstance(piece, Skipped):
            yield piece.offset, piece.error
        elif not isinstance(piece, Frame):
            yield (
                piece.offset,
                InvalidField(f"the last frame is not complete: {piece.length} bytes", offset=piece.offset),
            )
        else:
            log.seek(piece.offset)
            try:
                event = decode(log.read(piece.length))
                tracker.feed(event)
                if isinstance(event, BatchDMLEvent) and event.transactions:
                    yield piece.offset, event
            except WireError as error:
                yield piece.offset, error.at(piece.offset)
