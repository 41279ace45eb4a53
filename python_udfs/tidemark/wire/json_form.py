"""How values of an event look in JSON. 64-bit numbers are decimal strings: readers of JSON keep only 53 bits."""

from __future__ import annotations

import json
import math
from typing import Any

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
    header = {
        "payload_length": str(event.size()),
        "type": kind.id,
        "type_name": kind.type_name,
        "version": event.version,
    }
    return {"header": header, "event": kind.name, "fields": event.fields()}


def error_form(error) -> dict[str, Any]:
    """What was wrong with a frame: the columns of the quarantine."""
    form = {"reason": error.reason, "message": error.message, "offset": error.offset}
    for name in ("expected", "actual"):
        value = getattr(error, name)
        if value is not None:
            form[name] = value if isinstance(value, (int, str, list)) else str(value)
    return form


def json_line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
