"""CRC-32 of texts that are a few values again and again, such as a status: looked up, not computed.

A text of up to eight bytes, none of them zero, is one word: its bytes, then zeros. A sample of the words says which to expect,
and a hash is chosen that gives each of these a slot of its own. Every word is compared with the one in its slot, so texts that the sample lacks are found out.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import NamedTuple

import numpy as np

_SAMPLE = 64
# With more values than that in the sample, many others are missing from it.
_FEW = 16
_SLOT_BITS = 12
_SHIFT = np.uint64(64 - _SLOT_BITS)
# The slot is in the high bits of a product. Odd multiples of 2**64 / golden ratio are tried until no two words share one.
_GOLDEN = 0x9E3779B97F4A7C15
_TRIES = 16


class KnownTexts(NamedTuple):
    """By slot: a word, and the CRC of its text."""

    multiplier: np.uint64
    words: np.ndarray
    crcs: np.ndarray

    def look_up(self, words: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write the CRC of every word; gives the rows whose words are not known, where something else was written."""
        slots = words * self.multiplier
        slots >>= _SHIFT
        slots = slots.view(np.int64)
        # Every slot lies within the tables; "clip" spares numpy the check.
        self.crcs.take(slots, mode="clip", out=out)
        return np.flatnonzero(self.words.take(slots, mode="clip") != words)


def look_up_known(prefix: bytes, words: np.ndarray, out: np.ndarray) -> np.ndarray | None:
    """Write the CRCs of words that are known; gives the rows of the others, or None where nearly everything is different."""
    memory = _memory(prefix)
    if memory.known is not None:
        unknown = memory.known.look_up(words, out)
        if len(unknown) * _SAMPLE <= len(words):
            return unknown
    sample = frozenset(words[:: len(words) // _SAMPLE + 1].tolist())
    memory.known = _known_texts(prefix, sample) if len(sample) <= _FEW else None
    return None if memory.known is None else memory.known.look_up(words, out)


class _Memory:
    """What was known of a column's texts last: the next batch mostly has the same."""

    known: KnownTexts | None = None


@lru_cache(maxsize=256)
def _memory(prefix: bytes) -> _Memory:
    return _Memory()


@lru_cache(maxsize=256)
def _known_texts(prefix: bytes, sample: frozenset[int]) -> KnownTexts:
    words = np.array(sorted(sample), "<u8")
    for turn in range(_TRIES):
        multiplier = np.uint64(_GOLDEN * (2 * turn + 1) % (1 << 64))
        slots = words * multiplier >> _SHIFT
        if len(np.unique(slots)) == len(words):
            break
    # The word of an empty text is 0. It goes to slot 0, and is what an empty slot has.
    known = KnownTexts(
        multiplier,
        np.zeros(1 << _SLOT_BITS, "<u8"),
        np.full(1 << _SLOT_BITS, zlib.crc32(prefix), np.uint32),
    )
    known.words[slots] = words
    known.crcs[slots] = [zlib.crc32(prefix + word.tobytes().rstrip(b"\0")) for word in words]
    return known
