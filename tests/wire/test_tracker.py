"""The schema in force after statements that concern more than one table."""

from tidemark.demo.column_types import column
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.table_info import TableInfo
from tidemark.wire.tracker import SchemaTracker

RENAME_TABLES, EXCHANGE_PARTITION = 47, 42


def table(name, table_id, *, is_partition=False):
    columns = [column("id int not null primary key", 0)]
    return TableInfo.build("s", name, table_id, 1, columns=columns, is_partition=is_partition)


def in_force(begun, ddl_type, *tables):
    """The table of a dispatcher that began with one and received a statement about some."""
    tracker, dispatcher_id = SchemaTracker(), bytes(16)
    tracker.feed(HandshakeEvent(1, 1, 1, dispatcher_id, begun.to_bytes()))
    first, *others = (info.to_bytes() for info in tables)
    tracker.feed(DDLEvent.build({"type": ddl_type, "finished_ts": 5}, dispatcher_id, first, tuple(others)))
    schema = tracker.in_force(dispatcher_id)
    assert schema.table_info_version == 5
    return schema.table.table, schema.table.table_id


def test_of_several_renamed_tables_a_dispatcher_takes_its_own():
    renamed = table("b2", 2), table("a2", 1), table("b2", 2)
    assert in_force(table("a", 1), RENAME_TABLES, *renamed) == ("a2", 1)
    assert in_force(table("b", 2), RENAME_TABLES, *renamed) == ("b2", 2)
    assert in_force(table("c", 3), RENAME_TABLES, *renamed) == ("c", 3)


def test_after_an_exchange_the_dispatchers_read_the_other_table():
    """Each gets the table info that holds for it, then the partitioned table and the plain table as it was."""
    parts, plain = table("parts", 1, is_partition=True), table("plain", 5)
    assert in_force(plain, EXCHANGE_PARTITION, parts, parts, plain) == ("parts", 1)
    assert in_force(parts, EXCHANGE_PARTITION, table("plain", 11), parts, plain) == ("plain", 11)
