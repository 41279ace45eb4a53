"""An event of a dispatcher was dropped; the receiver has to reset the dispatcher.

drop := id dropped_seq:u64 dropped_commit_ts:u64 dropped_epoch:u64
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidemark.wire.events.base import Event, fixed
from tidemark.wire.ids import ID_SIZE

SIZE = ID_SIZE + 3 * 8


@dataclass(frozen=True, slots=True)
class DropEvent(Event):
    type_id: ClassVar[int] = 9

    dispatcher_id: bytes
    dropped_seq: int
    dropped_commit_ts: int
    dropped_epoch: int
    version: int = 1


V1 = fixed(DropEvent, "dispatcher_id:id", "dropped_seq:u64", "dropped_commit_ts:u64", "dropped_epoch:u64")
