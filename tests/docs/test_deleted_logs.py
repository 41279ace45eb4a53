"""What docs/inputs.md and the model log_files say of deleted logs: the files that may go are needed no more, and others are missed by name."""

import io
import shlex
from pathlib import Path

import pytest

from doc_pages import blocks, commands
from support import golden
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.framing import scan
from tidemark.wire.registry import decode

# Several dbt runs.
pytestmark = pytest.mark.long
STREAM = golden("streams/orders.bin").read_bytes()


def query():
    (shown,) = (
        command
        for block in blocks("docs/inputs.md")
        if block.language == "sh"
        for command in commands(block)
        if "log_files" in command.text
    )
    return shlex.split(shown.text)[-1]


def cut_before_the_last_rows() -> int:
    """Bytes up to the end of a frame with rows, which no Resolved event of the same part completes."""
    pieces = list(scan(io.BytesIO(STREAM)))
    with_rows = [
        number
        for number, piece in enumerate(pieces)
        if isinstance(decode(STREAM[piece.offset : piece.offset + piece.length]), BatchDMLEvent)
    ]
    middle = pieces[with_rows[len(with_rows) // 2]]
    return middle.offset + middle.length


def test_files_that_the_query_names_may_be_deleted(dbt, tmp_path):
    log, tree = tmp_path / "log", tmp_path / "tree"
    log.mkdir()
    dbt.vars = {
        "event_logs": [{"upstream_id": "1", "path": str(log)}],
        "sink_uri": f"file://{tree}?protocol=csv",
    }

    def deletable():
        shown = dbt.ok("show", "--limit", "100", "--inline", query()).result.results[0].agate_table
        return {row["file"] for row in shown.rows}

    cut = cut_before_the_last_rows()
    (log / "a.bin").write_bytes(STREAM[:cut])
    dbt.ok("run")
    assert deletable() == set(), "rows of the file wait for the checkpoint"

    (log / "a.bin").rename(tmp_path / "kept.bin")
    (log / "b.bin").write_bytes(STREAM[cut:])
    assert str(log / "a.bin") in dbt.fails("run")

    (tmp_path / "kept.bin").rename(log / "a.bin")
    dbt.ok("run")
    # Without Handshakes and statements; those of the dispatchers that go on are in the other one.
    assert deletable() == {str(log / "b.bin")}
    assert files_of(dbt) == {"a.bin": (True, True, []), "b.bin": (True, False, [])}
    before = dbt.table("current_rows"), dbt.table("sink_checkpoints")
    (log / "b.bin").unlink()
    dbt.ok("run")
    assert (dbt.table("current_rows"), dbt.table("sink_checkpoints")) == before
    assert "a.bin" in files_of(dbt)

    # Another sink would need both.
    other = {**dbt.vars, "sink_uri": f"file://{tmp_path}/other?protocol=csv"}
    assert str(log / "b.bin") in dbt.fails("run", **other)


def files_of(dbt):
    return {
        Path(row["file"]).name: (row["is_handled"], row["holds_schemas"], row["needed_by"])
        for row in dbt.table("log_files", "file")
    }
