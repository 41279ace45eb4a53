"""Tables written under other names, through the models."""

import json

from routing_support import ROUTED, target
from support import golden
from tidemark.cli import main
from tidemark.config import load
from tidemark.sinks.storage.log_driver import write_log_to_tree

LOG = str(golden("streams/evolve.bin"))


def files_below(folder):
    """What consumers see: our own files begin with a dot."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_tree_and_the_models_have_the_names_of_the_targets(dbt, tmp_path, capfd):
    changefeed = tmp_path / "changefeed.toml"
    changefeed.write_text(ROUTED)
    dbt.vars = {
        "event_logs": [{"upstream_id": "1", "path": LOG}],
        "changefeed": str(changefeed),
        "sink_uri": f"file://{tmp_path}/tree?protocol=csv",
    }
    dbt.ok("seed")
    dbt.ok("run", "--select", "+hard_delete_safety", "+row_dispatch")
    write_log_to_tree([LOG], load(str(changefeed), dbt.vars["sink_uri"]), str(tmp_path / "expected"))
    assert files_below(tmp_path / "tree") == files_below(tmp_path / "expected")

    for model in ("table_filter", "table_dispatch", "row_dispatch", "tables_at_checkpoint"):
        rows = dbt.rows(f"select * from {{schema}}.{model}")
        assert rows
        for row in rows:
            assert (row["target_schema_name"], row["target_table_name"]) == target(
                row["schema_name"], row["table_name"]
            )
    there = dbt.rows("select * from {schema}.tables_at_checkpoint where gone_ts is null")
    written = {target(row["schema_name"], row["table_name"]) for row in there}
    for model in ("progress", "hard_delete_safety"):
        rows = dbt.rows(f"select * from {{schema}}.{model}")
        assert {(row["database_name"], row["table_name"]) for row in rows} == written

    # Rows are dispatched by the names of the source.
    capfd.readouterr()
    uri = "kafka://127.0.0.1:1/t?protocol=canal-json&partition-num=7"
    assert main(["dispatch", LOG, "--sink-uri", uri, "--changefeed", str(changefeed)]) == 0
    sent = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    dbt.ok("run", "--select", "table_dispatch", "row_dispatch", sink_uri=uri)
    names = ("topic", "partition", "commit_ts", "target_schema_name", "target_table_name")
    shown = [tuple(row[name] for name in names) for row in dbt.rows("select * from {schema}.row_dispatch")]
    assert sorted(shown) == sorted(
        (row["topic"], row["partition"], int(row["commit_ts"]), row["target_schema"], row["target_table"])
        for row in sent
    )

    # Two tables that are there at the same time do not get one name; one after another may have it.
    rule = {
        "matcher": ["evo.multi_a", "evo.multi_a2", "evo_b.t1_moved"],
        "target-schema": "x",
        "target-table": "one",
    }
    dbt.ok(
        "run",
        "--select",
        "table_filter",
        "row_policy",
        changefeed={"sink": {"dispatchers": [rule | {"matcher": rule["matcher"][:2]}]}},
    )
    message = dbt.fails(
        "run", "--select", "table_filter", "row_policy", changefeed={"sink": {"dispatchers": [rule]}}
    )
    assert "evo.multi_a and evo_b.t1_moved as x.one" in message
    assert "target-table" in message
