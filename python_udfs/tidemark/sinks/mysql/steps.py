"""RowBatch -> steps: which statements, in which order, with which parameters.

A step is one statement and its rows. Rows of one key keep their order within a step and across steps; a writer may spread rows over connections by
their `lane` number, as long as equal numbers stay together.

Active-active (`lww_steps`): every insert and update is an upsert, deletes are ignored. A row whose _tidb_origin_ts is set was written by a changefeed;
to a TiDB it is not sent again (`skip_replicated`), or it would travel in circles.

Normal mode (`normal_steps`), table with a key: only what a key looks like at the end counts, so all deletes go first and then all rows that
are there are replaced, in the order of their last changes. Repeating this, or parts of it, ends in the same rows. REPLACE also removes a row that has the
same value in a secondary unique key: upstream that row had changed before, or changes in the same transaction, and so is written before or after. To
keep it so, a table with such keys has one lane.
Without a key: every change in order; an update is a delete and an insert. Repeating an insert gives a second row, as it does in TiCDC.
With unique keys that may be NULL (and no other key): the same by transactions, deletes first, and rows are replaced. A value of the key that was written before is taken by
the row that has it now, so repeating ends in the same rows. Only rows with NULL in all of these keys are there twice then: nothing tells them apart.
A batch has to hold all rows of its transactions then (decided.py sees to it).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.compat import Compat
from tidemark.sinks.mysql.params import column_params, key_codes, key_hashes, row_params
from tidemark.sinks.mysql.statements import (
    COMMIT_TS,
    ORIGIN_TS,
    Statement,
    delete_rows,
    delete_whole_row,
    handle_columns,
    has_other_unique_keys,
    insert_rows,
    lww_upsert,
    replace_rows,
    unique_keys,
)
from tidemark.wire.rows import NO_ROW, Changes, RowBatch
from tidemark.wire.table_info import TableInfo


@dataclass(frozen=True)
class Step:
    """`params`: a line per row, a column per parameter. `lanes` (uint64) has an entry per row."""

    statement: Statement
    params: pa.RecordBatch
    lanes: np.ndarray
    # Whether writing a row twice is the same as writing it once.
    repeatable: bool = True

    def __len__(self) -> int:
        return self.params.num_rows

    @property
    def rows(self) -> list[tuple]:
        return row_params(self.params)


def lww_steps(
    batch: RowBatch, compat: Compat, *, skip_replicated: bool, commit_ts_column: str = COMMIT_TS
) -> list[Step]:
    """The upserts of a batch of an active-active table, in order."""
    statement = lww_upsert(batch.table, compat, commit_ts_column=commit_ts_column)
    rows, commit_ts = _lww_rows(batch, skip_replicated)
    step = _lww_step(statement, batch.table, rows, commit_ts, compat)
    return [step] if len(step) else []


def ticdc_statements(
    batch: RowBatch, compat: Compat, batching: str, *, skip_replicated: bool
) -> list[tuple[str, list]]:
    """The upserts cut as TiCDC cuts them, with their parameters: `normal` (one per row), `per-event` (one per transaction) or `batch`
    (one, with the last change of each key).
    """
    statement = lww_upsert(batch.table, compat)
    changes = batch.changes
    put = np.flatnonzero(changes.post != NO_ROW)
    commits, starts = changes.commit_ts[put], changes.start_ts[put]
    bounds = 1 + np.flatnonzero((commits[1:] != commits[:-1]) | (starts[1:] != starts[:-1]))
    if batching == "batch" and len(bounds) and batch.table.handle_key:
        # The last change of a key is chosen before replicated rows are dropped.
        keys = key_codes(batch.columns.take(changes.post[put]), handle_columns(batch.table), fold_case=True)
        last = np.zeros(keys.max(initial=-1) + 1, dtype=np.int64)
        last[keys] = np.arange(len(keys))
        put = put[np.sort(last)]
    groups = {
        "batch": [put],
        "per-event": np.split(put, bounds),
        "normal": np.split(put, np.arange(1, len(put))),
    }[batching]
    made = []
    for group in groups:
        rows, commit_ts = _lww_rows(batch, skip_replicated, group)
        step = _lww_step(statement, batch.table, rows, commit_ts, compat)
        if len(step):
            made.append((statement.sql(len(step)), [value for row in step.rows for value in row]))
    return made


def normal_steps(batch: RowBatch) -> list[Step]:
    """Inserts, updates and deletes of a batch."""
    return list(_keyed(batch) if batch.table.handle_key else _keyless(batch))


def _lww_rows(
    batch: RowBatch, skip_replicated: bool, chosen: np.ndarray | None = None
) -> tuple[pa.RecordBatch, np.ndarray]:
    """(new rows, their commit ts)"""
    post = batch.changes.post if chosen is None else batch.changes.post[chosen]
    commit_ts = batch.changes.commit_ts if chosen is None else batch.changes.commit_ts[chosen]
    kept = post != NO_ROW
    if skip_replicated:
        local = batch.columns.column(ORIGIN_TS).is_null().to_numpy(zero_copy_only=False)
        kept &= local[post]
    return batch.columns.take(post[kept]), commit_ts[kept]


def _lww_step(
    statement: Statement, table: TableInfo, rows: pa.RecordBatch, commit_ts: np.ndarray, compat: Compat
) -> Step:
    origin = pa.array(commit_ts, pa.uint64())
    if compat.lww_keeps_origin_ts:
        origin = pc.coalesce(rows.column(ORIGIN_TS).cast(pa.uint64()), origin)
    place = rows.schema.get_field_index(ORIGIN_TS)
    rows = rows.set_column(place, ORIGIN_TS, origin)
    return _step(statement, rows, key_hashes(rows, handle_columns(table)), bool(table.handle_key))


def _keyed(batch: RowBatch) -> Iterator[Step]:
    table, changes = batch.table, batch.changes
    key = handle_columns(table)
    # A change takes its old row away and then puts its new one.
    events = np.stack([changes.pre, changes.post], axis=1).reshape(-1)
    puts = np.tile([False, True], len(changes))
    there = events != NO_ROW
    events, puts = events[there], puts[there]
    keys = key_codes(batch.columns, key)[events]
    last = np.full(keys.max(initial=-1) + 1, -1, dtype=np.int64)
    last[keys] = np.arange(len(keys))
    last = np.sort(last[last >= 0])
    is_free = not has_other_unique_keys(table)
    for statement, chosen in (
        (delete_rows(table), last[~puts[last]]),
        (replace_rows(table), last[puts[last]]),
    ):
        if len(chosen):
            rows = batch.columns.take(events[chosen])
            yield _step(statement, rows, key_hashes(rows, key) if is_free else _one_lane(len(chosen)))


def _keyless(batch: RowBatch) -> Iterator[Step]:
    table, changes = batch.table, batch.changes
    events = np.stack([changes.pre, changes.post], axis=1).reshape(-1)
    puts = np.tile([False, True], len(changes))
    there = events != NO_ROW
    events, puts = events[there], puts[there]
    unique = unique_keys(table)
    if unique:
        # Within a transaction a value of a key may move from one row to another.
        order = np.lexsort((puts, np.repeat(_transactions(changes), 2)[there]))
        events, puts = events[order], puts[order]
    delete, insert = delete_whole_row(table), replace_rows(table) if unique else insert_rows(table)
    for run in np.split(np.arange(len(events)), np.flatnonzero(np.diff(puts)) + 1):
        if len(run):
            rows = batch.columns.take(events[run])
            statement = insert if puts[run[0]] else delete
            yield _step(statement, rows, _one_lane(len(run)), repeatable=_all_have_one(unique, rows))


def _transactions(changes: Changes) -> np.ndarray:
    """The number of its transaction for every change; those of one transaction follow each other."""
    commits, starts = changes.commit_ts, changes.start_ts
    number = np.zeros(len(changes), np.int64)
    np.cumsum((commits[1:] != commits[:-1]) | (starts[1:] != starts[:-1]), out=number[1:])
    return number


def _all_have_one(keys: list[tuple[str, ...]], rows: pa.RecordBatch) -> bool:
    """Whether every row has one of these keys without a NULL in it."""
    known = np.zeros(rows.num_rows, bool)
    for key in keys:
        valid = [rows.column(name).is_valid().to_numpy(zero_copy_only=False) for name in key]
        known |= np.logical_and.reduce(valid)
    return bool(known.all())


def _one_lane(count: int) -> np.ndarray:
    return np.zeros(count, dtype=np.uint64)


def _step(statement: Statement, rows: pa.RecordBatch, lanes: np.ndarray, repeatable: bool = True) -> Step:
    names = [column.name for column in statement.columns]
    params = [column_params(rows.column(column.name), column) for column in statement.columns]
    return Step(statement, pa.RecordBatch.from_arrays(params, names=names), lanes, repeatable)
