"""Dates and times that are written in an expression."""

from __future__ import annotations

import re
from datetime import datetime

from tidemark.filter_expressions.parse import ExpressionError

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?)?")
_ZERO = "0000-00-00"
MIDNIGHT = "00:00:00"


def moment_text(text: str) -> str:
    """YYYY-MM-DD HH:MM:SS.ffffff"""
    found = _MOMENT.fullmatch(text.strip())
    if found is None:
        raise ExpressionError(
            f"{text!r} is compared with a date, and is not written as YYYY-MM-DD or YYYY-MM-DD HH:MM:SS"
        )
    date, time, fraction = found[1], found[2] or MIDNIGHT, (found[3] or "").ljust(6, "0")
    if date != _ZERO:
        try:
            datetime.fromisoformat(f"{date} {time}")
        except ValueError as error:
            raise ExpressionError(f"{text!r} is no date: {error}") from None
    return f"{date} {time}.{fraction}"
