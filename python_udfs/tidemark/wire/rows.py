"""RowBatch: the row changes of one or several BatchDML payloads of one table version, columnar."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.wire.table_info import TableInfo

DELETE, INSERT, UPDATE = 0, 1, 2
OP_NAMES = ("delete", "insert", "update")


@dataclass(frozen=True)
class Changes:
    """One entry per row change; numpy arrays of equal length."""

    op: np.ndarray
    pre: np.ndarray
    post: np.ndarray
    start_ts: np.ndarray
    commit_ts: np.ndarray
    seq: np.ndarray
    epoch: np.ndarray
    physical_table_id: np.ndarray
    row_key: pa.BinaryArray

    def __len__(self) -> int:
        return len(self.op)


@dataclass(frozen=True)
class RowBatch:
    table: TableInfo
    columns: pa.RecordBatch
    changes: Changes
    dispatcher_id: bytes
