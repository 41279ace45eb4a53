"""Rows as parameters of server-side prepared statements, in MySQL's binary protocol. All integers are little-endian.

    execute := statement_id:u32 flags:u8 iterations:u32 parameters
    parameters := nulls[(n + 7) / 8] types_follow:u8 type:u16[n] value[n]              (n: rows x columns, row by row)
    value   := nothing (NULL) | i64 | u64 | f64 | length bytes
    length  := u8 (below 251) | fc u16 | fd u24 | fe u64

So values are bound as what they are and never become text of a statement, and the server parses a statement once for all its rows. Whole columns
are encoded at once; the parameters of any run of rows are then a slice.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.wire.text import decimal_text

EXECUTE = struct.Struct("<IBI")
# status:u8 statement_id:u32 columns:u16 parameters:u16
PREPARED = struct.Struct("<BIHH")
# The protocol counts parameters in 16 bits.
MOST_PARAMETERS = 0xFFFF

_UNSIGNED = 0x8000
_LONGLONG, _DOUBLE, _NEWDECIMAL, _BLOB, _VAR_STRING = 8, 5, 246, 252, 253
# (lengths below this, first byte, bytes of the length)
_LENGTHS = ((251, None, 1), (1 << 16, 0xFC, 2), (1 << 24, 0xFD, 3), (1 << 62, 0xFE, 8))


@dataclass(frozen=True)
class EncodedRows:
    """`values`: the encoded values of a row, one entry per row. `nulls` has a line per row, `types` is the same for all rows."""

    values: pa.BinaryArray
    nulls: np.ndarray
    types: bytes

    def __len__(self) -> int:
        return len(self.values)

    @property
    def sizes(self) -> np.ndarray:
        """Bytes that each row takes in a statement."""
        return np.diff(self._offsets()) + len(self.types) + -(-self.nulls.shape[1] // 8)

    def parameters(self, start: int, end: int) -> bytes:
        """Those of the rows [start, end)."""
        offsets, data = self._offsets(), self.values.buffers()[2]
        nulls = np.packbits(self.nulls[start:end].reshape(-1), bitorder="little")
        values = memoryview(data)[offsets[start] : offsets[end]] if data is not None else b""
        return b"".join((nulls.tobytes(), b"\x01", self.types * (end - start), values))

    def _offsets(self) -> np.ndarray:
        first = self.values.offset
        return np.frombuffer(self.values.buffers()[1], dtype=np.int32)[first : first + len(self.values) + 1]


def encode_rows(params: pa.RecordBatch) -> EncodedRows:
    """The rows of a batch whose columns are int64, uint64, float64, decimals, strings or binary."""
    encoded = [_encoder(array.type) for array in params.columns]
    parts = [
        part for (_, encode), array in zip(encoded, params.columns, strict=True) for part in encode(array)
    ]
    nulls = [array.is_null().to_numpy(zero_copy_only=False) for array in params.columns]
    return EncodedRows(
        pc.binary_join_element_wise(*parts, b""),
        np.stack(nulls, axis=1),
        b"".join(struct.pack("<H", code) for code, _ in encoded),
    )


def _encoder(kind: pa.DataType) -> tuple[int, Callable[[pa.Array], Iterator[pa.BinaryArray]]]:
    """(type code, what encodes a column of it)"""
    if pa.types.is_int64(kind):
        return _LONGLONG, _fixed
    if pa.types.is_uint64(kind):
        return _LONGLONG | _UNSIGNED, _fixed
    if pa.types.is_float64(kind):
        return _DOUBLE, _fixed
    if pa.types.is_decimal(kind):
        # As a number, not as text: a server compares a DECIMAL and a text as floating point numbers.
        return _NEWDECIMAL, lambda array: _texts(decimal_text(array))
    if pa.types.is_string(kind):
        return _VAR_STRING, _texts
    if pa.types.is_binary(kind):
        return _BLOB, _texts
    raise TypeError(f"{kind} is no parameter")


def _fixed(array: pa.Array) -> Iterator[pa.BinaryArray]:
    values = array.fill_null(0)
    taken = pa.Array.from_buffers(
        pa.binary(8), len(values), [None, values.buffers()[1]], offset=values.offset
    ).cast(pa.binary())
    yield pc.if_else(array.is_null(), b"", taken) if array.null_count else taken


def _texts(array: pa.Array) -> Iterator[pa.BinaryArray]:
    there = array.is_valid().to_numpy(zero_copy_only=False)
    lengths = pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    yield _lengths(lengths, there)
    yield array.cast(pa.binary()).fill_null(b"")


def _lengths(lengths: np.ndarray, there: np.ndarray) -> pa.BinaryArray:
    """The length of every text, in as many bytes as it needs; nothing for NULL."""
    classes = np.searchsorted([limit for limit, _, _ in _LENGTHS], lengths, side="right")
    widths = np.array([digits + (first is not None) for _, first, digits in _LENGTHS])[classes] * there
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(widths, out=offsets[1:])
    data = np.zeros(offsets[-1], dtype=np.uint8)
    for number, (_, first, digits) in enumerate(_LENGTHS):
        chosen = there & (classes == number)
        places, values = offsets[:-1][chosen], lengths[chosen]
        if first is not None:
            data[places] = first
            places = places + 1
        for digit in range(digits if len(places) else 0):
            data[places + digit] = (values >> (8 * digit)) & 0xFF
    return pa.Array.from_buffers(pa.binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
