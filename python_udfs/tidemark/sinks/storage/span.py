"""The range of a run: commit ts above `start`, up to and including `end`."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.encode.paths import WORK
from tidemark.sinks.storage.errors import StaleRange


@dataclass(frozen=True)
class Span:
    # The checkpoint of the tree before the run, 0 for a new tree.
    start: int
    # Its checkpoint after the run.
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise StaleRange(
                f"a run goes from a checkpoint to a later one, not from {self.start} to {self.end}"
            )

    @property
    def folder(self) -> str:
        """Where the run keeps what is not published yet."""
        return f"{WORK}/{self.start}-{self.end}"

    def __contains__(self, ts: int) -> bool:
        return self.start < ts <= self.end
