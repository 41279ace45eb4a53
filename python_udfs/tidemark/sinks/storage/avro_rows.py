"""Avro data files as far as the doctor needs them: whether they are whole, and how many rows they have. Their values are not read back; any Avro library does that."""

from __future__ import annotations

import io
import struct

import fastavro

from tidemark.sinks.storage.errors import InvalidTree

_LENGTH = struct.Struct(">i")


def count_rows(data: bytes, extension: str) -> int:
    return _count_container(data) if extension == ".avro" else _count_messages(data)


def _count_container(data: bytes) -> int:
    try:
        return sum(block.num_records for block in fastavro.block_reader(io.BytesIO(data)))
    except Exception as error:  # fastavro raises many classes; each of them says that it cannot read the file
        raise InvalidTree(f"is no whole Avro file: {error}") from None


def _count_messages(data: bytes) -> int:
    """A message is a key and a value, each behind its length."""
    position = parts = 0
    while position + _LENGTH.size <= len(data):
        # -1: there is none.
        position += _LENGTH.size + max(_LENGTH.unpack_from(data, position)[0], 0)
        parts += 1
    if position != len(data) or parts % 2:
        raise InvalidTree("does not end with a whole message")
    return parts // 2
