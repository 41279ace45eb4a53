"""Which bytes of a frame are what: the decoder is run with a cursor that remembers the fields it was asked for.

The spans of an explanation cover every byte of the frame exactly once. What the decoder did not reach, because something before it is
wrong, is a span of kind `undecoded`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tidemark.wire import types
from tidemark.wire.cursor import RecordingCursor, Span
from tidemark.wire.errors import InvalidField, WireError
from tidemark.wire.header import HEADER_FIELDS, HEADER_SIZE, read_header
from tidemark.wire.registry import READER
from tidemark.wire.table_form import compact_type, type_name
from tidemark.wire.table_info import Column, TableInfo

UNDECODED = "undecoded"
_CHUNK_U32 = struct.Struct("<I")
_CHUNK_I64 = struct.Struct("<q")
_LENGTH = struct.Struct(">Q")


@dataclass(frozen=True)
class Explanation:
    spans: tuple[Span, ...]
    error: WireError | None


def explain_frame(frame: bytes, table: TableInfo | None = None) -> Explanation:
    """The spans of a frame, which may be cut short or wrong. `table` is what the row chunk of a batch needs to be read."""
    data = memoryview(frame)
    cursor = RecordingCursor(data, 0, len(data), READER)
    error = _walk(cursor)
    spans: list[Span] = []
    for span in cursor.spans:
        parts, part_error = _parts(data, span, table)
        spans += parts
        error = error or part_error
    return Explanation(tuple(_cover(spans, len(data))), error)


def _walk(cursor: RecordingCursor) -> WireError | None:
    try:
        header = read_header(cursor.data)
        for name, size, kind in HEADER_FIELDS:
            cursor.span(name, size, kind)
        codec = READER.codec(header.event_type, header.version)
        if header.payload_length < cursor.remaining:
            cursor.end = HEADER_SIZE + header.payload_length
        codec.parse(cursor, header.version)
        cursor.finish()
        if header.payload_length != len(cursor.data) - HEADER_SIZE:
            READER.decode(cursor.data)  # says what is wrong with the length
    except WireError as error:
        return error
    return None


def _parts(data: memoryview, span: Span, table: TableInfo | None) -> tuple[list[Span], WireError | None]:
    """A field that has a layout of its own is replaced by its parts."""
    if span.kind == "table info" and span.size:
        return _table_info_parts(data, span), None
    if span.kind == "chunk" and span.size and table is not None:
        return _chunk_parts(data, span, table)
    return [span], None


def _table_info_parts(data: memoryview, span: Span) -> list[Span]:
    end = span.start + span.size
    if span.size < _LENGTH.size:
        return [span]
    columns_size = _LENGTH.unpack_from(data, end - _LENGTH.size)[0]
    table_size = span.size - _LENGTH.size - columns_size
    if table_size < 0:
        return [span]
    path = (*span.path, span.name)
    return [
        Span(span.start, table_size, path, "table", "json"),
        Span(span.start + table_size, columns_size, path, "columns", "json"),
        Span(end - _LENGTH.size, _LENGTH.size, path, "size of columns", "u64"),
    ]


def _chunk_parts(data: memoryview, span: Span, table: TableInfo) -> tuple[list[Span], WireError | None]:
    cursor = RecordingCursor(data, span.start, span.start + span.size, READER)
    cursor.path = (*span.path, span.name)
    try:
        for column in table.columns:
            _chunk_column(cursor, column)
        cursor.finish()
    except WireError as error:
        return cursor.spans, error
    return cursor.spans, None


def _chunk_column(cursor: RecordingCursor, column: Column) -> None:
    """row_count:u32 null_count:u32 [bitmap] [offsets] data, little-endian."""
    with cursor.group(f"{column.name} {_short_type(column)}"):
        (rows,) = _CHUNK_U32.unpack_from(cursor.data, cursor.span("row count", 4, "u32 little-endian"))
        (nulls,) = _CHUNK_U32.unpack_from(cursor.data, cursor.span("null count", 4, "u32 little-endian"))
        if nulls:
            cursor.span("not-null bitmap", (rows + 7) // 8, "bitmap")
        width = types.FIXED_WIDTH.get(column.kind)
        if width is None:
            offsets = cursor.span("offsets", (rows + 1) * 8, "offsets")
            (size,) = _CHUNK_I64.unpack_from(cursor.data, offsets + rows * 8)
            if size < 0:
                raise InvalidField(
                    f"the last offset is negative: {size}", offset=offsets + rows * 8, actual=size
                )
            cursor.span("data", size, "bytes")
        else:
            cursor.span("data", rows * width, "cells")


def _short_type(column: Column) -> str:
    """The type without the members of an enum or a set, which may be thousands."""
    return type_name(column) if column.elems else compact_type(column)


def _cover(spans: list[Span], end: int) -> Iterator[Span]:
    """The spans in order of place, with the gaps between them."""
    position = 0
    for span in sorted(spans, key=lambda span: (span.start, span.size)):
        if span.start > position:
            yield Span(position, span.start - position, (), "not decoded", UNDECODED)
        yield span
        position = span.start + span.size
    if position < end:
        yield Span(position, end - position, (), "not decoded", UNDECODED)
