"""DATE, DATETIME, TIMESTAMP and TIME: 8-byte cells, MySQL text in Arrow.

    datetime := u64: year<<50 month<<46 day<<41 hour<<36 minute<<30 second<<24 microsecond<<4 tag
    tag      := fsp<<1, plus 1 for TIMESTAMP; 1110b for DATE
    time     := i64 nanoseconds

Text is put together from tables of ready-made digits: neighbouring fields of the cell index a table whose entries are written as one word into
a matrix of bytes, one row per value. A TIMESTAMP is civil time already: the sender converted it to its time zone. Zero dates and zero months or days
are values in MySQL.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

from tidemark.wire.columns.cells import Cells, fixed_width_text, plain_bytes, string_array, validity
from tidemark.wire.errors import InvalidField
from tidemark.wire.table_info import Column
from tidemark.wire.types import DATE, NEWDATE, TIMESTAMP, fsp

DATE_TAG = 0b1110
DATE_WIDTH = 10
SECONDS_WIDTH = 19
MAX_MICROSECOND = 999_999
MAX_TIME = 839 * 3600 * 10**9 - 1  # -838:59:59.999999 to 838:59:59.999999
ZERO = ord("0")


@cache
def _table(pattern: str, *fields: tuple[int, int]) -> np.ndarray:
    """Text of every combination of bit fields, as little-endian words; 0 where a field is above its maximum.

    `pattern` has one letter run per field (`YYYY-MM-`), `fields` are (bits, maximum) from the most significant field on.
    """
    bits = sum(width for width, _ in fields)
    index = np.arange(1 << bits, dtype=np.uint32)
    text = np.empty((len(index), len(pattern)), dtype=np.uint8)
    text[:] = np.frombuffer(pattern.encode(), dtype=np.uint8)
    good = np.ones(len(index), dtype=bool)
    shift, letters = bits, list(dict.fromkeys(letter for letter in pattern if letter.isalpha()))
    for letter, (width, maximum) in zip(letters, fields, strict=True):
        shift -= width
        value = index >> shift & ((1 << width) - 1)
        good &= value <= maximum
        for place in reversed([at for at, character in enumerate(pattern) if character == letter]):
            text[:, place] = ZERO + value % 10
            value = value // 10
    text[~good] = 0
    return np.ascontiguousarray(text).view(f"<u{len(pattern)}").reshape(-1)


@cache
def _digits(count: int) -> np.ndarray:
    """0, 1, 2, … with `count` digits each, as words."""
    value = np.arange(10**count)
    text = np.stack([ZERO + value // 10**place % 10 for place in reversed(range(count))], axis=1)
    return text.astype(np.uint8).view(f"<u{count}").reshape(-1)


def _put(matrix: np.ndarray, at: int, words: np.ndarray) -> None:
    """Write one word per row of the matrix, from byte `at` on."""
    rows, width = matrix.shape
    if rows:
        np.ndarray(rows, dtype=words.dtype, buffer=matrix, offset=at, strides=(width,))[:] = words


def _put_fraction(matrix: np.ndarray, microseconds: np.ndarray, digits: int) -> None:
    """`.` and the first digits of the microseconds at the end of each row.

    Words are wider than odd digit counts: they reach into the point, which is written last.
    """
    width = matrix.shape[1]
    value = microseconds // np.uint32(10 ** (6 - digits)) if digits < 6 else microseconds
    if digits <= 2:
        _put(matrix, width - 2, _digits(2).take(value))
    else:
        high = value // np.uint32(10_000)
        _put(matrix, width - 4, _digits(4).take(value - high * np.uint32(10_000)))
        if digits > 4:
            _put(matrix, width - 6, _digits(2).take(high))
    matrix[:, width - digits - 1] = ord(".")


def text_width(column: Column) -> int:
    """Characters of every value of a date or datetime column."""
    if column.mysql_type in (DATE, NEWDATE):
        return DATE_WIDTH
    digits = fsp(column)
    return SECONDS_WIDTH + (digits + 1 if digits else 0)


class _Datetimes:
    def decode(self, cells: Cells, column: Column) -> pa.Array:
        values = cells.values("<i8")
        width = text_width(column)
        matrix = np.empty((cells.rows, width), dtype=np.uint8)
        year_month = _table("YYYY-MM-", (14, 9999), (4, 12)).take(values >> 46 & 0x3FFFF)
        _put(matrix, 0, year_month)
        good = year_month.all()
        if width == DATE_WIDTH:
            _put(matrix, 8, _table("DD", (5, 31)).take(values >> 41 & 0x1F))
        else:
            day_to_minute = _table("DD hh:mm", (5, 31), (5, 23), (6, 59)).take(values >> 30 & 0xFFFF)
            _put(matrix, 8, day_to_minute)
            # The last digit of the minute again, to make the seconds a whole word.
            second = _table("m:SS", (6, 59), (6, 59)).take(values >> 24 & 0xFFF)
            _put(matrix, 15, second)
            microseconds = (values >> 4).astype(np.uint32) & np.uint32(0xFFFFF)
            good = (
                good and day_to_minute.all() and second.all() and not (microseconds > MAX_MICROSECOND).any()
            )
            if good and width > SECONDS_WIDTH:
                _put_fraction(matrix, microseconds, fsp(column))
        if not good:
            raise InvalidField(
                "a date or time with a field out of range",
                expected="year <= 9999, month <= 12, hour <= 23, minute <= 59, second <= 59, microsecond <= 999999",
            )
        return fixed_width_text(cells, matrix)

    def encode(self, array: pa.Array, column: Column) -> Cells:
        rows, valid, width = len(array), validity(array), text_width(column)
        pattern = "0000-00-00 00:00:00.000000"[:width]
        offsets, data = plain_bytes(array.fill_null(pattern) if valid is not None else array)
        if (np.diff(offsets) != width).any():
            raise _not_like(column, pattern)
        digits = _digit_columns(data.reshape(rows, width), pattern, column)
        packed = np.zeros(rows, dtype=np.uint64)
        for first, last, shift in (
            (0, 4, 50),
            (5, 7, 46),
            (8, 10, 41),
            (11, 13, 36),
            (14, 16, 30),
            (17, 19, 24),
        ):
            if first < width:
                packed |= _number(digits[first:last]) << np.uint64(shift)
        if width > SECONDS_WIDTH:
            fraction = _number(digits[20:]) * np.uint64(10 ** (26 - width))
            packed |= fraction << np.uint64(4)
        tag = DATE_TAG if width == DATE_WIDTH else fsp(column) << 1 | (column.mysql_type == TIMESTAMP)
        packed |= np.uint64(tag)
        if valid is not None:
            packed[~valid] = 0
        return Cells(rows, valid, None, packed.view(np.uint8))


class _Times:
    def decode(self, cells: Cells, column: Column) -> pa.Array:
        values = cells.values("<i8")
        if ((values > MAX_TIME) | (values < -MAX_TIME)).any():
            raise InvalidField("a time beyond 838:59:59", expected="-838:59:59 to 838:59:59")
        digits = fsp(column)
        width = len("-hhh:mm:ss") + (digits + 1 if digits else 0)
        microseconds = np.abs(values) // 1000
        seconds = microseconds // 1_000_000
        minutes = seconds // 60
        hours = minutes // 60
        matrix = np.empty((cells.rows, width), dtype=np.uint8)
        # From right to left, each word one or two digits wider than its field: the next one covers what is too much.
        if digits:
            _put_fraction(matrix, (microseconds - seconds * 1_000_000).astype(np.uint32), digits)
        _put(matrix, 8, _digits(2).take(seconds - minutes * 60))
        _put(matrix, 5, _digits(2).take(minutes - hours * 60))
        _put(matrix, 0, _digits(4).take(hours))
        matrix[:, 4] = matrix[:, 7] = ord(":")
        matrix[:, 0] = ord("-")
        kept = np.ones((cells.rows, width), dtype=bool)
        kept[:, 0] = values < 0
        kept[:, 1] = hours >= 100
        offsets = np.zeros(cells.rows + 1, dtype=np.int64)
        np.cumsum(width - 2 + kept[:, 0] + kept[:, 1], out=offsets[1:])
        return string_array(pa.string(), cells, offsets, matrix[kept])

    def encode(self, array: pa.Array, column: Column) -> Cells:
        rows, valid, digits = len(array), validity(array), fsp(column)
        tail = ":00:00" + ("." + "0" * digits if digits else "")
        pattern = "00" + tail
        offsets, data = plain_bytes(array.fill_null(pattern) if valid is not None else array)
        lengths = np.diff(offsets)
        if (lengths < len(pattern)).any() or (lengths > len("-000") + len(tail)).any():
            raise _not_like(column, pattern)
        negative = data[offsets[:-1]] == ord("-") if rows else np.zeros(0, dtype=bool)
        starts = offsets[:-1] + negative
        hour_digits = offsets[1:] - len(tail) - starts
        if ((hour_digits < 2) | (hour_digits > 3)).any():
            raise _not_like(column, pattern)
        ends = offsets[1:, None] + np.arange(-len(pattern), 0)
        columns = _digit_columns(data[ends], pattern, column)
        hundreds = np.where(hour_digits == 3, data[starts] - ZERO if rows else 0, 0).astype(np.int64)
        seconds = (hundreds * 100 + _number(columns[0:2]).astype(np.int64)) * 3600
        seconds += _number(columns[3:5]).astype(np.int64) * 60 + _number(columns[6:8]).astype(np.int64)
        packed = seconds * 10**9
        if digits:
            packed += _number(columns[9:]).astype(np.int64) * 10 ** (9 - digits)
        packed = np.where(negative, -packed, packed)
        if (hundreds > 9).any() or (np.abs(packed) > MAX_TIME).any():
            raise _not_like(column, pattern)
        if valid is not None:
            packed[~valid] = 0
        return Cells(rows, valid, None, packed.view(np.uint8))


def _digit_columns(matrix: np.ndarray, pattern: str, column: Column) -> list[np.ndarray]:
    """The columns of the matrix as digits, after checking each byte against the pattern (`0` stands for any digit)."""
    columns = []
    for place, character in enumerate(pattern):
        values = matrix[:, place]
        digits = values - np.uint8(ZERO)
        if not ((digits <= 9) if character == "0" else (values == ord(character))).all():
            raise _not_like(column, pattern)
        columns.append(digits)
    return columns


def _number(digits: list[np.ndarray]) -> np.ndarray:
    value = np.zeros(len(digits[0]), dtype=np.uint64)
    for digit in digits:
        value = value * np.uint64(10) + digit
    return value


def _not_like(column: Column, pattern: str) -> InvalidField:
    return InvalidField(f"column {column.name!r}: a text that is not like {pattern}", expected=pattern)


DATETIMES, TIMES = _Datetimes(), _Times()
