"""The receiver tells how much memory its changefeeds and dispatchers have left.

    congestion_control := cluster_id:u64 count:u32 changefeed*count
    changefeed := gid available:u64 dispatcher_count:u32 dispatcher*dispatcher_count
    dispatcher := id available:u64

`gid` is the id of a changefeed. The order of the entries means nothing; it is kept as it was sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tidemark.wire.cursor import U32, U64, Cursor
from tidemark.wire.events.base import Codec, Event
from tidemark.wire.ids import ID_SIZE
from tidemark.wire.json_form import float_form, id_form

DISPATCHER_SIZE = ID_SIZE + 8
MIN_CHANGEFEED_SIZE = ID_SIZE + 8 + 4


@dataclass(frozen=True, slots=True)
class DispatcherMemory:
    dispatcher_id: bytes
    available: int


@dataclass(frozen=True, slots=True)
class ChangefeedMemory:
    gid: bytes
    available: int
    dispatchers: tuple[DispatcherMemory, ...]
    usage_ratio: float = 0.0  # from version 2 on


@dataclass(frozen=True, slots=True)
class MemoryRelease:
    gid: bytes
    count: int


@dataclass(frozen=True, slots=True)
class CongestionControl(Event):
    type_id: ClassVar[int] = 10

    cluster_id: int
    changefeeds: tuple[ChangefeedMemory, ...]
    releases: tuple[MemoryRelease, ...] | None = None  # from version 2 on; None: the section is absent
    version: int = 1

    def fields(self) -> dict[str, Any]:
        releases = {release.gid: release.count for release in self.releases or ()}
        return {
            "cluster_id": str(self.cluster_id),
            "changefeed_count": len(self.changefeeds),
            "availables": [
                {
                    "gid": id_form(changefeed.gid),
                    "available": str(changefeed.available),
                    "usage_ratio": float_form(changefeed.usage_ratio),
                    "memory_release_count": releases.get(changefeed.gid, 0),
                    "dispatcher_count": len(changefeed.dispatchers),
                    "dispatchers": [
                        {"dispatcher_id": id_form(d.dispatcher_id), "available": str(d.available)}
                        for d in changefeed.dispatchers
                    ],
                }
                for changefeed in self.changefeeds
            ],
        }


def read_dispatchers(cursor: Cursor) -> tuple[DispatcherMemory, ...]:
    dispatchers = []
    for index in range(cursor.count("dispatcher count", DISPATCHER_SIZE)):
        with cursor.group(f"dispatcher {index}"):
            dispatchers.append(DispatcherMemory(cursor.id("dispatcher_id"), cursor.u64("available")))
    return tuple(dispatchers)


def write_dispatchers(dispatchers: tuple[DispatcherMemory, ...]) -> bytes:
    entries = (d.dispatcher_id + U64.pack(d.available) for d in dispatchers)
    return U32.pack(len(dispatchers)) + b"".join(entries)


def parse(cursor: Cursor, version: int) -> CongestionControl:
    cluster_id = cursor.u64("cluster_id")
    changefeeds = []
    for index in range(cursor.count("changefeed count", MIN_CHANGEFEED_SIZE)):
        with cursor.group(f"changefeed {index}"):
            changefeeds.append(
                ChangefeedMemory(cursor.id("gid"), cursor.u64("available"), read_dispatchers(cursor))
            )
    return CongestionControl(cluster_id, tuple(changefeeds), None, version)


def write(event: CongestionControl) -> bytes:
    parts = [U64.pack(event.cluster_id), U32.pack(len(event.changefeeds))]
    for changefeed in event.changefeeds:
        parts += (changefeed.gid, U64.pack(changefeed.available), write_dispatchers(changefeed.dispatchers))
    return b"".join(parts)


def size(event: CongestionControl) -> int:
    return 12 + sum(MIN_CHANGEFEED_SIZE + len(c.dispatchers) * DISPATCHER_SIZE for c in event.changefeeds)


V1 = Codec(parse=parse, write=write, size=size)
