"""The one folder that holds warehouse, catalog and run state, and the lock that gives it to one process at a time."""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tidemark.config.secrets import redact_uri
from tidemark.errors import TidemarkError

STATE_DIR_VARIABLE = "TIDEMARK_STATE_DIR"
DEFAULT_STATE_DIR = ".tidemark"
LOCK_WAIT_VARIABLE = "TIDEMARK_LOCK_WAIT"
DEFAULT_LOCK_WAIT_SECONDS = 600
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class StateDirIsUrl(TidemarkError):
    """The state folder is to be somewhere else than on a disk of this machine."""


class StateDirBusy(TidemarkError):
    """Another process holds the state folder."""


def state_dir(cli_vars: Mapping[str, Any], project_vars: Mapping[str, Any], project_root: Path) -> Path:
    """The state folder: --vars, then the environment, then dbt_project.yml; relative paths start at the project."""
    chosen = (
        cli_vars.get("state_dir")
        or os.environ.get(STATE_DIR_VARIABLE)
        or project_vars.get("state_dir")
        or DEFAULT_STATE_DIR
    )
    if _URL.match(str(chosen)):
        raise StateDirIsUrl(
            f"state_dir = {redact_uri(str(chosen))!r} is a URL: warehouse, catalog and lock need a folder of this machine, such as "
            f"/data/tidemark (--vars 'state_dir: …', {STATE_DIR_VARIABLE}, or dbt_project.yml)"
        )
    return (project_root / Path(str(chosen)).expanduser()).absolute()


class StateLock:
    """An advisory lock on the state folder, held until the process ends.

    The catalog is in the memory of one process at a time; a second one waits here, and says for whom.
    """

    def __init__(self, folder: Path):
        self.path = folder / "lock"
        self._handle = None

    def acquire(self, say: Callable[[str], None], wait_seconds: float | None = None) -> None:
        if wait_seconds is None:
            wait_seconds = float(os.environ.get(LOCK_WAIT_VARIABLE, DEFAULT_LOCK_WAIT_SECONDS))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = open(self.path, "a+")  # noqa: SIM115 - held for the life of the process
        deadline = time.monotonic() + wait_seconds
        said = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                holder = self._holder()
                if time.monotonic() >= deadline:
                    handle.close()
                    raise StateDirBusy(
                        f"the state folder {self.path.parent} is in use by {holder}, and still was after {wait_seconds:g} s: "
                        f"wait for that run to end, or give this run a folder of its own (--vars 'state_dir: …' or {STATE_DIR_VARIABLE})"
                    ) from None
                if not said:
                    say(
                        f"waiting up to {wait_seconds:g} s for {holder}, which uses the state folder {self.path.parent}"
                    )
                    said = True
                time.sleep(0.2)
        handle.seek(0)
        handle.truncate()
        handle.write(f"{os.getpid()}\n")
        handle.flush()
        self._handle = handle

    def release(self) -> None:
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def _holder(self) -> str:
        try:
            pid = self.path.read_text().strip()
        except OSError:
            pid = ""
        return f"process {pid}" if pid else "another process"
