"""Avro binary of whole columns, against an independent writer (fastavro)."""

import io
from decimal import Decimal

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.encode.avro_binary import (
    constant,
    decimal,
    fixed,
    in_union,
    joined,
    long,
    small_number,
    text,
    words,
)


def written(value, schema) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def rows(pieces, count) -> list[bytes]:
    return joined(pieces, count).to_pylist()


EDGES = [0, -1, 1, 63, -64, 64, -65, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
EDGES += [sign * (1 << bit) + add for bit in range(7, 63, 7) for add in (-1, 0) for sign in (1, -1)]


def test_longs_of_every_width():
    numbers = np.array(EDGES, np.int64)
    assert rows([long(numbers)], len(numbers)) == [written(number, "long") for number in EDGES]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
@settings(max_examples=100, deadline=None)
def test_any_long(numbers):
    assert rows([long(np.array(numbers, np.int64))], len(numbers)) == [written(n, "long") for n in numbers]


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1))
@settings(max_examples=100, deadline=None)
def test_any_int(numbers):
    assert rows([long(np.array(numbers, np.int32))], len(numbers)) == [written(n, "int") for n in numbers]


@pytest.mark.parametrize("number", [0, 1, 63, 64, 8191, 8192, 2**20])
def test_single_lengths(number):
    assert small_number(number) == written(number, "long")


@given(st.lists(st.one_of(st.none(), st.binary(max_size=200)), min_size=1))
@settings(max_examples=100, deadline=None)
def test_any_bytes_in_a_union_with_null_first(values):
    array = pa.array(values, pa.binary())
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    pieces = in_union(text(array), 0, valid, len(values))
    assert rows(pieces, len(values)) == [written(value, ["null", "bytes"]) for value in values]


def test_a_union_with_null_last():
    array = pa.array(["a", None, ""])
    pieces = in_union(text(array), 1, np.array([True, False, True]), 3)
    assert rows(pieces, 3) == [written(value, ["string", "null"]) for value in ("a", None, "")]


def test_bytes_that_stand_behind_a_null_are_not_written():
    values = pa.array([b"ab", b"cd", b"ef"])
    hidden = pa.Array.from_buffers(pa.binary(), 3, [pa.py_buffer(b"\x05"), *values.buffers()[1:]])
    pieces = in_union(text(hidden), 0, np.array([True, False, True]), 3)
    assert rows(pieces, 3) == [written(value, ["null", "bytes"]) for value in (b"ab", None, b"ef")]


def test_a_slice_of_a_longer_array():
    array = pa.array(["zero", "one", None, "three"])[1:]
    pieces = in_union(text(array), 0, np.array([True, False, True]), 3)
    assert rows(pieces, 3) == [written(value, ["null", "string"]) for value in ("one", None, "three")]


@pytest.mark.parametrize(("kind", "name"), [(np.float32, "float"), (np.float64, "double")])
def test_floats(kind, name):
    numbers = np.array([0, -0.0, 1.5, -2.25, np.finfo(kind).max, np.inf], kind)
    assert rows([fixed(numbers)], 6) == [written(float(number), name) for number in numbers]


DECIMALS = [(3, 0), (15, 2), (18, 18), (19, 0), (38, 10), (39, 0), (65, 30)]


@pytest.mark.parametrize(("precision", "scale"), DECIMALS)
def test_decimals_are_as_short_as_possible(precision, scale):
    largest = 10**precision - 1
    unscaled = [0, 1, -1, 127, -128, 128, -129, 255, 256, -256, -257, largest, -largest, largest // 2]
    unscaled = [number for number in unscaled if abs(number) <= largest]
    kind = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    array = pa.array([_decimal(number, scale) for number in unscaled], kind)
    want = [number.to_bytes(_bytes(number), "big", signed=True) for number in unscaled]
    assert rows(decimal(array), len(unscaled)) == [written(value, "bytes") for value in want]
    assert rows(decimal(array[3:5]), 2) == [written(value, "bytes") for value in want[3:5]]


def _decimal(number, scale):
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def _bytes(number):
    return ((number if number >= 0 else ~number).bit_length() // 8) + 1


def test_words_of_any_width():
    for known in ([b"a", b"bcd", b""], [b"x" * 40, b"y"]):
        index = np.array([1, 0, 1], np.int32)
        assert rows([words(index, known)], 3) == [known[1], known[0], known[1]]


def test_no_rows():
    none = np.array([], np.int64)
    assert rows([constant(b"ab", 0), long(none), *text(pa.array([], pa.string()))], 0) == []
