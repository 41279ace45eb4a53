"""What schemas, tables, partitions and views there are, from one process to the next.

Spark keeps its catalog in memory, where a question costs a tenth of what it costs in a metastore with a database of its own. So that it outlives the process, every
entry stands in a file:

    {folder}/{schema}/{name}.json      a table with its partitions, or a view; replaced by one rename

A file is written after the statement that changed the entry, so after the data: a process that dies in between leaves files of rows that no entry shows, and the next run writes
them again. The lock of the state folder keeps other processes out. Functions that a statement creates are not kept.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from pathlib import Path
from typing import Any

from tidemark.errors import TidemarkError

_COMMENTS = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)+", re.DOTALL)
_READS = re.compile(
    r"(?:select|show|describe|desc|explain|set|values|use|create\s+(?:or\s+replace\s+)?(?:global\s+)?temp(?:orary)?\s+view)\b"
    r"|with\b(?!.*\binsert\s+(?:into|overwrite)\b)",
    re.IGNORECASE | re.DOTALL,
)
_NAME = r"(`[^`]+`|\w+)"
# The statements that a build is made of, each of which changes one entry.
_CHANGES_ONE = re.compile(
    r"(?:create\s+(?:or\s+replace\s+)?(?:table|view)\s+(?:if\s+not\s+exists\s+)?"
    r"|insert\s+(?:into|overwrite)\s+(?:table\s+)?|merge\s+into\s+|drop\s+(?:table|view)\s+(?:if\s+exists\s+)?"
    rf"|alter\s+(?:table|view)\s+(?!.*\brename\b))(?:{_NAME}\.)?{_NAME}(?![.\w`])",
    re.IGNORECASE | re.DOTALL,
)


class CatalogDamaged(TidemarkError):
    """A file of the catalog cannot be read."""


def changed_by(statement: str) -> list[tuple[str | None, str]] | None:
    """Schema (None: the current one) and name of the entries that a statement may have changed; None: it may be any."""
    body = _COMMENTS.sub("", f" {statement}", count=1)
    if _READS.match(body):
        return []
    found = _CHANGES_ONE.match(body)
    if not found:
        return None
    # The catalog knows names in lower case.
    schema, name = (part and part.strip("`").lower() for part in found.groups())
    return [(schema, name)]


class Catalog:
    """The written form of a session's catalog."""

    def __init__(self, spark: Any, folder: Path):
        self._jvm = spark._jvm
        self._session = spark._jsparkSession.sessionState()
        self._catalog = spark._jsparkSession.sharedState().externalCatalog()
        self._folder = folder
        self._written: dict[tuple[str, str], dict[str, Any]] = {}
        self._guard = threading.Lock()
        self._texts = self._jvm.com.fasterxml.jackson.databind.ObjectMapper()
        self._texts.registerModule(self._jvm.com.fasterxml.jackson.module.scala.DefaultScalaModule())

    def restore(self) -> None:
        """Tell Spark of everything that is written down."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for schema in self._folder.glob(f"*/{_SCHEMA_FILE}"):
            self._create_schema(schema.parent.name, _read(schema))
            for path in schema.parent.glob("*.json"):
                entry = _read(path)
                self._create_entry(path.parent.name, path.stem, entry)
                self._written[path.parent.name, path.stem] = entry

    def entry(self, schema: str | None, name: str) -> dict[str, Any] | None:
        """What is written down of a table or view; to ask Java for a part of it takes a hundred times as long."""
        return self._written.get((schema.lower(), name.lower())) if schema else None

    def note(self, statement: str | None) -> None:
        """Write down what a statement has changed; without one, whatever has changed."""
        changed = changed_by(statement) if statement else None
        with self._guard:
            if changed is None:
                self._write_all()
            for schema, name in changed or ():
                self._write(schema or self._session.catalog().getCurrentDatabase(), name)

    def _write_all(self) -> None:
        schemas = {
            name: set(_list(self._catalog.listTables(name))) for name in _list(self._catalog.listDatabases())
        }
        for path in self._folder.iterdir():
            if path.name not in schemas:
                shutil.rmtree(path)
                self._written = {key: entry for key, entry in self._written.items() if key[0] != path.name}
        for schema, names in schemas.items():
            self._schema_folder(schema)
            known = {name for of, name in self._written if of == schema}
            for name in names | known:
                self._write(schema, name)

    def _schema_folder(self, schema: str) -> Path:
        folder = self._folder / schema
        if not (folder / _SCHEMA_FILE).exists():
            folder.mkdir(exist_ok=True)
            found = self._catalog.getDatabase(schema)
            _replace(folder / _SCHEMA_FILE, _text({"location": found.locationUri().toString()}))
        return folder

    def _write(self, schema: str, name: str) -> None:
        if not self._catalog.databaseExists(schema) or not self._catalog.tableExists(schema, name):
            self._remove(schema, name)
            return
        entry = self._entry(schema, name)
        if entry != self._written.get((schema, name)):
            _replace(self._schema_folder(schema) / _file_name(name), _text(entry))
            self._written[schema, name] = entry

    def _remove(self, schema: str, name: str) -> None:
        if self._written.pop((schema, name), None) is not None:
            (self._folder / schema / _file_name(name)).unlink(missing_ok=True)

    def _entry(self, schema: str, name: str) -> dict[str, Any]:
        table = self._catalog.getTable(schema, name)
        storage = table.storage()
        entry = {
            "type": table.tableType().name(),
            "columns": table.schema().json(),
            "properties": self._map(table.properties()),
            "comment": _or_none(table.comment()),
            "created": [table.owner(), table.createTime(), table.createVersion()],
        }
        if entry["type"] == "VIEW":
            entry |= {"text": _or_none(table.viewText()), "original": _or_none(table.viewOriginalText())}
        else:
            entry |= {
                "provider": _or_none(table.provider()),
                "location": storage.locationUri().get().toString(),
                "options": self._map(storage.properties()),
                "partitioned_by": _list(table.partitionColumnNames()),
                "partitions": self._partitions(table, schema, name),
            }
        return entry

    def _partitions(self, table: Any, schema: str, name: str) -> list[str] | None:
        """The names of the partitions, whose files are below the table; None where files, not the catalog, say which there are."""
        if not table.tracksPartitionsInCatalog():
            return None
        return _list(self._catalog.listPartitionNames(schema, name, self._none))

    @property
    def _none(self) -> Any:
        return self._jvm.scala.Option.empty()

    def _some(self, value: Any) -> Any:
        return self._jvm.scala.Option.apply(value)

    def _map(self, found: Any) -> dict[str, str]:
        return json.loads(self._texts.writeValueAsString(found))

    def _scala_map(self, values: dict[str, str]) -> Any:
        return self._jvm.PythonUtils.toScalaMap(values)

    def _create_schema(self, name: str, found: dict[str, Any]) -> None:
        location = self._jvm.java.net.URI(found["location"])
        database = self._jvm.org.apache.spark.sql.catalyst.catalog.CatalogDatabase(
            name, "", location, self._scala_map({})
        )
        self._catalog.createDatabase(database, True)

    def _create_entry(self, schema: str, name: str, entry: dict[str, Any]) -> None:
        catalyst = self._jvm.org.apache.spark.sql.catalyst
        identifier = catalyst.TableIdentifier(name, self._some(schema))
        columns = self._jvm.org.apache.spark.sql.types.DataType.fromJson(entry["columns"])
        owner, create_time, create_version = entry["created"]
        is_view = entry["type"] == "VIEW"
        default = catalyst.catalog.CatalogTable
        self._catalog.createTable(
            default.apply(
                identifier,
                catalyst.catalog.CatalogTableType(entry["type"]),
                self._storage(entry.get("location"), entry.get("options", {})),
                columns,
                self._some(entry.get("provider")),
                self._jvm.PythonUtils.toSeq(entry.get("partitioned_by", [])),
                self._none,  # buckets
                owner,
                create_time,
                getattr(default, "apply$default$10")(),  # last access
                create_version,
                self._scala_map(entry["properties"]),
                self._none,  # statistics
                self._some(entry.get("text")),
                self._some(entry["comment"]),
                getattr(default, "apply$default$16")(),  # collation
                getattr(default, "apply$default$17")(),  # unsupported features
                entry.get("partitions") is not None,
                getattr(default, "apply$default$19")(),  # schema preserves case
                getattr(default, "apply$default$20")(),  # ignored properties
                self._some(entry.get("original")),
            ),
            False,
        )
        if not is_view and entry["partitions"]:
            self._create_partitions(schema, name, entry)

    def _storage(self, location: str | None, options: dict[str, str]) -> Any:
        uri = self._some(self._jvm.java.net.URI(location)) if location else self._none
        return self._jvm.org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat(
            uri, self._none, self._none, self._none, False, self._scala_map(options)
        )

    def _create_partitions(self, schema: str, name: str, entry: dict[str, Any]) -> None:
        part = self._jvm.org.apache.spark.sql.catalyst.catalog.CatalogTablePartition
        escapes = self._jvm.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
        parts = []
        for partition in entry["partitions"]:
            values = {
                escapes.unescapePathName(column): escapes.unescapePathName(value)
                for column, value in (piece.split("=", 1) for piece in partition.split("/"))
            }
            parts.append(
                part.apply(
                    self._scala_map(values),
                    self._storage(None, {}),  # below the table
                    getattr(part, "apply$default$3")(),
                    getattr(part, "apply$default$4")(),
                    getattr(part, "apply$default$5")(),
                    getattr(part, "apply$default$6")(),
                )
            )
        self._catalog.createPartitions(schema, name, self._jvm.PythonUtils.toSeq(parts), True)


_SCHEMA_FILE = "schema"


def _file_name(name: str) -> str:
    """Spark takes only letters, digits and underscores in names."""
    return f"{name}.json"


def _text(entry: dict[str, Any]) -> str:
    return json.dumps(entry, indent=1)


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise CatalogDamaged(
            f"{path} is not what Tidemark wrote there ({error}): put it back from a copy of the state folder, or remove it and build its table again"
        ) from None


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text)
    os.replace(beside, path)


def _list(names: Any) -> list[str]:
    """A Scala sequence of names, in one call; no name has a line break."""
    text = names.mkString("\n")
    return text.split("\n") if text else []


def _or_none(option: Any) -> Any:
    return option.get() if option.isDefined() else None
