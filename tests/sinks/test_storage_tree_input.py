"""A storage tree as input: of a Spark query, and of the models up to another sink."""

import io

import pyarrow as pa
from storage_support import log_of, published_below
from test_logged_rows import read_log

from support import golden
from tidemark.cli import main
from tidemark.config import load
from tidemark.config.project_vars import check_project_vars
from tidemark.log_schemas import LogSchemas
from tidemark.sinks.storage.log_driver import write_log_to_tree
from tidemark.spark.row_change_writer import row_change_batches
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.framing import scan
from tidemark.wire.registry import decode

JSON = load({"sink": {"date-separator": "none"}}, "file:///x?protocol=canal-json&enable-tidb-extension=true")
CSV = {"sink": {"csv": {"include-commit-ts": True, "output-old-value": True}}}
# Not the key: a tree knows primary keys only.
TOLD = ("schema_name", "table_name", "op", "commit_ts", "pre", "post")


def transactions_of(log):
    """The transactions of a log, as int_transactions has them."""
    data, rows = log.read_bytes(), []
    for frame in scan(io.BytesIO(data)):
        event = decode(data[frame.offset : frame.offset + frame.length])
        if isinstance(event, BatchDMLEvent):
            place = {"upstream_id": "1", "file": str(log), "offset": frame.offset, "batch_id": 1}
            rows += [{**place, "seq": part.seq} for part in event.transactions]
    return pa.RecordBatch.from_pylist(rows)


def changes_of(log):
    """The row changes of a log, as the warehouse has them."""
    schemas = LogSchemas(read_log(log)[0])
    return [
        tuple(row[name] for name in TOLD)
        for _, batch in row_change_batches(transactions_of(log), schemas, {})
        for row in batch.to_pylist()
    ]


def test_a_query_on_a_tree_gives_the_row_changes_of_the_log(spark, tmp_path):
    write_log_to_tree([log_of("orders")], JSON, str(tmp_path))
    spark.sql(
        f"create or replace temporary view tree_changes using tidemark_storage options (tree '{tmp_path}')"
    )
    rows = spark.sql(f"select {', '.join(TOLD)} from tree_changes").collect()
    assert sorted(map(tuple, rows), key=str) == sorted(changes_of(golden("streams/orders.bin")), key=str)


def test_a_tree_is_the_input_of_the_models_and_becomes_another_protocol(dbt, tmp_path):
    write_log_to_tree([log_of("orders")], JSON, str(tmp_path / "json"))
    write_log_to_tree([log_of("orders")], load(CSV, "file:///x?protocol=csv"), str(tmp_path / "expected"))
    dbt.vars = {
        "event_logs": [{"upstream_id": "1", "tree": f"file://{tmp_path / 'json'}?protocol=canal-json"}],
        "sink_uri": f"file://{tmp_path / 'csv'}?protocol=csv",
        "changefeed": CSV,
    }
    dbt.ok("run", "--select", "+sink_storage")
    assert published_below(tmp_path / "csv") == published_below(tmp_path / "expected")


def test_an_entry_of_event_logs_is_a_log_or_a_tree():
    def findings(entry):
        return [finding.key for finding in check_project_vars({"event_logs": [entry]}, {}, {})]

    assert findings({"upstream_id": "1", "tree": "file:///data?protocol=csv", "changefeed": "c.toml"}) == []
    assert findings({"upstream_id": "1", "tree": "/data"}) == []
    assert findings({"upstream_id": "1", "tree": "/data", "changefeed": "c.toml"}) == [
        "event_logs[0].changefeed"
    ]
    assert findings({"upstream_id": "1"}) == ["event_logs[0].path"]
    assert findings({"upstream_id": "1", "tree": "/data", "path": "/log"}) == ["event_logs[0].path"]
    assert findings({"upstream_id": "1", "path": "/log", "time_zone": "Asia/Shanghai"}) == []
    assert findings({"upstream_id": "1", "path": "/log", "time_zone": "Asia/Nowhere"}) == [
        "event_logs[0].time_zone"
    ]


def test_the_command_writes_into_no_folder_of_something_else(tmp_path, capsys):
    write_log_to_tree([log_of("orders")], JSON, str(tmp_path / "tree"))
    out = tmp_path / "out"
    command = ["convert", str(tmp_path / "tree"), "--out", str(out)]
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    assert main(command) != 0
    assert "is not empty and holds no log of a tree; give a new or an empty folder" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == ["notes.txt"]
    assert main([*command[:-1], str(out / "notes.txt")]) != 0
    assert "is a file" in capsys.readouterr().err
    (out / "notes.txt").unlink()
    assert main(command) == 0
    # A log whose tree is at another place now.
    (out / ".tree").unlink()
    assert main(command) == 0


def test_the_command_writes_a_log_once(tmp_path, capsys):
    write_log_to_tree([log_of("orders")], JSON, str(tmp_path / "tree"))
    command = ["convert", str(tmp_path / "tree"), "--out", str(tmp_path / "log")]
    assert main(command) == 0
    assert "54 row changes" in capsys.readouterr().out
    assert main(command) == 0
    assert "up to date" in capsys.readouterr().out
    assert main(["rows", str(tmp_path / "log")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 54
    assert main(["convert", "--out", str(tmp_path / "log")]) == 2
