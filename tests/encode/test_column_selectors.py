"""Column selectors cannot leave out what rows are told apart or dispatched by; as in TiCDC, nothing is sent then."""

import json
from types import SimpleNamespace

import pytest
from encode_support import TEXT, column, inserts, table_of

from support import golden
from tidemark.cli import main
from tidemark.config import check, load
from tidemark.dispatch.errors import DroppedColumn
from tidemark.encode.protocol import ENCODERS, encoder_for
from tidemark.sinks.kafka.prepare import FirstRow, check_columns
from tidemark.wire import types

URIS = {"storage": "file:///x?protocol=", "kafka": "kafka://h:1/t?schema-registry=http://h:1&protocol="}
ID = column("id", types.INT, flag=types.NOT_NULL | types.PRIMARY_KEY)
NAME = column("name", types.VARCHAR, **TEXT)
LOG = str(golden("streams/orders.bin"))
KAFKA = "kafka://h:1/t?protocol=canal-json&partition-num=4"


def feed(*columns, matcher="*.*", **rule):
    selected = {"column-selectors": [{"matcher": [matcher], "columns": list(columns)}]}
    dispatched = {"dispatchers": [{"matcher": [matcher], **rule}]} if rule else {}
    return {"sink": {**selected, **dispatched}}


def written(tmp_path, changefeed):
    """The changefeed as a file."""
    path = tmp_path / "changefeed.toml"
    lines = ["[sink]"]
    for name, entries in changefeed["sink"].items():
        for entry in entries:
            lines += [f"[[sink.{name}]]", *(f"{key} = {json.dumps(value)}" for key, value in entry.items())]
    path.write_text("\n".join(lines))
    return str(path)


@pytest.mark.parametrize(
    ("protocol", "kind"), [(name, kind) for name, (_, _, kinds) in ENCODERS.items() for kind in kinds]
)
def test_no_protocol_sends_rows_without_their_key(protocol, kind):
    settings = load(feed("*", "!id"), URIS[kind] + protocol, "ticdc")
    with pytest.raises(DroppedColumn) as problem:
        encoder_for(settings).encode_rows(inserts(table_of(ID, NAME), [1], ["x"]))
    assert str(problem.value) == (
        "table db.t: sink.column-selectors[0] leaves out id, which is part of the key of its rows; "
        "add it to the columns of the selector"
    )


def test_the_selector_that_takes_the_table_is_named(tmp_path, capfd):
    changefeed = feed("*", matcher="shop.orders")
    changefeed["sink"]["column-selectors"].append({"matcher": ["shop.customers"], "columns": ["email"]})
    file = written(tmp_path, changefeed)
    assert main(["encode", LOG, "--changefeed", file, "--sink-uri", "file:///x?protocol=csv"]) == 2
    said = capfd.readouterr()
    assert (
        "table shop.customers: sink.column-selectors[1] leaves out id, which is part of the key" in said.err
    )
    assert '"customers"' not in said.out


@pytest.mark.parametrize(
    "rule", [{"partition": "columns", "columns": ["email"]}, {"partition": "index", "index": "uk_email"}]
)
@pytest.mark.parametrize("command", ["dispatch", "encode"])
def test_rows_are_not_dispatched_by_a_column_that_is_left_out(tmp_path, capfd, command, rule):
    changefeed = feed("*", "!email", matcher="shop.custom*", **rule)
    file = written(tmp_path, changefeed)
    assert main([command, LOG, "--changefeed", file, "--sink-uri", KAFKA]) == 2
    assert (
        "table shop.customers: sink.column-selectors[0] leaves out email, which sink.dispatchers[0] dispatches by"
        in capfd.readouterr().err
    )


def test_dispatch_by_a_dropped_column_of_a_named_table_is_an_error_of_check():
    (finding,) = check(feed("*", "!name", matcher="db.t", partition="[id, name]"), KAFKA)
    assert (finding.severity, finding.key) == ("error", "sink.column-selectors")
    assert "table db.t: sink.column-selectors[0] leaves out name" in finding.message
    assert check(feed("*", "!name", matcher="db.t", partition="[id]"), KAFKA) == []


@pytest.mark.parametrize(
    ("changefeed", "column"),
    [(feed("name"), "id"), (feed("id", partition="columns", columns=["name"]), "name")],
)
def test_kafka_asks_before_the_first_message(changefeed, column):
    table = table_of(ID, NAME)
    schemas = SimpleNamespace(in_force=lambda *row: SimpleNamespace(table=table))
    row = FirstRow("1", "00" * 16, 1, 2)
    check_columns(load(feed("*"), KAFKA), [row], schemas)
    with pytest.raises(DroppedColumn, match=f"leaves out {column}, which"):
        check_columns(load(changefeed, KAFKA), [row], schemas)
