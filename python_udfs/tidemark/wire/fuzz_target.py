"""What must hold for any bytes whatsoever; `tidemark.wire.fuzz` looks for bytes for which it does not.

- The pieces of a log cover it exactly.
- A frame gives an event or a WireError, nothing else.
- The rows of a batch whose table is known give a RowBatch or a WireError, nothing else.
- An event written again gives the bytes it was read from, and its size is right.
- An explanation covers every byte of the frame once.
"""

from __future__ import annotations

import io
import re

from tidemark.wire.errors import WireError
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.explain import explain_frame
from tidemark.wire.framing import Frame, scan
from tidemark.wire.header import HEADER_SIZE
from tidemark.wire.json_form import event_form, json_line
from tidemark.wire.registry import decode, encode
from tidemark.wire.rows import decode_batch
from tidemark.wire.table_info import TableInfo

_DIGITS = re.compile(r"\d+")

# dispatcher id -> table, from handshakes: without them no row chunk could be read
TABLES: dict[bytes, TableInfo] = {}


def learn_table(handshake: bytes) -> None:
    event = decode(handshake, expect=HandshakeEvent)
    TABLES[event.dispatcher_id] = event.table()


def check(data: bytes) -> None:
    """Raises for bytes that break a rule."""
    check_frame(data)
    position = 0
    for piece in scan(io.BytesIO(data)):
        assert piece.offset == position, "the pieces of a log follow each other"
        position += piece.length
        if isinstance(piece, Frame) and piece.length != len(data):
            check_frame(data[piece.offset : position])
    assert position == len(data), "the pieces of a log cover it"


def check_frame(frame: bytes) -> str:
    """The same for one frame; returns a word for what came out, which tells inputs apart."""
    outcome = _decode(frame)
    explanation = explain_frame(frame, TABLES.get(frame[48:64]))  # where a batch has its first dispatcher id
    position = 0
    for span in explanation.spans:
        assert span.start == position, "an explanation has neither gaps nor overlaps"
        position += span.size
    assert position == len(frame), "an explanation covers the frame"
    return outcome


def _decode(frame: bytes) -> str:
    try:
        event = decode(frame)
    except WireError as error:
        return _answer(frame, error)
    assert encode(event) == frame, "an event gives its bytes back"
    assert event.size() + HEADER_SIZE == len(frame), "the size of an event is that of its payload"
    try:
        json_line(event_form(event))
        if isinstance(event, BatchDMLEvent) and event.dispatcher_id in TABLES:
            decode_batch(event, TABLES[event.dispatcher_id])
    except WireError as error:
        return _answer(frame, error)
    return f"{event.type_id} {event.version}"


def _answer(frame: bytes, error: WireError) -> str:
    if error.reason in ("truncated_header", "bad_magic", "unknown_event_type", "unsupported_version"):
        return error.reason
    return f"{frame[4:6].hex()} {error.reason} {_DIGITS.sub('#', error.message)[:40]}"
