"""What docs/inputs.md says of deleted logs: the files that its query names are needed no more, and others are missed by name."""

import io
import shlex

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
        if "log_positions" in command.text
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
    assert deletable() == {str(log / "a.bin"), str(log / "b.bin")}
    before = dbt.table("current_rows"), dbt.table("sink_checkpoints")
    (log / "a.bin").unlink()
    (log / "b.bin").unlink()
    dbt.ok("run")
    assert (dbt.table("current_rows"), dbt.table("sink_checkpoints")) == before
