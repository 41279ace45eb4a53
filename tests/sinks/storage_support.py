"""Golden storage trees, settings and small helpers for the storage sink's tests."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from support import golden
from tidemark.config import load
from tidemark.encode.paths import RECORD
from tidemark.wire import types
from tidemark.wire.chunk import encode_chunk
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.dml import DMLEvent, pack_keys
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.events.resolved import ResolvedEvent
from tidemark.wire.registry import encode
from tidemark.wire.rows import DELETE, INSERT, UPDATE, Changes, RowBatch
from tidemark.wire.table_info import Column, TableInfo
from tidemark.wire.text import canonical_values

# (scenario, configuration) of every golden tree.
TREES = sorted(
    (path.parent.parent.name, path.parent.name) for path in golden("storage").glob("*/*/tree.json")
)
TS = 450_000_000_000_000_000
OP_NAMES = {DELETE: "delete", INSERT: "insert", UPDATE: "update"}


def log_of(scenario: str) -> str:
    return str(golden(f"streams/{scenario}.bin"))


def golden_tree(scenario: str, config: str) -> dict[str, bytes]:
    """Path -> content of the files that TiCDC wrote."""
    text = golden(f"storage/{scenario}/{config}/tree.json").read_text(encoding="utf-8")
    return {path: content.encode() for path, content in json.loads(text).items()}


def golden_settings(scenario: str, config: str):
    """The settings behind a golden tree."""
    given = json.loads(golden(f"storage/{scenario}/{config}/config.json").read_text())
    changefeed = {
        "case-sensitive": True,
        "scheduler": {"enable-table-across-nodes": given["enable_table_across_nodes"]},
        "sink": {
            "date-separator": given["date_separator"],
            "enable-partition-separator": given["enable_partition_separator"],
            "file-index-digit": given["file_index_width"],
            "csv": {
                "include-commit-ts": given["include_commit_ts"],
                "output-field-header": given["csv_output_field_header"],
            },
            "cloud-storage-config": {"output-column-id": given["output_column_id"]},
        },
    }
    size = f"&file-size={given['file_size']}" if given["file_size"] else ""
    return load(changefeed, f"file:///x?{given['sink_uri_query']}{size}", "ticdc")


def settings(protocol: str = "csv", query: str = "", compat: str = "design", **sink):
    """Settings with keys of [sink], underscores for dashes; no date folder unless asked for."""
    keys = {"date-separator": "none", **{key.replace("_", "-"): value for key, value in sink.items()}}
    if protocol == "csv":
        keys["csv"] = {"include-commit-ts": True, **keys.get("csv", {})}
    return load({"case-sensitive": True, "sink": keys}, f"file:///x?protocol={protocol}{query}", compat)


def unpack(tree: dict[str, bytes], folder: Path) -> Path:
    for path, content in tree.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return folder


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def published_below(folder: Path) -> dict[str, bytes]:
    """Without the record, in which the models also note how much of the logs the tree has."""
    return {path: data for path, data in files_below(folder).items() if path != RECORD}


def is_data(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.startswith("CDC") and not name.endswith(".index")


def row_forms(batch: RowBatch) -> list[dict]:
    """Row changes as in rows.jsonl."""
    names = [column.name for column in batch.table.columns]
    values = [
        canonical_values(array, column)
        for array, column in zip(batch.columns.columns, batch.table.columns, strict=True)
    ]

    def image(row: int) -> dict | None:
        return None if row < 0 else {name: column[row] for name, column in zip(names, values, strict=True)}

    changes = batch.changes
    return [
        {
            "schema": batch.table.schema,
            "table": batch.table.table,
            "op": OP_NAMES[int(changes.op[i])],
            "commit_ts": str(int(changes.commit_ts[i])),
            "pre": image(int(changes.pre[i])),
            "post": image(int(changes.post[i])),
        }
        for i in range(len(changes))
    ]


def table_named(
    schema: str = "db", table: str = "t", table_id: int = 100, is_partition: bool = False
) -> TableInfo:
    """(id int primary key, v varchar)"""
    columns = [
        Column(1, "id", 0, types.INT, flag=types.PRIMARY_KEY | types.NOT_NULL, flen=11),
        Column(2, "v", 1, types.VARCHAR, flen=100, charset="utf8mb4", collate="utf8mb4_bin"),
    ]
    return TableInfo.build(schema, table, table_id, 1, columns=columns, is_partition=is_partition)


def inserts(
    table: TableInfo, transactions: list[tuple[int, list[tuple]]], table_id: int | None = None
) -> RowBatch:
    """One insert per row; `transactions` are (commit ts, rows)."""
    rows = [row for _, some in transactions for row in some]
    counts = [len(some) for _, some in transactions]
    ts = np.repeat(np.array([ts for ts, _ in transactions], np.uint64), counts)
    count = len(rows)
    arrays = [
        pa.array([row[place] for row in rows], field.type) for place, field in enumerate(table.arrow_schema)
    ]
    changes = Changes(
        op=np.full(count, INSERT, np.uint8),
        pre=np.full(count, -1),
        post=np.arange(count),
        start_ts=ts - np.uint64(1),
        commit_ts=ts,
        seq=np.repeat(np.arange(len(counts), dtype=np.uint64), counts),
        epoch=np.ones(count, np.uint64),
        physical_table_id=np.full(count, table.table_id if table_id is None else table_id),
        row_key=pa.nulls(count, pa.binary()),
    )
    return RowBatch(table, pa.RecordBatch.from_arrays(arrays, schema=table.arrow_schema), changes, b"d" * 16)


def log_of_inserts(path: Path, table: TableInfo, rows: list[tuple]) -> Path:
    """A log of one dispatcher: a frame, with one transaction, for each row."""
    dispatcher = b"d" * 16
    frames = [encode(HandshakeEvent(TS, 1, 1, dispatcher, table.to_bytes()))]
    for place, row in enumerate(rows):
        dml = DMLEvent(
            dispatcher_id=dispatcher,
            physical_table_id=table.table_id,
            start_ts=TS + 10 * place + 1,
            commit_ts=TS + 10 * place + 2,
            seq=place + 2,
            epoch=1,
            row_count=1,
            approximate_size=0,
            previous_total_offset=0,
            row_types=bytes([INSERT]),
            key_count=1,
            keys=pack_keys([str(place).encode()]),
        )
        arrays = [pa.array([value], kind.type) for value, kind in zip(row, table.arrow_schema, strict=True)]
        chunk = encode_chunk(pa.RecordBatch.from_arrays(arrays, schema=table.arrow_schema), table)
        frames.append(encode(BatchDMLEvent((dml,), chunk)))
    frames.append(encode(ResolvedEvent(TS + 10 * len(rows) + 2, 1, len(rows) + 1, dispatcher)))
    path.write_bytes(b"".join(frames))
    return path
