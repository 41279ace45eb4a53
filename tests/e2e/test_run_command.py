"""`tidemark run`, as a person types it: dbt's own arguments, the demo, and what it prints."""

import json
import shutil

import pytest

from conftest import ROOT
from tidemark.cli import main, run
from tidemark.cli.demo_log import write_demo_logs


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
