"""Columns of values as Avro binary, whole columns at once.

    int, long      zigzag, then 7 bits per byte, lowest first, the high bit set on all bytes but the last
    float, double  4 or 8 bytes, little endian
    bytes, string  length as a long, then the bytes
    decimal        bytes: the unscaled number, two's complement, big endian, as short as possible
    union          position of the branch as a long, then the value; null has no bytes

A row is a sequence of pieces. `Narrow` pieces (numbers, lengths, branches) are blocks of at most a few bytes per row with a mask of those that
count; neighbours become one block, and one masked copy makes their bytes. `pa.BinaryArray` pieces hold what is long already. One Arrow kernel
then joins the pieces of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.encode.errors import EncodeError
from tidemark.encode.strings import as_bytes, offsets_of

_BITS = 7
_MORE = 0x80
# Wider members of an ENUM are joined as bytes.
_MAX_WORD = 16


@dataclass(frozen=True)
class Narrow:
    """A few bytes per row: those of `block` where `keep` is set (None: all)."""

    block: np.ndarray
    keep: np.ndarray | None
    # Kept bytes of each row, or of every row.
    lengths: np.ndarray | int


Piece = Narrow | pa.BinaryArray


def constant(data: bytes, count: int) -> Narrow:
    return Narrow(np.broadcast_to(np.frombuffer(data, np.uint8), (count, len(data))), None, len(data))


def long(numbers: np.ndarray) -> Narrow:
    """int and long. The numbers are int64 or int32."""
    bits = numbers.dtype.itemsize * 8
    unsigned = np.uint64 if bits == 64 else np.uint32
    return _groups((numbers << 1).view(unsigned) ^ (numbers >> (bits - 1)).view(unsigned))


def _groups(numbers: np.ndarray) -> Narrow:
    """7 bits per byte, lowest first."""
    width = max(1, -(-int(numbers.max(initial=0)).bit_length() // _BITS))
    if width <= 4:
        numbers = numbers.astype(np.uint32, copy=False)
    block = np.empty((len(numbers), width), np.uint8)
    keep = np.ones((len(numbers), width), bool) if width > 1 else None
    lengths = np.ones(len(numbers), np.int32) if width > 1 else 1
    for place in range(width):
        if place == width - 1:
            block[:, place] = numbers
            break
        rest = numbers >> _BITS
        more = rest != 0
        block[:, place] = numbers.astype(np.uint8) & (_MORE - 1) | more.view(np.uint8) << np.uint8(_BITS)
        keep[:, place + 1] = more
        lengths += more
        numbers = rest
    return Narrow(block, keep, lengths)


def size(numbers: np.ndarray) -> Narrow:
    """Lengths: numbers that are never negative."""
    return _groups(numbers.astype(np.uint32) << np.uint32(1) if len(numbers) else numbers.astype(np.uint32))


def fixed(numbers: np.ndarray) -> Narrow:
    """float and double, and other values of one width."""
    width = numbers.dtype.itemsize
    block = np.ascontiguousarray(numbers).view(np.uint8).reshape(len(numbers), width)
    return Narrow(block, None, width)


def decimal(array: pa.Array) -> list[Narrow]:
    """Length and unscaled number. What stands for a NULL is not to be kept."""
    words = array.type.bit_width // 64
    raw = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, words)
    raw = raw[array.offset : array.offset + len(array)]
    if array.type.precision <= 18:
        return _short_decimal(raw[:, 0])
    # Big endian from here on: the first byte that is not the sign's begins the number.
    block = np.ascontiguousarray(raw[:, ::-1]).astype(">i8").view(np.uint8)
    width = block.shape[1]
    sign = np.where(raw[:, -1] < 0, 0xFF, 0).astype(np.uint8)
    differs = block != sign[:, None]
    first = np.where(differs.any(axis=1), differs.argmax(axis=1), width - 1)
    leading = block[np.arange(len(block)), first]
    first = first - ((leading ^ sign) >= _MORE)
    keep = np.arange(width) >= first[:, None]
    lengths = width - first
    narrowest = int(first.min(initial=width - 1))
    return [size(lengths), Narrow(block[:, narrowest:], keep[:, narrowest:], lengths.astype(np.int32))]


def _short_decimal(numbers: np.ndarray) -> list[Narrow]:
    numbers = np.ascontiguousarray(numbers)
    sizes = (numbers ^ (numbers >> 63)).astype(np.uint64)
    width = int(sizes.max(initial=0)).bit_length() // 8 + 1
    lengths = np.ones(len(numbers), np.int32)
    block = np.empty((len(numbers), width), np.uint8)
    keep = np.ones((len(numbers), width), bool)
    block[:, -1] = numbers
    for place in range(1, width):
        is_there = sizes >= np.uint64(1 << 8 * place - 1)
        block[:, -1 - place] = numbers >> 8 * place
        keep[:, -1 - place] = is_there
        lengths += is_there
    return [size(lengths), Narrow(block, keep if width > 1 else None, lengths if width > 1 else 1)]


def text(array: pa.Array) -> list[Piece]:
    """string and bytes: length and value. NULLs have no bytes."""
    values = as_bytes(array)
    if array.null_count:
        values = _without_validity(values)
    lengths = np.diff(offsets_of(values))
    if len(lengths) and (lengths == lengths[0]).all():
        return [size(lengths), values] if lengths[0] else [size(lengths)]
    return [size(lengths), values]


def _without_validity(array: pa.BinaryArray) -> pa.BinaryArray:
    offsets = offsets_of(array)
    if np.diff(offsets)[array.is_null().to_numpy(zero_copy_only=False)].any():
        return array.fill_null(b"")
    return pa.Array.from_buffers(
        pa.binary(), len(array), [None, *array.buffers()[1:]], null_count=0, offset=array.offset
    )


def words(index: np.ndarray, known: Sequence[bytes]) -> Piece:
    """One of a few words per row, by its position."""
    width = max(1, *map(len, known))
    if width > _MAX_WORD:
        return pa.array(known, pa.binary()).take(pa.array(index))
    lengths = np.array([len(word) for word in known], np.int32)
    block = np.frombuffer(b"".join(word.ljust(width, b"\0") for word in known), np.uint8)
    keep = np.arange(width) < lengths[:, None]
    return Narrow(block.reshape(-1, width)[index], keep[index], lengths[index])


def in_union(pieces: list[Piece], null_branch: int, valid: np.ndarray | None, count: int) -> list[Piece]:
    """A value or null: the branch in front, and nothing behind it where there is no value (`valid` is None: all have one)."""
    value_byte, null_byte = 2 * (1 - null_branch), 2 * null_branch
    if valid is None:
        return [constant(bytes([value_byte]), count), *pieces]
    lead = np.where(valid, np.uint8(value_byte), np.uint8(null_byte))
    return [fixed(lead), *(_only(piece, valid) for piece in pieces)]


def _only(piece: Piece, valid: np.ndarray) -> Piece:
    if not isinstance(piece, Narrow):
        return piece
    mask = valid[:, None]
    keep = np.broadcast_to(mask, piece.block.shape) if piece.keep is None else piece.keep & mask
    return Narrow(piece.block, keep, piece.lengths * valid)


def small_number(number: int) -> bytes:
    """One long that is never negative, such as the length of a word."""
    number, data = number << 1, bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | _MORE)
        number >>= _BITS
    return bytes([*data, number])


def joined(pieces: Sequence[Piece], count: int) -> pa.BinaryArray:
    """The pieces of each row one after another."""
    arrays: list[pa.BinaryArray] = []
    waiting: list[Narrow] = []
    for piece in pieces:
        if isinstance(piece, Narrow):
            waiting.append(piece)
            continue
        if waiting:
            arrays.append(_merged(waiting, count))
            waiting = []
        arrays.append(piece)
    if waiting:
        arrays.append(_merged(waiting, count))
    if len(arrays) == 1:
        return arrays[0]
    try:
        return pc.binary_join_element_wise(*arrays, pa.scalar(b"", pa.binary()))
    except pa.ArrowCapacityError:
        raise EncodeError("the encoded rows of one batch exceed 2 GiB: use smaller batches") from None


def _merged(pieces: list[Narrow], count: int) -> pa.BinaryArray:
    width = sum(piece.block.shape[1] for piece in pieces)
    block = np.empty((count, width), np.uint8)
    masked = any(piece.keep is not None for piece in pieces)
    keep = np.ones((count, width), bool) if masked else None
    lengths = np.zeros(count, np.int32)
    start = 0
    for piece in pieces:
        end = start + piece.block.shape[1]
        block[:, start:end] = piece.block
        if piece.keep is not None:
            keep[:, start:end] = piece.keep
        lengths += piece.lengths
        start = end
    data = block[keep] if masked else block.reshape(-1)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise EncodeError("the encoded rows of one batch exceed 2 GiB: use smaller batches")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), count, buffers)
