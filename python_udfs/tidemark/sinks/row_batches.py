"""Row changes picked from a batch, and batches put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pyarrow as pa

from tidemark.errors import TidemarkError
from tidemark.wire.rows import NO_ROW, Changes, RowBatch


def take(batch: RowBatch, which: np.ndarray) -> RowBatch:
    """Some row changes of a batch; the rows themselves are shared."""
    if len(which) == len(batch.changes) and np.array_equal(which, np.arange(len(which))):
        return batch
    return replace(batch, changes=_picked(batch.changes, which))


def _picked(changes: Changes, which: np.ndarray) -> Changes:
    arrays = {
        item.name: getattr(changes, item.name)[which] for item in fields(Changes) if item.name != "row_key"
    }
    return Changes(**arrays, row_key=changes.row_key.take(pa.array(which)))


def joined(batches: Sequence[RowBatch]) -> RowBatch:
    """Batches of one table version as one."""
    if len(batches) == 1:
        return batches[0]
    schema = batches[0].columns.schema
    if any(batch.columns.schema != schema for batch in batches):
        table = batches[0].table
        raise TidemarkError(f"one version of {table.schema}.{table.table} has two different lists of columns")
    starts = np.cumsum([0, *(batch.columns.num_rows for batch in batches)])
    changes = [batch.changes for batch in batches]

    def images(name: str) -> np.ndarray:
        moved = (
            np.where(getattr(part, name) == NO_ROW, NO_ROW, getattr(part, name) + start)
            for part, start in zip(changes, starts, strict=False)
        )
        return np.concatenate(list(moved))

    arrays = {
        item.name: np.concatenate([getattr(part, item.name) for part in changes])
        for item in fields(Changes)
        if item.name not in ("row_key", "pre", "post")
    }
    row_key = pa.concat_arrays([part.row_key for part in changes])
    together = Changes(**arrays, pre=images("pre"), post=images("post"), row_key=row_key)
    table = pa.Table.from_batches([batch.columns for batch in batches]).combine_chunks()
    columns = table.to_batches()[0] if table.num_rows else batches[0].columns
    return replace(batches[0], columns=columns, changes=together)


def compacted(batch: RowBatch) -> RowBatch:
    """The same row changes without the physical rows that none of them uses, where these are many."""
    changes = batch.changes
    images = np.concatenate([changes.pre, changes.post])
    used = np.zeros(batch.columns.num_rows, bool)
    used[images[images != NO_ROW]] = True
    kept = int(used.sum())
    if kept * 4 > batch.columns.num_rows * 3:
        return batch
    moved = np.cumsum(used) - 1

    def image(rows: np.ndarray) -> np.ndarray:
        return np.where(rows == NO_ROW, NO_ROW, moved[rows])

    return replace(
        batch,
        columns=batch.columns.filter(pa.array(used)),
        changes=replace(changes, pre=image(changes.pre), post=image(changes.post)),
    )
