"""The key of a row in the warehouse: one text for all that the server takes for the same key."""

from dataclasses import replace

import pyarrow as pa
import pytest

from tidemark.demo.column_types import column
from tidemark.encode.warehouse import key_texts, value_texts
from tidemark.wire.table_info import TableInfo

TEXTS = ["a", "A", "a ", "A  ", " a", "Ü", "ü", "", " "]


def keys(array, *columns):
    return key_texts(pa.RecordBatch.from_arrays([array], names=["k"]), list(columns)).to_pylist()


@pytest.mark.parametrize(
    ("collation", "expected"),
    [
        ("utf8mb4_bin", ["a", "A", "a", "A", " a", "Ü", "ü", "", ""]),
        ("utf8mb4_general_ci", ["a", "a", "a", "a", " a", "ü", "ü", "", ""]),
        ("utf8mb4_0900_ai_ci", ["a", "a", "a ", "a  ", " a", "ü", "ü", "", " "]),
        ("utf8mb4_0900_bin", TEXTS),
    ],
)
def test_texts_are_folded_as_their_collation_compares_them(collation, expected):
    key = replace(column("k varchar(10) not null primary key", 0), collate=collation)
    assert keys(pa.array(TEXTS), key) == [f'["{text}"]' for text in expected]


def test_only_texts_are_folded_and_only_in_the_key():
    binary = column("k varbinary(10) not null primary key", 0)
    assert keys(pa.array([b"A ", b"a"]), binary) == ['["A "]', '["a"]']
    number = column("k int not null primary key", 0)
    assert keys(pa.array([1, -1]), number) == ['["1"]', '["-1"]']
    text = replace(column("k varchar(10) not null primary key", 0), collate="utf8mb4_general_ci")
    table = TableInfo.build("s", "t", 1, 1, columns=[text])
    rows = pa.RecordBatch.from_arrays([pa.array(["A "])], schema=table.arrow_schema)
    assert value_texts(rows, table).to_pylist() == ['{"k":"A "}']
