"""Event logs of several clusters that write the same active-active table: what the benchmark of the models reads.

The table has ten columns besides its hidden ones. Every cluster writes random keys in transactions of 50 rows, 1,000 row changes per batch: an insert the first time it
meets a key, then updates, of which one in twenty is a soft delete. Commit ts grow over all clusters, so that nearly every write overwrites another cluster's.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orders_stream import orders_rows, orders_table
from tidemark.wire import types
from tidemark.wire.chunk import encode_chunk
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.dml import INSERT, UPDATE, DMLEvent, pack_keys
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.events.resolved import ResolvedEvent
from tidemark.wire.registry import encode
from tidemark.wire.table_info import Column, TableInfo

START_TS = 470_000_000_000_000_000
BATCH, TRANSACTION = 1_000, 50
SOFT_DELETE_PART = 20


def shared_table(table_id: int) -> TableInfo:
    hidden = [
        ("_tidb_origin_ts", types.BIGINT, {"flen": 20, "flag": types.UNSIGNED}),
        ("_tidb_softdelete_time", types.TIMESTAMP, {"flen": 26, "decimal": 6}),
        ("_tidb_commit_ts", types.BIGINT, {"flen": 20, "flag": types.UNSIGNED}),
    ]
    own = orders_table().columns
    return TableInfo.build(
        "bench",
        "bench_orders",
        table_id,
        START_TS,
        columns=[
            *own,
            *(
                Column(len(own) + place + 1, name, len(own) + place, kind, **more)
                for place, (name, kind, more) in enumerate(hidden)
            ),
        ],
        is_active_active=True,
        is_soft_delete=True,
    )


class Cluster:
    """The log of one cluster, which grows with every call of `write`."""

    def __init__(self, folder: Path, number: int, clusters: int, keys: int, seed: int = 1):
        self.folder, self.number, self.clusters, self.keys = folder, number, clusters, keys
        self._table = shared_table(100 + number)
        self._random = np.random.default_rng([seed, number])
        self._dispatcher = bytes([number]) * 16
        self._known = np.zeros(keys, dtype=bool)
        self._transactions = self._files = 0
        folder.mkdir(parents=True)

    def write(self, changes: int) -> None:
        """A file with so many more row changes; everything up to its end is resolved."""
        with (self.folder / f"{self._files:06d}.bin").open("wb") as log:
            if not self._files:
                log.write(encode(HandshakeEvent(START_TS, 1, 1, self._dispatcher, self._table.to_bytes())))
            for first in range(0, changes, BATCH):
                log.write(encode(self._batch(min(BATCH, changes - first))))
            log.write(
                encode(
                    ResolvedEvent(self._ts(self._transactions), 1, self._transactions + 1, self._dispatcher)
                )
            )
        self._files += 1

    def _ts(self, transaction: int) -> int:
        return START_TS + ((transaction * self.clusters + self.number) << 18)

    def _batch(self, changes: int) -> BatchDMLEvent:
        keys = self._random.integers(0, self.keys, changes)
        first = np.zeros(changes, dtype=bool)
        first[np.unique(keys, return_index=True)[1]] = True
        is_update = self._known[keys] | ~first
        self._known[keys] = True
        row_types = np.repeat(np.where(is_update, UPDATE, INSERT).astype(np.uint8), 1 + is_update)
        images = np.repeat(keys, 1 + is_update)
        ends = np.cumsum(1 + is_update)
        packed = [_record_key(self._table.table_id, key) for key in images.tolist()]
        transactions = []
        for low in range(0, changes, TRANSACTION):
            high = min(low + TRANSACTION, changes)
            begin, end = int(ends[low - 1]) if low else 0, int(ends[high - 1])
            self._transactions += 1
            ts = self._ts(self._transactions)
            transactions.append(
                DMLEvent(
                    dispatcher_id=self._dispatcher,
                    physical_table_id=self._table.table_id,
                    start_ts=ts - 1,
                    commit_ts=ts,
                    seq=self._transactions + 1,
                    epoch=1,
                    row_count=high - low,
                    approximate_size=200 * (end - begin),
                    previous_total_offset=begin,
                    row_types=row_types[begin:end].tobytes(),
                    key_count=end - begin,
                    keys=pack_keys(packed[begin:end]),
                )
            )
        return BatchDMLEvent(
            tuple(transactions), encode_chunk(self._rows(images, row_types == UPDATE), self._table)
        )

    def _rows(self, keys: np.ndarray, is_update: np.ndarray) -> pa.RecordBatch:
        count = len(keys)
        own = orders_rows(orders_table(), self._random, keys)
        deleted = is_update & (self._random.integers(0, SOFT_DELETE_PART, count) == 0)
        hidden = [
            pa.nulls(count, pa.uint64()),
            pc.if_else(pa.array(deleted), "2025-06-01 12:00:00.000000", pa.nulls(count, pa.string())),
            pa.nulls(count, pa.uint64()),
        ]
        return pa.RecordBatch.from_arrays([*own.columns, *hidden], schema=self._table.arrow_schema)


def _record_key(table_id: int, row: int) -> bytes:
    sign = 1 << 63
    return b"t" + (table_id + sign).to_bytes(8, "big") + b"_r" + (row + sign).to_bytes(8, "big")
