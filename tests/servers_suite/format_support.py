"""Warehouses of several table formats, and how other engines see their tables."""

import json
import uuid

import pyarrow as pa
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from dbt_support import Dbt
from tidemark.spark.session import note_changes

FORMATS = ("parquet", "delta", "iceberg")


class Warehouses:
    """A warehouse of each format; a command without a format goes to all."""

    def __init__(self, spark, patches, folder, lake, formats=FORMATS):
        self._patches, self._lake, self.vars = patches, lake, {}
        # Vars that each format has for itself.
        self.vars_of = {name: {} for name in formats}
        self._runners = {
            name: Dbt(spark, patches, folder / name, f"{name}_{uuid.uuid4().hex[:12]}") for name in formats
        }

    def __getitem__(self, name):
        """The one of this format, for the next commands."""
        runner = self._runners[name]
        self._patches.setenv("TIDEMARK_SCHEMA", runner.schema)
        runner.vars = {**self.vars, **self.vars_of[name], "table_format": name}
        return runner

    def __iter__(self):
        return iter(self._runners)

    def ok(self, *arguments):
        for name in self:
            self[name].ok(*arguments)

    def drop(self):
        for runner in self._runners.values():
            runner.drop()
        if runner := self._runners.get("iceberg"):
            for table in runner.rows("show tables in lake.{schema}"):
                runner.rows(f"drop table lake.{runner.schema}.{table['tableName']}")

    def read_elsewhere(self, table_format, model):
        """The rows of a model's table as an engine without Spark reads them."""
        schema = self._runners[table_format].schema
        if table_format == "delta":
            described = self._runners["delta"].rows(f"describe detail {schema}_store.{model}")
            return DeltaTable(described[0]["location"].removeprefix("file:")).to_pyarrow_table()
        catalog = load_catalog(
            "lake", type="sql", uri=f"sqlite:///{self._lake}/lake.db", warehouse=f"file://{self._lake}/lake"
        )
        return catalog.load_table(f"{schema}.{model}").scan().to_arrow()


def kept(warehouse, model):
    """What is noted of a model."""
    properties = warehouse.rows(f"show tblproperties {{schema}}.{model}")
    return json.loads(next(row["value"] for row in properties if row["key"] == "tidemark.kept"))


def note(warehouse, model, noted):
    text = json.dumps(noted).replace("\\", "\\\\").replace("'", "\\'")
    warehouse.spark.sql(
        f"alter view {warehouse.schema}.{model} set tblproperties ('tidemark.kept' = '{text}')"
    )
    note_changes()


def rows_of(table):
    """The rows of an Arrow table, in an order of their own."""
    return sorted(table.to_pylist(), key=repr)


def types_of(table):
    return {field.name: plain(field.type) for field in table.schema}


def plain(kind):
    """A type as text. How long texts and lists may be, and whether a value may be missing, each reader says in its own way."""
    if pa.types.is_struct(kind):
        return "struct<" + ", ".join(f"{field.name}: {plain(field.type)}" for field in kind) + ">"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list<{plain(kind.value_type)}>"
    if pa.types.is_timestamp(kind):
        return f"timestamp[{kind.unit}{', UTC' if kind.tz else ''}]"
    return str(kind).replace("large_", "").removesuffix("_view")
