"""Rows that the logs bring after a sink has passed their commit ts: they are sent, or it is said that they are not."""

import csv
from collections import Counter

import pytest
from histories import ACTIVE_ACTIVE, PLAIN, START_TS, Change, Table, Transaction
from streams import Sender

# Many dbt runs: `make test-long`.
pytestmark = pytest.mark.long

TABLE = Table("t", {"id": "int"}, PLAIN, ())
OTHER = Table("u", {"id": "int"}, PLAIN, ())
SHARED = Table("t", {"id": "int"}, ACTIVE_ACTIVE, (), ("is_active_active",))
# Of the tests only the one that warns of rows that were not sent.
MODELS = (
    *("--indirect-selection", "empty"),
    *("--select", "+progress", "late_transactions", "hard_delete_safety", "late_rows_are_sent"),
)


def row(key, value, **others):
    return {"id": key, "v": value, "n": None, **others}


def write_log(path, table, table_id, transactions, name=b"d", end=1000):
    """The log of one dispatcher; transactions are (ts, op, old image, new image), with ts counted from START_TS."""
    sender = Sender(table.info("late", table_id), name * 16)
    sender.begin(START_TS)
    for ts, op, pre, post in transactions:
        at = START_TS + ts
        sender.send([Transaction("", table, at - 1, at, (Change(op, pre, post),))])
    sender.resolve(START_TS + end)
    path.write_bytes(b"".join(sender.frames))
    return path


def statuses(dbt):
    return Counter(row["status"] for row in dbt.table("late_transactions"))


def warn_count(outcome):
    return sum(str(result.status) == "warn" for result in outcome.result.results)


def safe_ts(dbt, table="t"):
    (found,) = dbt.rows(f"select safe_ts from {{schema}}.hard_delete_safety where table_name = '{table}'")
    return found["safe_ts"] - START_TS


def progress(dbt):
    return {
        (row["upstream_id"], row["table_name"]): row["checkpoint_ts"] - START_TS
        for row in dbt.table("progress")
    }


FIRST = [
    (100, "insert", None, row(1, "first")),
    (200, "insert", None, row(2, "first")),
    (300, "update", row(2, "first"), row(2, "newer")),
]
# Another cluster writes the same table, at times that the sink is past.
LATE = [
    (120, "update", row(9, "gone"), row(1, "older than the next")),
    (150, "insert", None, row(1, "newer than the first")),
    (160, "insert", None, row(2, "older")),
    (170, "insert", None, row(5, "new")),
    (180, "update", row(5, "new"), row(6, "moved")),
    (190, "insert", None, row(7, "short-lived")),
    (195, "delete", row(7, "short-lived"), None),
    (250, "update", row(2, "older"), row(8, "moved from a key that is newer")),
]


@pytest.fixture
def database(mariadb):
    mariadb.execute("drop database if exists late")
    mariadb.execute("create database late")
    mariadb.execute("drop database if exists tidb_cdc")
    return mariadb


def rows_in(database):
    """By value where the statement of another session was committed since."""
    database.commit()
    return {row[0]: row[1] for row in database.query("select id, v from late.t")}


def current_rows(dbt):
    return {
        int(row["id"]): row["v"]
        for row in dbt.rows(
            "select image.* from"
            " (select from_json(`values`, 'id string, v string') as image from {schema}.current_rows where not is_deleted)"
        )
    }


def test_plain_upserts_of_late_rows_are_refused_or_only_the_newest_writes_are_sent(
    dbt, database, mariadb_uri, tmp_path
):
    database.execute(TABLE.ddl("late"))
    # A row that only the late update takes away.
    database.execute("insert into late.t values (9, 'gone', null)")
    database.commit()
    first, late = write_log(tmp_path / "1", TABLE, 11, FIRST), write_log(tmp_path / "2", TABLE, 12, LATE)
    logs = [{"upstream_id": "1", "path": str(first)}, {"upstream_id": "2", "path": str(late)}]
    dbt.vars = {"sink_uri": mariadb_uri}
    dbt.ok("build", *MODELS, "+current_rows", event_logs=logs[:1])
    assert progress(dbt) == {("1", "t"): 1000}
    before = rows_in(database)
    assert before == {1: "first", 2: "newer", 9: "gone"}

    said = dbt.fails("build", *MODELS, "+current_rows", event_logs=logs)
    for part in (
        f"sink_tidb is past commit ts {START_TS + 1000}",
        "8 row changes from before that (upstream '2' late.t: 8 row changes in 8 transactions, "
        f"commit ts {START_TS + 120} to {START_TS + 250})",
        "'late_rows: send'",
        "'late_rows: skip'",
        "'late_rows: fail'",
    ):
        assert part in said
    assert rows_in(database) == before
    assert statuses(dbt) == {"waiting": 8}
    # Nothing vouches for what was not sent, and the tables are built.
    assert safe_ts(dbt) == 119
    assert len(dbt.table("sink_checkpoints")) == 1
    assert current_rows(dbt) == {1: "newer than the first", 2: "newer", 6: "moved", 8: LATE[-1][3]["v"]}

    outcome = dbt.ok("build", *MODELS, event_logs=logs, late_rows="send")
    assert warn_count(outcome) == 0
    assert rows_in(database) == current_rows(dbt)
    assert statuses(dbt) == {"sent": 8}
    assert all(row["sent_at"] for row in dbt.table("late_transactions"))
    assert progress(dbt) == {("1", "t"): 1000, ("2", "t"): 1000}
    assert safe_ts(dbt) == 1000
    *_, run = dbt.table("sink_checkpoints", "written_at")
    assert (run["late_rows"], run["late_row_count"], run["checkpoint_ts"]) == ("send", 8, START_TS + 1000)

    # It is done: another run has nothing to send, whatever the var says.
    dbt.ok("build", *MODELS, event_logs=logs)
    assert len(dbt.table("sink_checkpoints")) == 2


def test_upserts_by_last_writer_wins_always_take_late_rows(dbt, database, mariadb_uri, tmp_path):
    database.execute(SHARED.ddl("late"))
    hidden = {"_tidb_softdelete_time": None, "_tidb_origin_ts": None, "_tidb_commit_ts": None}
    logs = []
    for upstream, writes in (("1", [(100, "a"), (300, "newest")]), ("2", [(200, "older"), (400, "b")])):
        key = {"100": 1, "300": 2, "200": 2, "400": 3}
        log = write_log(
            tmp_path / upstream,
            SHARED,
            10 + int(upstream),
            [(ts, "insert", None, row(key[str(ts)], value, **hidden)) for ts, value in writes],
        )
        logs.append({"upstream_id": upstream, "path": str(log)})
    dbt.vars = {
        "sink_uri": f"{mariadb_uri}?allow-non-tidb=true",
        "changefeed": {
            "enable-active-active": True,
            "bdr-mode": True,
            "active-active-progress-interval": "1s",
        },
    }
    dbt.ok("build", *MODELS, "sink_progress", event_logs=logs[:1])
    outcome = dbt.ok("build", *MODELS, "sink_progress", event_logs=logs)
    assert rows_in(database) == {1: "a", 2: "newest", 3: "b"}
    assert statuses(dbt) == {"sent": 2}
    assert warn_count(outcome) == 0
    told = database.query("select upstreamID, checkpoint_ts from tidb_cdc.ticdcProgressTable order by 1")
    assert [(str(name), int(ts) - START_TS) for name, ts in told] == [("1", 1000), ("2", 1000)]


def data_rows(tree, table):
    """(number of the file, commit ts, id) of the rows of a CSV tree in the order of the files."""
    return [
        (int(path.stem.removeprefix("CDC")), int(line[3]) - START_TS, int(line[4]))
        for path in sorted(tree.rglob("CDC*.csv"))
        if f"/{table}/" in str(path)
        for line in csv.reader(path.open())
    ]


@pytest.fixture
def two_dispatchers(tmp_path):
    """A folder that the log of one dispatcher is in; the other one, of another table, and one more of the same table come later."""
    folder = tmp_path / "log"
    folder.mkdir()
    write_log(folder / "1", TABLE, 11, FIRST)

    def deliver(*names):
        if "2" in names:
            write_log(
                folder / "2",
                OTHER,
                12,
                [(50, "insert", None, row(1, "x")), (60, "insert", None, row(2, "y"))],
                b"e",
            )
        if "3" in names:
            write_log(folder / "3", OTHER, 12, [(1100, "insert", None, row(3, "z"))], b"e", end=2000)

    return folder, deliver


def storage_vars(folder, tree, **others):
    return {
        "event_logs": [{"upstream_id": "1", "path": str(folder)}],
        "sink_uri": f"file://{tree}?protocol=csv",
        "changefeed": {"sink": {"date-separator": "none", "csv": {"include-commit-ts": True}}},
        **others,
    }


def test_a_tree_gets_late_rows_as_further_files_or_the_run_ends_in_an_error(dbt, two_dispatchers, tmp_path):
    folder, deliver = two_dispatchers
    dbt.vars = storage_vars(folder, tmp_path / "tree")
    dbt.ok("build", *MODELS)
    deliver("2")
    said = dbt.fails("build", *MODELS)
    assert "2 row changes from before that (upstream '1' late.u: 2 row changes in 2 transactions" in said
    assert progress(dbt) == {("1", "t"): 1000}
    assert data_rows(tmp_path / "tree", "u") == []

    dbt.ok("build", *MODELS, late_rows="send")
    assert data_rows(tmp_path / "tree", "u") == [(1, 50, 1), (1, 60, 2)]
    assert data_rows(tmp_path / "tree", "t") == [(1, ts, image["id"]) for ts, _, _, image in FIRST]
    assert statuses(dbt) == {"sent": 2}
    assert progress(dbt) == {("1", "t"): 1000, ("1", "u"): 1000}
    (run,) = [row for row in dbt.table("sink_checkpoints") if row["late_rows"] == "send"]
    assert (run["row_count"], run["late_row_count"], run["file_count"]) == (2, 2, 1)

    # Once, and the range goes on from where it was.
    deliver("3")
    dbt.ok("build", *MODELS)
    assert data_rows(tmp_path / "tree", "u") == [(1, 50, 1), (1, 60, 2)]


def test_late_rows_that_are_skipped_show_as_a_warning_and_nothing_vouches_for_them(
    dbt, two_dispatchers, tmp_path
):
    folder, deliver = two_dispatchers
    dbt.vars = storage_vars(folder, tmp_path / "tree", late_rows="skip")
    assert warn_count(dbt.ok("build", *MODELS)) == 0
    deliver("2")
    outcome = dbt.ok("build", *MODELS)
    assert warn_count(outcome) == 1
    assert "They are not sent (late_rows: skip)" in (dbt.folder / "logs" / "dbt.log").read_text()
    assert data_rows(tmp_path / "tree", "u") == []
    assert statuses(dbt) == {"skipped": 2}
    assert progress(dbt) == {("1", "t"): 1000, ("1", "u"): 49}
    assert (safe_ts(dbt, "t"), safe_ts(dbt, "u")) == (1000, 49)
    # What was skipped stays so, and does not stop later runs.
    dbt.ok("build", *MODELS, late_rows="fail")
    assert statuses(dbt) == {"skipped": 2}


def test_progress_keeps_its_tables_under_another_sink_uri(dbt, two_dispatchers, tmp_path):
    folder, _ = two_dispatchers
    dbt.vars = storage_vars(folder, tmp_path / "tree")
    dbt.ok("build", *MODELS)
    before = progress(dbt)
    assert before
    dbt.ok(
        "run",
        "--select",
        "tables_at_checkpoint",
        "progress",
        sink_uri=f"file://{tmp_path}/other?protocol=csv",
    )
    assert progress(dbt) == before


def test_late_rows_of_a_table_that_is_not_replicated_stop_nothing(dbt, two_dispatchers, tmp_path):
    folder, deliver = two_dispatchers
    dbt.vars = storage_vars(folder, tmp_path / "tree")
    dbt.vars["changefeed"] = {**dbt.vars["changefeed"], "filter": {"rules": ["late.t"]}}
    dbt.ok("build", *MODELS)
    deliver("2")
    assert warn_count(dbt.ok("build", *MODELS)) == 0
    assert statuses(dbt) == {"left_out": 2}


def test_a_rebuild_from_the_same_logs_sends_nothing_again_and_one_from_others_is_noticed(
    dbt, two_dispatchers, tmp_path
):
    folder, deliver = two_dispatchers
    dbt.vars = storage_vars(folder, tmp_path / "tree")
    dbt.ok("build", *MODELS)
    rows = data_rows(tmp_path / "tree", "t")
    dbt.ok("build", *MODELS, "--full-refresh", rebuild_from_logs=True)
    assert data_rows(tmp_path / "tree", "t") == rows
    deliver("2")
    said = dbt.fails("build", *MODELS, "--full-refresh", rebuild_from_logs=True, late_rows="send")
    assert "which of them the sink has cannot be told" in said
    assert "another prefix" in said
    dbt.ok("build", *MODELS, late_rows="skip")
    assert data_rows(tmp_path / "tree", "u") == []
