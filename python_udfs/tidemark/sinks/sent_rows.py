"""The row changes that a changefeed sends, for commands and libraries that have no models. Their table knows under which name it is sent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tidemark.config.settings import Settings
from tidemark.dispatch.changefeed_filter import ChangefeedFilter
from tidemark.dispatch.errors import SharedTarget
from tidemark.dispatch.routing import Routing
from tidemark.dispatch.row_policy import NOT_SENT, RowPolicy
from tidemark.sinks.row_batches import take
from tidemark.wire.rows import DELETE, NO_ROW, RowBatch
from tidemark.wire.table_info import TableInfo


class SentRows:
    def __init__(self, settings: Settings, *, table_flags: bool = True):
        """`table_flags=False`: rows of soft-delete and active-active tables as they came."""
        self._filter = ChangefeedFilter(settings.changefeed)
        self._routing = Routing.of(settings)
        # Where tables are written to -> name and id of the first that came.
        self._targets: dict[tuple[str, str], tuple[str, int]] = {}
        self._policy = RowPolicy(settings, table_flags=table_flags)

    def takes(self, table: TableInfo) -> bool:
        """Whether rows of a table can be sent at all."""
        return self._filter.takes_table(table.schema, table.table)

    def of(self, batch: RowBatch) -> RowBatch | None:
        """The row changes that are sent, as what they are sent; None where there are none."""
        if not self.takes(batch.table):
            return None
        ops = self._policy.ops(batch)
        if self._routing:
            batch = replace(batch, table=self._routed(batch.table))
        sent = take(batch, np.flatnonzero(ops != NOT_SENT))
        op, changes = ops[ops != NOT_SENT], sent.changes
        if not len(op):
            return None
        if np.array_equal(op, changes.op):
            return sent
        post = np.where(op == DELETE, NO_ROW, changes.post)
        return replace(sent, changes=replace(changes, op=op, post=post))

    def _routed(self, table: TableInfo) -> TableInfo:
        table = self._routing.table(table)
        name, target = f"{table.schema}.{table.table}", (table.target_schema, table.target_table)
        first, first_id = self._targets.setdefault(target, (name, table.table_id))
        # A table that is renamed keeps its id.
        if name != first and table.table_id != first_id:
            raise SharedTarget(
                f"{first} and {name} would both be written as {'.'.join(target)}, and their rows would replace each other: give each a name of "
                "its own, for example with target-table = '{schema}_{table}', or leave one out with the filter"
            )
        return table
