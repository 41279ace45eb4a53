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


def test_texts_must_be_strings_or_bytes():
    with pytest.raises(TypeError, match="not int64"):
        crc32_texts(b"", pa.array([1]))
