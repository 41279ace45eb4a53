"""The vectorised CRC-32 is zlib's, on whatever text."""

import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.dispatch.crc_integers import crc32_integers
from tidemark.dispatch.crc_texts import crc32_texts

# The first example also builds the tables.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@given(
    st.binary(max_size=20),
    st.lists(st.one_of(st.binary(max_size=40), st.binary(min_size=100, max_size=300)), max_size=30),
)
def test_crc_of_texts_is_zlibs(prefix, texts):
    assert crc32_texts(prefix, pa.array(texts, pa.binary())).tolist() == [
        zlib.crc32(prefix + t) for t in texts
    ]


@given(st.lists(st.text(max_size=12), min_size=3), st.integers(0, 3))
def test_crc_of_a_slice_of_a_string_array(texts, start):
    sliced = pa.array(texts, pa.string()).slice(start)
    assert crc32_texts(b"name", sliced).tolist() == [zlib.crc32(b"name" + t.encode()) for t in texts[start:]]


@given(st.binary(max_size=20), st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_crc_of_signed_integers_is_that_of_their_decimal_text(prefix, numbers):
    got = crc32_integers(prefix, np.array(numbers, np.int64))
    assert got.tolist() == [zlib.crc32(prefix + str(n).encode()) for n in numbers]


@given(st.binary(max_size=20), st.lists(st.integers(0, 2**64 - 1)))
def test_crc_of_unsigned_integers_is_that_of_their_decimal_text(prefix, numbers):
    got = crc32_integers(prefix, np.array(numbers, np.uint64))
    assert got.tolist() == [zlib.crc32(prefix + str(n).encode()) for n in numbers]


@pytest.mark.parametrize("digits", range(1, 21))
def test_crc_of_integers_at_every_digit_boundary(digits):
    numbers = [10 ** (digits - 1), 10**digits - 1 if digits < 20 else 2**64 - 1, 0]
    got = crc32_integers(b"k", np.array(numbers, np.uint64))
    assert got.tolist() == [zlib.crc32(b"k%d" % n) for n in numbers]


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 127, 128, 129, 1000])
def test_crc_of_texts_at_every_word_boundary(length):
    longest = (bytes(range(1, 256)) * 4)[:length]
    texts = [longest, longest[: length // 2], b""]
    assert crc32_texts(b"", pa.array(texts, pa.large_binary())).tolist() == [zlib.crc32(t) for t in texts]


MANY = 5000  # rows from which texts of one length are compared with each other


def random_bytes(rows: int, masks: list[int], constant: int = 0) -> list[bytes]:
    """Texts of one length whose bytes vary in the bits of the masks only."""
    made = np.random.default_rng(len(masks)).integers(0, 256, (rows, len(masks)), np.uint8)
    return [row.tobytes() for row in made & np.array(masks, np.uint8) | np.uint8(constant)]


@pytest.mark.parametrize(
    "masks",
    [
        [0xFF],
        [0x00] * 5,
        [0x0F] * 26,
        [0x0F, 0x0F, 0x00] * 9,
        [0xF0, 0x0F, 0xFF, 0x00, 0x01],
        [0x00, 0x00, 0x0F],
        [0x0F, 0x00, 0xF0, 0x00, 0x0F, 0x0F, 0x80],
        [0x5F] * 36,
        [0x0F] * 127,
        [0xFF] * 127,
    ],
)
@pytest.mark.parametrize("constant", [0x00, 0x30, 0xFF])
def test_crc_of_many_texts_of_one_length_that_differ_in_some_bits(masks, constant):
    texts = random_bytes(MANY, masks, constant)
    assert crc32_texts(b"name", pa.array(texts, pa.binary())).tolist() == [
        zlib.crc32(b"name" + t) for t in texts
    ]


def test_crc_of_many_datetimes_some_of_them_null():
    moments = np.datetime64("1999-12-31", "us") + np.arange(MANY) * 86_413_456_789
    texts = [None if i % 7 == 0 else str(m).replace("T", " ") for i, m in enumerate(moments)]
    assert crc32_texts(b"at", pa.array(texts)).tolist() == [
        zlib.crc32(b"at" + (t or "").encode()) for t in texts
    ]


@pytest.mark.parametrize("different", [0, 1, 4095, MANY - 1])
def test_one_text_that_differs_is_seen_wherever_it_is(different):
    texts = [b"2024-01-01"] * MANY
    texts[different] = b"2024-01-\xff1"
    got = crc32_texts(b"", pa.array(texts, pa.binary()))
    assert got.tolist() == [zlib.crc32(t) for t in texts]


def test_crc_of_more_rows_than_are_handled_at_a_time():
    numbers = np.arange(70_000) - 100
    assert crc32_integers(b"n", numbers).tolist() == [zlib.crc32(b"n%d" % n) for n in numbers.tolist()]
    texts = [b"%d" % n for n in numbers.tolist()]
    assert crc32_texts(b"n", pa.array(texts, pa.binary())).tolist() == [zlib.crc32(b"n" + t) for t in texts]


def test_texts_must_be_strings_or_bytes():
    with pytest.raises(TypeError, match="not int64"):
        crc32_texts(b"", pa.array([1]))


def test_no_texts_with_and_without_offsets():
    nothing = pa.py_buffer(b"")
    for texts in (pa.array([], pa.string()), pa.Array.from_buffers(pa.string(), 0, [None, nothing, nothing])):
        assert crc32_texts(b"p", texts).tolist() == []
