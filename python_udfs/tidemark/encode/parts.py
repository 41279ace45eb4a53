"""Rows put together from parts: columns of text, and literals between them.

All words that occur are put into one array, and one `take` picks the words of each row from it, one after another: what it writes are the rows. That costs about 8 ns
per part and row, so the parts are made few first. Literals become one with each other and with `Coded` columns, whose few words are extended instead of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.encode.errors import EncodeError
from tidemark.encode.strings import offsets_of

_MAX_SPLIT_SCALE = 4
_MAX_SPLIT_PRECISION = 18
# Doubles with at most this many decimals below this size are printed from integers: nine digits always read back exactly.
_FLOAT_DECIMALS = 3
_FLOAT_LIMIT = 1e6
# Words must be few next to the rows to be worth it; those that have to be made, fewer still.
_ROWS_PER_WORD = 4
_ROWS_PER_NEW_WORD = 16
_NUMERALS = 10_000
# Words that are picked at once: what stays in the processor's caches.
_BLOCK = 128 * 1024


@dataclass(frozen=True)
class Coded:
    """A column in which each row has one of some words, best of a few."""

    index: np.ndarray
    words: pa.StringArray

    def __len__(self) -> int:
        return len(self.index)


Part = str | pa.StringArray | Coded


def joined(parts: Sequence[Part], null: str) -> pa.StringArray:
    """The parts of each row one after another; `null` stands for NULL."""
    count = next(len(part) for part in parts if not isinstance(part, str))
    if not count:
        return pa.array([], pa.string())
    merged = _merged(parts, null)
    words = [*(_words(part) for part in merged), pa.array([null])]
    firsts = np.cumsum([0, *(len(some) for some in words)])
    rows = max(_BLOCK // len(merged), 1)
    try:
        every = pa.concat_arrays(words)
        blocks = [
            _block(every, merged, firsts, start, min(start + rows, count)) for start in range(0, count, rows)
        ]
        return blocks[0] if len(blocks) == 1 else pa.concat_arrays(blocks)
    except pa.ArrowInvalid:
        # Arrow's word for texts that its offsets cannot count.
        raise EncodeError("the encoded rows of one batch exceed 2 GiB: use smaller batches") from None


def quoted(array: pa.Array, parts: list[Part], quote: str) -> list[Part]:
    """The parts of the values of a column between quotes; NULL has none."""
    if not array.null_count:
        return [quote, *parts, quote]
    if array.null_count == len(array):
        return parts
    around = only_where_valid(array, quote)
    return [around, *parts, around]


def only_where_valid(array: pa.Array, word: str) -> Part:
    """`word` behind the values of a column; nothing behind NULL."""
    return Coded(_valid(array).view(np.int8), pa.array(["", word])) if array.null_count else word


def picked(parts: Sequence[Part], rows: np.ndarray) -> list[Part]:
    """The parts of these rows."""
    return [_picked(part, rows) for part in parts]


def _picked(part: Part, rows: np.ndarray) -> Part:
    if isinstance(part, str):
        return part
    return Coded(part.index[rows], part.words) if isinstance(part, Coded) else Coded(rows, part)


def _valid(array: pa.Array) -> np.ndarray:
    return array.is_valid().to_numpy(zero_copy_only=False)


def _words(part: Part) -> pa.StringArray:
    if isinstance(part, str):
        return pa.array([part])
    return part.words if isinstance(part, Coded) else part


def _block(
    every: pa.StringArray, parts: list[Part], firsts: np.ndarray, start: int, end: int
) -> pa.StringArray:
    """The rows [start, end). `firsts`: where in `every` the words of each part begin, and behind them the word for NULL."""
    places = np.empty((end - start, len(parts)), np.int32)
    for number, part in enumerate(parts):
        first, column = firsts[number], places[:, number]
        if isinstance(part, str):
            column[:] = first
        elif isinstance(part, Coded):
            index = part.index[start:end]
            np.add(index, first, out=column, dtype=np.int32, casting="unsafe")
            if part.words.null_count:
                column[~_valid(part.words)[index]] = firsts[-2]
        else:
            column[:] = np.arange(first + start, first + end, dtype=np.int32)
            if part.null_count:
                column[~_valid(part.slice(start, end - start))] = firsts[-2]
    picked = pc.take(every, pa.array(places.reshape(-1)), boundscheck=False)
    offsets = np.ascontiguousarray(offsets_of(picked)[:: len(parts)])
    return pa.Array.from_buffers(pa.string(), end - start, [None, pa.py_buffer(offsets), picked.buffers()[2]])


def _merged(parts: Sequence[Part], null: str) -> list[Part]:
    merged: list[Part] = []
    for part in _with_one_literal_between(parts, null):
        one = _as_one(merged[-1], part) if merged else None
        if one is None:
            merged.append(part)
        else:
            merged[-1] = one
    return merged


def _with_one_literal_between(parts: Sequence[Part], null: str) -> Iterator[Part]:
    literal = ""
    for part in parts:
        if isinstance(part, pa.Array) and part.null_count == len(part):
            part = null
        if isinstance(part, Coded) and part.words.null_count and _is_few(part):
            part = Coded(part.index, part.words.fill_null(null))
        if isinstance(part, str):
            literal += part
            continue
        if literal:
            yield literal
        literal = ""
        yield part
    if literal:
        yield literal


def _as_one(left: Part, right: Part) -> Part | None:
    """Two neighbours as one; None where that is not worth it."""
    if isinstance(left, Coded) and isinstance(right, Coded):
        pairs = len(left.words) * len(right.words)
        if pairs * _ROWS_PER_NEW_WORD > len(left):
            return None
        index = left.index.astype(np.int32) * len(right.words) + right.index.astype(np.int32)
        first, second = np.divmod(np.arange(pairs), len(right.words))
        words = [left.words.take(pa.array(first)), right.words.take(pa.array(second))]
        return Coded(index, pc.binary_join_element_wise(*words, ""))
    if isinstance(left, Coded) and isinstance(right, str) and _is_few(left):
        return Coded(left.index, pc.binary_join_element_wise(left.words, right, ""))
    if isinstance(left, str) and isinstance(right, Coded) and _is_few(right):
        return Coded(right.index, pc.binary_join_element_wise(left, right.words, ""))
    return None


def _is_few(part: Coded) -> bool:
    return len(part.words) * _ROWS_PER_NEW_WORD <= len(part)


def scattered(values: pa.StringArray, where: np.ndarray, word: str) -> Coded:
    """`values` in the rows that `where` marks, in order; `word` in all others."""
    index = np.zeros(len(where), np.int32)
    index[where] = np.arange(1, len(values) + 1)
    return Coded(index, pa.concat_arrays([pa.array([word]), values]))


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
    if precision > _MAX_SPLIT_PRECISION or not 0 < scale <= _MAX_SPLIT_SCALE:
        return None
    if len(array) < _ROWS_PER_WORD * 10**scale:
        return None
    # The low half of a decimal128: all of a number of up to 18 digits.
    numbers = np.frombuffer(array.buffers()[1], np.int64)[::2][array.offset : array.offset + len(array)]
    return _split(array, numbers < 0, np.abs(numbers), scale, _fractions(scale, strip=False))


def split_float(array: pa.Array) -> list[Part] | None:
    """A double of few decimals as sign, whole number and coded fraction; None where that is not possible."""
    if array.type != pa.float64() or len(array) < _ROWS_PER_WORD * 10**_FLOAT_DECIMALS:
        return None
    values = _numbers(array)
    size = np.abs(values)
    if not (size < _FLOAT_LIMIT).all():
        return None
    scaled = np.rint(size * 10**_FLOAT_DECIMALS)
    if not (scaled / 10**_FLOAT_DECIMALS == size).all():
        return None
    fractions = _fractions(_FLOAT_DECIMALS, strip=True)
    return _split(array, np.signbit(values), scaled.astype(np.int64), _FLOAT_DECIMALS, fractions)


def _split(
    array: pa.Array, negative: np.ndarray, size: np.ndarray, scale: int, fractions: pa.StringArray
) -> list[Part]:
    missing = None
    if array.null_count:
        missing = ~_valid(array)
        # Whatever stands where NULL is.
        negative, size = negative & ~missing, np.where(missing, 0, size)
    whole = size // 10**scale
    fraction = (size - whole * 10**scale).astype(np.int32)
    if missing is not None:
        # The word for NULL stands for the whole number.
        fraction[missing] = len(fractions)
        fractions = pa.concat_arrays([fractions, pa.array([""])])
    sign: list[Part] = [Coded(negative.view(np.int8), pa.array(["", "-"]))] if negative.any() else []
    return [*sign, *integers(pa.array(whole, mask=missing)), Coded(fraction, fractions)]


def integers(array: pa.Array) -> list[Part]:
    """Integers in decimal. Small ones need not be printed: their texts are known."""
    numbers = _numbers(array)
    if not len(numbers) or numbers.min() < 0 or numbers.max() >= min(_NUMERALS, len(numbers)):
        return [array.cast(pa.string())]
    words = _numerals().slice(0, int(numbers.max()) + 1)
    if not array.null_count:
        return [Coded(numbers, words)]
    index = np.where(_valid(array), numbers.astype(np.int32), len(words))
    return [Coded(index, pa.concat_arrays([words, pa.nulls(1, pa.string())]))]


def _numbers(array: pa.Array) -> np.ndarray:
    """The values, 0 for NULL."""
    return (array.fill_null(0) if array.null_count else array).to_numpy()


@cache
def _numerals() -> pa.StringArray:
    return pa.array(np.arange(_NUMERALS)).cast(pa.string())


@cache
def _fractions(scale: int, strip: bool) -> pa.StringArray:
    digits = (f"{number:0{scale}d}" for number in range(10**scale))
    if not strip:
        return pa.array([f".{text}" for text in digits])
    return pa.array([f".{text.rstrip('0')}" if text.strip("0") else "" for text in digits])
