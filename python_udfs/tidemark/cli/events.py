"""Print every event of a log as one JSON object per line.

An event has the keys file, offset, header, event and fields. 64-bit numbers are decimal strings. Bytes that cannot be decoded are printed
in their place, with file, offset, length and error instead of event and fields; everything around them is still
read. If nothing can be decoded, the command fails.

With --table, events are left out that concern no table, or several dispatchers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, BinaryIO

from tidemark.cli.log_events import Tally, add_log_arguments
from tidemark.cli.progress import Progress
from tidemark.dispatch.table_filter import TableFilter
from tidemark.logs import given_logs, open_log
from tidemark.wire.errors import WireError
from tidemark.wire.events.base import Event
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.framing import Frame, Skipped, TornTail, scan
from tidemark.wire.json_form import error_form, event_form, header_form, json_line
from tidemark.wire.registry import decode
from tidemark.wire.tracker import SchemaTracker
from tidemark.words import counted

SUMMARY = "print every event of a log as JSON"


def add_arguments(parser) -> None:
    add_log_arguments(parser)


def run(args) -> int:
    write = sys.stdout.buffer.write
    for line in islice(events_of_logs(args), args.limit):
        write(json_line(line))
    sys.stdout.buffer.flush()
    return 0


def events_of_logs(args) -> Iterator[dict[str, Any]]:
    tally, chosen = Tally(args.command, args.strict), ChosenTables(args.table)
    for file in given_logs(args.logs):
        progress = Progress(file.path)
        with open_log(file.path) as log:
            for line in events_of(log, file.path, tally, chosen):
                yield line
                progress.advance(line["offset"], file.size)
        progress.close()
    tally.close()


class ChosenTables:
    """Which events are of the tables that were asked for. Without a choice it is every event."""

    def __init__(self, rules: list[str] | None):
        self._tables = TableFilter(rules) if rules else None
        self._tracker = SchemaTracker()

    def takes(self, event: Event) -> bool:
        if self._tables is None:
            return True
        with suppress(WireError):
            self._tracker.feed(event)
        if isinstance(event, DDLEvent) and self._tables.matches(event.schema_name, event.table_name):
            return True
        schema = self._tracker.in_force(getattr(event, "dispatcher_id", b""))
        return schema is not None and self._tables.matches(schema.table.schema, schema.table.table)


def events_of(log: BinaryIO, path: str, tally: Tally, chosen: ChosenTables) -> Iterator[dict[str, Any]]:
    """One object per event, or per piece that is none, in the order of the log."""
    for piece in scan(log):
        place = {"file": path, "offset": piece.offset}
        if isinstance(piece, Frame):
            log.seek(piece.offset)
            frame = log.read(piece.length)
            try:
                event = decode(frame)
                form = event_form(event)
            except WireError as error:
                tally.bad += 1
                header, form = header_form(piece.header), error_form(error.at(piece.offset))
                yield {**place, "length": piece.length, "header": header, "error": form}
            else:
                tally.events += 1
                tally.found += 1
                if chosen.takes(event):
                    yield {**place, **form}
        elif isinstance(piece, Skipped):
            tally.bad += 1
            yield {**place, "length": piece.length, "error": error_form(piece.error)}
        elif isinstance(piece, TornTail):
            tally.bad += 1
            print(
                f"tidemark events: {path}: the last frame is not complete: {counted(piece.length, 'byte')} at offset {piece.offset}",
                file=sys.stderr,
            )
