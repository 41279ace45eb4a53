"""Column values as parameters of a statement, and what keys a server takes for equal.

| MySQL type | parameter |
|---|---|
| integers, year, enum, set, bit | int64 or uint64 (ENUM, SET and BIT by number: a name would depend on the connection's character set) |
| float, double | float64; what is not a finite number is 0, as TiCDC writes it |
| decimal | decimal, all digits |
| date, datetime, timestamp, time, json, vector | string |
| char, varchar, text | string |
| binary, varbinary, blob | binary |

The family of a column decides once for all its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.encode.collation import case_folded, coarsely_folded, is_collated
from tidemark.wire.table_info import Column
from tidemark.wire.text import decimal_text
from tidemark.wire.types import Kind

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_ALL_BITS = 0xFFFFFFFFFFFFFFFF


def column_params(array: pa.Array, column: Column) -> pa.Array:
    """The parameters of one column."""
    if column.kind not in (Kind.FLOAT, Kind.DOUBLE):
        return array
    array = array.cast(pa.float64())
    finite = pc.is_finite(array)
    if pc.all(finite, min_count=0).as_py() is False:
        array = pc.if_else(finite, array, pa.scalar(0.0))
    return array


def row_params(params: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """A tuple per row, decimals as text: what people and comparisons with TiCDC see."""
    columns = [decimal_text(array) if pa.types.is_decimal(array.type) else array for array in params.columns]
    return list(zip(*(array.to_pylist() for array in columns), strict=True))


def key_codes(batch: pa.RecordBatch, key: Sequence[Column], *, fold_case: bool = False) -> np.ndarray:
    """A number per row; rows with equal key values have equal numbers (from 0, without gaps).

    `fold_case`: texts that differ in case only are equal where the collation is one of those (`_ci`).
    """
    codes = np.zeros(batch.num_rows, dtype=np.int64)
    for column in key:
        array = batch.column(column.name)
        if fold_case:
            array = case_folded(array, column)
        coded = array.dictionary_encode(null_encoding="encode")
        codes = codes * (len(coded.dictionary) + 1) + coded.indices.to_numpy(zero_copy_only=False)
        codes = np.unique(codes, return_inverse=True)[1]
    return codes


def key_hashes(batch: pa.RecordBatch, key: Sequence[Column]) -> np.ndarray:
    """A number per row; rows whose keys are equal *for the server* have equal numbers.

    Servers compare texts by their collation. A column with texts of which it is not known what they are equal to does not take part.
    """
    hashes = np.zeros(batch.num_rows, dtype=np.uint64)
    for column in key:
        array = batch.column(column.name)
        if is_collated(array, column):
            array = coarsely_folded(array, column)
            if array is None:
                continue
        hashes = (hashes ^ _hashes(array)) * _MULTIPLIER
    return hashes ^ (hashes >> np.uint64(32))


def _hashes(array: pa.Array) -> np.ndarray:
    if pa.types.is_integer(array.type):
        return array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.uint64)
    coded = array.dictionary_encode(null_encoding="encode")
    values = [hash(value) & _ALL_BITS for value in coded.dictionary.to_pylist()]
    return np.array(values, dtype=np.uint64)[coded.indices.to_numpy(zero_copy_only=False)]
