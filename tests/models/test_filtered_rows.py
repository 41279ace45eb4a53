"""Event filters by expressions on values: what a real database says of a row is what the models make of it."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest
from histories import START_TS, Change, Transaction
from streams import END_TS, Sender

from tidemark.config import load
from tidemark.demo.column_types import column
from tidemark.sinks.storage.reader import read_tree
from tidemark.wire.rows import op_names
from tidemark.wire.table_info import TableInfo

# As TiDB describes them; the database has the same, with the collation of `ci` said aloud.
COLUMNS = {
    "id": "id int primary key",
    "i": "i int",
    "n": "n bigint",
    "u": "u bigint unsigned",
    "m": "m decimal(20,4)",
    "f": "f float",
    "d": "d double",
    "y": "y year",
    "b": "b bit(10)",
    "s": "s varchar(40)",
    "ci": "ci varchar(40)",
    "e": "e enum('new','paid','closed')",
    "st": "st set('a','b','c')",
    "dt": "dt datetime(3)",
    "da": "da date",
    "bin": "bin varbinary(20)",
    "tx": "tx text",
}
ROWS = [
    {"i": 0, "n": 0, "u": 0, "m": "0.0000", "f": 0.0, "d": 0.0, "y": 2000, "b": 0, "s": "", "ci": "", "e": 1,
     "st": 0, "dt": "2025-01-01 00:00:00.000", "da": "2025-01-01", "bin": b"", "tx": ""},
    {"i": 5, "n": 2**53 + 1, "u": 2**64 - 1, "m": "12.5000", "f": 0.1, "d": 0.1, "y": 2024, "b": 5, "s": "abc", "ci": "ABC",
     "e": 2, "st": 3, "dt": "2024-12-31 23:59:59.999", "da": "2024-12-31", "bin": b"abc", "tx": "Hello World"},
    {"i": -5, "n": -(2**63), "u": 2**63, "m": "-0.0001", "f": -1.5, "d": 1e10, "y": 1999, "b": 1023, "s": "ABC ",
     "ci": "abc ", "e": 3, "st": 7, "dt": "0000-00-00 00:00:00.000", "da": "0000-00-00", "bin": b"\x00\xff", "tx": "50% off_a"},
    {"i": 7, "n": 7, "u": 7, "m": "9999999999999999.9999", "f": 3.5, "d": -0.0, "y": 2025, "b": 512, "s": "12abc",
     "ci": "a_c", "e": 0, "st": 4, "dt": "2025-06-15 12:30:45.500", "da": "2025-06-15", "bin": b"abc\x00", "tx": "a\nb"},
    {"i": 2**31 - 1, "n": 2**63 - 1, "u": 12, "m": "3.1416", "f": 2.5, "d": 2.5, "y": 2155, "b": 1, "s": " 7.50",
     "ci": "x.y", "e": 2, "st": 1, "dt": "9999-12-31 23:59:59.000", "da": "9999-12-31", "bin": b"ABC", "tx": "größe ÄÖ"},
    {"i": -(2**31), "n": 100, "u": 1, "m": "100.0000", "f": 100.0, "d": 100.0, "y": 1970, "b": 64, "s": "a\\b",
     "ci": "q%", "e": 1, "st": 2, "dt": "1999-02-03 04:05:06.007", "da": "1999-02-03", "bin": b"\xe4", "tx": "🌊 it's"},
    dict.fromkeys(set(COLUMNS) - {"id"}),
]  # fmt: skip
EXPRESSIONS = [
    # numbers
    *("i = 5", "i <> 5", "i != 5", "i < 0", "i <= -5", "i > 5", "i >= 7", "i <=> 5", "i <=> null", "not i <=> null"),
    *("i", "!i", "not i", "i = true", "i is true", "i is false", "i is not true", "i is null", "i is not null"),
    *("isnull(i)", "i is unknown", "true", "false", "null", "1", "0.0", "2", "i = null", "i <> null"),
    *("n = 9007199254740993", "n = 9007199254740992", "n = '9007199254740993'", "n > 9223372036854775806"),
    *("u = 18446744073709551615", "u > 9223372036854775807", "u > n", "u >= '18446744073709551615'", "u < 0", "u > -1"),
    *("m = 12.5", "m < 0", "m > 9999999999999999.9998", "m = i", "m > n", "m = '12.50'", "m between -1 and 12.5"),
    *("f = 0.1", "f = 2.5", "f > 0.1", "d = 0.1", "d = '0.1'", "d = 0", "d > 1e9", "d = f", "d <> m", "f < d", "1e1 > i"),
    *("y = 2024", "y > 2000", "y between 1990 and 2024", "b = 5", "b > 511", "b", "b % 2 = 1"),
    # arithmetic
    *("i + 5 = 10", "i - 5 = 0", "i + i > 0", "-i = 5", "- i < -4", "i * 2 = 10", "m * 2 = 25", "m + 0.5 > 13", "i * m < 0"),
    *("i div 2 = 2", "i div 2 = -2", "i div 0 is null", "i % 2 = 1", "i % 2 = -1", "mod(i, 3) = 2", "i mod 0 is null"),
    *("m % 5 = 2.5", "d / 2 = 50", "d / 0 is null", "d * 3 > 1", "d - f = 0", "1 + 1 = 2", "(i > 0) + (m > 0) = 2"),
    *("abs(i) = 5", "ceil(m) = 13", "floor(m) = 12", "floor(m) = -1", "ceiling(m) = 0", "round(m) = 13", "round(m, 1) = 12.5"),
    *("round(m, 3) = 3.142", "abs(m) < 1", "abs(d) > 1"),
    # texts; MariaDB pads the shorter one with spaces where TiDB trims both, which only tells texts with control characters apart
    *("s = 'abc'", "s = 'ABC'", "s = 'abc  '", "s <> 'abc'", "s < 'abc'", "s >= 'abc'", "s > ''", "s = ''", "tx > 'H'"),
    *("s like 'a%'", "s not like 'a%'", "s like '%C '", "s like '_bc'", "s like 'abc '", "tx like '50\\% off\\_a'", "s like 'a\\\\\\\\b'"),
    *("tx like '%Ö'", "tx like '_ it''s'", "s like ''", "tx like 'a_b'", "tx like '%s'"),
    *("ci = 'abc'", "ci = 'AbC'", "ci <> 'abc'", "ci in ('X.Y', 'nope')", "ci like 'AB%'", "ci like 'A\\_C'", "ci like 'q\\%'"),
    *("ci collate utf8mb4_bin = 'abc'", "ci collate utf8mb4_bin < 'b'", "ci regexp '^X'"),
    *("s regexp '^a'", "s regexp 'b?c$'", "s not regexp '[0-9]'", "s rlike '^[a-z]+$'", "tx regexp 'a.b'", "s regexp '\\\\.'"),
    *("tx regexp '^(Hello|50%)'", "s regexp '\\\\d{2}'", "tx regexp 'W.*d$'"),
    *("lower(s) = 'abc'", "upper(s) = 'ABC'", "lower(tx) like '%äö'", "upper(right(tx, 4)) = 'IT''S'", "lcase(tx) = 'hello world'"),
    *("length(s) = 3", "length(tx) = 12", "char_length(tx) = 8", "length(bin) = 2", "character_length(s) > 3"),
    *("substring(s, 2) = 'bc'", "substr(tx, 1, 5) = 'Hello'", "substring(s from 1 for 2) = 'ab'", "left(s, 2) = 'ab'", "right(tx, 2) = 'ÄÖ'"),
    *("concat(s, '-', tx) = 'abc-Hello World'", "trim(s) = 'ABC'", "ltrim(s) = '7.50'"),
    *("rtrim(s) = 'ABC'", "s = \"abc\"", "s = 'a' 'bc'"),
    # texts and numbers
    *("s = 12", "s = 7.5", "s = 0", "s > 5", "s < 1e1", "'12' = 12", "i in ('5', '7')"),
    # enum and set
    *("e = 'paid'", "e <> 'paid'", "e in ('new', 'closed')", "e = ''", "e is null", "st = 'a,b'", "st = ''", "st like '%c%'", "e like 'p%'"),
    # dates
    *("dt = '2025-01-01'", "dt >= '2025-01-01 00:00:00'", "dt > '2024-12-31 23:59:59.998'", "dt < '2025-06-15 12:30:45.6'"),
    *("dt between '2024-01-01' and '2024-12-31 23:59:59.999'", "dt = '0000-00-00'", "da = '2024-12-31'", "da < '2025-01-01'"),
    *("da = dt", "da < dt", "da >= '2024-12-31 00:00:01'", "dt > date '2025-01-01'", "dt < timestamp '1999-02-03 04:05:06.5'"),
    *("year(dt) = 2025", "month(dt) = 6", "day(dt) = 15", "dayofmonth(da) = 3", "hour(dt) = 12", "minute(dt) = 30", "second(dt) = 45"),
    *("year(da) = 0", "date(dt) = '2025-06-15'", "date(dt) = da", "hour(dt) < 13", "dt in ('2025-01-01', '1999-02-03 04:05:06.007')"),
    # bytes
    *("bin = 'abc'", "bin = x'00ff'", "bin > 'abc'", "bin in ('abc', 'ABC')", "bin <> ''", "bin = 0x414243", "bin is null"),
    # words
    *("i > 0 and m > 0", "i > 0 && m > 13", "i > 0 or m > 0", "i > 0 || n > 0", "i > 0 xor m > 0", "i > 0 xor b > 500 and m > 0"),
    *("not i > 0", "not (i > 0 and m > 0)", "i in (5, 7)", "i not in (5, 7)", "i in (5, null)", "i not in (5, null)"),
    *("i between 0 and 7", "i not between 0 and 7", "(i > 0) = (m > 0)", "(i = 5) is null", "! (i > 0)", "!i = 1"),
    *("i > 0 or m is null", "i > 0 and null", "i > 0 or null"),
    # one of several
    *("ifnull(i, 5) = 5", "coalesce(null, i, 1) > 0", "coalesce(s, 'none') = 'none'", "nullif(i, 5) is null", "if(i > 0, s, tx) = 'abc'"),
    *("if(i, 1, 0)", "case when i > 5 then 1 when i > 0 then 2 else 0 end = 2", "case i when 5 then 'x' else s end = 'x'"),
    *("case when i > 0 then m end > 10", "ifnull(m, i) > 5", "coalesce(d, 0) = 0", "ifnull(da, dt) > '2025-01-01'"),
]  # fmt: skip


def table(name, table_id, **changed):
    columns = [column(changed.get(key, sql), place) for place, (key, sql) in enumerate(COLUMNS.items())]
    columns = [replace(each, collate="utf8mb4_general_ci") if each.name == "ci" else each for each in columns]
    return TableInfo.build("s", name, table_id, START_TS, columns=columns)


def logged(row, number):
    m = row["m"]
    return {**row, "id": number, "m": None if m is None else Decimal(m)}


def inserts(info, rows, frames):
    sender = Sender(info, info.table_id.to_bytes(16, "big"), frames=frames)
    sender.begin(START_TS)
    changes = tuple(Change("insert", None, logged(row, number)) for number, row in enumerate(rows))
    sender.send([Transaction("1", None, START_TS + 9, START_TS + 10, changes)])
    sender.resolve(END_TS)


def create_truth(mariadb):
    # Zero dates, as TiDB stores them; texts and patterns are compared as they are.
    mariadb.execute("set session sql_mode = 'ALLOW_INVALID_DATES', names utf8mb4 collate utf8mb4_bin")
    mariadb.execute("drop database if exists filters")
    mariadb.execute("create database filters default charset utf8mb4 collate utf8mb4_bin")
    columns = [
        sql + (" collate utf8mb4_general_ci" if name == "ci" else " null" * (name != "id"))
        for name, sql in COLUMNS.items()
    ]
    mariadb.execute(f"create table filters.t ({', '.join(columns)})")
    for number, row in enumerate(ROWS):
        given = {**row, "id": number}
        marks = ", ".join(["%s"] * len(COLUMNS))
        mariadb.execute(f"insert into filters.t values ({marks})", [given[name] for name in COLUMNS])
    mariadb.commit()


def changefeed_file(folder, filters):
    """A TOML file: YAML on the command line does not take every character."""
    lines = []
    for each in filters:
        lines.append("[[filter.event-filters]]")
        lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in each.items()]
    (folder / "changefeed.toml").write_text("\n".join(lines), encoding="utf-8")
    return str(folder / "changefeed.toml")


@pytest.mark.long
def test_an_expression_leaves_out_the_rows_for_which_a_database_says_it_is_true(models, mariadb, tmp_path):
    """A table per expression, all with the same rows."""
    create_truth(mariadb)
    frames, filters, wanted = [], [], {}
    for number, expression in enumerate(EXPRESSIONS):
        inserts(table(f"t{number}", number + 1), ROWS, frames)
        filters.append({"matcher": [f"s.t{number}"], "ignore-insert-value-expr": expression})
        found = mariadb.query(f"select id from filters.t where ({expression.replace('%', '%%')})", [])
        wanted[expression] = sorted(row[0] for row in found)
    (tmp_path / "log.bin").write_bytes(b"".join(frames))
    models.ok(
        "run",
        *("--select", "+row_policy"),
        event_logs=[{"upstream_id": "1", "path": str(tmp_path / "log.bin")}],
        changefeed=changefeed_file(tmp_path, filters),
    )
    found = {expression: [] for expression in EXPRESSIONS}
    judged = models.rows(
        "select table_name, cast(get_json_object(key, '$[0]') as int) as id, reason from {schema}.row_policy"
    )
    assert len(judged) == len(EXPRESSIONS) * len(ROWS)
    for row in judged:
        if row["reason"] == "ignored_event":
            found[EXPRESSIONS[int(row["table_name"][1:])]].append(row["id"])
    found = {expression: sorted(rows) for expression, rows in found.items()}
    differing = {
        expression: {"database": wanted[expression], "models": found[expression]}
        for expression in EXPRESSIONS
        if found[expression] != wanted[expression]
    }
    assert differing == {}
    assert sum(0 < len(rows) < len(ROWS) for rows in wanted.values()) > 0.8 * len(EXPRESSIONS)


ORDERS = ["id int primary key", "Status varchar(20)", "amount decimal(10,2)", "ts timestamp"]
ADD_COLUMN = 5


def orders(version, *more):
    columns = [column(sql, place) for place, sql in enumerate([*ORDERS, *more])]
    return TableInfo.build("shop", "orders", 1, version, columns=columns)


def order(number, status, amount="1.00", ts="2025-01-01 12:00:00", **more):
    return {"id": number, "Status": status, "amount": Decimal(amount), "ts": ts, **more}


@pytest.fixture
def shop(dbt, tmp_path):
    """Orders of a cluster in Shanghai, whose table gets a column in between."""
    sender = Sender(orders(START_TS), b"o" * 16)
    sender.begin(START_TS)

    def send(ts, *changes):
        sender.send([Transaction("1", None, START_TS + ts - 1, START_TS + ts, changes)])

    send(
        10,
        Change("insert", None, order(1, "test")),
        Change("insert", None, order(2, "new")),
        Change("insert", None, order(3, None)),
        Change("insert", None, order(4, "new", ts="2025-01-01 07:59:59")),
    )
    send(20, Change("update", order(2, "new"), order(2, "paid")))
    send(21, Change("update", order(2, "paid"), order(2, "locked")))
    send(22, Change("update", order(2, "locked"), order(2, "new")))
    send(30, Change("delete", order(2, "new", "9.99"), None))
    send(31, Change("delete", order(3, None, "10.00"), None))
    sender.execute(ADD_COLUMN, START_TS + 40, orders(START_TS + 40, "note json", "wide decimal(65,2)"))
    send(50, Change("insert", None, order(5, "new", note="{}", wide=None)))
    sender.resolve(END_TS)
    (tmp_path / "log.bin").write_bytes(b"".join(sender.frames))
    dbt.vars = {
        "event_logs": [{"upstream_id": "1", "path": str(tmp_path / "log.bin"), "time_zone": "Asia/Shanghai"}],
        "sink_uri": f"file://{tmp_path}/tree?protocol=csv",
    }
    return dbt


RULE = {
    "matcher": ["shop.*"],
    "ignore-insert-value-expr": "STATUS = 'test' or ts < '2025-01-01 08:00:00'",
    "ignore-update-old-value-expr": "status = 'locked'",
    "ignore-update-new-value-expr": "status = 'locked'",
    "ignore-delete-value-expr": "amount < 10",
}


def test_rows_that_an_expression_leaves_out_are_not_sent(shop, tmp_path):
    shop.ok("run", "--select", "+sink_storage", changefeed=changefeed_file(tmp_path, [RULE]))
    sent = []
    for batch in read_tree(str(tmp_path / "tree"), load(None, shop.vars["sink_uri"])):
        keys = batch.columns.column("id")
        for op, pre, post in zip(batch.changes.op, batch.changes.pre, batch.changes.post, strict=True):
            sent.append((op_names()[int(op)].as_py(), keys[int(post if post >= 0 else pre)].as_py()))
    assert sorted(sent) == [("delete", 3), ("insert", 2), ("insert", 3), ("insert", 5), ("update", 2)]

    # What a table cannot answer is said before a row goes anywhere, and only where there are rows to judge.
    def refused(**expressions):
        rule = {"matcher": ["shop.orders"], **expressions}
        only = ("--select", "table_filter", "row_policy")
        return shop.fails("run", *only, changefeed=changefeed_file(tmp_path, [rule]))

    where = "filter.event-filters[0].ignore-insert-value-expr, table shop.orders: "
    assert where + "there is no column nope" in refused(**{"ignore-insert-value-expr": "nope = 1"})
    assert where + "there is no column note" in refused(**{"ignore-insert-value-expr": "note is null"})
    assert where + "amount / 3: how many digits" in refused(**{"ignore-insert-value-expr": "amount / 3 > 1"})
    shop.ok(
        "run",
        *("--select", "table_filter", "row_policy"),
        changefeed=changefeed_file(
            tmp_path, [{"matcher": ["shop.other"], "ignore-insert-value-expr": "nope = 1"}]
        ),
    )
