"""What becomes of row changes, for tools that have no models: the same rules, in the same order, as the model `row_policy`, which is what sinks go by.

1. ignore-txn-start-ts leaves out transactions;
2. event filters leave out row changes of some tables by their kind, and updates by the columns that they change;
3. with bdr-mode, rows that came from another cluster are not sent on;
4. with enable-active-active, deletes are not sent;
5. in tables with the flags of soft delete or active-active, hard deletes are not sent, and an update that soft-deletes a row is sent as a delete of the old row. Such a table
   without the column of soft deletes is refused: all its deletes would vanish.

Expressions on values are refused: only the models evaluate them. Tables that the changefeed's filter leaves out are a matter of ChangefeedFilter. A test compares this module with the model.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.config.changefeed import Changefeed
from tidemark.config.settings import Settings
from tidemark.dispatch.errors import ExpressionsNeedModels, MissingSoftDeleteColumn
from tidemark.dispatch.table_filter import TableFilter
from tidemark.wire.rows import DELETE, INSERT, NO_ROW, UPDATE, RowBatch
from tidemark.wire.table_info import TableInfo
from tidemark.wire.text import canonical_text

# In place of an op.
NOT_SENT = 255

_OPS = {"insert": INSERT, "update": UPDATE, "delete": DELETE}
_ORIGIN_TS, _SOFTDELETE_TIME = "_tidb_origin_ts", "_tidb_softdelete_time"
_ZERO_TIME = r"^[0 :.-]*$"


class RowPolicy:
    def __init__(self, settings: Settings, *, table_flags: bool = True):
        """`table_flags=False`: without rule 5."""
        changefeed = settings.changefeed
        _refuse_expressions(changefeed)
        self._table_flags = table_flags
        self._starts_from_zero = settings.compat.soft_delete_from_zero
        self._bdr_mode, self._active_active = changefeed.bdr_mode, changefeed.enable_active_active
        self._start_ts = np.array(changefeed.filter.ignore_txn_start_ts, np.uint64)
        self._filters = [
            (
                TableFilter(each.matcher, case_sensitive=changefeed.case_sensitive),
                [_OPS[op] for op in each.ignored_ops],
                frozenset(name.lower() for name in each.ignore_update_only_columns),
            )
            for each in changefeed.filter.event_filters
        ]

    def ops(self, batch: RowBatch) -> np.ndarray:
        """What each row change is sent as: INSERT, UPDATE, DELETE, or NOT_SENT."""
        op, table = batch.changes.op, batch.table
        dropped = np.isin(batch.changes.start_ts, self._start_ts) | self._is_ignored(batch)
        if self._bdr_mode and _ORIGIN_TS in table.columns_by_name:
            dropped |= _values(batch, _ORIGIN_TS, batch.changes.post).is_valid().to_numpy(False)
        is_flagged = self._table_flags and (table.is_active_active or table.is_soft_delete)
        if is_flagged:
            self._check_soft_delete_column(table)
        if self._active_active or is_flagged:
            dropped |= op == DELETE
        sent = np.where(dropped, NOT_SENT, op).astype(np.uint8)
        if is_flagged and not self._active_active:
            sent[~dropped & (op == UPDATE) & self._becomes_deleted(batch)] = DELETE
        return sent

    def _is_ignored(self, batch: RowBatch) -> np.ndarray:
        changes, table = batch.changes, batch.table
        found = np.zeros(len(changes), bool)
        for matcher, ops, columns in self._filters:
            if not matcher.matches(table.schema, table.table):
                continue
            found |= np.isin(changes.op, ops)
            if columns:
                found |= (changes.op == UPDATE) & ~_differs(batch, _other_columns(table, columns))
        return found

    def _check_soft_delete_column(self, table: TableInfo) -> None:
        """In active-active mode only active-active tables have soft deletes."""
        if _SOFTDELETE_TIME in table.columns_by_name or (self._active_active and not table.is_active_active):
            return
        kind = "an active-active" if table.is_active_active else "a soft-delete"
        raise MissingSoftDeleteColumn(
            f"{table.schema}.{table.table} is {kind} table and has no column {_SOFTDELETE_TIME}, so all its deletes would "
            "be lost; add the column upstream, or leave the table out with the filter of the changefeed"
        )

    def _becomes_deleted(self, batch: RowBatch) -> np.ndarray:
        old, new = (
            self._is_there(_texts(batch, _SOFTDELETE_TIME, rows))
            for rows in (batch.changes.pre, batch.changes.post)
        )
        return old & ~new

    def _is_there(self, times: pa.Array) -> np.ndarray:
        """Whether a value of _tidb_softdelete_time says that the row is there."""
        if not self._starts_from_zero:
            return times.is_null().to_numpy(False)
        return pc.fill_null(pc.match_substring_regex(times, _ZERO_TIME), True).to_numpy(False)


def _refuse_expressions(changefeed: Changefeed) -> None:
    for index, event_filter in enumerate(changefeed.filter.event_filters):
        for name in event_filter.value_expressions:
            raise ExpressionsNeedModels(
                f"filter.event-filters[{index}].{name} is evaluated by the models only: run the sink with dbt, or look at the model row_policy"
            )


def _other_columns(table: TableInfo, names: frozenset[str]) -> list[str]:
    return [column.name for column in table.columns if column.name.lower() not in names]


def _differs(batch: RowBatch, names: list[str]) -> np.ndarray:
    """Whether the old and the new row differ in one of these columns."""
    found = np.zeros(len(batch.changes), bool)
    for name in names:
        old, new = (_texts(batch, name, rows) for rows in (batch.changes.pre, batch.changes.post))
        differs = pc.fill_null(pc.not_equal(old, new), False).to_numpy(False)
        found |= differs | (old.is_null().to_numpy(False) != new.is_null().to_numpy(False))
    return found


def _values(batch: RowBatch, name: str, rows: np.ndarray) -> pa.Array:
    """A column of the given images; null where there is none."""
    return batch.columns.column(name).take(pa.array(rows, mask=rows == NO_ROW))


def _texts(batch: RowBatch, name: str, rows: np.ndarray) -> pa.Array:
    return canonical_text(_values(batch, name, rows), batch.table.columns_by_name[name])
