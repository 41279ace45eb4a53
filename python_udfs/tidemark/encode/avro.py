"""Avro: a key and a value per row change, in the frame of the Confluent registry.

    message := 00 schema id:u32 datum                                (big endian)

An insert or update has a key and a value, a delete a key and no value; a table without a key has no keys (avro_schema.py says which key counts). With
enable-tidb-extension the value ends with the operation ("c" or "u"), the commit ts and its physical time in milliseconds; with avro-enable-watermark on top, DDL
statements and watermarks are messages too: a byte 1 and a JSON object, a byte 2 and the ts. With `compat: ticdc` a delete then has a value, too: a byte 3 and the
commit ts, without which TiCDC's consumer keeps the row.

Schemas are registered when rows need them, the key's before the value's, once per table version, under the subjects of the table's topic. A topic
has one schema, so two tables cannot share one (TopicNameStrategy); `compat: ticdc` leaves that to the registry.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.encode.avro_binary import Piece, constant, fixed, joined, long
from tidemark.encode.avro_columns import field_pieces, operation
from tidemark.encode.avro_files import ContainerFiles, MessageFiles
from tidemark.encode.avro_schema import DEFAULT_KEYSPACE, RecordSchema
from tidemark.encode.avro_tables import AvroSchemas
from tidemark.encode.columns import rows_of
from tidemark.encode.ddl import DdlStatement
from tidemark.encode.limits import RECORD_OVERHEAD, largest_message, too_large
from tidemark.encode.protocol import EncodedFile, FileBody, Message, Messages, RowMessages, first_error
from tidemark.encode.strings import contiguous, offsets_of
from tidemark.registry.errors import RegistryError
from tidemark.registry.open import open_registry
from tidemark.registry.sequential import SequentialIds
from tidemark.wire.rows import DELETE, UPDATE, RowBatch
from tidemark.wire.table_info import TableInfo
from tidemark.wire.table_json import go_json

if TYPE_CHECKING:
    from tidemark.config import Settings

FRAME = struct.Struct(">BI")
MAGIC = 0
_DDL, _WATERMARK, _DELETE = 1, 2, 3
# The low bits of a ts count within a millisecond.
_TS_LOGICAL_BITS = 18


class SchemaIds(Protocol):
    """What an encoder needs of a registry."""

    def register(self, subject: str, schema: str) -> int:
        """The id of a schema under a subject, which has it from now on."""


class AvroEncoder(RowMessages):
    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], int] | None = None,
        *,
        registry: SchemaIds | None = None,
        keyspace: str = DEFAULT_KEYSPACE,
    ):
        """Without `registry`, the one of the settings is opened when the first schema is needed. Avro messages carry no build time."""
        options, is_storage = settings.uri.options, settings.sink_kind == "storage"
        is_container = is_storage and options.avro_file_format == "container"
        self._files = ContainerFiles() if is_container else MessageFiles()
        self.extension = self._files.extension
        if registry is None and is_container and not options.schema_registry:
            # Ids do not get into such files.
            registry = SequentialIds()
        self._settings = settings
        self._registry = registry
        self._schemas = AvroSchemas(settings, keyspace)
        self._extended = options.enable_tidb_extension
        self._max_message_bytes = largest_message(settings)
        self._events = options.enable_tidb_extension and options.avro_enable_watermark
        # A container file has a schema for its values, which a marker does not fit.
        self._delete_markers = self._events and settings.compat.avro_delete_markers and not is_container
        self._ids: dict[tuple[str, str], int] = {}

    def register(self, table: TableInfo) -> None:
        """Register the schemas of a table version before its rows come; `encode_rows` does it otherwise."""
        schemas = self._schemas.of(table)
        for subject, schema in zip(schemas.subjects, (schemas.key, schemas.value), strict=True):
            if schema is not None and not isinstance(schema, str):
                self._id(subject, schema, table)

    def has_key(self, table: TableInfo) -> bool:
        """Whether messages of a table version have keys. Without one, a delete says nothing."""
        return self._schemas.of(table).key is not None

    def encode_rows(self, batch: RowBatch) -> Messages:
        changes = batch.changes
        count = len(changes)
        schemas = self._schemas.of(batch.table)
        deleted = changes.op == DELETE
        rows = np.where(deleted, changes.pre, changes.post)
        key, errors = pa.nulls(count, pa.binary()), []
        if schemas.key is not None:
            everything = np.ones(count, bool)
            key, error = self._datums(batch, schemas.subjects[0], schemas.key, rows, everything, ())
            errors.append(error)
        live = ~deleted
        value, error = self._datums(
            batch, schemas.subjects[1], schemas.value, rows, live, self._extension(batch, live)
        )
        errors.append(error)
        if self._delete_markers and deleted.any():
            value = pc.if_else(pa.array(deleted), _delete_markers(changes.commit_ts), value)
        error = first_error([error for error in [*errors, self._too_large(key, value)] if error is not None])
        if error is None:
            return Messages(np.arange(count), key, value, pa.nulls(count, pa.string()))
        nothing = pa.scalar(None, pa.binary())
        failed = error.is_valid()
        return Messages(
            np.arange(count), pc.if_else(failed, nothing, key), pc.if_else(failed, nothing, value), error
        )

    def encode_file(self, batch: RowBatch) -> EncodedFile:
        messages = self.encode_rows(batch)
        count = len(messages)
        data = joined(self._files.pieces(messages, self._schemas.of(batch.table), FRAME.size), count)
        failed = messages.error.is_valid()
        lengths = np.diff(offsets_of(data)).astype(np.int64)
        if messages.error.null_count == count:
            return EncodedFile(contiguous(data), lengths, None)
        lengths[failed.to_numpy(zero_copy_only=False)] = 0
        return EncodedFile(contiguous(data.filter(pc.invert(failed))), lengths, messages.error)

    def file_header(self, table: TableInfo) -> bytes:
        return self._files.header(self._schemas.of(table))

    def file_body(self, table: TableInfo) -> FileBody:
        return self._files.body(self._schemas.of(table))

    def encode_ddl(self, ddl: DdlStatement) -> Message | None:
        if not self._events:
            return None
        document = {
            "query": ddl.query,
            "type": ddl.type,
            "schema": ddl.schema,
            "table": ddl.table,
            "commitTs": ddl.finished_ts,
        }
        return Message(None, bytes([_DDL]) + go_json(document))

    def encode_watermark(self, ts: int) -> Message | None:
        return Message(None, bytes([_WATERMARK]) + ts.to_bytes(8, "big")) if self._events else None

    def _datums(
        self,
        batch: RowBatch,
        subject: str,
        schema: RecordSchema | str,
        rows: np.ndarray,
        wanted: np.ndarray,
        more: tuple[Piece, ...],
    ) -> tuple[pa.BinaryArray, pa.StringArray | None]:
        """(framed datums of the row changes that are wanted, why a row change has none)"""
        if not wanted.any():
            return pa.nulls(len(wanted), pa.binary()), None
        if isinstance(schema, str):
            reason = pa.array(np.where(wanted, schema, None), pa.string())
            return pa.nulls(len(wanted), pa.binary()), reason
        rows = rows[wanted]
        columns = rows_of(batch.columns.select([field.position for field in schema.fields]), rows)
        pieces: list[Piece] = [constant(FRAME.pack(MAGIC, self._id(subject, schema, batch.table)), len(rows))]
        errors = []
        for field, array in zip(schema.fields, columns.columns, strict=True):
            some, error = field_pieces(array, field)
            pieces += some
            errors += [] if error is None else [error]
        datums = joined([*pieces, *more], len(rows))
        return _spread(datums, wanted), _spread_text(first_error(errors), wanted)

    def _extension(self, batch: RowBatch, live: np.ndarray) -> tuple[Piece, ...]:
        if not self._extended:
            return ()
        ts = batch.changes.commit_ts[live]
        physical = ts >> np.uint64(_TS_LOGICAL_BITS)
        return (
            operation(batch.changes.op[live] == UPDATE),
            long(ts.view(np.int64)),
            long(physical.view(np.int64)),
        )

    def _id(self, subject: str, schema: RecordSchema, table: TableInfo) -> int:
        known = self._ids.get((subject, schema.text))
        if known is None:
            try:
                self._registry = self._registry or open_registry(self._settings)
                known = self._ids[subject, schema.text] = self._registry.register(subject, schema.text)
            except RegistryError as problem:
                problem.table = f"{table.schema}.{table.table}"
                raise
        return known

    def _too_large(self, key: pa.BinaryArray, value: pa.BinaryArray) -> pa.StringArray | None:
        lengths = np.diff(offsets_of(key)) + np.diff(offsets_of(value)) + RECORD_OVERHEAD
        return (
            too_large(lengths, self._max_message_bytes)
            if lengths.max(initial=0) > self._max_message_bytes
            else None
        )


def _delete_markers(commit_ts: np.ndarray) -> pa.BinaryArray:
    return joined(
        [constant(bytes([_DELETE]), len(commit_ts)), fixed(commit_ts.astype(">u8"))], len(commit_ts)
    )


def _spread(values: pa.BinaryArray, where: np.ndarray) -> pa.BinaryArray:
    """`values` in the rows that `where` marks, in order; NULL in all others. No bytes are moved."""
    if len(values) == len(where):
        return values
    edges = offsets_of(values)
    offsets = np.empty(len(where) + 1, np.int32)
    offsets[0] = edges[0]
    offsets[1:] = edges[np.cumsum(where)]
    valid = pa.array(where).buffers()[1]
    buffers = [valid, pa.py_buffer(offsets), values.buffers()[2]]
    return pa.Array.from_buffers(pa.binary(), len(where), buffers, null_count=len(where) - len(values))


def _spread_text(values: pa.StringArray | None, where: np.ndarray) -> pa.StringArray | None:
    if values is None or len(values) == len(where):
        return values
    index = np.cumsum(where) - 1
    return values.take(pa.array(index, mask=~where))
