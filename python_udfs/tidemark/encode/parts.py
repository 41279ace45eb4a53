"""Rows put together from parts: columns of text, and literals between them.

One Arrow kernel joins all parts of a batch at about 12 ns per part and row, so the parts are made few first. Literals become one with
each other and with neighbours that are cheap to extend: `Coded` columns, whose few words are extended instead of the rows, and columns whose
values all have the same width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.encode.errors import EncodeError
from tidemark.encode.strings import data_of, offsets_of

# Wider values are as fast in the kernel.
_MAX_UNIFORM_WIDTH = 64
_MAX_SPLIT_SCALE = 4
_MAX_SPLIT_PRECISION = 18
# Doubles with at most this many decimals below this size are printed from integers: nine digits always read back exactly.
_FLOAT_DECIMALS = 3
_FLOAT_LIMIT = 1e6
# Words must be few next to the rows to be worth it.
_ROWS_PER_WORD = 4


@dataclass(frozen=True)
class Coded:
    """A column in which each row has one of a few words."""

    index: np.ndarray
    words: pa.StringArray

    def column(self) -> pa.StringArray:
        return self.words.take(pa.array(self.index))


Part = str | pa.StringArray | Coded


def joined(parts: Sequence[Part], null: str) -> pa.StringArray:
    """The parts of each row one after another; `null` stands for NULL."""
    merged = _with_literals_absorbed(list(parts))
    try:
        return pc.binary_join_element_wise(
            *[pa.scalar(part) if isinstance(part, str) else part for part in merged],
            "",
            null_handling="replace",
            null_replacement=null,
        )
    except pa.ArrowCapacityError:
        raise EncodeError("the encoded rows of one batch exceed 2 GiB: use smaller batches") from None


def _with_literals_absorbed(parts: list[Part]) -> list[str | pa.StringArray]:
    merged: list[str | pa.StringArray] = []
    before = ""
    position = 0
    while position < len(parts):
        part = parts[position]
        position += 1
        if isinstance(part, str):
            before += part
            continue
        width = 0 if isinstance(part, Coded) else _uniform_width(part)
        if isinstance(part, Coded) or width:
            behind = ""
            while position < len(parts) and isinstance(parts[position], str):
                behind += parts[position]
                position += 1
            if isinstance(part, Coded):
                part = Coded(part.index, pc.binary_join_element_wise(before, part.words, behind, "")).column()
            else:
                part = _extended(part, width, before.encode(), behind.encode())
            before = ""
        if before:
            merged.append(before)
            before = ""
        merged.append(part)
    return [*merged, before] if before else merged


def _uniform_width(array: pa.StringArray) -> int:
    """The width of all values, or 0."""
    if array.null_count or not len(array):
        return 0
    offsets = offsets_of(array)
    width = int(offsets[1] - offsets[0])
    if not 0 < width <= _MAX_UNIFORM_WIDTH or offsets[-1] - offsets[0] != width * len(array):
        return 0
    return width if (np.diff(offsets) == width).all() else 0


def _extended(array: pa.StringArray, width: int, before: bytes, behind: bytes) -> pa.StringArray:
    count, total = len(array), len(before) + width + len(behind)
    text = np.empty((count, total), np.uint8)
    text[:, : len(before)] = np.frombuffer(before, np.uint8)
    text[:, len(before) : len(before) + width] = np.frombuffer(data_of(array), np.uint8).reshape(count, width)
    text[:, len(before) + width :] = np.frombuffer(behind, np.uint8)
    offsets = np.arange(count + 1, dtype=np.int32) * total
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(text)])


def runs(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(first row of each run of equal values, run of each row)"""
    starts = np.zeros(len(columns[0]), bool)
    starts[:1] = True
    for column in columns:
        starts[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(starts), np.cumsum(starts, dtype=np.int32) - 1


def split_decimal(array: pa.Array) -> list[Part] | None:
    """A decimal as sign, whole number and coded fraction; None where that is not possible."""
    precision, scale = array.type.precision, array.type.scale
    if array.null_count or precision > _MAX_SPLIT_PRECISION or not 0 < scale <= _MAX_SPLIT_SCALE:
        return None
    if len(array) < _ROWS_PER_WORD * 10**scale:
        return None
    # The low half of a decimal128: all of a number of up to 18 digits.
    numbers = np.frombuffer(array.buffers()[1], np.int64)[::2][array.offset : array.offset + len(array)]
    return _split(numbers < 0, np.abs(numbers), scale, _fractions(scale, strip=False))


def split_float(array: pa.Array) -> list[Part] | None:
    """A double of few decimals as sign, whole number and coded fraction; None where that is not possible."""
    if array.null_count or array.type != pa.float64() or len(array) < _ROWS_PER_WORD * 10**_FLOAT_DECIMALS:
        return None
    values = array.to_numpy()
    size = np.abs(values)
    if not (size < _FLOAT_LIMIT).all():
        return None
    scaled = np.rint(size * 10**_FLOAT_DECIMALS)
    if not (scaled / 10**_FLOAT_DECIMALS == size).all():
        return None
    return _split(
        np.signbit(values), scaled.astype(np.int64), _FLOAT_DECIMALS, _fractions(_FLOAT_DECIMALS, strip=True)
    )


def _split(negative: np.ndarray, size: np.ndarray, scale: int, fractions: pa.StringArray) -> list[Part]:
    whole = size // 10**scale
    fraction = (size - whole * 10**scale).astype(np.int32)
    sign: list[Part] = [Coded(negative.view(np.int8), pa.array(["", "-"]))] if negative.any() else []
    return [*sign, pa.array(whole).cast(pa.string()), Coded(fraction, fractions)]


@cache
def _fractions(scale: int, strip: bool) -> pa.StringArray:
    digits = (f"{number:0{scale}d}" for number in range(10**scale))
    if not strip:
        return pa.array([f".{text}" for text in digits])
    return pa.array([f".{text.rstrip('0')}" if text.strip("0") else "" for text in digits])
