"""Decided rows on their way into the database: the order in which chunks, partitions and table versions are written."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from mysql_support import ACTIVE_DDL, active_table, batch_of, put, run, text_column

from tidemark.compat import Compat
from tidemark.config import load
from tidemark.sinks.logged_rows import LoggedRows
from tidemark.sinks.mysql.decided import runs, stages, whole_transactions, write_decided
from tidemark.sinks.mysql.errors import MissingColumn, MissingTable
from tidemark.sinks.mysql.statements import lww_upsert
from tidemark.wire import types
from tidemark.wire.table_info import Column, Index, TableInfo

ACTIVE = {"enable-active-active": True, "bdr-mode": True}


NO_DECISIONS = pa.RecordBatch.from_arrays([], names=[])


def plain_table(schema, version=1, *names, unique=()):
    columns = [
        Column(1, "id", 0, types.INT, flag=types.NOT_NULL | types.PRIMARY_KEY, flen=11),
        *(Column(place, name, place - 1, types.INT, flen=11) for place, name in enumerate(names, 2)),
    ]
    indexes = [Index(f"by_{name}", (name,), is_unique=True) for name in unique]
    return TableInfo.build(schema, "t", 7, version, columns=columns, indexes=indexes)


def decided(table, *changes, upstream="1"):
    """Changes as (position in the chunk, op, old row, new row)."""
    position = np.array([place for place, *_ in changes])
    batch = batch_of(table, [(op, 100 + place, pre, post) for place, op, pre, post in changes])
    return LoggedRows(upstream, None, batch, NO_DECISIONS, position)


def row(*values, names=("id", "u")):
    return dict(zip(names, values, strict=True))


@pytest.fixture
def settings(uri):
    return load(None, f"{uri.rstrip('/')}/?worker-count=4")


@pytest.fixture
def table(session, database):
    run(session, f"create table {database}.t (id int primary key, u int unique)")
    return plain_table(database, 1, "u", unique=("u",))


def rows_of(session, database):
    session.commit()
    return session.query(f"select * from {database}.t order by id")


def test_a_row_that_moves_to_another_partition_is_there(session, table, settings):
    first = decided(table, (0, "insert", None, row(1, 10)), (1, "delete", row(1, 10), None))
    second = decided(table, (2, "insert", None, row(1, 20)))
    assert write_decided(settings, [[second, first]]).rows == 1
    assert rows_of(session, table.schema) == [(1, 20)]


def test_a_value_of_a_unique_key_moves_in_a_transaction_that_two_chunks_share(session, table, settings):
    """At the end of the first chunk two rows have the value: the one that got it last must stay."""
    chunks = [
        [decided(table, (0, "insert", None, row(3, 6)), (1, "insert", None, row(1, 5)))],
        [decided(table, (0, "update", row(3, 6), row(3, 6)), (1, "update", row(1, 5), row(1, 6)))],
        [decided(table, (0, "update", row(3, 6), row(3, 7)))],
    ]
    for again in (chunks, chunks[:2], chunks):
        write_decided(settings, again)
    assert rows_of(session, table.schema) == [(1, 6), (3, 7)]


@pytest.fixture
def nullable(session, database):
    """A table whose only key is unique and may be NULL."""
    run(session, f"create table {database}.t (u int null unique, v int)")
    columns = [Column(place + 1, name, place, types.INT, flen=11) for place, name in enumerate("uv")]
    return TableInfo.build(database, "t", 7, 1, columns=columns, indexes=[Index("u", ("u",), is_unique=True)])


def transaction(table, ts, first, *changes, upstream="1"):
    """Changes as (op, old row, new row) of one transaction, from this position of a chunk."""
    batch = batch_of(table, [(op, ts, pre, post) for op, pre, post in changes])
    return LoggedRows(upstream, None, batch, NO_DECISIONS, np.arange(first, first + len(changes)))


def moves(*keys):
    """Rows that differ in their keys only: each gets the key of the next."""
    return [
        ("update", {"u": old, "v": 7}, {"u": new, "v": 7})
        for old, new in zip(keys, keys[1:] + keys[:1], strict=True)
    ]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_rows_that_are_alike_exchange_their_keys_in_a_transaction_that_chunks_share(
    session, nullable, settings, size
):
    inserts = [("insert", None, {"u": key, "v": 7}) for key in range(5)]
    changes = moves(*range(5))
    chunks = [
        [transaction(nullable, 100, 0, *inserts)],
        *([transaction(nullable, 200, 0, *changes[at : at + size])] for at in range(0, 5, size)),
        [transaction(nullable, 300, 0, ("update", {"u": 0, "v": 7}, {"u": 9, "v": 8}))],
    ]
    for _ in range(2):
        write_decided(settings, chunks)
        session.commit()
        assert session.query(f"select u, v from {nullable.schema}.t order by u") == [
            *((key, 7) for key in range(1, 5)),
            (9, 8),
        ]
        run(session, f"truncate table {nullable.schema}.t")


def test_only_a_transaction_that_may_go_on_waits_for_the_next_chunk():
    columns = [Column(1, "u", 0, types.INT, flen=11), Column(2, "v", 1, types.INT, flen=11)]
    table = TableInfo.build("d", "n", 8, 1, columns=columns, indexes=[Index("u", ("u",), is_unique=True)])
    keyed = plain_table("d", 1, "u")
    first, second = moves(1, 2)
    chunks = [
        [decided(keyed, (0, "insert", None, row(1, 1))), transaction(table, 200, 1, first)],
        [transaction(table, 200, 0, second), transaction(table, 200, 1, second, upstream="2")],
        [decided(keyed, (0, "insert", None, row(2, 2)))],
    ]
    found = [
        [(rows.batch.table.table, rows.upstream_id, rows.position.tolist()) for rows in chunk]
        for chunk in whole_transactions(chunks)
    ]
    assert found == [
        [("t", "1", [0])],
        [("n", "1", [-1]), ("n", "1", [0])],
        [("n", "2", [-1]), ("t", "1", [0])],
    ]


def test_a_table_with_another_unique_key_has_one_lane(table):
    free = plain_table("d", 1, "u")
    changes = [(i, "insert", None, row(i, i)) for i in range(50)]
    for each, lanes in ((table, 1), (free, 50)):
        [[step]] = stages(load(None, "mysql://h/"), [decided(each, *changes)])
        assert len(set(step.lanes.tolist())) == lanes


def test_versions_of_a_table_are_written_one_after_the_other():
    old, new = plain_table("d", 1), plain_table("d", 2, "u")
    parts = [
        decided(new, (2, "insert", None, row(3, 3)), (5, "insert", None, row(6, 6))),
        decided(old, (0, "insert", None, {"id": 1}), (4, "insert", None, {"id": 5})),
        decided(old, (1, "insert", None, {"id": 2})),
        decided(new, (3, "insert", None, row(4, 4))),
    ]
    found = [(batch.table.version, (batch.changes.commit_ts - 100).tolist()) for batch in runs(parts)]
    assert found == [(1, [0, 1]), (2, [2, 3]), (1, [4]), (2, [5])]
    other = decided(replace(new, table="other"), (6, "insert", None, row(1, 1)))
    assert [
        [step.statement.table for step in stage]
        for stage in stages(load(None, "mysql://h/"), [*parts, other])
    ] == [["d.t", "d.other"], ["d.t"], ["d.t"], ["d.t"]]


def test_active_active_rows_of_a_chunk_are_written_at_once(session, database, uri):
    run(session, f"create table {database}.acct {ACTIVE_DDL}")
    table = active_table(database)
    parts = [put(table, (200, 1, "second", 1)), put(table, (100, 1, "first", 1), (90, 2, "other", 1))]
    chunk = [
        LoggedRows(str(place), None, batch, None, np.arange(len(batch.changes)) + 10 * place)
        for place, batch in enumerate(parts)
    ]
    assert write_decided(load(ACTIVE, f"{uri.rstrip('/')}/?allow-non-tidb=true"), [chunk, chunk]).rows == 6
    session.commit()
    assert session.query(f"select id, owner, _tidb_origin_ts from {database}.acct order by id") == [
        (1, "second", 200),
        (2, "other", 90),
    ]


def test_the_uri_names_the_column_of_the_commit_ts(session, database, uri):
    """A server without active-active tables, with the table that docs/tidb-sink.md shows for it."""
    page = (Path(__file__).parents[2] / "docs/tidb-sink.md").read_text(encoding="utf-8")
    (ddl,) = re.findall(r"CREATE TABLE `db`\.`t` (\(.*?\n\));", page, re.S)
    run(session, f"create table {database}.t {ddl}")
    run(
        session,
        f"insert into {database}.t (id, v, local_commit_ts) values (1, 'local', 150), (2, 'local', 150)",
    )
    columns = [
        Column(1, "id", 0, types.INT, flag=types.NOT_NULL | types.PRIMARY_KEY, flen=11),
        text_column(1, "v"),
        *active_table(database).columns[-3:],
    ]
    table = TableInfo.build(database, "t", 7, 1, columns=columns, is_active_active=True)
    changes = [("insert", 100, None, {"id": 1, "v": "old"}), ("insert", 200, None, {"id": 2, "v": "new"})]
    chunk = [LoggedRows("1", None, batch_of(table, changes), None, np.arange(2))]
    plain = f"{uri.rstrip('/')}/?allow-non-tidb=true"
    with pytest.raises(
        MissingColumn,
        match=r"upsert on .*\.t: the downstream table has no column _tidb_commit_ts .*commit-ts-column=local",
    ):
        write_decided(load(ACTIVE, plain), [chunk])
    write_decided(load(ACTIVE, f"{plain}&commit-ts-column=local_commit_ts"), [chunk])
    session.commit()
    found = session.query(f"select id, v, _tidb_origin_ts, local_commit_ts from {database}.t order by id")
    assert found == [(1, "local", None, 150), (2, "new", 200, 150)]


def test_no_rows_need_no_server():
    assert write_decided(load(None, "mysql://127.0.0.1:1/"), []).rows == 0


def test_a_table_that_is_not_there_is_named(settings, database):
    with pytest.raises(MissingTable, match=rf"{database}\.t: the table does not exist downstream"):
        write_decided(settings, [[decided(plain_table(database), (0, "insert", None, {"id": 1}))]])


def test_statements_are_for_the_name_that_a_table_is_written_under():
    table = replace(plain_table("shop", 1, "u"), written_to=("arch`ive", "shop_t"))
    changes = decided(table, (0, "insert", None, row(1, 10)), (1, "delete", row(2, 20), None))
    (steps,) = stages(load(None, "mysql://u@h:3306/"), [changes])
    assert [step.statement.sql(1) for step in steps] == [
        "DELETE FROM `arch``ive`.`shop_t` WHERE `id` IN (?)",
        "REPLACE INTO `arch``ive`.`shop_t` (`id`,`u`) VALUES (?,?)",
    ]
    assert {step.statement.table for step in steps} == {"arch`ive.shop_t"}
    keyless = replace(table, columns=table.columns[1:], handle_key=(), indexes=())
    changes = decided(keyless, (0, "insert", None, {"u": 1}), (1, "delete", {"u": 1}, None))
    (steps,) = stages(load(None, "mysql://u@h:3306/"), [changes])
    assert all(" `arch``ive`.`shop_t` " in step.statement.sql(1) for step in steps)
    active = replace(active_table("shop"), written_to=("x", "y"))
    assert lww_upsert(active, Compat.named("ticdc")).sql(1).startswith("INSERT INTO `x`.`y` (")


def test_tables_that_have_one_name_after_another_are_written_in_order():
    first = replace(plain_table("a", 1), written_to=("x", "t"))
    second = replace(plain_table("b", 2), written_to=("x", "t"))
    chunk = [
        decided(first, (0, "insert", None, {"id": 1}), (2, "delete", {"id": 1}, None)),
        decided(second, (1, "insert", None, {"id": 2}), (3, "insert", None, {"id": 1})),
    ]
    written = [
        [(step.statement.kind, *step.rows[0]) for step in steps]
        for steps in stages(load(None, "mysql://u@h:3306/"), chunk)
    ]
    assert written == [[("replace", 1)], [("replace", 2)], [("delete", 1)], [("replace", 1)]]
