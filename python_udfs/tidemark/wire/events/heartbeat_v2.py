"""Version 2 of the heartbeat adds the epoch of each dispatcher.

heartbeat_v2 := cluster_id:u64 count:u32 progress_v2*count
progress_v2 := progress_version:u8 id checkpoint_ts:u64 epoch:u64           (progress_version is 1)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from tidemark.wire.cursor import U32, U64, Cursor
from tidemark.wire.events.base import Codec
from tidemark.wire.events.heartbeat import DispatcherHeartbeat, Progress

PROGRESS = struct.Struct(">B16sQQ")
PROGRESS_VERSION = 1


@dataclass(frozen=True, slots=True)
class ProgressV2(Progress):
    epoch: int = 0

    def fields(self) -> dict[str, Any]:
        return {**Progress.fields(self), "epoch": str(self.epoch), "version": PROGRESS_VERSION}


def parse(cursor: Cursor, version: int) -> DispatcherHeartbeat:
    cluster_id = cursor.u64("cluster_id")
    progresses = []
    for index in range(cursor.count("dispatcher count", PROGRESS.size)):
        with cursor.group(f"progress {index}"):
            start = cursor.pos
            progress_version = cursor.u8("progress version")
            if progress_version != PROGRESS_VERSION:
                raise cursor.invalid(
                    f"a dispatcher progress of version {progress_version} is not known",
                    start=start,
                    expected=PROGRESS_VERSION,
                    actual=progress_version,
                )
            progresses.append(
                ProgressV2(cursor.id("dispatcher_id"), cursor.u64("checkpoint_ts"), cursor.u64("epoch"))
            )
    return DispatcherHeartbeat(cluster_id, tuple(progresses), version)


def write(event: DispatcherHeartbeat) -> bytes:
    parts = [U64.pack(event.cluster_id), U32.pack(len(event.progresses))]
    for progress in event.progresses:
        epoch = getattr(progress, "epoch", 0)  # a progress of version 1 has none
        parts.append(PROGRESS.pack(PROGRESS_VERSION, progress.dispatcher_id, progress.checkpoint_ts, epoch))
    return b"".join(parts)


def size(event: DispatcherHeartbeat) -> int:
    return 12 + len(event.progresses) * PROGRESS.size


V2 = Codec(parse=parse, write=write, size=size)
