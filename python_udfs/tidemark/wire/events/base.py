"""What every event has: the version it was read with (or is to be written with), a size, and a JSON form.

A codec turns the payload of one version of one event type into the event and back. It is four functions:

    parse(cursor, version) -> Event     reads the payload field by field; the names it asks for are those of `tidemark explain`
    write(event) -> bytes               the payload
    size(event) -> int                  len(write(event)), without writing
    read(data, start, end, version, reader) -> Event       `parse` with a plain cursor unless the event has a faster way
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.wire.cursor import Cursor
from tidemark.wire.errors import WireError
from tidemark.wire.ids import ID_SIZE
from tidemark.wire.json_form import id_form

if TYPE_CHECKING:
    from tidemark.wire.table_info import TableInfo


class Event:
    __slots__ = ()
    type_id: ClassVar[int]
    version: int

    def size(self) -> int:
        """Bytes of business data: neither the header nor the version counts, so `len(encode(e)) == e.size() + 16`."""
        # The registry imports every event, so an event can look for its codec only when asked.
        from tidemark.wire.registry import codec_of

        return codec_of(self, self.version).size(self)

    def fields(self) -> dict[str, Any]:
        """The event as JSON. This form serves events that are a row of ids and 64-bit numbers."""
        names = [field.name for field in dataclasses.fields(self) if field.name != "version"]
        values = {name: getattr(self, name) for name in names}
        return {name: id_form(v) if isinstance(v, bytes) else str(v) for name, v in values.items()}


@dataclass(frozen=True)
class Codec:
    parse: Callable[[Cursor, int], Event]
    write: Callable[[Any], bytes]
    size: Callable[[Any], int]
    read: Callable[..., Event] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.read is None:
            object.__setattr__(self, "read", self._read_fields)

    def _read_fields(self, data, start: int, end: int, version: int, reader) -> Event:
        cursor = Cursor(data, start, end, reader)
        event = self.parse(cursor, version)
        cursor.finish()
        return event


def read_table(raw: bytes, position: int) -> TableInfo:
    """The table info that stands at `position` of a frame."""
    from tidemark.wire.table_info import TableInfo

    try:
        return TableInfo.from_bytes(raw)
    except WireError as error:
        raise error.at(position) from None


def fixed(cls: type, *layout: str) -> Codec:
    """The codec of an event that is a row of fixed fields: each `name:kind` with kind u64 or id."""
    names = [field.split(":") for field in layout]
    packer = struct.Struct(">" + "".join({"u64": "Q", "id": f"{ID_SIZE}s"}[kind] for _, kind in names))

    def parse(cursor: Cursor, version: int) -> Event:
        return cls(version=version, **{name: getattr(cursor, kind)(name) for name, kind in names})

    return Codec(
        parse=parse,
        write=lambda event: packer.pack(*(getattr(event, name) for name, _ in names)),
        size=lambda event: packer.size,
    )
