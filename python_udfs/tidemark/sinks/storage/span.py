"""The range of a run: commit ts above `start`, up to and including `end`; with late rows also from before."""

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
    # Rows up to `start` are taken too, which came too late for the run that they belong to. Then the checkpoint may stay where it is.
    takes_late_rows: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end or (self.start == self.end and not self.takes_late_rows):
            raise StaleRange(
                f"a run goes from a checkpoint to a later one, not from {self.start} to {self.end}"
            )

    @property
    def folder(self) -> str:
        """Where the run keeps what is not published yet."""
        return f"{WORK}/{self.start}-{self.end}"

    def __contains__(self, ts: int) -> bool:
        return ts <= self.end and (self.takes_late_rows or ts > self.start)
