"""Values that come from the wire are hashed from their cells, and hash as their Arrow columns do."""

from dataclasses import replace

import pytest
from dispatch_support import batch_of

from tidemark.dispatch.partition import by_columns
from tidemark.sinks.row_batches import joined
from tidemark.wire import types
from tidemark.wire.chunk import decode_chunks, encode_chunk
from tidemark.wire.rows import RowBatch
from tidemark.wire.table_info import Column

# As many as are sampled for repeated texts.
REPEATED = 2000
DATETIMES = ["2024-02-29 23:59:59.999999", None, "0000-00-00 00:00:00.000000", "9999-12-31 00:00:00.000001"]
COLUMNS = [
    (Column(1, "v", 0, types.BIGINT), [0, -1, None, 7, 10_000, 123_456_789, -(2**63), 2**63 - 1]),
    (Column(1, "v", 0, types.BIGINT, flag=types.UNSIGNED), [0, None, 9999, 2**63, 2**64 - 1]),
    (Column(1, "v", 0, types.VARCHAR, charset="utf8mb4"), ["new", "paid", "shipped", "returned"]),
    (Column(1, "v", 0, types.VARCHAR, charset="utf8mb4"), ["new", "new\0", "\0new", None, "", "\0"]),
    (Column(1, "v", 0, types.VARCHAR, charset="utf8mb4"), ["grün", "日本", "a" * 200, None]),
    (Column(1, "v", 0, types.VARCHAR, charset="binary"), [b"\xff\x00", b"a", None, b"a\x00"]),
    (Column(1, "v", 0, types.DATETIME, decimal=6), DATETIMES),
]


def decoded(column: Column, values: list) -> RowBatch:
    """Inserted rows as they come from the wire."""
    batch = batch_of({column: values})
    columns, _, cells = decode_chunks([memoryview(encode_chunk(batch.columns, batch.table))], batch.table)
    return replace(batch, columns=columns, cells=cells)


def hashes(batch: RowBatch) -> list[int]:
    return by_columns(batch.table, batch.table.columns).hashes(batch).tolist()


@pytest.mark.parametrize("times", [1, REPEATED])
@pytest.mark.parametrize(("column", "values"), COLUMNS)
def test_rows_from_the_wire_hash_as_their_arrow_columns_do(column, values, times):
    batch = decoded(column, values * times)
    assert batch.wire_cells(0) is not None
    assert hashes(batch) == hashes(replace(batch, cells=None))


@pytest.mark.parametrize(("column", "values"), COLUMNS)
def test_batches_put_together_do_not_use_the_cells_of_the_first(column, values):
    batches = [decoded(column, values), decoded(column, values[:1])]
    together = joined(batches)
    assert together.wire_cells(0) is None
    assert hashes(together) == hashes(batches[0]) + hashes(batches[1])
