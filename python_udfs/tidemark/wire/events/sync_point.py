"""A moment at which upstream and downstream can be compared.

sync_point := seq:u64 epoch:u64 commit_ts:u64 id
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidemark.wire.events.base import Event, fixed


@dataclass(frozen=True, slots=True)
class SyncPointEvent(Event):
    type_id: ClassVar[int] = 5

    seq: int
    epoch: int
    commit_ts: int
    dispatcher_id: bytes
    version: int = 1


V1 = fixed(SyncPointEvent, "seq:u64", "epoch:u64", "commit_ts:u64", "dispatcher_id:id")
