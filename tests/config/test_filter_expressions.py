"""Expressions of event filters: what is refused before any table is known, and for which tables."""

import pytest

from tidemark.config import load
from tidemark.config.findings import ConfigError
from tidemark.filter_expressions import ExpressionError, check, condition

TAKEN = [
    "status = 'test'",
    "a > 1 and (b < 2 or not c) xor d",
    "a <=> null",
    "a div 2 = 1",
    "name like 'a\\_%'",
    "name regexp '^[a-z]+$'",
    "coalesce(a, b, 0) in (1, 2)",
    "case when a then 'x' end = 'x'",
    "created >= '2025-01-01'",
    "created >= date '2025-01-01'",
    "name collate utf8mb4_bin = 'x'",
]
REFUSED = {
    "a = ": "is no SQL expression",
    "(a = 1": "is no SQL expression",
    "a = 1; b = 2": "is more than one expression",
    "a, b": "is 2 expressions",
    "a from t": "is more than one expression",
    "a where b": "is more than one expression",
    "a as b": "is not supported",
    "now() > a": "NOW() is not supported",
    "rand() > 0.5": "RAND() is not supported",
    "exists(select 1)": "EXISTS(SELECT 1) is not supported",
    "a in (select 1)": "is not supported",
    "json_extract(a, '$.x') = 1": "JSON_EXTRACT(a, '$.x') is not supported",
    "a->'$.x' = 1": "is not supported",
    "cast(a as signed) = 1": "CAST and CONVERT",
    "binary a = 'x'": "is not supported",
    "a & 1": "a & 1 is not supported",
    "greatest(a, 1) = 1": "GREATEST(a, 1) is not supported",
    "t.a = 1": "name columns without their table",
    "@x = 1": "is not supported",
    "a = 1 = 1": "in parentheses",
    "(a, b) = (1, 2)": "is not supported",
    "a like b": "the pattern must be a literal",
    "a like 'x' escape '|'": "is not supported",
    "a regexp '(?i)x'": "which TiDB and Spark read alike",
    "a regexp '['": "REGEXP",
    "a regexp 'x*+'": "REGEXP",
    "a regexp '[a&&b]'": "REGEXP",
    "substring(a, 0) = 'x'": "the first character is number 1",
    "substring(a, b) = 'x'": "must be a literal number",
    "left(a, -1) = 'x'": "must be a literal number",
    "trim(both 'x' from a) = ''": "is not supported in this form",
    "a collate utf8mb4_general_ci = 'x'": "COLLATE utf8mb4_general_ci is not supported",
    "1 / 2 = 0.5": "a division of exact numbers",
    "'a' and b": "is no condition",
    "a in (1, 'x')": "IN mixes numbers and texts",
    "a between 1 and 'x'": "BETWEEN mixes numbers and texts",
    "a = 123456789012345678901234567890123456789": "more than 38 digits",
    "a + interval 1 day > b": "is not supported",
    "date_format(a, '%Y') = '2025'": "is not supported",
    "if(a, 1, 'x') = 1": "is a number or a text",
}


@pytest.mark.parametrize("expression", TAKEN)
def test_an_expression_that_means_the_same_in_both_is_taken(expression):
    check(expression)


@pytest.mark.parametrize("expression", REFUSED)
def test_what_may_mean_something_else_is_refused_by_name(expression):
    with pytest.raises(ExpressionError) as problem:
        check(expression)
    assert REFUSED[expression] in str(problem.value)


KEYS = [
    "ignore-insert-value-expr",
    "ignore-update-old-value-expr",
    "ignore-update-new-value-expr",
    "ignore-delete-value-expr",
]


@pytest.mark.parametrize("key", KEYS)
def test_a_changefeed_with_such_an_expression_is_refused_with_the_name_of_the_rule(key):
    filters = [{"matcher": ["a.*"], key: "id > 1"}, {"matcher": ["b.*"], key: "now() > id"}]
    with pytest.raises(ConfigError) as problem:
        load({"filter": {"event-filters": filters}})
    assert f"filter.event-filters[1].{key}" in str(problem.value)
    assert "NOW() is not supported" in str(problem.value)
    assert "event-filters[0]" not in str(problem.value)


def column(name, type_name, **more):
    return {"name": name, "type_name": type_name, "column_type": type_name, **more}


def text(name, collation, charset="utf8mb4"):
    return column(name, "varchar", collation=collation, charset=charset)


COLUMNS = [
    column("Id", "bigint"),
    column("big", "bigint", is_unsigned=True),
    column("wide", "decimal", flen=65, decimal=30),
    column("money", "decimal", flen=30, decimal=10),
    column("long_money", "decimal", flen=38, decimal=0),
    column("doc", "json"),
    column("spot", "vector"),
    column("span", "time"),
    column("year", "year"),
    column("kind", "enum", elems=["a", "b"], collation="utf8mb4_bin", charset="utf8mb4"),
    column("made", "date"),
    column("raw", "blob"),
    column("sum", "int", is_virtual_generated=True),
    column("_tidb_origin_ts", "bigint"),
    text("name", "utf8mb4_bin"),
    text("title", "utf8mb4_general_ci"),
    text("label", "utf8mb4_0900_ai_ci"),
    text("old", "gbk_bin", "gbk"),
]
REFUSED_FOR_COLUMNS = {
    "nope = 1": "there is no column nope",
    "wide > 1": "`wide`, which is decimal, cannot be compared: only IS NULL",
    "money > long_money": "more than 38 digits",
    "big * id = 1": "may need more than 38 digits",
    "doc = '{}'": "`doc`, which is json, cannot be compared",
    "spot = '[1]'": "`spot`, which is vector, cannot be compared",
    "span > '10:00:00'": "`span`, which is time, cannot be compared",
    "year = 70": "write all four digits",
    "kind = 1": "compare it with the names of its members",
    "kind > 'a'": "only compared by = and <>",
    "made = 20250101": "`made` and a number cannot be compared",
    "made = 'yesterday'": "is not written as YYYY-MM-DD",
    "made = '2025-02-30'": "is no date",
    "made = name": "only literals can be",
    "raw = name": "is compared with bytes",
    "raw = 1": "cannot be compared",
    "sum = 1": "virtual generated column",
    "_tidb_origin_ts = 1": "_tidb_origin_ts",
    "id = 'one'": "is compared with a number, and is none",
    "id / 2 = 1": "a division of exact numbers",
    "big div 2 = 1": "at most 19 digits",
    "title = 'é'": "COLLATE utf8mb4_bin",
    "title > 'a'": "the order of texts",
    "old > 'a'": "the order of texts",
    "length(old) = 1": "use CHAR_LENGTH",
    "title = name": "different collations",
    "title = label": "different collations",
    "name": "is no condition",
    "year(name) = 2025": "is no date or time",
    "lower(id) = '1'": "is no text",
    "name + 1 = 2": "is no number",
}


def written(expression):
    values = {each["name"]: f"image.`{each['name']}`" for each in COLUMNS}
    return condition(expression, COLUMNS, values, "the rule, table s.t")


@pytest.mark.parametrize("expression", REFUSED_FOR_COLUMNS)
def test_what_the_type_of_a_column_does_not_allow_is_refused(expression):
    with pytest.raises(ExpressionError) as problem:
        written(expression)
    assert REFUSED_FOR_COLUMNS[expression] in str(problem.value)


@pytest.mark.parametrize("name", ["wide", "doc", "spot", "span", "raw"])
def test_whether_a_value_is_null_can_be_asked_of_every_column(name):
    assert written(f"{name} is not null").columns == (name,)


def test_names_of_columns_are_found_in_any_case_and_read_as_the_table_spells_them():
    assert written("ID = 1 and `iD` <> NAME").columns == ("Id", "name")
