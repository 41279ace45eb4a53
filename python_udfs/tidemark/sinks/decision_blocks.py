"""Decisions on many rows of a transaction at once.

Most transactions are sent as they are. Where a sink keeps the rows of a transaction together, decisions travel in blocks, with the columns

    upstream_id, file, offset     the frame
    block                         which 64 row changes of the frame: those with row_number div 64 = block
    sent_rows                     a bit for each row change of the block: whether it is sent
    deleted_rows                  the same: whether it is sent as a delete, whatever it is in the log

and here they become decisions on rows (logged_rows.py), in the order of the blocks and within a block of the row numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

BLOCK_ROWS = 64


def decisions_of(blocks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in blocks:
        sent, deleted = (_bits(batch.column(name)) for name in ("sent_rows", "deleted_rows"))
        place = np.flatnonzero(sent)
        block, bit = np.divmod(place, BLOCK_ROWS)
        which = pa.array(block)
        first = batch.column("block").to_numpy().astype(np.int64) * BLOCK_ROWS
        yield pa.RecordBatch.from_pydict(
            {
                "upstream_id": batch.column("upstream_id").dictionary_encode().take(which),
                "file": batch.column("file").dictionary_encode().take(which),
                "offset": batch.column("offset").take(which),
                "row_number": first[block] + bit,
                "policy_op": _ops(deleted[place]),
            }
        )


def _bits(masks: pa.Array) -> np.ndarray:
    """One byte for each row change of each block, 0 or 1."""
    words = masks.to_numpy().astype("<i8")
    return np.unpackbits(words.view(np.uint8), bitorder="little")


def _ops(is_deleted: np.ndarray) -> pa.Array:
    if not is_deleted.any():
        return pa.nulls(len(is_deleted), pa.string())
    return pa.array(["delete"]).take(pa.array(np.zeros(len(is_deleted), np.int8), mask=is_deleted == 0))
