"""The catalog outlives its process: what is in it, what a statement changes of it, and what a crash leaves."""

import ast
import json
import signal
import subprocess
import sys

import pyspark
import pytest

from tidemark.spark.catalog import is_read

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
    tidemark.note_statement(statement)
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
    ("statement", "reads"),
    [
        ("/* {'app': 'dbt'} */ select 1", True),
        ("-- one row per table\nselect * from a", True),
        ("create or replace temporary view x using y options (a 'create table b.c')", True),
        ("show partitions a.b", True),
        ("/* x */\n  create table a.`B_c` using parquet as select 1", False),
        ("create or replace view a.b as select 1", False),
        ("with x as (select 1) insert into a.b select * from x", False),
        ("drop schema a cascade", False),
    ],
)
def test_a_statement_that_does_not_only_read_may_change_anything(statement, reads):
    assert is_read(statement) == reads


def test_an_announced_change_is_written_down_alone(tmp_path):
    told = """
spark.sql("create schema shop")
for name in ("a", "b"):
    spark.sql(f"create table shop.{name} using parquet as select 1 as one")
tidemark.announce_change("shop", "a")
run("select 'a statement that only reads does not use it up'")
run("alter table shop.a set tblproperties ('x' = 'y')")
tidemark.announce_change(None, None)
run("create table shop.c using parquet as select 1 as one")
print(sorted(path.stem for path in Path(sys.argv[1]).glob("catalog/shop/*.json")))
run("create table shop.d using parquet as select 1 as one")
print(sorted(path.stem for path in Path(sys.argv[1]).glob("catalog/shop/*.json")))
"""
    first, second = map(ast.literal_eval, in_process(tmp_path, told).splitlines())
    assert (first, second) == (["a"], ["a", "b", "c", "d"])


@pytest.mark.parametrize("is_of_0_1_0", [False, True])
def test_a_folder_of_another_version_of_spark_is_restored_by_statements(state, is_of_0_1_0):
    """Tables with partitions, and views that show a table; other views are made again by the next run. Version 0.1.0 did not write Spark's objects."""
    shown = "create or replace view shop.shown tblproperties ('tidemark.version' = 'orders', 'tidemark.kept' = '{}') as select number from shop.orders"
    in_process(state, f"run({shown!r})")
    for path in (state / "catalog").glob("*/*.json"):
        entry = json.loads(path.read_text())
        known = {name: entry[name] for name in entry.keys() - {"spark", "java", "java_partitions"}}
        path.write_text(
            json.dumps(known if is_of_0_1_0 else {**entry, "spark": "3.5.0", "java": "not for this one"})
        )
    questions = [
        "show partitions shop.orders",
        "select cast(amount as string), items[0].name from shop.plain",
        "select count(*) from shop.shown",
        "show views in shop",
        "show tblproperties shop.shown ('tidemark.version')",
    ]
    for _ in range(2):
        answers = ast.literal_eval(in_process(state, f"print([run(question) for question in {questions!r}])"))
        assert len(answers[0]) == 5
        assert answers[1:3] == [[("1.50", "a")], [(4,)]]
        assert [name for _, name, *_ in answers[3]] == ["shown"]
        assert answers[4] == [("tidemark.version", "orders")]


@pytest.mark.parametrize(
    "damage",
    ["{", "[]", '{"type": "MANAGED", "columns": "", "properties": {}, "spark": "%s", "java": "AAAA"}'],
)
def test_a_damaged_entry_is_named(tmp_path, damage):
    in_process(tmp_path, 'run("create table default.t using parquet as select 1 as one")')
    path = tmp_path / "catalog" / "default" / "t.json"
    path.write_text(damage % pyspark.__version__ if "%" in damage else damage)
    done = subprocess.run([sys.executable, "-c", SESSION, str(tmp_path)], capture_output=True, text=True)
    assert f"{path} is not what Tidemark wrote there" in done.stderr
    assert "remove it and build its table again" in done.stderr


def test_tables_of_a_metastore_are_not_passed_over(tmp_path):
    (tmp_path / "metastore").mkdir()
    done = subprocess.run([sys.executable, "-c", SESSION, str(tmp_path)], capture_output=True, text=True)
    assert "Hive metastore" in done.stderr
    assert done.returncode != 0
