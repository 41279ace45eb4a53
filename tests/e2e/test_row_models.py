"""From logs to row changes, dispatch and current rows, through the models."""

import io
import json

import pytest

from support import golden, jsonl
from tidemark.config import load
from tidemark.dispatch.router import Router
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.framing import scan
from tidemark.wire.registry import decode
from tidemark.wire.rows import decode_batch
from tidemark.wire.tracker import SchemaTracker

STREAMS = ("alltypes", "evolve", "orders")
SINK_URI = "kafka://127.0.0.1:9092/main?protocol=canal-json&partition-num=7"
CHANGEFEED = """
case-sensitive = true
[sink]
dispatchers = [
  { matcher = ["shop.orders", "alltypes.*"], topic = "{schema}_{table}", partition = "index-value" },
  { matcher = ["shop.stock"], partition = "columns", columns = ["SKU", "warehouse"] },
  { matcher = ["shop.cust*"], partition = "ts" },
  { matcher = ["evo.*"], partition = "rowid" },
  { matcher = ["shop.coupons"], partition = "3" },
]
"""


def expected_partitions(stream, settings):
    """(dispatcher, seq) -> topic and partition of its rows, as the library has them."""
    router, tracker, found = Router(settings), SchemaTracker(), {}
    log = golden(f"streams/{stream}.bin").read_bytes()
    for frame in scan(io.BytesIO(log)):
        event = decode(log[frame.offset : frame.offset + frame.length])
        tracker.feed(event)
        if isinstance(event, BatchDMLEvent):
            batch = decode_batch(event, tracker.in_force(event.dispatcher_id).table)
            topic = router.route(batch.table.schema, batch.table.table).topic
            for seq, partition in zip(
                batch.changes.seq.tolist(), router.partitions(batch).tolist(), strict=True
            ):
                found.setdefault((event.dispatcher_id.hex(), seq), []).append((topic, partition))
    return found


def test_row_changes_and_their_partitions_are_those_of_the_reference_system(dbt, tmp_path):
    changefeed = tmp_path / "changefeed.toml"
    changefeed.write_text(CHANGEFEED)
    dbt.vars = {
        "event_logs": [{"upstream_id": name, "path": str(golden(f"streams/{name}.bin"))} for name in STREAMS],
        "changefeed": str(changefeed),
        "sink_uri": SINK_URI,
    }
    # No broker listens there. Nobody has loaded the seeds.
    dbt.ok("run", "--exclude", "sink_kafka")
    rows = dbt.table("int_row_changes", "upstream_id, dispatcher_id, seq, row_number")
    dispatched = dbt.table("row_dispatch", "upstream_id, dispatcher_id, seq, row_number")
    assert dbt.table("quarantine") == []
    assert {row["event_name"] for row in dbt.table("event_counts")} <= {
        row["event_name"] for row in dbt.table("event_types")
    }
    assert dbt.table("sequence_gaps") == []
    settings = load(str(changefeed), SINK_URI)
    for name in STREAMS:
        wanted = {
            (row["dispatcher"], int(row["seq"]), row["row_key_hex"], row["op"]): row
            for row in jsonl(f"streams/{name}.rows.jsonl")
        }
        mine = [row for row in rows if row["upstream_id"] == name]
        assert len(mine) == len(wanted)
        for row in mine:
            want = wanted[row["dispatcher_id"], row["seq"], bytes(row["row_key"]).hex(), row["op"]]
            assert (row["schema_name"], row["table_name"]) == (want["schema"], want["table"])
            for field in (
                "table_id",
                "physical_table_id",
                "table_version",
                "table_info_version",
                "start_ts",
                "commit_ts",
            ):
                assert row[field] == int(want[field])
            for image in ("pre", "post"):
                have = json.loads(row[image]) if row[image] is not None else None
                assert (have is None) == (want[image] is None)
                for column, value in (want[image] or {}).items():
                    if isinstance(value, str) and "e+" not in value and "e-" not in value and column in have:
                        assert have[column] == value
        found = {}
        for row in dispatched:
            if row["upstream_id"] == name:
                found.setdefault((row["dispatcher_id"], row["seq"]), []).append(
                    (row["topic"], row["partition"])
                )
        assert found == expected_partitions(name, settings)

    # A renamed, truncated and dropped table, a dropped partition: only what is left at the end is current.
    current = {
        (row["schema_name"], row["table_name"]) for row in dbt.rows("select * from {schema}.current_rows")
    }
    assert {name for name in current if name[0].startswith("evo")} == {
        ("evo", name) for name in ("p", "h", "multi_b2", "no_pk")
    }
    typed = dbt(
        "show",
        "--inline",
        "select * from {{ tidemark.table('shop', 'orders') }} order by order_id",
        "--output",
        "json",
    )
    assert typed.success
    shown = typed.result.results[0].agate_table
    assert {type(value).__name__ for value in shown.columns["total"].values() if value is not None} == {
        "Decimal"
    }


@pytest.fixture
def upstreams(tmp_path):
    """Three clusters that write the same table, as files that can grow."""
    logs = {str(n): golden(f"streams/multi_upstream_u{n}.bin").read_bytes() for n in (1, 2, 3)}
    changefeed = tmp_path / "changefeed.toml"
    changefeed.write_text("bdr-mode = true\nenable-active-active = true\n")
    for n in logs:
        (tmp_path / n).mkdir()
    variables = {
        "event_logs": [{"upstream_id": n, "path": str(tmp_path / n)} for n in logs],
        "changefeed": str(changefeed),
        "sink_uri": "tidb://root@127.0.0.1:4000/",
        "compat": "ticdc",
    }
    return logs, variables, tmp_path


CURRENT = """select cast(from_json(values, 'id string').id as int) as id, values, origin_ts, is_deleted
from {schema}.current_rows order by id"""


def final_rows():
    state = json.loads(golden("active_active/multi_upstream.final_state.json").read_text())
    run = next(run for run in state["runs"] if run["arrival"] == "by_commit_ts")
    return [(int(row[0]), row[1], row[2], int(row[3])) for row in run["final_rows"]]


def test_current_rows_are_what_a_real_database_ended_with_however_the_logs_arrive(dbt, upstreams):
    logs, variables, folder = upstreams
    dbt.vars = variables
    # In three pieces that cut frames in two, the last of them delivered twice.
    for share in (0.4, 0.8, 1.0):
        for n, log in logs.items():
            (folder / n / "a.bin").write_bytes(log[: int(len(log) * share)])
        if share == 1.0:
            (folder / "2" / "b.bin").write_bytes(logs["2"])
        dbt.ok("run", "--select", "+current_rows")
    rows = dbt.rows(CURRENT)
    found = [
        (row["id"], json.loads(row["values"])["v"], json.loads(row["values"])["n"], row["origin_ts"])
        for row in rows
    ]
    assert found == final_rows()
    assert len(dbt.table("int_row_changes")) == sum(
        len(jsonl(f"streams/multi_upstream_u{n}.rows.jsonl")) for n in logs
    )
    before = dbt.rows("select * from {schema}.int_checkpoints order by batch_id, upstream_id")
    assert all(row["checkpoint_ts"] >= row["previous_checkpoint_ts"] for row in before)

    # As of an earlier ts, only the writes up to it count.
    middle = sorted(row["commit_ts"] for row in dbt.table("int_row_changes"))[6]
    dbt.ok("run", "--select", "current_rows", as_of_ts=str(middle))
    assert max(row["origin_ts"] for row in dbt.rows(CURRENT)) == middle


def test_active_active_mode_stops_at_a_table_that_is_not_active_active(dbt, upstreams, tmp_path):
    _, variables, _ = upstreams
    variables["event_logs"] = [{"upstream_id": "1", "path": str(golden("streams/active_active.bin"))}]
    dbt.vars = variables
    message = dbt.fails("run", "--select", "+row_policy")
    assert "aa.plain is not an active-active table" in message
    assert "row_policy" not in {row["tableName"] for row in dbt.rows("show tables in {schema}")}

    # The way out that the message names: the changefeed leaves these tables out.
    changefeed = tmp_path / "filtered.toml"
    changefeed.write_text(
        'bdr-mode = true\nenable-active-active = true\n[filter]\nrules = ["AA.*", "!aa.plain", "!aa.soft", "!aa.nosd"]\n'
    )
    dbt.ok("run", "--select", "+row_policy", changefeed=str(changefeed))
    judged = dbt.rows("select distinct table_name, reason = 'filtered_table' as out from {schema}.row_policy")
    assert {row["table_name"] for row in judged if row["out"]} == {"plain", "soft", "nosd"}
    assert {row["table_name"] for row in judged if not row["out"]} == {"acct", "comp"}
