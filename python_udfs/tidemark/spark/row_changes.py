"""Row changes as they stand in the warehouse, in the model int_row_changes: JSON texts of key and images, and what the models ask of them as columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.encode.warehouse import key_texts, value_texts
from tidemark.joined_frames import BadFrame, DecodedFrames
from tidemark.spark.event_log import QUARANTINE_BYTES
from tidemark.time_zones import in_utc
from tidemark.wire.errors import InvalidField
from tidemark.wire.rows import NO_ROW, RowBatch, op_names
from tidemark.wire.table_info import TableInfo

# A few words, or one for all rows: parquet takes them as they are.
_WORD = pa.dictionary(pa.int32(), pa.string())
ARROW_SCHEMA = pa.schema(
    [
        ("upstream_id", _WORD),
        ("file", _WORD),
        ("offset", pa.int64()),
        ("dispatcher_id", _WORD),
        ("epoch", pa.int64()),
        ("seq", pa.int64()),
        ("row_number", pa.int32()),
        ("schema_name", _WORD),
        ("table_name", _WORD),
        ("table_id", pa.int64()),
        ("physical_table_id", pa.int64()),
        ("table_version", pa.int64()),
        ("table_info_version", pa.int64()),
        ("start_ts", pa.int64()),
        ("commit_ts", pa.int64()),
        ("op", _WORD),
        ("row_key", pa.binary()),
        ("key", pa.string()),
        ("old_key", pa.string()),
        ("pre", pa.string()),
        ("post", pa.string()),
        ("is_active_active", pa.bool_()),
        ("is_soft_delete", pa.bool_()),
        ("old_softdelete_time", pa.string()),
        ("new_softdelete_time", pa.string()),
        ("origin_ts", pa.int64()),
        ("error_reason", pa.string()),
        ("error_message", pa.string()),
        ("error_bytes", pa.binary()),
    ]
)
_SQL_TYPES = {
    _WORD: "string",
    pa.int64(): "bigint",
    pa.int32(): "int",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
}
SCHEMA = ", ".join(f"`{field.name}` {_SQL_TYPES[field.type]}" for field in ARROW_SCHEMA)
# The same with words spelled out, as Spark wants them.
PLAIN_SCHEMA = pa.schema(
    [(field.name, pa.string() if field.type == _WORD else field.type) for field in ARROW_SCHEMA]
)

# The hidden columns of soft-delete and active-active tables.
ORIGIN_TS, SOFTDELETE_TIME = "_tidb_origin_ts", "_tidb_softdelete_time"


def error_batch(upstream_id: str, file: str, frame: BadFrame) -> pa.RecordBatch:
    """A frame whose rows cannot be decoded: its place, the reason, and nothing else."""
    row = {
        "upstream_id": upstream_id,
        "file": file,
        "offset": frame.offset,
        "error_reason": frame.error.reason,
        "error_message": str(frame.error),
        "error_bytes": bytes(frame.payload[:QUARANTINE_BYTES]),
    }
    return pa.RecordBatch.from_pylist([row], schema=ARROW_SCHEMA)


def row_change_batch(
    upstream_id: str, file: str, decoded: DecodedFrames, table_info_version: int, zone: str | None = None
) -> pa.RecordBatch:
    """Decoded rows as they stand in the warehouse. InvalidField where a hidden column holds what it cannot.

    `zone`: the time zone in which timestamps were sent, where it is not UTC, in which they stand in the warehouse.
    """
    batch = decoded.batch
    if zone:
        batch = replace(batch, columns=in_utc(batch.columns, batch.table, zone))
    table, changes, count = batch.table, batch.changes, len(batch.changes)
    values = value_texts(batch.columns, table)
    pre, post = (pa.array(rows, mask=rows == NO_ROW) for rows in (changes.pre, changes.post))
    keys = _keys(batch)
    columns = {
        "upstream_id": _word(upstream_id, count),
        "file": _word(file, count),
        "offset": pa.array(decoded.offset),
        "dispatcher_id": _word(batch.dispatcher_id.hex(), count),
        "epoch": pa.array(changes.epoch.astype(np.int64)),
        "seq": pa.array(changes.seq.astype(np.int64)),
        "row_number": pa.array(decoded.row_number.astype(np.int32)),
        "schema_name": _word(table.schema, count),
        "table_name": _word(table.table, count),
        "table_id": _constant(table.table_id, count),
        "physical_table_id": pa.array(changes.physical_table_id),
        "table_version": _constant(table.version, count),
        "table_info_version": _constant(table_info_version, count),
        "start_ts": pa.array(changes.start_ts.astype(np.int64)),
        "commit_ts": pa.array(changes.commit_ts.astype(np.int64)),
        "op": pa.DictionaryArray.from_arrays(pa.array(changes.op.astype(np.int32)), op_names()),
        "row_key": changes.row_key,
        "key": keys,
        "old_key": _old_keys(batch, keys),
        "pre": values.take(pre),
        "post": values.take(post),
        "is_active_active": _constant(table.is_active_active, count),
        "is_soft_delete": _constant(table.is_soft_delete, count),
        "old_softdelete_time": _hidden(batch, SOFTDELETE_TIME, pre, pa.string()),
        "new_softdelete_time": _hidden(batch, SOFTDELETE_TIME, post, pa.string()),
        "origin_ts": _hidden(batch, ORIGIN_TS, post, pa.int64()),
        "error_reason": pa.nulls(count, pa.string()),
        "error_message": pa.nulls(count, pa.string()),
        "error_bytes": pa.nulls(count, pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns, schema=ARROW_SCHEMA)


def _constant(value, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value), count)


def _word(value: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([value]))


def _hidden(batch: RowBatch, name: str, rows: pa.Array, kind: pa.DataType) -> pa.Array:
    """A hidden column of the given images; null for tables that do not have it."""
    if name not in batch.table.columns_by_name:
        return pa.nulls(len(rows), kind)
    values = batch.columns.column(name).take(rows)
    try:
        return values.cast(kind)
    except pa.ArrowException as error:
        # Any table may have a column of this name.
        wanted = "a ts" if kind == pa.int64() else "a time"
        raise InvalidField(
            f"column {name} of {batch.table.schema}.{batch.table.table} holds something else than {wanted}: {error}"
        ) from None


def _keys(batch: RowBatch) -> pa.Array:
    """The handle key of each row, null where the table has none."""
    changes, table = batch.changes, batch.table
    if not table.handle_key:
        return pa.nulls(len(changes), pa.string())
    rows = batch.columns.select(list(table.handle_key)).take(pa.array(changes.last_images()))
    return key_texts(rows, _handle_columns(table))


def _old_keys(batch: RowBatch, keys: pa.Array) -> pa.Array:
    """The handle key that an update took from its row, null where it left the key as it was."""
    changes, table = batch.changes, batch.table
    updates = np.flatnonzero((changes.pre != NO_ROW) & (changes.post != NO_ROW))
    if not table.handle_key or not len(updates):
        return pa.nulls(len(changes), pa.string())
    columns = batch.columns.select(list(table.handle_key))
    old, new = (columns.take(pa.array(images[updates])) for images in (changes.pre, changes.post))
    is_same = np.ones(len(updates), dtype=bool)
    for before, after in zip(old.columns, new.columns, strict=True):
        is_same &= pc.fill_null(pc.equal(before, after), False).to_numpy(zero_copy_only=False)
    if is_same.all():
        return pa.nulls(len(changes), pa.string())
    places = np.full(len(changes), -1)
    places[updates[~is_same]] = np.arange(np.count_nonzero(~is_same))
    texts = key_texts(old.filter(pa.array(~is_same)), _handle_columns(table))
    found = texts.take(pa.array(places, mask=places < 0))
    # What a collation takes for equal is the same key.
    return pc.if_else(pc.fill_null(pc.equal(found, keys), False), pa.scalar(None, pa.string()), found)


def _handle_columns(table: TableInfo):
    return [table.columns_by_name[name] for name in table.handle_key]
