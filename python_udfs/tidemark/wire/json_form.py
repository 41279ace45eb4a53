"""How values of an event look in JSON. 64-bit numbers are decimal strings: readers of JSON keep only 53 bits."""

from __future__ import annotations

import json
import math
from typing import Any

from tidemark.wire.header import Header
from tidemark.wire.ids import ID, id_text


def id_form(raw: bytes) -> dict[str, str]:
    low, high = ID.unpack(raw)
    return {"hex": raw.hex(), "low": str(low), "high": str(high), "text": id_text(raw)}


def float_form(value: float) -> float | str:
    """JSON has no word for NaN and the infinities."""
    return value if math.isfinite(value) else str(value)


def event_form(event) -> dict[str, Any]:
    """Header, name and fields of an event."""
    from tidemark.wire.registry import event_type

    kind = event_type(event)
    header = header_form(Header(kind.id, event.version, event.size()))
    return {"header": header, "event": kind.name, "fields": event.fields()}


def header_form(header: Header) -> dict[str, Any]:
    from tidemark.wire.registry import EVENT_TYPES

    known = EVENT_TYPES.get(header.event_type)
    return {
        "payload_length": str(header.payload_length),
        "type": header.event_type,
        "type_name": known.type_name if known else "unknown",
        "version": header.version,
    }


def error_form(error) -> dict[str, Any]:
    """What was wrong with a frame: the columns of the quarantine."""
    form = {"reason": error.reason, "message": error.message, "offset": error.offset}
    for name in ("expected", "actual"):
        value = getattr(error, name)
        if value is not None:
            form[name] = value if isinstance(value, (int, str, list)) else str(value)
    return form


def json_line(value: dict[str, Any]) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    except UnicodeEncodeError:
        # Half of a surrogate pair has no UTF-8 form, but it can be written as an escape.
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode() + b"\n"
