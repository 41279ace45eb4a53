"""What an encoder is, and the registry that finds one by the protocol's name.

An encoder turns row changes into messages (`encode_rows`, one per row change, each complete on its own; `pack` then puts those of a partition together
where the protocol has batches). One for storage sinks turns them into the content of a data file, too (`encode_file`, one buffer with a length per row
change). Both are columnar. DDL statements and watermarks are single events.

A new protocol is one module with a class like these and one line in ENCODERS.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.encode.ddl import DdlStatement
from tidemark.encode.errors import UnknownProtocol
from tidemark.wire.rows import RowBatch
from tidemark.wire.table_info import TableInfo

if TYPE_CHECKING:
    from tidemark.config import Settings

# protocol -> module of this package, class, kinds of sinks that send it
ENCODERS = {
    "csv": ("csv", "CsvEncoder", ("storage",)),
    "canal-json": ("canal_json", "CanalJsonEncoder", ("storage", "kafka")),
    "avro": ("avro", "AvroEncoder", ("storage", "kafka")),
    "open-protocol": ("open_protocol", "OpenProtocolEncoder", ("kafka",)),
}


def protocols_of(sink_kind: str) -> tuple[str, ...]:
    """The protocols that a kind of sink can send."""
    return tuple(name for name, (_, _, sinks) in ENCODERS.items() if sink_kind in sinks)


@dataclass(frozen=True)
class Messages:
    """One entry per message, in the order of the row changes."""

    # Index of the row change in batch.changes.
    change: np.ndarray
    # NULL: no key.
    key: pa.BinaryArray
    # NULL: no value (an Avro delete), or an error.
    value: pa.BinaryArray
    # Why the row has no message; NULL where it has one.
    error: pa.StringArray

    def __len__(self) -> int:
        return len(self.change)


@dataclass(frozen=True)
class EncodedFile:
    """Rows as they follow each other in a data file, without the header line."""

    data: pa.Buffer
    # Bytes of each row change; 0 where it cannot be encoded.
    lengths: np.ndarray
    # Why a row change has no bytes; None when all have.
    error: pa.StringArray | None


@dataclass(frozen=True)
class Message:
    """A message that is no row change."""

    key: bytes | None
    value: bytes | None


class FileBody(Protocol):
    """The encoded rows of one data file on their way into it."""

    def add(self, data: memoryview, offsets: np.ndarray) -> list[bytes | memoryview]:
        """What can be written when these rows have come: row n has the bytes from offsets[n] to offsets[n + 1], counted from offsets[0]."""

    def end(self) -> list[bytes | memoryview]:
        """What is left to be written when no more rows come."""


class PlainBody:
    """Rows as they are."""

    def add(self, data: memoryview, offsets: np.ndarray) -> list[bytes | memoryview]:
        return [data]

    def end(self) -> list[bytes | memoryview]:
        return []


class Encoder(Protocol):
    def encode_rows(self, batch: RowBatch) -> Messages: ...

    def pack(
        self, key: pa.BinaryArray, value: pa.BinaryArray
    ) -> tuple[pa.BinaryArray, pa.BinaryArray, np.ndarray]:
        """Messages of one partition, in order, as they are sent: (keys, values, number of the first one in each)."""

    def encode_ddl(self, ddl: DdlStatement) -> Message | None:
        """None where the protocol or its settings say nothing of DDL."""

    def encode_watermark(self, ts: int) -> Message | None:
        """None where the protocol or its settings say nothing of progress."""


class RowMessages:
    """Part of the encoders whose messages hold one row change each."""

    def pack(
        self, key: pa.BinaryArray, value: pa.BinaryArray
    ) -> tuple[pa.BinaryArray, pa.BinaryArray, np.ndarray]:
        return key, value, np.arange(len(key))


class FileEncoder(Encoder, Protocol):
    """The encoder of a protocol that storage sinks write."""

    # Of data files, with its dot.
    extension: str

    def encode_file(self, batch: RowBatch) -> EncodedFile: ...

    def file_header(self, table: TableInfo) -> bytes:
        """What a data file starts with."""

    def file_body(self, table: TableInfo) -> FileBody:
        """For each data file, what puts its rows together."""


def encoder_for(settings: Settings, clock: Callable[[], int] | None = None) -> Encoder:
    """The encoder of the protocol in force. `clock` gives the build time of messages in milliseconds, where the protocol has one."""
    try:
        module, name, _ = ENCODERS[settings.protocol]
    except KeyError:
        known = ", ".join(ENCODERS)
        raise UnknownProtocol(f"protocol {settings.protocol!r} has no encoder here; known: {known}") from None
    return getattr(importlib.import_module(f"tidemark.encode.{module}"), name)(settings, clock)


def first_error(errors: list[pa.Array]) -> pa.StringArray | None:
    """The first reason of each row, or None when no row has one."""
    errors = [error for error in errors if error.null_count < len(error)]
    return pc.coalesce(*errors) if errors else None


def packed(encoder: Encoder, messages: Messages) -> Messages:
    """Messages as one partition gets them. A row change without a message stands between two."""
    failed = messages.error.is_valid().to_numpy(zero_copy_only=False)
    edges = [0, *(np.flatnonzero(failed[1:] | failed[:-1]) + 1).tolist(), len(messages)]
    keys, values, firsts = [], [], []
    for start, end in itertools.pairwise(edges):
        key, value, first = encoder.pack(messages.key[start:end], messages.value[start:end])
        keys.append(key)
        values.append(value)
        firsts.append(first + start)
    kept = np.concatenate(firsts)
    return Messages(
        messages.change[kept],
        pa.concat_arrays(keys),
        pa.concat_arrays(values),
        messages.error.take(pa.array(kept)),
    )
