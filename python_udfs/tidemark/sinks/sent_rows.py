"""The row changes that a changefeed sends, for commands and libraries that have no models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tidemark.config.settings import Settings
from tidemark.dispatch.changefeed_filter import ChangefeedFilter
from tidemark.dispatch.row_policy import NOT_SENT, RowPolicy
from tidemark.sinks.row_batches import take
from tidemark.wire.rows import DELETE, NO_ROW, RowBatch
from tidemark.wire.table_info import TableInfo


class SentRows:
    def __init__(self, settings: Settings, *, table_flags: bool = True):
        """`table_flags=False`: rows of soft-delete and active-active tables as they came."""
        self._filter = ChangefeedFilter(settings.changefeed)
        self._policy = RowPolicy(settings, table_flags=table_flags)

    def takes(self, table: TableInfo) -> bool:
        """Whether rows of a table can be sent at all."""
        return self._filter.takes_table(table.schema, table.table)

    def of(self, batch: RowBatch) -> RowBatch | None:
        """The row changes that are sent, as what they are sent; None where there are none."""
        if not self.takes(batch.table):
            return None
        ops = self._policy.ops(batch)
        sent = take(batch, np.flatnonzero(ops != NOT_SENT))
        op, changes = ops[ops != NOT_SENT], sent.changes
        if not len(op):
            return None
        if np.array_equal(op, changes.op):
            return sent
        post = np.where(op == DELETE, NO_ROW, changes.post)
        return replace(sent, changes=replace(changes, op=op, post=post))
