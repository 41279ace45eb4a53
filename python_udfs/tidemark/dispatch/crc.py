"""CRC-32 (IEEE, as in zlib) of many short texts at once: the algebra, and the table that everything is made from.

A CRC register is linear over XOR: the CRC of a text is the XOR of what each of its bytes contributes, and a contribution depends only on the byte and on how
many bytes follow it; a zero byte contributes nothing. So with P a common prefix and C(x) the contributions of the bytes of x,

    crc32(P + text)   = crc32(P + len(text) zero bytes) ^ C(text)
    crc32(P + text)   = crc32(P + other) ^ C(text ^ other)                  for texts of one length
    crc32(P + digits) = crc32(P + len(digits) times "0") ^ C(values of the digits)

`crc_texts` uses the first two, `crc_integers` and `crc_datetimes` the third. C of several bits at once is one lookup in a table; lookups are what it all costs, so the
ways taken there differ in how few of them a value needs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np

_POLYNOMIAL = 0xEDB88320
# Rows handled at a time. Temporary arrays should stay in the processor's caches, but with fewer rows the calls into numpy cost more than that saves.
CHUNK = 65_536


def in_chunks(rows: int, crcs: Callable[[slice], np.ndarray]) -> np.ndarray:
    """The CRCs of so many rows, asked for in slices of about the same size, none larger than CHUNK."""
    if not rows:
        return np.empty(0, np.uint32)
    if rows <= CHUNK:
        return crcs(slice(0, rows))
    bounds = np.linspace(0, rows, -(-rows // CHUNK) + 1, dtype=int).tolist()
    return np.concatenate([crcs(slice(first, last)) for first, last in pairwise(bounds)])


@cache
def byte_contributions(count: int) -> np.ndarray:
    """[m, b]: what byte b contributes when m bytes follow it, for m < count."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1)
    rows = [table]
    for _ in range(count - 1):
        rows.append(table[rows[-1] & 0xFF] ^ (rows[-1] >> 8))
    return np.stack(rows)


def both(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """What two parts of a number contribute together: [h * len(low) + l] is high[h] ^ low[l]."""
    return np.bitwise_xor.outer(high, low).ravel()
