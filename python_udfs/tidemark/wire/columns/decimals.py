"""DECIMAL: 40-byte cells.

    cell := digits_before_point:u8 digits_after:u8 result_scale:u8 negative:u8 word:i32*9

A word holds 9 decimal digits. ceil(before/9) words are the integer part (the first one has the remainder of the digits), ceil(after/9)
words follow for the fraction, the last one padded with zeros on the right.

The words of all rows are laid on one grid, so that the point is between the same two columns of the grid everywhere; then the unscaled number is
collected from left to right: in 64 bits up to 18 digits, else in 32-bit limbs.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemark.wire.columns.cells import Cells, first_bad, primitive_array, validity
from tidemark.wire.errors import InvalidField
from tidemark.wire.table_info import Column
from tidemark.wire.types import arrow_type, decimal_digits

CELL = 40
WORDS = 9
WORD_DIGITS = 9
WORD_BASE = 10**WORD_DIGITS
INT64_DIGITS = 18
LIMB_BITS = np.uint64(32)
LIMB_MASK = np.uint64(0xFFFFFFFF)

# digits -> words that hold them
_WORDS_OF = ((np.arange(256) + WORD_DIGITS - 1) // WORD_DIGITS).astype(np.int8)


def decode(cells: Cells, column: Column) -> pa.Array:
    precision, scale = decimal_digits(column)
    words = cells.data.view("<u4").reshape(-1, CELL // 4)
    if cells.valid is not None:
        words[~cells.valid] = 0
    grid = _grid(words, precision, scale) if cells.rows else []
    negative = words[:, 0] >> np.uint32(24) != 0
    kind = arrow_type(column)
    if precision <= INT64_DIGITS:
        value = np.zeros(cells.rows, dtype=np.int64)
        for word, base in zip(grid, _steps(len(grid), scale), strict=True):
            value *= base
            value += word
        np.negative(value, out=value, where=negative)
        unscaled = np.empty((cells.rows, 2), dtype=np.int64)
        unscaled[:, 0] = value
        np.right_shift(value, 63, out=unscaled[:, 1])
    else:
        limbs = [np.zeros(cells.rows, dtype=np.uint64) for _ in range(kind.bit_width // 32)]
        for word, base in zip(grid, _steps(len(grid), scale), strict=True):
            carry = word.astype(np.uint64)
            for index, limb in enumerate(limbs):
                carry = limb * np.uint64(base) + carry
                limbs[index] = carry & LIMB_MASK
                carry = carry >> LIMB_BITS
        unscaled = _with_sign(limbs, negative)
    return primitive_array(kind, cells, unscaled)


def _grid(words: np.ndarray, precision: int, scale: int) -> list[np.ndarray]:
    """The words of every row, one array per place; the last one holds only the digits that the column's scale has."""
    heads = words.view(np.uint8)
    before, after = _WORDS_OF.take(heads[:, 0]), _WORDS_OF.take(heads[:, 1])
    bad = first_bad(None, before + after > WORDS)
    if bad is not None:
        raise InvalidField(
            f"row {bad}: a decimal with {heads[bad, 0]} digits before and {heads[bad, 1]} after the point",
            expected=f"{WORDS} words of {WORD_DIGITS} digits",
        )
    int_words, frac_words = -(-(precision - scale) // WORD_DIGITS), -(-scale // WORD_DIGITS)
    point = before + np.arange(1, len(words) * (CELL // 4), CELL // 4)
    flat = words.reshape(-1)
    grid, highest, lowest = [], int(before.max()), int(after.max())
    for place in range(-max(int_words, highest), max(frac_words, lowest)):
        if not -highest <= place < lowest:
            grid.append(np.zeros(len(words), dtype=np.uint32))
            continue
        reach = before >= -place if place < 0 else after > place
        if reach.all():
            word = flat.take(point + place)
        else:
            word = flat.take(np.where(reach, point + place, 0))
            word[~reach] = 0
        inside = -int_words <= place < frac_words
        _check(word, WORD_BASE if inside else 1, precision, scale)
        if inside:
            grid.append(word)
    if int_words:
        _check(grid[0], 10 ** (precision - scale - WORD_DIGITS * (int_words - 1)), precision, scale)
    if scale % WORD_DIGITS:
        padding = np.uint32(10 ** (WORD_DIGITS - scale % WORD_DIGITS))
        digits = grid[-1] // padding
        _check(grid[-1] - digits * padding, 1, precision, scale)
        grid[-1] = digits
    return grid


def _check(word: np.ndarray, limit: int, precision: int, scale: int) -> None:
    """Words, or what is left over of them, must be below the limit. (A negative word is a large one here.)"""
    if word.max() >= limit:
        bad = int(word.argmax())
        raise InvalidField(
            f"row {bad}: {word[bad]} of its digits do not fit into decimal({precision},{scale})",
            expected=f"decimal({precision},{scale})",
            actual=int(word[bad]),
        )


def _steps(count: int, scale: int) -> list[int]:
    """What the number is multiplied with before each word of the grid is added."""
    steps = [WORD_BASE] * count
    if steps and scale % WORD_DIGITS:
        steps[-1] = 10 ** (scale % WORD_DIGITS)
    return steps


def _with_sign(limbs: list[np.ndarray], negative: np.ndarray) -> np.ndarray:
    """Two's complement, least significant 64 bits first."""
    out = np.empty((len(negative), len(limbs) // 2), dtype=np.uint64)
    carry = negative
    for index in range(out.shape[1]):
        part = limbs[2 * index] | limbs[2 * index + 1] << LIMB_BITS
        part = np.where(negative, ~part, part) + carry
        out[:, index] = part
        carry = carry & (part == 0)
    return out


def encode(array: pa.Array, column: Column) -> Cells:
    precision, scale = decimal_digits(column)
    rows, valid = len(array), validity(array)
    parts = array.type.bit_width // 64
    raw = array.buffers()[1]
    unscaled = np.zeros((rows, parts), dtype=np.uint64)
    if rows:
        unscaled[:] = np.frombuffer(raw, dtype="<u8").reshape(-1, parts)[array.offset : array.offset + rows]
    if valid is not None:
        unscaled[~valid] = 0
    negative = unscaled[:, -1] >> np.uint64(63) != 0
    # More limbs than the digits need would only be divided as zeros.
    count = -(-int(10**precision - 1).bit_length() // 32)
    limbs = _magnitude(unscaled, negative, count)
    int_digits = precision - scale
    int_words = -(-int_digits // WORD_DIGITS)
    frac_words = -(-scale // WORD_DIGITS)
    words = np.zeros((rows, CELL // 4), dtype="<i4")
    words[:, 0] = int_digits | scale << 8 | scale << 16
    words[negative, 0] |= 1 << 24
    for place in reversed(range(int_words + frac_words)):
        partial = scale % WORD_DIGITS if place == int_words + frac_words - 1 else 0
        base = 10**partial if partial and frac_words else WORD_BASE
        word = _divide(limbs, base)
        words[:, 1 + place] = word * np.uint64(WORD_BASE // base)
    return Cells(rows, valid, None, words.view(np.uint8).reshape(-1))


def _magnitude(unscaled: np.ndarray, negative: np.ndarray, count: int) -> list[np.ndarray]:
    limbs, carry = [], negative
    for index in range(unscaled.shape[1]):
        part = unscaled[:, index]
        part = np.where(negative, ~part, part) + carry
        carry = carry & (part == 0)
        limbs += [part & LIMB_MASK, part >> LIMB_BITS]
    return limbs[:count]


def _divide(limbs: list[np.ndarray], base: int) -> np.ndarray:
    """Divide in place; gives the remainder."""
    divisor = np.uint64(base)
    rest = np.zeros(len(limbs[0]), dtype=np.uint64)
    for index in reversed(range(len(limbs))):
        rest = rest << LIMB_BITS | limbs[index]
        limbs[index] = rest // divisor
        rest = rest - limbs[index] * divisor
    return rest
