"""tidemark.table: real columns of real types, whatever statements came after a row was written; and as of an earlier ts."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import pytest
from histories import START_TS, Change, Transaction
from streams import END_TS, Sender

from support import golden
from tidemark.demo.column_types import column
from tidemark.wire.table_info import TableInfo

# The statements by TiDB's numbers.
ADD_COLUMN, MODIFY_COLUMN = 5, 12

# As many as a set can have.
MEMBERS = [f"m{number}" for number in range(64)]
BEFORE = [
    column(sql, place)
    for place, sql in enumerate(
        (
            "id int not null primary key",
            "big bigint unsigned",
            "at timestamp(6)",
            "bytes varbinary(8)",
            "letter enum('a','b')",
            "letters set('x','y','z')",
            "doc json",
            "old_name varchar(10)",
            "colour enum('red','green')",
            "size varchar(10)",
            "number varchar(10)",
            "price decimal(8,3)",
            "raw varchar(10)",
            "grown enum('t','a')",
            "sorted enum('a','A','b')",
            f"many set({','.join(MEMBERS)})",
            "rank enum('low','high')",
            "flags set('x','y','z')",
            "seen datetime(6)",
        )
    )
]
TALL = "XL, tall"
BEFORE[13] = replace(BEFORE[13], elems=(TALL, "a"))
# A change of type that rewrites the rows gives a column another id.
AFTER = [
    *BEFORE[:7],
    replace(BEFORE[7], name="new_name"),
    replace(column("colour varchar(10)", 8), id=41),
    replace(column("size enum('s','m')", 9), id=42),
    # Another name, too.
    replace(column("amount int", 10), id=43),
    replace(column("price bigint", 11), id=44),
    replace(column("raw varbinary(10)", 12), id=45),
    replace(BEFORE[13], elems=(TALL, "a", "A")),
    replace(column("sorted enum('b','A','a')", 14), id=46),
    BEFORE[15],
    replace(column("rank int", 16), id=47),
    replace(column("flags decimal(8,1)", 17), id=48),
    replace(column("seen datetime(2)", 18), id=49),
    column("added int not null default '7'", 19, added=True),
    column("added_text varchar(10) default 'plus'", 20, added=True),
    column("added_letter enum('p','q') default 'q'", 21, added=True),
    replace(column("added_bits bit(8)", 22), origin_default="\x05"),
    # Beside the bytes, of which a text cannot have all.
    replace(column("more_bits bit(8)", 23), origin_default="\ufffd", origin_default_bit="gQ=="),
]
AT = "2025-02-03 04:05:06.070809"
FIRST = {
    "id": 1,
    "big": 2**64 - 1,
    "at": AT,
    "bytes": b"\x00\xff",
    "letter": 2,
    "letters": 5,
    "doc": '{"k": [1, null]}',
    "old_name": "kept",
    "colour": 2,
    "size": "M",
    "number": "12",
    "price": Decimal("2.500"),
    "raw": "grün",
    "grown": 1,
    "sorted": 2,
    "many": 2**63 + 1,
    "rank": 2,
    "flags": 5,
    "seen": "1969-12-31 23:59:59.995000",
}
NOTHING = dict.fromkeys(FIRST)
# What does not fit the new type is null.
MISFITS = {**NOTHING, "id": 2, "size": "xxl", "number": "twelve", "letters": 0, "sorted": 0}
ADDED = {"added": 8, "added_text": None, "added_letter": 1, "added_bits": 6, "more_bits": 7}
LATE = {"new_name": "n", "colour": "blue", "size": 1, "amount": 3, "price": 4, "raw": b"\xfe", "rank": 9}


def versions():
    """One statement after the other, so that every version differs from the next in one thing."""
    infos, columns = [], list(BEFORE)
    for place, changed in enumerate(AFTER):
        if place < len(BEFORE) and changed != BEFORE[place]:
            columns[place] = changed
        elif place >= len(BEFORE):
            columns.append(changed)
        else:
            continue
        infos.append(
            TableInfo.build(
                "made", "typed", 7, START_TS + 10 + place, columns=list(columns), pk_is_handle=True
            )
        )
    return infos


def write(sender, ts, *rows):
    sender.send([Transaction("made", None, ts - 1, ts, tuple(Change(*row) for row in rows))])


def typed_log():
    sender = Sender(
        TableInfo.build("made", "typed", 7, START_TS, columns=BEFORE, pk_is_handle=True), b"t" * 16
    )
    sender.begin(START_TS)
    write(sender, START_TS + 2, ("insert", None, FIRST), ("insert", None, MISFITS))
    for info in versions():
        is_added = len(info.columns) > len(BEFORE)
        sender.execute(ADD_COLUMN if is_added else MODIFY_COLUMN, info.version + 1, info)
    row = {**{name: NOTHING.get(name) for name in sender.info.arrow_schema.names}, **LATE, **ADDED, "id": 3}
    write(sender, START_TS + 102, ("insert", None, row), ("insert", None, {**row, "id": 4}))
    write(sender, START_TS + 104, ("delete", {**row, "id": 4}, None))
    sender.resolve(END_TS * 2)
    return b"".join(sender.frames)


@pytest.fixture(scope="module")
def built(models, tmp_path_factory):
    log = tmp_path_factory.mktemp("logs") / "typed.bin"
    log.write_bytes(typed_log())
    models.vars = {
        "event_logs": [
            {"upstream_id": "evolve", "path": str(golden("streams/evolve.bin"))},
            {"upstream_id": "made", "path": str(log)},
        ]
    }
    models.ok("run", "--select", "+current_rows", "sync_points")
    return models


def rows_of(models, call, **variables):
    """The rows of a call of the macro, by their first column, with Spark's own types."""
    select = f"select * from {{{{ tidemark.{call} }}}}"
    compiled = models.ok("compile", "--inline", select, **variables).result.results[0].node.compiled_code
    return {row[0]: row.asDict() for row in models.spark.sql(compiled).collect()}


def test_values_have_the_types_of_the_latest_columns_whatever_they_were_written_with(built):
    rows = rows_of(built, "table('made', 'typed')")
    defaults = {"added": 7, "added_text": "plus", "added_letter": "q", "added_bits": 5, "more_bits": 0x81}
    assert rows == {
        1: dict(
            id=1,
            big=Decimal(2**64 - 1),
            at=datetime(2025, 2, 3, 4, 5, 6, 70809),
            bytes=bytearray(b"\x00\xff"),
            letter="b",
            letters="x,z",
            doc='{"k": [1, null]}',
            new_name="kept",
            colour="green",
            size="m",
            amount=12,
            price=3,
            raw=bytearray("grün".encode()),
            grown=TALL,
            sorted="A",
            many="m0,m63",
            rank=2,
            flags=Decimal("5.0"),
            seen=datetime(1970, 1, 1),
            **defaults,
        ),
        2: {**dict.fromkeys(rows[1]), "id": 2, "letters": "", "sorted": "", **defaults},
        3: dict(
            **{"id": 3, "big": None, "at": None, "bytes": None, "letter": None, "letters": None, "doc": None},
            **{**LATE, "size": "s", "raw": bytearray(b"\xfe")},
            **{"grown": None, "sorted": None, "many": None, "flags": None, "seen": None},
            **{**ADDED, "added_letter": "p"},
        ),
    }


def test_tombstones_are_there_on_demand(built):
    with_deleted = rows_of(built, "table('made', 'typed', with_deleted=true)")
    assert set(with_deleted) == {1, 2, 3, 4}
    assert {**with_deleted[4], "id": 3} == with_deleted[3]


def test_a_table_without_changes_of_columns_is_read_directly(built):
    compiled = built.ok("compile", "--inline", "{{ tidemark.table('evo', 'multi_b2') }}")
    code = compiled.result.results[0].node.compiled_code
    assert "layout" not in code
    assert "map<" not in code
    assert set(rows_of(built, "table('evo', 'multi_b2')")) == {1, 2, 3}


def test_an_unknown_table_is_named(built):
    assert "no table is called evo.nothing so far" in built.fails(
        "compile", "--inline", "{{ tidemark.table('evo', 'nothing') }}"
    )


def test_a_snapshot_has_the_tables_and_columns_of_its_time(built):
    """The sync point is after two renames and before the table was truncated, and dropped with its database."""
    built.ok("run", "--select", "current_rows", as_of_ts="sync_point")
    rows = rows_of(built, "table('evo_b', 't1_moved')", as_of_ts="sync_point")
    names = {row["table_name"] for row in built.table("current_rows") if row["schema_name"].startswith("evo")}
    assert names == {"t1_moved"}
    # Written before `b` was added, became a bigint called `bb` and then a text, and before there was a `z`.
    assert rows == {
        number: {"id": number, "a": a, "bb": bb, "z": z}
        for number, a, bb, z in (
            (1, "ONE", "7", None),
            (3, "three", "33", None),
            (4, "four", "44", None),
            (5, "a much longer value than ten", "7", None),
            (6, None, "now text", None),
            (7, "seven again", "b7", None),
            (8, "eight", "b8", '{"z": []}'),
            (9, "nine", "b9", None),
            (10, "ten", "b10", "10"),
        )
    }

    # Before the first rename, and while there was a column `c`.
    (renamed_ts,) = {row["finished_ts"] for row in built.table("stg_ddl_events") if row["ddl_type"] == 6}
    earlier = str(renamed_ts - 1)
    built.ok("run", "--select", "current_rows", as_of_ts=earlier)
    rows = rows_of(built, "table('evo', 't1')", as_of_ts=earlier)
    assert set(rows) == {1, 2, 3, 4, 5, 6}
    assert rows[3] == {"id": 3, "c": datetime(2020, 1, 1, 0, 0, 0, 123000), "a": "three", "bb": "33"}
    assert "no table is called evo_b.t1_moved as of" in built.fails(
        "compile", "--inline", "{{ tidemark.table('evo_b', 't1_moved') }}", as_of_ts=earlier
    )

    call = "{{ tidemark.table('evo', 't1') }}"
    assert f"shows rows as of {earlier}, and this command asks for now" in built.fails(
        "compile", "--inline", call
    )
    built.ok("run", "--select", "current_rows")
    assert f"shows rows as of now, and this command asks for {earlier}" in built.fails(
        "compile", "--inline", call, as_of_ts=earlier
    )
    names = {row["table_name"] for row in built.table("current_rows") if row["schema_name"].startswith("evo")}
    assert names == {"p", "h", "multi_b2", "no_pk"}


def test_a_snapshot_outside_of_what_the_logs_cover_is_refused(built):
    last = min(row["checkpoint_ts"] for row in built.table("int_checkpoints"))
    message = built.fails("run", "--select", "current_rows", as_of_ts=str(last + 1))
    assert f"rows are complete only up to {last}" in message
    message = built.fails("run", "--select", "current_rows", as_of_ts=str(START_TS - 1))
    assert f"the logs begin at {START_TS}" in message
