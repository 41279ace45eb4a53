"""Which batches of winners a new one takes over, and which models have nothing to do."""

import pytest
from histories import PLAIN, START_TS, Change, Table, Transaction
from streams import Sender

from tidemark.spark import row_change_writer


@pytest.fixture
def log(dbt, tmp_path):
    """The one log of the models, which is not there yet."""
    path = tmp_path / "log.bin"
    dbt.vars = {"event_logs": [{"upstream_id": "1", "path": str(path)}]}
    return path


@pytest.fixture
def sender():
    """A dispatcher that has begun."""
    made = Sender(Table("t", {"id": "int"}, PLAIN, (), ()).info("s", 1), bytes(15) + b"\1")
    made.begin(START_TS)
    return made


def test_a_batch_takes_over_those_before_it_that_are_no_larger(dbt, log, sender):
    found, written = [], 0
    for rows in (20, 4000, 20):
        ts = START_TS + 10 * (len(found) + 1)
        names = dict.fromkeys(sender.info.arrow_schema.names)
        changes = [
            Change("insert", None, {**names, "id": number}) for number in range(written, written + rows)
        ]
        sender.send([Transaction("1", None, ts - 1, ts, tuple(changes))])
        sender.resolve(ts)
        written += rows
        log.write_bytes(b"".join(sender.frames))
        dbt.ok("run", "--select", "+current_rows")
        (batches,) = dbt.rows("select sort_array(collect_set(batch_id)) as ids from {schema}.int_winners")
        found.append(batches["ids"])
        (shown,) = dbt.rows("select count(*) as n, count(distinct key) as keys from {schema}.current_rows")
        assert (shown["n"], shown["keys"]) == (written, written)
    assert found == [[1], [2], [2, 3]]


def test_models_without_anything_new_are_left_as_they_are(dbt, log, sender):
    def idle():
        log.write_bytes(b"".join(sender.frames))
        outcome = dbt.ok("run", "--select", "+current_rows")
        return {node.node.name for node in outcome.result.results if node.message == "nothing new"}

    def last_batches(*models):
        return {
            row["n"]
            for name in models
            for row in dbt.rows(f"select max(batch_id) as n from {{schema}}.{name}")
        }

    by_batch = {"stg_frames", "stg_resolved_events", "stg_transactions", "int_epochs", "int_checkpoints"}
    by_batch |= {"int_transactions", "int_row_changes", "int_winners"}
    absent = {"stg_control_events", "stg_ddl_events", "stg_sync_points"}

    sender.resolve(START_TS + 10)
    assert not idle() & by_batch
    assert idle() == by_batch | absent | {"log_segments", "stg_handshakes"}
    sender.resolve(START_TS + 20)
    assert idle() == absent | {"stg_handshakes", "stg_transactions", "int_row_changes", "int_winners"}
    assert last_batches("int_epochs", "int_checkpoints") == {2}
    assert dbt.rows("select max(checkpoint_ts) as ts from {schema}.int_checkpoints") == [
        {"ts": START_TS + 20}
    ]
    # What had no events of their kind has handled the batch all the same.
    assert "stg_ddl_events" in idle()
    sender.send([Transaction("1", None, START_TS + 29, START_TS + 30, (_insert(sender),))])
    sender.resolve(START_TS + 30)
    assert idle() == absent | {"stg_handshakes"}
    assert len(dbt.table("current_rows")) == 1


def test_logs_are_looked_at_by_runs_only(dbt, log):
    dbt.ok("compile", "--select", "+stg_frames")
    assert f"the event log {log} does not exist" in dbt.fails("run", "--select", "+stg_frames")


def test_row_changes_of_another_version_are_not_added_to(dbt, log, sender, monkeypatch):
    log.write_bytes(b"".join(sender.frames))
    dbt.ok("run", "--select", "+int_row_changes")
    sender.send([Transaction("1", None, START_TS + 9, START_TS + 10, (_insert(sender),))])
    sender.resolve(START_TS + 10)
    log.write_bytes(b"".join(sender.frames))
    monkeypatch.setattr(row_change_writer, "SCHEMA", row_change_writer.SCHEMA + ", `another` string")
    message = dbt.fails("run", "--select", "+int_row_changes")
    assert "model int_row_changes has columns another, batch_id," in message
    assert "run it once with --full-refresh" in message


def _insert(sender):
    return Change("insert", None, {**dict.fromkeys(sender.info.arrow_schema.names), "id": 1})
