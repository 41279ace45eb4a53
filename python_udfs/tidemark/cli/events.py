"""Print every event of a log as one JSON object per line.

An event has the keys file, offset, header, event and fields. 64-bit numbers are decimal strings. Bytes that cannot be decoded are printed
in their place, with file, offset, length and error instead of event and fields; everything around them is still read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from tidemark.cli.progress import Progress
from tidemark.logs import given_logs, open_log
from tidemark.wire.errors import WireError
from tidemark.wire.framing import Frame, Skipped, TornTail, scan
from tidemark.wire.json_form import error_form, event_form, header_form, json_line
from tidemark.wire.registry import decode

SUMMARY = "print every event of a log as JSON"


def add_arguments(parser) -> None:
    parser.add_argument(
        "logs", nargs="+", metavar="LOG", help="a file of frames, a folder of such files, or a glob"
    )


def run(args) -> int:
    write = sys.stdout.buffer.write
    for file in given_logs(args.logs):
        bad = 0
        progress = Progress(file.path)
        with open_log(file.path) as log:
            for line in events_of(log, file.path):
                bad += "error" in line
                write(json_line(line))
                progress.advance(line["offset"], file.size)
        progress.close()
        if bad:
            pieces = "piece" if bad == 1 else "pieces"
            print(f"tidemark events: {file.path}: {bad} {pieces} could not be decoded", file=sys.stderr)
    sys.stdout.buffer.flush()
    return 0


def events_of(log: BinaryIO, path: str) -> Iterator[dict[str, Any]]:
    """One object per event, or per piece that is none, in the order of the log."""
    for piece in scan(log):
        place = {"file": path, "offset": piece.offset}
        if isinstance(piece, Frame):
            log.seek(piece.offset)
            frame = log.read(piece.length)
            try:
                yield {**place, **event_form(decode(frame))}
            except WireError as error:
                header, form = header_form(piece.header), error_form(error.at(piece.offset))
                yield {**place, "length": piece.length, "header": header, "error": form}
        elif isinstance(piece, Skipped):
            yield {**place, "length": piece.length, "error": error_form(piece.error)}
        elif isinstance(piece, TornTail):
            print(
                f"tidemark events: {path}: the last frame is not complete: {piece.length} bytes at offset {piece.offset}",
                file=sys.stderr,
            )
