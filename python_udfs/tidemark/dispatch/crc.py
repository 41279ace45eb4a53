"""CRC-32 (IEEE, as in zlib) of many short texts at once.

A CRC register is linear over XOR: the CRC of a text is the XOR of what each of its bytes contributes, and a contribution depends
only on the byte and on how many bytes follow it. So with P a common prefix,

    crc32(P + text) = crc32(P + len(text) zero bytes) ^ contributions of text
    crc32(P + digits) = crc32(P + len(digits) times "0") ^ contributions of the digits' values, in which zeros do not count

The first form takes texts eight bytes at a time, as four lookups of two bytes each; the second takes integers four digits at a time without
ever writing them as text. Both are a few numpy operations on whole columns.
"""

from __future__ import annotations

import zlib
from functools import cache, lru_cache

import numpy as np
import pyarrow as pa

_POLYNOMIAL = 0xEDB88320
_WORD = 8  # bytes of a text that one round consumes
# From this length on, one zlib call per value costs less than the rounds it would add for the whole column.
_LONG = 128
# Rows of texts handled at a time: few enough that a temporary array of 64-bit numbers is below the 128 KiB from which malloc asks the
# kernel for fresh pages each time.
_CHUNK = 15_360
_GROUP = 10_000  # integers are taken four digits at a time
_MAX_DIGITS = 20


@cache
def _byte_contributions(count: int) -> np.ndarray:
    """[m, b]: what byte b contributes when m bytes follow it, for m < count."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1)
    rows = [table]
    for _ in range(count - 1):
        rows.append(table[rows[-1] & 0xFF] ^ (rows[-1] >> 8))
    return np.stack(rows)


@cache
def _pair_table(following: int) -> np.ndarray:
    """What two bytes contribute when `following` bytes come after them, by their little-endian 16-bit number."""
    single = _byte_contributions(_LONG)
    return np.bitwise_xor.outer(single[following], single[following + 1]).ravel()


@cache
def _group_tables() -> tuple[np.ndarray, ...]:
    """Table g: what four digits contribute when 4g digits follow them, by the number they form."""
    single = _byte_contributions(_MAX_DIGITS)[:, :10]
    numbers = np.arange(_GROUP)
    return tuple(
        single[low][numbers % 10]
        ^ single[low + 1][numbers // 10 % 10]
        ^ single[low + 2][numbers // 100 % 10]
        ^ single[low + 3][numbers // 1000]
        for low in range(0, _MAX_DIGITS, 4)
    )


_KEEP_LAST = np.array(
    [(0xFFFFFFFFFFFFFFFF << (8 * (_WORD - n))) & 0xFFFFFFFFFFFFFFFF for n in range(_WORD + 1)], np.uint64
)


@lru_cache(maxsize=1024)
def _by_text_length(prefix: bytes) -> np.ndarray:
    """[n]: crc32 of the prefix and n zero bytes, for every length that is not long."""
    crcs = [zlib.crc32(prefix)]
    for _ in range(_LONG):
        crcs.append(zlib.crc32(b"\0", crcs[-1]))
    return np.array(crcs, np.uint32)


@lru_cache(maxsize=1024)
def _by_digit_count(prefix: bytes) -> np.ndarray:
    """[n]: crc32 of the prefix and n times "0"."""
    return np.array([zlib.crc32(prefix + b"0" * n) for n in range(_MAX_DIGITS + 1)], np.uint32)


def crc32_integers(prefix: bytes, values: np.ndarray) -> np.ndarray:
    """crc32(prefix + decimal text) of every int64 or uint64 value, as uint32."""
    if not values.size:
        return np.empty(0, np.uint32)
    if values.dtype == np.int64 and values.min() < 0:
        negative = values < 0
        # The smallest int64 has no positive twin; its two's complement read as unsigned is its magnitude.
        magnitude = np.where(negative, -values, values).view(np.uint64)
        signs = np.where(negative, *(_by_length(p, magnitude) for p in (prefix + b"-", prefix)))
    else:
        magnitude = values
        signs = _by_length(prefix, values)
    return signs ^ _digits(magnitude)


def _by_length(prefix: bytes, magnitude: np.ndarray) -> np.ndarray | np.uint32:
    crcs = _by_digit_count(prefix)
    fewest, most = len(str(int(magnitude.min()))), len(str(int(magnitude.max())))
    if fewest == most:
        return crcs[most]
    if most - fewest <= 3:
        digits = np.full(magnitude.size, fewest, np.intp)
        for boundary in range(fewest, most):
            digits += magnitude >= magnitude.dtype.type(10**boundary)
    else:
        digits = _digit_count(magnitude.view(np.uint64))
    return crcs.take(digits, mode="clip")


# The digits of 2**e, by e; and the first number that has one digit more.
_DIGITS_OF_POWER = np.array([len(str(2**e)) for e in range(64)], np.intp)
_NEXT_BOUNDARY = np.array([10**d for d in range(_MAX_DIGITS)], np.uint64)


def _digit_count(magnitude: np.ndarray) -> np.ndarray:
    # A double's exponent is the position of the highest bit; rounding may carry it past a power of two, never past one of ten.
    exponents = (magnitude.astype(np.float64).view(np.int64) >> 52) - 1023
    digits = _DIGITS_OF_POWER.take(exponents, mode="clip")
    digits += magnitude >= _NEXT_BOUNDARY.take(digits, mode="clip")
    return digits


def _digits(magnitude: np.ndarray) -> np.ndarray:
    """XOR of the contributions of the values' digits."""
    tables = _group_tables()
    most = int(magnitude.max())
    rest = magnitude
    out = None
    for table in tables:
        if most < _GROUP:
            index = rest
        else:
            above = rest // rest.dtype.type(_GROUP)
            index = rest - above * rest.dtype.type(_GROUP)
            rest = above
        part = table.take(index.view(np.int64), mode="clip")
        out = part if out is None else np.bitwise_xor(out, part, out=out)
        most //= _GROUP
        if not most:
            return out
    raise AssertionError("an unsigned 64-bit number has at most 20 digits")


def crc32_texts(prefix: bytes, texts: pa.Array) -> np.ndarray:
    """crc32(prefix + text) of every value of a string or binary array, as uint32; NULLs count as empty."""
    out = np.empty(len(texts), np.uint32)
    for first in range(0, len(texts), _CHUNK):
        _crc32_texts(prefix, texts.slice(first, _CHUNK), out[first : first + _CHUNK])
    return out


def _crc32_texts(prefix: bytes, texts: pa.Array, out: np.ndarray) -> None:
    bytes_, starts, ends = layout(texts)
    lengths = ends - starts
    longest = int(lengths.max())
    by_length = _by_text_length(prefix)
    if longest < _LONG:
        by_length.take(lengths, out=out, mode="clip")
        filled = np.count_nonzero(lengths)
        if filled * longest == len(bytes_) - _WORD:
            rows = slice(None) if filled == len(lengths) else np.flatnonzero(lengths)
            out[rows] ^= _same_length(bytes_[_WORD:], filled, longest)
        else:
            out ^= _any_length(bytes_, ends, lengths)
        return
    is_long = lengths >= _LONG
    short, long = np.flatnonzero(~is_long), np.flatnonzero(is_long)
    lengths = lengths[short]
    out[short] = by_length.take(lengths, mode="clip") ^ _any_length(bytes_, ends[short], lengths)
    start_crc, view = zlib.crc32(prefix), memoryview(bytes_)
    out[long] = [
        zlib.crc32(view[a:b], start_crc)
        for a, b in zip(starts[long].tolist(), ends[long].tolist(), strict=True)
    ]


def layout(texts: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The values' bytes behind one word of padding, and where each value starts and ends in them."""
    wide = pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type)
    if not (wide or pa.types.is_string(texts.type) or pa.types.is_binary(texts.type)):
        raise TypeError(f"texts to hash must be strings or bytes, not {texts.type}")
    _, offsets_buffer, data_buffer = texts.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64 if wide else np.int32)[
        texts.offset : texts.offset + len(texts) + 1
    ]
    first, last = int(offsets[0]), int(offsets[-1])
    bytes_ = np.empty(_WORD + last - first, np.uint8)
    bytes_[:_WORD] = 0
    if last > first:
        bytes_[_WORD:] = np.frombuffer(data_buffer, np.uint8, last - first, first)
    offsets = offsets.astype(np.int64) + (_WORD - first)
    return bytes_, offsets[:-1], offsets[1:]


def _same_length(bytes_: np.ndarray, count: int, length: int) -> np.ndarray:
    """XOR of the contributions of the bytes of `count` texts of one length that follow each other: dates, codes, UUIDs."""
    out = np.zeros(count, np.uint32)
    if length % 2:
        out ^= _byte_contributions(_LONG)[length - 1].take(bytes_[::length], mode="clip")
    pairs = np.ndarray((count, length // 2), "<u2", bytes_, length % 2, (length, 2))
    for pair in range(length // 2):
        out ^= _pair_table(2 * pair).take(pairs[:, -1 - pair], mode="clip")
    return out


def _any_length(bytes_: np.ndarray, ends: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """XOR of the contributions of every text's bytes.

    Texts are aligned at their ends and filled with zero bytes on the left, which contribute nothing, so that all lengths go through the
    same rounds.
    """
    out = np.zeros(len(lengths), np.uint32)
    if not len(lengths):
        return out
    shortest, longest = int(lengths.min()), int(lengths.max())
    # words_at[i] is the word that starts at byte i, for every i.
    words_at = np.ndarray((len(bytes_) - _WORD + 1,), "<u8", bytes_, strides=(1,))
    for after in range(0, longest, _WORD):
        rows = slice(None) if shortest > after else np.flatnonzero(lengths > after)
        words = words_at[ends[rows] - (after + _WORD)]
        if shortest < after + _WORD:
            words &= _KEEP_LAST.take(lengths[rows] - after, mode="clip")
        pairs = words.view("<u2").reshape(-1, _WORD // 2)
        part = _pair_table(after).take(pairs[:, -1], mode="clip")
        # Where the longest text starts in this word, the bytes before it are nobody's.
        for following in range(after + 2, min(after + _WORD, longest), 2):
            part ^= _pair_table(following).take(pairs[:, (after - following) // 2 - 1], mode="clip")
        out[rows] ^= part
    return out
