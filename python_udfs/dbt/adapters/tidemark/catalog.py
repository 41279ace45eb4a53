"""What models ask of Spark's catalog many times over: here without a statement for each, which takes ten times as long."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.base.relation import BaseRelation
from dbt.flags import get_flags
from pyspark.sql.types import StructType

import tidemark
from dbt.adapters.tidemark.connections import project_state_dir
from tidemark.spark.session import announce_change, catalog_entry


class JavaClasses(NamedTuple):
    """Looked up once per session: each part of a name is a question to Java."""

    session: Any
    TableIdentifier: Any
    Option: Any
    Path: Any


class CatalogMethods(metaclass=AdapterMeta):
    """Part of the adapter class."""

    config: Any
    connections: Any
    execute: Any
    Column: Any
    remember: Any
    remembered: Any
    _classes: JavaClasses | None = None

    @available
    def table_property(self, relation: BaseRelation, name: str) -> str | None:
        """A property of a table or view that is there."""
        entry = catalog_entry(relation.schema, relation.identifier)
        if entry is not None:
            return entry["properties"].get(name)
        found = self._catalog().getTableMetadata(self._identifier(relation)).properties().get(name)
        return found.get() if found.isDefined() else None

    @available
    def announce_change(self, relation: BaseRelation | None) -> None:
        """The next statement of this thread changes this table or view and no other; None: nothing that outlives the command."""
        announce_change(relation.schema if relation else None, relation.identifier if relation else None)

    @available
    def state_dir(self) -> str:
        return str(project_state_dir(self.config))

    @available
    def is_stored(self, table: str) -> bool:
        """Whether there is a table of this name, which may begin with that of a catalog."""
        return self.connections.spark_session().catalog.tableExists(table)

    def is_there(self, relation: BaseRelation) -> bool:
        return self._catalog().tableExists(self._identifier(relation))

    @available
    def provide_schema(self, schema: str) -> None:
        if not self._catalog().databaseExists(schema):
            self.execute(f"create schema if not exists {schema}")

    @available
    def partition_bytes(self, relation: BaseRelation, name: str) -> int:
        """How many bytes of files a partition of a table has that is there; 0 for one that is not."""
        if name not in self._partitions(relation):
            return 0
        java = self._java()
        table = java.Path(self._catalog().getTableMetadata(self._identifier(relation)).location())
        files = table.getFileSystem(java.session._jsparkSession.sessionState().newHadoopConf())
        folder = java.Path(table, name)
        # One that was added by a statement may have no folder.
        return files.getContentSummary(folder).getLength() if files.exists(folder) else 0

    @available
    def part_numbers(self, relation: BaseRelation) -> list[int]:
        """The parts of a table that the catalog knows (macros/kept/parts.sql)."""
        return [int(name.removeprefix("part=")) for name in self._partitions(relation)]

    def _partitions(self, relation: BaseRelation) -> list[str]:
        """The partitions of a table that is there, as `show partitions` names them."""
        entry = catalog_entry(relation.schema, relation.identifier)
        if entry is not None and entry.get("partitions") is not None:
            return entry["partitions"]
        names = self._catalog().listPartitionNames(self._identifier(relation), self._java().Option.empty())
        return names.mkString("\n").split("\n") if names.nonEmpty() else []

    @available
    def prepared_view(self, select: str, name: str) -> list[str]:
        """The columns of a query, and a temporary view of this name for it: reading from that, Spark does not analyse the query again."""
        with self.connections.exception_handler(select):
            found = self.connections.model_session().sql(select)
            found.createOrReplaceTempView(name)
            return found.columns

    @available
    def drop_prepared_view(self, name: str) -> None:
        self.connections.model_session().catalog.dropTempView(name)

    @available
    def made_from(self, texts: list[str], parents: list[BaseRelation]) -> str | None:
        """A digest of what a relation is made from: these texts, the columns of what it reads, the settings that Spark keeps with a view, and our functions.

        None if a parent is not there, or its columns are not in the catalog, as those of Delta tables; and with --defer, where it may be another one.
        """
        if getattr(get_flags(), "DEFER", False):
            return None
        if not all(map(self.is_there, parents)):
            return None
        columns = [self._columns(parent) for parent in parents]
        if None in columns:
            return None
        parts = [self._code_digest(), *texts, *columns]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _code_digest(self) -> str:
        """The settings that Spark keeps with a view, and our functions."""
        return self.remembered("code digest") or self.remember(
            "code digest", f"{_source_digest()} {self._sql_settings()}"
        )

    def _sql_settings(self) -> str:
        settings = self.connections.spark_session().conf.getAll
        return json.dumps(
            {name: value for name, value in sorted(settings.items()) if name.startswith("spark.sql.")}
        )

    def get_columns_in_relation(self, relation: BaseRelation) -> list:
        """dbt-spark's own describes the relation. It is still asked for what the catalog does not know: temporary views, columns of Delta tables."""
        columns = self._columns(relation) if self.is_there(relation) else None
        if columns is None:
            return super().get_columns_in_relation(relation)  # type: ignore[misc]
        fields = StructType.fromJson(json.loads(columns)).fields
        return [self.Column(field.name, field.dataType.simpleString()) for field in fields]

    def _columns(self, relation: BaseRelation) -> str | None:
        """The columns of a table or view that is there, as JSON; None if the catalog does not know them."""
        entry = catalog_entry(relation.schema, relation.identifier)
        if entry is not None:
            found = entry["columns"]
        else:
            found = self._catalog().getTableMetadata(self._identifier(relation)).schema().json()
        return found if json.loads(found)["fields"] else None

    def _catalog(self) -> Any:
        return self._java().session._jsparkSession.sessionState().catalog()

    def _identifier(self, relation: BaseRelation) -> Any:
        java = self._java()
        return java.TableIdentifier(relation.identifier, java.Option.apply(relation.schema))

    def _java(self) -> JavaClasses:
        spark = self.connections.spark_session()
        if self._classes is None or self._classes.session is not spark:
            jvm = spark._jvm
            self._classes = JavaClasses(
                spark,
                jvm.org.apache.spark.sql.catalyst.TableIdentifier,
                jvm.scala.Option,
                jvm.org.apache.hadoop.fs.Path,
            )
        return self._classes


def _source_digest() -> str:
    """Of all that our functions are made of: with other code they may give other values."""
    digest = hashlib.sha256()
    for path in sorted(Path(tidemark.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
