"""The event registry: every event type, its names, its family and the codec of each of its versions.

A new version of an event is one file in `wire/events` and one line in VERSIONS; a new event type also gets a line in `event_types` and one in _EVENTS. A reader
accepts the versions it knows, which are its own and all lower ones. Versions 0 and 1 of a type are one layout: the protocol's
document numbers the first layouts 0, the running system writes most of them as 1.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tidemark.wire.errors import (
    InvalidField,
    TrailingBytes,
    TruncatedPayload,
    UnknownEventType,
    UnsupportedVersion,
    WireError,
    WrongEventType,
)
from tidemark.wire.event_types import TYPE_NAMES
from tidemark.wire.events import (
    batch_dml,
    batch_resolved,
    congestion_control,
    congestion_control_v2,
    ddl,
    dml,
    drop,
    drop_v2,
    handshake,
    heartbeat,
    heartbeat_response,
    heartbeat_v2,
    not_reusable,
    ready,
    resolved,
    sync_point,
)
from tidemark.wire.events.base import Codec, Event
from tidemark.wire.header import HEADER_SIZE, read_header, write_header
from tidemark.wire.ids import ID_SIZE


@dataclass(frozen=True)
class EventType:
    id: int
    type_name: str
    name: str
    family: str
    event: type[Event]


_EVENTS = {
    event.type_id: event
    for event in (
        dml.DMLEvent,
        batch_dml.BatchDMLEvent,
        ddl.DDLEvent,
        resolved.ResolvedEvent,
        batch_resolved.BatchResolvedEvent,
        sync_point.SyncPointEvent,
        ready.ReadyEvent,
        handshake.HandshakeEvent,
        not_reusable.NotReusableEvent,
        drop.DropEvent,
        congestion_control.CongestionControl,
        heartbeat.DispatcherHeartbeat,
        heartbeat_response.DispatcherHeartbeatResponse,
    )
}
EVENT_TYPES = {names.id: EventType(*names, _EVENTS[names.id]) for names in TYPE_NAMES}

# (event type, version) -> codec
VERSIONS: dict[tuple[int, int], Codec] = {
    (0, 0): dml.V1,
    (0, 1): dml.V1,
    (1, 0): batch_dml.V1,
    (1, 1): batch_dml.V1,
    (2, 0): ddl.V1,
    (2, 1): ddl.V1,
    (3, 0): resolved.V1,
    (3, 1): resolved.V1,
    (4, 0): batch_resolved.V1,
    (4, 1): batch_resolved.V1,
    (5, 0): sync_point.V1,
    (5, 1): sync_point.V1,
    (6, 0): ready.V1,
    (6, 1): ready.V1,
    (7, 0): handshake.V1,
    (7, 1): handshake.V1,
    (8, 0): not_reusable.V1,
    (8, 1): not_reusable.V1,
    (9, 0): drop.V1,
    (9, 1): drop_v2.V1,
    (9, 2): drop_v2.V2,
    (10, 0): congestion_control.V1,
    (10, 1): congestion_control.V1,
    (10, 2): congestion_control_v2.V2,
    (11, 0): heartbeat.V1,
    (11, 1): heartbeat.V1,
    (11, 2): heartbeat_v2.V2,
    (12, 0): heartbeat_response.V1,
    (12, 1): heartbeat_response.V1,
}

HIGHEST_VERSION = {type_id: max(v for t, v in VERSIONS if t == type_id) for type_id in EVENT_TYPES}


def event_type(event: Event) -> EventType:
    return EVENT_TYPES[event.type_id]


class Reader:
    """Decodes frames. `highest` (event type -> version) makes it a reader of an older release, which knows nothing newer."""

    def __init__(self, highest: dict[int, int] | None = None):
        self._highest = {**HIGHEST_VERSION, **(highest or {})}
        self._codecs = {key: codec for key, codec in VERSIONS.items() if key[1] <= self._highest[key[0]]}

    def codec(self, type_id: int, version: int, offset: int = 0) -> Codec:
        """`offset` is where the frame starts, for the error."""
        codec = self._codecs.get((type_id, version))
        if codec is not None:
            return codec
        known = EVENT_TYPES.get(type_id)
        if known is None:
            raise UnknownEventType(
                f"event type {type_id} is not known; types 0 to {max(EVENT_TYPES)} are",
                offset=offset + 4,
                expected=max(EVENT_TYPES),
                actual=type_id,
            )
        highest = self._highest[type_id]
        raise UnsupportedVersion(
            f"{known.type_name} (type {type_id}) has version {version}; the highest version known here is {highest}",
            offset=offset + 6,
            expected=highest,
            actual=version,
        )

    def decode(
        self, frame: bytes | memoryview, *, expect: type[Event] | None = None, offset: int = 0
    ) -> Event:
        """The event of exactly one frame, header included. `offset` is where the frame starts in its file, for errors."""
        try:
            return self._decode(memoryview(frame), expect)
        except WireError as error:
            raise error.at(offset) from None

    def _decode(self, data: memoryview, expect: type[Event] | None) -> Event:
        type_id, version, payload_length = read_header(data)
        if expect is not None and type_id != expect.type_id:
            found = EVENT_TYPES[type_id].type_name if type_id in EVENT_TYPES else "unknown"
            raise WrongEventType(
                f"expected {EVENT_TYPES[expect.type_id].type_name} (type {expect.type_id}), found type {type_id} ({found})",
                offset=4,
                expected=expect.type_id,
                actual=type_id,
            )
        codec = self.codec(type_id, version)
        available = len(data) - HEADER_SIZE
        if available < payload_length:
            raise TruncatedPayload(
                f"the header promises {payload_length} bytes of payload, {available} are there",
                offset=8,
                expected=payload_length,
                actual=available,
            )
        if available > payload_length:
            raise TrailingBytes(
                f"{available - payload_length} bytes follow the payload",
                offset=HEADER_SIZE + payload_length,
                expected=payload_length,
                actual=available,
            )
        return codec.read(data, HEADER_SIZE, len(data), version, self)


READER = Reader()


def decode(
    frame: bytes | memoryview,
    *,
    expect: type[Event] | None = None,
    offset: int = 0,
    highest: dict[int, int] | None = None,
) -> Event:
    reader = READER if highest is None else Reader(highest)
    return reader.decode(frame, expect=expect, offset=offset)


def codec_of(event: Event, version: int) -> Codec:
    return READER.codec(event.type_id, version)


def encode(event: Event, version: int | None = None) -> bytes:
    """The frame of an event: in the version it was read with, or in `version`, for a receiver that knows only lower ones."""
    version = event.version if version is None else version
    codec = codec_of(event, version)
    dispatcher_id = getattr(event, "dispatcher_id", None)
    if dispatcher_id is not None and len(dispatcher_id) != ID_SIZE:
        raise InvalidField(
            f"a dispatcher id has {ID_SIZE} bytes", expected=ID_SIZE, actual=len(dispatcher_id)
        )
    try:
        payload = codec.write(event)
    except struct.error as error:
        raise InvalidField(f"{event!r:.200} has a number that does not fit its field: {error}") from None
    return write_header(event.type_id, version, len(payload)) + payload
