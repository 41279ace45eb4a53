"""Everything of a dispatcher up to `resolved_ts` has been sent.

resolved := resolved_ts:u64 epoch:u64 seq:u64 id
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidemark.wire.events.base import Event, fixed


@dataclass(frozen=True, slots=True)
class ResolvedEvent(Event):
    type_id: ClassVar[int] = 3

    resolved_ts: int
    epoch: int
    seq: int
    dispatcher_id: bytes
    version: int = 1


V1 = fixed(ResolvedEvent, "resolved_ts:u64", "epoch:u64", "seq:u64", "dispatcher_id:id")
