"""Row changes of one table to transactions, and transactions to BatchDML events.

Rows of a transaction stand in the order in which TiCDC sends them: deletes, updates, inserts, each by key. A row key is

    t table_id:i64 _r handle:i64            (big-endian, sign bit flipped, so that keys sort as numbers do)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidemark.demo.clock import LOGICAL_BITS
from tidemark.demo.dice import Dice
from tidemark.demo.tables import Images, Table
from tidemark.wire.chunk import encode_chunks
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.dml import INSERT, UPDATE, DMLEvent

MIN_TRANSACTION, MAX_TRANSACTION = 20, 50
SIGN = np.uint64(1 << 63)
KEY_LENGTH = 1 + 8 + 2 + 8
_KEY_BITS = np.uint64(46)
# delete, insert, update -> place in a transaction
_PLACE = np.array([0, 2, 1], dtype=np.uint64)
MAX_START_LAG_MS = 40


@dataclass
class Transactions:
    """The rows of transaction t are [bounds[t], bounds[t + 1]) of the changes in `order`."""

    order: np.ndarray
    bounds: np.ndarray

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def spread(self, per_transaction: np.ndarray) -> np.ndarray:
        return np.repeat(per_transaction, np.diff(self.bounds))


def arrange(op: np.ndarray, key: np.ndarray, largest: int, dice: Dice) -> Transactions:
    """Put row changes together at random into transactions of 20 to 50 rows, at most `largest`."""
    count = len(op)
    sizes = dice.below(count // MIN_TRANSACTION + 1, MAX_TRANSACTION - MIN_TRANSACTION + 1) + MIN_TRANSACTION
    if largest < MAX_TRANSACTION:
        sizes = np.full(count // largest + 1, largest)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    bounds = np.append(bounds[bounds < count], count)
    shuffled = dice.shuffled(count)
    transaction = np.repeat(np.arange(len(bounds) - 1, dtype=np.uint64), np.diff(bounds))
    rank = transaction << np.uint64(2) | _PLACE[op[shuffled]]
    within = np.argsort(rank << _KEY_BITS | key[shuffled])
    return Transactions(shuffled[within], bounds)


def make_batches(
    table: Table,
    dispatcher_id: bytes,
    transactions: Transactions,
    commit_ts: np.ndarray,
    op: np.ndarray,
    before: Images,
    after: Images,
    batch_rows: int,
    dice: Dice,
) -> list[BatchDMLEvent]:
    """Events of at most `batch_rows` row changes, in order. Sequence numbers and epochs are given when an event is sent.

    `commit_ts` has one entry per transaction; `op`, `before` and `after` have one per row change, in the order of the transactions.
    """
    is_update = op == UPDATE
    change = np.repeat(np.arange(len(op)), 1 + is_update)
    first = np.cumsum(1 + is_update) - 1 - is_update
    row_types = op[change]
    is_after = row_types == INSERT
    is_after[first[is_update] + 1] = True
    images = _one_after_the_other(before, after, change, is_after)
    keys = _row_keys(table.table_id, images.key)
    row_bounds = np.append(first, len(change))[transactions.bounds].tolist()
    change_bounds = transactions.bounds.tolist()
    lags = (dice.below(len(commit_ts), MAX_START_LAG_MS) + 1) << LOGICAL_BITS
    start_ts = commit_ts - lags.astype(np.uint64)
    groups = _grouped(change_bounds, batch_rows)
    chunks = encode_chunks(table.rows(images), table.info, [row_bounds[first] for first in groups])

    def event(first_transaction: int, end: int, chunk: bytes) -> BatchDMLEvent:
        base, limit = row_bounds[first_transaction], row_bounds[end]
        bytes_per_row = len(chunk) // (limit - base)
        parts = []
        for index in range(first_transaction, end):
            low, high = row_bounds[index], row_bounds[index + 1]
            parts.append(
                DMLEvent(
                    dispatcher_id=dispatcher_id,
                    physical_table_id=table.table_id,
                    start_ts=int(start_ts[index]),
                    commit_ts=int(commit_ts[index]),
                    seq=0,
                    epoch=0,
                    row_count=change_bounds[index + 1] - change_bounds[index],
                    approximate_size=(high - low) * bytes_per_row,
                    previous_total_offset=low - base,
                    row_types=row_types[low:high].tobytes(),
                    key_count=high - low,
                    keys=keys[low:high].tobytes(),
                )
            )
        return BatchDMLEvent(tuple(parts), chunk)

    return [event(*group) for group in zip(groups, groups[1:], chunks, strict=False)]


def _grouped(bounds: list[int], batch_rows: int) -> list[int]:
    """Cut transactions into groups of at most `batch_rows` row changes: the first of each group, then the number of transactions."""
    cuts = [0]
    for index in range(1, len(bounds)):
        if bounds[index] - bounds[cuts[-1]] > batch_rows:
            cuts.append(index - 1)
    return [*cuts, len(bounds) - 1]


def _one_after_the_other(before: Images, after: Images, change: np.ndarray, is_after: np.ndarray) -> Images:
    def pick(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        return np.where(is_after, new[change], old[change])

    return Images(
        before.key[change],
        pick(before.write, after.write),
        pick(before.origin_ts, after.origin_ts),
        pick(before.commit_ts, after.commit_ts),
        pick(before.deleted_at, after.deleted_at),
        before.salt,
    )


def _row_keys(table_id: int, key: np.ndarray) -> np.ndarray:
    """One line of bytes per row: the length of the row key, then the row key."""
    lines = np.empty((len(key), 4 + KEY_LENGTH), dtype=np.uint8)
    prefix = KEY_LENGTH.to_bytes(4, "big") + b"t" + (table_id ^ int(SIGN)).to_bytes(8, "big") + b"_r"
    lines[:, : len(prefix)] = np.frombuffer(prefix, dtype=np.uint8)
    lines[:, len(prefix) :] = (key ^ SIGN).astype(">u8").view(np.uint8).reshape(-1, 8)
    return lines
