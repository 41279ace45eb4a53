"""Column values from random 64-bit numbers, a whole column at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.demo.dice import below

_UNIT_US = {"s": 1_000_000, "ms": 1_000, "us": 1}
DAY_US = 86_400_000_000


def whole(random: np.ndarray, low: int, high: int) -> pa.Array:
    """Signed integers from low to high, both included."""
    return pa.array(below(random, high - low + 1).astype(np.int64) + low)


def natural(random: np.ndarray, low: int, high: int) -> pa.Array:
    """Unsigned integers from low to high, both included."""
    return pa.array(below(random, high - low + 1) + np.uint64(low))


def chosen(random: np.ndarray, texts: pa.Array) -> pa.Array:
    return texts.take(pa.array(below(random, len(texts))))


def decimal(random: np.ndarray, low: int, high: int, precision: int, scale: int) -> pa.Array:
    """Decimals whose unscaled value is from low to high."""
    unscaled = np.empty((len(random), 2), dtype=np.int64)
    unscaled[:, 0] = below(random, high - low + 1).astype(np.int64) + low
    unscaled[:, 1] = unscaled[:, 0] >> 63
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(random), [None, pa.py_buffer(unscaled)])


def real(random: np.ndarray, high: float) -> np.ndarray:
    """Numbers with three decimals from 0 up to high."""
    return below(random, int(high * 1000)).astype(np.float64) / 1000


def moment(microseconds: np.ndarray, unit: str) -> pa.Array:
    """Text of points in time: unit s, ms or us gives 0, 3 or 6 fractional digits."""
    ticks = np.asarray(microseconds).astype(np.int64) // _UNIT_US[unit]
    return pa.array(ticks, type=pa.timestamp(unit)).cast(pa.string())


def date(microseconds: np.ndarray) -> pa.Array:
    days = np.asarray(microseconds).astype(np.int64) // DAY_US
    return pa.array(days.astype(np.int32), type=pa.date32()).cast(pa.string())


def time_of_day(seconds: np.ndarray) -> pa.Array:
    return pa.array(seconds.astype(np.int32), type=pa.time32("s")).cast(pa.string())


def blob(random: np.ndarray, size: int) -> pa.Array:
    """`size` bytes each, at most 16: the number and its complement."""
    matrix = np.stack([random, ~random], axis=1).astype("<u8").view(np.uint8)[:, :size]
    offsets = np.arange(0, (len(random) + 1) * size, size, dtype=np.int32)
    data = np.ascontiguousarray(matrix)
    return pa.Array.from_buffers(pa.binary(), len(random), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def joined(*parts: pa.Array | str) -> pa.Array:
    """Texts put together row by row."""
    return pc.binary_join_element_wise(*parts, "")


def text_of(numbers: np.ndarray) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def null_where(array: pa.Array, absent: np.ndarray) -> pa.Array:
    return pc.if_else(pa.array(absent), pa.scalar(None, type=array.type), array) if absent.any() else array


def rarely(random: np.ndarray, one_in: int) -> np.ndarray:
    """True once in `one_in` rows. It looks at the low bits, which `below` does not use."""
    return (random & np.uint64(0xFFFFFFFF)) % np.uint64(one_in) == 0
