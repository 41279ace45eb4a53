"""Named points at which a test can kill the writer.

`TIDEMARK_FAULT=name` sends SIGKILL to the process when it reaches the point for the first time, `TIDEMARK_FAULT=name:3` for the third.
Nothing is cleaned up, as in a power cut.
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
    "metadata-written",
    "staged-file-removed",
    "journal-removed",
)

_reached: dict[str, int] = {}


def point(name: str) -> None:
    """Die here if the environment says so."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    wanted_name, _, count = wanted.partition(":")
    if wanted_name not in FAULT_POINTS:
        raise ValueError(f"{VARIABLE}={wanted}: there is no such point; known: {', '.join(FAULT_POINTS)}")
    if name == wanted_name:
        _reached[name] = _reached.get(name, 0) + 1
        if _reached[name] == int(count or 1):
            os.kill(os.getpid(), signal.SIGKILL)
