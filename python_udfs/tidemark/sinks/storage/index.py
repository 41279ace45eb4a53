"""The number of the next data file in a folder.

The index file holds the name of the last data file, so the next number is taken. If that file is not there, what it means depends on who wrote the index:

- TiCDC writes the index first. A writer that died in between has left its number free, and by document 002 it is taken (`announced` in record.py).
- Tidemark writes the data file first. It is gone, and the run is refused, unless files may have been removed on purpose: then the next number is taken, so that
  no consumer sees a number twice.

An index can also be missing, unreadable or behind (a person deleted it, another writer died), and then the folder is listed, once, and a warning
says so. No data file is ever overwritten: every number that the run will use is free before the run begins to publish.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from tidemark.encode import paths
from tidemark.encode.errors import InvalidFileName
from tidemark.sinks.storage.filesystem import Store
from tidemark.sinks.storage.findings import last_file_missing
from tidemark.sinks.storage.tree import parse_data_name


@dataclass(frozen=True)
class Numbering:
    """The numbers that a run may use."""

    store: Store
    digits: int
    # Paths of indexes whose file may be missing, and whose number is free then.
    announced: Collection[str] = ()
    # Data files may have been removed on purpose.
    accept_missing_files: bool = False
    warnings: list[str] = field(default_factory=list)

    def next(self, folder: str, index_path: str, extension: str, dispatcher: str = "", count: int = 1) -> int:
        """The first of `count` numbers that are free."""
        content = self.store.read_optional(index_path)
        if content is None:
            highest = self._highest(folder, dispatcher)
            if highest:
                self.warnings.append(
                    f"{folder} has data files up to number {highest} and no index; going on after them"
                )
            return highest + 1
        name = content.decode("utf-8", "replace").strip()
        try:
            last = parse_data_name(name)
        except InvalidFileName:
            highest = self._highest(folder, dispatcher)
            self.warnings.append(
                f"{index_path} holds {name!r:.80}, which is no data file; going on after number {highest}"
            )
            return highest + 1
        # The name as it is written there: the number of digits may have been changed since.
        is_there = self.store.exists(f"{folder}/{name}")
        number = last.index + 1 if is_there else self._after_missing(index_path, name, last.index)
        if last.extension != extension:
            self.warnings.append(
                f"{folder} holds files of another protocol, up to {name}; going on after them"
            )
        # One name is asked for, several are looked up in one listing.
        elif count == 1 and not self.store.exists(
            f"{folder}/{paths.file_name(number, extension, self.digits, dispatcher)}"
        ):
            return number
        highest = self._highest(folder, dispatcher)
        if highest < number:
            return number
        self.warnings.append(
            f"{index_path} says {name}, but number {highest} is there too; going on after it"
        )
        return highest + 1

    def _after_missing(self, index_path: str, name: str, number: int) -> int:
        if index_path in self.announced:
            return max(number, 1)
        finding = last_file_missing(index_path, name)
        if not self.accept_missing_files:
            raise finding.refusal(
                self.store,
                "put the file back, or write the tree again to another prefix; if it was removed on purpose, "
                "give the sink URI missing-files=accept, and the numbers go on after it",
            )
        self.warnings.append(f"{index_path} {finding.text}; going on after it (missing-files=accept)")
        return number + 1

    def _highest(self, folder: str, dispatcher: str) -> int:
        highest = 0
        for entry in self.store.list(folder):
            try:
                found = parse_data_name(entry.name)
            except InvalidFileName:
                continue
            if found.dispatcher == dispatcher:
                highest = max(highest, found.index)
        return highest
