"""The catalog outlives its process: what is in it, what a statement changes of it, and what a crash leaves."""

import ast
import signal
import subprocess
import sys

import pytest

from tidemark.spark.catalog import changed_by

BUILD = """
create schema shop
create table shop.orders using parquet partitioned by (batch, `day of`) comment 'kept' as
  select id as number, 'x' as text, id % 2 as batch, concat('a/=%', id) as `day of` from range(3)
alter table shop.orders add if not exists partition (batch = 7, `day of` = 'none')
create or replace view shop.`Large_Orders` tblproperties ('version' = 'it''s') as select number as `Number`, batch from shop.orders where number > 0
create table shop.plain using parquet as select cast(1.50 as decimal(10, 2)) as amount, array(struct('a' as name)) as items
create table shop.gone using parquet as select 1 as one
drop table shop.gone
create table shop.old using parquet as select 1 as one
alter table shop.old rename to shop.new
create schema unused
drop schema unused
"""

SESSION = """
import sys
from pathlib import Path
from tidemark.spark import session as tidemark
spark = tidemark.session(Path(sys.argv[1]), {})
def run(statement):
    rows = spark.sql(statement).collect()
    tidemark.note_change(statement)
    return [tuple(row) for row in rows]
"""


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    folder = tmp_path_factory.mktemp("catalog-state")
    statements = [line for line in BUILD.replace("\n  ", " ").split("\n") if line]
    in_process(folder, f"for statement in {statements!r}: run(statement)\n{DIES_AFTER_DATA}")
    return folder


# The rows are there, the catalog does not know of them yet.
DIES_AFTER_DATA = """
spark.sql("insert overwrite table shop.orders partition (batch, `day of`) select 9, 'y', 9, 'lost'")
spark.sql("create table shop.unfinished using parquet as select 1 as one")
import os, signal
os.kill(os.getpid(), signal.SIGKILL)
"""


def in_process(folder, code):
    """What the code prints, run in a process of its own."""
    command = [sys.executable, "-c", SESSION + code, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.stdout


def test_the_next_process_finds_tables_partitions_and_views(state):
    questions = [
        "show schemas",
        "show tables in shop",
        "show partitions shop.orders",
        "select * from shop.`Large_Orders` order by 1",
        "select number from shop.orders where batch = 0 order by 1",
        "select cast(amount as string), items[0].name from shop.plain",
        "show tblproperties shop.`Large_Orders` ('version')",
        "select one from shop.new",
    ]
    answers = ast.literal_eval(in_process(state, f"print([run(question) for question in {questions!r}])"))
    assert answers[0] == [("default",), ("shop",)]
    assert [name for _, name, _ in answers[1]] == ["large_orders", "new", "orders", "plain"]
    assert answers[2] == [
        ("batch=0/day of=a%2F%3D%250",),
        ("batch=0/day of=a%2F%3D%252",),
        ("batch=1/day of=a%2F%3D%251",),
        ("batch=7/day of=none",),
    ]
    assert answers[3] == [(1, 1), (2, 0)]
    assert answers[4] == [(0,), (2,)]
    assert answers[5] == [("1.50", "a")]
    assert answers[6] == [("version", "it's")]
    assert answers[7] == [(1,)]


def test_rows_that_a_crash_left_without_an_entry_are_written_again(state):
    again = """
run("insert overwrite table shop.orders partition (batch, `day of`) select 10, 'z', 9, 'lost'")
run("create table shop.unfinished2 using parquet as select 2 as one")
print([run("select number from shop.orders where batch = 9"), run("select count(*) from shop.orders")])
"""
    assert ast.literal_eval(in_process(state, again)) == [[(10,)], [(4,)]]
    assert ast.literal_eval(in_process(state, 'print(run("select count(*) from shop.orders"))')) == [(4,)]


@pytest.mark.parametrize(
    ("statement", "entries"),
    [
        ("/* {'app': 'dbt'} */ select 1", []),
        ("-- one row per table\nwith a as (select 1) select * from a", []),
        ("create or replace temporary view x using y options (a 'create table b.c')", []),
        ("show partitions a.b", []),
        ("/* x */\n  create table a.`B_c` using parquet as select 1", [("a", "b_c")]),
        ("create or replace view a.b as select 1", [("a", "b")]),
        ("insert overwrite table a.b partition (`c`) select 1", [("a", "b")]),
        ("insert into some_view select 1", [(None, "some_view")]),
        ("alter table a.b add if not exists partition (batch_id = 1)", [("a", "b")]),
        ("merge into a.b as x using y on 1 = 1 when matched then delete", [("a", "b")]),
        ("drop table if exists a.`b`", [("a", "b")]),
        ("alter view a.b set tblproperties ('x' = 'y')", [("a", "b")]),
        ("alter table a.b rename to a.c", None),
        ("alter view a.b rename to a.c", None),
        ("with x as (select 1) insert into a.b select * from x", None),
        ("drop schema a cascade", None),
        ("create table catalog.a.b using parquet as select 1", None),
    ],
)
def test_what_a_statement_changes(statement, entries):
    assert changed_by(statement) == entries


def test_tables_of_a_metastore_are_not_passed_over(tmp_path):
    (tmp_path / "metastore").mkdir()
    done = subprocess.run([sys.executable, "-c", SESSION, str(tmp_path)], capture_output=True, text=True)
    assert "Hive metastore" in done.stderr
    assert done.returncode != 0
