"""Decisions become the row changes that the logs hold."""

import json

import numpy as np
import pyarrow as pa
import pytest

from support import golden
from tidemark.errors import TidemarkError
from tidemark.log_schemas import LogSchemas
from tidemark.logs import open_log
from tidemark.sinks import logged_rows as module
from tidemark.sinks.logged_rows import LogChanged, logged_rows
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.framing import scan
from tidemark.wire.registry import decode
from tidemark.wire.rows import DELETE, NO_ROW, OP_NAMES, UPDATE, decode_batch
from tidemark.wire.tracker import SchemaTracker


def read_log(path, upstream_id="1"):
    """What is in a log, read from its beginning: places of schemas, and every row change by its place."""
    tracker, schemas, rows = SchemaTracker(), [], []
    with open_log(str(path)) as log:
        for frame in scan(log):
            log.seek(frame.offset)
            event = decode(log.read(frame.length))
            tracker.feed(event)
            if isinstance(event, HandshakeEvent | DDLEvent):
                place = [str(path), frame.offset, frame.length]
                schemas.append([upstream_id, event.dispatcher_id.hex(), event.epoch, event.seq, *place])
            elif isinstance(event, BatchDMLEvent) and event.transactions:
                schema = tracker.in_force(event.dispatcher_id)
                batch = decode_batch(event, schema.table)
                values = batch.columns.to_pylist()
                changes = batch.changes
                for number in range(len(changes)):
                    images = {
                        name: None if row == NO_ROW else values[row]
                        for name, row in (("pre", changes.pre[number]), ("post", changes.post[number]))
                    }
                    rows.append(
                        {
                            "upstream_id": upstream_id,
                            "file": str(path),
                            "offset": frame.offset,
                            "row_number": number,
                            "policy_op": OP_NAMES[changes.op[number]],
                            "expected": {
                                "op": int(changes.op[number]),
                                **images,
                                "key": changes.row_key[number].as_py(),
                                "commit_ts": int(changes.commit_ts[number]),
                                "version": schema.table_info_version,
                                "table": schema.table.table,
                            },
                        }
                    )
    return schemas, rows


def decisions(rows, **more):
    columns = ("upstream_id", "file", "offset", "row_number", "policy_op")
    table = pa.table({name: [row[name] for row in rows] for name in columns})
    table = table.set_column(3, "row_number", table["row_number"].cast(pa.int32()))
    table = table.set_column(4, "policy_op", table["policy_op"].cast(pa.string()))
    for name, values in more.items():
        table = table.append_column(name, pa.array(values))
    return table


def read_back(table, schemas, batch_rows=100):
    """All chunks, with every row change at its position."""
    found = []
    for chunk in logged_rows(table.to_batches(max_chunksize=batch_rows), LogSchemas(schemas)):
        rows = {}
        for part in chunk:
            values, changes = part.batch.columns.to_pylist(), part.batch.changes
            assert part.decisions.num_rows == len(changes)
            for number, position in enumerate(part.position.tolist()):
                rows[position] = {
                    "op": int(changes.op[number]),
                    "pre": None if changes.pre[number] == NO_ROW else values[changes.pre[number]],
                    "post": None if changes.post[number] == NO_ROW else values[changes.post[number]],
                    "key": changes.row_key[number].as_py(),
                    "commit_ts": int(changes.commit_ts[number]),
                    "version": part.schema.table_info_version,
                    "table": part.batch.table.table,
                    **{
                        name: part.decisions.column(name)[number].as_py()
                        for name in part.decisions.schema.names
                    },
                }
            assert (np.diff(part.position) > 0).all()
        assert sorted(rows) == list(range(len(rows)))
        found += [rows[position] for position in range(len(rows))]
    return found


@pytest.mark.parametrize("name", ["alltypes", "evolve", "orders", "active_active"])
def test_every_row_change_comes_back_in_the_order_of_the_decisions(name, monkeypatch):
    path = golden(f"streams/{name}.bin")
    schemas, rows = read_log(path)
    monkeypatch.setattr(module, "FIRST_CHUNK_ROWS", 37)
    monkeypatch.setattr(module, "SMALLEST_CHUNK_ROWS", 53)
    monkeypatch.setattr(module, "CHUNK_ROWS", 53)
    for order in (np.arange(len(rows)), np.random.default_rng(7).permutation(len(rows))):
        chosen = [rows[number] for number in order.tolist()]
        found = read_back(decisions(chosen, mark=order), schemas)
        expected = [{**row["expected"], "mark": int(mark)} for row, mark in zip(chosen, order, strict=True)]
        assert json.dumps(found, default=str) == json.dumps(expected, default=str)


def test_only_decided_rows_come_and_the_others_leave_memory():
    schemas, rows = read_log(golden("streams/orders.bin"))
    some = rows[3::17]
    assert [row["commit_ts"] for row in read_back(decisions(some), schemas)] == [
        row["expected"]["commit_ts"] for row in some
    ]
    for chunk in logged_rows(decisions(some).to_batches(), LogSchemas(schemas)):
        for part in chunk:
            assert part.batch.columns.num_rows <= 2 * len(part.batch.changes) / 0.75 + 1


def test_an_update_that_is_sent_as_a_delete_carries_the_old_row():
    schemas, rows = read_log(golden("streams/orders.bin"))
    updates = [row for row in rows if row["expected"]["op"] == UPDATE]
    found = read_back(decisions([replace_op(row, "delete") for row in updates]), schemas)
    assert found
    for got, row in zip(found, updates, strict=True):
        assert (got["op"], got["post"]) == (DELETE, None)
        assert str(got["pre"]) == str(row["expected"]["pre"])


def test_a_row_without_an_op_is_sent_as_it_is_in_the_log():
    schemas, rows = read_log(golden("streams/orders.bin"))
    update = next(number for number, row in enumerate(rows) if row["policy_op"] == "update")
    chosen = [replace_op(row, None) for row in rows]
    expected = [row["expected"] for row in rows]
    assert json.dumps(read_back(decisions(chosen), schemas), default=str) == json.dumps(expected, default=str)
    chosen[update] = replace_op(rows[update], "delete")
    expected[update] = {**expected[update], "op": DELETE, "post": None}
    assert json.dumps(read_back(decisions(chosen), schemas), default=str) == json.dumps(expected, default=str)


def test_an_op_that_nobody_knows_is_named():
    schemas, rows = read_log(golden("streams/orders.bin"))
    with pytest.raises(TidemarkError, match="a decision says upsert"):
        read_back(decisions([replace_op(rows[0], None), replace_op(rows[1], "upsert")]), schemas)


def replace_op(row, op):
    return {**row, "policy_op": op}


def test_two_upstreams_with_the_same_dispatchers_keep_their_own_rows(tmp_path):
    copy = tmp_path / "copy.bin"
    copy.write_bytes(golden("streams/orders.bin").read_bytes())
    schemas, rows = read_log(golden("streams/orders.bin"), "a")
    more_schemas, more = read_log(copy, "b")
    mixed = [row for pair in zip(rows, more, strict=True) for row in pair]
    batches = decisions(mixed).to_batches()
    parts = [part for chunk in logged_rows(batches, LogSchemas(schemas + more_schemas)) for part in chunk]
    assert {part.upstream_id for part in parts} == {"a", "b"}
    assert sum(len(part.position) for part in parts) == len(mixed)


def test_a_log_that_changed_since_is_told_by_name(tmp_path):
    log = tmp_path / "a.bin"
    data = bytearray(golden("streams/orders.bin").read_bytes())
    log.write_bytes(data)
    schemas, rows = read_log(log)
    data[rows[-1]["offset"] : rows[-1]["offset"] + 4] = b"xxxx"
    log.write_bytes(data)
    with pytest.raises(LogChanged, match=rf"a\.bin: offset {rows[-1]['offset']}: .* put the log back"):
        read_back(decisions(rows), schemas)
    log.write_bytes(data[: rows[-1]["offset"] + 10])
    with pytest.raises(LogChanged, match=r"a\.bin"):
        read_back(decisions(rows), schemas)
    log.unlink()
    with pytest.raises(LogChanged, match=r"a\.bin.*still needed"):
        read_back(decisions(rows), schemas)


def test_a_decision_on_a_row_that_is_not_there_is_an_error():
    schemas, rows = read_log(golden("streams/orders.bin"))
    with pytest.raises(LogChanged, match="fewer rows"):
        read_back(decisions([{**rows[0], "row_number": 100_000}]), schemas)
    insert = next(row for row in rows if row["policy_op"] == "insert")
    with pytest.raises(LogChanged, match="old or new row"):
        read_back(decisions([replace_op(insert, "delete")]), schemas)
