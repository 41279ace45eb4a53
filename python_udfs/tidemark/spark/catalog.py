"""What schemas, tables, partitions and views there are, from one process to the next.

Spark keeps its catalog in memory, where a question costs a tenth of what it costs in a metastore with a database of its own. So that it outlives the process, every
entry stands in a file:

    {folder}/{schema}/{name}.json      a table with its partitions, or a view; replaced by one rename

A file is written after the statement that changed the entry, so after the data: a process that dies in between leaves files of rows that no entry shows, and the next run writes
them again. Who runs a statement says which entry it changes; after one that nobody announced, all entries are compared. The lock of the state folder keeps other processes out.
Functions that a statement creates are not kept.

An entry holds Spark's own object, which Java reads back in one step, and beside it what people and other versions of Spark need. A state folder that another version of Spark
wrote, or version 0.1.0 of Tidemark, which wrote no such objects, is restored by statements: tables, and the views that show them; other views are made again by the next run.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tidemark.errors import TidemarkError

_COMMENTS = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)+", re.DOTALL)
# Statements that change no entry, whatever else they do. All others may.
_READS = re.compile(
    r"(?:select|show|describe|desc|explain|set|values|use|refresh|create\s+(?:or\s+replace\s+)?(?:global\s+)?temp(?:orary)?\s+view)\b",
    re.IGNORECASE,
)
_BETWEEN_ENTRIES = "\n\0\n"


class CatalogDamaged(TidemarkError):
    """A file of the catalog cannot be read."""


def is_read(statement: str) -> bool:
    """Whether a statement changes no entry for sure. One that begins with a CTE may be an insert."""
    return bool(_READS.match(_COMMENTS.sub("", f" {statement}", count=1)))


class Catalog:
    """The written form of a session's catalog."""

    def __init__(self, spark: Any, folder: Path):
        self._spark = spark
        self._jvm = spark._jvm
        self._catalog = spark._jsparkSession.sharedState().externalCatalog()
        self._folder = folder
        self._written: dict[tuple[str, str], dict[str, Any]] = {}
        # What Spark says of an entry, to see without further questions whether it has changed.
        self._said: dict[tuple[str, str], str] = {}
        self._guard = threading.Lock()
        self._texts = self._jvm.com.fasterxml.jackson.databind.ObjectMapper()
        self._texts.registerModule(self._jvm.com.fasterxml.jackson.module.scala.DefaultScalaModule())

    def restore(self) -> None:
        """Tell Spark of everything that is written down."""
        self._folder.mkdir(parents=True, exist_ok=True)
        foreign = []
        for schema in sorted(self._folder.glob(f"*/{_SCHEMA_FILE}")):
            self._create_schema(schema.parent.name, _read(schema, {"location"}))
            for path in schema.parent.glob("*.json"):
                key, entry = (path.parent.name, path.stem), _read(path, {"type", "columns", "properties"})
                if entry.get("spark") == self._spark.version:
                    self._create_entry(*key, entry, path)
                    self._written[key] = entry
                else:
                    foreign.append((key, entry))
        self._create_by_statements(foreign)

    def entry(self, schema: str | None, name: str) -> dict[str, Any] | None:
        """What is written down of a table or view; to ask Java for a part of it takes a hundred times as long."""
        return self._written.get((schema.lower(), name.lower())) if schema else None

    def write(self, entries: Iterable[tuple[str, str]]) -> None:
        """Write down these tables and views, or that they are gone."""
        with self._guard:
            for schema, name in entries:
                self._write(schema.lower(), name.lower())

    def write_changes(self) -> None:
        """Write down whatever has changed."""
        with self._guard:
            schemas = _list(self._catalog.listDatabases())
            for path in self._folder.iterdir():
                if path.name not in schemas:
                    shutil.rmtree(path)
                    for key in [key for key in self._written if key[0] == path.name]:
                        del self._written[key]
            for schema in schemas:
                self._schema_folder(schema)
                for name in self._changed(schema):
                    self._write(schema, name)

    def _changed(self, schema: str) -> list[str]:
        """The tables and views of a schema that are not as they were, or gone, or whose partitions may be others."""
        found = self._catalog.listTables(schema)
        names = _list(found)
        texts = self._catalog.getTablesByName(schema, found).mkString(_BETWEEN_ENTRIES) if names else ""
        said = dict(zip(names, texts.split(_BETWEEN_ENTRIES), strict=False))
        known = [name for of, name in self._written if of == schema]
        gone = [name for name in known if name not in said]
        changed = [
            name
            for name, text in said.items()
            if self._said.get((schema, name)) != text
            or (self._written.get((schema, name)) or {}).get("partitions") is not None
        ]
        self._said.update({(schema, name): text for name, text in said.items()})
        return gone + changed

    def _schema_folder(self, schema: str) -> Path:
        folder = self._folder / schema
        if not (folder / _SCHEMA_FILE).exists():
            folder.mkdir(exist_ok=True)
            found = self._catalog.getDatabase(schema)
            _replace(folder / _SCHEMA_FILE, _text({"location": found.locationUri().toString()}))
        return folder

    def _write(self, schema: str, name: str) -> None:
        if not self._catalog.databaseExists(schema) or not self._catalog.tableExists(schema, name):
            if self._written.pop((schema, name), None) is not None:
                (self._folder / schema / _file_name(name)).unlink(missing_ok=True)
            return
        entry = self._entry(schema, name)
        if entry != self._written.get((schema, name)):
            _replace(self._schema_folder(schema) / _file_name(name), _text(entry))
            self._written[schema, name] = entry

    def _entry(self, schema: str, name: str) -> dict[str, Any]:
        table = self._catalog.getTable(schema, name)
        entry = {
            "type": table.tableType().name(),
            "columns": table.schema().json(),
            "properties": self._map(table.properties()),
            "spark": self._spark.version,
            "java": self._to_text(table),
        }
        if entry["type"] == "VIEW":
            return {**entry, "text": _or_none(table.viewText())}
        entry |= {
            "provider": _or_none(table.provider()),
            "location": table.storage().locationUri().get().toString(),
            "partitioned_by": _list(table.partitionColumnNames()),
            "partitions": None,
        }
        # Otherwise files, not the catalog, say which partitions there are.
        if entry["partitioned_by"] and table.tracksPartitionsInCatalog():
            partitions = self._catalog.listPartitions(schema, name, self._none)
            names = _list(self._catalog.listPartitionNames(schema, name, self._none))
            entry |= {"partitions": names, "java_partitions": self._to_text(partitions)}
        return entry

    @property
    def _none(self) -> Any:
        return self._jvm.scala.Option.empty()

    def _map(self, found: Any) -> dict[str, str]:
        return json.loads(self._texts.writeValueAsString(found))

    def _to_text(self, serializable: Any) -> str:
        written = self._jvm.java.io.ByteArrayOutputStream()
        stream = self._jvm.java.io.ObjectOutputStream(written)
        stream.writeObject(serializable)
        stream.close()
        return base64.b64encode(written.toByteArray()).decode()

    def _from_text(self, text: str) -> Any:
        found = self._jvm.java.io.ByteArrayInputStream(base64.b64decode(text))
        return self._jvm.java.io.ObjectInputStream(found).readObject()

    def _create_schema(self, name: str, found: dict[str, Any]) -> None:
        location = self._jvm.java.net.URI(found["location"])
        database = self._jvm.org.apache.spark.sql.catalyst.catalog.CatalogDatabase(
            name, "", location, self._jvm.PythonUtils.toScalaMap({})
        )
        self._catalog.createDatabase(database, True)

    def _create_entry(self, schema: str, name: str, entry: dict[str, Any], path: Path) -> None:
        try:
            self._catalog.createTable(self._from_text(entry["java"]), False)
            if entry.get("partitions"):
                self._catalog.createPartitions(schema, name, self._from_text(entry["java_partitions"]), True)
        except Exception as error:  # Java has many words for bytes that it cannot read
            raise CatalogDamaged(_damaged(path, str(error).splitlines()[0])) from None

    def _create_by_statements(self, entries: list[tuple[tuple[str, str], dict[str, Any]]]) -> None:
        """Restore what another version of Spark wrote: tables first, then the views that show them."""
        from pyspark.sql.types import StructType

        for (schema, name), entry in entries:
            if entry["type"] == "VIEW":
                continue
            columns = ", ".join(
                f"`{field.name}` {field.dataType.simpleString()}"
                for field in StructType.fromJson(json.loads(entry["columns"])).fields
            )
            by = ", ".join(f"`{column}`" for column in entry["partitioned_by"])
            # Delta knows the columns itself.
            self._spark.sql(
                f"create table {schema}.`{name}` {f'({columns})' if columns else ''} using {entry['provider']} "
                f"{f'partitioned by ({by})' if by else ''} location {_literal(entry['location'])}"
            )
            if entry["partitions"]:
                added = " ".join(f"partition ({_spec(partition)})" for partition in entry["partitions"])
                self._spark.sql(f"alter table {schema}.`{name}` add if not exists {added}")
            self._write(schema, name)
        for (schema, name), entry in entries:
            if entry["type"] == "VIEW" and not entry["properties"].keys().isdisjoint(_SHOWS_A_TABLE):
                properties = ", ".join(
                    f"{_literal(key)} = {_literal(value)}"
                    for key, value in entry["properties"].items()
                    if key.startswith("tidemark.")
                )
                self._spark.sql(
                    f"create view {schema}.`{name}` tblproperties ({properties}) as {entry['text']}"
                )
                self._write(schema, name)
            elif entry["type"] == "VIEW":
                (self._folder / schema / _file_name(name)).unlink()


def _spec(partition: str) -> str:
    """A partition as a statement names it, from the path of its folder."""
    pieces = (piece.split("=", 1) for piece in partition.split("/"))
    return ", ".join(f"`{unquote(column)}` = {_literal(unquote(value))}" for column, value in pieces)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_SCHEMA_FILE = "schema"
# The properties of a view that has the name of a model and shows the table with its rows; what is known of them is another property of it.
_SHOWS_A_TABLE = {"tidemark.version", "tidemark.table"}


def _file_name(name: str) -> str:
    """Spark takes only letters, digits and underscores in names."""
    return f"{name}.json"


def _text(entry: dict[str, Any]) -> str:
    return json.dumps(entry, indent=1)


def _read(path: Path, keys: set[str]) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except ValueError as error:
        raise CatalogDamaged(_damaged(path, str(error))) from None
    if not isinstance(found, dict) or not keys <= found.keys():
        raise CatalogDamaged(_damaged(path, f"it lacks {', '.join(sorted(keys))}"))
    return found


def _damaged(path: Path, reason: str) -> str:
    return f"{path} is not what Tidemark wrote there ({reason}): put it back from a copy of the state folder, or remove it and build its table again"


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
