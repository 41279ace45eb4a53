"""What is in a tree, from one listing: TiCDC's as well as ours, with names or table ids as folders.

A folder of data files is `{table folder}/{version}[/{partition}][/{date}]`, and a table folder is one that has schema files in `meta`. Whether a single level below the version
is a date or a partition say the settings that the tree was written with (date-separator), where it looks like a date (`2024`, `2024-05`, `2024-05-09`). Without them it is a date where
all of these folders look like one that is not before the version, since rows come later than their table.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from tidemark.config import Settings
from tidemark.encode import paths
from tidemark.encode.errors import EncodeError, InvalidFileName
from tidemark.encode.paths import RECORD, REGISTRY, WORK
from tidemark.encode.schema_file import SchemaFile
from tidemark.sinks.storage.errors import InvalidTree
from tidemark.sinks.storage.filesystem import Entry, Store

# What can be read back into row changes.
READABLE = (".csv", ".json")
EXTENSIONS = (*READABLE, ".avro", ".messages")
_INDEX = re.compile(r"CDC(?:_(?P<dispatcher>[^/]+))?\.index")
_DATE = re.compile(r"(?:19|20|21)\d\d(?:-\d\d(?:-\d\d)?)?", re.ASCII)
_DATE_LENGTHS = {"year": len("2024"), "month": len("2024-05"), "day": len("2024-05-09")}
# As a difference of two ts.
_DAY = 24 * 60 * 60 * 1000 << 18


@dataclass(frozen=True)
class DataFile:
    path: str
    number: int
    dispatcher: str
    extension: str
    size: int


@dataclass
class Folder:
    """A folder of data files."""

    path: str
    # None where no schema file says which table this is.
    table_path: str | None = None
    version: int = 0
    partition: int | None = None
    date: str = ""
    files: list[DataFile] = field(default_factory=list)
    # Dispatcher ("" without one) -> path of its index file.
    indexes: dict[str, str] = field(default_factory=dict)

    def dispatchers(self) -> list[str]:
        return sorted({file.dispatcher for file in self.files} | set(self.indexes))

    def files_of(self, dispatcher: str) -> list[DataFile]:
        return sorted(
            (file for file in self.files if file.dispatcher == dispatcher), key=lambda file: file.number
        )


@dataclass
class Tree:
    store: Store
    folders: dict[str, Folder]
    # Table or database folder -> version -> paths of schema files.
    schema_files: dict[str, dict[int, list[str]]]
    has_metadata: bool
    work: list[Entry]
    # Files that belong to none of these.
    strangers: list[str]
    # Data files may have been removed on purpose: the option missing-files of the sink URI.
    accepts_missing_files: bool = False

    def schema_file(self, folder: Folder) -> SchemaFile:
        """The schema file of a folder's version, verified against its name."""
        found = self.schema_files.get(folder.table_path or "", {}).get(folder.version, [])
        if not found:
            raise InvalidTree(
                f"{folder.path} has data files, but no schema file of that version: "
                f"{folder.table_path or folder.path.rpartition('/')[0]}/meta/schema_{folder.version or 'VERSION'}_HASH.json"
            )
        # Two files of one version differ by hash, after a rename onto itself; the last one written is not known, so take either.
        return load_schema_file(self.store, sorted(found)[-1])


def load_schema_file(store: Store, path: str) -> SchemaFile:
    """A schema file that is what its name says."""
    try:
        parsed = SchemaFile.parse(store.read(path))
    except EncodeError as error:
        raise type(error)(f"{store.shown}/{path}: {error}") from None
    parsed.verify(path)
    return parsed


def scan_tree(store: Store, settings: Settings | None = None) -> Tree:
    """`settings`: those that the tree was written with, where they are known."""
    tree = Tree(store, {}, {}, False, [], [], settings is not None and settings.accepts_missing_files)
    for entry in store.walk():
        _sort_in(tree, entry)
    single: dict[tuple[str, int], list[tuple[Folder, str]]] = defaultdict(list)
    for folder in tree.folders.values():
        below = _identify(tree, folder)
        if len(below) == 2:
            folder.partition, folder.date = _partition(below[0]), below[1]
        elif below:
            single[folder.table_path or "", folder.version].append((folder, below[0]))
        folder.files.sort(key=lambda file: (file.dispatcher, file.number))
    for (_, version), levels in single.items():
        names = [name for _, name in levels]
        are_dates = _are_dates(names, version, settings.sink.date_separator if settings else None)
        for folder, name in levels:
            if are_dates:
                folder.date = name
            else:
                folder.partition = _partition(name)
    return tree


def _are_dates(names: list[str], version: int, separator: str | None) -> bool:
    """`separator`: that of the settings, if there are any; a sink URI alone gives the default one, so folders of another form may still be dates."""
    if separator == "none" or not all(_DATE.fullmatch(name) for name in names):
        return False
    if separator is not None and all(len(name) == _DATE_LENGTHS[separator] for name in names):
        return True
    try:
        # Dates are those of a time zone.
        first = paths.date_folder(max(version - _DAY, 0), "day")
    except OverflowError:
        # No ts: a version of somebody's own.
        return True
    return all(name >= first[: len(name)] for name in names)


def _partition(name: str) -> int | None:
    return int(name) if name.isascii() and name.isdigit() else None


def list_again(tree: Tree, folder: Folder) -> None:
    """Take note of data files that were placed after the tree was scanned."""
    found = (_data_file(entry) for entry in tree.store.list(folder.path) if not entry.is_folder)
    folder.files = sorted(
        (file for file in found if file is not None), key=lambda file: (file.dispatcher, file.number)
    )


def _sort_in(tree: Tree, entry: Entry) -> None:
    parent, _, name = entry.path.rpartition("/")
    if entry.path.startswith(f"{WORK}/"):
        tree.work.append(entry)
    elif entry.path == RECORD or entry.path.startswith(f"{REGISTRY}/"):
        # The registry of Avro messages, and a note for the next run: nothing for a person to look at.
        return
    elif entry.path == paths.METADATA:
        tree.has_metadata = True
    elif paths.is_schema_file(entry.path):
        version, _ = paths.parse_schema_file(entry.path)
        versions = tree.schema_files.setdefault(parent.rpartition("/")[0], {})
        versions.setdefault(version, []).append(entry.path)
    elif (index := _INDEX.fullmatch(name)) and parent.rpartition("/")[2] == "meta":
        path = parent.rpartition("/")[0]
        tree.folders.setdefault(path, Folder(path)).indexes[index["dispatcher"] or ""] = entry.path
    elif (file := _data_file(entry)) is not None:
        tree.folders.setdefault(parent, Folder(parent)).files.append(file)
    else:
        tree.strangers.append(entry.path)


def parse_data_name(name: str) -> paths.FileName:
    """What the name of a data file says, of whichever protocol it is: numbers are those of the folder."""
    return paths.parse_file_name(name, next((ending for ending in EXTENSIONS if name.endswith(ending)), ""))


def _data_file(entry: Entry) -> DataFile | None:
    try:
        name = parse_data_name(entry.name)
    except InvalidFileName:
        return None
    return DataFile(entry.path, name.index, name.dispatcher, name.extension, entry.size)


def _identify(tree: Tree, folder: Folder) -> list[str]:
    """Which table a folder belongs to; and the levels below its version."""
    parts = folder.path.split("/")
    candidates = []
    for end in range(1, len(parts)):
        table_path, version = "/".join(parts[:end]), parts[end]
        if (
            table_path in tree.schema_files
            and version.isascii()
            and version.isdigit()
            and len(parts) - end <= 3
        ):
            known = int(version) in tree.schema_files[table_path]
            candidates.append((known, end, table_path, int(version)))
    if not candidates:
        return []
    _, end, folder.table_path, folder.version = max(candidates)
    return parts[end + 1 :]
