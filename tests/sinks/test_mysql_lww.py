"""Last write wins on a real server."""

import pytest
from mysql_support import ACTIVE_DDL, active_table, batch_of, load_json, put, run

from support import jsonl
from tidemark.compat import Compat
from tidemark.sinks.mysql.steps import lww_steps
from tidemark.sinks.mysql.writer import Limits, Writer

COMPATS = [Compat.named("design"), Compat.named("ticdc")]
ARRIVALS = load_json("active_active/multi_upstream.final_state.json")
STATEMENTS = jsonl("active_active/multi_upstream.statements.jsonl")


@pytest.fixture(params=COMPATS, ids=["design", "ticdc"])
def compat(request):
    return request.param


@pytest.fixture
def table(session, database):
    run(session, f"create table {database}.acct {ACTIVE_DDL}")
    return active_table(database)


@pytest.fixture
def write(target, compat):
    with Writer(target, Limits(connections=3)) as writer:
        yield lambda *batches: [
            writer.write(lww_steps(batch, compat, skip_replicated=True)) for batch in batches
        ]


def rows(session, table) -> list[tuple]:
    session.commit()
    return session.query(
        f"select id, owner, n, _tidb_origin_ts from {table.schema}.{table.table} order by id"
    )


def test_an_older_write_is_ignored_and_an_equal_one_wins(session, table, write):
    write(put(table, (700, 1, "new", 1)), put(table, (600, 1, "old", 2)))
    assert rows(session, table) == [(1, "new", 1, 700)]
    write(put(table, (700, 1, "equal", 3)))
    assert rows(session, table) == [(1, "equal", 3, 700)]


def test_a_key_that_repeats_in_one_statement_ends_with_its_newest_row(session, table, write):
    write(
        put(table, (700, 1, "a", 1), (900, 1, "c", 3), (800, 1, "b", 2), (500, 2, "x", 1), (400, 2, "y", 2))
    )
    assert rows(session, table) == [(1, "c", 3, 900), (2, "x", 1, 500)]


def test_a_local_write_counts_with_its_commit_ts(session, table, write):
    run(
        session,
        f"insert into {table.schema}.acct values (1, 'local', 0, null, null, 750), (2, 'local', 0, null, null, 750)",
    )
    write(put(table, (700, 1, "older", 1), (800, 2, "newer", 2)))
    assert rows(session, table) == [(1, "local", 0, None), (2, "newer", 2, 800)]


def test_commit_ts_downstream_stays_untouched(session, table, write):
    run(session, f"insert into {table.schema}.acct values (1, 'local', 0, null, null, 750)")
    write(put(table, (800, 1, "newer", 1)))
    assert session.query(f"select _tidb_commit_ts from {table.schema}.acct") == [(750,)]


def test_writing_again_and_in_another_order_ends_in_the_same_rows(session, table, write):
    batches = [
        put(table, *((ts, i % 5, f"w{ts}", ts) for i, ts in enumerate(range(first, first + 40))))
        for first in (100, 300, 200)
    ]
    write(*batches)
    once = rows(session, table)
    write(*batches, *reversed(batches))
    assert rows(session, table) == once
    assert [row[3] for row in once] == [335, 336, 337, 338, 339]


def test_soft_deletes_travel_as_rows(session, table, write):
    write(put(table, (700, 1, "a", 1)), put(table, (800, 1, "a", 1, None, "2025-01-01 00:00:00.000001")))
    text = session.query(f"select cast(_tidb_softdelete_time as char) from {table.schema}.acct")
    assert text == [("2025-01-01 00:00:00.000001",)]
    write(batch_of(table, [("delete", 900, {"id": 1}, None)]))
    assert len(rows(session, table)) == 1


def test_three_databases_converge(session, database, write):
    """Every database is the upstream of a changefeed into each of the two others."""
    tables = []
    for name in ("a", "b", "c"):
        run(session, f"create table {database}.{name} {ACTIVE_DDL}")
        tables.append(active_table(database, name))
    local = [
        [(100, 1, "a1", 1), (140, 2, "a2", 1), (190, 9, "a9", 1)],
        [(110, 1, "b1", 1), (150, 3, "b3", 1), (120, 2, "b2", 1)],
        [(105, 1, "c1", 1), (160, 3, "c3", 1), (200, 9, "c9", 1)],
    ]
    for table, writes in zip(tables, local, strict=True):
        for ts, *row in writes:
            run(
                session,
                f"insert into {table.schema}.{table.table} values ({row[0]}, '{row[1]}', {row[2]}, null, null, {ts})",
            )
    for place, writes in enumerate(local):
        for other, table in enumerate(tables):
            if other != place:
                # What arrived from elsewhere is in the log of this cluster too, with its origin ts: it must not go round.
                echo = [(ts + 500, *row, ts) for ts, *row in local[(place + 1) % 3]]
                write(put(table, *writes, *echo))
    contents = [[row[:3] for row in rows(session, table)] for table in tables]
    assert (
        contents[0] == contents[1] == contents[2] == [(1, "b1", 1), (2, "a2", 1), (3, "c3", 1), (9, "c9", 1)]
    )


@pytest.mark.parametrize("number", range(len(ARRIVALS["runs"])))
def test_statements_of_three_upstreams_end_as_on_tidb_in_every_arrival_order(session, database, number):
    arrival = ARRIVALS["runs"][number]
    run(session, ARRIVALS["downstream_ddl"].replace("geo.", f"{database}."))

    def here(sql: str) -> str:
        return sql.replace("`geo`", f"`{database}`").replace("_tidb_commit_ts", "ds_commit_ts")

    order = _order(arrival)
    steps = iter(order)
    for step in arrival["steps"]:
        if "local_write" in step:
            run(session, here(step["local_write"]))
            continue
        statement = STATEMENTS[next(steps)]
        session.execute(
            here(statement["sql"]).replace("?", "%s"),
            [next(iter(arg.values())) if "null" not in arg else None for arg in statement["args"]],
        )
        session.commit()
    found = session.query(
        f"select id, v, n, _tidb_origin_ts, cast(_tidb_softdelete_time as char), ds_commit_ts from {database}.kv order by id"
    )
    assert [["<nil>" if value is None else str(value) for value in row] for row in found] == arrival[
        "final_rows"
    ]


def _order(arrival) -> list[int]:
    """Which statement each step is: the next one of its upstream and commit ts that was not yet taken."""
    taken, order = {}, []
    for step in arrival["steps"]:
        if "local_write" in step:
            continue
        key = (step["upstream"], step["commit_ts"])
        same = [
            place for place, item in enumerate(STATEMENTS) if (item["upstream"], item["commit_ts"]) == key
        ]
        order.append(same[taken.get(key, 0) % len(same)])
        taken[key] = taken.get(key, 0) + 1
    return order
