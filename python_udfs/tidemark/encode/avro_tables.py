"""Which schemas a table version has, and under which subjects.

Subjects are named after the table's topic (TopicNameStrategy), so a topic has one schema and can carry one table; `compat: ticdc` leaves that to the
registry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemark.dispatch.router import Router
from tidemark.encode.avro_schema import (
    DEFAULT_KEYSPACE,
    AvroOptions,
    NoAvroSchema,
    RecordSchema,
    key_schema,
    subjects,
    value_schema,
)
from tidemark.encode.columns import ColumnChoice
from tidemark.encode.errors import EncodeError
from tidemark.wire.table_info import TableInfo

if TYPE_CHECKING:
    from tidemark.config import Settings


class SharedTopic(EncodeError):
    """Two tables would have one topic, and so one subject."""


@dataclass(frozen=True)
class TableSchemas:
    table: TableInfo
    # Of the key and of the value.
    subjects: tuple[str, str]
    # None: no key that counts. A text: why there is no schema.
    key: RecordSchema | str | None
    value: RecordSchema | str


def empty_deletes(settings: Settings, schema: str, table: str, count: int) -> str:
    """A sentence for a person: deletes of a table without a key say nothing."""
    if settings.compat.avro_handle_keys:
        lacks, advice = "neither a primary key nor a NOT NULL unique key", "give the table one"
    else:
        lacks = "no primary key"
        advice = "set compat to {base: ticdc, avro_handle_keys: design} if it has a NOT NULL unique key"
    deletes = "1 delete says" if count == 1 else f"{count} deletes say"
    return (
        f"{schema}.{table}: {deletes} nothing in Avro, since the table has {lacks} and a delete is only its key; "
        f"consumers keep these rows: {advice}, or leave its deletes out with an event filter"
    )


class AvroSchemas:
    def __init__(self, settings: Settings, keyspace: str = DEFAULT_KEYSPACE):
        self._options = AvroOptions.of(settings, keyspace)
        self._columns = ColumnChoice(settings, with_virtual=True)
        self._router = Router.for_topics(settings)
        self._one_table_per_topic = not settings.compat.avro_static_topics
        self._made: dict[int, TableSchemas] = {}
        # subject of the key -> the table it belongs to
        self._tables: dict[str, tuple[str, str]] = {}

    def of(self, table: TableInfo) -> TableSchemas:
        found = self._made.get(id(table))
        if found is None or found.table is not table:
            found = self._made[id(table)] = self._make(table)
        return found

    def topic(self, table: TableInfo) -> str:
        """Storage has no topics; its subjects are named as if there were one per table."""
        if self._router is None:
            return f"{table.target_schema}.{table.target_table}"
        return self._router.route(table.schema, table.table).topic

    def _make(self, table: TableInfo) -> TableSchemas:
        names = subjects(self.topic(table))
        target = (table.target_schema, table.target_table)
        owner = self._tables.setdefault(names[0], target)
        if owner != target and self._one_table_per_topic:
            raise SharedTopic(
                f"topic {self.topic(table)!r}: {owner[0]}.{owner[1]} and {target[0]}.{target[1]} would share its subjects, but "
                "with Avro a topic can carry one table only; add a dispatch rule with topic = '{schema}_{table}'"
            )
        chosen = self._columns.of(table)
        return TableSchemas(
            table,
            names,
            _or_reason(lambda: key_schema(table, self._options, chosen)),
            _or_reason(lambda: value_schema(table, self._options, chosen)),
        )


def _or_reason(schema_of: Callable[[], RecordSchema | None]) -> RecordSchema | str | None:
    try:
        return schema_of()
    except NoAvroSchema as problem:
        return str(problem)
