"""The transactions of many BatchDML payloads as columns, without an object per transaction.

    batch_dml   := count:u64 transaction*count chunk
    transaction := size:u64 header[16] dml                     (the layouts of events/batch_dml.py and events/dml.py)

Only the sizes are followed one by one. Everything else is gathered from the joined payloads with numpy, and row keys stay where they are. Where
something is wrong, the batch is given to the decoder of the event, which says what and where.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tidemark.wire.columns.cells import MAX_COLUMN_BYTES
from tidemark.wire.cursor import U64
from tidemark.wire.errors import InvalidField
from tidemark.wire.events import dml
from tidemark.wire.events.batch_dml import read_batch_dml
from tidemark.wire.header import HEADER_SIZE, MAGIC

COUNT_SIZE = SIZE_SIZE = 8
_DTYPES = {"id": "V16", "i64": ">i8", "u64": ">u8", "i32": ">i4", "u32": ">u4"}
# size, header and fixed fields of a transaction
HEAD = np.dtype(
    [("size", ">u8"), ("magic", "V4"), ("event_type", ">u2"), ("version", ">u2"), ("length", ">u8")]
    + [(name, _DTYPES[kind]) for name, _, kind in dml.FIXED_FIELDS]
)
# A transaction without row types and row keys.
_BARE = np.dtype([*HEAD.descr, ("row key count", ">u4")])
SMALLEST = SIZE_SIZE + HEADER_SIZE + dml.MIN_SIZE
# Where the fixed fields of the first transaction are.
_FIRST = COUNT_SIZE + SIZE_SIZE + HEADER_SIZE
# The highest version of the DML event that has this layout.
HIGHEST_VERSION = 1


@dataclass
class Transactions:
    heads: np.ndarray  # HEAD, one per transaction
    per_batch: list[int]  # transactions of each payload
    row_types: np.ndarray  # of all rows, one transaction after the other
    type_counts: np.ndarray
    key_counts: np.ndarray
    data: np.ndarray  # the payloads up to their chunks
    keys_at: np.ndarray  # where in `data` the row keys of each transaction start
    ends: np.ndarray  # and end

    def column(self, name: str, dtype: type) -> np.ndarray:
        return self.heads[name].astype(dtype)


def read_transactions(payloads: list[memoryview]) -> tuple[Transactions, list[memoryview]]:
    """The transactions of all payloads, and their chunks."""
    starts, regions, per_batch, chunks = [], [], [], []
    base = 0
    for payload in payloads:
        before = len(starts)
        end = _follow(payload, base, starts)
        per_batch.append(len(starts) - before)
        regions.append(payload[COUNT_SIZE:end])
        chunks.append(payload[end:])
        base += end - COUNT_SIZE
    if base > MAX_COLUMN_BYTES:
        raise InvalidField(
            "more than 2 GiB of transactions; decode fewer batches at once",
            expected=MAX_COLUMN_BYTES,
            actual=base,
        )
    data = np.frombuffer(b"".join(regions), dtype=np.uint8)
    transactions = _gather(data, np.array(starts, dtype=np.int64), per_batch)
    if transactions is None:
        raise explain(payloads)
    return transactions, chunks


def first_place(payload: memoryview) -> tuple[bytes, int, int]:
    """Dispatcher, epoch and seq of the first transaction of a BatchDML payload."""
    if len(payload) < COUNT_SIZE + SMALLEST:
        raise explain([payload])
    dispatcher_id, _, _, _, seq, epoch, *_ = dml.FIXED.unpack_from(payload, _FIRST)
    return dispatcher_id, epoch, seq


def without_rows(payloads: list[memoryview]) -> list[bytes]:
    """The same payloads without chunk, row types and row keys: nothing is left but the fixed fields of each transaction."""
    found = read_transactions(payloads)[0]
    transactions = np.zeros(len(found.heads), _BARE)
    for name in HEAD.names:
        transactions[name] = found.heads[name]
    transactions["size"], transactions["length"] = SMALLEST - SIZE_SIZE, dml.MIN_SIZE
    transactions["row type count"] = 0
    ends = np.cumsum([0, *found.per_batch]).tolist()
    return [U64.pack(end - start) + transactions[start:end].tobytes() for start, end in pairwise(ends)]


def explain(payloads: list[memoryview]) -> InvalidField:
    """Raises what the event's own decoder says about the payloads."""
    for payload in payloads:
        read_batch_dml(payload, 0, len(payload))
    return InvalidField("the transactions of a batch cannot be read")


def _follow(payload: memoryview, base: int, starts: list[int]) -> int:
    """Note where each transaction starts, counted from the first of all payloads; gives the place of the chunk."""
    end = len(payload)
    if end < COUNT_SIZE:
        raise explain([payload])
    (count,) = U64.unpack_from(payload)
    if count * SMALLEST > end - COUNT_SIZE:
        raise explain([payload])
    position, shift, unpack, limit = COUNT_SIZE, base - COUNT_SIZE, U64.unpack_from, end - SMALLEST
    for _ in range(count):
        if position > limit:
            raise explain([payload])
        starts.append(position + shift)
        (size,) = unpack(payload, position)
        if size < SMALLEST - SIZE_SIZE:
            raise explain([payload])
        position += SIZE_SIZE + size
    if position > end:
        raise explain([payload])
    return position


def _gather(data: np.ndarray, starts: np.ndarray, per_batch: list[int]) -> Transactions | None:
    if len(starts) == 0:
        none = np.zeros(0, dtype=np.int64)
        return Transactions(
            np.zeros(0, dtype=HEAD), per_batch, none.astype(np.uint8), none, none, data, none, none
        )
    # Every position of the data as a head, without copying it.
    windows = np.ndarray(len(data) - HEAD.itemsize + 1, dtype=HEAD, buffer=data, strides=(1,))
    heads = windows[starts]
    ends = starts + SIZE_SIZE + heads["size"].astype(np.int64)
    type_counts = heads["row type count"].astype(np.int64)
    types_at = starts + HEAD.itemsize
    keys_at = types_at + type_counts + 4
    good = (
        (heads["magic"] == np.void(MAGIC)).all()
        and (heads["event_type"] == dml.DMLEvent.type_id).all()
        and (heads["version"] <= HIGHEST_VERSION).all()
        and (heads["length"] + np.uint64(HEADER_SIZE) == heads["size"]).all()
        and (keys_at <= ends).all()
        and (heads["row_count"] >= 0).all()
    )
    if not good:
        return None
    key_counts = big_endian_u32(data, keys_at - 4)
    lines = np.repeat(types_at - (np.cumsum(type_counts) - type_counts), type_counts)
    lines += np.arange(len(lines))
    row_types = data[lines]
    if len(row_types) and row_types.max() > max(dml.ROW_TYPES):
        return None
    return Transactions(heads, per_batch, row_types, type_counts, key_counts, data, keys_at, ends)


def big_endian_u32(data: np.ndarray, places: np.ndarray) -> np.ndarray:
    windows = np.ndarray(len(data) - 3, dtype=">u4", buffer=data, strides=(1,))
    return windows[places].astype(np.int64)
