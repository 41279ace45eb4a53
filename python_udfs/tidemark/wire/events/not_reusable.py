"""What was kept for a dispatcher cannot be used for it any more.

not_reusable := id
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidemark.wire.events.base import Event, fixed


@dataclass(frozen=True, slots=True)
class NotReusableEvent(Event):
    type_id: ClassVar[int] = 8

    dispatcher_id: bytes
    version: int = 1


V1 = fixed(NotReusableEvent, "dispatcher_id:id")
