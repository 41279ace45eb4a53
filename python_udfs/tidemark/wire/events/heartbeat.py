"""The receiver tells how far its dispatchers are.

heartbeat := cluster_id:u64 count:u32 progress*count
progress := id checkpoint_ts:u64
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tidemark.wire.cursor import U32, U64, Cursor
from tidemark.wire.events.base import Codec, Event
from tidemark.wire.ids import ID_SIZE
from tidemark.wire.json_form import id_form

PROGRESS_SIZE = ID_SIZE + 8


@dataclass(frozen=True, slots=True)
class Progress:
    dispatcher_id: bytes
    checkpoint_ts: int

    def fields(self) -> dict[str, Any]:
        return {"dispatcher_id": id_form(self.dispatcher_id), "checkpoint_ts": str(self.checkpoint_ts)}


@dataclass(frozen=True, slots=True)
class DispatcherHeartbeat(Event):
    type_id: ClassVar[int] = 11

    cluster_id: int
    progresses: tuple[Progress, ...]
    version: int = 1

    def fields(self) -> dict[str, Any]:
        return {
            "cluster_id": str(self.cluster_id),
            "dispatcher_count": len(self.progresses),
            "progresses": [progress.fields() for progress in self.progresses],
        }


def parse(cursor: Cursor, version: int) -> DispatcherHeartbeat:
    cluster_id = cursor.u64("cluster_id")
    progresses = []
    for index in range(cursor.count("dispatcher count", PROGRESS_SIZE)):
        with cursor.group(f"progress {index}"):
            progresses.append(Progress(cursor.id("dispatcher_id"), cursor.u64("checkpoint_ts")))
    return DispatcherHeartbeat(cluster_id, tuple(progresses), version)


def write(event: DispatcherHeartbeat) -> bytes:
    parts = [U64.pack(event.cluster_id), U32.pack(len(event.progresses))]
    for progress in event.progresses:
        parts += (progress.dispatcher_id, U64.pack(progress.checkpoint_ts))
    return b"".join(parts)


def size(event: DispatcherHeartbeat) -> int:
    return 12 + len(event.progresses) * PROGRESS_SIZE


V1 = Codec(parse=parse, write=write, size=size)
