"""Which data files a folder should have, by their numbers and its index. One rule, for those who read a tree and for the doctor.

Numbers of a folder (of a dispatcher, with tables across nodes) go up by one, and the index names the last file. So

- a number that is missing between two files is a file that is gone, and so is the file that the index names;
- files that are missing at the front may have expired, or a consumer has removed what it is done with: those who read go on with a warning, the doctor finds them.

Where files are removed on purpose the sink URI says so (missing-files=accept), and none of these is an error.

Files after the one that the index names are on their way, in any order.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.encode.errors import InvalidFileName
from tidemark.sinks.storage.tree import Folder, Tree, parse_data_name

_SHOWN = 5


@dataclass(frozen=True)
class Numbers:
    """The numbers of the files of a folder, ascending, and what its index says."""

    found: tuple[int, ...]
    # None: there is no index.
    index_path: str | None = None
    # The name in the index.
    named: str = ""
    # Its number. None: the index is missing or unreadable.
    last: int | None = None

    @property
    def highest(self) -> int:
        return max(self.found, default=0)

    @property
    def is_last_missing(self) -> bool:
        return self.last is not None and self.last not in self.found

    @property
    def are_first_missing(self) -> bool:
        return bool(self.found) and self.found[0] > 1

    def up_to_index(self) -> Numbers:
        """Without the files that are on their way."""
        if self.last is None:
            return self
        kept = tuple(number for number in self.found if number <= self.last)
        return Numbers(kept, self.index_path, self.named, self.last)

    def gaps(self) -> list[tuple[int, int]]:
        """First and last of the numbers that are missing between two files."""
        return [
            (low + 1, high - 1)
            for low, high in zip(self.found, self.found[1:], strict=False)
            if high > low + 1
        ]

    def shown_gaps(self) -> str:
        gaps = self.gaps()
        texts = [_shown(low, high) for low, high in gaps[:_SHOWN]]
        return ", ".join(texts) + (", …" if len(gaps) > _SHOWN else "")

    def shown_front(self) -> str:
        return _shown(1, self.found[0] - 1)


def _shown(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def numbers_of(tree: Tree, folder: Folder, dispatcher: str) -> Numbers:
    found = tuple(file.number for file in folder.files_of(dispatcher))
    path = folder.indexes.get(dispatcher)
    if path is None:
        return Numbers(found)
    name = tree.store.read(path).decode("utf-8", "replace").strip()
    try:
        last = parse_data_name(name).index
    except InvalidFileName:
        last = None
    return Numbers(found, path, name, last)
