"""CRC-32 of the decimal texts of integers, without writing the texts.

Numbers are taken four digits at a time, each group being one lookup. The leading group also tells how many digits the number has, so its table
holds the CRC of the prefix and that many "0" as well. See `crc` for the algebra.
"""

from __future__ import annotations

import zlib
from functools import cache, lru_cache

import numpy as np

from tidemark.dispatch.crc import both, byte_contributions, in_chunks

_GROUP_DIGITS = 4
_GROUP = 10**_GROUP_DIGITS
_GROUP_U64 = np.uint64(_GROUP)
_MAX_DIGITS = 20


def crc32_integers(prefix: bytes, values: np.ndarray) -> np.ndarray:
    """crc32(prefix + decimal text) of every int64 or uint64 value, as uint32."""
    return in_chunks(len(values), lambda rows: _signed(prefix, values[rows]))


def _signed(prefix: bytes, values: np.ndarray) -> np.ndarray:
    # Negative numbers read as unsigned are larger than all others.
    numbers = values.view(np.uint64)
    largest = int(numbers.max())
    if values.dtype == np.uint64 or largest < 1 << 63:
        return _naturals(prefix, numbers, largest)
    # The smallest int64 has no positive twin; its two's complement read as unsigned is its magnitude.
    magnitudes = np.abs(values).view(np.uint64)
    largest = int(magnitudes.max())
    out = _naturals(prefix, magnitudes, largest)
    negative = np.flatnonzero(values < 0)
    out[negative] = _naturals(prefix + b"-", magnitudes[negative], largest)
    return out


def _naturals(prefix: bytes, numbers: np.ndarray, limit: int) -> np.ndarray:
    """`limit` is not below any of the numbers."""
    groups_after = (len(str(limit)) - 1) // _GROUP_DIGITS
    out, rest = None, numbers
    for table in _group_tables()[:groups_after]:
        above = rest // _GROUP_U64
        multiples = above * _GROUP_U64
        part = _lookup(table, np.subtract(rest, multiples, out=multiples))
        out = part if out is None else np.bitwise_xor(out, part, out=out)
        rest = above
    leading = _lookup(_leading_table(prefix, groups_after), rest)
    if out is None:
        return leading
    out ^= leading
    # Numbers without a digit in the leading group are done again among themselves.
    shorter = np.flatnonzero(rest == 0)
    if len(shorter):
        out[shorter] = _naturals(prefix, numbers[shorter], _GROUP**groups_after - 1)
    return out


def _lookup(table: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    # Every number lies within the table; "clip" spares numpy the check.
    return table.take(numbers.view(np.int64), mode="clip")


@cache
def _group_tables() -> tuple[np.ndarray, ...]:
    """Table g: what four digits contribute when 4g digits follow them, by the number they form."""
    single = byte_contributions(_MAX_DIGITS)[:, :10]
    return tuple(
        both(both(single[low + 3], single[low + 2]), both(single[low + 1], single[low]))
        for low in range(0, _MAX_DIGITS, _GROUP_DIGITS)
    )


@lru_cache(maxsize=256)
def _leading_table(prefix: bytes, groups_after: int) -> np.ndarray:
    """What the leading digits of a number contribute, with the crc32 of the prefix and as many "0" as the number has digits."""
    leading = np.arange(_GROUP)
    digits = _GROUP_DIGITS * groups_after + 1 + sum(leading >= 10**n for n in range(1, _GROUP_DIGITS))
    zeros = np.array([zlib.crc32(prefix + b"0" * n) for n in range(_MAX_DIGITS + 1)], np.uint32)
    return zeros[digits] ^ _group_tables()[groups_after]
