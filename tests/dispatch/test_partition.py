"""The partition hash: which bytes go into it, and for which row image."""

import zlib
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from dispatch_support import batch_of

from tidemark.dispatch.partition import (
    ByCommitTs,
    Fixed,
    by_columns,
    by_table,
    hash_columns,
    hash_lists,
    table_hash,
)
from tidemark.wire import types
from tidemark.wire.rows import DELETE, INSERT, UPDATE
from tidemark.wire.table_info import Column

SEED = zlib.crc32(b"shopT")


def column(name: str, mysql_type: int, **more) -> Column:
    return Column(id=hash(name) % 1000, name=name, offset=0, mysql_type=mysql_type, **more)


def hashes(columns: dict[Column, list], ops: list[int] | None = None) -> list[int]:
    batch = batch_of(columns, ops)
    return by_columns(batch.table, batch.table.columns).hashes(batch).tolist()


def expected(*texts: bytes | None) -> list[int]:
    return [SEED ^ (0 if text is None else zlib.crc32(text)) for text in texts]


ID = column("Id", types.BIGINT)


@pytest.mark.parametrize(
    ("key", "values", "texts"),
    [
        (ID, [1, -5, None], [b"Id1", b"Id-5", None]),
        (column("u", types.BIGINT, flag=types.UNSIGNED), [2**64 - 1], [b"u18446744073709551615"]),
        (column("y", types.YEAR), [2024], [b"y2024"]),
        (column("s", types.VARCHAR, charset="utf8mb4"), ["é", "", None], ["sé".encode(), b"s", None]),
        (column("b", types.VARCHAR), [b"\xff\x00", b""], [b"b\xff\x00", b"b"]),
        (column("e", types.ENUM, elems=("x", "y")), [2, 0], [b"e2", b"e0"]),
        (column("m", types.SET, elems=("x", "y")), [3], [b"m3"]),
        (column("bit", types.BIT, flen=8), [5], [b"bit5"]),
        (column("d", types.DATETIME, decimal=3), ["2024-01-02 03:04:05.600"], [b"d2024-01-02 03:04:05.600"]),
        (column("t", types.TIME, decimal=0), ["-01:00:00"], [b"t-01:00:00"]),
        (column("j", types.JSON), ['{"a": 1}'], [b'j{"a": 1}']),
        (column("v", types.VECTOR), ["[1,2.5]"], [b"v[1,2.5]"]),
        (
            column("n", types.DECIMAL, flen=12, decimal=9),
            [Decimal("0.000000001"), Decimal("-1.5")],
            [b"n0.000000001", b"n-1.500000000"],
        ),
        (column("f", types.FLOAT), [0.1, 1e-7, 3e10], [b"f0.1", b"f0.0000001", b"f30000000000"]),
        (
            column("x", types.DOUBLE),
            [1e21, 1.5e-9, 2.5, None, float("inf")],
            [b"x1000000000000000000000", b"x0.0000000015", b"x2.5", None, b"x0"],
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Column) else "",
)
def test_a_column_is_hashed_as_name_and_text(key, values, texts):
    assert hashes({key: values}) == expected(*texts)


def test_columns_are_xored_in_any_order():
    other = column("o", types.INT)
    (one,) = hashes({ID: [1], other: [2]})
    assert one == SEED ^ zlib.crc32(b"Id1") ^ zlib.crc32(b"o2")
    assert hashes({other: [2], ID: [1]}) == [one]


def test_a_delete_is_hashed_by_its_old_row_and_an_update_by_its_new_one():
    assert hashes({ID: [1, 2, 3, 4]}, [DELETE, UPDATE, INSERT]) == expected(b"Id1", b"Id3", b"Id4")


def test_partition_is_the_hash_modulo_the_count():
    batch = batch_of({ID: [1, 2]})
    by_id = by_columns(batch.table, batch.table.columns)
    assert by_id.partitions(batch, 7).tolist() == [n % 7 for n in expected(b"Id1", b"Id2")]
    assert by_id.partitions(batch, 7).dtype == np.int32
    assert by_id.keys(batch).to_pylist() == [str(n) for n in expected(b"Id1", b"Id2")]


def test_table_dispatch_hashes_schema_and_table():
    batch = batch_of({ID: [1, 2]})
    assert by_table(batch.table).partitions(batch, 16).tolist() == [SEED % 16] * 2
    assert by_table(batch.table).keys(batch).to_pylist() == ["shop.T"] * 2
    assert table_hash("shop", "T") == SEED


def test_ts_dispatch_is_the_commit_ts_modulo_the_count():
    batch = batch_of({ID: [1]}, commit_ts=2**63 + 5)
    assert ByCommitTs().partitions(batch, 16).tolist() == [5 + 2**63 % 16]
    assert ByCommitTs().keys(batch).to_pylist() == [str(2**63 + 5)]


def test_a_fixed_partition_takes_all_rows():
    batch = batch_of({ID: [1, 2]})
    assert Fixed(2, "k").partitions(batch, 3).tolist() == [2, 2]
    assert Fixed(2, "k").keys(batch).to_pylist() == ["k", "k"]


def test_no_columns_hash_the_table_alone():
    batch = batch_of({ID: [1, 2]})
    assert by_columns(batch.table, []).hashes(batch).tolist() == [SEED, SEED]


def test_an_empty_batch_has_no_partitions():
    batch = batch_of({ID: []})
    assert by_columns(batch.table, batch.table.columns).partitions(batch, 3).tolist() == []


def test_hash_columns_skips_nulls():
    got = hash_columns(["a", "b"], [pa.array(["1", None]), pa.array(["x", "y"])], seed=SEED)
    assert got.to_pylist() == [SEED ^ zlib.crc32(b"a1") ^ zlib.crc32(b"bx"), SEED ^ zlib.crc32(b"by")]


def test_hash_columns_needs_as_many_texts_as_names():
    with pytest.raises(ValueError, match="shorter"):
        hash_columns(["a", "b"], [pa.array(["1"])])


def test_hash_lists_xors_the_texts_of_a_row():
    lists = pa.array([["ab", "c"], [], None, ["d", None]], pa.list_(pa.string()))
    a, b, c = zlib.crc32(b"ab"), zlib.crc32(b"c"), zlib.crc32(b"d")
    assert hash_lists(lists).to_pylist() == [a ^ b, 0, 0, c]
    assert hash_lists(lists.slice(1)).to_pylist() == [0, 0, c]
