"""One transaction of one table, without the values of its rows.

    dml := id physical_table_id:i64 start_ts:u64 commit_ts:u64 seq:u64 epoch:u64 row_count:i32 approximate_size:i64
           previous_total_offset:u32 n:u32 row_type:u8*n m:u32 row_key*m
    row_key := length:u32 key[length]

`row_count` counts row changes. The row types and keys count physical rows: an update has two of them, and is listed twice. The values
are in the row chunk of the batch around it, from physical row `previous_total_offset` on.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, ClassVar

from tidemark.wire.cursor import U32, Cursor
from tidemark.wire.errors import InvalidField, TrailingBytes, TruncatedPayload
from tidemark.wire.events.base import Codec, Event
from tidemark.wire.json_form import id_form

DELETE, INSERT, UPDATE = 0, 1, 2
ROW_TYPES = bytes((DELETE, INSERT, UPDATE))

FIXED = struct.Struct(">16sqQQQQiqII")
FIXED_FIELDS = (
    ("dispatcher_id", 16, "id"),
    ("physical_table_id", 8, "i64"),
    ("start_ts", 8, "u64"),
    ("commit_ts", 8, "u64"),
    ("seq", 8, "u64"),
    ("epoch", 8, "u64"),
    ("row_count", 4, "i32"),
    ("approximate_size", 8, "i64"),
    ("previous_total_offset", 4, "u32"),
    ("row type count", 4, "u32"),
)
MIN_SIZE = FIXED.size + 4

# Up to here a loop over the keys is faster than looking at all of them at once.
_FEW_KEYS = 4


# Not frozen, unlike its siblings: freezing makes creation eight times slower, and a batch has one of these per transaction.
@dataclass(slots=True)
class DMLEvent(Event):
    type_id: ClassVar[int] = 0

    dispatcher_id: bytes
    physical_table_id: int
    start_ts: int
    commit_ts: int
    seq: int
    epoch: int
    row_count: int
    approximate_size: int
    previous_total_offset: int
    row_types: bytes
    key_count: int
    keys: bytes  # the row keys as they are on the wire, lengths included
    version: int = 1

    def row_keys(self) -> list[bytes]:
        keys, pos, found = self.keys, 0, []
        for _ in range(self.key_count):
            start = pos + 4
            pos = start + U32.unpack_from(keys, pos)[0]
            found.append(keys[start:pos])
        return found

    def fields(self) -> dict[str, Any]:
        return {
            "dispatcher_id": id_form(self.dispatcher_id),
            "physical_table_id": str(self.physical_table_id),
            "start_ts": str(self.start_ts),
            "commit_ts": str(self.commit_ts),
            "seq": str(self.seq),
            "epoch": str(self.epoch),
            "length": self.row_count,
            "approximate_size": str(self.approximate_size),
            "previous_total_offset": self.previous_total_offset,
            "row_types": list(self.row_types),
            "row_keys_hex": [key.hex() for key in self.row_keys()],
        }


def pack_keys(keys: list[bytes]) -> bytes:
    """Row keys in the form of `DMLEvent.keys`."""
    return b"".join(U32.pack(len(key)) + key for key in keys)


def read_dml(data, start: int, end: int, version: int = 1, reader=None) -> DMLEvent:
    """The DML payload `data[start:end]`, which must hold exactly one. Errors give positions in `data`."""
    if end - start < MIN_SIZE:
        raise TruncatedPayload(
            f"a DML event takes at least {MIN_SIZE} bytes, {end - start} are left",
            offset=start,
            expected=MIN_SIZE,
            actual=end - start,
        )
    (
        dispatcher_id,
        physical_table_id,
        start_ts,
        commit_ts,
        seq,
        epoch,
        row_count,
        approximate_size,
        previous_total_offset,
        type_count,
    ) = FIXED.unpack_from(data, start)
    types_at = start + FIXED.size
    keys_at = types_at + type_count + 4
    if keys_at > end:
        raise TruncatedPayload(
            f"{type_count} row types do not fit",
            offset=types_at - 4,
            expected=type_count,
            actual=end - types_at - 4,
        )
    row_types = bytes(data[types_at : types_at + type_count])
    if row_types.translate(None, ROW_TYPES):
        _raise_bad_row_type(row_types, types_at)
    if row_count < 0:
        raise InvalidField(f"the row count is negative: {row_count}", offset=start + 56, actual=row_count)
    key_count = U32.unpack_from(data, keys_at - 4)[0]
    keys = bytes(data[keys_at:end])
    _check_keys(keys, key_count, keys_at)
    return DMLEvent(
        dispatcher_id,
        physical_table_id,
        start_ts,
        commit_ts,
        seq,
        epoch,
        row_count,
        approximate_size,
        previous_total_offset,
        row_types,
        key_count,
        keys,
        version,
    )


def _raise_bad_row_type(row_types: bytes, at: int) -> None:
    index = next(i for i, row_type in enumerate(row_types) if row_type not in ROW_TYPES)
    raise InvalidField(
        f"row type {row_types[index]} is none of 0 delete, 1 insert, 2 update",
        offset=at + index,
        expected=list(ROW_TYPES),
        actual=row_types[index],
    )


def _check_keys(keys: bytes, count: int, at: int) -> None:
    """`keys` is exactly `count` row keys. `at` is where they start, for errors."""
    end = len(keys)
    if count * 4 > end:
        raise TruncatedPayload(
            f"{count} row keys do not fit into {end} bytes", offset=at - 4, expected=count * 4, actual=end
        )
    if count > _FEW_KEYS and _keys_are_uniform(keys, count):
        return
    pos = 0
    for _ in range(count):
        if end - pos < 4:
            raise TruncatedPayload("a row key has no length", offset=at + pos, expected=4, actual=end - pos)
        length = U32.unpack_from(keys, pos)[0]
        if length > end - pos - 4:
            raise TruncatedPayload(
                f"a row key of {length} bytes does not fit",
                offset=at + pos,
                expected=length,
                actual=end - pos - 4,
            )
        pos += 4 + length
    if pos != end:
        raise TrailingBytes(
            f"{end - pos} bytes follow the last row key", offset=at + pos, expected=0, actual=end - pos
        )


def _keys_are_uniform(keys: bytes, count: int) -> bool:
    """Integer keys all have one length: then each byte of the lengths stands at regular distances, and is checked for all keys at once."""
    stride = 4 + U32.unpack_from(keys)[0]
    if count * stride != len(keys):
        return False
    return (
        keys[3::stride].count(keys[3]) == count
        and keys[2::stride].count(keys[2]) == count
        and keys[1::stride].count(keys[1]) == count
        and keys[::stride].count(keys[0]) == count
    )


def parse(cursor: Cursor, version: int) -> DMLEvent:
    """As `read_dml`, naming the fields one by one."""
    start, end = cursor.pos, cursor.end
    for name, size, kind in FIXED_FIELDS:
        cursor.span(name, size, kind)
    cursor.span("row types", U32.unpack_from(cursor.data, cursor.pos - 4)[0], "row types")
    for index in range(cursor.count("row key count", 4)):
        with cursor.group(f"row key {index}"):
            cursor.span("key", cursor.u32("length"), "bytes")
    return read_dml(cursor.data, start, end, version, None)


def write(event: DMLEvent) -> bytes:
    fixed = FIXED.pack(
        event.dispatcher_id,
        event.physical_table_id,
        event.start_ts,
        event.commit_ts,
        event.seq,
        event.epoch,
        event.row_count,
        event.approximate_size,
        event.previous_total_offset,
        len(event.row_types),
    )
    return b"".join((fixed, event.row_types, U32.pack(event.key_count), event.keys))


def size(event: DMLEvent) -> int:
    return MIN_SIZE + len(event.row_types) + len(event.keys)


V1 = Codec(parse=parse, write=write, size=size, read=read_dml)
