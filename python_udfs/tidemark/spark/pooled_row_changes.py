"""Row changes of many tables as they stand in the warehouse, in one record batch: what `row_changes` makes of the rows of one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.encode.warehouse_pools import PooledRows
from tidemark.joined_frames import FrameGroup
from tidemark.pooled_frames import PooledFrames, decode_groups
from tidemark.spark.row_changes import ARROW_SCHEMA, ORIGIN_TS, SOFTDELETE_TIME
from tidemark.time_zones import shifted
from tidemark.wire.cell_pools import pool_column
from tidemark.wire.errors import InvalidField
from tidemark.wire.rows import NO_ROW, Changes, op_names
from tidemark.wire.types import TIMESTAMP


class LoggedGroup(NamedTuple):
    """Frames of one table, and where they are from."""

    upstream_id: str
    file: str
    group: FrameGroup
    # The time zone in which timestamps were sent, where it is not UTC.
    zone: str | None
    # The transactions that are wanted of the frame at an offset, by seq.
    wanted: Callable[[int], np.ndarray]


def pooled_row_change_batch(groups: Sequence[LoggedGroup]) -> pa.RecordBatch:
    """The wanted row changes of all groups. InvalidField where anything is wrong with any of them."""
    pooled = decode_groups([logged.group for logged in groups])
    which = np.flatnonzero(_is_wanted(pooled, groups)[pooled.transaction])
    changes = _picked(pooled.changes, which)
    frame = pooled.frame[which]
    group = pooled.frame_group[frame]
    try:
        texts = _texts(pooled, groups, changes)
    except pa.ArrowException as error:
        raise InvalidField(f"a column holds what it cannot: {error}") from None
    tables = [logged.group.schema.table for logged in groups]
    count = len(which)

    def word(values: Sequence[str]) -> pa.DictionaryArray:
        numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
        codes = np.array([numbers[value] for value in values], np.int32)
        return pa.DictionaryArray.from_arrays(pa.array(codes[group]), pa.array(list(numbers)))

    def each(values: Sequence[int] | Sequence[bool], kind: type = np.int64) -> pa.Array:
        return pa.array(np.array(values, kind)[group])

    columns = {
        "upstream_id": word([logged.upstream_id for logged in groups]),
        "file": word([logged.file for logged in groups]),
        "offset": pa.array(pooled.frame_offset[frame]),
        "dispatcher_id": word([logged.group.dispatcher_id.hex() for logged in groups]),
        "epoch": pa.array(changes.epoch.astype(np.int64)),
        "seq": pa.array(changes.seq.astype(np.int64)),
        "row_number": pa.array(pooled.row_number[which].astype(np.int32)),
        "schema_name": word([table.schema for table in tables]),
        "table_name": word([table.table for table in tables]),
        "table_id": each([table.table_id for table in tables]),
        "physical_table_id": pa.array(changes.physical_table_id),
        "table_version": each([table.version for table in tables]),
        "table_info_version": each([logged.group.schema.table_info_version for logged in groups]),
        "start_ts": pa.array(changes.start_ts.astype(np.int64)),
        "commit_ts": pa.array(changes.commit_ts.astype(np.int64)),
        "op": pa.DictionaryArray.from_arrays(pa.array(changes.op.astype(np.int32)), op_names()),
        "row_key": changes.row_key,
        **texts,
        "is_active_active": each([table.is_active_active for table in tables], bool),
        "is_soft_delete": each([table.is_soft_delete for table in tables], bool),
        "error_reason": pa.nulls(count, pa.string()),
        "error_message": pa.nulls(count, pa.string()),
        "error_bytes": pa.nulls(count, pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns, schema=ARROW_SCHEMA)


def _is_wanted(pooled: PooledFrames, groups: Sequence[LoggedGroup]) -> np.ndarray:
    """For each transaction. A frame may also hold some that were sent twice, or are not complete yet."""
    wanted = [logged.wanted(offset) for logged in groups for offset, _ in logged.group.frames]
    frame = np.repeat(np.arange(len(wanted)), [len(seqs) for seqs in wanted])
    seq = pooled.transactions.column("seq", np.uint64)
    known, number = np.unique(np.concatenate([seq, *wanted]), return_inverse=True)
    return np.isin(
        pooled.transaction_frame * len(known) + number[: len(seq)], frame * len(known) + number[len(seq) :]
    )


def _picked(changes: Changes, which: np.ndarray) -> Changes:
    if len(which) == len(changes):
        return changes
    arrays = {
        item.name: getattr(changes, item.name)[which] for item in fields(Changes) if item.name != "row_key"
    }
    return replace(changes, **arrays, row_key=changes.row_key.take(pa.array(which)))


def _texts(pooled: PooledFrames, groups: Sequence[LoggedGroup], changes: Changes) -> dict[str, pa.Array]:
    """The columns that are made of the values of rows."""
    keys = [_handle_places(logged) for logged in groups]
    rows = PooledRows(
        pooled.cells,
        _values(pooled, groups),
        pooled.layouts,
        pooled.layout[pooled.frame_group],
        keys,
        pooled.frame_group,
    )
    values = rows.value_texts()
    key = rows.key_texts(changes.last_images())
    return {
        "key": key,
        "old_key": _old_keys(rows, changes, key),
        "pre": values.take(pa.array(changes.pre, mask=changes.pre == NO_ROW)),
        "post": values.take(pa.array(changes.post, mask=changes.post == NO_ROW)),
        "old_softdelete_time": rows.column(SOFTDELETE_TIME, changes.pre, pa.string()),
        "new_softdelete_time": rows.column(SOFTDELETE_TIME, changes.post, pa.string()),
        "origin_ts": rows.column(ORIGIN_TS, changes.post, pa.int64()),
    }


def _handle_places(logged: LoggedGroup) -> list[int]:
    table = logged.group.schema.table
    if not table.handle_key:
        return []
    names = [column.name for column in table.columns]
    return [names.index(name) for name in table.handle_key]


def _values(pooled: PooledFrames, groups: Sequence[LoggedGroup]) -> dict[int, pa.Array]:
    """The values of the pools, with timestamps in UTC."""
    values = {number: pool.values for number, pool in pooled.cells.pools.items()}
    zones = {logged.zone for logged in groups if logged.zone}
    for zone in sorted(zones):
        is_there = np.array([logged.zone == zone for logged in groups])[pooled.frame_group]
        for number, pool in pooled.cells.pools.items():
            if pool_column(number).mysql_type == TIMESTAMP:
                mask = pa.array(np.repeat(is_there[pool.chunk], pool.count))
                values[number] = pc.replace_with_mask(
                    values[number], mask, shifted(pool.values.filter(mask), zone)
                )
    return values


def _old_keys(rows: PooledRows, changes: Changes, keys: pa.Array) -> pa.Array:
    """The handle key that an update took from its row, null where it left the key as it was."""
    updates = np.flatnonzero((changes.pre != NO_ROW) & (changes.post != NO_ROW))
    changed = updates[rows.differ_in_key(changes.pre[updates], changes.post[updates])]
    if not len(changed):
        return pa.nulls(len(changes), pa.string())
    places = np.full(len(changes), -1)
    places[changed] = np.arange(len(changed))
    found = rows.key_texts(changes.pre[changed]).take(pa.array(places, mask=places < 0))
    # What a collation takes for equal is the same key.
    return pc.if_else(pc.fill_null(pc.equal(found, keys), False), pa.scalar(None, pa.string()), found)
