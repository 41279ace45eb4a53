"""Ctrl-C and SIGTERM end a command with one line and the status that a shell expects: 130 and 143."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

NAMES = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class Interrupted(KeyboardInterrupt):
    """A signal that ends the command. Like KeyboardInterrupt it passes by all that handles errors."""

    def __init__(self, number: int):
        self.number = signal.Signals(number)
        self.status = 128 + number
        super().__init__(NAMES[self.number])


def raise_interrupted(number: int, _frame: Any) -> None:
    # Some senders send twice, as `timeout` does: to the process, and to its group. Cleaning up goes on.
    for known in NAMES:
        signal.signal(known, signal.SIG_IGN)
    raise Interrupted(number)


@contextmanager
def handled(handler: Callable[[int, Any], Any] = raise_interrupted) -> Iterator[None]:
    """The two signals go to the handler within the block. One that the process was started to ignore stays ignored."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in NAMES:
            if signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
