"""What happens once before the tasks of a run begin, so that a run fails before its first message rather than between two.

Topics are there and large enough. With Avro, the schemas of all table versions that have rows are registered, in the order of these rows: tasks run at the same time, and
would register a newer version before an older one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidemark.config import Settings
from tidemark.dispatch.router import Router
from tidemark.encode.avro import AvroEncoder
from tidemark.encode.columns import ColumnChoice
from tidemark.encode.protocol import encoder_for
from tidemark.log_schemas import LogSchemas
from tidemark.sinks.kafka.topics import Topics, settings_for
from tidemark.wire.table_info import TableInfo


@dataclass(frozen=True)
class FirstRow:
    """The first row of a table version in a run."""

    upstream_id: str
    dispatcher_id: str
    epoch: int
    seq: int


@dataclass(frozen=True)
class Prepared:
    partition_num: int
    max_message_bytes: int
    # Topics that watermarks go to.
    watermark_topics: tuple[str, ...]

    def settings(self, settings: Settings) -> Settings:
        """The settings with what was found out, for encoders and routers."""
        return settings_for(settings, self.partition_num, self.max_message_bytes)


def prepare_topics(settings: Settings, used: Iterable[str], known: Iterable[str]) -> Prepared:
    """`used`: topics that messages go to. `known`: topics of all tables; of these and of the URI's topic, what exists gets watermarks too."""
    topics, used = Topics(settings), set(used)
    encoder_for(settings)
    checked = topics.checked(used)
    existing = topics.existing()
    watermarks = used | {topic for topic in [*known, settings.default_topic] if topic in existing}
    return Prepared(checked.spread, checked.max_message_bytes, tuple(sorted(watermarks)))


def versions_without_key(
    settings: Settings, rows: Iterable[FirstRow], schemas: LogSchemas
) -> list[tuple[str, str, int]]:
    """(schema, table, table version) of the tables of these rows whose Avro messages have no key."""
    encoder, tables = AvroEncoder(settings), [_table(row, schemas) for row in rows]
    return [(table.schema, table.table, table.version) for table in tables if not encoder.has_key(table)]


def check_columns(settings: Settings, rows: Iterable[FirstRow], schemas: LogSchemas) -> None:
    """DroppedColumn where column selectors leave out what a table of these rows is keyed or dispatched by."""
    choice, router = ColumnChoice(settings), Router.for_topics(settings)
    for row in rows:
        table = _table(row, schemas)
        choice.of(table)
        if router is not None:
            router.check(table)


def register_schemas(settings: Settings, rows: Iterable[FirstRow], schemas: LogSchemas) -> None:
    """Register what the table versions of these rows need."""
    encoder = AvroEncoder(settings)
    for row in rows:
        encoder.register(_table(row, schemas))


def _table(row: FirstRow, schemas: LogSchemas) -> TableInfo:
    return schemas.in_force(row.upstream_id, bytes.fromhex(row.dispatcher_id), row.epoch, row.seq).table
