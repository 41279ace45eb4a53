"""How values of an event look in JSON. 64-bit numbers are decimal strings: readers of JSON keep only 53 bits."""

from __future__ import annotations

import math
from typing import Any

from tidemark.wire.ids import ID, id_text


def id_form(raw: bytes) -> dict[str, str]:
    low, high = ID.unpack(raw)
    return {"hex": raw.hex(), "low": str(low), "high": str(high), "text": id_text(raw)}


def float_form(value: float) -> float | str:
    """JSON has no word for NaN and the infinities."""
    return value if math.isfinite(value) else str(value)


def table_info_form(raw: bytes) -> dict[str, Any] | None:
    raise NotImplementedError
