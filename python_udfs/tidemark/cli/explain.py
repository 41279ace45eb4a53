"""Show one frame of a log byte by byte: an annotated hex dump in which every byte range has a name.

The frame is the one that holds the byte at --offset, the first of the log by default. The row chunk of a batch has no schema of its own: its
columns are named when the log has a handshake of the same dispatcher before the frame.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import BinaryIO

from tidemark.errors import TidemarkError
from tidemark.logs import find_logs, open_log
from tidemark.wire.cursor import Span
from tidemark.wire.errors import WireError
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.explain import UNDECODED, explain_frame
from tidemark.wire.framing import Frame, Skipped, TornTail, scan
from tidemark.wire.ids import id_text
from tidemark.wire.registry import EVENT_TYPES, decode
from tidemark.wire.table_info import TableInfo
from tidemark.wire.tracker import SchemaTracker
from tidemark.words import counted

SUMMARY = "show one frame of a log byte by byte"

BYTES_PER_LINE = 16
_NUMBERS = {
    "u8": ">B",
    "u16": ">H",
    "u32": ">I",
    "u64": ">Q",
    "i32": ">i",
    "i64": ">q",
    "f64": ">d",
    "u32 little-endian": "<I",
}
_ROW_TYPE_NAMES = ("delete", "insert", "update")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TSO_LOGICAL_BITS = 18


class NoFrameThere(TidemarkError):
    """The offset is behind the end of the log."""


def add_arguments(parser) -> None:
    parser.add_argument("log", metavar="LOG", help="a file of frames")
    parser.add_argument(
        "--offset", type=int, default=0, metavar="N", help="a byte of the frame to show (default: 0)"
    )
    parser.add_argument(
        "--all", action="store_true", help="show long ranges completely, not only their first lines"
    )


def run(args) -> int:
    files = find_logs(args.log)
    if len(files) != 1:
        raise NoFrameThere(
            f"{args.log} is {counted(len(files), 'file')}: give the one whose frame is to be shown"
        )
    with open_log(files[0].path) as log:
        piece = _piece_with(log, args.offset)
        for line in explain(log, piece, None if args.all else 4):
            print(line)
    return 0


def _piece_with(log: BinaryIO, offset: int) -> Frame | Skipped | TornTail:
    end = 0
    for piece in scan(log):
        end = piece.offset + piece.length
        if 0 <= offset < end:
            return piece
    raise NoFrameThere(f"no frame holds the byte at offset {offset}: the log has {counted(end, 'byte')}")


def explain(log: BinaryIO, piece: Frame | Skipped | TornTail, max_lines: int | None) -> Iterator[str]:
    log.seek(piece.offset)
    data = log.read(piece.length)
    if isinstance(piece, Skipped):
        yield f"offset {piece.offset}, {counted(piece.length, 'byte')}: skipped, {piece.error}"
        skipped = Span(0, len(data), (), "belongs to no frame", UNDECODED)
        yield from _span_lines(data, skipped, piece.offset, max_lines)
        return
    kind = "the beginning of a frame, not complete" if isinstance(piece, TornTail) else _title(piece)
    yield f"offset {piece.offset}, {counted(piece.length, 'byte')}: {kind}"
    table, note = _table_for(log, data, piece.offset)
    if note:
        yield note
    explanation = explain_frame(data, table)
    for span in explanation.spans:
        yield from _span_lines(data, span, piece.offset, max_lines)
    if explanation.error is not None:
        yield f"error: {explanation.error.at(piece.offset)}"


def _title(frame: Frame) -> str:
    known = EVENT_TYPES.get(frame.header.event_type)
    return f"{known.type_name if known else 'unknown event type'}, version {frame.header.version}"


def _table_for(log: BinaryIO, data: bytes, offset: int) -> tuple[TableInfo | None, str]:
    """The table info that the chunk of a batch needs, and a sentence about it."""
    try:
        event = decode(data)
    except WireError:
        return None, ""
    if not isinstance(event, BatchDMLEvent) or event.dispatcher_id is None:
        return None, ""
    table = table_in_force(log, event.dispatcher_id, offset)
    if table is None:
        return None, (
            f"the row chunk stays unnamed: no handshake of dispatcher {id_text(event.dispatcher_id)} stands before this frame"
        )
    return table, f"row chunk of {table.schema}.{table.table}, version {table.version}"


def table_in_force(log: BinaryIO, dispatcher_id: bytes, offset: int) -> TableInfo | None:
    """The table of a dispatcher just before `offset`."""
    tracker = SchemaTracker()
    for piece in scan(log, end=offset):
        if isinstance(piece, Frame) and piece.header.event_type in (DDLEvent.type_id, HandshakeEvent.type_id):
            log.seek(piece.offset)
            with suppress(WireError):
                tracker.feed(decode(log.read(piece.length)))
    schema = tracker.in_force(dispatcher_id)
    return schema.table if schema else None


def _span_lines(data: bytes, span: Span, base: int, max_lines: int | None) -> Iterator[str]:
    label = " / ".join((*span.path, span.name))
    value = _value(data, span)
    title = f"{label} = {value}" if value else label
    shown = span.size if max_lines is None else min(span.size, max_lines * BYTES_PER_LINE)
    for start in range(0, max(shown, 1), BYTES_PER_LINE):
        first = span.start + start
        line = data[first : min(first + BYTES_PER_LINE, span.start + shown)]
        yield f"{base + first:08x}  {line.hex(' '):<{BYTES_PER_LINE * 3}} {title if start == 0 else ''}".rstrip()
    if shown < span.size:
        yield f"{'':8}  … {span.size - shown} more bytes of {label}"


def _value(data: bytes, span: Span) -> str:
    raw = data[span.start : span.start + span.size]
    if span.kind in _NUMBERS:
        (number,) = struct.unpack(_NUMBERS[span.kind], raw)
        return f"{number}{_meaning(span.name, number)}"
    if span.kind == "id":
        return id_text(raw)
    if span.kind == "row types":
        return _row_types(raw)
    if span.kind in ("text", "json", "bytes"):
        return _preview(raw)
    return ""


def _meaning(name: str, number: int | float) -> str:
    if name == "event type":
        return f" ({EVENT_TYPES[number].type_name})" if number in EVENT_TYPES else " (unknown)"
    if name.endswith("_ts") and number:
        return _wall_clock(number)
    return ""


def _wall_clock(ts: int) -> str:
    try:
        moment = _EPOCH + timedelta(milliseconds=ts >> _TSO_LOGICAL_BITS)
    except OverflowError:
        return ""
    return f" ({moment.isoformat(timespec='milliseconds')})"


def _row_types(raw: bytes) -> str:
    counts = [f"{raw.count(i)} {name}" for i, name in enumerate(_ROW_TYPE_NAMES) if raw.count(i)]
    return ", ".join(counts)


def _preview(raw: bytes) -> str:
    text = raw[:60].decode("utf-8", "replace")
    if not text.isprintable():
        return ""
    return text + ("…" if len(raw) > 60 else "")
