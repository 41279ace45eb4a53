"""The 16-byte frame header that opens every event.

    header := magic[4] type:u16 version:u16 payload_length:u64          (big-endian)

The header is wire metadata only; nothing of the event itself is in it.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from tidemark.wire.errors import BadMagic, OversizedPayload, TruncatedHeader

HEADER = struct.Struct(">4sHHQ")
HEADER_SIZE = HEADER.size
MAGIC = b"\xda\x7a\x6a\x6a"
# name, size, kind: what an annotated dump calls the parts
HEADER_FIELDS = (
    ("magic", 4, "magic"),
    ("event type", 2, "u16"),
    ("version", 2, "u16"),
    ("payload length", 8, "u64"),
)
# A frame must fit into one Arrow binary value, which is addressed with signed 32-bit offsets.
MAX_PAYLOAD_LENGTH = (1 << 31) - 1 - HEADER_SIZE


class Header(NamedTuple):
    event_type: int
    version: int
    payload_length: int


def read_header(data, offset: int = 0) -> Header:
    """The header at `offset`; the payload is not looked at."""
    available = len(data) - offset
    if available < HEADER_SIZE:
        raise TruncatedHeader(
            f"a frame header takes {HEADER_SIZE} bytes, {max(available, 0)} are left",
            offset=offset,
            expected=HEADER_SIZE,
            actual=max(available, 0),
        )
    magic, event_type, version, payload_length = HEADER.unpack_from(data, offset)
    if magic != MAGIC:
        raise BadMagic(
            f"no frame starts here: the magic bytes are {MAGIC.hex()}, found {magic.hex()}",
            offset=offset,
            expected=MAGIC.hex(),
            actual=magic.hex(),
        )
    if payload_length > MAX_PAYLOAD_LENGTH:
        raise OversizedPayload(
            f"the header announces {payload_length} bytes of payload, at most {MAX_PAYLOAD_LENGTH} fit into a frame",
            offset=offset,
            expected=MAX_PAYLOAD_LENGTH,
            actual=payload_length,
        )
    return Header(event_type, version, payload_length)


def write_header(event_type: int, version: int, payload_length: int) -> bytes:
    return HEADER.pack(MAGIC, event_type, version, payload_length)
