"""How far a command is, on stderr, and only when a person is looking."""

from __future__ import annotations

import sys
import time

_SECONDS_BETWEEN = 0.5


class Progress:
    """`advance(done, total)` as often as you like; it writes twice a second."""

    def __init__(self, what: str):
        self._what = what
        self._visible = sys.stderr.isatty()
        self._next = time.monotonic() + _SECONDS_BETWEEN
        self._written = False

    def advance(self, done: int, total: int) -> None:
        if not self._visible:
            return
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _SECONDS_BETWEEN
            self._written = True
            print(f"\r{self._what}: {100 * done // max(total, 1)} %", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._written:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
