"""DDL events as statements, one per table."""

import json

import pytest

from tidemark.encode.ddl import CREATE_TABLE, RENAME_TABLE, split_queries, statements
from tidemark.encode.errors import EncodeError
from tidemark.wire import types
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.table_info import Column, TableInfo


def table(name):
    return TableInfo.build("db", name, 7, 1, columns=[Column(1, "c", 0, types.INT)])


def event(kind, query, *tables, **more):
    document = {
        "type": kind,
        "schema_name": "db",
        "table_name": "t",
        "query": query,
        "finished_ts": 9,
        **more,
    }
    return DDLEvent(json.dumps(document).encode(), b"d" * 16, b"", tuple(item.to_bytes() for item in tables))


def test_an_event_of_one_table_is_one_statement():
    (ddl,) = statements(event(5, "alter table t add c int", extra_schema_name="", extra_table_name=""))
    assert (ddl.type, ddl.schema, ddl.table, ddl.finished_ts, ddl.table_info) == (5, "db", "t", 9, None)


def test_created_tables_are_statements_of_their_own():
    ddls = statements(event(60, "create table a (c int);create table b (c int)", table("a"), table("b")))
    assert [(ddl.type, ddl.table, ddl.query) for ddl in ddls] == [
        (CREATE_TABLE, "a", "create table a (c int);"),
        (CREATE_TABLE, "b", "create table b (c int);"),
    ]


def test_renamed_tables_know_their_old_names():
    change = {"DropName": [{"SchemaName": "db", "TableName": "a"}, {"SchemaName": "old", "TableName": "b"}]}
    ddls = statements(
        event(
            47,
            "rename table a to a2; rename table old.b to b2;",
            table("a2"),
            table("b2"),
            table_name_change=change,
        )
    )
    assert [(ddl.type, ddl.table, ddl.old_schema, ddl.old_table) for ddl in ddls] == [
        (RENAME_TABLE, "a2", "db", "a"),
        (RENAME_TABLE, "b2", "old", "b"),
    ]


def test_tables_and_statements_must_agree():
    with pytest.raises(EncodeError, match="2 tables has 1 statements"):
        statements(event(60, "create table a (c int)", table("a"), table("b")))


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("a;b;", 2),
        ("a; ;b", 2),
        ("create table t (c varchar(9) default ';');b", 2),
        ('create table t (c int comment "a;b");b', 2),
        ("create table `a;b` (c int);b", 2),
        ("a /* ; */ b; c", 2),
        ("a -- ; x\n b; c", 2),
        ("a 'it''s; fine' b; c '\\';' d", 2),
        ("", 0),
        ("a `b``;c`; d", 2),
        ("a # ; x\n b; c", 2),
        ("a 'not closed ; b", 1),
        ("a; 'not closed ; b\\", 2),
        ("a; /* not closed ; b", 2),
    ],
)
def test_semicolons_inside_quotes_and_comments_do_not_end_a_statement(query, count):
    assert len(split_queries(query)) == count


@pytest.mark.parametrize("piece", ["'a\\", '"a\\', "\"'", "`'\"", "/*", "'\\"])
def test_the_time_grows_with_the_length_of_a_query_that_is_not_closed(piece):
    """Read once per quote, a query of this length would take hours."""
    query = piece * 500_000
    assert "".join(split_queries(query)) == f"{query};"
