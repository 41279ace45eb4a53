"""Version 2 of congestion control adds how full each changefeed is, and how often it had to release memory.

congestion_control_v2 := cluster_id:u64 count:u32 changefeed_v2*count releases?
changefeed_v2 := gid available:u64 usage_ratio:f64 dispatcher_count:u32 dispatcher*dispatcher_count
releases := count:u32 release*count             (absent when no changefeed released memory)
release := gid release_count:u32
"""

from __future__ import annotations

from tidemark.wire.cursor import F64, U32, U64, Cursor
from tidemark.wire.events import congestion_control as v1
from tidemark.wire.events.base import Codec
from tidemark.wire.ids import ID_SIZE

MIN_CHANGEFEED_SIZE = v1.MIN_CHANGEFEED_SIZE + 8
RELEASE_SIZE = ID_SIZE + 4


def parse(cursor: Cursor, version: int) -> v1.CongestionControl:
    cluster_id = cursor.u64("cluster_id")
    changefeeds = []
    for index in range(cursor.count("changefeed count", MIN_CHANGEFEED_SIZE)):
        with cursor.group(f"changefeed {index}"):
            gid, available = cursor.id("gid"), cursor.u64("available")
            usage_ratio = cursor.f64("usage_ratio")
            changefeeds.append(v1.ChangefeedMemory(gid, available, v1.read_dispatchers(cursor), usage_ratio))
    releases = _read_releases(cursor) if cursor.remaining else None
    return v1.CongestionControl(cluster_id, tuple(changefeeds), releases, version)


def _read_releases(cursor: Cursor) -> tuple[v1.MemoryRelease, ...]:
    releases = []
    for index in range(cursor.count("release count", RELEASE_SIZE)):
        with cursor.group(f"release {index}"):
            releases.append(v1.MemoryRelease(cursor.id("gid"), cursor.u32("release_count")))
    return tuple(releases)


def write(event: v1.CongestionControl) -> bytes:
    parts = [U64.pack(event.cluster_id), U32.pack(len(event.changefeeds))]
    for changefeed in event.changefeeds:
        parts += (changefeed.gid, U64.pack(changefeed.available), F64.pack(changefeed.usage_ratio))
        parts.append(v1.write_dispatchers(changefeed.dispatchers))
    if event.releases is not None:
        parts.append(U32.pack(len(event.releases)))
        parts += (release.gid + U32.pack(release.count) for release in event.releases)
    return b"".join(parts)


def size(event: v1.CongestionControl) -> int:
    releases = 0 if event.releases is None else 4 + len(event.releases) * RELEASE_SIZE
    return v1.size(event) + 8 * len(event.changefeeds) + releases


V2 = Codec(parse=parse, write=write, size=size)
