"""Inserts, updates and deletes on a real server: every type, replay, keys, no keys."""

import pyarrow as pa
import pytest
from mysql_support import batch_of, create_tables, run, stream_batches, target_of, text_column

from tidemark.sinks.mysql.errors import RejectedValue
from tidemark.sinks.mysql.params import column_params, row_params
from tidemark.sinks.mysql.statements import quote, written_columns
from tidemark.sinks.mysql.steps import normal_steps
from tidemark.sinks.mysql.writer import Limits, Writer
from tidemark.wire import types
from tidemark.wire.rows import NO_ROW
from tidemark.wire.table_info import Column, Index, TableInfo
from tidemark.wire.types import Kind

KEY = types.NOT_NULL | types.PRIMARY_KEY


def read_back(column: Column) -> str:
    """An expression whose value is the parameter that was written."""
    name = quote(column.name)
    if column.kind in (Kind.ENUM, Kind.SET, Kind.BIT):
        return f"cast({name} + 0 as unsigned)"
    if column.kind is Kind.FLOAT:  # printed with six digits otherwise
        return f"{name} + 0e0"
    if column.kind in (Kind.DECIMAL, Kind.DATETIME, Kind.TIME, Kind.JSON, Kind.VECTOR):
        return f"cast({name} as char)"
    return name


def expected_rows(batches) -> dict[tuple, tuple]:
    """The rows of a table at the end, by key."""
    rows = {}
    for batch in batches:
        columns = written_columns(batch.table)
        params = [column_params(batch.columns.column(column.name), column) for column in columns]
        images = row_params(pa.RecordBatch.from_arrays(params, names=[column.name for column in columns]))
        key = [
            next(place for place, column in enumerate(columns) if column.name == name)
            for name in batch.table.handle_key
        ]
        for pre, post in zip(batch.changes.pre, batch.changes.post, strict=True):
            if pre != NO_ROW:
                rows.pop(tuple(images[pre][place] for place in key), None)
            if post != NO_ROW:
                rows[tuple(images[post][place] for place in key)] = images[post]
    return rows


@pytest.fixture(params=["alltypes", "alltypes_shanghai"])
def scenario(request):
    return request.param


def test_every_type_is_read_back_as_it_was_written_also_after_a_replay(session, database, uri, scenario):
    zone = "+08:00" if scenario.endswith("shanghai") else "+00:00"
    # The scenario has an ENUM without member, which only a lenient session takes.
    target = target_of(uri, strict=False, time_zone=zone)
    run(session, f"set time_zone = '{zone}'", f"use {database}", *create_tables(scenario))
    by_table = {}
    for batch in stream_batches(scenario):
        by_table.setdefault(batch.table.table, []).append(batch)
    assert len(by_table) == 12
    with Writer(target) as writer:
        for _ in range(2):
            for name, batches in by_table.items():
                for batch in batches:
                    writer.write(normal_steps(in_database(batch, database)))
                columns = written_columns(batches[0].table)
                session.commit()
                found = session.query(f"select {', '.join(map(read_back, columns))} from {quote(name)}")
                assert sorted(found, key=repr) == sorted(expected_rows(batches).values(), key=repr), name


def in_database(batch, database):
    from dataclasses import replace

    return replace(batch, table=replace(batch.table, schema=database))


def test_a_strict_session_refuses_an_enum_without_member(session, database, target):
    run(session, f"use {database}", *[line for line in create_tables("alltypes") if " others " in line])
    batches = [
        in_database(batch, database) for batch in stream_batches("alltypes") if batch.table.table == "others"
    ]
    with Writer(target) as writer, pytest.raises(RejectedValue, match=r"others.*MySQL 1265.*not strict"):
        writer.write([step for batch in batches for step in normal_steps(batch)])


def test_generated_columns_are_computed_downstream(session, database, target):
    run(session, f"use {database}", *[line for line in create_tables("alltypes") if " gens " in line])
    with Writer(target) as writer:
        for batch in stream_batches("alltypes"):
            if batch.table.table == "gens":
                writer.write(normal_steps(in_database(batch, database)))
    session.commit()
    assert session.query("select id, v_sum, s_dbl from gens order by id") == [
        (1, 12, 22),
        (2, None, None),
        (3, -4, -10),
    ]


@pytest.fixture
def unique(session, database):
    """A table with a secondary unique key."""
    run(session, f"create table {database}.u (id int primary key, u int unique)")
    columns = [Column(1, "id", 0, types.INT, flag=KEY, flen=11), Column(2, "u", 1, types.INT, flen=11)]
    return TableInfo.build(database, "u", 7, 1, columns=columns)


@pytest.mark.parametrize("connections", [1, 4])
def test_values_of_a_unique_key_may_move_between_rows(session, unique, target, connections):
    first = batch_of(unique, [("insert", 1, None, {"id": i, "u": i}) for i in range(100)])
    moved = batch_of(
        unique, [("update", 2, {"id": i, "u": i}, {"id": i, "u": (i + 1) % 100}) for i in range(100)]
    )
    with Writer(target, Limits(connections=connections, statement_rows=7, transaction_rows=20)) as writer:
        for batch in (first, moved, first, moved):
            writer.write(normal_steps(batch))
    session.commit()
    assert session.query(f"select id, u from {unique.schema}.u order by id") == [
        (i, (i + 1) % 100) for i in range(100)
    ]


def test_zero_is_a_value_of_an_auto_increment_column(session, database, target):
    run(session, f"create table {database}.a (id int primary key auto_increment)")
    table = TableInfo.build(database, "a", 7, 1, columns=[Column(1, "id", 0, types.INT, flag=KEY, flen=11)])
    with Writer(target) as writer:
        writer.write(normal_steps(batch_of(table, [("insert", 1, None, {"id": 0})])))
    session.commit()
    assert session.query(f"select id from {database}.a") == [(0,)]


def test_names_with_quotes_and_percent_signs(session, database, target):
    run(session, f"create table {database}.`t``%%s?` (`i``d` int primary key, `a%%?` int)".replace("%%", "%"))
    columns = [Column(1, "i`d", 0, types.INT, flag=KEY, flen=11), Column(2, "a%?", 1, types.INT, flen=11)]
    table = TableInfo.build(database, "t`%s?", 7, 1, columns=columns)
    with Writer(target) as writer:
        rows = [{"i`d": 1, "a%?": 1}, {"i`d": 2, "a%?": 2}]
        writer.write(normal_steps(batch_of(table, [("insert", 1, None, row) for row in rows])))
        writer.write(normal_steps(batch_of(table, [("delete", 1, rows[0], None)])))
    session.commit()
    assert session.query(f"select * from {database}.`t``%s?`") == [(2, 2)]


def test_texts_cannot_become_sql(session, database, target):
    run(session, f"create table {database}.s (k varchar(40) primary key, v varchar(40))")
    table = TableInfo.build(
        database,
        "s",
        7,
        1,
        columns=[text_column(0, "k", flag=KEY), text_column(1, "v")],
        indexes=[Index("PRIMARY", ("k",), is_unique=True, is_primary=True)],
    )
    texts = ["'); drop table s; --", "\\'", "\\", "%s %d %%", '\x00\n\r\x1a"', "`", "?"]
    with Writer(target) as writer:
        batch = batch_of(table, [("insert", 1, None, {"k": text, "v": text}) for text in texts])
        writer.write(normal_steps(batch))
        session.commit()
        assert sorted(session.query(f"select k, v from {database}.s")) == sorted(
            (text, text) for text in texts
        )
        writer.write(normal_steps(batch_of(table, [("delete", 1, {"k": text}, None) for text in texts])))
    session.commit()
    assert session.query(f"select * from {database}.s") == []


def test_rows_without_key_are_told_apart_by_all_their_values(session, database, target):
    ddl = "(i int, d decimal(30,10), f float, t varchar(40) collate utf8mb4_general_ci, j json, dt datetime(3), b varbinary(10), bt bit(9), g int as (i + 1))"
    run(session, f"create table {database}.k {ddl}")
    columns = [
        Column(1, "i", 0, types.INT, flen=11),
        Column(2, "d", 1, types.DECIMAL, flen=30, decimal=10),
        Column(3, "f", 2, types.FLOAT),
        text_column(3, "t", "utf8mb4_general_ci"),
        Column(5, "j", 4, types.JSON, charset="utf8mb4"),
        Column(6, "dt", 5, types.DATETIME, decimal=3),
        Column(7, "b", 6, types.VARCHAR, charset="binary", flen=10),
        Column(8, "bt", 7, types.BIT, flen=9),
        Column(9, "g", 8, types.INT, generated_expr="`i` + 1"),
    ]
    table = TableInfo.build(database, "k", 7, 1, columns=columns)
    from decimal import Decimal

    row = {
        "i": 1,
        "d": Decimal("12345678901234567890.0000000001"),
        "f": 0.1,
        "t": "a",
        "j": '{"a": 1}',
        "dt": "2024-01-01 00:00:00.123",
        "b": b"\xff",
        "bt": 257,
    }
    # Equal for a careless comparison: as a floating point number, without regard to case, or because of NULL.
    near = [
        {**row, "d": Decimal("12345678901234567890.0000000002")},
        {**row, "t": "A"},
        {**row, "i": None},
        {**row, "j": '{"a": 2}'},
        {},
    ]
    inserts = [("insert", 1, None, values) for values in (row, row, *near)]
    with Writer(target) as writer:
        writer.write(normal_steps(batch_of(table, inserts)))
        writer.write(normal_steps(batch_of(table, [("delete", 2, row, None)])))
        session.commit()
        assert session.query(
            f"select count(*), sum(d = 12345678901234567890.0000000001 and binary t = 'a' and i = 1 and j = '{{\"a\": 1}}') from {database}.k"
        ) == [(6, 1)]
        writer.write(
            normal_steps(
                batch_of(
                    table,
                    [("update", 3, {}, {"i": 5}), ("delete", 3, near[0], None), ("delete", 3, near[1], None)],
                )
            )
        )
    session.commit()
    assert session.query(f"select i, t from {database}.k order by i, t") == [
        (None, "a"),
        (1, "a"),
        (1, "a"),
        (5, None),
    ]


@pytest.fixture
def nullable(session, database):
    """A table whose only keys are unique and may be NULL."""
    run(session, f"create table {database}.n (a int null, b int null, v int, unique (a), unique (b, v))")
    columns = [Column(place + 1, name, place, types.INT, flen=11) for place, name in enumerate("abv")]
    indexes = (Index("a", ("a",), True, False), Index("b", ("b", "v"), True, False))
    table = TableInfo.build(database, "n", 7, 1, columns=columns, indexes=indexes)
    assert table.handle_key == ()
    return table


def of_nullable(op, ts, *images):
    """Images as (a, b, v)."""
    rows = [None if image is None else dict(zip("abv", image, strict=True)) for image in images]
    return (op, ts, *([None, *rows] if op == "insert" else [*rows, None])[:2])


# Every change of a history, and the rows at its end. None of them has NULL in both keys.
NULLABLE_HISTORIES = {
    "a row that changes": (
        [("insert", 1, (1, None, 1)), ("update", 2, (1, None, 1), (1, None, 2)), ("insert", 3, (None, 5, 5))],
        {(1, None, 2), (None, 5, 5)},
    ),
    "a row that goes": ([("insert", 1, (1, 1, 1)), ("delete", 2, (1, 1, 1))], set()),
    "a key that is set free and taken again": (
        [
            *(("insert", 1, (1, 1, 1)), ("delete", 2, (1, 1, 1)), ("insert", 3, (1, 2, 2))),
            *(("update", 4, (1, 2, 2), (3, 2, 2)), ("insert", 5, (1, 9, 9))),
        ],
        {(3, 2, 2), (1, 9, 9)},
    ),
    "a key that becomes NULL": (
        [("insert", 1, (1, 1, 1)), ("update", 2, (1, 1, 1), (None, 1, 1)), ("insert", 3, (1, 2, 1))],
        {(None, 1, 1), (1, 2, 1)},
    ),
    "rows that are alike exchange their keys": (
        [
            *(("insert", 1, (1, None, 7)), ("insert", 1, (2, None, 7))),
            *(("update", 2, (1, None, 7), (2, None, 7)), ("update", 2, (2, None, 7), (1, None, 7))),
        ],
        {(1, None, 7), (2, None, 7)},
    ),
}


@pytest.mark.parametrize("history", NULLABLE_HISTORIES)
def test_a_range_of_a_table_with_nullable_unique_keys_may_be_repeated(session, nullable, target, history):
    changes, end = NULLABLE_HISTORIES[history]
    changes = [of_nullable(*change) for change in changes]
    for done in range(len(changes) + 1):
        run(session, f"truncate table {nullable.schema}.n")
        with Writer(target, Limits(connections=4, statement_rows=2)) as writer:
            # As far as the first attempt came; then everything.
            for part in (changes[:done], changes):
                writer.write(normal_steps(batch_of(nullable, part)))
        session.commit()
        found = session.query(f"select a, b, v from {nullable.schema}.n")
        assert sorted(found, key=repr) == sorted(end, key=repr)


def test_rows_with_null_in_all_unique_keys_are_all_kept(session, nullable, target):
    alike = [of_nullable("insert", 1, (None, None, 7))] * 2
    with Writer(target) as writer:
        writer.write(normal_steps(batch_of(nullable, alike)))
        writer.write(normal_steps(batch_of(nullable, [of_nullable("delete", 2, (None, None, 7))])))
    session.commit()
    assert session.query(f"select a, b, v from {nullable.schema}.n") == [(None, None, 7)]


@pytest.mark.parametrize(
    ("charset", "collate"),
    [
        ("utf8mb4", "utf8mb4_bin"),
        ("utf8mb4", "utf8mb4_general_ci"),
        ("latin1", "latin1_bin"),
        ("latin1", "latin1_swedish_ci"),
        ("gbk", "gbk_bin"),
        ("gbk", "gbk_chinese_ci"),
    ],
)
@pytest.mark.parametrize(
    ("declared", "kind"), [("varchar(40)", types.VARCHAR), ("text", types.BLOB_TYPE), ("json", types.JSON)]
)
def test_texts_without_key_are_told_apart_by_their_bytes(
    session, database, target, charset, collate, declared, kind
):
    """A deleted row is the one with this very text, whatever the collation takes for equal and the character set makes of it."""
    of_column = "" if kind == types.JSON else f"character set {charset} collate {collate}"
    run(session, f"create table {database}.b (id int, t {declared} {of_column})")
    columns = [
        Column(1, "id", 0, types.INT, flen=11),
        Column(2, "t", 1, kind, flen=40, charset=charset, collate=collate),
    ]
    table = TableInfo.build(database, "b", 7, 1, columns=columns)
    letter = "中" if charset == "gbk" else "é"
    texts = ["a", "a ", "A", "a  ", letter, f"{letter} ", "", " "]
    if kind == types.JSON:
        texts = [f'"{text}"' for text in texts]
    texts.append(None)
    changes = [("insert", 1, None, {"id": 1, "t": text}) for text in texts]
    with Writer(target) as writer:
        writer.write(normal_steps(batch_of(table, changes)))
        left = list(texts)
        for text in reversed(texts):
            writer.write(normal_steps(batch_of(table, [("delete", 2, {"id": 1, "t": text}, None)])))
            left.remove(text)
            session.commit()
            found = [found for (found,) in session.query(f"select t from {database}.b")]
            assert sorted(found, key=repr) == sorted(left, key=repr)
