"""The progress table: its statements, and what they do on a server."""

import pytest
from mysql_support import expected_args, load_json, run, target_of, typed

from tidemark.compat import Compat
from tidemark.sinks.mysql import progress
from tidemark.sinks.mysql.connection import ServerSaid, Target
from tidemark.sinks.mysql.errors import AccessDenied
from tidemark.sinks.mysql.progress import ProgressStatements, ProgressWriter
from tidemark.sinks.mysql.retrying import Retry, Session

DESIGN, TICDC = Compat.named("design"), Compat.named("ticdc")


class Recorder:
    def __init__(self):
        self.log = []

    def session(self):
        return Session(Target(), connect=lambda _: self)

    def execute(self, sql, params=None):
        self.log.append({"sql": sql.replace("%s", "?"), "args": params and typed(params)})

    def commit(self):
        pass


@pytest.mark.parametrize("batch", [0, 2])
def test_ticdc_statements_are_those_of_the_vectors(batch, monkeypatch):
    vector = load_json("active_active/progress_table.json")
    monkeypatch.setattr(progress, "BATCH", batch or progress.BATCH)
    starts = [
        place for place, entry in enumerate(vector["log"]) if entry.get("call", "").startswith("flush(")
    ]
    log = vector["log"][slice(*starts)] if batch == 0 else vector["log"][starts[1] :]
    recorder = Recorder()
    writer = ProgressWriter(
        recorder.session(), ProgressStatements(TICDC, vector["changefeed"], vector["cluster_id"])
    )
    writer.write([tuple(name) for name in vector["tables"]], 449000000000000123)
    writer.remove([("aa", "acct"), ("aa", "comp")])
    writer.remove(database="aa")
    expected = [entry for entry in log if "sql" in entry]
    assert [entry["sql"] for entry in recorder.log] == [entry["sql"] for entry in expected]
    assert [entry["args"] for entry in recorder.log] == [
        entry["args"] and expected_args(entry["args"]) for entry in expected
    ]


def test_design_creates_the_table_of_the_document():
    assert ProgressStatements(DESIGN, "cf", "1").create() == [
        "CREATE DATABASE IF NOT EXISTS `tidb_cdc`",
        "CREATE TABLE IF NOT EXISTS `tidb_cdc`.`ticdcProgressTable` (changefeed_id VARCHAR(255) NOT NULL,upstreamID VARCHAR(255) NOT NULL,"
        "database_name VARCHAR(255) NOT NULL,table_name VARCHAR(255) NOT NULL,checkpoint_ts BIGINT UNSIGNED NOT NULL,"
        "PRIMARY KEY (changefeed_id, upstreamID, database_name, table_name)) COMMENT='TiCDC synchronization progress table for HardDelete safety check'",
    ]


def test_no_tables_is_nothing_done():
    recorder = Recorder()
    writer = ProgressWriter(recorder.session(), ProgressStatements(DESIGN, "cf", "1"))
    writer.write([], 500)
    writer.remove([])
    assert recorder.log == []


@pytest.fixture(params=[DESIGN, TICDC], ids=["design", "ticdc"])
def compat(request):
    return request.param


@pytest.fixture
def feed(session, target, compat):
    run(session, "drop database if exists tidb_cdc")
    own = Session(target)
    yield lambda changefeed="ns/cf", upstream="7": ProgressWriter(
        own, ProgressStatements(compat, changefeed, upstream)
    )
    own.close()
    run(session, "drop database if exists tidb_cdc")


def rows(session, compat):
    session.commit()
    return session.query(f"select * from {compat.progress_table} order by 1, 2, 3, 4")


def test_one_row_per_changefeed_upstream_database_and_table(session, compat, feed):
    feed().write([("d", "b"), ("d", "a")], 100)
    feed(upstream="8").write([("d", "a")], 50)
    feed("ns/other").write([("d", "a")], 70)
    assert rows(session, compat) == [
        ("ns/cf", "7", "d", "a", 100),
        ("ns/cf", "7", "d", "b", 100),
        ("ns/cf", "8", "d", "a", 50),
        ("ns/other", "7", "d", "a", 70),
    ]


def test_a_checkpoint_never_moves_back(session, feed, compat):
    feed().write([("d", "a")], 100)
    feed().write([("d", "a")], 90)
    assert rows(session, compat)[0][4] == (100 if compat is DESIGN else 90)
    feed().write([("d", "a")], 2**64 - 1)
    assert rows(session, compat)[0][4] == 2**64 - 1


def test_rows_of_tables_that_are_gone_are_removed(session, compat, feed):
    names = [("d", "a"), ("d", "b"), ("e", "a"), ("f", "we`ird %s ?")]
    for writer in (feed(), feed(upstream="8")):
        writer.write(names, 100)
    feed().remove([("d", "a"), ("f", "we`ird %s ?")])
    assert [row[1:4] for row in rows(session, compat)] == [
        ("7", "d", "b"),
        ("7", "e", "a"),
        *(("8", *name) for name in names),
    ]
    feed().remove(database="d")
    assert [row[1:4] for row in rows(session, compat) if row[1] == "7"] == [("7", "e", "a")]


def test_missing_rights_are_told(session, uri, compat):
    run(session, "create user if not exists viewer identified by 'pw'")
    viewer = Session(target_of(uri, user="viewer", password="pw"))
    with pytest.raises(AccessDenied, match=f"progress on {compat.progress_table}.*1044.*grant"):
        ProgressWriter(viewer, ProgressStatements(compat, "cf", "1")).write([("d", "a")], 1)
    viewer.close()
    run(session, "drop user viewer")


def test_a_deadlock_is_tried_again():
    recorder = Recorder()
    once = iter([ServerSaid(1213, "Deadlock found")])
    recorder.rollback = recorder.log.clear

    def commit():
        for error in once:
            raise error

    recorder.commit = commit
    retrying = Session(Target(), Retry(sleep=lambda _: None), lambda _: recorder)
    ProgressWriter(retrying, ProgressStatements(DESIGN, "cf", "1")).write([("d", "a")], 1)
    assert len(recorder.log) == 3
