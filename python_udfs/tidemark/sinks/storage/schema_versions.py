"""Which version folder the rows of a table version go to, and which schema files that needs.

Every DDL statement leaves a schema file, so normally there is one of exactly the stream's version and hash, and that version is the folder. If there is
none (the dispatcher started without a DDL statement, or followed one about another table, or the table's folder is that of a partition):

1. the newest earlier version with the same hash is the folder: the table has not changed since;
2. else a schema file is written for this version.

TiCDC also drops rows when a *later* version with the same hash is there, to recognise rows that come again after a restart. Here the
range of a run excludes such rows, so nothing is ever dropped.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.encode import paths
from tidemark.encode.ddl import statements
from tidemark.encode.errors import InvalidSchemaFile
from tidemark.encode.schema_file import SchemaFile
from tidemark.sinks.storage.filesystem import Store
from tidemark.sinks.storage.layout import StorageLayout
from tidemark.sinks.storage.writer import StagedStream
from tidemark.wire.events.ddl import DDLEvent

EXCHANGE_PARTITION = 42


def schema_files_of_ddl(
    event: DDLEvent, layout: StorageLayout, warnings: list[str] | None = None
) -> dict[str, bytes]:
    """Path -> content of the schema files that a DDL event leaves."""
    found = {}
    for file, table_id in _files_of(event, layout):
        if layout.table_id_paths and not file.table:
            # Databases have no id that a folder could be named after.
            continue
        try:
            path = layout.schema_file_path(file, table_id)
        except InvalidSchemaFile as error:
            if warnings is not None:
                warnings.append(f"no schema file for the DDL statement at {event.finished_ts}: {error}")
            continue
        found[path] = layout.schema_file_content(file)
    return found


def _files_of(event: DDLEvent, layout: StorageLayout) -> list[tuple[SchemaFile, int | None]]:
    """Schema files with the id of their table."""
    if event.ddl_type == EXCHANGE_PARTITION:
        return _exchanged(event, layout)
    return [
        (layout.schema_file_of_ddl(ddl), ddl.table_info.table_id if ddl.table_info else None)
        for ddl in statements(event)
    ]


def _exchanged(event: DDLEvent, layout: StorageLayout) -> list[tuple[SchemaFile, int | None]]:
    """Two tables change: the partitioned one, whose name the event has as its extra name, and the one that was exchanged, without statement."""
    partitioned, extra = event.table(), event.extra_tables()
    found = []
    if partitioned is not None:
        names = (event.extra_schema_name or event.schema_name, event.extra_table_name or event.table_name)
        file = SchemaFile(
            *names, event.finished_ts, event.query, event.ddl_type, partitioned.columns, layout.column_ids
        )
        found.append((file, partitioned.table_id))
    if len(extra) > 1:
        file = SchemaFile(
            event.schema_name,
            event.table_name,
            event.finished_ts,
            columns=extra[1].columns,
            column_ids=layout.column_ids,
        )
        found.append((file, extra[1].table_id))
    return found


class SchemaVersions:
    """The schema files of a tree together with those that this run adds. Streams are asked for by ascending version."""

    def __init__(self, store: Store, planned: dict[str, bytes]):
        self._store = store
        # Path -> content of all schema files that the run writes.
        self.planned = dict(planned)
        # meta folder -> (version, hash) of its schema files
        self._known: dict[str, set[tuple[int, int]]] = {}

    def look_up(self, streams: Iterable[StagedStream]) -> None:
        """Find out which schema files there are for the tables of these streams."""
        folders = list(dict.fromkeys(_meta_folder(staged) for staged in streams))
        listings = self._store.for_each(self._store.list, folders)
        for folder, entries in zip(folders, listings, strict=True):
            self._known[folder] = _versions(entry.path for entry in entries)
        for path in self.planned:
            folder = path.rpartition("/")[0]
            if folder in self._known:
                self._known[folder] |= _versions([path])

    def folder_version(self, staged: StagedStream) -> int:
        version, checksum = staged.stream.version, staged.schema_checksum
        known = self._known[_meta_folder(staged)]
        if (version, checksum) in known:
            return version
        same = [other for other, other_checksum in known if other < version and other_checksum == checksum]
        if same:
            return max(same)
        self.planned[staged.schema_path] = staged.schema_content.encode()
        known.add((version, checksum))
        return version


def _meta_folder(staged: StagedStream) -> str:
    return staged.schema_path.rpartition("/")[0]


def _versions(found: Iterable[str]) -> set[tuple[int, int]]:
    return {paths.parse_schema_file(path) for path in found if paths.is_schema_file(path)}
