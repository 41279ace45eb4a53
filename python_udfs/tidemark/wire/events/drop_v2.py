"""Version 2 of the drop event says why.

drop_v2 := drop reason_length:u32 reason[reason_length]           (UTF-8)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidemark.wire.cursor import U32, Cursor
from tidemark.wire.events import drop
from tidemark.wire.events.base import Codec


@dataclass(frozen=True, slots=True)
class DropEventV2(drop.DropEvent):
    dropped_reason: str = ""
    version: int = 2

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
