"""Version 2 of the drop event says why.

drop_v2 := drop reason_length:u32 reason[reason_length]           (UTF-8)
drop_v1 := drop | drop_v2

The protocol's document gives the layout with a reason both numbers, 1 and 2. So a frame of version 1 has a reason if its payload goes on behind the fixed fields. It is
written as it was read; a drop event of version 2 that is written for a receiver of version 1 loses its reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidemark.wire.cursor import U32, Cursor
from tidemark.wire.events import drop
from tidemark.wire.events.base import Codec

VERSION = 2


@dataclass(frozen=True, slots=True)
class DropEventV2(drop.DropEvent):
    dropped_reason: str = ""
    version: int = VERSION

    def fields(self) -> dict[str, Any]:
        return {**drop.DropEvent.fields(self), "dropped_reason": self.dropped_reason}


def parse(cursor: Cursor, version: int) -> DropEventV2:
    old = drop.V1.parse(cursor, version)
    reason = cursor.text("dropped_reason", cursor.count("reason length", 1))
    return DropEventV2(
        old.dispatcher_id, old.dropped_seq, old.dropped_commit_ts, old.dropped_epoch, version, reason
    )


def write(event: drop.DropEvent) -> bytes:
    reason = _reason(event)
    return drop.V1.write(event) + U32.pack(len(reason)) + reason


def size(event: drop.DropEvent) -> int:
    return drop.V1.size(event) + 4 + len(_reason(event))


def _reason(event: drop.DropEvent) -> bytes:
    """A drop event of version 1 has none."""
    return getattr(event, "dropped_reason", "").encode()


V2 = Codec(parse=parse, write=write, size=size)


def _parse_v1(cursor: Cursor, version: int) -> drop.DropEvent:
    return (parse if cursor.remaining >= drop.SIZE + U32.size else drop.V1.parse)(cursor, version)


def _as_read(event: drop.DropEvent) -> Codec:
    return V2 if isinstance(event, DropEventV2) and event.version < VERSION else drop.V1


V1 = Codec(
    parse=_parse_v1,
    write=lambda event: _as_read(event).write(event),
    size=lambda event: _as_read(event).size(event),
)
