"""Texts that repeat a few values are looked up; those that the sample lacks are not mistaken for others."""

import zlib

import numpy as np
import pyarrow as pa
import pytest

from tidemark.dispatch.crc_known import look_up_known
from tidemark.dispatch.crc_texts import crc32_texts

ROWS = 6000  # enough to be sampled


def picked(values: list, seed: int = 1, rows: int = ROWS) -> list:
    return [values[i] for i in np.random.default_rng(seed).integers(0, len(values), rows)]


def assert_zlibs(texts: list, kind: pa.DataType | None = None) -> None:
    got = crc32_texts(b"status", pa.array(texts, kind or pa.binary()))
    assert got.tolist() == [zlib.crc32(b"status" + (text or b"")) for text in texts]


@pytest.mark.parametrize(
    "values",
    [
        [b"new", b"paid", b"shipped", b"returned"],
        [b"", b"a", b"aa", b"aaa", b"aaaaaaaa"],
        [b"ab", b"ba", b"abc", b"bc"],
        [None, b"on", b"off"],
        ["é".encode(), "日本".encode(), b"\xff\xff\xff", b"\x01"],
        [b"%d" % n for n in range(95, 111)],
        [b"%d" % n for n in range(80, 121)],
        [b"%d" % n for n in range(100_000)],
    ],
    ids=["statuses", "lengths", "shared bytes", "NULL", "not ASCII", "16 values", "41 values", "many values"],
)
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_few_texts_of_several_lengths(values, kind):
    assert_zlibs(picked(values), kind)


@pytest.mark.parametrize("row", [0, 1, ROWS // 2 + 1, ROWS - 1])
@pytest.mark.parametrize(
    "stranger",
    [
        b"",
        b"x",
        b"paie",
        b"Paid",
        b"paid\0",
        b"\0paid",
        b"\0",
        b"\0\0\0\0\0\0\0\0",
        b"shippedx",
        b"of nine b",
    ],
)
def test_a_text_that_was_not_expected_is_seen_wherever_it_is(stranger, row):
    texts = picked([b"new", b"paid", b"shipped"])
    texts[row] = stranger
    assert_zlibs(texts)


def test_random_texts_among_the_known_ones():
    random = np.random.default_rng(2)
    for _ in range(20):
        common = [random.bytes(n) for n in random.integers(0, 9, random.integers(2, 20)).tolist()]
        texts = picked(common, seed=int(random.integers(1000)), rows=int(random.integers(4096, 9000)))
        for row in random.integers(0, len(texts), random.integers(0, 500)).tolist():
            texts[row] = random.bytes(int(random.integers(0, 9)))
        assert_zlibs(texts)
        # Without zero bytes, which keep texts from being words.
        assert_zlibs([text.replace(b"\0", b"0") for text in texts])


def test_a_slice_of_known_texts():
    texts = pa.array(picked([b"new", b"paid"], rows=2 * ROWS)).slice(77, ROWS)
    assert crc32_texts(b"", texts).tolist() == [zlib.crc32(text) for text in texts.to_pylist()]


def words_of(texts: list[bytes]) -> np.ndarray:
    return np.array([int.from_bytes(text, "little") for text in texts], np.uint64)


def test_every_word_of_the_sample_is_known():
    texts = [b"%d" % n for n in range(16)]
    out = np.empty(16, np.uint32)
    assert look_up_known(b"every", words_of(texts), out).tolist() == []
    assert out.tolist() == [zlib.crc32(b"every" + text) for text in texts]


def test_a_column_of_many_values_has_no_known_ones():
    out = np.empty(10_000, np.uint32)
    assert look_up_known(b"many", np.arange(10_000, dtype=np.uint64), out) is None


def test_the_next_batch_of_a_column_may_have_other_texts():
    for values in ([b"new", b"paid"], [b"paid", b"new", b"void"], [b"on", b"off"], [b"new", b"paid"]):
        assert_zlibs(picked(values))
    # A few that the batch before did not have, fewer than are worth another sample.
    assert_zlibs([*picked([b"new", b"paid"]), b"lost", b"found"])


def test_the_next_batch_of_a_column_may_have_many_values():
    assert_zlibs(picked([b"new", b"paid"]))
    assert_zlibs([b"%d" % n for n in range(ROWS)])
    assert_zlibs(picked([b"new", b"paid"]))
