"""The schema in force for a dispatcher."""

import dataclasses

import pytest
from tables import column, events, table

from tidemark.wire import types
from tidemark.wire.errors import WireError
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.tracker import SchemaTracker

ME, OTHER = b"m" * 16, b"o" * 16
TABLE = table(column("id", types.BIGINT))


def version_of(number: int, table_id: int = 100, name: str = "t"):
    return dataclasses.replace(TABLE, version=number, table_id=table_id, table=name)


def handshake(table=TABLE, dispatcher: bytes = ME, ts: int = 5) -> HandshakeEvent:
    return HandshakeEvent(ts, 1, 1, dispatcher, table.to_bytes())


def ddl(*tables, dispatcher: bytes = ME, ts: int = 9) -> DDLEvent:
    raws = tuple(item.to_bytes() for item in tables)
    return DDLEvent.build({"finished_ts": ts}, dispatcher, raws[0] if raws else b"", raws[1:])


@pytest.fixture
def tracker():
    tracker = SchemaTracker()
    tracker.feed(handshake())
    return tracker


def test_the_handshake_gives_the_first_schema_and_the_start_ts(tracker):
    assert tracker.in_force(ME) == (TABLE, 5)
    assert tracker.in_force(OTHER) is None


def test_a_ddl_of_the_dispatcher_replaces_the_schema(tracker):
    tracker.feed(ddl(version_of(2)))
    assert tracker.in_force(ME) == (version_of(2), 9)


def test_a_ddl_of_another_dispatcher_changes_nothing(tracker):
    tracker.feed(ddl(version_of(2), dispatcher=OTHER))
    assert tracker.in_force(ME) == (TABLE, 5)
    assert tracker.in_force(OTHER) is None


def test_a_statement_about_several_tables_gives_each_its_own(tracker):
    tracker.feed(ddl(version_of(3, 200, "other"), version_of(3, 200, "other"), version_of(3, 100, "mine")))
    assert tracker.in_force(ME).table.table == "mine"


def test_a_statement_about_another_table_keeps_the_schema_and_moves_the_version(tracker):
    tracker.feed(ddl(version_of(3, 200, "a view")))
    assert tracker.in_force(ME) == (TABLE, 9)


def test_a_statement_without_a_table_moves_the_version(tracker):
    tracker.feed(ddl())
    assert tracker.in_force(ME) == (TABLE, 9)


def test_a_new_handshake_starts_over(tracker):
    tracker.feed(ddl(version_of(2)))
    tracker.feed(handshake(version_of(7), ts=20))
    assert tracker.in_force(ME) == (version_of(7), 20)


@pytest.mark.parametrize(
    "broken",
    [
        HandshakeEvent(5, 1, 1, ME, b"not a table info"),
        DDLEvent.build({}, ME, b"not a table info"),
        DDLEvent.build({}, ME, TABLE.to_bytes(), (b"x",)),
    ],
)
def test_after_an_unreadable_schema_none_is_in_force(tracker, broken):
    with pytest.raises(WireError):
        tracker.feed(broken)
    assert tracker.in_force(ME) is None


def test_golden_rename_of_two_tables_in_one_statement():
    tracker, names = SchemaTracker(), set()
    for _, event in events("evolve"):
        tracker.feed(event)
        if isinstance(event, BatchDMLEvent):
            names.add(tracker.in_force(event.dispatcher_id).table.table)
    assert {"multi_a", "multi_b", "multi_b2", "t1", "t1_renamed", "t1_moved"} <= names
