"""Transactions to parquet files of row changes."""

import json
import shutil

import pyarrow.parquet as pq
import pytest
from storage_support import log_of_inserts
from test_logged_rows import read_log
from test_storage_tree_input import transactions_of

from support import golden, jsonl
from tidemark.errors import TidemarkError
from tidemark.joined_frames import BadFrame
from tidemark.spark.row_change_writer import RowChangeWriter, RowFile
from tidemark.spark.row_changes import error_batch
from tidemark.wire import types
from tidemark.wire.errors import InvalidField
from tidemark.wire.table_info import Column, TableInfo

LOG = golden("streams/orders.bin")


def writer(folder, log=LOG, **options):
    return RowChangeWriter({"path": f"file:{folder}", "schemas": json.dumps(read_log(log)[0]), **options})


def written(folder):
    return [row for file in sorted(folder.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]


def test_every_row_of_the_transactions_is_written(tmp_path):
    task = writer(tmp_path)
    task.commit([task.write(iter([transactions_of(LOG)]))])
    found = sorted(
        (row["dispatcher_id"], row["seq"], bytes(row["row_key"]).hex()) for row in written(tmp_path)
    )
    wanted = [
        (row["dispatcher"], int(row["seq"]), row["row_key_hex"]) for row in jsonl("streams/orders.rows.jsonl")
    ]
    assert found == sorted(wanted)


def test_other_transactions_of_a_frame_are_left_out(tmp_path):
    transactions = transactions_of(LOG).slice(0, 1)
    task = writer(tmp_path)
    task.commit([task.write(iter([transactions]))])
    assert {row["seq"] for row in written(tmp_path)} == {transactions.column("seq")[0].as_py()}


def test_batches_of_several_logs_keep_their_words(tmp_path):
    frame = BadFrame(0, memoryview(b""), InvalidField("broken"))
    files = RowFile(str(tmp_path))
    for name in ("b", "a", "b"):
        files.add(1, error_batch(f"upstream {name}", f"{name}.bin", frame))
    files.close()
    found = [(row["upstream_id"], row["file"], row["table_name"]) for row in written(tmp_path)]
    assert found == [(f"upstream {name}", f"{name}.bin", None) for name in ("b", "a", "b")]


def test_the_commit_removes_what_an_earlier_attempt_left_and_nothing_else(tmp_path):
    for part in ("part=1", "part=2"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "left.parquet").write_bytes(b"half")
    task = writer(tmp_path / "part=1")
    attempts = [task.write(iter([transactions_of(LOG)])) for _ in range(2)]
    task.commit([attempts[1]])
    assert [str(file) for file in (tmp_path / "part=1").iterdir()] == attempts[1].files
    assert (tmp_path / "part=2" / "left.parquet").exists()


def test_a_log_that_is_gone_is_named(tmp_path):
    log = tmp_path / "log.bin"
    shutil.copy(LOG, log)
    task, transactions = writer(tmp_path, log), transactions_of(log)
    log.unlink()
    with pytest.raises(TidemarkError, match=r"log\.bin.* put the log back"):
        task.write(iter([transactions]))


def table_with(name, column_type, **more):
    key = Column(1, "id", 0, types.INT, flag=types.PRIMARY_KEY | types.NOT_NULL, flen=11)
    hidden = Column(2, name, 1, column_type, **more)
    return TableInfo.build("d", "t", 100, 1, columns=[key, hidden], is_active_active=True)


TEXT = {"flen": 100, "charset": "utf8mb4", "collate": "utf8mb4_bin"}


@pytest.mark.parametrize(
    ("name", "column_type", "more", "values"),
    [
        ("_tidb_origin_ts", types.VARCHAR, TEXT, ["7", "not a ts", None]),
        ("_tidb_origin_ts", types.BIGINT, {"flag": types.UNSIGNED}, [7, 1 << 63, None]),
        (
            "_tidb_softdelete_time",
            types.VARCHAR,
            {"flag": types.BINARY, "charset": "binary"},
            [b"x", b"\xff", None],
        ),
    ],
)
def test_a_hidden_column_that_holds_something_else_costs_only_its_frame(
    tmp_path, name, column_type, more, values
):
    table = table_with(name, column_type, **more)
    log = log_of_inserts(tmp_path / "log.bin", table, list(enumerate(values)))
    transactions = transactions_of(log)
    task = writer(tmp_path / "table", log)
    task.commit([task.write(iter([transactions]))])
    rows = {row["offset"]: row for row in written(tmp_path / "table")}
    good, bad, empty = (rows[offset] for offset in transactions.column("offset").to_pylist())
    assert (bad["error_reason"], bad["op"], bad["key"]) == ("invalid_field", None, None)
    assert f"column {name} of d.t holds something else than" in bad["error_message"]
    assert bad["error_bytes"]
    assert [row["error_reason"] for row in (good, empty)] == [None, None]
    assert [json.loads(row["post"])["id"] for row in (good, empty)] == ["0", "2"]
    assert good["origin_ts" if "origin" in name else "new_softdelete_time"] in (7, "x")
