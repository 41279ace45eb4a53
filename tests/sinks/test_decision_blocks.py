"""Decisions in blocks become decisions on rows."""

import pyarrow as pa

from tidemark.sinks.decision_blocks import decisions_of


def block(number, sent, deleted=0, offset=100, file="a.bin", upstream_id="1"):
    return {
        "upstream_id": upstream_id,
        "file": file,
        "offset": offset,
        "block": number,
        "sent_rows": sent,
        "deleted_rows": deleted,
    }


def rows(*batches):
    found = decisions_of(pa.RecordBatch.from_pylist(batch) for batch in batches)
    return [tuple(row.values()) for batch in found for row in batch.to_pylist()]


def test_a_row_is_sent_where_its_bit_is_set():
    assert rows([block(0, 0b1011)]) == [
        ("1", "a.bin", 100, 0, None),
        ("1", "a.bin", 100, 1, None),
        ("1", "a.bin", 100, 3, None),
    ]


def test_blocks_count_64_rows_each_and_all_bits_are_used():
    assert [row[3] for row in rows([block(2, -1)])] == list(range(128, 192))
    assert [row[3] for row in rows([block(1, -(2**63))])] == [127]


def test_rows_are_deletes_where_the_second_bit_is_set():
    assert [row[3:] for row in rows([block(0, 0b111, 0b010)])] == [(0, None), (1, "delete"), (2, None)]


def test_the_order_is_that_of_the_blocks():
    first = [block(1, 1, offset=7, file="b.bin"), block(0, 3, offset=9, upstream_id="2")]
    assert rows(first, [block(0, 1)]) == [
        ("1", "b.bin", 7, 64, None),
        ("2", "a.bin", 9, 0, None),
        ("2", "a.bin", 9, 1, None),
        ("1", "a.bin", 100, 0, None),
    ]


def test_a_block_without_rows_gives_none():
    assert rows([block(0, 0), block(3, 1)]) == [("1", "a.bin", 100, 192, None)]
    assert rows([block(0, 0)]) == []
