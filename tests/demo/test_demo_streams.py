"""The streams of a demo log follow the rules of TiCDC's streams."""

from collections import Counter, defaultdict
from itertools import groupby

import pytest
from demo_log_reader import changes_of, events_of, once, upstream_folders

from tidemark.demo.shop import write_demo_logs
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.batch_resolved import BatchResolvedEvent
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.events.resolved import ResolvedEvent
from tidemark.wire.events.sync_point import SyncPointEvent
from tidemark.wire.registry import EVENT_TYPES
from tidemark.wire.rows import OP_NAMES

ROWS, TABLES, UPSTREAMS = 9000, 4, 2


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "log"
    return write_demo_logs(out, tables=TABLES, rows=ROWS, upstreams=UPSTREAMS, seed=7, batch_rows=300)


@pytest.fixture(scope="module")
def streams(demo):
    return [list(events_of(folder)) for folder in upstream_folders(demo.path)]


@pytest.fixture(scope="module")
def changes(demo):
    return [changes_of(folder) for folder in upstream_folders(demo.path)]


def resolved_of(event):
    return (
        event.events
        if isinstance(event, BatchResolvedEvent)
        else [event]
        if isinstance(event, ResolvedEvent)
        else []
    )


def test_every_event_type_occurs_and_dml_only_inside_of_batches(streams):
    for stream in streams:
        assert {event.type_id for event in stream} == set(EVENT_TYPES) - {0}


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_hardly_any_rows_leave_all_control_events(rows, tmp_path):
    written = write_demo_logs(tmp_path / "log", tables=3, rows=rows, upstreams=1, seed=1)
    types = Counter(event.type_id for event in events_of(tmp_path / "log"))
    assert written.rows == rows
    assert set(types) | {1} == set(EVENT_TYPES) - {0}
    assert (types[1] > 0) == (rows > 0)


def test_heartbeat_and_congestion_control_come_in_both_versions(streams):
    for stream in streams:
        for type_id in (10, 11):
            assert {event.version for event in stream if event.type_id == type_id} == {1, 2}
    drops = {event.version for stream in streams for event in stream if event.type_id == 9}
    assert drops == {1, 2}


def test_sequence_numbers_follow_the_rules(streams):
    """A handshake has seq 1; DML, DDL and sync points take the next one; a resolved event carries the last one."""
    for stream in streams:
        last: dict[bytes, tuple[int, int]] = {}
        for event in stream:
            if isinstance(event, HandshakeEvent):
                assert event.seq == 1
                assert event.epoch == last.get(event.dispatcher_id, (0, 0))[0] + 1
                last[event.dispatcher_id] = (event.epoch, 1)
            for numbered in event.transactions if isinstance(event, BatchDMLEvent) else [event]:
                if numbered.type_id in (0, DDLEvent.type_id, SyncPointEvent.type_id):
                    epoch, seq = last.get(numbered.dispatcher_id, (1, 0))
                    assert (numbered.epoch, numbered.seq) == (epoch, seq + 1)
                    last[numbered.dispatcher_id] = (epoch, seq + 1)
            for resolved in resolved_of(event):
                assert (resolved.epoch, resolved.seq) == last[resolved.dispatcher_id]


def test_all_dispatchers_of_all_upstreams_end_at_one_resolved_ts_that_covers_all_rows(streams, changes):
    ends = set()
    for stream, rows in zip(streams, changes, strict=True):
        last = {}
        for event in stream:
            last.update({resolved.dispatcher_id: resolved.resolved_ts for resolved in resolved_of(event)})
        assert len(last) == TABLES + 1
        ends |= set(last.values())
        assert max(change.commit_ts for change in rows) < min(last.values())
    assert len(ends) == 1


def test_nothing_new_comes_below_a_resolved_ts(streams):
    for stream in streams:
        resolved_ts = defaultdict(int)
        for event in stream:
            if isinstance(event, HandshakeEvent):
                resolved_ts[event.dispatcher_id] = event.resolved_ts
            elif isinstance(event, BatchDMLEvent):
                assert event.transactions[0].commit_ts > resolved_ts[event.dispatcher_id]
            elif isinstance(event, DDLEvent):
                assert event.finished_ts > resolved_ts[event.dispatcher_id]
            elif isinstance(event, SyncPointEvent):
                assert event.commit_ts > resolved_ts[event.dispatcher_id]
            for resolved in resolved_of(event):
                assert resolved.resolved_ts > resolved_ts[resolved.dispatcher_id]
                resolved_ts[resolved.dispatcher_id] = resolved.resolved_ts


def test_commit_ts_belong_to_one_transaction_and_increase_within_a_dispatcher(streams):
    commits = []
    for number, stream in enumerate(streams):
        seen = {}
        for event in stream:
            for part in event.transactions if isinstance(event, BatchDMLEvent) else ():
                seen.setdefault((part.dispatcher_id, part.epoch), []).append(part.commit_ts)
                assert part.start_ts < part.commit_ts
                commits.append((part.commit_ts, number, part.dispatcher_id))
        assert all(ts == sorted(set(ts)) for ts in seen.values())
    assert len(set(commits)) == len({commit_ts for commit_ts, _, _ in commits})


def test_one_dispatcher_is_re_created_and_repeats_rows(demo, changes):
    repeated = 0
    for rows in changes:
        again = len(rows) - len(once(rows))
        assert again > 0
        assert {change.table for change in rows if change.epoch == 2} == {"customers"}
        repeated += again
    assert repeated == demo.repeated_rows


def test_a_repeated_row_is_the_same_row(changes):
    for rows in changes:
        seen = {}
        for change in rows:
            first = seen.setdefault((change.table, change.key, change.commit_ts), change)
            assert (first.op, first.pre, first.post, first.start_ts) == (
                change.op,
                change.pre,
                change.post,
                change.start_ts,
            )


def test_the_number_of_rows_is_the_one_asked_for(demo, changes):
    counts = [len(once(rows)) for rows in changes]
    assert counts == [ROWS // UPSTREAMS] * UPSTREAMS
    assert demo.rows == ROWS


def test_most_changes_are_inserts_some_updates_few_deletes(changes):
    for rows in changes:
        counts = Counter((change.table, OP_NAMES[change.op]) for change in once(rows))
        assert {table for table, _ in counts} == {"orders", "customers", "inventory", "orders_2"}
        for table in ("orders", "orders_2"):
            total = sum(counts[table, op] for op in OP_NAMES.values())
            assert 0.75 < counts[table, "insert"] / total < 0.88
            assert 0.09 < counts[table, "update"] / total < 0.18
            assert 0.02 < counts[table, "delete"] / total < 0.08
        assert counts["customers", "delete"]
        assert counts["inventory", "delete"]


def test_rows_of_a_transaction_are_deletes_updates_inserts_each_by_key(changes):
    place = {"delete": 0, "update": 1, "insert": 2}
    for rows in changes:
        for _, group in groupby(rows, key=lambda change: (change.event, change.seq)):
            order = [(place[OP_NAMES[change.op]], change.row_key) for change in group]
            assert order == sorted(order)


def test_transactions_have_twenty_to_fifty_rows(streams):
    sizes = Counter()
    for stream in streams:
        for event in stream:
            if isinstance(event, BatchDMLEvent):
                sizes.update(part.row_count for part in event.transactions)
                assert sum(part.row_count for part in event.transactions) <= 300
    assert max(sizes) <= 50
    # Only the last transaction of a round is smaller.
    assert sum(count for size, count in sizes.items() if size < 20) <= 12 * TABLES * UPSTREAMS * 1.2


def test_row_keys_are_table_and_handle(changes):
    for rows in changes:
        for change in rows:
            table_id, handle = change.info.table_id, change.key
            expected = (
                b"t"
                + (table_id + (1 << 63)).to_bytes(8, "big")
                + b"_r"
                + (handle + (1 << 63)).to_bytes(8, "big")
            )
            assert change.row_key == expected


def test_add_column_reaches_the_trigger_and_the_table_and_later_rows_have_it(streams, changes):
    for stream, rows in zip(streams, changes, strict=True):
        alters = [
            event for event in stream if isinstance(event, DDLEvent) and event.query.startswith("alter")
        ]
        assert len(alters) == 2
        assert len({event.dispatcher_id for event in alters}) == 2
        ts = alters[0].finished_ts
        orders = [change for change in rows if change.table == "orders"]
        for change in orders:
            assert ("priority" in (change.post or change.pre)) == (change.commit_ts > ts)
        assert {change.commit_ts > ts for change in orders} == {True, False}


def test_an_old_row_has_the_default_of_an_added_column_until_it_is_written(changes):
    for rows in changes:
        written, olds = set(), 0
        for change in (change for change in rows if change.table == "orders"):
            if change.pre and "priority" in change.pre and change.key not in written:
                assert change.pre["priority"] == 3
                olds += 1
            if change.post and "priority" in change.post:
                written.add(change.key)
        assert olds
