"""decode(encode(x)) == x for every column family: NULLs, extremes and everything in between."""

import decimal
import json
import math
import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import column, table, text_column

from tidemark.wire import types
from tidemark.wire.chunk import decode_chunks, encode_chunk
from tidemark.wire.floats import go_f
from tidemark.wire.types import arrow_type

decimal.getcontext().prec = 80


def dates(fsp: int | None):
    """MySQL accepts zero years, months and days."""
    day = st.builds(
        "{:04d}-{:02d}-{:02d}".format, st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31)
    )
    if fsp is None:
        return day
    clock = st.builds(
        "{:02d}:{:02d}:{:02d}".format, st.integers(0, 23), st.integers(0, 59), st.integers(0, 59)
    )
    return st.builds(lambda d, c, f: f"{d} {c}{f}", day, clock, fractions(fsp))


def fractions(fsp: int):
    return st.integers(0, 10**fsp - 1).map(lambda n: f".{n:0{fsp}d}") if fsp else st.just("")


def times(fsp: int):
    clock = st.builds(
        "{:02d}:{:02d}:{:02d}".format, st.integers(0, 838), st.integers(0, 59), st.integers(0, 59)
    )
    text = st.builds(lambda sign, c, f: f"{sign}{c}{f}", st.sampled_from(["", "-"]), clock, fractions(fsp))
    # There is no negative zero.
    return text.filter(lambda t: not (t.startswith("-") and not t.strip("-0:.")))


def decimals(precision: int, scale: int):
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(lambda n: decimal.Decimal(n).scaleb(-scale))


def json_texts():
    scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=12)
    values = st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
        max_leaves=8,
    )
    return values.map(tidb_text)


def tidb_text(value) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(tidb_text, value)) + "]"
    if isinstance(value, dict):
        items = sorted(value.items(), key=lambda item: item[0].encode())
        return "{" + ", ".join(f"{tidb_text(key)}: {tidb_text(item)}" for key, item in items) + "}"
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def vectors():
    number = st.floats(width=32, allow_nan=False, allow_infinity=False)
    return st.lists(number, max_size=5).map(
        lambda numbers: f"[{','.join(go_f(pa.array(numbers, pa.float32())).to_pylist())}]"
    )


def finite(width: int):
    return st.floats(width=width, allow_nan=False)


MEMBERS = ("a", "b", "c,d", "空", 'q"')
CASES = {
    "bigint": (column("c", types.BIGINT), st.integers(-(2**63), 2**63 - 1)),
    "bigint_unsigned": (column("c", types.BIGINT, flag=types.UNSIGNED), st.integers(0, 2**64 - 1)),
    "tinyint": (column("c", types.TINYINT), st.integers(-128, 127)),
    "year": (column("c", types.YEAR), st.just(0) | st.integers(1901, 2155)),
    "float": (column("c", types.FLOAT), finite(32)),
    "double": (column("c", types.DOUBLE), finite(64)),
    "date": (column("c", types.DATE), dates(None)),
    "enum": (column("c", types.ENUM, elems=MEMBERS), st.integers(0, len(MEMBERS))),
    "set": (column("c", types.SET, elems=MEMBERS), st.integers(0, 2 ** len(MEMBERS) - 1)),
    "set_64": (column("c", types.SET, elems=tuple(map(str, range(64)))), st.integers(0, 2**64 - 1)),
    "text": (text_column(), st.text(max_size=20)),
    "blob": (column("c", types.BLOB_TYPE), st.binary(max_size=20)),
    "json": (column("c", types.JSON), json_texts()),
    "vector": (column("c", types.VECTOR), vectors()),
}
for fsp in range(7):
    CASES[f"datetime_{fsp}"] = (column("c", types.DATETIME, decimal=fsp), dates(fsp))
    CASES[f"timestamp_{fsp}"] = (column("c", types.TIMESTAMP, decimal=fsp), dates(fsp))
    CASES[f"time_{fsp}"] = (column("c", types.TIME, decimal=fsp), times(fsp))
for width in (1, 2, 7, 8, 9, 24, 33, 63, 64):
    CASES[f"bit_{width}"] = (column("c", types.BIT, flen=width), st.integers(0, 2**width - 1))
for precision, scale in (
    (1, 0),
    (1, 1),
    (9, 9),
    (10, 2),
    (15, 2),
    (18, 0),
    (18, 18),
    (19, 0),
    (20, 5),
    (30, 30),
    (38, 10),
    (39, 0),
    (65, 0),
    (65, 30),
):
    CASES[f"decimal_{precision}_{scale}"] = (
        column("c", types.DECIMAL, flen=precision, decimal=scale),
        decimals(precision, scale),
    )


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_every_value_survives_the_chunk(case, data):
    col, values = CASES[case]
    rows = data.draw(st.lists(st.none() | values, max_size=20))
    array = pa.array(rows, arrow_type(col))
    batch = pa.RecordBatch.from_arrays([array], names=[col.name])
    owner = table(col)
    decoded, counts, _ = decode_chunks([encode_chunk(batch, owner)], owner)
    assert counts == [len(rows)]
    decoded.validate(full=True)
    assert decoded.column(0).to_pylist() == array.to_pylist()
    # A slice shares the buffers of the whole batch.
    decoded, _, _ = decode_chunks([encode_chunk(batch.slice(1), owner)], owner)
    assert decoded.column(0).to_pylist() == array.to_pylist()[1:]


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_chunks_joined_are_the_rows_one_after_the_other(case, data):
    col, values = CASES[case]
    pieces = data.draw(st.lists(st.lists(st.none() | values, max_size=9), max_size=4))
    owner = table(col)
    chunks = [
        encode_chunk(pa.RecordBatch.from_arrays([pa.array(rows, arrow_type(col))], names=["c"]), owner)
        for rows in pieces
    ]
    decoded, counts, _ = decode_chunks(chunks, owner)
    assert counts == [len(rows) for rows in pieces]
    assert (
        decoded.column(0).to_pylist()
        == pa.array([row for rows in pieces for row in rows], arrow_type(col)).to_pylist()
    )


def test_nan_and_infinities_are_carried():
    col = column("c", types.DOUBLE)
    owner = table(col)
    array = pa.array([math.nan, math.inf, -math.inf, -0.0], pa.float64())
    chunk = encode_chunk(pa.RecordBatch.from_arrays([array], names=["c"]), owner)
    decoded, _, _ = decode_chunks([chunk], owner)
    packed = [struct.pack("<d", value) for value in decoded.column(0).to_pylist()]
    assert packed == [struct.pack("<d", value) for value in array.to_pylist()]
