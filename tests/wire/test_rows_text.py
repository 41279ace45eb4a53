"""Canonical text of values, and their JSON form on the command line."""

import base64
import decimal
import math
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import column, text_column

from tidemark.wire import types
from tidemark.wire.floats import go_f, go_g
from tidemark.wire.json_binary import json_bytes, json_text
from tidemark.wire.text import base64_text, canonical_text, canonical_values, decimal_text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (0.1, "0.1"),
        (1.0, "1"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1.5e-7, "1.5e-07"),
        (0.00012345, "0.00012345"),
        (123456.789, "123456.789"),
        (999999.9, "999999.9"),
        (1e6, "1e+06"),
        (1234567.0, "1.234567e+06"),
        (-1234567.5, "-1.2345675e+06"),
        (1e15, "1e+15"),
        (1e20, "1e+20"),
        (1e100, "1e+100"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (5e-324, "5e-324"),
        (math.nan, "NaN"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (None, None),
    ],
)
def test_doubles_as_go_prints_them(number, text):
    assert go_g(pa.array([number], pa.float64())).to_pylist() == [text]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.1, "0.1"),
        (16777216, "1.6777216e+07"),
        (3.4028235e38, "3.4028235e+38"),
        (1e-4, "0.0001"),
        (9.9e-5, "9.9e-05"),
    ],
)
def test_floats_have_the_digits_of_single_precision(number, text):
    assert go_g(pa.array([number], pa.float32())).to_pylist() == [text]


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=30))
def test_doubles_read_back_from_both_notations(numbers):
    for form in (go_g, go_f):
        texts = form(pa.array(numbers, pa.float64())).to_pylist()
        packed = [None if number is None else struct.pack("<d", number) for number in numbers]
        assert [None if text is None else struct.pack("<d", float(text)) for text in texts] == packed


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_plain_notation_has_no_exponent(number):
    assert "e" not in go_f(pa.array([number])).to_pylist()[0]


@given(st.lists(st.none() | st.integers(-(10**65) + 1, 10**65 - 1), max_size=8), st.integers(0, 30))
def test_decimals_keep_all_digits_of_their_scale(numbers, scale):
    with decimal.localcontext() as context:
        context.prec = 100
        values = [None if number is None else decimal.Decimal(number).scaleb(-scale) for number in numbers]
        texts = decimal_text(pa.array(values, pa.decimal256(65, scale))).to_pylist()
        assert texts == [None if value is None else f"{value:f}" for value in values]


@given(st.lists(st.none() | st.binary(max_size=10), max_size=20), st.integers(0, 3))
def test_base64_of_whole_columns(values, start):
    texts = base64_text(pa.array(values, pa.binary()).slice(start)).to_pylist()
    assert texts == [None if value is None else base64.b64encode(value).decode() for value in values[start:]]


@pytest.mark.parametrize(
    ("col", "value", "text", "form"),
    [
        (column("c", types.BIGINT), -5, "-5", "-5"),
        (
            column("c", types.BIGINT, flag=types.UNSIGNED),
            2**64 - 1,
            "18446744073709551615",
            "18446744073709551615",
        ),
        (column("c", types.YEAR), 0, "0", "0"),
        (column("c", types.ENUM, elems=("a", "b")), 2, "2", {"enum": "2", "name": "b"}),
        (column("c", types.ENUM, elems=("a", "b")), 0, "0", {"enum": "0", "name": ""}),
        (column("c", types.SET, elems=("a", "b", "c")), 5, "5", {"set": "5", "name": "a,c"}),
        (column("c", types.SET, elems=("a", "b", "c")), 0, "0", {"set": "0", "name": ""}),
        (column("c", types.BIT, flen=9), 257, "257", {"bit": "257", "hex": "0101"}),
        (
            column("c", types.BIT, flen=64),
            2**63,
            "9223372036854775808",
            {"bit": str(2**63), "hex": "8000000000000000"},
        ),
        (column("c", types.BLOB_TYPE), b"\xff", "/w==", {"b64": "/w=="}),
        (text_column(), "é", "é", "é"),
        (
            column("c", types.DECIMAL, flen=30, decimal=30),
            decimal.Decimal("1e-30"),
            "0." + "0" * 29 + "1",
            "0." + "0" * 29 + "1",
        ),
        (column("c", types.TIME, decimal=2), "-838:59:59.00", "-838:59:59.00", "-838:59:59.00"),
    ],
)
def test_text_and_json_form_of_each_family(col, value, text, form):
    array = pa.array([value, None], types.arrow_type(col))
    assert canonical_text(array, col).to_pylist() == [text, None]
    assert canonical_values(array, col) == [form, None]


def body(value: int) -> bytes:
    return struct.pack("<Q", value)


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (b"\x0b" + struct.pack("<d", 2.0), "2.0"),
        (b"\x0b" + struct.pack("<d", 0.0), "0.0"),
        (b"\x0b" + struct.pack("<d", 1.5e-7), "0.00000015"),
        (b"\x0b" + struct.pack("<d", 1e-15), "0.000000000000001"),
        (b"\x0b" + struct.pack("<d", 9e-16), "9e-16"),
        (b"\x0b" + struct.pack("<d", 999999999999999.0), "999999999999999.0"),
        (b"\x0b" + struct.pack("<d", 1e15), "1e15"),
        (b"\x0b" + struct.pack("<d", -1234567890123456.0), "-1.234567890123456e15"),
        (b"\x0b" + struct.pack("<d", 1.5e300), "1.5e300"),
        (b"\x0d\xfd\x02ab", '"base64:type253:YWI="'),
        (b"\x0e" + body(2024 << 50 | 1 << 46 | 2 << 41), '"2024-01-02"'),
        (
            b"\x0f" + body(2024 << 50 | 1 << 46 | 2 << 41 | 3 << 36 | 4 << 30 | 5 << 24 | 678000 << 4),
            '"2024-01-02 03:04:05.678000"',
        ),
        (b"\x11" + struct.pack("<qI", -(11 * 3600 + 1) * 10**9, 2), '"-11:00:01.000000"'),
        (b'\x0c\x05"\\\n\x01\x7f', '"\\"\\\\\\n\\u0001\x7f"'),
        (b"\x0c\x05<&\xe2\x80\xa8", '"<&\\u2028"'),
    ],
)
def test_json_values_as_tidb_prints_them(document, text):
    assert json_text(document) == text


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "true",
        "[]",
        "{}",
        '{"a": [1, {"b": "c"}], "k": -1}',
        "18446744073709551615",
        "-9223372036854775808",
        '"é😀"',
        "1.5",
    ],
)
def test_json_text_survives_its_binary_form(text):
    assert json_text(json_bytes(text)) == text
