"""A 64-bit fingerprint of the key of every row change.

The key is the handle key's values, or the record key in tables that have no handle key: what a consumer must see in order. CRC-32 is too
short to tell millions of keys apart, hence a second hash: words of eight bytes, each mixed by the finalizer of SplitMix64.
"""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa

from tidemark.dispatch.crc_texts import WORD, words_of
from tidemark.wire.rows import RowBatch
from tidemark.wire.text import canonical_text

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def key_fingerprints(batch: RowBatch) -> np.ndarray:
    """One uint64 per row change; equal for changes of the same key."""
    changes, table = batch.changes, batch.table
    name = np.uint64(zlib.crc32(f"{table.schema}.{table.table}".encode()))
    if not table.handle_key:
        return _mix(_fingerprints(changes.row_key.cast(pa.binary())) + name)
    out = np.full(batch.columns.num_rows, name, np.uint64)
    for column in table.columns:
        if column.name in table.handle_key:
            out = _mix(out + _fingerprints(_values(batch.columns.column(column.name), column)))
    return out.take(changes.last_images())


def _values(values: pa.Array, column) -> pa.Array:
    is_bytes = pa.types.is_binary(values.type) or pa.types.is_string(values.type)
    return values if is_bytes or pa.types.is_integer(values.type) else canonical_text(values, column)


def _fingerprints(values: pa.Array) -> np.ndarray:
    if pa.types.is_integer(values.type):
        return _mix(np.frombuffer(values.buffers()[1], np.uint64, len(values), values.offset * 8))
    if not len(values):
        return np.zeros(0, np.uint64)
    words, lengths = words_of(values)
    out = lengths.astype(np.uint64)
    for after in range(0, int(lengths.max()), WORD):
        rows = np.flatnonzero(lengths > after)
        # A word that reaches back over the start of its text is shifted until only the text's bytes are left.
        surplus = np.maximum(0, WORD - (lengths[rows] - after)).astype(np.uint64)
        out[rows] = _mix(out[rows] + (words.before(words.ends[rows] - 8 * after) >> (surplus * np.uint64(8))))
    return out


def _mix(numbers: np.ndarray) -> np.ndarray:
    mixed = numbers + _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
