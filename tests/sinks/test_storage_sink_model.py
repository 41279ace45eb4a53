"""The storage sink through dbt and Spark: the tree is that of the library, whatever the tasks, the pieces and the crashes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from storage_support import is_data, log_of, unpack
from storage_support import published_below as files_below
from test_logged_rows import read_log

from dbt_support import Dbt
from support import golden
from tidemark.config import load
from tidemark.encode.paths import WORK
from tidemark.sinks.storage import faults
from tidemark.sinks.storage.doctor import examine
from tidemark.sinks.storage.errors import UnencodableRow
from tidemark.sinks.storage.filesystem import LocalStore
from tidemark.sinks.storage.journal import read_checkpoint
from tidemark.sinks.storage.log_driver import write_log_to_tree
from tidemark.sinks.storage.publish import open_tree
from tidemark.spark.sink_settings import settings_option
from tidemark.spark.storage_sink import StorageWriter

# Many dbt runs: `make test-long`.
pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def evolve(spark, tmp_path_factory):
    """The models up to the row policy, for a log with many DDL statements and partitions; every test has a prefix of its own."""
    folder = tmp_path_factory.mktemp("evolve")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        runner = Dbt(spark, patch, folder, f"test_{uuid.uuid4().hex[:12]}")
        runner.vars = {"event_logs": [{"upstream_id": "1", "path": log_of("evolve")}], "compat": "ticdc"}
        runner.ok("run", "--select", "+row_policy", "sink_checkpoints")
        yield runner
        runner.drop()


def sink_vars(folder, query="protocol=csv", changefeed=None):
    return {"sink_uri": f"file://{folder}?{query}", "changefeed": changefeed or {}}


def expected(folder, logs, variables, compat="ticdc"):
    """The tree that the library writes from the same logs."""
    settings = load(variables["changefeed"], variables["sink_uri"], compat)
    write_log_to_tree(logs, settings, str(folder))
    return files_below(folder)


FORMS = {
    "plain": ("protocol=csv", {"sink": {"date-separator": "none", "csv": {"include-commit-ts": True}}}),
    "merged partitions": ("protocol=csv", {"sink": {"enable-partition-separator": False}}),
    "table ids": ("protocol=csv&use-table-id-as-path=true&file-size=1024", {}),
    "dispatchers": (
        "protocol=canal-json&enable-tidb-extension=true",
        {"sink": {"date-separator": "year"}, "scheduler": {"enable-table-across-nodes": True}},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_tree_is_that_of_the_library_for_any_number_of_tasks(evolve, spark, tmp_path, form):
    tasks = {"plain": "40", "merged partitions": "17"}.get(form, "1")  # 1 is raised to 16
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    try:
        variables = sink_vars(tmp_path / "tree", *FORMS[form])
        evolve.ok("run", "--select", "sink_storage", **variables)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    tree = files_below(tmp_path / "tree")
    assert any(is_data(path) for path in tree)
    assert tree == expected(tmp_path / "expected", [log_of("evolve")], variables)


def test_a_second_run_without_new_rows_changes_nothing_and_the_checkpoint_is_in_the_warehouse(
    evolve, tmp_path
):
    variables = sink_vars(tmp_path / "tree")
    evolve.ok("run", "--select", "sink_storage", **variables)
    before = {path: (tmp_path / "tree" / path).stat().st_mtime_ns for path in files_below(tmp_path / "tree")}
    evolve.ok("run", "--select", "sink_storage", **variables)
    assert before == {
        path: (tmp_path / "tree" / path).stat().st_mtime_ns for path in files_below(tmp_path / "tree")
    }
    (row,) = evolve.rows(
        f"select * from {{schema}}.sink_checkpoints where sink_uri = 'file://{tmp_path / 'tree'}'"
    )
    assert (row["sink"], row["previous_checkpoint_ts"]) == ("storage", 0)
    assert row["checkpoint_ts"] == read_checkpoint(LocalStore(str(tmp_path / "tree")))
    (sent,) = evolve.rows(
        f"select count(*) as n from {{schema}}.row_policy where commit_ts <= {row['checkpoint_ts']}"
    )
    assert row["row_count"] == sent["n"]
    assert row["file_count"] == sum(map(is_data, files_below(tmp_path / "tree")))


def test_a_selector_that_leaves_out_a_key_column_stops_the_sink_before_it_writes(evolve, tmp_path):
    table, key = next(
        (row["schema_name"] + "." + row["table_name"], row["handle_key"][0])
        for row in evolve.rows(
            "select distinct schema_name, table_name, handle_key from {schema}.row_policy "
            "join {schema}.table_versions using (upstream_id, table_id, schema_name, table_name) order by all"
        )
        if row["handle_key"]
    )
    selector = {"matcher": [table], "columns": ["*", f"!{key}"]}
    said = evolve.fails(
        "run",
        "--select",
        "sink_storage",
        **sink_vars(tmp_path / "tree", changefeed={"sink": {"column-selectors": [selector]}}),
    )
    assert (
        f"table {table}: sink.column-selectors[0] leaves out {key}, which is part of the key of its rows"
        in said
    )
    assert not any(is_data(path) for path in files_below(tmp_path / "tree"))


def test_a_second_writer_is_told_who_holds_the_tree(evolve, tmp_path):
    variables = sink_vars(tmp_path / "tree")
    with open_tree(LocalStore(str(tmp_path / "tree")), "the other run"):
        message = evolve.fails("run", "--select", "sink_storage", **variables)
    assert "is being written by the other run (process" in message
    assert files_below(tmp_path / "tree") == {}
    # The failed run has left no lease of its own.
    evolve.ok("run", "--select", "sink_storage", **variables)


@pytest.mark.parametrize("uri", [None, "kafka://127.0.0.1:9092/t?protocol=canal-json"])
def test_without_a_storage_uri_it_does_nothing(evolve, uri):
    before = evolve.rows("select count(*) as n from {schema}.sink_checkpoints")
    outcome = evolve.ok("run", "--select", "sink_storage", sink_uri=uri)
    assert "nothing to send" in str(outcome.result.results[0].message)
    assert evolve.rows("select count(*) as n from {schema}.sink_checkpoints") == before


def test_a_prefix_that_cannot_be_written_is_named(evolve, tmp_path):
    (tmp_path / "file").write_text("")
    message = evolve.fails("run", "--select", "sink_storage", **sink_vars(tmp_path / "file" / "tree"))
    assert f"{tmp_path}/file/tree" in message
    assert "choose another" in message
    assert "Traceback" not in message


def test_what_the_changefeed_leaves_out_is_neither_in_data_nor_in_schema_files(evolve, tmp_path):
    changefeed = {
        "filter": {
            "rules": ["evo.*", "!evo.p"],
            "event-filters": [{"matcher": ["evo.h"], "ignore-event": ["all dml"]}],
        }
    }
    try:
        variables = sink_vars(tmp_path / "tree", changefeed=changefeed)
        evolve.ok("run", "--select", "table_filter", "sink_storage", **variables)
    finally:
        evolve.ok("run", "--select", "table_filter")
    tree = files_below(tmp_path / "tree")
    tables = {path.split("/")[1] for path in tree if is_data(path)}
    assert {"t1", "multi_b2"} <= tables
    assert not tables & {"p", "h"}
    assert not any(path.startswith("evo/p/") for path in tree)
    # Which statements are left out is known to the library; which rows, only to the models.
    whole = expected(tmp_path / "expected", [log_of("evolve")], variables)
    assert {path for path in tree if "/schema_" in path} == {path for path in whole if "/schema_" in path}


def test_a_row_that_the_protocol_cannot_express_ends_the_task_with_its_table_and_ts(tmp_path):
    schemas, rows = read_log(Path(log_of("alltypes")))
    settings = settings_option({}, f"file://{tmp_path}?protocol=csv", "design")
    options = {
        "settings": settings,
        "after_ts": "0",
        "up_to_ts": str(1 << 62),
        "takes_late_rows": "false",
        "schemas": json.dumps(schemas),
    }
    with pytest.raises(
        UnencodableRow, match=r"table typ\.others: a row with commit ts 4\d+ cannot be written.*ENUM"
    ):
        StorageWriter(options).write(iter([blocks(rows)]))


def blocks(rows):
    """A block for every row, which is sent as it is."""
    columns = {name: [row[name] for row in rows] for name in ("upstream_id", "file", "offset")}
    numbers = np.array([row["row_number"] for row in rows])
    bits = np.left_shift(np.int64(1), numbers % 64)
    return pa.RecordBatch.from_pydict(
        {**columns, "block": numbers // 64, "sent_rows": bits, "deleted_rows": np.zeros_like(bits)}
    )


def test_rows_are_counted_by_the_sink_unless_the_checkpoint_covers_more_than_it_sent(evolve, tmp_path):
    def hook(after_ts):
        report = {"after_ts": after_ts, "up_to_ts": up_to_ts, "rows": 4711, "files": 2}
        needed = (
            "log_segments",
            "int_checkpoints",
            "int_transactions",
            "stg_ddl_events",
            "row_policy",
            "sink_checkpoints",
        )
        hints = " ".join(f"{{{{ ref('{name}') }}}}" for name in needed)
        inline = f"-- depends_on: {hints}\n{{{{ tidemark.sink_checkpoint_row('storage', {report}) }}}}"
        return evolve.ok("compile", "--inline", inline, **variables).result.results[0].node.compiled_code

    variables = sink_vars(tmp_path / "tree")
    (range_end,) = evolve.rows("select min(checkpoint_ts) as ts from {schema}.int_checkpoints")
    up_to_ts = range_end["ts"]
    assert "cast(4711 as bigint) as row_count" in hook(0)
    assert "cast(count(*) as bigint) as row_count" in hook(1)


def test_a_log_that_arrives_in_pieces_gives_the_same_rows_in_the_same_order(dbt, tmp_path):
    log = golden("streams/orders.bin").read_bytes()
    (tmp_path / "logs").mkdir()
    variables = sink_vars(tmp_path / "tree", changefeed={"sink": {"date-separator": "none"}})
    dbt.vars = {
        "event_logs": [{"upstream_id": "1", "path": str(tmp_path / "logs")}],
        "compat": "ticdc",
        **variables,
    }
    checkpoints = []
    for share in (0.95, 1.0):
        (tmp_path / "logs" / "a.bin").write_bytes(log[: int(len(log) * share)])
        dbt.ok("run", "--select", "+sink_storage")
        checkpoints.append(read_checkpoint(LocalStore(str(tmp_path / "tree"))))
    assert checkpoints == sorted(set(checkpoints)), "every piece moves the checkpoint"
    whole = expected(tmp_path / "expected", [log_of("orders")], variables)
    assert rows_by_folder(files_below(tmp_path / "tree")) == rows_by_folder(whole)
    assert [row["checkpoint_ts"] for row in dbt.table("sink_checkpoints", "checkpoint_ts")] == checkpoints
    assert examine(LocalStore(str(tmp_path / "tree"))).findings == []


def test_the_history_of_an_upstream_that_is_added_is_listed_and_warned_of_if_it_is_skipped(dbt, tmp_path):
    other = shutil.copy(log_of("orders"), tmp_path / "other.bin")
    logs = [{"upstream_id": "1", "path": log_of("orders")}, {"upstream_id": "2", "path": str(other)}]
    dbt.vars = {"compat": "ticdc", **sink_vars(tmp_path / "tree")}
    dbt.ok("run", "--select", "+sink_storage", "late_transactions", event_logs=logs[:1])
    assert dbt.table("late_transactions") == []
    before = files_below(tmp_path / "tree")
    dbt.ok("run", "--select", "+sink_storage", "late_transactions", event_logs=logs, late_rows="skip")
    late = dbt.table("late_transactions")
    assert {(row["upstream_id"], row["reason"], row["status"]) for row in late} == {
        ("2", "added_upstream", "skipped")
    }
    rows = sum(row["row_count"] for row in late)
    said = " ".join((dbt.folder / "logs" / "dbt.log").read_text().split())
    assert said.count("They are not sent (late_rows: skip); late_transactions lists them") == 1
    assert f"the logs brought {rows} row changes from before that (upstream '2'" in said
    assert "another prefix" in said
    assert files_below(tmp_path / "tree") == before


def test_a_damaged_tree_is_not_written_on(dbt, tmp_path):
    log, tree = golden("streams/orders.bin").read_bytes(), tmp_path / "tree"
    variables = sink_vars(tree, changefeed={"sink": {"date-separator": "none"}})
    dbt.vars = {
        "event_logs": [{"upstream_id": "1", "path": str(tmp_path / "a.bin")}],
        "compat": "ticdc",
        **variables,
    }
    (tmp_path / "a.bin").write_bytes(log[: int(len(log) * 0.95)])
    dbt.ok("run", "--select", "+sink_storage")
    (tmp_path / "a.bin").write_bytes(log)
    dbt.ok("run", "--select", "+row_policy")
    whole = files_below(tree)
    assert any(is_data(path) for path in whole)

    def refused():
        message = dbt.fails("run", "--select", "sink_storage")
        assert "Traceback" not in message
        damaged = {path: data for path, data in files_below(tree).items() if not path.startswith(WORK)}
        assert damaged.items() <= whole.items()
        unpack(whole, tree)
        return message

    for path in filter(is_data, whole):
        (tree / path).unlink()
    message = refused()
    assert "which is not there [checkpoint-beyond-data]" in message
    assert "missing-files=accept" in message
    (tree / "metadata").unlink()
    assert "metadata is missing: Tidemark has published up to" in refused()
    shutil.rmtree(tree)
    message = refused()
    assert "sink_checkpoints says that rows were sent up to" in message
    assert "with another changefeed_id" in message
    dbt.ok("run", "--select", "sink_storage")
    assert rows_by_folder(files_below(tree)) == rows_by_folder(
        expected(tmp_path / "expected", [log_of("orders")], variables)
    )
    assert examine(LocalStore(str(tree))).findings == []


def rows_by_folder(tree):
    found = {}
    for path in sorted(filter(is_data, tree)):
        folder = path.rpartition("/")[0]
        found[folder] = found.get(folder, b"") + tree[path]
    return found


# What happens in Spark's tasks and in the commit, each in a process of its own, the first time and later; the lease is taken by dbt itself, see below.
IN_WORKERS = [point for point in faults.FAULT_POINTS if point != "lease-taken"]
LATER = ["staged-file-written:2", "schema-file-written:9", "data-file-placed:4", "index-written:3"]


@pytest.mark.parametrize("fault", [*IN_WORKERS, *LATER])
def test_a_process_that_is_killed_leaves_what_the_next_run_finishes(
    evolve, whole_evolve, state_dir, tmp_path, fault
):
    variables = sink_vars(tmp_path / "tree", *KILLED_FORM)
    (state_dir / "fault").write_text(fault)
    try:
        evolve.fails("run", "--select", "sink_storage", **variables)
    finally:
        (state_dir / "fault").unlink()
    crashed = files_below(tmp_path / "tree")
    visible = {path: content for path, content in crashed.items() if not path.startswith(f"{WORK}/")}
    assert visible.items() <= whole_evolve.items()
    assert "metadata" not in visible or visible == whole_evolve
    evolve.ok("run", "--select", "sink_storage", **variables)
    assert files_below(tmp_path / "tree") == whole_evolve


KILLED_FORM = ("protocol=csv", {"sink": {"date-separator": "none"}})


@pytest.fixture(scope="module")
def whole_evolve(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return expected(folder, [log_of("evolve")], sink_vars(folder, *KILLED_FORM))


def test_a_run_that_is_killed_is_finished_by_the_next(tmp_path):
    """Three processes of dbt: killed while the commit publishes, and while dbt itself takes the lease."""
    variables = {
        "event_logs": [{"upstream_id": "1", "path": log_of("orders")}],
        "state_dir": str(tmp_path / "state"),
        "compat": "ticdc",
        **sink_vars(tmp_path / "tree"),
    }

    def run(select, fault):
        environment = {**os.environ, "DBT_PROFILES_DIR": "profiles", "TIDEMARK_FAULT": fault}
        environment.pop("TIDEMARK_STATE_DIR", None)
        command = [
            "from dbt.cli.main import cli; cli()",
            "run",
            "--select",
            select,
            "--vars",
            json.dumps(variables),
        ]
        folders = ("--target-path", str(tmp_path / "target"), "--log-path", str(tmp_path / "logs"))
        return subprocess.run(
            [sys.executable, "-c", *command, *folders],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
        )

    store = LocalStore(str(tmp_path / "tree"))
    assert run("+sink_storage", "index-written:2").returncode == 1
    assert any(is_data(path) for path in files_below(tmp_path / "tree"))
    assert read_checkpoint(store) == 0
    assert run("sink_storage", "lease-taken").returncode == -signal.SIGKILL
    last = run("sink_storage", "")
    assert last.returncode == 0, last.stdout
    assert files_below(tmp_path / "tree") == expected(tmp_path / "expected", [log_of("orders")], variables)
