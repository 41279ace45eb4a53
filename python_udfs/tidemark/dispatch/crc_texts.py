"""CRC-32 of texts: what varies between the texts of a column costs lookups, what does not vary costs none. See `crc` for the algebra.

Texts of one length are the rows of a matrix of bytes. C(text) = C(first) ^ C(text ^ first), so a bit that is the same in all texts drops out. The bits
that vary are packed into 16-bit indexes, each of which takes one lookup:

    index = window ^ window << 4 ^ ...            a window is two neighbouring bytes of every text

C is linear, so constant bits that overlap in an index do no harm: they change all its lookups by the same number. Varying bits must not overlap. In digits
only the low half of a byte varies, so four digits make one index: a datetime of 26 characters takes four or five lookups instead of 13.

Texts of several lengths are made rows of one length first: the last eight bytes of each, the eight before them and so on, with zero bytes, which contribute
nothing, before the start of the text. Where these are a few short texts again and again, `crc_known` takes over.
"""

from __future__ import annotations

import zlib
from copy import copy
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidemark.dispatch.crc import both, byte_contributions, in_chunks
from tidemark.dispatch.crc_known import look_up_known

WORD = 8
# From this length on, one zlib call per value costs less than the rounds it would add for the whole column.
_LONG = 128
# In fewer rows than this, what varies is chance: the tables made for it would serve no other batch.
_MANY = 4096
# Up to this length two lookups do, which is less than finding out what varies.
_BRIEF = 4


def crc32_texts(prefix: bytes, texts: pa.Array) -> np.ndarray:
    """crc32(prefix + text) of every value of a string or binary array, as uint32; NULLs count as empty."""
    # An array without rows may have no offsets.
    return crc32_bytes(prefix, *_data_and_offsets(texts)) if len(texts) else np.empty(0, np.uint32)


def crc32_bytes(
    prefix: bytes, data: np.ndarray, offsets: np.ndarray, without_zeros: bool = False
) -> np.ndarray:
    """crc32(prefix + text) of texts that follow each other in `data`; `offsets` say where each begins, and where the last one ends.

    `without_zeros`: it is known that no byte is zero.
    """
    return in_chunks(
        len(offsets) - 1, lambda rows: _crc32_bytes(prefix, *_part(data, offsets, rows), without_zeros)
    )


def _part(data: np.ndarray, offsets: np.ndarray, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    offsets = offsets[rows.start : rows.stop + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    return data[first:last], offsets - first if first else offsets


def _crc32_bytes(prefix: bytes, data: np.ndarray, offsets: np.ndarray, without_zeros: bool) -> np.ndarray:
    bits = np.left_shift(offsets, 3, dtype=np.int64)
    sizes = bits[1:] - bits[:-1]
    out, longest = np.empty(len(sizes), np.uint32), int(sizes.max()) >> 3
    if longest >= _LONG:
        lengths = sizes >> 3
        is_long = lengths >= _LONG
        # Here the long ones count as empty.
        _any_length(prefix, Words(data, bits), np.where(is_long, 0, lengths), out)
        start_crc, view = zlib.crc32(prefix), memoryview(data)
        for row in np.flatnonzero(is_long).tolist():
            out[row] = zlib.crc32(view[offsets[row] : offsets[row + 1]], start_crc)
    elif longest * len(sizes) == len(data):
        _same_length(prefix, data, longest, out)
    elif len(data) % longest == 0 and np.count_nonzero(sizes) * longest == len(data):
        # NULLs and empty texts occupy no bytes: the others still follow each other.
        filled = np.flatnonzero(sizes)
        crcs = np.empty(len(filled), np.uint32)
        _same_length(prefix, data, longest, crcs)
        out[:] = zlib.crc32(prefix)
        out[filled] = crcs
    elif longest <= WORD and len(out) >= _MANY and (without_zeros or data.min() > 0):
        _short(prefix, Words(data, bits), sizes, out)
    else:
        _any_length(prefix, Words(data, bits), sizes >> 3, out)
    return out


def _same_length(prefix: bytes, data: np.ndarray, length: int, out: np.ndarray) -> None:
    out[:] = _by_length(prefix)[length]
    if not length:
        return
    varying = _varying(data, length) if length > _BRIEF and len(out) >= _MANY else b"\xff" * length
    _xor_contributions(out, data, varying, 0)


def _short(prefix: bytes, texts: Words, sizes: np.ndarray, out: np.ndarray) -> None:
    """Texts of up to eight bytes, none of them zero; `sizes` in bits."""
    words = texts.before(texts.ends)
    # Out of the word with what precedes the text.
    words >>= (8 * WORD - sizes).view(np.uint64)
    rows = look_up_known(prefix, words, out)
    if rows is None:
        _any_length(prefix, texts, sizes >> 3, out)
    elif len(rows):
        crcs = np.empty(len(rows), np.uint32)
        _any_length(prefix, texts.some(rows), sizes[rows] >> 3, crcs)
        out[rows] = crcs


def _any_length(prefix: bytes, texts: Words, lengths: np.ndarray, out: np.ndarray) -> None:
    _by_length(prefix).take(lengths, out=out, mode="clip")
    shortest, longest = int(lengths.min()), int(lengths.max())
    for after in range(0, longest, WORD):
        rows = slice(None) if shortest > after else np.flatnonzero(lengths > after)
        words = texts.before(texts.ends[rows] - 8 * after)
        if shortest < after + WORD:
            words &= _KEEP_LAST.take(lengths[rows] - after, mode="clip")
        crcs = out[rows]
        filled = min(longest - after, WORD)
        _xor_contributions(crcs, words.view(np.uint8), bytes(WORD - filled) + b"\xff" * filled, after)
        out[rows] = crcs


_KEEP_LAST = np.array([(1 << 64) - (1 << 8 * (WORD - n)) for n in range(WORD + 1)], "<u8")


def _xor_contributions(crcs: np.ndarray, rows: np.ndarray, varying: bytes, after: int) -> None:
    """XOR into every CRC what its row of bytes contributes when `after` bytes follow it. Bits that are not in `varying` are the same in all rows."""
    length = len(varying)
    first = rows[:length].tobytes()
    constant = zlib.crc32(first + bytes(after)) ^ zlib.crc32(bytes(length + after))
    for windows, table in _lookups(varying, after):
        index = None
        for window in windows:
            # Two bytes, or the last byte alone.
            dtype = "<u2" if window.start + 2 <= length else np.uint8
            values = np.ndarray(len(crcs), dtype, rows, window.start, length)
            if window.shift:
                values = np.left_shift(values, window.shift, dtype=np.uint16)
            index = values if index is None else np.bitwise_xor(index, values, dtype=np.uint16)
        part = table.take(index, mode="clip")
        constant ^= int(part[0])
        crcs ^= part
    crcs ^= np.uint32(constant)


def _varying(rows: np.ndarray, length: int) -> bytes:
    """Which halves of which bytes are not the same in all rows, as a row with their bits set."""
    # Many rows side by side make long vectors for numpy to combine. The last ones may be combined twice.
    wide = 64 * length
    blocks = rows[: len(rows) - len(rows) % wide].reshape(-1, wide)
    last = rows[-wide:]
    some, every = (combine.reduce(blocks, axis=0) for combine in (np.bitwise_or, np.bitwise_and))
    if len(last) == wide:
        some, every = some | last, every & last
    else:
        some = every = last
    some = np.bitwise_or.reduce(some.reshape(-1, length), axis=0)
    every = np.bitwise_and.reduce(every.reshape(-1, length), axis=0)
    # Halves instead of bits, so that the batches of a column mostly share their tables.
    return (some ^ every).tobytes().translate(_WHOLE_HALVES)


_WHOLE_HALVES = bytes((0x0F if byte & 0x0F else 0) | (0xF0 if byte & 0xF0 else 0) for byte in range(256))


class _Window(NamedTuple):
    start: int
    bits: int  # that vary
    shift: int  # to the left, in the index


@lru_cache(maxsize=256)
def _lookups(varying: bytes, after: int) -> list[tuple[tuple[_Window, ...], np.ndarray]]:
    """The indexes that hold all varying bits, with the table of each."""
    indexes: list[list[_Window]] = []
    start = 0
    while start < len(varying):
        bits = int.from_bytes(varying[start : start + 2], "little")
        if not bits & 0xFF:
            start += 1
            continue
        _place(indexes, start, bits)
        start += 2
    following = len(varying) + after - 1
    return [
        (tuple(windows), _table(tuple((following - w.start, w.bits, w.shift) for w in windows)))
        for windows in indexes
    ]


def _place(indexes: list[list[_Window]], start: int, bits: int) -> None:
    """Put a window into the first index that has room for its bits."""
    for windows in indexes:
        taken = sum(window.bits << window.shift for window in windows)
        for shift in (0, 4, 8, 12):
            if bits << shift < 1 << 16 and not taken & bits << shift:
                windows.append(_Window(start, bits, shift))
                return
    indexes.append([_Window(start, bits, 0)])


@lru_cache(maxsize=256)
def _table(windows: tuple[tuple[int, int, int], ...]) -> np.ndarray:
    """What the varying bits of an index contribute; a window is (bytes that follow its first byte, bits, shift)."""
    contributions = [0] * 16
    for following, bits, shift in windows:
        for bit in range(16):
            if bits >> bit & 1:
                single = byte_contributions(_LONG + WORD)[following - bit // 8]
                contributions[bit + shift] = int(single[1 << bit % 8])
    return both(_sums(contributions[8:]), _sums(contributions[:8]))


def _sums(contributions: list[int]) -> np.ndarray:
    """[n]: XOR of the contributions of the bits of n."""
    sums = np.zeros(1, np.uint32)
    for contribution in contributions:
        sums = np.concatenate([sums, sums ^ np.uint32(contribution)])
    return sums


@lru_cache(maxsize=1024)
def _by_length(prefix: bytes) -> np.ndarray:
    """[n]: crc32 of the prefix and n zero bytes, for every length that is not long."""
    crcs = [zlib.crc32(prefix)]
    for _ in range(_LONG):
        crcs.append(zlib.crc32(b"\0", crcs[-1]))
    return np.array(crcs, np.uint32)


class Words:
    """The bytes of texts, to be read eight at a time from any place. Places are counted in bits."""

    def __init__(self, data: np.ndarray, bits: np.ndarray):
        """`bits`: where each text begins, and where the last one ends."""
        # A word of zeros in front, so that the first text can be read back over its start; one behind, so that every word has a next one.
        self._aligned = np.empty(len(data) // WORD + 3, np.uint64)
        self._aligned[0] = self._aligned[-2] = self._aligned[-1] = 0
        # Not a plain copy: on some processors memcpy is ten times slower where source and destination stand alike within their pages.
        np.positive(data, out=self._aligned.view(np.uint8)[WORD : WORD + len(data)])
        self.ends = bits[1:]

    def some(self, rows: np.ndarray) -> Words:
        """Only the texts of these rows."""
        picked = copy(self)
        picked.ends = self.ends[rows]
        return picked

    def before(self, ends: np.ndarray) -> np.ndarray:
        """The eight bytes before each place, as little-endian numbers."""
        # numpy gathers aligned words faster than words at any byte, even though it takes two of them, shifted and joined.
        surplus = (ends & 63).view(np.uint64)
        places = ends >> 6
        words = self._aligned.take(places, mode="clip")
        words >>= surplus
        # A shift by 64 leaves nothing: an aligned word takes nothing from the next one.
        np.subtract(_WORD_BITS, surplus, out=surplus)
        following = self._aligned[1:].take(places, mode="clip")
        following <<= surplus
        words |= following
        return words


_WORD_BITS = np.uint64(8 * WORD)


def words_of(texts: pa.Array) -> tuple[Words, np.ndarray]:
    """The words of a string or binary array, and the lengths of its texts."""
    data, offsets = _data_and_offsets(texts)
    data, offsets = _part(data, offsets, slice(0, len(texts)))
    bits = np.left_shift(offsets, 3, dtype=np.int64)
    return Words(data, bits), offsets[1:] - offsets[:-1]


_OFFSET_TYPES = {
    pa.string().id: np.int32,
    pa.binary().id: np.int32,
    pa.large_string().id: np.int64,
    pa.large_binary().id: np.int64,
}


def _data_and_offsets(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The bytes that texts are in, and where each text starts in them, and where the last one ends."""
    offset_type = _OFFSET_TYPES.get(texts.type.id)
    if offset_type is None:
        raise TypeError(f"texts to hash must be strings or bytes, not {texts.type}")
    _, offsets_buffer, data_buffer = texts.buffers()
    offsets = np.frombuffer(offsets_buffer, offset_type)[texts.offset : texts.offset + len(texts) + 1]
    # Where all texts are empty there may be no buffer at all.
    return np.frombuffer(data_buffer or b"", np.uint8), offsets
