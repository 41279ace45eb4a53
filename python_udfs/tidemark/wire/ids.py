"""The 16-byte id of a dispatcher or a changefeed.

    id := low:u64 high:u64          (little-endian, unlike every other integer of the payloads)

In memory an id stays its 16 bytes; people and tables see `id_text`: the decimal text of low followed by that of high.
"""

from __future__ import annotations

import struct

ID = struct.Struct("<QQ")
ID_SIZE = ID.size


def make_id(low: int, high: int) -> bytes:
    return ID.pack(low, high)


def id_text(raw: bytes) -> str:
    low, high = ID.unpack(raw)
    return f"{low}{high}"
