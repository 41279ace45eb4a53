"""Streams, tables and batches for the encoder tests."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from support import golden
from tidemark.config import load
from tidemark.wire import types
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.framing import scan
from tidemark.wire.registry import decode
from tidemark.wire.rows import DELETE, INSERT, UPDATE, Changes, RowBatch, decode_batch
from tidemark.wire.table_info import Column, TableInfo
from tidemark.wire.tracker import SchemaTracker

SCENARIOS = ("orders", "alltypes", "alltypes_shanghai", "evolve", "active_active")
TS = 450_000_000_000_000_000


def configs() -> dict:
    return json.loads(golden("encode/configs.json").read_text())["configs"]


def settings_of(name: str):
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    config = configs()[name]
    return load(tomllib.loads(config["changefeed_toml"]), config["sink_uri"], "ticdc")


def csv_settings(compat: str = "design", **csv):
    return load(
        {"sink": {"csv": {key.replace("_", "-"): value for key, value in csv.items()}}},
        "file:///x?protocol=csv",
        compat,
    )


def canal_settings(query: str = "", changefeed: dict | None = None):
    return load(changefeed, f"kafka://127.0.0.1:9092/t?protocol=canal-json{query}")


def events(scenario: str):
    with golden(f"streams/{scenario}.bin").open("rb") as log:
        for piece in scan(log):
            log.seek(piece.offset)
            yield decode(log.read(piece.length))


def batches(scenario: str) -> list[RowBatch]:
    """The rows of a stream in order; batches of one table version that follow each other are joined."""
    tracker, found, source, waiting = SchemaTracker(), [], None, []
    for event in events(scenario):
        tracker.feed(event)
        if isinstance(event, BatchDMLEvent) and event.transactions:
            table = tracker.in_force(event.dispatcher_id).table
            if source != (event.dispatcher_id, table) and waiting:
                found.append(decode_batch(waiting, source[1]))
                waiting = []
            source = (event.dispatcher_id, table)
            waiting.append(event)
    return [*found, decode_batch(waiting, source[1])] if waiting else found


def ddl_events(scenario: str) -> list[DDLEvent]:
    """Each DDL event once, although every dispatcher of its tables receives it."""
    seen = {}
    for event in events(scenario):
        if isinstance(event, DDLEvent):
            seen.setdefault((event.finished_ts, event.ddl_type, event.query), event)
    return list(seen.values())


TEXT = {"charset": "utf8mb4", "collate": "utf8mb4_bin"}
BYTES = {"charset": "binary", "collate": "binary", "flag": types.BINARY}


def column(name: str, mysql_type: int, **more) -> Column:
    return Column(id=1, name=name, offset=0, mysql_type=mysql_type, **more)


def table_of(*columns: Column, schema: str = "db", table: str = "t", indexes=()) -> TableInfo:
    numbered = [
        Column(**{**item.__dict__, "id": place + 1, "offset": place}) for place, item in enumerate(columns)
    ]
    return TableInfo.build(schema, table, 100, 1, columns=numbered, indexes=indexes)


def batch_of(table: TableInfo, *changes: tuple, commit_ts: int = TS) -> RowBatch:
    """("I", row), ("D", row) or ("U", old row, new row); a row has one value per column."""
    rows, op, pre, post = [], [], [], []
    for letter, *images in changes:
        first = len(rows)
        rows += images
        op.append({"D": DELETE, "I": INSERT, "U": UPDATE}[letter])
        pre.append(-1 if letter == "I" else first)
        post.append(-1 if letter == "D" else first + (letter == "U"))
    return row_batch(table, [list(values) for values in zip(*rows, strict=True)], op, pre, post, commit_ts)


def inserts(table: TableInfo, *values: list) -> RowBatch:
    count = len(values[0])
    return row_batch(table, values, [INSERT] * count, [-1] * count, range(count), TS)


def row_batch(table: TableInfo, values, op, pre, post, commit_ts: int) -> RowBatch:
    count = len(op)
    arrays = [_array(value, field.type) for value, field in zip(values, table.arrow_schema, strict=True)]
    ts = np.full(count, commit_ts, np.uint64)
    changes = Changes(
        op=np.array(op, np.uint8),
        pre=np.array(pre, np.int64),
        post=np.array(post, np.int64),
        start_ts=ts - np.uint64(1),
        commit_ts=ts,
        seq=np.ones(count, np.uint64),
        epoch=np.ones(count, np.uint64),
        physical_table_id=np.full(count, table.table_id),
        row_key=pa.array([b"key%d" % number for number in range(count)], pa.binary()),
    )
    return RowBatch(table, pa.RecordBatch.from_arrays(arrays, schema=table.arrow_schema), changes, b"d" * 16)


def _array(values: list, kind: pa.DataType) -> pa.Array:
    if kind != pa.string() or not any(isinstance(value, bytes) for value in values):
        return pa.array(values, kind)
    raw = pa.array(values, pa.binary())
    return pa.Array.from_buffers(kind, len(raw), raw.buffers())


def texts(messages) -> list[str | None]:
    return [None if value is None else value.decode() for value in messages.value.to_pylist()]
