"""Log files: 000001.bin, 000002.bin, … in one folder per upstream, each of whole frames.

Everything is written into a hidden folder beside the target, which gets the target's name at the very end. A demo log exists completely or not at all.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidemark.errors import TidemarkError

BUFFER = 1 << 20


class DemoFolderInUse(TidemarkError):
    """The folder for the demo log has other files already."""


class LogFiles:
    """Frames, one after another; a file is closed before it would exceed `file_bytes`."""

    def __init__(self, folder: Path, file_bytes: int):
        folder.mkdir(parents=True)
        self._folder = folder
        self._file_bytes = file_bytes
        self._file = None
        self._size = 0
        self.files = 0
        self.bytes = 0

    def write(self, frame: bytes) -> None:
        if self._file is None or (self._size and self._size + len(frame) > self._file_bytes):
            self.close()
            self.files += 1
            self._file = open(self._folder / f"{self.files:06d}.bin", "wb", buffering=BUFFER)  # noqa: SIM115
            self._size = 0
        self._file.write(frame)
        self._size += len(frame)
        self.bytes += len(frame)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


@contextmanager
def folder_at_once(target: Path) -> Iterator[Path]:
    """A folder to write into that becomes `target` when the block ends well, and vanishes when it does not."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DemoFolderInUse(f"{target} exists and is not empty: remove it or choose another folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    try:
        # A temporary folder is private; a demo log is as visible as any folder made here.
        umask = os.umask(0)
        os.umask(umask)
        partial.chmod(0o777 & ~umask)
        yield partial
        os.rename(partial, target)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        if isinstance(error, OSError) and error.filename is None:
            # A write that fails, because the disk is full, names no file.
            raise OSError(error.errno, error.strerror, str(target)) from None
        raise
