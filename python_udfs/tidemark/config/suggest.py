"""The known key that an unknown one was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest_name(name: str, known: Iterable[str]) -> str:
    """The known name that is nearest, or "" when none is near."""
    found = difflib.get_close_matches(name.replace("_", "-").lower(), list(known), n=1, cutoff=0.6)
    return found[0] if found else ""


def nearest(name: str, known: Iterable[str], *, prefix: str = "") -> str:
    """`; did you mean …?`, or nothing when no known name is near."""
    found = nearest_name(name, known)
    return f"; did you mean {prefix}{found}?" if found else ""
