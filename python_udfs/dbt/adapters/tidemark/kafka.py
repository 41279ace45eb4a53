"""What the models of Kafka and Avro need beyond SQL: topics, registered schemas, and where DDL statements go."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from dbt.adapters.base.meta import AdapterMeta, available

from dbt.adapters.tidemark.sinks import explained
from tidemark.config import Settings
from tidemark.dispatch.routing import Routing
from tidemark.encode.avro_tables import empty_deletes
from tidemark.log_schemas import LogSchemas
from tidemark.sinks.kafka.decided import decide_statements
from tidemark.sinks.kafka.prepare import (
    FirstRow,
    check_columns,
    prepare_topics,
    register_schemas,
    versions_without_key,
)
from tidemark.sinks.kafka.topics import Topics, settings_for


class KafkaMethods(metaclass=AdapterMeta):
    """Part of the adapter class."""

    _settings: Any

    @available
    def kafka_partition_count(self) -> int:
        """Over how many partitions rows are spread; asks the brokers where the settings do not say."""
        with explained():
            return Topics(self._settings()).spread()

    @available
    def kafka_statements(self, places: list[list]) -> list[dict[str, Any]]:
        """The DDL statements of the events at [file, offset, length] that are sent, with topic and partition."""
        with explained():
            settings = self._spread_settings()
            found = decide_statements(settings, [(file, offset) for file, offset, _ in places])
            return [asdict(statement) for statement in found]

    @available
    def prepare_kafka(self, rows: list[list], known: list[str], statements: list[list], schemas: str) -> str:
        """The option `prepared` of the Kafka sink; topics are there and schemas registered afterwards.

        `rows`: [topic, upstream_id, dispatcher_id, epoch, seq] of the first row of each table version. `known`: topics of all tables.
        """
        with explained():
            settings = self._settings()
            self._check_columns(rows, schemas)
            used = {row[0] for row in rows} | {found["topic"] for found in self.kafka_statements(statements)}
            prepared = prepare_topics(settings, used, known)
            if settings.protocol == "avro":
                self._register(prepared.settings(settings), rows, schemas)
            return json.dumps(asdict(prepared))

    @available
    def prepare_files(self, rows: list[list], schemas: str) -> None:
        """Check the columns and register the schemas of files, as `prepare_kafka` does for messages."""
        with explained():
            self._check_columns(rows, schemas)
            if self._settings().protocol == "avro":
                self._register(self._settings(), rows, schemas)

    @available
    def versions_without_avro_key(self, rows: list[list], schemas: str) -> list[tuple[str, str, int]]:
        """(schema, table, table version) of the rows whose Avro messages have no key; `rows` as for `prepare_kafka`."""
        with explained():
            settings = self._settings()
            return versions_without_key(settings, *_tables(settings, rows, schemas))

    @available
    def empty_deletes(self, schema: str, table: str, count: int) -> str:
        """What is to be said of the deletes of a table without a key."""
        return empty_deletes(self._settings(), schema, table, count)

    def _check_columns(self, rows: list[list], schemas: str) -> None:
        settings = self._settings()
        if settings.sink.column_selectors:
            check_columns(settings, *_tables(settings, rows, schemas))

    def _register(self, settings: Settings, rows: list[list], schemas: str) -> None:
        register_schemas(settings, *_tables(settings, rows, schemas))

    def _spread_settings(self) -> Settings:
        settings = self._settings()
        return settings_for(settings, Topics(settings).spread(), settings.uri.options.max_message_bytes)


def _tables(settings: Settings, rows: list[list], schemas: str) -> tuple[list[FirstRow], LogSchemas]:
    """The first rows of table versions, and where their tables are found."""
    return [FirstRow(*row[1:]) for row in rows], LogSchemas(json.loads(schemas), Routing.of(settings))
