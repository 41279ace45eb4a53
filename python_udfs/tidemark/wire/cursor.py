"""Reading a payload front to back (and its tail back to front) with every length checked before it is used.

A codec asks for fields by name. `Cursor` only checks and advances; `RecordingCursor` also notes which bytes each name covers, which is
all that `tidemark explain` needs: the decoder itself is the description of the layout.
"""

from __future__ import annotations

import struct
from contextlib import contextmanager
from typing import NamedTuple

from tidemark.wire.errors import InvalidField, TrailingBytes, TruncatedPayload, WireError, WrongEventType
from tidemark.wire.header import HEADER_FIELDS, Header, read_header
from tidemark.wire.ids import ID_SIZE

U8 = struct.Struct(">B")
U32 = struct.Struct(">I")
U64 = struct.Struct(">Q")
F64 = struct.Struct(">d")


class Cursor:
    """`data[start:end]` (of a memoryview) is what may be read. Errors give positions in `data`."""

    __slots__ = ("data", "end", "pos", "reader")

    def __init__(self, data, start: int, end: int, reader):
        self.data = data
        self.pos = start
        self.end = end
        self.reader = reader  # which versions of nested events are known

    @property
    def remaining(self) -> int:
        return self.end - self.pos

    def span(self, name: str, size: int, kind: str) -> int:
        """Where the next `size` bytes start; moves behind them. `kind` says how they are to be read."""
        start = self.pos
        if size > self.end - start:
            raise self.truncated(name, size, self.end - start)
        self.pos = start + size
        return start

    def span_back(self, name: str, size: int, kind: str) -> int:
        """Where the last `size` bytes start; they are no longer part of what is left."""
        start = self.end - size
        if start < self.pos:
            raise self.truncated(name, size, self.end - self.pos)
        self.end = start
        return start

    def truncated(self, name: str, size: int, left: int) -> TruncatedPayload:
        return TruncatedPayload(
            f"{name} takes {size} bytes, {left} are left", offset=self.pos, expected=size, actual=left
        )

    def invalid(self, message: str, *, start: int | None = None, expected=None, actual=None) -> InvalidField:
        offset = self.pos if start is None else start
        return InvalidField(message, offset=offset, expected=expected, actual=actual)

    def u8(self, name: str) -> int:
        return U8.unpack_from(self.data, self.span(name, 1, "u8"))[0]

    def u32(self, name: str) -> int:
        return U32.unpack_from(self.data, self.span(name, 4, "u32"))[0]

    def u64(self, name: str) -> int:
        return U64.unpack_from(self.data, self.span(name, 8, "u64"))[0]

    def f64(self, name: str) -> float:
        return F64.unpack_from(self.data, self.span(name, 8, "f64"))[0]

    def id(self, name: str) -> bytes:
        start = self.span(name, ID_SIZE, "id")
        return bytes(self.data[start : start + ID_SIZE])

    def raw(self, name: str, size: int, kind: str = "bytes") -> bytes:
        start = self.span(name, size, kind)
        return bytes(self.data[start : start + size])

    def text(self, name: str, size: int) -> str:
        start = self.span(name, size, "text")
        try:
            return bytes(self.data[start : start + size]).decode()
        except UnicodeDecodeError as error:
            raise self.invalid(f"{name} is not UTF-8", start=start + error.start) from None

    def count(self, name: str, width: int) -> int:
        """A u32 count of items that take at least `width` bytes each: refused when so many cannot be there."""
        start = self.pos
        return self._checked_count(name, self.u32(name), width, start)

    def count64(self, name: str, width: int) -> int:
        start = self.pos
        return self._checked_count(name, self.u64(name), width, start)

    def _checked_count(self, name: str, count: int, width: int, start: int) -> int:
        if count * width > self.remaining:
            raise TruncatedPayload(
                f"{name} says {count} items of at least {width} bytes, {self.remaining} bytes are left",
                offset=start,
                expected=count * width,
                actual=self.remaining,
            )
        return count

    def u64_back(self, name: str) -> int:
        return U64.unpack_from(self.data, self.span_back(name, 8, "u64"))[0]

    def raw_back(self, name: str, size: int, kind: str = "bytes") -> bytes:
        start = self.span_back(name, size, kind)
        return bytes(self.data[start : start + size])

    def frame_header(self) -> Header:
        """The header of a nested frame; its payload must fit into what is left."""
        try:
            header = read_header(self.data[self.pos : self.end])
        except WireError as error:
            raise error.at(self.pos) from None
        for name, size, kind in HEADER_FIELDS:
            self.span(name, size, kind)
        if header.payload_length > self.remaining:
            raise self.truncated("the nested payload", header.payload_length, self.remaining)
        return header

    def nested_event(self, expected_type: int):
        """The event of a nested frame, which must be of one type."""
        start, outer_end = self.pos, self.end
        header = self.frame_header()
        if header.event_type != expected_type:
            raise WrongEventType(
                f"a nested event of type {expected_type} was expected, found type {header.event_type}",
                offset=start + 4,
                expected=expected_type,
                actual=header.event_type,
            )
        codec = self.reader.codec(header.event_type, header.version, start)
        self.end = self.pos + header.payload_length
        event = codec.parse(self, header.version)
        self.finish()
        self.end = outer_end
        return event

    @contextmanager
    def group(self, name: str):
        """The fields read inside belong to `name`."""
        yield

    def finish(self) -> None:
        if self.pos != self.end:
            raise TrailingBytes(
                f"{self.end - self.pos} bytes follow the last field",
                offset=self.pos,
                expected=0,
                actual=self.end - self.pos,
            )


class Span(NamedTuple):
    """`size` bytes from `start`: one field. `path` names the groups around it, outermost first."""

    start: int
    size: int
    path: tuple[str, ...]
    name: str
    kind: str


class RecordingCursor(Cursor):
    """A cursor that remembers which bytes every field covered."""

    __slots__ = ("path", "spans")

    def __init__(self, data, start: int, end: int, reader):
        super().__init__(data, start, end, reader)
        self.spans: list[Span] = []
        self.path: tuple[str, ...] = ()

    def span(self, name: str, size: int, kind: str) -> int:
        start = super().span(name, size, kind)
        self.spans.append(Span(start, size, self.path, name, kind))
        return start

    def span_back(self, name: str, size: int, kind: str) -> int:
        start = super().span_back(name, size, kind)
        self.spans.append(Span(start, size, self.path, name, kind))
        return start

    @contextmanager
    def group(self, name: str):
        outer, self.path = self.path, (*self.path, name)
        yield
        self.path = outer
