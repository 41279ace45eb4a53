"""`tidemark upgrade`: a warehouse of version 0.1.0 goes on in this one, also where the process dies meanwhile."""

import json

import old_warehouse
import pytest
from dying import process

# Processes of their own, since a state folder belongs to one.
pytestmark = pytest.mark.long


def files(tree):
    return {str(path.relative_to(tree)): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def test_a_warehouse_of_0_1_0_goes_on_after_an_upgrade(tmp_path):
    old_warehouse.unpack(tmp_path)
    state = tmp_path / "state"
    variables = {
        "event_logs": [{"upstream_id": "1", "path": str(tmp_path / "log")}],
        "sink_uri": f"file://{tmp_path}/tree?protocol=csv",
    }

    refused = process(state, "dbt run --select log_segments", **variables)
    assert refused.status == 1
    assert "was built by an older version of Tidemark" in refused.output
    assert "run `tidemark upgrade` once" in refused.output
    for text in (
        "create table tidemark_store.int_row_changes__",
        "create or replace view tidemark.int_row_changes ",
        "drop table if exists tidemark_store.log_segments__",
    ):
        assert process(state, "tidemark upgrade", dies_before=text, **variables).status == -9, text
    ended = process(state, "tidemark upgrade", "tidemark upgrade", **variables)
    assert ended.status == 0, ended.output
    assert "stg_transactions: copied from a table of 0.1.0 to parquet, up to batch 2" in ended.output
    assert "int_epochs: " not in ended.output, "this one was copied by a process that died later"
    assert "nothing to do" in ended.output

    old_warehouse.add_log(tmp_path, 3)
    ended = process(state, "dbt run", "rows current_rows", "tidemark clean", **variables)
    assert ended.status == 0, ended.output
    assert files(tmp_path / "tree") == files(tmp_path / "tree_after")
    rows = [json.dumps(row, sort_keys=True) for row in ended.rows("current_rows")]
    assert sorted(rows) == (tmp_path / "current_rows.json").read_text().splitlines()
    # What is left of the old tables is gone.
    stored = [path.name.split("__")[0] for path in (state / "warehouse" / "tidemark_store.db").iterdir()]
    assert sorted(stored) == sorted(set(stored))
