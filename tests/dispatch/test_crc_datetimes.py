"""The CRC-32 made from packed dates and datetimes is that of their text."""

import zlib
from dataclasses import replace

import numpy as np
import pytest
from dispatch_support import batch_of

from tidemark.dispatch.crc_datetimes import crc32_datetimes
from tidemark.dispatch.partition import by_columns
from tidemark.sinks.row_batches import joined
from tidemark.wire import types
from tidemark.wire.chunk import decode_chunks, encode_chunk
from tidemark.wire.columns import decode_cells
from tidemark.wire.columns.cells import Cells
from tidemark.wire.columns.temporal import text_width
from tidemark.wire.rows import RowBatch
from tidemark.wire.table_info import Column

FIELDS = ((9999, 50), (12, 46), (31, 41), (23, 36), (59, 30), (59, 24), (999_999, 4))
COLUMNS = [
    Column(1, "at", 0, types.DATE),
    Column(1, "at", 0, types.NEWDATE),
    *(
        Column(1, "at", 0, kind, decimal=fsp)
        for kind in (types.DATETIME, types.TIMESTAMP)
        for fsp in (types.UNSPECIFIED, *range(7))
    ),
]


def packed(rows: int, seed: int) -> np.ndarray:
    """Every field anything that it can be, first all zeros, then all at their maximum."""
    random = np.random.default_rng(seed)
    cells = np.zeros(rows, np.uint64)
    for maximum, shift in FIELDS:
        values = random.integers(0, maximum + 1, rows).astype(np.uint64)
        values[:2] = 0, maximum
        cells |= values << np.uint64(shift)
    # Whatever the tag says, the text is that of the column.
    return cells | random.integers(0, 16, rows).astype(np.uint64)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: f"{column.mysql_type}-{column.decimal}")
@pytest.mark.parametrize("rows", [2, 1000, 70_000])
def test_crc_of_packed_values_is_that_of_their_text(column, rows):
    cells = packed(rows, column.decimal + 2)
    texts = decode_cells(Cells(rows, None, None, cells.view(np.uint8)), column).to_pylist()
    got = crc32_datetimes(b"at", cells, text_width(column))
    assert got.tolist() == [zlib.crc32(b"at" + text.encode()) for text in texts]


def test_crc_of_no_datetimes():
    assert crc32_datetimes(b"at", np.zeros(0, np.uint64), 26).tolist() == []


def decoded(texts: list[str | None]) -> RowBatch:
    """Inserted rows as they come from the wire."""
    batch = batch_of({Column(1, "at", 0, types.DATETIME, decimal=6): texts})
    columns, _, cells = decode_chunks([memoryview(encode_chunk(batch.columns, batch.table))], batch.table)
    return replace(batch, columns=columns, cells=cells)


def hashes(batch: RowBatch) -> list[int]:
    return by_columns(batch.table, batch.table.columns).hashes(batch).tolist()


TEXTS = ["2024-02-29 23:59:59.999999", None, "0000-00-00 00:00:00.000000", "9999-12-31 00:00:00.000001"]


def test_rows_from_the_wire_hash_as_their_texts_do():
    batch = decoded(TEXTS)
    assert batch.datetime_cells(0) is not None
    assert hashes(batch) == hashes(replace(batch, cells=None))


def test_batches_put_together_do_not_use_the_cells_of_the_first():
    batches = [decoded(TEXTS), decoded(TEXTS[:1])]
    together = joined(batches)
    assert together.datetime_cells(0) is None
    assert hashes(together) == hashes(batches[0]) + hashes(batches[1])
