"""Which rows a table holds, in every cluster that has the table, and who changes them.

Time goes by in rounds. In a round some rows are written: 80 % inserts, 15 % updates, 5 % deletes. A table of one cluster ends there. A table that several
clusters share is replicated between them: a write made in one cluster arrives in the others one round later, with `_tidb_origin_ts` set to its
commit ts. Now and then two clusters write the same row in the same round; then the later write wins everywhere, and the earlier one is overwritten.
Rows on their way to other clusters are not written again before they arrived, so that clusters agree on all other rows.

In soft-delete and active-active tables a third of the updates only set the time of the soft delete, deletes remove rows that were soft-deleted
before (as each cluster's own clean-up does, nothing is replicated), and an update of a soft-deleted row brings it back.

Only the rows in a window of slots can change any more; a new row takes the slot of a removed one, or of one that then stays as it is for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidemark.demo.clock import microseconds
from tidemark.demo.dice import Dice
from tidemark.demo.tables import Images
from tidemark.wire.events.dml import DELETE, INSERT, UPDATE

FREE, IDLE, BUSY = 0, 1, 2
INSERT_PERCENT, UPDATE_PERCENT = 80, 15
SOFT_DELETE_PART = 3  # one in so many updates
RIVAL_UPDATES, RIVAL_INSERTS = 6, 40  # two clusters write the same row in one of so many
NOBODY = -1


@dataclass
class Writes:
    """The writes of one round, one entry each, different rows all of them."""

    slot: np.ndarray
    op: np.ndarray
    soft: np.ndarray
    writer: np.ndarray
    rival: np.ndarray

    def where(self, chosen: np.ndarray) -> Writes:
        return Writes(
            self.slot[chosen], self.op[chosen], self.soft[chosen], self.writer[chosen], self.rival[chosen]
        )


@dataclass
class Work:
    """What one cluster does in one round. `source` is the cluster whose write arrives, NOBODY for own writes."""

    slot: np.ndarray
    op: np.ndarray
    soft: np.ndarray
    source: np.ndarray

    def __len__(self) -> int:
        return len(self.slot)

    def reorder(self, order: np.ndarray) -> Work:
        return Work(self.slot[order], self.op[order], self.soft[order], self.source[order])


class Population:
    def __init__(self, dice: Dice, *, clusters: int, window: int, first_key: int, soft: bool, salt: int):
        self._dice = dice
        self._soft = soft
        self._salt = salt
        self._next_key = first_key
        self.clusters = clusters
        self.status = np.zeros(window, dtype=np.uint8)
        self.key = np.zeros(window, dtype=np.uint64)
        # Per cluster and slot; a commit ts of 0 says that the cluster does not have the row.
        self.write, self.origin_ts, self.commit_ts, self.deleted_at = np.zeros(
            (4, clusters, window), dtype=np.uint64
        )
        self._fresh = self._arriving = _no_writes()

    def next_round(self, writes: int) -> list[Work]:
        """What each cluster does: the writes of the last round that arrive, then its own."""
        self._arriving, self._fresh = self._fresh, self._choose(writes)
        self.status[self._arriving.slot] = IDLE
        return [self._work_of(cluster) for cluster in range(self.clusters)]

    def apply(self, cluster: int, work: Work, commit_ts: np.ndarray) -> tuple[Images, Images]:
        """Do the work in one cluster; gives the rows before and after it (those that did not or do not exist mean nothing)."""
        slot = work.slot
        before = self._images(cluster, slot)
        replicated = work.source != NOBODY
        keeps_values = work.soft | (work.op == DELETE)
        after = Images(
            before.key,
            np.where(
                replicated,
                self.write[work.source, slot],
                np.where(keeps_values, before.write, self._dice.raw(len(slot))),
            ),
            # What arrives was written by its source itself, so that its commit ts there is where it began.
            np.where(replicated, self.commit_ts[work.source, slot], np.uint64(0)),
            commit_ts,
            np.where(
                replicated,
                self.deleted_at[work.source, slot],
                np.where(work.soft, microseconds(commit_ts), np.uint64(0)),
            ),
            self._salt,
        )
        exists = work.op != DELETE
        self.write[cluster, slot] = after.write
        self.origin_ts[cluster, slot] = after.origin_ts
        self.deleted_at[cluster, slot] = after.deleted_at
        self.commit_ts[cluster, slot] = np.where(exists, commit_ts, np.uint64(0))
        return before, after

    def settle(self) -> None:
        """After all clusters did their work of the round: the rows that are gone free their slots, the others go on their way."""
        fresh = self._fresh
        self.status[fresh.slot[fresh.op == DELETE]] = FREE
        staying = fresh.where(fresh.op != DELETE)
        if self.clusters == 1:
            self.status[staying.slot] = IDLE
            self._fresh = _no_writes()
            return
        lost = staying.rival != NOBODY
        lost &= self.commit_ts[staying.rival, staying.slot] > self.commit_ts[staying.writer, staying.slot]
        staying.writer = np.where(lost, staying.rival, staying.writer)
        self._fresh = staying

    def _work_of(self, cluster: int) -> Work:
        arriving = self._arriving.where(self._arriving.writer != cluster)
        there = self.commit_ts[cluster, arriving.slot] != 0
        fresh = self._fresh
        own = fresh.where((fresh.writer == cluster) | (fresh.rival == cluster) | (fresh.op == DELETE))
        return Work(
            slot=np.concatenate([arriving.slot, own.slot]),
            op=np.concatenate([np.where(there, UPDATE, INSERT).astype(np.uint8), own.op]),
            # Of two rivals only the first one deletes.
            soft=np.concatenate([np.zeros(len(there), dtype=bool), own.soft & (own.writer == cluster)]),
            source=np.concatenate([arriving.writer, np.full(len(own.slot), NOBODY)]),
        )

    def _images(self, cluster: int, slot: np.ndarray) -> Images:
        return Images(
            self.key[slot],
            self.write[cluster, slot],
            self.origin_ts[cluster, slot],
            self.commit_ts[cluster, slot],
            self.deleted_at[cluster, slot],
            self._salt,
        )

    def _choose(self, count: int) -> Writes:
        dice = self._dice
        roll = dice.below(count, 100)
        updates = int(((roll >= INSERT_PERCENT) & (roll < INSERT_PERCENT + UPDATE_PERCENT)).sum())
        deletes = int((roll >= INSERT_PERCENT + UPDATE_PERCENT).sum())
        soft_deletes = int((dice.below(updates, SOFT_DELETE_PART) == 0).sum()) if self._soft else 0
        chosen = [
            self._pick(deletes, deleted=True if self._soft else None),
            self._pick(soft_deletes, deleted=False),
            self._pick(updates - soft_deletes, deleted=None),
        ]
        chosen.append(self._slots_for_new(count - sum(map(len, chosen))))
        slot = np.concatenate(chosen)
        counts = [len(part) for part in chosen]
        op = np.repeat(np.array([DELETE, UPDATE, UPDATE, INSERT], dtype=np.uint8), counts)
        writer = dice.below(len(slot), self.clusters)
        return Writes(
            slot, op, np.repeat([False, True, False, False], counts), writer, self._rivals(op, writer)
        )

    def _rivals(self, op: np.ndarray, writer: np.ndarray) -> np.ndarray:
        """The cluster that writes the same row at the same time, mostly nobody."""
        if self.clusters == 1:
            return np.full(len(op), NOBODY)
        roll = self._dice.below(len(op), RIVAL_UPDATES * RIVAL_INSERTS)
        often = np.where(op == UPDATE, RIVAL_UPDATES, RIVAL_INSERTS)
        other = (writer + 1 + self._dice.below(len(op), self.clusters - 1)) % self.clusters
        return np.where((roll % often == 0) & (op != DELETE), other, NOBODY)

    def _pick(self, count: int, deleted: bool | None) -> np.ndarray:
        """Rows to change, out of those at rest that are soft-deleted, are not, or (None) all."""
        if not count:
            return np.zeros(0, dtype=np.int64)
        at_rest = self.status == IDLE
        if deleted is not None:
            at_rest &= (self.deleted_at[0] != 0) == deleted
        picked = self._dice.sample(np.flatnonzero(at_rest), count)
        self.status[picked] = BUSY
        return picked

    def _slots_for_new(self, count: int) -> np.ndarray:
        slots = np.flatnonzero(self.status == FREE)[:count]
        if len(slots) < count:
            left = self._dice.sample(np.flatnonzero(self.status == IDLE), count - len(slots))
            slots = np.concatenate([slots, left])
        self.status[slots] = BUSY
        self.commit_ts[:, slots] = 0
        self.key[slots] = self._next_key + np.arange(len(slots), dtype=np.uint64)
        self._next_key += len(slots)
        return slots


def _no_writes() -> Writes:
    none = np.zeros(0, dtype=np.int64)
    return Writes(none, none.astype(np.uint8), none.astype(bool), none, none)
