"""Resolved events of several dispatchers in one frame.

    batch_resolved := frame*            (whole Resolved frames with their headers, to the end)

The running system leaves the outer frame away: then the log simply holds Resolved frames one after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tidemark.wire.cursor import Cursor
from tidemark.wire.events.base import Codec, Event
from tidemark.wire.events.resolved import ResolvedEvent
from tidemark.wire.header import HEADER_SIZE


@dataclass(frozen=True, slots=True)
class BatchResolvedEvent(Event):
    type_id: ClassVar[int] = 4

    events: tuple[ResolvedEvent, ...]
    version: int = 1

    def fields(self) -> dict[str, Any]:
        return {"events": [event.fields() for event in self.events]}


def parse(cursor: Cursor, version: int) -> BatchResolvedEvent:
    events = []
    while cursor.remaining:
        with cursor.group(f"resolved {len(events)}"):
            events.append(cursor.nested_event(ResolvedEvent.type_id))
    return BatchResolvedEvent(tuple(events), version)


def write(event: BatchResolvedEvent) -> bytes:
    from tidemark.wire.registry import encode

    return b"".join(encode(resolved) for resolved in event.events)


def size(event: BatchResolvedEvent) -> int:
    return sum(HEADER_SIZE + resolved.size() for resolved in event.events)


V1 = Codec(parse=parse, write=write, size=size)
