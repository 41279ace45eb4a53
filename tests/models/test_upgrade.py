"""`tidemark upgrade`: a warehouse of version 0.1.0 goes on in this one, also where the process dies meanwhile."""

import json
import subprocess
import sys

import old_warehouse
import pytest
from dying import ROOT, command

# Processes of their own, since a state folder belongs to one.
pytestmark = pytest.mark.long
DUMP = """
import json, sys
from pathlib import Path
from tidemark.spark.session import session
for row in session(Path(sys.argv[1]), {}).table("tidemark.current_rows").collect():
    print(json.dumps(row.asDict(recursive=True), sort_keys=True, default=str))
"""


def files(tree):
    return {str(path.relative_to(tree)): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def test_a_warehouse_of_0_1_0_goes_on_after_an_upgrade(tmp_path):
    old_warehouse.unpack(tmp_path)
    state = tmp_path / "state"
    variables = {
        "event_logs": [{"upstream_id": "1", "path": str(tmp_path / "log")}],
        "sink_uri": f"file://{tmp_path}/tree?protocol=csv",
    }

    output, status = command(state, "dbt", "run", "--select", "log_segments", **variables)
    assert status == 1
    assert "was built by an older version of Tidemark" in output
    assert "run `tidemark upgrade` once" in output
    for text in (
        "create table tidemark_store.int_row_changes__",
        "create or replace view tidemark.int_row_changes ",
        "drop table if exists tidemark_store.log_segments__",
    ):
        _, status = command(state, "tidemark", "upgrade", dies_before=text, **variables)
        assert status == -9, text
    output, status = command(state, "tidemark", "upgrade", **variables)
    assert status == 0, output
    assert "stg_transactions: copied from a table of 0.1.0 to parquet, up to batch 2" in output
    assert "int_epochs: " not in output, "this one was copied by a process that died later"
    assert "nothing to do" in command(state, "tidemark", "upgrade", **variables)[0]

    old_warehouse.add_log(tmp_path, 3)
    output, status = command(state, "dbt", "run", **variables)
    assert status == 0, output
    assert files(tmp_path / "tree") == files(tmp_path / "tree_after")
    assert rows_of(state) == (tmp_path / "current_rows.json").read_text().splitlines()


def rows_of(state):
    done = subprocess.run(
        [sys.executable, "-c", DUMP, str(state)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return sorted(json.dumps(json.loads(line), sort_keys=True) for line in done.stdout.splitlines() if line)
