"""The event types of the protocol: number, names and family of each.

This is apart from the registry, which adds the events and their codecs, because finding frames needs the numbers and nothing else.
"""

from __future__ import annotations

from typing import NamedTuple


class TypeNames(NamedTuple):
    id: int
    type_name: str  # as the protocol calls it
    name: str  # as our JSON and tables call it
    family: str  # one staging model each: dml, ddl, resolved, syncpoint, handshake, control


TYPE_NAMES = tuple(
    TypeNames(*row)
    for row in (
        (0, "DMLEvent", "dml", "dml"),
        (1, "BatchDMLEvent", "batch_dml", "dml"),
        (2, "DDLEvent", "ddl", "ddl"),
        (3, "ResolvedEvent", "resolved", "resolved"),
        (4, "BatchResolvedEvent", "batch_resolved", "resolved"),
        (5, "SyncPointEvent", "sync_point", "syncpoint"),
        (6, "ReadyEvent", "ready", "control"),
        (7, "HandshakeEvent", "handshake", "handshake"),
        (8, "NotReusableEvent", "not_reusable", "control"),
        (9, "DropEvent", "drop", "control"),
        (10, "CongestionControl", "congestion_control", "control"),
        (11, "DispatcherHeartbeat", "dispatcher_heartbeat", "control"),
        (12, "DispatcherHeartbeatResponse", "dispatcher_heartbeat_response", "control"),
    )
)
