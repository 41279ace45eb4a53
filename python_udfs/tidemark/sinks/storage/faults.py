"""Named points at which a test can kill the writer.

`TIDEMARK_FAULT=name` sends SIGKILL to the process when it reaches the point for the first time, `TIDEMARK_FAULT=name:3` for the third, and `TIDEMARK_FAULT=@path` does
what the file says, if there is one: the environment of Spark's workers cannot be changed once the session runs. Nothing is cleaned up, as in a power cut.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "TIDEMARK_FAULT"

# In the order of a run.
FAULT_POINTS = (
    "lease-taken",
    "staged-file-begun",
    "staged-file-written",
    "before-journal",
    "journal-written",
    "schema-file-written",
    "data-file-placed",
    "index-written",
    "before-metadata",
    "record-written",
    "metadata-written",
    "staged-file-removed",
    "journal-removed",
)

_reached: dict[str, int] = {}


def point(name: str) -> None:
    """Die here if the environment says so."""
    wanted = _wanted()
    if not wanted:
        return
    wanted_name, _, count = wanted.partition(":")
    if wanted_name not in FAULT_POINTS:
        raise ValueError(f"{VARIABLE}={wanted}: there is no such point; known: {', '.join(FAULT_POINTS)}")
    if name == wanted_name:
        _reached[name] = _reached.get(name, 0) + 1
        if _reached[name] == int(count or 1):
            os.kill(os.getpid(), signal.SIGKILL)


def _wanted() -> str | None:
    given = os.environ.get(VARIABLE)
    if not given or not given.startswith("@"):
        return given
    try:
        with open(given[1:], encoding="utf-8") as file:
            return file.read().strip()
    except FileNotFoundError:
        return None
