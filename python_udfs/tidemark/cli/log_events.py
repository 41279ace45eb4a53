"""The events of logs in stream order, for commands that look at rows.

What cannot be decoded is told on stderr with file and offset, and everything around it is still read. Several logs are read as one stream.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

from tidemark.cli.progress import Progress
from tidemark.errors import TidemarkError
from tidemark.logs import given_logs, open_log
from tidemark.wire.errors import InvalidField, WireError
from tidemark.wire.events.base import Event
from tidemark.wire.framing import Frame, Skipped, scan
from tidemark.wire.registry import decode
from tidemark.wire.tracker import SchemaTracker
from tidemark.words import counted

_Found = TypeVar("_Found")


class NotDecoded(TidemarkError):
    """Nothing of the logs could be decoded, or with --strict not all."""


@dataclass
class Tally:
    """How much of the logs could be decoded."""

    command: str
    is_strict: bool = False
    # Events that were decoded, those of them that the command looks for, and what could not be decoded.
    events: int = 0
    found: int = 0
    bad: int = 0

    def close(self) -> None:
        """Say what could not be decoded. A command that has nothing to show for its logs fails."""
        if not self.found and (self.bad or not self.events):
            bad = f" ({counted(self.bad, 'piece')})" if self.bad else ""
            raise NotDecoded(f"nothing could be decoded{bad}: give logs of TiCDC event frames")
        if self.bad:
            sentence = f"{counted(self.bad, 'piece')} could not be decoded"
            if self.is_strict:
                raise NotDecoded(sentence)
            print(f"tidemark {self.command}: {sentence}", file=sys.stderr)


def add_log_arguments(parser) -> None:
    """What commands take that print what logs hold."""
    parser.add_argument(
        "logs", nargs="+", metavar="LOG", help="a file of frames, a folder of such files, or a glob"
    )
    parser.add_argument(
        "--table",
        action="append",
        metavar="RULE",
        help="only of these tables: shop.orders, or a rule as in a changefeed's filter, such as 'shop.*'; may be repeated",
    )
    parser.add_argument("--limit", type=_at_least_one, metavar="N", help="end after N lines")
    parser.add_argument(
        "--strict", action="store_true", help="fail (exit status 2) if anything cannot be decoded"
    )


def _at_least_one(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def read_logs(
    paths: Iterable[str],
    tally: Tally,
    read: Callable[[BinaryIO], Iterator[tuple[int, _Found | WireError]]],
    counts: Callable[[_Found], bool] = lambda _: True,
) -> Iterator[tuple[str, int, _Found]]:
    """File and offset of everything that `read` finds in the logs; errors go to stderr. `counts`: whether it is what the command looks for."""
    for file in given_logs(paths):
        progress = Progress(file.path)
        with open_log(file.path) as log:
            for offset, found in read(log):
                progress.advance(offset, file.size)
                if isinstance(found, WireError):
                    tally.bad += 1
                    print(f"tidemark {tally.command}: {file.path}: offset {offset}: {found}", file=sys.stderr)
                else:
                    tally.found += counts(found)
                    yield file.path, offset, found
        progress.close()
    tally.close()


def log_events(
    log: BinaryIO, tracker: SchemaTracker, tally: Tally
) -> Iterator[tuple[int, Event | WireError]]:
    """Every event of a log, and every piece that is wrong, by offset. The tracker has followed the schemas up to the event."""
    for piece in scan(log):
        if isinstance(piece, Skipped):
            yield piece.offset, piece.error
        elif not isinstance(piece, Frame):
            yield (
                piece.offset,
                InvalidField(
                    f"the last frame is not complete: {counted(piece.length, 'byte')}", offset=piece.offset
                ),
            )
        else:
            log.seek(piece.offset)
            try:
                event = decode(log.read(piece.length))
                tracker.feed(event)
            except WireError as error:
                yield piece.offset, error.at(piece.offset)
            else:
                tally.events += 1
                yield piece.offset, event
