"""What `tidemark clean` removes, and what it leaves: all that a sink, a snapshot, a late row or a waiting transaction needs."""

import json

import pytest
from dying import process
from histories import PLAIN, START_TS, Change, Table, Transaction
from streams import Sender

# Several dbt runs.
pytestmark = pytest.mark.long
DAY = 86_400_000 << 18
MODELS = ("--select", "+sink_storage", "+current_rows", "+log_files")


class Log:
    """The log of a dispatcher, one file per day."""

    def __init__(self, folder):
        self.folder, self.written = folder, 0
        folder.mkdir()
        self.sender = Sender(Table("t", {"id": "int"}, PLAIN, (), ()).info("s", 1), bytes(15) + b"\1")
        self.sender.begin(START_TS)

    def row(self, number, text):
        return {**dict.fromkeys(self.sender.info.arrow_schema.names), "id": number, "v": text}

    def day(self, number, *changes, resolved=True):
        ts = START_TS + number * DAY
        if changes:
            self.sender.send([Transaction("1", None, ts - 1, ts, tuple(changes))])
        if resolved:
            self.sender.resolve(ts)
        (self.folder / f"{number}.bin").write_bytes(b"".join(self.sender.frames[self.written :]))
        self.written = len(self.sender.frames)

    def inserted(self, number, text):
        return Change("insert", None, self.row(number, text))

    def updated(self, number, before, after):
        return Change("update", self.row(number, before), self.row(number, after))

    def deleted(self, number, text):
        return Change("delete", self.row(number, text), None)


@pytest.fixture
def log(dbt, tmp_path):
    dbt.vars = {
        "event_logs": [{"upstream_id": "1", "path": str(tmp_path / "log")}],
        "sink_uri": f"file://{tmp_path}/tree?protocol=csv",
    }
    return Log(tmp_path / "log")


def clean(dbt, **variables):
    dbt.ok(
        "run-operation",
        "clean",
        "--args",
        json.dumps({"dry_run": variables.pop("dry_run", False)}),
        **variables,
    )


def changes(dbt):
    """The row changes that are kept: batch, op and the row of each."""
    return [
        (row["batch_id"], row["op"], int(json.loads(row["image"])["id"]), json.loads(row["image"])["v"])
        for row in dbt.rows(
            "select batch_id, op, coalesce(post, pre) as image from {schema}.int_row_changes order by batch_id, commit_ts, seq, row_number"
        )
    ]


def counts(dbt, *models):
    return {name: dbt.rows(f"select count(*) as n from {{schema}}.{name}")[0]["n"] for name in models}


def snapshot(dbt, day):
    dbt.ok("run", "--select", "current_rows", as_of_ts=START_TS + day * DAY)
    return dbt.rows("select key, values, is_deleted, commit_ts from {schema}.current_rows order by key")


EVENTS = ("stg_frames", "stg_transactions", "stg_resolved_events")


def test_old_row_changes_go_and_what_somebody_needs_stays(dbt, log, tmp_path):
    log.day(1, *(log.inserted(number, "a") for number in (1, 2, 3)))
    dbt.ok("run", *MODELS)
    log.day(2, log.updated(1, "a", "b"), log.deleted(2, "a"))
    dbt.ok("run", *MODELS)
    log.day(3, log.updated(1, "b", "c"), log.inserted(4, "a"))
    dbt.ok("run", *MODELS, "--exclude", "sink_storage")
    log.day(4, log.updated(3, "a", "b"))
    dbt.ok("run", *MODELS, "--exclude", "sink_storage")
    before, events = changes(dbt), counts(dbt, *EVENTS)
    assert [batch for batch, *_ in before] == [1, 1, 1, 2, 2, 3, 3, 4]

    dbt.fails("run-operation", "clean", retired_sinks=["file:///nowhere"])
    refused = dbt.log()
    assert "retired_sinks has file:///nowhere, where no sink has ever sent to" in refused
    assert f"storage default/tidemark file://{tmp_path}/tree" in refused
    clean(dbt, keep_row_changes="3w")
    clean(dbt, keep_row_changes="1d", dry_run=True)
    assert changes(dbt) == before
    clean(dbt, keep_row_changes="1d", sink_uri=f"file://{tmp_path}/other?protocol=csv")
    assert changes(dbt) == before, "a sink that has not run needs all rows"

    # The sink has sent two batches: what comes after them stays, although it is old.
    clean(dbt, keep_row_changes="1d", keep_events="1d")
    assert changes(dbt) == [
        *((0, "insert", 2, "a"), (0, "insert", 3, "a"), (0, "update", 1, "b"), (0, "delete", 2, "a")),
        *((3, "update", 1, "c"), (3, "insert", 4, "a"), (4, "update", 3, "b")),
    ]
    assert all(kept < events[name] for name, kept in counts(dbt, *EVENTS).items())
    dbt.ok("run", *MODELS)
    (files,) = dbt.rows("select count(*) as n from {schema}.sink_checkpoints where row_count > 0")
    assert files["n"] == 3

    shown = dbt.table("current_rows", "key")
    wanted = snapshot(dbt, 3)
    clean(dbt, keep_row_changes="1d", keep_events="1d")
    assert changes(dbt) == [
        *((0, "insert", 2, "a"), (0, "insert", 3, "a"), (0, "delete", 2, "a")),
        *((0, "update", 1, "c"), (0, "insert", 4, "a"), (4, "update", 3, "b")),
    ]
    assert snapshot(dbt, 3) == wanted
    dbt.ok("run", "--select", "current_rows")
    assert dbt.table("current_rows", "key") == shown
    refused = dbt.fails("run", "--select", "current_rows", as_of_ts=START_TS + 2 * DAY)
    assert f"Choose a ts from {START_TS + 3 * DAY} to {START_TS + 4 * DAY}" in refused
    refused = dbt.fails("run", "--select", "sink_storage", sink_uri=f"file://{tmp_path}/other?protocol=csv")
    assert f"row changes up to {START_TS + 3 * DAY} were removed by `tidemark clean`" in refused

    # A file that is delivered twice is known by its transactions, which stay.
    (log.folder / "again.bin").write_bytes((log.folder / "2.bin").read_bytes())
    taken = counts(dbt, "int_transactions")
    log.day(5, log.updated(1, "c", "d"))
    dbt.ok("run", *MODELS)
    assert counts(dbt, "int_transactions") == {"int_transactions": taken["int_transactions"] + 1}
    assert changes(dbt)[-1] == (5, "update", 1, "d")
    assert len(dbt.table("current_rows")) == 4


def test_batches_with_a_transaction_that_waits_stay(dbt, log):
    log.day(1, log.inserted(1, "a"))
    dbt.ok("run", *MODELS)
    # Its resolved event comes days later.
    log.day(2, log.inserted(2, "a"), resolved=False)
    dbt.ok("run", *MODELS)
    log.day(3, resolved=False)
    clean(dbt, keep_row_changes="0s", keep_events="0s")
    assert counts(dbt, "stg_transactions", "int_row_changes") == {"stg_transactions": 1, "int_row_changes": 1}
    log.day(9)
    dbt.ok("run", *MODELS)
    assert len(dbt.table("current_rows")) == 2
    clean(dbt, keep_row_changes="1w", keep_events="1w")
    assert counts(dbt, "stg_transactions", "int_row_changes") == {"stg_transactions": 0, "int_row_changes": 2}


def test_a_clean_that_dies_at_any_step_loses_nothing(tmp_path):
    """In processes of their own. The rows are those of a clean that ended."""
    log, state = Log(tmp_path / "log"), tmp_path / "state"
    variables = {"event_logs": [{"upstream_id": "1", "path": str(tmp_path / "log")}]}
    keep = {"keep_row_changes": "1d", "keep_events": "1d"}
    for day, text in enumerate("abc", 1):
        log.day(day, log.inserted(day, text), *([log.updated(1, "abc"[day - 2], text)] if day > 1 else []))
        built = process(state, ("dbt", "run", *MODELS), "rows current_rows", **variables)
        assert built.status == 0, built.output
    current = built.rows("current_rows")
    shown = ("rows current_rows", "rows int_row_changes")
    for text in (
        "insert overwrite table tidemark_store.int_row_changes__",
        "create or replace view tidemark.int_row_changes ",
        "create or replace view tidemark.stg_frames ",
        "alter table tidemark_store.stg_frames__",
    ):
        died = process(state, *shown, "tidemark clean", dies_before=text, **variables, **keep)
        assert died.status == -9, text
        assert died.rows("current_rows") == current
        assert len(died.rows("int_row_changes")) in (4, 5)
    ended = process(state, "tidemark clean", *shown, "rows stg_transactions", **variables, **keep)
    assert ended.status == 0, ended.output
    assert "batches up to 2 are older and not needed" in ended.output
    assert ended.rows("current_rows") == current
    assert len(ended.rows("stg_transactions")) == 1
    # The insert that an update replaced is gone.
    assert [(row["batch_id"], row["op"]) for row in ended.rows("int_row_changes")] == [
        *((0, "insert"), (0, "update"), (3, "insert"), (3, "update")),
    ]
    for folder in (state / "warehouse" / "tidemark_store.db").glob("int_row_changes__*"):
        assert len([path for path in folder.iterdir() if path.name.startswith("part=")]) == 2
