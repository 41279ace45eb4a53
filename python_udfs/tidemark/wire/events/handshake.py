"""A dispatcher starts: from where, and with which table.

handshake := resolved_ts:u64 seq:u64 epoch:u64 id table_info            (the table info goes to the end)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.wire.cursor import Cursor
from tidemark.wire.events.base import Codec, Event, read_table
from tidemark.wire.header import HEADER_SIZE
from tidemark.wire.json_form import id_form

if TYPE_CHECKING:
    from tidemark.wire.table_info import TableInfo

FIXED = struct.Struct(">QQQ16s")


@dataclass(frozen=True, slots=True)
class HandshakeEvent(Event):
    type_id: ClassVar[int] = 7

    resolved_ts: int
    seq: int
    epoch: int
    dispatcher_id: bytes
    table_info: bytes
    version: int = 1

    def table(self) -> TableInfo:
        return read_table(self.table_info, HEADER_SIZE + FIXED.size)

    def fields(self) -> dict[str, Any]:
        from tidemark.wire.table_form import table_form

        return {
            "resolved_ts": str(self.resolved_ts),
            "seq": str(self.seq),
            "epoch": str(self.epoch),
            "dispatcher_id": id_form(self.dispatcher_id),
            "table_info": table_form(self.table()),
        }


def parse(cursor: Cursor, version: int) -> HandshakeEvent:
    return HandshakeEvent(
        resolved_ts=cursor.u64("resolved_ts"),
        seq=cursor.u64("seq"),
        epoch=cursor.u64("epoch"),
        dispatcher_id=cursor.id("dispatcher_id"),
        table_info=cursor.raw("table_info", cursor.remaining, "table info"),
        version=version,
    )


def write(event: HandshakeEvent) -> bytes:
    return FIXED.pack(event.resolved_ts, event.seq, event.epoch, event.dispatcher_id) + event.table_info


def size(event: HandshakeEvent) -> int:
    return FIXED.size + len(event.table_info)


V1 = Codec(parse=parse, write=write, size=size)
