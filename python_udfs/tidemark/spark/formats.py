"""Table formats and catalogs that the `spark_settings` of a profile bring along: what they imply, and whether their classes are there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

ICEBERG_CATALOGS = (
    "org.apache.iceberg.spark.SparkCatalog",
    "org.apache.iceberg.spark.SparkSessionCatalog",
)
SESSION_CATALOG = "spark_catalog"
_CATALOG = re.compile(r"spark\.sql\.catalog\.(\w+)")
# What a class is called, how it begins, and by which coordinates Maven knows the jars that fit the Spark of requirements.lock.
_FORMATS = (
    ("Delta", ("io.delta.", "org.apache.spark.sql.delta."), "io.delta:delta-spark_4.1_2.13:4.4.0"),
    ("Iceberg", ("org.apache.iceberg.",), "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"),
    ("SQLite", ("org.sqlite.",), "org.xerial:sqlite-jdbc:3.54.1.0"),
)
_DRIVERS = {"sqlite": "org.sqlite.JDBC", "postgresql": "org.postgresql.Driver"}


def implied(settings: Mapping[str, str]) -> dict[str, str]:
    """Properties that settings with an Iceberg catalog need, and that a person would not think of."""
    catalogs = [name for name, of in _catalogs(settings) if of in ICEBERG_CATALOGS]
    if not catalogs:
        return {}
    # A process has two sessions. Each would keep the tables that it has read for half a minute, and not see what the other one writes.
    uncached = {f"spark.sql.catalog.{name}.cache-enabled": "false" for name in catalogs}
    # Iceberg asks Hadoop for the file system with checksums.
    return {**uncached, "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem"}


def open_catalogs(spark: Any, settings: Mapping[str, str]) -> None:
    """Let Iceberg's catalogs make the tables of theirs that are not there yet: two threads at once would get in each other's way."""
    for name, of in _catalogs(settings):
        if of in ICEBERG_CATALOGS:
            spark._jsparkSession.sessionState().catalogManager().catalog(name)


def refusal(settings: Mapping[str, str]) -> str | None:
    """Why Tidemark does not run with these settings."""
    catalog = settings.get("spark.sql.defaultCatalog", SESSION_CATALOG)
    if catalog == SESSION_CATALOG:
        return None
    return (
        f"spark.sql.defaultCatalog is {catalog}, and the names of the models are views of spark_catalog, Spark's own: remove it from the `spark_settings` of the profile. "
        f"For Iceberg tables in {catalog} set the vars table_format: iceberg and iceberg_catalog: {catalog}"
    )


def missing_class(spark: Any, settings: Mapping[str, str]) -> str | None:
    """A sentence on the first class that settings name and no jar of the session has."""
    named = list(_classes(settings))
    if not named:
        return None
    loader = spark._jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    for key, name in named:
        try:
            loader.loadClass(name)
        except Exception:  # py4j wraps every Java failure in one class
            return _sentence(key, name)
    return None


def _classes(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Settings that name a class, and the class."""
    for name in settings.get("spark.sql.extensions", "").split(","):
        if name.strip():
            yield "spark.sql.extensions", name.strip()
    for catalog, name in _catalogs(settings):
        key = f"spark.sql.catalog.{catalog}"
        yield key, name
        database = re.match(r"jdbc:(\w+):", settings.get(f"{key}.uri", ""))
        if database and database[1] in _DRIVERS:
            yield f"{key}.uri", _DRIVERS[database[1]]


def _catalogs(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, value in settings.items():
        # Deeper keys are options of a catalog.
        if found := _CATALOG.fullmatch(key):
            yield found[1], value


def _sentence(key: str, name: str) -> str:
    for said, beginnings, coordinates in _FORMATS:
        if name.startswith(beginnings):
            return (
                f"{said} is not there: {key} in the `spark_settings` of the profile needs the class {name}, which no jar has. "
                f"Set spark.jars.packages: {coordinates} there, or spark.jars to the paths of its jars (docs/table-formats.md)"
            )
    return (
        f"{key} in the `spark_settings` of the profile needs the class {name}, which no jar has: name its jars there with spark.jars.packages or spark.jars "
        "(docs/table-formats.md)"
    )
