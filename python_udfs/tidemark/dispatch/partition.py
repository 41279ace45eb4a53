"""Which partition a row change goes to, for whole batches.

    hash         := 0 ^ crc32(schema + table) ^ crc32(name + text) of each key column that is not NULL
    partition    := hash mod count                columns, index-value, rowid, pk
                  | crc32(schema + table) mod count         table, default
                  | commit ts mod count                     ts
                  | the number                              a number
                  | 0, and the message carries the key      Pulsar's fixed key

Names are those of the table's definition, in their case; what the text of a value is, `column_hash` says. A row
change is hashed by its new image, a delete by its old one; so an update that changes the key goes to where the new key lives.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.dispatch.column_hash import ColumnHash, column_hash, without_nulls
from tidemark.dispatch.crc_texts import crc32_texts
from tidemark.wire.rows import RowBatch
from tidemark.wire.table_info import Column, TableInfo


@dataclass(frozen=True)
class Fixed:
    """All rows of the table go to one partition."""

    partition: int
    key: str

    def partitions(self, batch: RowBatch, count: int) -> np.ndarray:
        return np.full(len(batch.changes), self.partition % count, np.int32)

    def keys(self, batch: RowBatch) -> pa.StringArray:
        return pa.array([self.key], pa.string()).take(pa.array(np.zeros(len(batch.changes), np.int32)))


@dataclass(frozen=True)
class ByCommitTs:
    def partitions(self, batch: RowBatch, count: int) -> np.ndarray:
        return _modulo(batch.changes.commit_ts, count)

    def keys(self, batch: RowBatch) -> pa.StringArray:
        return pc.cast(pa.array(batch.changes.commit_ts), pa.string())


@dataclass(frozen=True)
class ByColumns:
    seed: int
    columns: tuple[ColumnHash, ...]

    def partitions(self, batch: RowBatch, count: int) -> np.ndarray:
        return _modulo(self.hashes(batch), count)

    def keys(self, batch: RowBatch) -> pa.StringArray:
        return pc.cast(pa.array(self.hashes(batch)), pa.string())

    def hashes(self, batch: RowBatch) -> np.ndarray:
        """One uint32 per row change."""
        changes = batch.changes
        if not self.columns or not len(changes):
            return np.full(len(changes), self.seed, np.uint32)
        # Every physical row is hashed, old images too: picking hashes afterwards is cheaper than picking values before.
        by_row = None
        for column in self.columns:
            crcs = column.crcs(batch)
            by_row = crcs if by_row is None else np.bitwise_xor(by_row, crcs, out=by_row)
        by_row ^= np.uint32(self.seed)
        # All of these rows exist; "clip" spares numpy the check.
        return by_row.take(changes.last_images(), mode="clip")


Partitioner = Fixed | ByCommitTs | ByColumns


def table_hash(schema: str, table: str) -> int:
    return zlib.crc32((schema + table).encode())


def by_table(table: TableInfo) -> Fixed:
    return Fixed(table_hash(table.schema, table.table), f"{table.schema}.{table.table}")


def by_columns(table: TableInfo, columns: Sequence[Column]) -> ByColumns:
    positions = {column.name: position for position, column in enumerate(table.columns)}
    hashes = tuple(column_hash(column, positions[column.name]) for column in columns)
    return ByColumns(table_hash(table.schema, table.table), hashes)


def hash_columns(names: Sequence[str], texts: Sequence[pa.Array], seed: int = 0) -> pa.UInt32Array:
    """seed ^ crc32(name + text) of every column that is not NULL, row by row; for key values that are text already.

    `texts` are string or binary arrays of equal length, one per name. With `seed = table_hash(schema, table)` this is the hash of the rules.
    """
    if not texts:
        raise ValueError("hash_columns needs at least one column")
    out = np.full(len(texts[0]), seed, np.uint32)
    for name, text in zip(names, texts, strict=True):
        out ^= without_nulls(crc32_texts(name.encode(), text), text)
    return pa.array(out)


def hash_lists(texts: pa.ListArray) -> pa.UInt32Array:
    """XOR of the crc32 of a row's texts; for rows whose key columns differ, each text being name + value. NULLs do not count."""
    values = texts.flatten()
    crcs = without_nulls(crc32_texts(b"", values), values)
    counts = pc.fill_null(pc.list_value_length(texts), 0).to_numpy(zero_copy_only=False)
    out = np.zeros(len(texts), np.uint32)
    filled = counts > 0
    starts = np.cumsum(counts) - counts
    if filled.any():
        out[filled] = np.bitwise_xor.reduceat(crcs, starts[filled])
    return pa.array(out)


def _modulo(numbers: np.ndarray, count: int) -> np.ndarray:
    divisor = numbers.dtype.type(count)
    if (count & (count - 1)) == 0:
        rest = numbers & divisor - numbers.dtype.type(1)
    else:
        # numpy divides by a constant with SIMD instructions, but takes remainders one by one.
        rest = numbers // divisor
        rest *= divisor
        np.subtract(numbers, rest, out=rest)
    return rest.view(np.int32) if rest.itemsize == 4 else rest.astype(np.int32)
