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
from dataclasses import replace

from tidemark.dispatch.changefeed_filter import ChangefeedFilter
from tidemark.encode import paths
from tidemark.encode.ddl import statements
from tidemark.encode.errors import InvalidSchemaFile
from tidemark.encode.routed_ddl import routed_statement
from tidemark.encode.schema_file import SchemaFile
from tidemark.sinks.storage.errors import InvalidTree
from tidemark.sinks.storage.filesystem import Store
from tidemark.sinks.storage.layout import StorageLayout
from tidemark.sinks.storage.tree import load_schema_file
from tidemark.sinks.storage.writer import StagedStream
from tidemark.wire.events.ddl import DDLEvent

EXCHANGE_PARTITION = 42


def schema_files_of_ddl(
    event: DDLEvent,
    layout: StorageLayout,
    warnings: list[str] | None = None,
    kept: ChangefeedFilter | None = None,
) -> dict[str, bytes]:
    """Path -> content of the schema files that a DDL event leaves, of the statements and tables that the changefeed takes."""
    found = {}
    for file, table_id in _files_of(event, layout, kept):
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


def _files_of(
    event: DDLEvent, layout: StorageLayout, kept: ChangefeedFilter | None
) -> list[tuple[SchemaFile, int | None]]:
    """Schema files with the id of their table."""
    taken = [ddl for ddl in statements(event) if kept is None or kept.takes_ddl(ddl)]
    if taken and event.ddl_type == EXCHANGE_PARTITION:
        query = routed_statement(taken[0], layout.routing).query
        return [
            (_at_target(file, query, layout), table_id)
            for file, table_id in _exchanged(event, layout)
            if kept is None or kept.takes_table(file.schema, file.table)
        ]
    return [
        (layout.schema_file_of_ddl(ddl), ddl.table_info.table_id if ddl.table_info else None) for ddl in taken
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


def _at_target(file: SchemaFile, query: str, layout: StorageLayout) -> SchemaFile:
    schema, table = layout.routing.target(file.schema, file.table)
    return replace(file, schema=schema, table=table, query=query if file.query else "")


class SchemaVersions:
    """The schema files of a tree together with those that this run adds. Streams are asked for by ascending version."""

    def __init__(self, store: Store, planned: dict[str, bytes]):
        self._store = store
        # Path -> content of all schema files that the run writes.
        self.planned = dict(planned)
        # meta folder -> (version, hash) of its schema files
        self._known: dict[str, set[tuple[int, int]]] = {}
        # Schema files of the tree that rows of this run rely on.
        self._used: dict[str, None] = {}

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
        if (version, checksum) not in known:
            same = [
                other for other, other_checksum in known if other < version and other_checksum == checksum
            ]
            if not same:
                self.planned[staged.schema_path] = staged.schema_content.encode()
                known.add((version, checksum))
                return version
            version = max(same)
        path = f"{_meta_folder(staged)}/{paths.schema_file_name(version, checksum)}"
        if path not in self.planned:
            self._used[path] = None
        return version

    def verify(self) -> None:
        """The schema files that are in use already must be what their names say: consumers read rows by them."""

        def verify(path: str) -> None:
            try:
                load_schema_file(self._store, path)
            except InvalidSchemaFile as error:
                raise InvalidTree(
                    f"{self._store.shown}/{path} is not what its name says, so nobody can read the rows by it: {error}. "
                    "Nothing was published and the checkpoint has not moved: put the file back as it was and run again, "
                    "or write the tree again to another prefix"
                ) from None

        self._store.for_each(verify, self._used)


def _meta_folder(staged: StagedStream) -> str:
    return staged.schema_path.rpartition("/")[0]


def _versions(found: Iterable[str]) -> set[tuple[int, int]]:
    return {paths.parse_schema_file(path) for path in found if paths.is_schema_file(path)}
