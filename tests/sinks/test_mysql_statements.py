"""The SQL of the database sink, without a server."""

import pytest
from mysql_support import (
    active_table,
    batch_of,
    expected_args,
    put,
    tables_by_event,
    text_column,
    typed,
    value_of,
)

from support import jsonl
from tidemark.compat import Compat
from tidemark.sinks.mysql.errors import MissingHiddenColumn
from tidemark.sinks.mysql.statements import delete_rows, delete_whole_row, lww_upsert, replace_rows
from tidemark.sinks.mysql.steps import lww_steps, normal_steps, ticdc_statements
from tidemark.wire import types
from tidemark.wire.table_info import Column, Index, TableInfo

DESIGN, TICDC = Compat.named("design"), Compat.named("ticdc")
CASES = jsonl("active_active/sql_cases.jsonl")
KEY = types.NOT_NULL | types.PRIMARY_KEY


@pytest.fixture(scope="module")
def tables():
    return tables_by_event("active_active")


@pytest.mark.parametrize(
    "case",
    CASES,
    ids=[f"{c['event']}-{c['batching']}-{'tidb' if c['downstream_is_tidb'] else 'mysql'}" for c in CASES],
)
def test_ticdc_statements_and_parameters_are_those_of_the_vectors(case, tables):
    table = tables[case["event"]]
    changes = [
        (row["op"], int(txn["commit_ts"]), *(_row(row[image], table) for image in ("pre", "post")))
        for txn in case["txns"]
        for row in txn["rows"]
    ]
    made = ticdc_statements(
        batch_of(table, changes), TICDC, case["batching"], skip_replicated=case["downstream_is_tidb"]
    )
    expected = case["statements"] or []
    assert [sql for sql, _ in made] == [statement["sql"] for statement in expected]
    assert [typed(args) for _, args in made] == [expected_args(statement["args"]) for statement in expected]


def _row(forms, table):
    return forms and {name: value_of(form, table.columns_by_name[name]) for name, form in forms.items()}


def test_design_evaluates_the_condition_once_and_first():
    assert lww_upsert(active_table("db"), DESIGN).sql(2) == (
        "INSERT INTO `db`.`acct` (`id`,`owner`,`n`,`_tidb_origin_ts`,`_tidb_softdelete_time`) VALUES (?,?,?,?,?),(?,?,?,?,?) "
        "ON DUPLICATE KEY UPDATE "
        "`id` = IF((@cond := (IFNULL(`_tidb_origin_ts`, `_tidb_commit_ts`) <= VALUES(`_tidb_origin_ts`))), VALUES(`id`), `id`),"
        "`owner` = IF(@cond, VALUES(`owner`), `owner`),"
        "`n` = IF(@cond, VALUES(`n`), `n`),"
        "`_tidb_origin_ts` = IF(@cond, VALUES(`_tidb_origin_ts`), `_tidb_origin_ts`),"
        "`_tidb_softdelete_time` = IF(@cond, VALUES(`_tidb_softdelete_time`), `_tidb_softdelete_time`)"
    )


@pytest.mark.parametrize("compat", [DESIGN, TICDC])
def test_commit_ts_is_never_written(compat):
    statement = lww_upsert(active_table("db"), compat)
    assert "_tidb_commit_ts" not in [column.name for column in statement.columns]
    assert "VALUES(`_tidb_commit_ts`)" not in statement.sql(1)


def test_commit_ts_column_of_a_downstream_without_hidden_columns():
    assert "IFNULL(`_tidb_origin_ts`, `ds_commit_ts`)" in lww_upsert(
        active_table("db"), DESIGN, commit_ts_column="ds_commit_ts"
    ).sql(1)


def test_design_requires_all_three_hidden_columns():
    table = active_table("db", commit_ts=False)
    with pytest.raises(MissingHiddenColumn, match=r"db\.acct.*_tidb_commit_ts is not there"):
        lww_upsert(table, DESIGN)
    lww_upsert(table, TICDC)


def test_origin_ts_is_the_commit_ts_where_the_row_has_none():
    table = active_table("db")
    batch = put(table, (700, 1, "a", 1), (800, 2, "b", 2, 650))
    assert [row[3] for row in lww_steps(batch, DESIGN, skip_replicated=False)[0].rows] == [700, 650]
    assert [row[3] for row in lww_steps(batch, TICDC, skip_replicated=False)[0].rows] == [700, 800]


def test_loop_guard_drops_rows_that_a_changefeed_wrote():
    table = active_table("db")
    batch = put(table, (700, 1, "a", 1), (800, 2, "b", 2, 650))
    assert [row[0] for row in lww_steps(batch, DESIGN, skip_replicated=True)[0].rows] == [1]


def test_a_batch_of_several_transactions_takes_keys_that_differ_in_case_for_one_where_the_collation_does():
    made = {}
    for collate in ("utf8mb4_general_ci", "utf8mb4_bin"):
        hidden = active_table("db", commit_ts=False).columns[3:]
        table = TableInfo.build(
            "db",
            "t",
            7,
            1,
            columns=[text_column(0, "k", collate, KEY), *hidden],
            indexes=[Index("PRIMARY", ("k",), is_unique=True, is_primary=True)],
        )
        batch = batch_of(table, [("insert", 1, None, {"k": "A"}), ("insert", 2, None, {"k": "a"})])
        [(_, args)] = ticdc_statements(batch, TICDC, "batch", skip_replicated=True)
        made[collate] = args[::3]
    assert made == {"utf8mb4_general_ci": ["a"], "utf8mb4_bin": ["A", "a"]}


def test_deletes_are_ignored_in_active_active_mode():
    table = active_table("db")
    assert lww_steps(batch_of(table, [("delete", 700, {"id": 1}, None)]), DESIGN, skip_replicated=True) == []


def weird_table(**columns) -> TableInfo:
    return TableInfo.build(
        "d`b%",
        "t`?",
        7,
        1,
        columns=[
            Column(1, "i`d", 0, types.INT, flag=KEY, flen=11),
            Column(2, "a?%s", 1, types.INT, flen=11),
            Column(3, "gen", 2, types.INT, flen=11, generated_expr="`a` + 1", is_stored_generated=True),
            Column(4, "virt", 3, types.INT, flen=11, generated_expr="`a` + 2"),
        ],
    )


def test_identifiers_are_quoted_and_generated_columns_left_out():
    assert replace_rows(weird_table()).sql(1) == "REPLACE INTO `d``b%`.`t``?` (`i``d`,`a?%s`) VALUES (?,?)"
    assert delete_rows(weird_table()).sql(2) == "DELETE FROM `d``b%`.`t``?` WHERE `i``d` IN (?,?)"


def composite_table() -> TableInfo:
    columns = [
        Column(1, "a", 0, types.INT, flag=types.NOT_NULL, flen=11),
        text_column(1, "b", flag=types.NOT_NULL),
        Column(3, "v", 2, types.INT),
    ]
    return TableInfo.build(
        "d",
        "t",
        7,
        1,
        columns=columns,
        indexes=[Index("PRIMARY", ("b", "a"), is_unique=True, is_primary=True)],
    )


def test_deletes_of_a_composite_key():
    assert (
        delete_rows(composite_table()).sql(2)
        == "DELETE FROM `d`.`t` WHERE (`b` = ? AND `a` = ?) OR (`b` = ? AND `a` = ?)"
    )


def test_a_row_without_key_is_deleted_by_all_its_columns():
    columns = [
        Column(1, "i", 0, types.INT),
        Column(2, "d", 1, types.DECIMAL, flen=10, decimal=2),
        Column(3, "j", 2, types.JSON),
        text_column(3, "ci", "utf8mb4_general_ci"),
        text_column(4, "bin"),
        Column(6, "long", 5, types.LONGBLOB, charset="utf8mb4", collate="utf8mb4_bin"),
    ]
    statement = delete_whole_row(TableInfo.build("d", "t", 7, 1, columns=columns))
    assert statement.sql(1) == (
        "DELETE FROM `d`.`t` WHERE `i` <=> ? AND `d` <=> CAST(? AS DECIMAL(10,2)) "
        "AND CAST(CONVERT(CAST(`j` AS CHAR) USING utf8mb4) AS BINARY) <=> CAST(? AS BINARY) "
        "AND CAST(CONVERT(`ci` USING utf8mb4) AS BINARY) <=> CAST(? AS BINARY) "
        "AND `bin` <=> ? AND CAST(CONVERT(`bin` USING utf8mb4) AS BINARY) <=> CAST(? AS BINARY) "
        "AND CAST(CONVERT(`long` USING utf8mb4) AS BINARY) <=> CAST(? AS BINARY) LIMIT 1"
    )
    assert [column.name for column in statement.columns] == ["i", "d", "j", "ci", "bin", "bin", "long"]
    assert statement.most_rows == 1


def simple_table() -> TableInfo:
    return TableInfo.build(
        "d",
        "t",
        7,
        1,
        columns=[Column(1, "id", 0, types.INT, flag=KEY, flen=11), Column(2, "v", 1, types.INT)],
    )


def test_only_the_last_change_of_a_key_is_written():
    rows = [{"id": i, "v": v} for i, v in ((1, 10), (1, 11), (2, 20), (3, 30), (3, 31))]
    batch = batch_of(
        simple_table(),
        [
            ("insert", 1, None, rows[0]),
            ("update", 2, rows[0], rows[1]),
            ("insert", 3, None, rows[2]),
            ("delete", 4, rows[2], None),
            ("delete", 5, rows[3], None),
            ("insert", 6, None, rows[4]),
        ],
    )
    assert [(step.statement.kind, step.rows) for step in normal_steps(batch)] == [
        ("delete", [(2,)]),
        ("replace", [(1, 11), (3, 31)]),
    ]


def test_an_update_that_changes_the_key_deletes_the_old_row():
    batch = batch_of(simple_table(), [("update", 1, {"id": 1, "v": 1}, {"id": 2, "v": 1})])
    assert [(step.statement.kind, step.rows) for step in normal_steps(batch)] == [
        ("delete", [(1,)]),
        ("replace", [(2, 1)]),
    ]


def test_changes_without_key_keep_their_order():
    table = TableInfo.build("d", "t", 7, 1, columns=[Column(1, "v", 0, types.INT)])
    batch = batch_of(
        table,
        [
            ("insert", 1, None, {"v": 1}),
            ("insert", 2, None, {"v": 2}),
            ("update", 3, {"v": 1}, {"v": 3}),
            ("delete", 4, {"v": 3}, None),
        ],
    )
    steps = normal_steps(batch)
    assert [(step.statement.kind, step.rows) for step in steps] == [
        ("insert", [(1,), (2,)]),
        ("delete", [(1,)]),
        ("insert", [(3,)]),
        ("delete", [(3,)]),
    ]
    assert not any(step.repeatable for step in steps)


def test_a_nullable_unique_key_makes_replacements_by_transactions_of_changes():
    columns = [Column(1, "k", 0, types.INT), Column(2, "v", 1, types.INT)]
    table = TableInfo.build("d", "t", 7, 1, columns=columns, indexes=(Index("k", ("k",), True, False),))
    batch = batch_of(
        table,
        [
            ("update", 1, {"k": 1, "v": 1}, {"k": 2, "v": 1}),
            ("update", 1, {"k": 2, "v": 2}, {"k": 1, "v": 2}),
            ("insert", 2, None, {"k": None, "v": 3}),
        ],
    )
    assert [(step.statement.kind, step.rows, step.repeatable) for step in normal_steps(batch)] == [
        ("delete", [(1, 1), (2, 2)], True),
        ("replace", [(2, 1), (1, 2), (None, 3)], False),
    ]
    assert normal_steps(batch_of(table, [])) == []


@pytest.mark.parametrize(
    ("collate", "same", "other"),
    [
        ("utf8mb4_bin", ["a", "a "], "A"),
        ("utf8mb4_general_ci", ["a", "A", "a  "], "b"),
        ("utf8mb4_unicode_ci", ["ß", "ss", "x"], None),
    ],
)
def test_keys_that_the_server_takes_for_equal_share_a_lane(collate, same, other):
    table = TableInfo.build(
        "d",
        "t",
        7,
        1,
        columns=[text_column(0, "k", collate, KEY)],
        indexes=[Index("PRIMARY", ("k",), is_unique=True, is_primary=True)],
    )
    keys = [*same, *([other] if other else [])]
    lanes = normal_steps(batch_of(table, [("insert", 1, None, {"k": key}) for key in keys]))[0].lanes
    assert len(set(lanes[: len(same)].tolist())) == 1
    if other:
        assert lanes[-1] != lanes[0]


def test_parameters_are_typed():
    columns = [
        Column(1, "id", 0, types.BIGINT, flag=KEY | types.UNSIGNED),
        Column(2, "f", 1, types.FLOAT),
        Column(3, "d", 2, types.DECIMAL, flen=20, decimal=10),
        Column(4, "e", 3, types.ENUM, elems=("x", "y"), charset="utf8mb4"),
        Column(5, "b", 4, types.BIT, flen=9),
        Column(6, "bin", 5, types.VARCHAR, charset="binary", flen=10),
        Column(7, "t", 6, types.DATETIME, decimal=3),
    ]
    table = TableInfo.build("d", "t", 7, 1, columns=columns)
    from decimal import Decimal

    row = {
        "id": 2**64 - 1,
        "f": float("nan"),
        "d": Decimal("0.0000000001"),
        "e": 2,
        "b": 257,
        "bin": b"\x00\xff",
        "t": "2024-01-01 00:00:00.000",
    }
    step = normal_steps(batch_of(table, [("insert", 1, None, row), ("insert", 1, None, {"id": 1})]))[0]
    assert step.rows == [
        (2**64 - 1, 0.0, "0.0000000001", 2, 257, b"\x00\xff", "2024-01-01 00:00:00.000"),
        (1, None, None, None, None, None, None),
    ]
