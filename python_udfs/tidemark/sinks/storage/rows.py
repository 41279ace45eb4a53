"""Row changes of a folder stream put in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidemark.sinks.row_batches import joined, take
from tidemark.wire.rows import RowBatch


def in_order(batches: Sequence[RowBatch]) -> RowBatch:
    """The row changes of a stream by (commit ts, start ts, physical table id, seq); where these are equal, as they came."""
    batch = joined(batches)
    changes = batch.changes
    order = np.lexsort((changes.seq, changes.physical_table_id, changes.start_ts, changes.commit_ts))
    return take(batch, order)
