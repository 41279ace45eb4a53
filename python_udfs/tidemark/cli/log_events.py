"""The events of logs in stream order, for commands that look at rows.

What cannot be decoded is told on stderr with file and offset, and everything around it is still read. Several logs are read as one stream.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, TypeVar

from tidemark.cli.progress import Progress
from tidemark.logs import given_logs, open_log
from tidemark.wire.errors import InvalidField, WireError
from tidemark.wire.events.base import Event
from tidemark.wire.framing import Frame, Skipped, scan
from tidemark.wire.registry import decode
from tidemark.wire.tracker import SchemaTracker

_Found = TypeVar("_Found")


def read_logs(
    paths: Iterable[str], command: str, read: Callable[[BinaryIO], Iterator[tuple[int, _Found | WireError]]]
) -> Iterator[tuple[str, int, _Found]]:
    """File and offset of everything that `read` finds in the logs; errors go to stderr."""
    bad = 0
    for file in given_logs(paths):
        progress = Progress(file.path)
        with open_log(file.path) as log:
            for offset, found in read(log):
                progress.advance(offset, file.size)
                if isinstance(found, WireError):
                    bad += 1
                    print(f"tidemark {command}: {file.path}: offset {offset}: {found}", file=sys.stderr)
                else:
                    yield file.path, offset, found
        progress.close()
    if bad:
        print(f"tidemark {command}: {bad} pieces could not be decoded", file=sys.stderr)


def log_events(log: BinaryIO, tracker: SchemaTracker) -> Iterator[tuple[int, Event | WireError]]:
    """Every event of a log, and every piece that is wrong, by offset. The tracker has followed the schemas up to the event."""
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
            except WireError as error:
                yield piece.offset, error.at(piece.offset)
            else:
                yield piece.offset, event
