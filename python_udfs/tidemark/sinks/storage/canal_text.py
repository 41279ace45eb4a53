"""canal-json data files taken apart into row changes, with Arrow's JSON reader and the table's columns as its schema.

A row has its values in `data`, an update has the old ones in `old`. With only-output-updated-columns `old` holds the changed columns only, and Arrow
cannot tell a column that is missing from one that is NULL: lines in which that matters are looked at one by one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from tidemark.sinks.storage.errors import InvalidTree
from tidemark.sinks.storage.values import canal_values, check_names
from tidemark.wire.rows import DELETE, INSERT, UPDATE
from tidemark.wire.table_info import TableInfo

_OPERATIONS = {"INSERT": INSERT, "UPDATE": UPDATE, "DELETE": DELETE}


@dataclass(frozen=True)
class CanalRows:
    op: np.ndarray
    # 0 without enable-tidb-extension.
    commit_ts: np.ndarray
    # One row per row change: the new values, or the old ones of a delete.
    rows: list[pa.Array]
    # One row per update.
    old_rows: list[pa.Array]


def read_rows(data: bytes, table: TableInfo, terminator: str) -> CanalRows:
    data = _with_newlines(data, terminator.encode())
    values = pa.struct([pa.field(column.name, pa.string()) for column in table.columns])
    schema = pa.schema(
        [
            ("database", pa.string()),
            ("table", pa.string()),
            ("type", pa.string()),
            ("data", pa.list_(values)),
            ("old", pa.list_(values)),
            ("_tidb", pa.struct([("commitTs", pa.int64())])),
        ]
    )
    try:
        found = pa.json.read_json(
            pa.BufferReader(data),
            read_options=pa.json.ReadOptions(block_size=len(data) + 1),
            parse_options=pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        ).combine_chunks()
    except pa.ArrowInvalid as error:
        raise InvalidTree(f"a line is no canal-json: {error}") from None
    databases, tables, kinds, rows, old, extension = (_chunk(found[name]) for name in schema.names)
    check_names([tables, databases], table)
    known = pc.index_in(kinds, pa.array(list(_OPERATIONS)))
    if known.null_count:
        raise InvalidTree(
            f"a message of type {kinds.filter(known.is_null())[0].as_py()!r} has no place in a data file"
        )
    op = np.array(list(_OPERATIONS.values()), np.uint8)[known.to_numpy()]
    updates = op == UPDATE
    if _lengths(rows) != {1} or _lengths(old.filter(pa.array(updates))) - {1}:
        raise InvalidTree("a message does not hold exactly one row")
    texts, old_texts = (
        pc.list_flatten(rows).flatten(),
        pc.list_flatten(old.filter(pa.array(updates))).flatten(),
    )
    for column, text in zip(table.columns, texts, strict=True):
        if column.is_handle_key and text.null_count:
            raise InvalidTree(f"a message has no value of {column.name!r:.80}, which is in the key")
    if updates.any():
        old_texts = _completed(data, texts, old_texts, updates, table)
    ts = pc.fill_null(extension.field("commitTs"), 0).to_numpy()
    if (ts < 0).any():
        raise InvalidTree(f"a message has the commit ts {int(ts.min())}")
    return CanalRows(op, ts.astype(np.uint64), _typed(texts, table), _typed(old_texts, table))


def _with_newlines(data: bytes, terminator: bytes) -> bytes:
    """The messages one per line, as Arrow wants them. A terminator of another kind may also stand in a value, but there no quote follows that is not escaped."""
    if terminator in (b"\r\n", b"\n") or not data:
        return data
    if not data.endswith(terminator):
        raise InvalidTree("the last message has no end: the file is torn, or has another terminator")
    return data[: -len(terminator)].replace(b"}" + terminator + b'{"', b'}\n{"') + b"\n"


def _typed(texts: list[pa.Array], table: TableInfo) -> list[pa.Array]:
    return [canal_values(text, column) for text, column in zip(texts, table.columns, strict=True)]


def _chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _lengths(lists: pa.ListArray) -> set[int]:
    return set(pc.unique(pc.fill_null(pc.list_value_length(lists), 0)).to_pylist())


def _completed(
    data: bytes, new: list[pa.Array], old: list[pa.Array], updates: np.ndarray, table: TableInfo
) -> list[pa.Array]:
    """The old values, with those of the new row for columns that a message leaves out."""
    mask = pa.array(updates)
    new = [text.filter(mask) for text in new]
    doubtful = np.zeros(len(old[0]), bool)
    for old_text, new_text in zip(old, new, strict=True):
        doubtful |= pc.and_(old_text.is_null(), new_text.is_valid()).to_numpy(zero_copy_only=False)
    if not doubtful.any():
        return old
    lines = [line for line in data.split(b"\n") if line.strip()]
    if len(lines) != len(updates):
        raise InvalidTree(
            "the messages are not one per line: give the settings that the tree was written with"
        )
    places = np.flatnonzero(updates)[doubtful]
    given = [json.loads(lines[place])["old"][0].keys() for place in places.tolist()]
    completed = []
    for column, old_text, new_text in zip(table.columns, old, new, strict=True):
        missing = np.zeros(len(doubtful), bool)
        missing[doubtful] = [column.name not in names for names in given]
        completed.append(pc.if_else(pa.array(missing), new_text, old_text))
    return completed
