"""DDL statements under the names that dispatch rules give their tables."""

import pytest

from tidemark.config import load
from tidemark.dispatch.routing import Routing
from tidemark.encode.ddl import DdlStatement
from tidemark.encode.ddl_names import Name, statement_names
from tidemark.encode.errors import UnroutableStatement
from tidemark.encode.routed_ddl import routed_statement

# Databases d and o are written elsewhere, every other one keeps its name.
RULES = [
    {"matcher": ["d.*"], "target-schema": "x", "target-table": "{table}_y"},
    {"matcher": ["o.*"], "target-schema": "{schema}_z"},
]


def routed(query, table="t", schema="d", old_schema="", old_table="", rules=RULES):
    ddl = DdlStatement(0, schema, table, query, 7, None, old_schema, old_table)
    settings = load({"sink": {"dispatchers": rules}}, "mysql://u@h:3306/")
    return routed_statement(ddl, Routing.of(settings))


STATEMENTS = {
    "create database d": "create database `x`",
    "CREATE SCHEMA IF NOT EXISTS `d` CHARACTER SET utf8": "CREATE SCHEMA IF NOT EXISTS `x` CHARACTER SET utf8",
    "drop database if exists d": "drop database if exists `x`",
    "alter database D collate utf8mb4_bin": "alter database `x` collate utf8mb4_bin",
    "alter database collate utf8mb4_bin": "alter database `x` collate utf8mb4_bin",
}


@pytest.mark.parametrize("query", STATEMENTS)
def test_statements_about_databases(query):
    sent = routed(query, table="")
    assert (sent.schema, sent.table, sent.query) == ("x", "", STATEMENTS[query])


TABLES = {
    # what the column and the text say is no table
    "create table t (t int default 't', key t (t)) comment 'references d.t'": (
        "create table `x`.`t_y` (t int default 't', key t (t)) comment 'references d.t'"
    ),
    "create table if not exists `d`.`t` (id int)": "create table if not exists `x`.`t_y` (id int)",
    # the statement names what it creates in another case than the server keeps it
    "CREATE TABLE D . T (id int)": "CREATE TABLE `x`.`t_y` (id int)",
    "create table t like o.s": "create table `x`.`t_y` like `o_z`.`s`",
    "create table t (like s)": "create table `x`.`t_y` (like `x`.`s_y`)",
    "create table t (id int, p int, foreign key (p) references kept.parent (id) on delete cascade)": (
        "create table `x`.`t_y` (id int, p int, foreign key (p) references `kept`.`parent` (id) on delete cascade)"
    ),
    "create table t (id bigint primary key /*T![clustered_index] CLUSTERED */) /*T![ttl] TTL=`at` + INTERVAL 1 DAY TTL_ENABLE='ON' */": (
        "create table `x`.`t_y` (id bigint primary key /*T![clustered_index] CLUSTERED */) /*T![ttl] TTL=`at` + INTERVAL 1 DAY TTL_ENABLE='ON' */"
    ),
    "drop table t, o.s /* and o.s */ -- d.t": "drop table `x`.`t_y`, `o_z`.`s` /* and o.s */ -- d.t",
    "truncate t": "truncate `x`.`t_y`",
    "truncate table `d`.t;": "truncate table `x`.`t_y`;",
    "alter table t add column rename_me int, rename column a to b, rename index i to j": (
        "alter table `x`.`t_y` add column rename_me int, rename column a to b, rename index i to j"
    ),
    "alter table t add constraint c foreign key (a) references o.s (id), add index (a)": (
        "alter table `x`.`t_y` add constraint c foreign key (a) references `o_z`.`s` (id), add index (a)"
    ),
    "alter table t exchange partition p0 with table s without validation": (
        "alter table `x`.`t_y` exchange partition p0 with table `x`.`s_y` without validation"
    ),
    "create unique index i using btree on t (a)": "create unique index i using btree on `x`.`t_y` (a)",
    "drop index if exists i on d.t": "drop index if exists i on `x`.`t_y`",
    "recover table t": "recover table `x`.`t_y`",
    "drop view if exists t": "drop view if exists `x`.`t_y`",
    "create view t as select s.a, p.b from s join o.parts as p on p.id = s.id": (
        "create view `x`.`t_y` as select s.a, p.b from `x`.`s_y` AS `s` join `o_z`.`parts` as p on p.id = s.id"
    ),
    "create or replace definer=`root`@`%` view t (a) as with c as (select a from kept.k) select a from c, dual": (
        "create or replace definer=`root`@`%` view `x`.`t_y` (a) as with c as (select a from `kept`.`k`) select a from c, dual"
    ),
}


@pytest.mark.parametrize("query", TABLES)
def test_every_name_of_a_table_is_replaced_and_nothing_else(query):
    sent = routed(query)
    assert (sent.schema, sent.table, sent.query) == ("x", "t_y", TABLES[query])


RENAMES = [
    ("alter table t rename to s", "d", "s", "d", "t", "alter table `x`.`t_y` rename to `x`.`s_y`"),
    ("alter table t rename o.t", "o", "t", "d", "t", "alter table `x`.`t_y` rename `o_z`.`t`"),
    ("rename table `d`.`t` to `kept`.`t`", "kept", "t", "d", "t", "rename table `x`.`t_y` to `kept`.`t`"),
    # Typed with one database in use: the old name without it, then the new one.
    ("rename table t to o.s", "o", "s", "d", "t", "rename table `x`.`t_y` to `o_z`.`s`"),
    ("rename table d.t to s", "o", "s", "d", "t", "rename table `x`.`t_y` to `o_z`.`s`"),
]


@pytest.mark.parametrize("rename", RENAMES, ids=lambda rename: rename[0])
def test_a_rename_has_the_targets_of_both_names(rename):
    query, schema, table, old_schema, old_table, want = rename
    sent = routed(query, table, schema, old_schema, old_table)
    assert sent.query == want
    settings = load({"sink": {"dispatchers": RULES}}, "mysql://u@h:3306/")
    routing = Routing.of(settings)
    assert (sent.schema, sent.table) == routing.target(schema, table)
    assert (sent.old_schema, sent.old_table) == routing.target(old_schema, old_table)


@pytest.mark.parametrize("query", ["alter table t add column a int", "create view t as select 1 from s", ""])
def test_statements_about_other_tables_stay_as_they_are(query):
    assert routed(query, schema="kept").query == query


def test_a_statement_of_another_table_follows_the_tables_it_mentions():
    sent = routed("alter table t add foreign key (a) references d.s (id)", schema="kept")
    assert (sent.schema, sent.table) == ("kept", "t")
    assert sent.query == "alter table `kept`.`t` add foreign key (a) references `x`.`s_y` (id)"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("create table t as select * from s", "SELECT"),
        ("alter table t modify column t.a int", "names a column with its table: 't.a'"),
        ("create view t as select d.s.a from d.s", "names a column with its table: 'd.s'"),
        ("create view t as with s as (select * from s) select * from s", "the name of a query"),
        ("create view t as select from from", "cannot be read"),
        ("alter table /*!50000 rename to s */ t", "may name a table"),
        ("drop table t; drop table s", "more than one statement"),
        ("recover table by job 3", "does not name its table"),
        ("rename table t", "TO was expected"),
        ("lock tables t", "'lock' are not known"),
        ("alter view t as select 1", "is not known"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_statement_and_table(query, reason):
    with pytest.raises(UnroutableStatement) as refused:
        routed(query)
    message = str(refused.value)
    assert reason in message
    assert repr(query)[:200] in message
    assert "of d.t (finished ts 7)" in message
    assert "event filter" in message


def test_a_database_without_one_target_is_refused_with_its_statement():
    rules = [*RULES, {"matcher": ["d.special"], "target-schema": "other"}]
    with pytest.raises(UnroutableStatement, match=r"'drop database d' of d .*database d: its tables"):
        routed("drop database d", table="", rules=rules)


def test_names_are_found_where_they_stand():
    query = "rename table `a``b`.c to `d`"
    names = statement_names(query)
    assert [(query[name.start : name.end], name.schema, name.table) for name in names] == [
        ("`a``b`.c", "a`b", "c"),
        ("`d`", "", "d"),
    ]
    assert names[1] == Name(25, 28, "", "d", is_new=True)
