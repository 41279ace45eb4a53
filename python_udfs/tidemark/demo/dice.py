"""Reproducible random numbers for whole arrays.

SplitMix64: the n-th number of a sequence is a mix of `key + n * GAMMA`. It is fully specified by arithmetic on 64 bits, so the same arguments give the same
logs with every version of numpy.
"""

from __future__ import annotations

import hashlib

import numpy as np

GAMMA = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def key_of(*parts: int | str) -> int:
    """A 64-bit key for a name made of several parts."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "little")


def mix(numbers: np.ndarray) -> np.ndarray:
    """Every bit of the answer depends on every bit of the number."""
    mixed = numbers ^ (numbers >> np.uint64(30))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def below(random: np.ndarray, limit: int | np.ndarray) -> np.ndarray:
    """Random 64-bit numbers to numbers in [0, limit), for limits up to 2^32."""
    return (random >> np.uint64(32)) * np.asarray(limit, dtype=np.uint64) >> np.uint64(32)


class Dice:
    def __init__(self, *name: int | str):
        self._state = key_of(*name)

    def raw(self, count: int) -> np.ndarray:
        """The next `count` numbers, each from all 64 bits."""
        steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GAMMA)
        numbers = mix(steps + np.uint64(self._state))
        self._state = (self._state + count * GAMMA) & MASK
        return numbers

    def below(self, count: int, limit: int | np.ndarray) -> np.ndarray:
        return below(self.raw(count), limit).astype(np.int64)

    def sample(self, candidates: np.ndarray, count: int) -> np.ndarray:
        """`count` different candidates, or all of them when there are fewer: one from each of `count` equal stretches."""
        if count >= len(candidates):
            return candidates
        edges = np.arange(count + 1) * len(candidates) // max(count, 1)
        return candidates[edges[:-1] + self.below(count, np.diff(edges))]

    def shuffled(self, count: int) -> np.ndarray:
        """0 to count - 1 in some order. 16 bits are sorted in linear time."""
        return np.argsort(self.raw(count).astype(np.uint16), kind="stable")
