"""What `make run` does, on small logs: build, build again, grow, break."""

import io
import re
from collections import Counter
from pathlib import Path

import pytest

from support import golden
from tidemark.cli.demo_log import write_demo_logs
from tidemark.wire.framing import Frame, scan
from tidemark.wire.header import HEADER_SIZE

RESOLVED = golden("wire/resolved_typical.bin").read_bytes()
STREAM = golden("streams/orders.bin").read_bytes()


# The part of the project that looks at frames, for tests that need no rows.
FRAMES = (
    "--select",
    "staging",
    "event_types",
    "event_counts",
    "+quarantine",
    "log_positions",
    "--exclude-resource-type",
    "unit_test",
)


@pytest.fixture
def demo(tmp_path):
    """Two upstreams, and what their logs hold by event type."""
    out = tmp_path / "demo"
    write_demo_logs(out, tables=3, rows=600, upstreams=2, seed=7)
    counts = Counter()
    for file in sorted(out.rglob("*.bin")):
        upstream = file.parent.name.removeprefix("upstream-")
        for piece in scan(io.BytesIO(file.read_bytes())):
            counts[upstream, piece.header.event_type] += 1
    return [{"upstream_id": str(n), "path": str(out / f"upstream-{n}")} for n in (1, 2)], counts


def event_counts(dbt):
    return {(row["upstream_id"], row["event_type"]): row["frame_count"] for row in dbt.table("event_counts")}


def test_a_demo_log_is_counted_and_a_second_run_changes_nothing(dbt, demo, capsys):
    logs, counts = demo
    dbt.vars = {"event_logs": logs}
    built = dbt.ok("build")
    assert event_counts(dbt) == counts
    assert dbt.table("quarantine") == []
    assert [(row["upstream_id"], row["cluster_id"]) for row in dbt.table("cluster_ids")] == [
        ("1", "1"),
        ("2", "2"),
    ]
    assert [result.node.name for result in built.result if str(result.status) == "warn"] == []
    assert {kind for _, kind in counts} == set(range(1, 13)), "the demo shows every type that stands alone"

    # Spark's old way to read CTEs, which these models ask for, takes the outer one of two with one name: none may be within another.
    inlined = [found.node for found in built.result.results if found.node.config.get("inline_ctes")]
    assert len(inlined) > 20
    for model in inlined:
        code = "\n".join(
            line for line in model.compiled_code.splitlines() if not line.strip().startswith("--")
        )
        assert len(re.findall(r"\bwith\b", code, re.IGNORECASE)) == 1, model.name

    state = {
        name: dbt.rows(f"select count(*) as n, sum(hash(*)) as h from {{schema}}.{name}")
        for name in STATE_TABLES
    }
    second = dbt.ok("build")
    tests = [found for found in second.result if found.node.resource_type in ("test", "unit_test")]
    assert len(tests) > 100
    assert {
        found.node.name for found in tests if found.adapter_response.get("_message") != "unchanged"
    } == AFRESH
    again = {
        name: dbt.rows(f"select count(*) as n, sum(hash(*)) as h from {{schema}}.{name}")
        for name in STATE_TABLES
    }
    assert again == state

    from tidemark.cli.summary import print_summary

    capsys.readouterr()
    print_summary()
    summary = capsys.readouterr().out
    assert f"batch_dml {counts['1', 1] + counts['2', 1]}" in summary
    assert "bad frames  none" in summary
    models = {path.stem for path in Path("models").rglob("*.sql")} | {
        path.stem for path in Path("seeds").glob("*.csv")
    }
    sinks = {path.stem for path in Path("models/sinks").rglob("sink_*.sql")} - {"sink_checkpoints"}
    assert f"tables      {len(models - sinks)} in schema" in summary


# schema_forecast asks a schema registry, and is built by every run; progress reads its own rows from its second run on.
AFRESH = {
    "primary_key_schema_forecast_upstream_id__table_id__table_version__schema_name__table_name__part",
    "primary_key_progress_changefeed_id__upstream_id__database_name__table_name",
    "primary_key_hard_delete_safety_database_name__table_name",
}
STATE_TABLES = [
    "log_segments",
    "stg_frames",
    "stg_transactions",
    "stg_ddl_events",
    "stg_resolved_events",
    "stg_handshakes",
    "stg_sync_points",
    "stg_control_events",
]


def warned(built):
    """The nodes that dbt counts as warnings."""
    return [result.node.name for result in built.result if str(result.status) == "warn"]


def shown(dbt, model, *arguments):
    """The rows that `dbt show` prints of a model."""
    results = dbt.ok("show", "--select", model, *arguments).result.results
    (found,) = [result for result in results if result.node.name == model]
    return [dict(zip(found.agate_table.column_names, row, strict=True)) for row in found.agate_table.rows]


def test_show_prints_the_stored_rows_of_a_model_that_adds_to_a_table(dbt, demo, tmp_path):
    dbt.vars = {"event_logs": demo[0], "sink_uri": f"file://{tmp_path / 'tree'}?protocol=csv"}
    assert "stg_transactions has no rows to show, it is not built yet: run `dbt run" in dbt.fails(
        "show", "--select", "stg_transactions"
    )
    assert "sink_storage has no rows to show, models that it reads are not built yet (" in dbt.fails(
        "show", "--select", "sink_storage"
    )
    dbt.ok("run", "--select", "+sink_storage", "--exclude", "sink_storage")
    places = shown(dbt, "sink_storage")
    assert {"file", "offset", "sent_rows"} <= places[0].keys(), "what the next run sends"
    dbt.ok("run", "--select", "sink_storage")
    for model in ("stg_transactions", "int_row_changes", "sink_checkpoints"):
        stored = dbt.rows(f"select count(*) as n from {{schema}}.{model}")[0]["n"]
        assert len(shown(dbt, model)) == min(stored, 5) > 0, model
        assert len(shown(dbt, model, "--limit", "-1")) == stored
    assert shown(dbt, "sink_storage") == [
        {"note": "sink_storage has nothing to send now; sink_checkpoints lists what was sent"}
    ]


def test_an_empty_log_folder_is_no_error_and_the_first_events_are_read_when_they_come(dbt, tmp_path):
    folder = tmp_path / "log"
    folder.mkdir()
    dbt.vars = {"event_logs": [{"upstream_id": "1", "path": str(folder)}]}
    built = dbt.ok("build", *FRAMES)
    assert f"the event log {folder} holds no files yet" in (tmp_path / "logs" / "dbt.log").read_text()
    assert warned(built) == ["event_logs_hold_frames"], "dbt counts it"
    assert event_counts(dbt) == {}
    (folder / "a.bin").write_bytes(RESOLVED * 2)
    assert warned(dbt.ok("build", *FRAMES)) == []
    assert event_counts(dbt) == {("1", 3): 2}


def test_only_what_a_log_gained_is_read_by_the_next_run(dbt, tmp_path):
    log = tmp_path / "a.bin"
    frames = [piece for piece in scan(io.BytesIO(STREAM)) if isinstance(piece, Frame)]
    half = frames[len(frames) // 2]
    dbt.vars = {"event_logs": [{"upstream_id": "1", "path": str(log)}]}
    log.write_bytes(STREAM[: half.offset + HEADER_SIZE + 3])
    dbt.ok("run", "--select", "log_segments", "stg_frames", "log_positions")
    waiting = dbt.table("log_positions")[0]
    assert (waiting["read_up_to"], waiting["torn_bytes"]) == (half.offset, HEADER_SIZE + 3)
    log.write_bytes(STREAM)
    dbt.ok("run", "--select", "log_segments", "stg_frames", "log_positions")
    assert [row["read_up_to"] for row in dbt.table("log_positions")] == [len(STREAM)]
    batches = dbt.rows(
        "select batch_id, count(*) as n from {schema}.stg_frames group by batch_id order by batch_id"
    )
    assert [row["n"] for row in batches] == [len(frames) // 2, len(frames) - len(frames) // 2]


def test_a_model_does_not_pass_over_a_batch_that_a_model_before_it_has_not_handled(dbt, tmp_path):
    log = tmp_path / "a.bin"
    half = next(piece.offset for piece in scan(io.BytesIO(STREAM)) if piece.offset > len(STREAM) // 2)
    dbt.vars = {"event_logs": [{"upstream_id": "1", "path": str(log)}]}
    log.write_bytes(STREAM[:half])
    dbt.ok("run", "--select", "+int_winners")
    log.write_bytes(STREAM)
    dbt.ok("run", "--select", "log_segments")
    assert "int_winners cannot handle batch 2 of the logs before int_row_changes has" in dbt.fails(
        "run", "--select", "int_winners"
    )
    assert "int_row_changes cannot handle batch 2 of the logs before stg_frames has" in dbt.fails(
        "run", "--select", "+int_winners", "--exclude", "stg_frames"
    )
    dbt.ok("run", "--select", "+int_winners")
    written, winners = (
        {tuple(row.values()) for row in dbt.rows(f"select distinct physical_table_id, key from {source}")}
        for source in ("{schema}.row_policy where policy_op is not null", "{schema}.int_winners")
    )
    assert winners == written
    assert dbt.rows("select 1 from {schema}.int_row_changes where batch_id = 2")


def test_bad_frames_are_quarantined_and_the_rest_goes_on(dbt, tmp_path):
    log = tmp_path / "a.bin"
    unknown_type = RESOLVED[:4] + (77).to_bytes(2, "big") + RESOLVED[6:]
    unknown_version = RESOLVED[:6] + (9).to_bytes(2, "big") + RESOLVED[8:]
    not_json = golden("wire/ddl_orders_create_schema.bin").read_bytes()
    not_json = not_json[:HEADER_SIZE] + b"[" + not_json[HEADER_SIZE + 1 :]
    log.write_bytes(
        RESOLVED + unknown_type + RESOLVED + unknown_version + b"\x00" * 33 + RESOLVED + not_json + RESOLVED
    )
    dbt.vars = {"event_logs": [{"upstream_id": "1", "path": str(log)}]}
    dbt.ok("build", *FRAMES)
    bad = dbt.table("quarantine", "`offset`")
    assert [(row["reason"], row["length"], bytes(row["bytes"])) for row in bad] == [
        ("unknown_event_type", 56, unknown_type),
        ("unsupported_version", 56, unknown_version),
        ("bad_magic", 33, b"\x00" * 33),
        ("invalid_field", len(not_json), not_json),
    ]
    assert len(dbt.rows("select * from {schema}.stg_resolved_events where error_reason is null")) == 4

    message = dbt.fails("build", *FRAMES, on_bad_frame="fail")
    assert "4 frames cannot be read" in message
    assert "at byte 56 (unknown_event_type)" in message


def test_a_full_refresh_has_to_be_asked_for_twice(dbt, tmp_path):
    log = tmp_path / "a.bin"
    log.write_bytes(RESOLVED)
    dbt.vars = {"event_logs": [{"upstream_id": "1", "path": str(log)}]}
    dbt.ok("run", "--select", "log_segments", "stg_frames", "event_types")
    assert "rebuild_from_logs" in dbt.fails("run", "--full-refresh", "--select", "stg_frames")
    dbt.ok("run", "--full-refresh", "--select", "stg_frames", rebuild_from_logs=True)
    assert len(dbt.table("stg_frames")) == 1


def test_wrong_settings_stop_before_anything_is_parsed(dbt):
    message = dbt.fails(
        "parse", event_logs=[{"upstream": "1"}], compat="new", on_bad_frame="ignore", as_of_ts="noon"
    )
    for part in (
        "event_logs[0].upstream_id",
        "event_logs[0].path",
        "compat = 'new'",
        "on_bad_frame",
        "as_of_ts",
    ):
        assert part in message
    assert "did you mean event_logs?" in dbt.fails("parse", event_log=[])
    assert "allowed: parquet, delta, iceberg" in dbt.fails("parse", table_format="orc")
    assert "lack spark.sql.catalog.lake" in dbt.fails("parse", table_format="iceberg")
    assert "spark.sql.extensions" in dbt.fails("parse", table_format="delta")


def test_a_state_folder_that_is_a_url_is_refused_before_anything_is_made(dbt, monkeypatch):
    said = "is a URL: warehouse, catalog and lock need a folder of this machine"
    assert f"state_dir = 's3://bucket/state' {said}" in dbt.fails("parse", state_dir="s3://bucket/state")
    monkeypatch.setenv("TIDEMARK_STATE_DIR", "gs://user:hidden@bucket/state")
    message = dbt.fails("run")
    assert said in message
    assert "hidden" not in message
    assert not [path.name for path in Path.cwd().iterdir() if path.name in ("s3:", "gs:")]


def test_an_upstream_that_is_not_the_cluster_of_its_log_is_a_warning_that_names_both(dbt, tmp_path):
    heartbeat = golden("wire/dispatcher_heartbeat_v2_five.bin").read_bytes()
    (tmp_path / "a.bin").write_bytes(heartbeat)
    dbt.vars = {"event_logs": [{"upstream_id": "1", "path": str(tmp_path / "a.bin")}]}
    built = dbt.ok("build", "--select", "+cluster_ids")
    (row,) = dbt.table("cluster_ids")
    assert (row["cluster_id"], row["problem"]) == ("7123456789012345678", "other_cluster")
    assert (
        "upstream_id '1' of event_logs is not that id: its logs carry the cluster id 7123456789012345678"
        in (tmp_path / "logs" / "dbt.log").read_text()
    )
    assert warned(built) == ["upstreams_are_their_clusters"]


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("pulsar://h:6650/t?protocol=canal-json", "there is no pulsar sink"),
        ("file:///tmp/x?protocol=simple", "protocol = 'simple': has no encoder"),
        ("kafka://h:9092/t?protocol=debezium", "protocol = 'debezium': has no encoder"),
        ("mysql://h:3306/?dry-run=true", "sink-uri?dry-run: Tidemark does not apply it"),
    ],
)
def test_a_sink_that_would_not_do_what_it_is_asked_stops_every_command(dbt, uri, said):
    for command in ("parse", "run"):
        assert said in dbt.fails(command, sink_uri=uri)


def test_a_sink_that_keeps_nothing_says_so(dbt):
    built = dbt.ok("run", "--select", "sink_storage", "sink_kafka", "sink_tidb", sink_uri="blackhole://")
    assert {result.message for result in built.result} == {"SINK THROWS ALL ROWS AWAY"}


def test_a_log_that_does_not_exist_or_holds_no_frames_is_named_before_spark_starts(
    dbt, tmp_path, monkeypatch
):
    from dbt.adapters.tidemark.connections import TidemarkConnectionManager

    opened = []
    monkeypatch.setattr(TidemarkConnectionManager, "spark_session", lambda *_: opened.append(True))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "CDC000001.csv").write_text('"I","orders","shop",1\n' * 100)
    for path, said in (("nowhere", "does not exist"), ("other", "holds no frames: no file of it has one")):
        logs = [{"upstream_id": "1", "path": str(tmp_path / path)}]
        for command in (
            ["build"],
            ["run"],
            ["run", "--select", "log_segments"],
            ["build", "--exclude", "audit"],
        ):
            message = dbt.fails(*command, event_logs=logs)
            assert f"the event log {tmp_path / path} {said}" in message
            assert "Traceback" not in message
            assert "\tat " not in message
        # Commands that read no logs need none.
        dbt.ok("parse", event_logs=logs)
    assert opened == []


def test_a_secret_in_the_sink_uri_is_refused_and_leaves_no_trace(dbt, tmp_path, monkeypatch):
    message = dbt.fails("parse", sink_uri="mysql://root:s3cretpw@127.0.0.1:3306/")
    assert "${NAME}" in message
    assert "s3cretpw" not in message
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any(file.name == "dbt.log" for file in written)
    assert not [file for file in written if b"s3cretpw" in file.read_bytes()]

    assert "not set: TIDEMARK_NO_SUCH" in dbt.fails(
        "parse", sink_uri="mysql://root:${TIDEMARK_NO_SUCH}@127.0.0.1:3306/"
    )
    monkeypatch.setenv("TIDEMARK_TEST_PASSWORD", "s3cretpw")
    dbt.ok("parse", sink_uri="mysql://root:${TIDEMARK_TEST_PASSWORD}@127.0.0.1:3306/")
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and b"s3cretpw" in file.read_bytes()]
