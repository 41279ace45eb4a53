"""The CRC-32 made from packed dates and datetimes is that of their text."""

import zlib

import numpy as np
import pytest

from tidemark.dispatch.crc_datetimes import crc32_datetimes
from tidemark.wire import types
from tidemark.wire.columns import decode_cells
from tidemark.wire.columns.cells import Cells
from tidemark.wire.columns.temporal import text_width
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
