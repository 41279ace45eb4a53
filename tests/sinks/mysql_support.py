"""Batches, tables and sessions for the tests of the database sink."""

from __future__ import annotations

import base64
import json
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa

from support import golden
from tidemark.config import load
from tidemark.sinks.mysql.connection import Connection, Target
from tidemark.wire import types
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.framing import scan
from tidemark.wire.registry import decode
from tidemark.wire.rows import DELETE, INSERT, NO_ROW, UPDATE, Changes, RowBatch, decode_batch
from tidemark.wire.table_info import Column, TableInfo
from tidemark.wire.tracker import SchemaTracker
from tidemark.wire.types import Kind

OPS = {"delete": DELETE, "insert": INSERT, "update": UPDATE}
TS = 450_000_000_000_000_000


def events(scenario: str):
    with golden(f"streams/{scenario}.bin").open("rb") as log:
        for piece in scan(log):
            log.seek(piece.offset)
            yield decode(log.read(piece.length))


def stream_batches(scenario: str) -> list[RowBatch]:
    """One batch per event, in order."""
    tracker, found = SchemaTracker(), []
    for event in events(scenario):
        tracker.feed(event)
        if isinstance(event, BatchDMLEvent) and event.transactions:
            found.append(decode_batch(event, tracker.in_force(event.dispatcher_id).table))
    return found


def tables_by_event(scenario: str) -> dict[int, TableInfo]:
    """Index of a BatchDML event in the stream -> the table it is about."""
    tracker, found = SchemaTracker(), {}
    for index, event in enumerate(events(scenario)):
        tracker.feed(event)
        if isinstance(event, BatchDMLEvent) and event.transactions:
            found[index] = tracker.in_force(event.dispatcher_id).table
    return found


def value_of(form, column: Column):
    """The Arrow value of a canonical JSON value."""
    if form is None:
        return None
    if isinstance(form, dict):
        if "b64" in form:
            return base64.b64decode(form["b64"])
        return int(form.get("enum") or form.get("set") or form.get("bit"))
    if column.kind is Kind.INTEGER:
        return int(form)
    if column.kind in (Kind.FLOAT, Kind.DOUBLE):
        return float(form)
    if column.kind is Kind.DECIMAL:
        return Decimal(form)
    return form


def batch_of(table: TableInfo, changes: list[tuple[str, int, dict | None, dict | None]]) -> RowBatch:
    """Row changes as (op, commit ts, pre, post), rows as {column: value}."""
    physical, pre, post = [], [], []
    for _, _, old, new in changes:
        for place, row in ((pre, old), (post, new)):
            place.append(NO_ROW if row is None else len(physical))
            if row is not None:
                physical.append(row)
    arrays = [
        pa.array([row.get(column.name) for row in physical], field.type)
        for column, field in zip(table.columns, table.arrow_schema, strict=True)
    ]
    commit_ts = np.array([ts for _, ts, _, _ in changes], dtype=np.uint64)
    count = len(changes)
    made = Changes(
        op=np.array([OPS[op] for op, *_ in changes], dtype=np.uint8),
        pre=np.array(pre, dtype=np.int64),
        post=np.array(post, dtype=np.int64),
        start_ts=commit_ts - np.uint64(1),
        commit_ts=commit_ts,
        seq=np.arange(count, dtype=np.uint64),
        epoch=np.zeros(count, dtype=np.uint64),
        physical_table_id=np.full(count, table.table_id),
        row_key=pa.nulls(count, pa.binary()),
    )
    return RowBatch(table, pa.RecordBatch.from_arrays(arrays, schema=table.arrow_schema), made, b"d" * 16)


def text_column(place: int, name: str, collate: str = "utf8mb4_bin", flag: int = 0) -> Column:
    return Column(
        place + 1, name, place, types.VARCHAR, flag=flag, flen=40, charset="utf8mb4", collate=collate
    )


def active_table(schema: str, table: str = "acct", *, commit_ts: bool = True) -> TableInfo:
    """id, owner, n and the hidden columns."""
    columns = [
        Column(1, "id", 0, types.INT, flag=types.NOT_NULL | types.PRIMARY_KEY, flen=11),
        text_column(1, "owner"),
        Column(3, "n", 2, types.BIGINT, flen=20),
        Column(4, "_tidb_origin_ts", 3, types.BIGINT, flag=types.UNSIGNED, flen=20),
        Column(5, "_tidb_softdelete_time", 4, types.TIMESTAMP, flen=26, decimal=6),
    ]
    if commit_ts:
        columns.append(Column(6, "_tidb_commit_ts", 5, types.BIGINT, flag=types.UNSIGNED, flen=20))
    return TableInfo.build(schema, table, 100, 1, columns=columns, is_active_active=True)


ACTIVE_DDL = (
    "(id int primary key, owner varchar(40), n bigint, _tidb_origin_ts bigint unsigned null, "
    "_tidb_softdelete_time timestamp(6) null, _tidb_commit_ts bigint unsigned null)"
)


def put(table: TableInfo, *rows: tuple) -> RowBatch:
    """Inserts of an active-active table: (commit ts, id, owner, n[, origin ts[, soft delete time]])."""
    names = ("id", "owner", "n", "_tidb_origin_ts", "_tidb_softdelete_time")
    return batch_of(table, [("insert", ts, None, dict(zip(names, row, strict=False))) for ts, *row in rows])


def target_of(uri: str, **changes) -> Target:
    import dataclasses

    return dataclasses.replace(Target.from_settings(load(None, uri), {}), **changes)


def run(connection: Connection, *statements: str) -> None:
    for statement in statements:
        connection.execute(statement)
    connection.commit()


def typed(args: list) -> list[dict]:
    """Parameters as the vectors show them."""
    return [
        {"null": True}
        if arg is None
        else {"int": str(arg)}
        if isinstance(arg, int)
        else {"string": arg}
        if isinstance(arg, str)
        else {"bytes": base64.b64encode(arg).decode()}
        if isinstance(arg, bytes)
        else {"float": arg}
        for arg in args
    ]


def expected_args(args: list[dict]) -> list[dict]:
    """Python has one kind of integer."""
    return [
        {"int": arg.get("int64", arg.get("uint64"))} if {"int64", "uint64"} & arg.keys() else arg
        for arg in args
    ]


def load_json(path: str):
    return json.loads(golden(path).read_text(encoding="utf-8"))


def create_tables(scenario: str) -> list[str]:
    """The CREATE TABLE statements of a scenario's script, for a server that is not TiDB."""
    script = golden(f"streams/{scenario}.sql").read_text(encoding="utf-8")
    found = [line.rstrip(";") for line in script.splitlines() if line.startswith("create table")]
    return [re.sub(r" vector(\(\d+\))?", " longtext", line.replace(" clustered", "")) for line in found]
