"""Files of Avro rows, in two forms.

`messages`: what Kafka would get, one message after another.

    file    := (length:i32 key length:i32 value)*                    (big endian; a length of -1: there is none)

`container`: Avro's own object container files, which any Avro library reads. The schema is in the file, so no registry is needed.

    file    := "Obj" 01 metadata sync[16] block*
    block   := rows:long size:long (change)* sync[16]
    change  := {"key": null | key record, "value": null | value record}       ("value" is null for a delete)

The names of key and value records are those of the registry's schemas, but for `_key` behind the first: one schema cannot define a name twice. Where blocks end,
and the sync marker, follow from the rows and the schema alone, so a file that is written again is the same.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.encode.avro_binary import Narrow, Piece, small_number
from tidemark.encode.protocol import FileBody, Messages, PlainBody
from tidemark.encode.strings import offsets_of

if TYPE_CHECKING:
    from tidemark.encode.avro_tables import TableSchemas

NO_BYTES = -1
_LENGTH = np.dtype(">i4")
_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
BLOCK_BYTES = 1024 * 1024
# The numbers of the branches null and record, as Avro writes them.
_NULL, _RECORD = b"\x00", b"\x02"


class MessageFiles:
    extension = ".messages"

    def header(self, schemas: TableSchemas) -> bytes:
        return b""

    def body(self, schemas: TableSchemas) -> FileBody:
        return PlainBody()

    def pieces(self, messages: Messages, schemas: TableSchemas, frame: int) -> list[Piece]:
        return [*_with_length(messages.key), *_with_length(messages.value)]


class ContainerFiles:
    extension = ".avro"

    def header(self, schemas: TableSchemas) -> bytes:
        schema = _change_schema(schemas)
        if schema is None:
            # Then no row of the table can be encoded, and there is no file.
            return b""
        entries = [(b"avro.schema", schema), (b"avro.codec", b"null")]
        metadata = b"".join(_sized(part) for entry in entries for part in entry)
        return _MAGIC + small_number(len(entries)) + metadata + small_number(0) + _sync(schemas)

    def body(self, schemas: TableSchemas) -> FileBody:
        return _Blocks(_sync(schemas))

    def pieces(self, messages: Messages, schemas: TableSchemas, frame: int) -> list[Piece]:
        """The datums of messages without their frames."""
        parts = [messages.key, messages.value] if schemas.key is not None else [messages.value]
        return [pc.binary_replace_slice(part, 0, frame, _RECORD).fill_null(_NULL) for part in parts]


class _Blocks:
    """A block is closed by the row that fills it, so blocks do not depend on how rows arrive."""

    def __init__(self, sync: bytes):
        self._sync = sync
        self._waiting: list[bytes] = []
        self._rows = self._size = 0

    def add(self, data: memoryview, offsets: np.ndarray) -> list[bytes | memoryview]:
        made: list[bytes | memoryview] = []
        ends, start = offsets[1:], 0
        while start < len(ends):
            full = int(np.searchsorted(ends, offsets[start] + BLOCK_BYTES - self._size))
            stop = min(full + 1, len(ends))
            piece = bytes(data[offsets[start] - offsets[0] : offsets[stop] - offsets[0]])
            self._waiting.append(piece)
            self._rows += stop - start
            self._size += len(piece)
            if self._size >= BLOCK_BYTES:
                made += self.end()
            start = stop
        return made

    def end(self) -> list[bytes | memoryview]:
        if not self._rows:
            return []
        block = [small_number(self._rows) + small_number(self._size), *self._waiting, self._sync]
        self._waiting, self._rows, self._size = [], 0, 0
        return block


def _change_schema(schemas: TableSchemas) -> bytes | None:
    if isinstance(schemas.value, str) or isinstance(schemas.key, str):
        return None
    value = json.loads(schemas.value.text)
    fields = [{"name": "value", "type": ["null", value]}]
    if schemas.key is not None:
        key = json.loads(schemas.key.text)
        key["name"] += "_key"
        fields.insert(0, {"name": "key", "type": ["null", key]})
    change = {
        "type": "record",
        "name": f"{value['name']}_change",
        "namespace": value["namespace"],
        "fields": fields,
    }
    return json.dumps(change, ensure_ascii=False).encode()


def _sync(schemas: TableSchemas) -> bytes:
    return hashlib.sha256(_change_schema(schemas) or b"").digest()[:_SYNC_BYTES]


def _sized(data: bytes) -> bytes:
    return small_number(len(data)) + data


def _with_length(values: pa.BinaryArray) -> list[Piece]:
    lengths = np.diff(offsets_of(values)).astype(_LENGTH)
    lengths[values.is_null().to_numpy(zero_copy_only=False)] = NO_BYTES
    block = lengths.view(np.uint8).reshape(-1, _LENGTH.itemsize)
    return [Narrow(block, None, _LENGTH.itemsize), values.fill_null(b"")]
