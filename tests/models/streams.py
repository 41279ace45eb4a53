"""Transactions -> the frames of an upstream's event log.

Each table has a dispatcher. Dispatchers send independently of each other, each of them in order. A dispatcher may begin again, under a new epoch or in another place
under a new id, and then repeats what it had sent after the ts at which it begins.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pyarrow as pa
from histories import START_TS, Transaction

from tidemark.wire.chunk import encode_chunk
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.events.dml import DELETE, INSERT, UPDATE, DMLEvent, pack_keys
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.events.resolved import ResolvedEvent
from tidemark.wire.registry import encode
from tidemark.wire.table_info import TableInfo

ROW_TYPES = {"delete": DELETE, "insert": INSERT, "update": UPDATE}
END_TS = START_TS + 10**9


@dataclass
class Sender:
    """A dispatcher: who gives sequence numbers."""

    info: TableInfo
    id: bytes
    epoch: int = 0
    seq: int = 0
    frames: list[bytes] = field(default_factory=list)

    def begin(self, resolved_ts: int) -> None:
        self.epoch, self.seq = self.epoch + 1, 1
        self.frames.append(encode(HandshakeEvent(resolved_ts, 1, self.epoch, self.id, self.info.to_bytes())))

    def resolve(self, ts: int) -> None:
        self.frames.append(encode(ResolvedEvent(ts, self.epoch, self.seq, self.id)))

    def send(self, transactions: list[Transaction]) -> None:
        """One BatchDML event."""
        parts, rows = [], []
        for transaction in transactions:
            self.seq += 1
            images = [
                (change.op, image)
                for change in transaction.changes
                for image in (change.pre, change.post)
                if image is not None
            ]
            parts.append(
                DMLEvent(
                    dispatcher_id=self.id,
                    physical_table_id=self.info.table_id,
                    start_ts=transaction.start_ts,
                    commit_ts=transaction.commit_ts,
                    seq=self.seq,
                    epoch=self.epoch,
                    row_count=len(transaction.changes),
                    approximate_size=100 * len(images),
                    previous_total_offset=len(rows),
                    row_types=bytes(ROW_TYPES[op] for op, _ in images),
                    key_count=len(images),
                    keys=pack_keys([self._row_key(image) for _, image in images]),
                )
            )
            rows += [image for _, image in images]
        arrays = [pa.array([row[name] for row in rows], kind) for name, kind in self._types()]
        chunk = encode_chunk(pa.RecordBatch.from_arrays(arrays, schema=self.info.arrow_schema), self.info)
        self.frames.append(encode(BatchDMLEvent(tuple(parts), chunk)))

    def execute(self, ddl_type: int, ts: int, *infos: TableInfo, **fields) -> None:
        """A DDL event: the table as it is after it, other tables that it is about, and fields of its body."""
        self.seq += 1
        after, *others = infos or (None,)
        names = {"schema_name": after.schema, "table_name": after.table} if after else {}
        numbers = {
            "type": ddl_type,
            "start_ts": ts - 1,
            "finished_ts": ts,
            "seq": self.seq,
            "epoch": self.epoch,
        }
        self.frames.append(
            encode(
                DDLEvent.build(
                    {"version": 1, "query": f"statement of type {ddl_type}", **numbers, **names, **fields},
                    self.id,
                    after.to_bytes() if after else b"",
                    tuple(info.to_bytes() for info in others),
                )
            )
        )
        self.info = after or self.info

    def _types(self):
        return zip(self.info.arrow_schema.names, self.info.arrow_schema.types, strict=True)

    def _row_key(self, row: dict) -> bytes:
        return repr([row[name] for name in self.info.handle_key]).encode()


def table_frames(dice: random.Random, info: TableInfo, transactions: list[Transaction]) -> list[bytes]:
    """What the dispatchers of one table send, in order."""
    sender = Sender(info, dice.randbytes(16))
    sender.begin(START_TS)
    frames, resolved_ts, place = sender.frames, START_TS, 0
    while place < len(transactions):
        if place and dice.random() < 0.08:
            if dice.random() < 0.3:
                sender = Sender(info, dice.randbytes(16), frames=frames)
            sender.begin(resolved_ts)
            place = next(n for n, item in enumerate(transactions) if item.commit_ts > resolved_ts)
        count = dice.randint(1, 3)
        sender.send(transactions[place : place + count])
        place += count
        if dice.random() < 0.4:
            following = (
                transactions[place].commit_ts if place < len(transactions) else transactions[-1].commit_ts + 1
            )
            resolved_ts = max(resolved_ts, following - 1)
            sender.resolve(resolved_ts)
    if dice.random() < 0.3:
        # In another place, with nothing left to send.
        sender.resolve(transactions[-1].commit_ts)
        sender = Sender(info, dice.randbytes(16), frames=frames)
        sender.begin(transactions[-1].commit_ts)
    sender.resolve(END_TS)
    return frames


def interleaved(dice: random.Random, streams: list[list[bytes]]) -> list[bytes]:
    """One log of several dispatchers' frames, each of them in its order."""
    turns = [number for number, frames in enumerate(streams) for _ in frames]
    dice.shuffle(turns)
    rest = [iter(frames) for frames in streams]
    return [next(rest[turn]) for turn in turns]
