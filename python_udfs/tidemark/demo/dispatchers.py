"""One dispatcher of a stream: who gives sequence numbers.

A Handshake opens an epoch and has seq 1; DML, DDL and sync points each take the next seq; a Resolved event carries the last one. The table trigger, which
sends statements and has no table, starts without a Handshake: its first statement has seq 1.
"""

from __future__ import annotations

from tidemark.wire.events.base import Event
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.drop import DropEvent
from tidemark.wire.events.drop_v2 import DropEventV2
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.events.resolved import ResolvedEvent
from tidemark.wire.events.sync_point import SyncPointEvent


class Dispatcher:
    def __init__(self, dispatcher_id: bytes):
        self.id = dispatcher_id
        self.epoch = 1
        self.seq = 0
        self.resolved_ts = 0

    def next_seq(self) -> int:
        self.seq += 1
        return self.seq

    def handshake(self, resolved_ts: int, table_info: bytes) -> HandshakeEvent:
        self.resolved_ts = resolved_ts
        self.seq = 1
        return HandshakeEvent(resolved_ts, self.seq, self.epoch, self.id, table_info)

    def numbered(self, batch: BatchDMLEvent) -> BatchDMLEvent:
        """The batch with the next sequence numbers. A batch that is sent again gets new ones."""
        for transaction in batch.transactions:
            transaction.seq, transaction.epoch = self.next_seq(), self.epoch
        return batch

    def sync_point(self, ts: int) -> SyncPointEvent:
        return SyncPointEvent(self.next_seq(), self.epoch, ts, self.id)

    def resolved(self, ts: int) -> ResolvedEvent:
        self.resolved_ts = ts
        return ResolvedEvent(ts, self.epoch, self.seq, self.id)

    def drop(self, commit_ts: int, reason: str = "") -> Event:
        """The next event was thrown away for lack of memory; what follows comes in a new epoch."""
        dropped = (self.id, self.seq + 1, commit_ts, self.epoch)
        self.epoch += 1
        return DropEventV2(*dropped, dropped_reason=reason) if reason else DropEvent(*dropped)
