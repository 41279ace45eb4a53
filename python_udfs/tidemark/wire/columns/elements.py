"""ENUM, SET and BIT: numbers in variable-width cells.

enum, set := value:u64le name             (the name is the sender's text of the value; `Column.elems` says the same)
bit       := ceil(width/8) bytes, big-endian
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemark.wire.columns.cells import Cells, first_bad, plain_numbers, primitive_array, validity
from tidemark.wire.errors import InvalidField
from tidemark.wire.table_info import Column
from tidemark.wire.types import bit_width

VALUE_SIZE = 8
MAX_SET_ELEMENTS = 64


class _Members:
    """ENUM (value = position of the member, 0 = none) or SET (value = one bit per member)."""

    def __init__(self, is_set: bool):
        self.is_set = is_set

    def limit(self, column: Column) -> int:
        """The highest value the column can have."""
        count = len(column.elems)
        return (1 << min(count, MAX_SET_ELEMENTS)) - 1 if self.is_set else count

    def decode(self, cells: Cells, column: Column) -> pa.Array:
        starts = cells.offsets[:-1]
        short = first_bad(cells.valid, cells.lengths() < VALUE_SIZE)
        if short is not None:
            raise InvalidField(
                f"row {short}: the value takes {VALUE_SIZE} bytes",
                expected=VALUE_SIZE,
                actual=int(cells.offsets[short + 1] - starts[short]),
            )
        if cells.valid is not None:
            starts = starts[cells.valid]
        if not len(starts):
            values = np.zeros(0, dtype="<u8")
        else:
            # Every position of the data as the start of a u64, without copying it.
            windows = np.ndarray(
                len(cells.data) - VALUE_SIZE + 1, dtype="<u8", buffer=cells.data, strides=(1,)
            )
            values = windows[starts]
        limit = self.limit(column)
        if len(values) and values.max() > limit:
            raise InvalidField(
                f"value {values.max()} is beyond the members", expected=limit, actual=int(values.max())
            )
        return primitive_array(pa.uint64(), cells, _spread(values, cells))

    def encode(self, array: pa.Array, column: Column) -> Cells:
        numbers = plain_numbers(array, "<u8")
        distinct, which = np.unique(numbers, return_inverse=True)
        if len(distinct) and distinct[-1] > self.limit(column):
            raise InvalidField(
                f"column {column.name!r}: value {distinct[-1]} is beyond the members",
                expected=self.limit(column),
                actual=int(distinct[-1]),
            )
        forms = [
            int(value).to_bytes(VALUE_SIZE, "little") + self.name(int(value), column).encode()
            for value in distinct
        ]
        valid = validity(array)
        if valid is not None:
            # NULL takes no bytes: one more form, the empty one.
            forms.append(b"")
            which = np.where(valid, which, len(forms) - 1)
        texts = pa.array(forms, type=pa.binary()).take(pa.array(which))
        offsets = np.frombuffer(texts.buffers()[1], dtype=np.int32)[: len(array) + 1].astype(np.int64)
        return Cells(
            len(array),
            valid,
            offsets,
            np.frombuffer(texts.buffers()[2] or b"", dtype=np.uint8)[: offsets[-1]],
        )

    def name(self, value: int, column: Column) -> str:
        """The text of one value."""
        if self.is_set:
            return ",".join(elem for bit, elem in enumerate(column.elems) if value >> bit & 1)
        return column.elems[value - 1] if 0 < value <= len(column.elems) else ""


class _Bits:
    def decode(self, cells: Cells, column: Column) -> pa.Array:
        width = bit_width(column)
        lengths = cells.lengths()
        bad = first_bad(cells.valid, lengths > VALUE_SIZE)
        if bad is not None:
            raise InvalidField(
                f"row {bad}: {lengths[bad]} bytes", expected=VALUE_SIZE, actual=int(lengths[bad])
            )
        ends = cells.offsets[1:]
        if cells.valid is not None:
            ends, lengths = ends[cells.valid], lengths[cells.valid]
        values = np.zeros(len(ends), dtype=np.uint64)
        for place in range(int(lengths.max()) if len(lengths) else 0):
            there = lengths > place
            digits = cells.data[np.where(there, ends - 1 - place, 0)].astype(np.uint64)
            values |= np.where(there, digits << np.uint64(8 * place), np.uint64(0))
        if len(values) and int(values.max()) >> width:
            raise InvalidField(f"value {values.max()} has more than {width} bits", expected=width)
        return primitive_array(pa.uint64(), cells, _spread(values, cells))

    def encode(self, array: pa.Array, column: Column) -> Cells:
        size = (bit_width(column) + 7) // 8
        numbers = plain_numbers(array, ">u8")
        valid = validity(array)
        lengths = np.full(len(array), size, dtype=np.int64)
        if valid is not None:
            lengths[~valid] = 0
            numbers = numbers[valid]
        offsets = np.zeros(len(array) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        data = numbers.view(np.uint8).reshape(-1, VALUE_SIZE)[:, VALUE_SIZE - size :]
        return Cells(len(array), valid, offsets, np.ascontiguousarray(data).reshape(-1))


def _spread(values: np.ndarray, cells: Cells) -> np.ndarray:
    """Values of the rows that have one, at their rows; zero elsewhere."""
    if cells.valid is None:
        return values
    spread = np.zeros(cells.rows, dtype=np.uint64)
    spread[cells.valid] = values
    return spread


ENUMS, SETS, BITS = _Members(is_set=False), _Members(is_set=True), _Bits()
