"""What the database sink does when something breaks: it recovers, or it says what to do, and a run after that ends right."""

import threading
from dataclasses import replace

import pytest
from mysql_support import ACTIVE_DDL, active_table, batch_of, put, run, target_of

from servers import MariaDb, free_port
from tidemark.compat import Compat
from tidemark.sinks.mysql import errors
from tidemark.sinks.mysql.connection import Connection, ServerSaid, Target
from tidemark.sinks.mysql.retrying import Retry
from tidemark.sinks.mysql.steps import lww_steps, normal_steps
from tidemark.sinks.mysql.writer import Limits, Writer
from tidemark.wire import types
from tidemark.wire.table_info import Column, TableInfo

DESIGN = Compat.named("design")
COUNT = 3000
SMALL = Limits(connections=2, statement_rows=32, transaction_rows=100)
QUICK = Retry(attempts=3, first_pause=0.01, longest_pause=0.02)


@pytest.fixture
def table(session, database):
    run(session, f"create table {database}.acct {ACTIVE_DDL}")
    return active_table(database)


def many(table, first_ts=1000):
    return lww_steps(
        put(table, *((first_ts + i, i, f"owner {i}", i) for i in range(COUNT))), DESIGN, skip_replicated=True
    )


def owners(session, table):
    session.commit()
    return session.query(f"select id, owner, _tidb_origin_ts from {table.schema}.{table.table} order by id")


EXPECTED = [(i, f"owner {i}", 1000 + i) for i in range(COUNT)]


def disturbed(trouble, after: int):
    """A Connection that calls `trouble` once, before the statement number `after` of all connections."""
    lock, count = threading.Lock(), [0]

    class Disturbed(Connection):
        def execute_prepared(self, sql, parameters):
            with lock:
                count[0] += 1
                now = count[0] == after
            if now:
                trouble(self)
            super().execute_prepared(sql, parameters)

    return Disturbed


def test_connections_that_are_cut_are_opened_again(session, table, target):
    def cut(_):
        for (number,) in session.query(
            "select id from information_schema.processlist where id <> connection_id()"
        ):
            session.execute(f"kill {number}")

    with Writer(target, SMALL, QUICK, disturbed(cut, after=20)) as writer:
        written = writer.write(many(table))
    assert written.rows == COUNT
    assert written.retries > 0
    assert owners(session, table) == EXPECTED


def test_a_server_that_dies_and_comes_back_mid_run(tmp_path):
    server = MariaDb(tmp_path)
    server.start()
    target = target_of(server.uri)
    try:
        session = Connection(target)
        run(session, "create database d", f"create table d.acct {ACTIVE_DDL}")
        session.close()
        table = active_table("d")
        back = []

        def die(_):
            server.kill()
            back.append(threading.Timer(0.5, server.start))
            back[0].start()

        with Writer(target, SMALL, Retry(attempts=20), disturbed(die, after=20)) as writer:
            assert writer.write(many(table)).retries > 0
        back[0].join()
        session = Connection(target)
        assert owners(session, table) == EXPECTED
        session.close()
    finally:
        server.stop()


def test_a_server_that_stays_away_ends_the_run_and_the_next_run_completes_it(session, table, target):
    away = threading.Event()

    class Unreachable(Connection):
        def __init__(self, target):
            if away.is_set():
                raise ServerSaid(2003, "Can't connect to MySQL server")
            super().__init__(target)

    def leave(connection):
        away.set()
        connection._raw.close()

    with (
        Writer(target, SMALL, QUICK, _both(Unreachable, disturbed(leave, after=20))) as writer,
        pytest.raises(errors.ServerUnavailable, match=r"gave up after 3 attempts.*2003"),
    ):
        writer.write(many(table))
    assert 0 < len(owners(session, table)) < COUNT
    with Writer(target, SMALL) as writer:
        writer.write(many(table))
    assert owners(session, table) == EXPECTED


def _both(first, second):
    return type("Both", (second, first), {"__init__": first.__init__})


def test_a_lock_that_is_held_is_waited_for(session, table, target):
    with Writer(target, SMALL) as writer:
        writer.write(many(table))
    run(session, "set global innodb_lock_wait_timeout = 1")
    try:
        session.execute(f"update {table.schema}.acct set n = -1 where id = 7")
        retry = Retry(attempts=5, sleep=lambda _: session.commit())
        with Writer(target, SMALL, retry) as writer:
            written = writer.write(many(table, 5000))
    finally:
        run(session, "set global innodb_lock_wait_timeout = 50")
    assert written.retries > 0
    assert session.query(f"select n, _tidb_origin_ts from {table.schema}.acct where id = 7") == [(7, 5007)]


@pytest.mark.parametrize("code", [1205, 1213, 1615, 2006, 2013, 8002, 8022, 8028, 9007])
def test_temporary_errors_are_tried_again(session, table, target, code):
    def trouble(_):
        raise ServerSaid(code, "simulated")

    with Writer(target, SMALL, QUICK, disturbed(trouble, after=3)) as writer:
        assert writer.write(many(table)).retries == 1
    assert owners(session, table) == EXPECTED


def test_retries_are_bounded_and_pauses_grow():
    pauses = []
    retry = Retry(attempts=9, first_pause=0.1, longest_pause=5, sleep=pauses.append)
    for attempt in range(1, 9):
        retry.pause(attempt)
    assert all(
        0.5 * whole <= pause <= whole
        for pause, whole in zip(pauses, (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5), strict=True)
    )


REPAIRABLE = [
    (
        "alter table {0} drop column n",
        "alter table {0} add column n bigint",
        errors.MissingColumn,
        "MySQL 1054.*add the column downstream",
    ),
    (
        "alter table {0} modify owner varchar(3)",
        "alter table {0} modify owner varchar(40)",
        errors.RejectedValue,
        "MySQL 1406.*owner.*as wide as",
    ),
    (
        "alter table {0} modify n tinyint",
        "alter table {0} modify n bigint",
        errors.RejectedValue,
        "MySQL 1264.*'n'.*as wide as",
    ),
    (
        "alter table {0} modify owner int",
        "alter table {0} modify owner varchar(40)",
        errors.RejectedValue,
        "MySQL 1366.*owner.*type and character set of the upstream",
    ),
    (
        "rename table {0} to {0}_gone",
        "rename table {0}_gone to {0}",
        errors.MissingTable,
        "MySQL 1146.*create it",
    ),
]


@pytest.mark.parametrize(
    ("damage", "repair", "error", "message"), REPAIRABLE, ids=["column", "length", "range", "type", "table"]
)
def test_a_table_that_does_not_fit_is_named_and_a_run_after_its_repair_ends_right(
    session, table, target, damage, repair, error, message
):
    name = f"{table.schema}.acct"
    run(session, damage.format(name))
    with Writer(target, SMALL) as writer:
        with pytest.raises(error, match=message) as found:
            writer.write(many(table))
        assert f"upsert on {table.schema}.acct" in str(found.value)
        assert found.value.table == f"{table.schema}.acct"
        assert found.value.statement == "upsert"
        run(session, repair.format(name))
        writer.write(many(table))
    assert owners(session, table) == EXPECTED


def test_a_full_table_is_named_and_a_run_after_more_room_ends_right(session, table, target):
    if session.is_tidb:
        pytest.skip("TiDB has no MEMORY tables")
    name = f"{table.schema}.acct"
    run(session, "set max_heap_table_size = 16384", f"alter table {name} engine = memory")
    with Writer(target, SMALL) as writer:
        with pytest.raises(
            errors.ServerFull, match=r"upsert on .*acct: the table is full \(MySQL 1114.*free space"
        ):
            writer.write(many(table))
        run(session, f"alter table {name} engine = innodb")
        writer.write(many(table))
    assert owners(session, table) == EXPECTED


def test_a_full_disk_is_recognised_by_the_servers_message():
    assert isinstance(
        errors.explain(3, 'Error writing file (Errcode: 28 "No space left on device")'), errors.ServerFull
    )


def test_a_wrong_password_is_told_at_once_and_never_shown(session, uri):
    run(session, "create user if not exists clerk identified by 'right'")
    target = target_of(uri, user="clerk", password="wr0ng-s3cret")
    with pytest.raises(
        errors.AccessDenied, match=r"connecting to clerk@.*MySQL 1045.*TIDEMARK_SINK_PASSWORD"
    ) as found:
        Writer(target)
    assert "wr0ng" not in str(found.value) + repr(target)
    run(session, "drop user clerk")


def test_missing_rights_are_told(session, uri, table):
    run(session, "create user if not exists reader identified by 'pw'")
    target = target_of(uri, user="reader", password="pw")
    with Writer(target) as writer, pytest.raises(errors.AccessDenied, match=r"MySQL 1142.*grant"):
        writer.write(many(table))
    run(session, "drop user reader")


def test_a_server_that_does_not_come_is_told_after_the_last_attempt():
    pauses = []
    with pytest.raises(
        errors.ServerUnavailable,
        match=r"connecting to root@127\.0\.0\.1:\d+: gave up after 4 attempts.*200[23]",
    ):
        Writer(Target(port=free_port()), retry=Retry(attempts=4, sleep=pauses.append))
    assert len(pauses) == 3


def test_a_server_that_is_just_starting_is_waited_for(session, table, target):
    refused = iter([ServerSaid(2003, "Can't connect"), ServerSaid(2013, "Lost connection")])

    class Starting(Connection):
        def __init__(self, target):
            for error in refused:
                raise error
            super().__init__(target)

    with Writer(target, SMALL, QUICK, Starting) as writer:
        writer.write(many(table))
    assert owners(session, table) == EXPECTED


def test_a_time_zone_that_the_server_does_not_know(uri):
    with pytest.raises(errors.BadConnectionSetting, match=r"MySQL 1298.*offset"):
        Writer(target_of(uri, time_zone="Mars/Olympus"))


def test_transactions_before_an_error_are_committed_and_none_after_it(session, table, target):
    run(session, f"alter table {table.schema}.acct add check (id <> 250)")
    with (
        Writer(target, replace(SMALL, connections=1)) as writer,
        pytest.raises(errors.RejectedValue, match="check constraint"),
    ):
        writer.write(many(table))
    assert owners(session, table) == EXPECTED[:200]


class _Broken:
    """A connection that breaks during its first commit."""

    is_tidb, max_packet = False, 1 << 24
    opened = 0

    def __init__(self, target):
        type(self).opened += 1
        self.statements = []

    def execute_prepared(self, sql, parameters):
        self.statements.append((sql, parameters))

    def commit(self):
        if type(self).opened == 1:
            raise ServerSaid(2013, "Lost connection")

    def rollback(self):
        pass

    def close(self):
        pass


@pytest.fixture
def broken():
    return type("Broken", (_Broken,), {"opened": 0})


def test_a_commit_whose_answer_is_lost_is_repeated(broken):
    with Writer(Target(), Limits(connections=1), QUICK, broken) as writer:
        assert writer.write(many(active_table("d"))).retries == 1


def test_a_commit_whose_answer_is_lost_is_not_repeated_without_a_key(broken):
    table = TableInfo.build("d", "keyless", 7, 1, columns=[Column(1, "v", 0, types.INT)])
    steps = normal_steps(batch_of(table, [("insert", 1, None, {"v": 1})]))
    with (
        Writer(Target(), Limits(connections=1), QUICK, broken) as writer,
        pytest.raises(errors.UnknownOutcome, match=r"d\.keyless.*primary key"),
    ):
        writer.write(steps)
