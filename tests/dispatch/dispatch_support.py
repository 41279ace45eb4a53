"""Row batches to dispatch, without a log."""

import numpy as np
import pyarrow as pa

from tidemark.wire import types
from tidemark.wire.rows import DELETE, INSERT, UPDATE, Changes, RowBatch
from tidemark.wire.table_info import Column, TableInfo


def batch_of(columns: dict[Column, list], ops: list[int] | None = None, commit_ts: int = 7) -> RowBatch:
    """A batch whose physical rows are the columns' values, inserts unless `ops` says otherwise."""
    table = TableInfo.build("shop", "T", 1, 1, columns=list(columns))
    arrays = [pa.array(values, types.arrow_type(column)) for column, values in columns.items()]
    ops = [INSERT] * len(arrays[0]) if ops is None else ops
    pre, post, row = [], [], 0
    for op in ops:
        pre.append(row if op != INSERT else -1)
        row += op == UPDATE
        post.append(row if op != DELETE else -1)
        row += 1
    n = len(ops)
    numbers = np.full(n, commit_ts, np.uint64)
    changes = Changes(
        op=np.array(ops, np.uint8),
        pre=np.array(pre, np.int64),
        post=np.array(post, np.int64),
        start_ts=numbers,
        commit_ts=numbers,
        seq=numbers,
        epoch=numbers,
        physical_table_id=np.ones(n, np.int64),
        row_key=pa.array([b""] * n, pa.binary()),
    )
    return RowBatch(
        table, pa.RecordBatch.from_arrays(arrays, names=[c.name for c in columns]), changes, b"\0" * 16
    )
