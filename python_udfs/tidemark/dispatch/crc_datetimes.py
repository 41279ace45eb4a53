"""CRC-32 of the texts of dates and datetimes, from their packed cells, without reading the texts.

The cell is a number of bit fields (`wire.columns.temporal`). Neighbouring fields together are the index of one lookup:

    year month | day hour | minute second | microsecond / 1000 | microsecond mod 1000

The tables are small enough for the processor's caches, but for the first one, of which rows of about the same time use a few entries. All have what the
digits contribute beyond "0"; the text of zeros is in the table of the day. See `crc` for the algebra.
"""

from __future__ import annotations

import zlib
from functools import cache, lru_cache

import numpy as np

from tidemark.dispatch.crc import both, byte_contributions, in_chunks
from tidemark.wire.columns.temporal import DATE_WIDTH, SECONDS_WIDTH

_ZEROS = b"0000-00-00 00:00:00.000000"
_FRACTION = SECONDS_WIDTH + 1
_THOUSAND = np.uint32(1000)


def crc32_datetimes(prefix: bytes, cells: np.ndarray, width: int) -> np.ndarray:
    """crc32(prefix + text) of every packed uint64, as uint32. All texts have `width` characters: only a date, or with up to six digits of a second's fraction."""
    return in_chunks(len(cells), lambda rows: _crc32_datetimes(prefix, cells[rows], width))


def _crc32_datetimes(prefix: bytes, cells: np.ndarray, width: int) -> np.ndarray:
    # Every index lies within its table; "clip" spares numpy the check.
    index = cells >> np.uint64(46)
    out = _year_month(width).take(index.view(np.int64), mode="clip")
    if width == DATE_WIDTH:
        out ^= _lookup(_day(prefix), cells, 41, 0x1F, index)
        return out
    out ^= _lookup(_day_hour(prefix, width), cells, 36, 0x3FF, index)
    out ^= _lookup(_minute_second(width), cells, 24, 0xFFF, index)
    digits = width - _FRACTION
    if digits <= 0:
        return out
    np.right_shift(cells, np.uint64(4), out=index)
    fraction = index.astype(np.uint32)
    fraction &= np.uint32(0xFFFFF)
    if digits < 6:
        fraction //= np.uint32(10 ** (6 - digits))
    if digits > 3:
        thousands = fraction // _THOUSAND
        out ^= _digits(width, _FRACTION, width - 3, 1000).take(thousands, mode="clip")
        thousands *= _THOUSAND
        fraction -= thousands
    out ^= _digits(width, max(_FRACTION, width - 3), width, 1000).take(fraction, mode="clip")
    return out


def _lookup(table: np.ndarray, cells: np.ndarray, shift: int, mask: int, index: np.ndarray) -> np.ndarray:
    """What the fields above `shift` contribute; `index` is overwritten."""
    np.right_shift(cells, np.uint64(shift), out=index)
    index &= np.uint64(mask)
    return table.take(index.view(np.int64), mode="clip")


@cache
def _year_month(width: int) -> np.ndarray:
    return both(_digits(width, 0, 4, 1 << 14), _digits(width, 5, 7, 1 << 4))


@lru_cache(maxsize=256)
def _day(prefix: bytes) -> np.ndarray:
    return _digits(DATE_WIDTH, 8, 10, 1 << 5) ^ _zeros(prefix, DATE_WIDTH)


@lru_cache(maxsize=256)
def _day_hour(prefix: bytes, width: int) -> np.ndarray:
    return both(_digits(width, 8, 10, 1 << 5), _digits(width, 11, 13, 1 << 5)) ^ _zeros(prefix, width)


@cache
def _minute_second(width: int) -> np.ndarray:
    return both(_digits(width, 14, 16, 1 << 6), _digits(width, 17, 19, 1 << 6))


def _zeros(prefix: bytes, width: int) -> np.uint32:
    return np.uint32(zlib.crc32(prefix + _ZEROS[:width]))


@cache
def _digits(width: int, first: int, last: int, count: int) -> np.ndarray:
    """[n], for n < count: what the digits of n contribute at the places from `first` to `last` of a text."""
    numbers = np.arange(count)
    contributions = np.zeros(count, np.uint32)
    for place in range(first, last):
        digits = numbers // 10 ** (last - 1 - place) % 10
        contributions ^= byte_contributions(len(_ZEROS))[width - 1 - place][digits]
    return contributions
