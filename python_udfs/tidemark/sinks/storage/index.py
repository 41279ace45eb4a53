"""The number of the next data file in a folder.

The index file holds the name of the last data file. If that file is there the next number is taken, else that one. So much for the design document; an
index can also be missing, unreadable or behind (a writer died before writing it, a person deleted it), and then the folder is listed, once, and a warning
says so. No data file is ever overwritten: every number that the run will use is free before the run begins to publish.
"""

from __future__ import annotations

from tidemark.encode import paths
from tidemark.encode.errors import InvalidFileName
from tidemark.sinks.storage.filesystem import Store
from tidemark.sinks.storage.tree import parse_data_name


def next_number(
    store: Store,
    folder: str,
    index_path: str,
    extension: str,
    digits: int,
    dispatcher: str,
    warnings: list[str],
    count: int = 1,
) -> int:
    """The first of `count` numbers that are free."""
    content = store.read_optional(index_path)
    if content is None:
        highest = _highest(store, folder, dispatcher)
        if highest:
            warnings.append(
                f"{folder} has data files up to number {highest} and no index; going on after them"
            )
        return highest + 1
    name = content.decode("utf-8", "replace").strip()
    try:
        last = parse_data_name(name)
    except InvalidFileName:
        highest = _highest(store, folder, dispatcher)
        warnings.append(
            f"{index_path} holds {name!r:.80}, which is no data file; going on after number {highest}"
        )
        return highest + 1
    # The name as it is written there: the number of digits may have been changed since.
    number = last.index + 1 if store.exists(f"{folder}/{name}") else max(last.index, 1)
    if last.extension != extension:
        warnings.append(f"{folder} holds files of another protocol, up to {name}; going on after them")
    # One name is asked for, several are looked up in one listing.
    elif count == 1 and not store.exists(
        f"{folder}/{paths.file_name(number, extension, digits, dispatcher)}"
    ):
        return number
    highest = _highest(store, folder, dispatcher)
    if highest < number:
        return number
    warnings.append(f"{index_path} says {name}, but number {highest} is there too; going on after it")
    return highest + 1


def _highest(store: Store, folder: str, dispatcher: str) -> int:
    highest = 0
    for entry in store.list(folder):
        try:
            found = parse_data_name(entry.name)
        except InvalidFileName:
            continue
        if found.dispatcher == dispatcher:
            highest = max(highest, found.index)
    return highest
