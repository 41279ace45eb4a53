"""TiDB's binary JSON <-> its text form.

    document := type:u8 value                                                     (all integers little-endian)
    value    := object | array | literal:u8 | i64 | u64 | f64 | string | opaque | time
    object   := count:u32 size:u32 key_entry*count value_entry*count keys values   (size = all bytes of the object)
    array    := count:u32 size:u32 value_entry*count values
    key_entry := offset:u32 length:u16
    value_entry := type:u8 (offset:u32 | literal and 3 bytes)                        (offsets from the start of the object or array)
    string   := length:uvarint bytes
    opaque   := mysql_type:u8 length:uvarint bytes
    time     := datetime:u64 (date, datetime, timestamp) | nanoseconds:i64 fsp:u32 (time)

The values of an object or array must lie inside it and together not exceed it, so that no document is visited more often than its bytes allow, however
its offsets lie.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from itertools import repeat
from typing import Any

from tidemark.wire.errors import InvalidField

OBJECT, ARRAY, LITERAL, INT64, UINT64, FLOAT64, STRING = 0x01, 0x03, 0x04, 0x09, 0x0A, 0x0B, 0x0C
OPAQUE, DATE, DATETIME, TIMESTAMP, TIME = 0x0D, 0x0E, 0x0F, 0x10, 0x11
LITERALS = {0: "null", 1: "true", 2: "false"}
# TiDB refuses more than 100 levels.
MAX_DEPTH = 100

HEAD = struct.Struct("<II")
KEY_ENTRY = struct.Struct("<IH")
VALUE_ENTRY = struct.Struct("<BI")
I64, U64, F64 = struct.Struct("<q"), struct.Struct("<Q"), struct.Struct("<d")
TIME_VALUE = struct.Struct("<qI")

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_NEEDS_ESCAPE = re.compile('["\\\\\x00-\x1f\u2028\u2029]')


def json_text(document: bytes) -> str:
    """The text TiDB prints for a binary document."""
    if not document:
        raise InvalidField("an empty JSON document", expected="a type byte")
    out: list[str] = []
    try:
        _value(document, document[0], 1, len(document), 1, out)
    except struct.error:
        raise InvalidField("a JSON value points outside of its document") from None
    except UnicodeDecodeError as error:
        raise InvalidField(f"a JSON string is not UTF-8 ({error.reason})", expected="UTF-8") from None
    return "".join(out)


def _value(data: bytes, kind: int, start: int, end: int, depth: int, out: list[str]) -> int:
    """Print the value at `start`, which must end before `end`; gives the number of its bytes."""
    if kind == STRING:
        at, stop = _length_prefixed(data, start, end)
        out.append(_quoted(data[at:stop].decode()))
        return stop - start
    scalar = _SCALARS.get(kind)
    if scalar is not None:
        size, form = scalar
        if end - start < size:
            raise InvalidField("a JSON value is cut off", expected=size, actual=end - start)
        out.append(form(data, start))
        return size
    if kind in (OBJECT, ARRAY):
        return _container(data, kind == OBJECT, start, end, depth, out)
    if kind != OPAQUE:
        raise InvalidField(f"JSON type {kind:#04x} is unknown", actual=kind)
    at, stop = _length_prefixed(data, start + 1, end)
    out.append(f'"base64:type{data[start]}:{base64.b64encode(data[at:stop]).decode()}"')
    return stop - start


def _container(data: bytes, is_object: bool, start: int, end: int, depth: int, out: list[str]) -> int:
    if depth > MAX_DEPTH:
        raise InvalidField("a JSON document is nested too deeply", expected=MAX_DEPTH, actual=depth)
    if end - start < HEAD.size:
        raise InvalidField("a JSON object or array is cut off", expected=HEAD.size, actual=end - start)
    count, size = HEAD.unpack_from(data, start)
    keys_at = start + HEAD.size
    values_at = keys_at + (count * KEY_ENTRY.size if is_object else 0)
    room = size - (values_at - start) - count * VALUE_ENTRY.size
    if size > end - start or room < 0:
        raise InvalidField(
            f"a JSON object or array of {count} values and {size} bytes does not fit",
            expected=end - start,
            actual=size,
        )
    end = start + size
    entries = VALUE_ENTRY.iter_unpack(data[values_at : values_at + count * VALUE_ENTRY.size])
    keys = KEY_ENTRY.iter_unpack(data[keys_at:values_at]) if is_object else repeat(None, count)
    out.append("{" if is_object else "[")
    separator = ""
    for key, (kind, offset) in zip(keys, entries, strict=True):
        if key is not None:
            key_offset, length = key
            room -= length
            if key_offset + length > size:
                raise InvalidField(
                    "a JSON key lies outside of its object", expected=size, actual=key_offset + length
                )
            at = start + key_offset
            out.append(f"{separator}{_quoted(data[at : at + length].decode())}: ")
        elif separator:
            out.append(separator)
        separator = ", "
        if kind == LITERAL:
            out.append(_literal_text(offset & 0xFF))
            continue
        if offset >= size:
            raise InvalidField(
                "a JSON value lies outside of its object or array", expected=size, actual=offset
            )
        room -= _value(data, kind, start + offset, end, depth + 1, out)
        if room < 0:
            raise InvalidField("the values of a JSON object or array overlap", expected=size)
    out.append("}" if is_object else "]")
    return size


def _length_prefixed(data: bytes, start: int, end: int) -> tuple[int, int]:
    """(first, last + 1) of the bytes after a uvarint length."""
    if start < end and data[start] < 0x80 and start + 1 + data[start] <= end:
        return start + 1, start + 1 + data[start]
    length = shift = 0
    for at in range(start, min(start + 5, end)):
        length |= (data[at] & 0x7F) << shift
        if data[at] < 0x80:
            if at + 1 + length > end:
                break
            return at + 1, at + 1 + length
        shift += 7
    raise InvalidField("a JSON string does not fit into its document", expected=end - start, actual=length)


def _quoted(text: str) -> str:
    if _NEEDS_ESCAPE.search(text):
        text = _NEEDS_ESCAPE.sub(lambda found: _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}", text)
    return f'"{text}"'


def _literal_text(code: int) -> str:
    try:
        return LITERALS[code]
    except KeyError:
        raise InvalidField(f"JSON literal {code} is none of null, true, false", actual=code) from None


def _float(data: bytes, at: int) -> str:
    """Plain notation with at least one decimal from 1e-15 up to 1e15, else an exponent without `+` and leading zeros."""
    (number,) = F64.unpack_from(data, at)
    if number != number or number in (float("inf"), float("-inf")):
        raise InvalidField("a JSON number is not finite", actual=str(number))
    if number and not 1e-15 <= abs(number) < 1e15:
        mantissa, _, exponent = f"{number!r}".partition("e")
        if not exponent:
            return _exponent_form(mantissa)
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    text = repr(number)
    if "e" in text:
        text = f"{number:.{_decimals(text)}f}"
    return text


def _exponent_form(plain: str) -> str:
    """`1234567890123456.0`, as Python prints up to 1e16, with an exponent."""
    sign = "-" if plain.startswith("-") else ""
    digits = plain.removeprefix("-").removesuffix(".0")
    point = digits.find(".")
    exponent = (len(digits) if point < 0 else point) - 1
    digits = digits.replace(".", "").rstrip("0")
    return f"{sign}{digits[0]}{'.' + digits[1:] if digits[1:] else ''}e{exponent}"


def _decimals(text: str) -> int:
    """Digits after the point that the plain notation of `1.5e-07` has."""
    mantissa, _, exponent = text.partition("e")
    return len(mantissa.removeprefix("-").replace(".", "")) - 1 - int(exponent)


def datetime_text(value: int, is_date: bool) -> str:
    year, month, day = value >> 50, value >> 46 & 0xF, value >> 41 & 0x1F
    text = f"{year:04d}-{month:02d}-{day:02d}"
    if is_date:
        return text
    hour, minute, second, microsecond = (
        value >> 36 & 0x1F,
        value >> 30 & 0x3F,
        value >> 24 & 0x3F,
        value >> 4 & 0xFFFFF,
    )
    if hour > 23 or minute > 59 or second > 59 or microsecond > 999_999:
        raise InvalidField("a JSON date or time with a field out of range")
    return f"{text} {hour:02d}:{minute:02d}:{second:02d}.{microsecond:06d}"


def _datetime(is_date: bool):
    return lambda data, at: f'"{datetime_text(U64.unpack_from(data, at)[0], is_date)}"'


def _time(data: bytes, at: int) -> str:
    nanoseconds, _ = TIME_VALUE.unpack_from(data, at)
    seconds, rest = divmod(abs(nanoseconds), 10**9)
    sign = "-" if nanoseconds < 0 else ""
    return f'"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{rest // 1000:06d}"'


_SCALARS = {
    LITERAL: (1, lambda data, at: _literal_text(data[at])),
    INT64: (I64.size, lambda data, at: str(I64.unpack_from(data, at)[0])),
    UINT64: (U64.size, lambda data, at: str(U64.unpack_from(data, at)[0])),
    FLOAT64: (F64.size, _float),
    DATE: (U64.size, _datetime(is_date=True)),
    DATETIME: (U64.size, _datetime(is_date=False)),
    TIMESTAMP: (U64.size, _datetime(is_date=False)),
    TIME: (TIME_VALUE.size, _time),
}


def json_bytes(text: str) -> bytes:
    """The binary document of a JSON text. Dates and opaque values have no text of their own: they become strings."""
    try:
        value = json.loads(text)
        kind, body = _pack(value, 1)
    except (ValueError, RecursionError) as error:
        raise InvalidField(f"not a JSON text: {error}", expected="JSON") from None
    return bytes([kind]) + body


def _pack(value: Any, depth: int) -> tuple[int, bytes]:
    if value is None or isinstance(value, bool):
        return LITERAL, bytes([{None: 0, True: 1, False: 2}[value]])
    if isinstance(value, int):
        if -(1 << 63) <= value < 1 << 63:
            return INT64, I64.pack(value)
        if 0 <= value < 1 << 64:
            return UINT64, U64.pack(value)
        value = float(value)
    if isinstance(value, float):
        return FLOAT64, F64.pack(value)
    if isinstance(value, str):
        data = value.encode("utf-8")
        return STRING, _uvarint(len(data)) + data
    if depth > MAX_DEPTH:
        raise InvalidField("a JSON document is nested too deeply", expected=MAX_DEPTH, actual=depth)
    if isinstance(value, list):
        return ARRAY, _pack_container([], [_pack(item, depth + 1) for item in value])
    items = sorted((key.encode("utf-8"), item) for key, item in value.items()) if value else []
    return OBJECT, _pack_container(
        [key for key, _ in items], [_pack(item, depth + 1) for _, item in items], True
    )


def _pack_container(keys: list[bytes], values: list[tuple[int, bytes]], is_object: bool = False) -> bytes:
    position = HEAD.size + len(values) * VALUE_ENTRY.size + (len(keys) * KEY_ENTRY.size if is_object else 0)
    key_entries, value_entries, bodies = [], [], []
    for key in keys:
        if len(key) > 0xFFFF:
            raise InvalidField("a JSON key is longer than 65,535 bytes", expected=0xFFFF, actual=len(key))
        key_entries.append(KEY_ENTRY.pack(position, len(key)))
        bodies.append(key)
        position += len(key)
    for kind, body in values:
        if kind == LITERAL:
            value_entries.append(VALUE_ENTRY.pack(kind, body[0]))
            continue
        value_entries.append(VALUE_ENTRY.pack(kind, position))
        bodies.append(body)
        position += len(body)
    return b"".join([HEAD.pack(len(values), position), *key_entries, *value_entries, *bodies])


def _uvarint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
