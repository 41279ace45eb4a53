"""The cells of one column, between the chunk's bytes and an Arrow array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.wire.errors import InvalidField

# Arrow's strings and binaries are addressed with signed 32-bit offsets.
MAX_COLUMN_BYTES = (1 << 31) - 1


@dataclass
class Cells:
    """`data` holds fixed-width cells, or the cells that `offsets` (rows + 1 of them, ascending from 0) point into.

    What a NULL cell of fixed width holds means nothing: TiDB leaves the value of some earlier row there.
    """

    rows: int
    valid: np.ndarray | None  # bool per row; None when nothing is NULL
    offsets: np.ndarray | None
    data: np.ndarray
    # Texts of ASCII only, without any zero byte; False where nobody has looked.
    is_plain: bool = False

    def bitmap(self) -> pa.Buffer | None:
        return None if self.valid is None else pa.py_buffer(np.packbits(self.valid, bitorder="little"))

    def values(self, dtype: str) -> np.ndarray:
        """Fixed-width cells as numbers, zero where NULL."""
        values = self.data.view(dtype)
        if self.valid is not None:
            values[~self.valid] = 0
        return values

    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)


def primitive_array(kind: pa.DataType, cells: Cells, values: np.ndarray) -> pa.Array:
    """Fixed-width values with the cells' NULLs."""
    return pa.Array.from_buffers(kind, cells.rows, [cells.bitmap(), pa.py_buffer(values)])


def string_array(kind: pa.DataType, cells: Cells, offsets: np.ndarray, data: np.ndarray) -> pa.Array:
    """Text or bytes with the cells' NULLs."""
    if len(data) > MAX_COLUMN_BYTES:
        raise InvalidField(
            "the text of a column exceeds 2 GiB; decode fewer batches at once",
            expected=MAX_COLUMN_BYTES,
            actual=len(data),
        )
    buffers = [cells.bitmap(), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, cells.rows, buffers)


def fixed_width_text(cells: Cells, matrix: np.ndarray) -> pa.StringArray:
    """Text in which every row has the same number of bytes: one row of `matrix` each."""
    width = matrix.shape[1]
    return string_array(
        pa.string(), cells, np.arange(0, (cells.rows + 1) * width, width, dtype=np.int64), matrix.reshape(-1)
    )


def validity(array: pa.Array) -> np.ndarray | None:
    if not array.null_count:
        return None
    return array.is_valid().to_numpy(zero_copy_only=False)


def first_bad(valid: np.ndarray | None, bad: np.ndarray) -> int | None:
    """The first row that is bad and not NULL."""
    if valid is not None:
        bad = bad & valid
    return int(np.argmax(bad)) if bad.any() else None


def plain_numbers(array: pa.Array, dtype: str) -> np.ndarray:
    """The values of a primitive array without NULLs: zero in their place."""
    values = array.fill_null(0) if array.null_count else array
    return np.ascontiguousarray(values.to_numpy(zero_copy_only=False), dtype=dtype)


def plain_bytes(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(offsets from 0, data) of a string or binary array; NULLs are empty."""
    if array.null_count:
        array = array.fill_null(b"" if pa.types.is_binary(array.type) else "")
    _, offsets, data = array.buffers()
    if offsets is None:
        return np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint8)
    bounds = np.frombuffer(offsets, dtype=np.int32)[array.offset : array.offset + len(array) + 1].astype(
        np.int64
    )
    if not len(bounds):
        bounds = np.zeros(1, dtype=np.int64)
    content = np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return bounds - bounds[0], content[bounds[0] : bounds[-1]]
