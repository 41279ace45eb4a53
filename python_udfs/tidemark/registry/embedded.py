"""A registry in a folder: `file:///path/of/folder`. No server is needed.

    schemas.json   {"compatibility":…,"levels":{subject: level},"schemas":{id: schema},"subjects":{subject: [id of version 1, …]}}
    lock           held while a change is made

A change reads the file, applies the rules, writes a new file beside it and renames it, all under the lock: writers on one machine take turns, a
reader always sees a whole file, and a crash at any point leaves the state before or after. Folders that several machines share need a
registry server instead.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from tidemark.registry.compatibility import Mismatch
from tidemark.registry.errors import DamagedRegistry
from tidemark.registry.state import LATEST, RegistryState, SubjectVersion

_T = TypeVar("_T")


class EmbeddedRegistry:
    def __init__(self, folder: str | os.PathLike[str]):
        self._folder = Path(folder)
        self._file = self._folder / "schemas.json"
        # The state that was read last, and which file it was.
        self._known: tuple[tuple[int, int, int], RegistryState] | None = None

    def register(self, subject: str, schema: str) -> int:
        # Mostly nothing is new, and no lock is needed to see that.
        known = self.state().find(subject, schema)
        return self._change(lambda state: state.register(subject, schema).id) if known is None else known.id

    def set_compatibility(self, level: str, subject: str | None = None) -> None:
        self._change(lambda state: state.set_compatibility(level, subject))

    def incompatibilities(
        self, subject: str, schema: str, against: int | str | None = None
    ) -> list[Mismatch]:
        return self.state().incompatibilities(subject, schema, against)

    def lookup(self, subject: str, schema: str) -> SubjectVersion:
        return self.state().lookup(subject, schema)

    def schema(self, schema_id: int) -> str:
        return self.state().schema(schema_id)

    def uses(self, schema_id: int) -> list[SubjectVersion]:
        return self.state().uses(schema_id)

    def subjects(self) -> list[str]:
        return self.state().subjects()

    def versions(self, subject: str) -> list[int]:
        return self.state().versions(subject)

    def version(self, subject: str, version: int | str = LATEST) -> SubjectVersion:
        return self.state().version(subject, version)

    def compatibility(self, subject: str | None = None, *, own: bool = False) -> str:
        return self.state().compatibility(subject, own=own)

    def state(self) -> RegistryState:
        """What the registry holds now. Not to be changed: take a copy."""
        try:
            found = os.stat(self._file)
        except FileNotFoundError:
            return RegistryState()
        stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
        if self._known is None or self._known[0] != stamp:
            self._known = (stamp, self._read())
        return self._known[1]

    def _read(self) -> RegistryState:
        try:
            return RegistryState.of(json.loads(self._file.read_bytes()))
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise DamagedRegistry(
                f"{self._file} is not a registry file ({problem!r:.80}); restore it, or move it away to start anew"
            ) from None

    def _change(self, change: Callable[[RegistryState], _T]) -> _T:
        with self._locked():
            # Read anew: file times are coarse, so a stamp alone is not enough to build upon.
            state = self._read() if self._file.exists() else RegistryState()
            before = state.document()
            result = change(state)
            if state.document() != before:
                self._write(state)
            return result

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with open(self._folder / "lock", "a") as lock:
            # Released when the file is closed, also by the end of the process.
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _write(self, state: RegistryState) -> None:
        # One writer at a time, so the name may be fixed; what a crash left behind is overwritten.
        draft = self._folder / "schemas.json.draft"
        with open(draft, "w", encoding="utf-8") as file:
            json.dump(state.document(), file, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self._file)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._known = None
