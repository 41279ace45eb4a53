"""Words for messages."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 file`, `2,000 files`, `0 indexes`."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
