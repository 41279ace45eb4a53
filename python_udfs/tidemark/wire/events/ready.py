"""A dispatcher can start to receive events.

ready := id
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidemark.wire.events.base import Event, fixed


@dataclass(frozen=True, slots=True)
class ReadyEvent(Event):
    type_id: ClassVar[int] = 6

    dispatcher_id: bytes
    version: int = 1


V1 = fixed(ReadyEvent, "dispatcher_id:id")
