"""Whether the event logs of a run can be what they are said to be, before Spark starts. Only their first bytes are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tidemark.logs import LogFile, LogNotFound, find_logs, is_url, open_log, read_exactly
from tidemark.wire.header import HEADER_SIZE, MAGIC

# How far into a file a frame is looked for: the start of a log may be damaged.
_FIRST_BYTES = 64 * 1024
# Files of a log that are looked at when those before hold no frame.
_MOST_FILES = 100


class NoFrames(LogNotFound):
    """Files that were given as an event log, and are something else."""


def check_logs(
    logs: Iterable[Mapping[str, Any]], root: Path, find: Callable[[str], list[LogFile]] = find_logs
) -> list[str]:
    """Warnings on logs that hold nothing yet; an error where a path does not exist or holds no frames. Relative paths start at `root`."""
    warnings = []
    for path in [str(log["path"]) for log in logs if log.get("path")]:
        files = find(path if is_url(path) else str(root / os.path.expanduser(path)))
        # A file that is shorter than a header may be a frame that is still being written.
        begun = [file for file in files if file.size >= HEADER_SIZE]
        if not begun:
            found = "holds no complete frame yet" if files else "holds no files yet"
            warnings.append(f"the event log {path} {found}: this run has nothing to read there")
        elif not any(map(_has_frame, begun[:_MOST_FILES])):
            raise NoFrames(
                f"the event log {path} holds no frames: no file of it has one in its first {_FIRST_BYTES // 1024} KiB, {begun[0].path} for example. "
                "Give files of TiCDC's event streams as `path`, or a storage tree as `tree`"
            )
    return warnings


def _has_frame(file: LogFile) -> bool:
    with open_log(file.path) as log:
        return MAGIC in read_exactly(log, 0, min(file.size, _FIRST_BYTES))
