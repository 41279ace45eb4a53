"""Record keys of row changes as one Arrow array.

    keys := (length:u32be key)*                              (one per physical row)

Lengths have to be followed from one to the next, which a loop does slowly. Keys of one length are simply laid side by side; keys of several lengths
all start with the prefix of their table, so the places of the prefix are candidates that the chain of lengths then confirms.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemark.wire.cursor import U32
from tidemark.wire.errors import InvalidField
from tidemark.wire.events.dml import DMLEvent

LENGTH = 4
# `t` table id `_r`, the beginning of every record key of a table
PREFIX = 11


def row_key_array(transactions: list[DMLEvent], entries: np.ndarray) -> pa.BinaryArray:
    """The keys at these positions of the concatenated key lists; NULL when the sender gave none."""
    rows = sum(len(transaction.row_types) for transaction in transactions)
    count = sum(transaction.key_count for transaction in transactions)
    if count == 0:
        return pa.nulls(len(entries), pa.binary())
    if any(transaction.key_count != len(transaction.row_types) for transaction in transactions):
        raise InvalidField(
            "a transaction must list one row key per row, or none", expected=rows, actual=count
        )
    data = np.frombuffer(b"".join([transaction.keys for transaction in transactions]), dtype=np.uint8)
    starts = _uniform_starts(data, count)
    if starts is None:
        starts = _prefix_starts(data, count)
    if starts is None:
        starts = _chained_starts(data.tobytes(), count)
    # Lengths and keys take turns: the key of row i is the piece 2 * i + 1.
    bounds = np.empty(2 * count + 1, dtype=np.int32)
    bounds[0:-1:2] = starts
    bounds[1::2] = starts + LENGTH
    bounds[-1] = len(data)
    pieces = pa.Array.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
    return pieces.take(pa.array(2 * entries + 1))


def _uniform_starts(data: np.ndarray, count: int) -> np.ndarray | None:
    stride = LENGTH + int(_lengths_at(data, np.zeros(1, dtype=np.int64))[0])
    if stride * count != len(data):
        return None
    heads = data.reshape(count, stride)[:, :LENGTH]
    return np.arange(0, len(data), stride) if (heads == heads[0]).all() else None


def _prefix_starts(data: np.ndarray, count: int) -> np.ndarray | None:
    prefix = data[LENGTH : LENGTH + PREFIX]
    places = (
        np.flatnonzero(data[LENGTH : len(data) - PREFIX + 1] == prefix[0])
        if len(prefix) == PREFIX
        else prefix[:0]
    )
    for index in range(1, PREFIX):
        if len(places) < count:
            return None
        places = places[data[places + LENGTH + index] == prefix[index]]
    if len(places) != count:
        return None
    ends = places + LENGTH + _lengths_at(data, places)
    chained = places[0] == 0 and (ends[:-1] == places[1:]).all() and ends[-1] == len(data)
    return places if chained else None


def _chained_starts(data: bytes, count: int) -> np.ndarray:
    starts, position = np.empty(count, dtype=np.int64), 0
    for index in range(count):
        starts[index] = position
        position += LENGTH + U32.unpack_from(data, position)[0]
    return starts


def _lengths_at(data: np.ndarray, places: np.ndarray) -> np.ndarray:
    parts = [data[places + index].astype(np.int64) << shift for index, shift in enumerate((24, 16, 8, 0))]
    return parts[0] | parts[1] | parts[2] | parts[3]
