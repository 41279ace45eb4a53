"""`tidemark run`, as a person types it: dbt's own arguments, the demo, and what it prints."""

import io
import json
import shutil
from pathlib import Path

import pytest

from tidemark.cli import main, run
from tidemark.cli.demo_log import write_demo_logs
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.framing import scan

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def clone(dbt, tmp_path, monkeypatch):
    """A project of its own, in which nobody has run anything, on the shared session."""
    project = tmp_path / "clone"
    project.mkdir()
    for name in ("dbt_project.yml", "models", "macros", "seeds", "profiles", "tests/dbt"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, project / name)
    monkeypatch.chdir(project)
    monkeypatch.setattr(run, "DEMO_ROWS", 600)
    return project


@pytest.fixture
def logs(tmp_path):
    write_demo_logs(tmp_path / "own", tables=1, rows=60, upstreams=1, seed=3)
    return [{"upstream_id": "1", "path": str(tmp_path / "own" / "upstream-1")}]


@pytest.mark.parametrize("dashes", [[], ["--"]])
def test_everything_behind_run_goes_to_dbt(clone, dbt, logs, dashes):
    arguments = ["--select", "log_segments", "stg_frames", "--vars", json.dumps({"event_logs": logs})]
    assert main(["run", *dashes, *arguments]) == 0
    names = {row["tableName"] for row in dbt.rows("show tables in {schema}") if not row["isTemporary"]}
    assert names == {"log_segments", "stg_frames"}
    assert {row["upstream_id"] for row in dbt.table("log_segments")} == {"1"}
    assert not (clone / ".tidemark").exists(), "no demo is written for logs of one's own"


def test_the_demo_is_written_where_it_is_read_whatever_the_state_folder(clone, dbt, state_dir):
    assert main(["run", "--select", "log_segments"]) == 0
    files = {row["file"] for row in dbt.table("log_segments")}
    assert files
    assert {file for file in files if not file.startswith(str(clone / ".tidemark" / "demo-log"))} == set()
    assert not (state_dir / "demo-log").exists()


def test_an_argument_that_dbt_does_not_know_is_named(clone, capsys):
    assert main(["run", "--no-such-option"]) == 2
    assert "--no-such-option" in capsys.readouterr().err


def test_a_project_whose_logs_are_its_own_gets_no_demo(clone, logs):
    project = (clone / "dbt_project.yml").read_text()
    begin, end = project.index("  event_logs:\n"), project.index("  # A TiCDC changefeed file")
    (clone / "dbt_project.yml").write_text(
        f"{project[:begin]}  event_logs: {json.dumps(logs)}\n{project[end:]}"
    )
    assert main(["run", "--select", "log_segments"]) == 0
    assert not (clone / ".tidemark").exists()


LOOKED_AT = (
    "event_counts",
    "late_transactions",
    "sequence_gaps",
    "epoch_gaps",
    "quarantine",
    "log_positions",
)


def summary(capfd, status, variables, *models):
    """The lines of the summary by their titles."""
    select = ["--select", *models, *(f"+{model}" for model in ("current_rows", *LOOKED_AT))]
    assert main(["run", *select, "--vars", json.dumps(variables)]) == status
    before, printed = capfd.readouterr().out.split("\nSummary\n")
    lines = {"before": before}
    for line in printed.splitlines():
        lines.setdefault(line[2:14].strip(), []).append(line[14:])
    return lines


def test_the_summary_says_what_a_sink_sent(clone, dbt, logs, tmp_path, capfd):
    variables = {"event_logs": logs, "sink_uri": f"file://{tmp_path / 'tree'}?protocol=csv"}
    lines = summary(capfd, 0, variables, "+sink_storage")
    (sent,) = dbt.table("sink_checkpoints")
    files = sum(path.name.startswith("CDC") and path.suffix == ".csv" for path in tmp_path.rglob("tree/**/*"))
    place = f"checkpoint {sent['checkpoint_ts']} in file://{tmp_path / 'tree'} (default/tidemark)"
    assert lines["sink"] == [f"storage: {sent['row_count']} rows sent, {files} files written; {place}"]
    assert lines["log"][0].startswith("1 file, ")
    assert lines["look next"][0].startswith("dbt show --select current_rows, ")
    assert not {"late", "gaps", "failed", "warning"} & lines.keys()
    lines = summary(capfd, 0, variables, "+sink_storage")
    assert lines["sink"] == [f"storage: nothing new; {place}"]


def test_the_summary_says_what_is_wrong_with_the_logs(clone, dbt, logs, tmp_path, capfd):
    summary(capfd, 0, {"event_logs": logs})
    # The history of a cluster that comes later, without one event and with bytes that are none.
    stream = Path(logs[0]["path"], "000001.bin").read_bytes()
    pieces = [stream[piece.offset :][: piece.length] for piece in scan(io.BytesIO(stream))]
    rows = [n for n, piece in enumerate(pieces) if int.from_bytes(piece[4:6], "big") == BatchDMLEvent.type_id]
    pieces[rows[1]] = b"\0" * 33
    (tmp_path / "other.bin").write_bytes(b"".join(pieces))
    logs.append({"upstream_id": "2", "path": str(tmp_path / "other.bin")})
    lines = summary(capfd, 0, {"event_logs": logs})
    (late,) = dbt.rows("select count(*) as n, sum(row_count) as changes from {schema}.late_transactions")
    assert late["n"] > 0
    assert lines["late"][0].startswith(f"{late['n']} transaction")
    gaps = dbt.rows("select * from {schema}.sequence_gaps")
    assert lines["gaps"][0].startswith(f"{len(gaps)} gap")
    assert lines["bad frames"] == ["bad_magic 1"]
    assert lines["look next"][0].startswith("dbt show --select quarantine, dbt show --select sequence_gaps, ")
    lines = summary(capfd, 1, {"event_logs": logs, "on_bad_frame": "fail"})
    assert "1 frame cannot be read" in lines["before"]
    assert "what follows is as far as the run came" in lines["failed"][0]
    assert "current" not in lines
    assert "current_rows" not in lines["look next"][0]


def test_the_summary_repeats_what_dbt_warned_of(clone, dbt, logs, capfd):
    hook = Path("macros", "log", "warns.sql")
    hook.write_text(
        "{% macro warns() %}{% if execute %}{% do exceptions.warn('the tide is out') %}{% endif %}{% endmacro %}"
    )
    project = Path("dbt_project.yml").read_text()
    Path("dbt_project.yml").write_text(project + '\non-run-end: "{{ tidemark.warns() }}"\n')
    variables = json.dumps({"event_logs": logs})
    assert main(["run", "--select", "log_segments", "--vars", variables]) == 0
    assert "  warning     the tide is out\n" in capfd.readouterr().out
