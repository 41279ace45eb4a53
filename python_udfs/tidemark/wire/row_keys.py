"""Record keys of row changes as one Arrow array.

    keys := (length:u32be key)*                              (one per physical row, transaction after transaction)

Lengths have to be followed from one to the next, which a loop does slowly. Keys of one length are found by counting; keys of several lengths all
start with the prefix of their table, so the places of the prefix are candidates that the chain of lengths then confirms. Where many tables are read at once, the
chains of all transactions are followed in step.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemark.wire.cursor import U32
from tidemark.wire.errors import InvalidField
from tidemark.wire.transactions import Transactions, big_endian_u32

LENGTH = 4
# `t` table id `_r`, the beginning of every record key of a table
PREFIX = 11
# Transactions that a step must serve to be cheaper than a loop over their keys.
_FEWEST_IN_STEP = 8


def row_key_array(
    transactions: Transactions, entries: np.ndarray, keyless: np.ndarray | None = None
) -> pa.BinaryArray | None:
    """The keys of these rows; NULL when the sender gave none. None when the bytes are not the keys they promise.

    `keyless`: transactions that may have no keys although others have.
    """
    counts = transactions.key_counts
    if not len(counts) or not counts.any():
        empty = (transactions.keys_at == transactions.ends).all()
        return pa.nulls(len(entries), pa.binary()) if empty else None
    found = (
        _uniform(transactions) or _by_prefix(transactions) or _in_step(transactions) or _chained(transactions)
    )
    if found is None:
        return None
    expected = transactions.type_counts if keyless is None else np.where(keyless, 0, transactions.type_counts)
    if (counts != expected).any():
        raise InvalidField(
            "a transaction must list one row key per row, or none",
            expected=int(transactions.type_counts.sum()),
            actual=int(counts.sum()),
        )
    starts, lengths = found
    # Keys and what is between them take turns: the key of row i is the piece 2 * i.
    bounds = np.empty(2 * len(starts) + 1, dtype=np.int32)
    bounds[0:-1:2] = starts + LENGTH
    np.add(bounds[0:-1:2], lengths, out=bounds[1::2], casting="unsafe")
    bounds[2::2] = np.append(bounds[2:-1:2], len(transactions.data))
    pieces = pa.Array.from_buffers(
        pa.binary(), 2 * len(starts), [None, pa.py_buffer(bounds), pa.py_buffer(transactions.data)]
    )
    if keyless is None or not keyless.any():
        return pieces.take(pa.array(2 * entries))
    has_key = np.repeat(~keyless, transactions.type_counts)
    return pieces.take(pa.array(2 * (np.cumsum(has_key) - 1)[entries], mask=~has_key[entries]))


Found = tuple[np.ndarray, np.ndarray | int]


def _uniform(transactions: Transactions) -> Found | None:
    """All keys have the length of the first one."""
    counts = transactions.key_counts
    first = int(transactions.keys_at[np.argmax(counts > 0)])
    if first + LENGTH > len(transactions.data):
        return None
    length = int(big_endian_u32(transactions.data, np.array([first]))[0])
    stride = LENGTH + length
    if (counts * stride != transactions.ends - transactions.keys_at).any():
        return None
    starts = np.repeat(transactions.keys_at - stride * (np.cumsum(counts) - counts), counts)
    starts += np.arange(0, stride * len(starts), stride)
    return (starts, length) if (big_endian_u32(transactions.data, starts) == length).all() else None


def _by_prefix(transactions: Transactions) -> Found | None:
    data, counts = transactions.data, transactions.key_counts
    first = int(transactions.keys_at[np.argmax(counts > 0)]) + LENGTH
    prefix = data[first : first + PREFIX]
    if len(prefix) < PREFIX:
        return None
    total = int(counts.sum())
    places = np.flatnonzero(data[: len(data) - PREFIX + 1] == prefix[0])
    for index in range(1, PREFIX):
        if len(places) < total:
            return None
        places = places[data[places + index] == prefix[index]]
    starts = places - LENGTH
    if len(starts) != total or starts[0] < 0:
        return None
    lengths = big_endian_u32(data, starts)
    # Each key starts where the one before it ends, or where its transaction says.
    expected = np.append(0, (starts + LENGTH + lengths)[:-1])
    some = counts > 0
    firsts = (np.cumsum(counts) - counts)[some]
    expected[firsts] = transactions.keys_at[some]
    closing = starts[firsts + counts[some] - 1] + LENGTH + lengths[firsts + counts[some] - 1]
    empty = transactions.keys_at[~some] == transactions.ends[~some]
    if (starts != expected).any() or (closing != transactions.ends[some]).any() or not empty.all():
        return None
    return starts, lengths


def _in_step(transactions: Transactions) -> Found | None:
    """The first key of every transaction, then the second one; None where a few transactions have most of the keys."""
    data, counts = transactions.data, transactions.key_counts
    total, most = int(counts.sum()), int(counts.max())
    if most * _FEWEST_IN_STEP > total:
        return None
    first = np.cumsum(counts) - counts
    starts, lengths = np.empty(total, np.int64), np.empty(total, np.int64)
    live = np.flatnonzero(counts)
    if (transactions.keys_at != transactions.ends)[counts == 0].any():
        return None
    position = transactions.keys_at[live]
    for step in range(most):
        if (transactions.ends[live] - position < LENGTH).any():
            return None
        length = big_endian_u32(data, position)
        starts[first[live] + step], lengths[first[live] + step] = position, length
        position = position + LENGTH + length
        goes_on = counts[live] > step + 1
        if (position[~goes_on] != transactions.ends[live[~goes_on]]).any():
            return None
        live, position = live[goes_on], position[goes_on]
    return starts, lengths


def _chained(transactions: Transactions) -> Found | None:
    """One by one: keys of several lengths without a common prefix, or with one that also occurs inside of them."""
    data = transactions.data.tobytes()
    starts, lengths = [], []
    spans = zip(
        transactions.keys_at.tolist(),
        transactions.ends.tolist(),
        transactions.key_counts.tolist(),
        strict=True,
    )
    for position, end, count in spans:
        if count * LENGTH > end - position:
            return None
        for _ in range(count):
            if end - position < LENGTH:
                return None
            (length,) = U32.unpack_from(data, position)
            starts.append(position)
            lengths.append(length)
            position += LENGTH + length
        if position != end:
            return None
    return np.array(starts, dtype=np.int64), np.array(lengths, dtype=np.int64)
