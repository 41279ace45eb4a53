"""Chunks that lie: always a typed error, and never more memory than the bytes justify."""

import struct
import tracemalloc

import pyarrow as pa
import pytest
from tables import column, table, text_column

from tidemark.wire import types
from tidemark.wire.chunk import decode_chunks, encode_chunk
from tidemark.wire.errors import InvalidField, TrailingBytes, TruncatedPayload, WireError
from tidemark.wire.json_binary import json_text

NUMBER = table(column("c", types.BIGINT))
TEXT = table(text_column("c"))


def fixed(rows: int, nulls: int, *parts: bytes) -> bytes:
    return struct.pack("<II", rows, nulls) + b"".join(parts)


def variable(cells: list[bytes], offsets: list[int] | None = None) -> bytes:
    if offsets is None:
        offsets = [0]
        for cell in cells:
            offsets.append(offsets[-1] + len(cell))
    return fixed(len(offsets) - 1, 0, struct.pack(f"<{len(offsets)}q", *offsets), *cells)


def one_cell(col, cell: bytes):
    owner = table(col)
    chunk = variable([cell]) if col.kind not in types.FIXED_WIDTH else fixed(1, 0, cell)
    return decode_chunks([chunk], owner)[0].column(0).to_pylist()[0]


@pytest.mark.parametrize(
    ("owner", "chunk", "error"),
    [
        (NUMBER, b"", None),
        (NUMBER, b"\1\0\0", TruncatedPayload),
        (NUMBER, fixed(0xFFFFFFFF, 0), TruncatedPayload),
        (NUMBER, fixed(0xFFFFFFFF, 0xFFFFFFFF), TruncatedPayload),
        (NUMBER, fixed(1, 2, b"\0" * 9), InvalidField),
        (NUMBER, fixed(9, 1, b"\xff"), TruncatedPayload),
        (NUMBER, fixed(8, 1, b"\xff", bytes(64)), InvalidField),
        (NUMBER, fixed(1, 0, bytes(9)), TrailingBytes),
        (TEXT, fixed(0xFFFFFFFF, 0, bytes(64)), TruncatedPayload),
        (TEXT, variable([b"ab"], [0, 3]), TruncatedPayload),
        (TEXT, variable([b"ab"], [1, 2]), InvalidField),
        (TEXT, variable([b"ab"], [0, -1]), InvalidField),
        (TEXT, variable([b"ab"], [0, 2, 1, 2]), InvalidField),
        (TEXT, variable([b"ab"], [0, 2**62, 2]), InvalidField),
        (TEXT, variable([b"ab"], [0, 2**63 - 1, 2]), InvalidField),
        (TEXT, variable([b"ab"], [0, -(2**63), 2]), InvalidField),
        (TEXT, variable([b"\xff\xfe"]), InvalidField),
        (TEXT, variable(["é".encode()], [0, 1, 2]), InvalidField),
    ],
)
def test_lying_counts_offsets_and_bitmaps(owner, chunk, error):
    if error is None:
        assert decode_chunks([chunk], owner)[0].num_rows == 0
        return
    with pytest.raises(error):
        decode_chunks([chunk], owner)


def test_columns_must_have_the_same_number_of_rows():
    owner = table(column("a", types.BIGINT), column("b", types.BIGINT))
    with pytest.raises(InvalidField, match="'b' has 2 rows"):
        decode_chunks([fixed(1, 0, bytes(8)) + fixed(2, 0, bytes(16))], owner)


def test_a_lying_count_allocates_nothing():
    owner = table(*(text_column(f"c{index}") for index in range(5)))
    tracemalloc.start()
    try:
        for chunk in (fixed(0xFFFFFFFF, 0xFFFFFFFF, bytes(100)), fixed(0x7FFFFFFF, 0, bytes(100))):
            with pytest.raises(WireError):
                decode_chunks([chunk], owner)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def decimal_cell(before: int, after: int, *words: int, negative: int = 0) -> bytes:
    return struct.pack("<4B9i", before, after, after, negative, *words, *[0] * (9 - len(words)))


@pytest.mark.parametrize(
    "cell",
    [
        decimal_cell(81, 9, 1),
        decimal_cell(255, 255, 1),
        decimal_cell(1, 0, -1),
        decimal_cell(1, 0, 10**9),
        decimal_cell(9, 0, 123_456_789),
        decimal_cell(18, 0, 1, 0),
        decimal_cell(1, 9, 1, 1),
        decimal_cell(1, 18, 1, 0, 1),
    ],
    ids=[
        "more than nine words",
        "as many digits as a byte can say",
        "negative word",
        "word of ten digits",
        "more digits than the column has",
        "more words than the column has",
        "more decimals than the column has",
        "more decimals in a further word",
    ],
)
@pytest.mark.parametrize("digits", [(8, 2), (6, 1)])
def test_bad_decimal_digit_counts(cell, digits):
    precision, scale = digits
    with pytest.raises(InvalidField):
        one_cell(column("c", types.DECIMAL, flen=precision, decimal=scale), cell)


def test_decimals_of_one_column_may_differ_in_their_digit_counts():
    owner = table(column("c", types.DECIMAL, flen=20, decimal=4))
    cells = [
        decimal_cell(0, 2, 250_000_000),
        decimal_cell(1, 0, 7),
        decimal_cell(10, 4, 1, 2, 500_000_000),
        decimal_cell(27, 4, 0, 0, 3, 100_000),
        decimal_cell(16, 4, 9_999_999, 999_999_999, 999_900_000, negative=1),
    ]
    decoded = decode_chunks([fixed(len(cells), 0, *cells)], owner)[0].column(0)
    assert [str(value) for value in decoded.to_pylist()] == [
        "0.2500",
        "7.0000",
        "1000000002.5000",
        "3.0001",
        "-9999999999999999.9999",
    ]


def packed(year=2024, month=1, day=1, hour=0, minute=0, second=0, micro=0) -> bytes:
    value = year << 50 | month << 46 | day << 41 | hour << 36 | minute << 30 | second << 24 | micro << 4
    return struct.pack("<Q", value)


@pytest.mark.parametrize(
    "fields",
    [{"year": 10000}, {"month": 13}, {"hour": 24}, {"minute": 60}, {"second": 60}, {"micro": 1_000_000}],
)
def test_date_and_time_fields_out_of_range(fields):
    col = column("c", types.DATETIME, decimal=6)
    assert one_cell(col, packed()) == "2024-01-01 00:00:00.000000"
    with pytest.raises(InvalidField):
        one_cell(col, packed(**fields))


@pytest.mark.parametrize("nanoseconds", [839 * 3600 * 10**9, -839 * 3600 * 10**9, 2**63 - 1, -(2**63)])
def test_times_beyond_838_hours(nanoseconds):
    with pytest.raises(InvalidField):
        one_cell(column("c", types.TIME, decimal=0), struct.pack("<q", nanoseconds))


def test_what_a_null_cell_holds_means_nothing():
    for col, junk in (
        (column("c", types.DECIMAL, flen=10, decimal=2), b"\xff" * 40),
        (column("c", types.DATETIME, decimal=6), b"\xff" * 8),
        (column("c", types.TIME, decimal=6), b"\xff" * 7 + b"\x7f"),
    ):
        chunk = fixed(2, 2, b"\0", junk * 2)
        assert decode_chunks([chunk], table(col))[0].column(0).to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("col", "cell"),
    [
        (column("c", types.ENUM, elems=("a",)), b"\1"),
        (column("c", types.ENUM, elems=("a",)), struct.pack("<Q", 2)),
        (column("c", types.SET, elems=("a", "b")), struct.pack("<Q", 4)),
        (column("c", types.BIT, flen=5), b"\x20"),
        (column("c", types.BIT, flen=64), bytes(9)),
        (column("c", types.VECTOR), b""),
        (column("c", types.VECTOR), struct.pack("<I", 1)),
        (column("c", types.VECTOR), struct.pack("<If", 0xFFFFFFFF, 1)),
        (column("c", types.VECTOR), struct.pack("<If", 1, 1) + b"\0"),
        (column("c", types.VECTOR, flen=2), struct.pack("<If", 1, 1)),
        (column("c", types.JSON), b""),
    ],
)
def test_cells_that_are_no_value_of_their_type(col, cell):
    with pytest.raises(InvalidField):
        one_cell(col, cell)


@pytest.mark.parametrize(("cell", "value"), [(b"", 0), (b"\5", 5), (b"\1\0", 256), (b"\0\0\1", 1)])
def test_bits_may_come_with_fewer_or_more_leading_zeros(cell, value):
    assert one_cell(column("c", types.BIT, flen=12), cell) == value


def array_of(kind: int, body: bytes) -> bytes:
    """An array document whose only element is `body`."""
    return b"\x03" + struct.pack("<II", 1, 13 + len(body)) + struct.pack("<BI", kind, 13) + body


def test_json_depth_bomb():
    document = b"\x03" + struct.pack("<II", 0, 8)
    for _ in range(99):
        document = array_of(3, document[1:])
    assert json_text(document) == "[" * 100 + "]" * 100
    with pytest.raises(InvalidField, match="deeply"):
        json_text(array_of(3, document[1:]))


@pytest.mark.parametrize(
    "document",
    [
        b"\x03" + struct.pack("<II", 0xFFFFFFFF, 8),
        b"\x03" + struct.pack("<II", 1, 0xFFFFFFFF) + bytes(5),
        b"\x03" + struct.pack("<IIBI", 1, 13, 3, 0),
        b"\x03" + struct.pack("<IIBI", 1, 13, 9, 0xFFFFFFF0),
        b"\x03" + struct.pack("<IIBI", 1, 13, 9, 12),
        b"\x01" + struct.pack("<IIIHBI", 1, 19, 0xFFFFFFF0, 5, 4, 0),
        b"\x01" + struct.pack("<II", 1, 19),
        b"\x0c\x05abc",
        b"\x0c\xff\xff\xff\xff\xff\xff",
        b"\x0c\x01\xff",
        b"\x0d",
        b"\x0d\xfd\x05a",
        b"\x04\x07",
        b"\x0b" + struct.pack("<d", float("nan")),
        b"\x09\0",
        b"\x11" + bytes(8),
        b"\x7f",
    ],
)
def test_json_that_lies(document):
    with pytest.raises(InvalidField):
        json_text(document)


def test_json_values_that_overlap_cannot_multiply_the_work():
    """Each level points twice at the next one: 2^90 visits if offsets were simply followed."""
    inner = struct.pack("<II", 0, 8)
    for _ in range(90):
        size = 8 + 2 * 5 + len(inner)
        inner = struct.pack("<II", 2, size) + struct.pack("<BI", 3, 18) * 2 + inner
    with pytest.raises(InvalidField, match="overlap"):
        json_text(b"\x03" + inner)


def test_rows_of_another_table_are_refused_when_written():
    with pytest.raises(InvalidField, match=r"db\.t"):
        encode_chunk(pa.RecordBatch.from_arrays([pa.array([1])], names=["other"]), NUMBER)


@pytest.mark.parametrize(
    ("col", "text"),
    [
        (column("c", types.DATETIME, decimal=0), "2024-01-01"),
        (column("c", types.DATETIME, decimal=0), "2024-01-01T00:00:00"),
        (column("c", types.TIME, decimal=0), "1:00:00"),
        (column("c", types.TIME, decimal=0), "x00:00:00"),
        (column("c", types.TIME, decimal=0), "-0000:00:00"),
        (column("c", types.JSON), "{"),
        (column("c", types.VECTOR), "[a]"),
    ],
)
def test_text_that_is_no_value_is_refused_when_written(col, text):
    with pytest.raises(InvalidField):
        encode_chunk(pa.RecordBatch.from_arrays([pa.array([text])], names=["c"]), table(col))
