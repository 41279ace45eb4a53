"""Columns of bytes and text: escaping and binary-to-text, without looking at single rows.

Arrays of this package's text steps have the Arrow type `string` whatever their bytes are: a text column may hold bytes that are no
UTF-8, and the Arrow functions used here do not mind. A column is searched for the characters that matter (memchr over its whole
buffer) and rewritten only if one is there.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_OFFSET = np.dtype(np.int32)
_HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), np.uint16)

# What Go's encoders write for a character of a JSON string. Backslash first: the other escapes contain it.
_JSON_PRINTABLE = [("\\", "\\\\"), ('"', '\\"'), ("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")]
_JSON_CONTROL = [
    (chr(code), {9: "\\t", 10: "\\n", 13: "\\r"}.get(code, f"\\u{code:04x}")) for code in range(32)
]
_JSON_SEPARATORS = [("\u2028", "\\u2028"), ("\u2029", "\\u2029")]
_JSON_ESCAPES = str.maketrans(dict(_JSON_PRINTABLE + _JSON_CONTROL + _JSON_SEPARATORS))
# What JSON itself asks for, and no more.
_JSON_QUOTES = _JSON_PRINTABLE[:2]
_JSON_PLAIN_ESCAPES = str.maketrans(dict(_JSON_QUOTES + _JSON_CONTROL))
_JSON_BROKEN = "\\ufffd"
# Python's stand-ins for bytes that are no UTF-8, and the byte that marks them between two steps (it never occurs in UTF-8).
_BROKEN = re.compile("[\ud800-\udfff]")
_BROKEN_MARK = b"\xff"


def as_text(array: pa.Array) -> pa.StringArray:
    """Text and bytes as they are, numbers printed."""
    return _retyped(array, pa.string()) if array.type == pa.binary() else array.cast(pa.string())


def as_bytes(array: pa.Array) -> pa.BinaryArray:
    return _retyped(array, pa.binary())


def _retyped(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same buffers under another type; nothing is copied or validated."""
    return pa.Array.from_buffers(kind, len(array), array.buffers(), array.null_count, array.offset)


def offsets_of(array: pa.Array) -> np.ndarray:
    if len(array) == 0:
        return np.zeros(1, _OFFSET)
    return np.frombuffer(array.buffers()[1], _OFFSET, len(array) + 1, array.offset * _OFFSET.itemsize)


def data_of(array: pa.Array) -> memoryview:
    """The bytes of all values, one after another."""
    offsets, buffer = offsets_of(array), array.buffers()[2]
    return memoryview(b"") if buffer is None else memoryview(buffer)[offsets[0] : offsets[-1]]


def contiguous(value: pa.BinaryArray) -> pa.Buffer:
    """The bytes of all values."""
    if len(value) == 0:
        return pa.py_buffer(b"")
    offsets = offsets_of(value)
    return value.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _with_data(array: pa.Array, lengths: np.ndarray, data: np.ndarray) -> pa.StringArray:
    """`array` with other bytes as its values; NULLs stay."""
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] > np.iinfo(_OFFSET).max:
        raise pa.ArrowCapacityError("a text column of more than 2 GiB: use smaller batches")
    validity = array.is_valid().buffers()[1] if array.null_count else None
    buffers = [validity, pa.py_buffer(offsets.astype(_OFFSET)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(array), buffers, array.null_count)


def replaced(array: pa.Array, pairs: list[tuple[str, str]], data: bytes | None = None) -> pa.Array:
    """The first text of each pair becomes the second, one pair after the other."""
    data = bytes(data_of(array)) if data is None else data
    for old, new in pairs:
        if old.encode() in data:
            array = pc.replace_substring(array, pattern=old, replacement=new)
    return array


def replaced_at_once(array: pa.Array, pairs: list[tuple[str, str]]) -> pa.Array:
    """As `replaced`, but in one pass from left to right: what was put in is not replaced again, and the first pair that fits counts.
    Few texts need it: value by value.
    """
    words = {old.encode(): new.encode() for old, new in pairs}
    pattern = re.compile(b"|".join(map(re.escape, words)))
    values = as_bytes(array).to_pylist()
    return as_text(
        pa.array(
            [value and pattern.sub(lambda found: words[found[0]], value) for value in values], pa.binary()
        )
    )


def json_text(array: pa.StringArray) -> pa.StringArray:
    """The inside of JSON strings, escaped as Go does; a byte that is no UTF-8 becomes \\ufffd."""
    data = bytes(data_of(array))
    is_ascii = data.isascii()
    marked = not is_ascii and not _is_utf8(array)
    if marked:
        array = _mark_broken(array)
    array = replaced(array, _JSON_PRINTABLE, data)
    if data and np.frombuffer(data, np.uint8).min() < 32:
        array = replaced(array, _JSON_CONTROL, data)
    if not is_ascii:
        array = replaced(array, _JSON_SEPARATORS, data)
    if marked:
        array = as_text(pc.replace_substring(as_bytes(array), pattern=_BROKEN_MARK, replacement=_JSON_BROKEN))
    return array


def json_string(text: str) -> str:
    """One JSON string with its quotes, as Go writes it."""
    return f'"{_BROKEN.sub(lambda _: _JSON_BROKEN, text.translate(_JSON_ESCAPES))}"'


def json_plain_text(array: pa.StringArray) -> pa.StringArray:
    """The inside of JSON strings with no more escapes than JSON needs; bytes that are no UTF-8 stay."""
    data = bytes(data_of(array))
    array = replaced(array, _JSON_QUOTES, data)
    if data and np.frombuffer(data, np.uint8).min() < 32:
        array = replaced(array, _JSON_CONTROL, data)
    return array


def json_plain_string(text: str) -> str:
    """One JSON string with its quotes, with no more escapes than JSON needs; a byte that is no UTF-8 becomes U+FFFD."""
    return f'"{_BROKEN.sub(chr(0xFFFD), text.translate(_JSON_PLAIN_ESCAPES))}"'


def _is_utf8(array: pa.StringArray) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _mark_broken(array: pa.StringArray) -> pa.StringArray:
    """Go takes each byte that is no part of a character for one broken character. Such columns are rare: value by value."""
    values = as_bytes(array).to_pylist()
    return as_text(pa.array([value and _marked(value) for value in values], pa.binary()))


def _marked(value: bytes) -> bytes:
    text = value.decode("utf-8", "surrogateescape")
    return _BROKEN.sub("\udcff", text).encode("utf-8", "surrogateescape")


def json_latin1_text(array: pa.Array) -> pa.StringArray:
    """Bytes as the characters U+0000 to U+00FF, escaped for JSON."""
    return from_pieces(array, np.frombuffer(data_of(array), np.uint8), *_latin1_table())


def from_pieces(array: pa.Array, which: np.ndarray, widths: np.ndarray, pieces: np.ndarray) -> pa.StringArray:
    """`array` with a piece of text in place of each of its bytes. `which`: the piece of each byte."""
    sizes = widths[which]
    ends = np.cumsum(sizes, dtype=np.int64)
    starts = ends - sizes
    text = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    for place in range(pieces.shape[1]):
        wide = sizes > place
        if place and not wide.any():
            break
        text[starts[wide] + place] = pieces[which[wide], place]
    edges = np.concatenate(([0], ends))[offsets_of(array).astype(np.int64) - offsets_of(array)[0]]
    return _with_data(array, np.diff(edges), text)


@cache
def _latin1_table() -> tuple[np.ndarray, np.ndarray]:
    """For each byte: how many bytes its JSON text takes, and those bytes."""
    return piece_table([json_string(chr(byte))[1:-1].encode() for byte in range(256)])


def piece_table(texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Widths and bytes of the pieces, for `from_pieces`."""
    widths = np.array([len(text) for text in texts], np.int64)
    widest = int(widths.max())
    block = np.frombuffer(b"".join(text.ljust(widest, b"\0") for text in texts), np.uint8)
    return widths, block.reshape(len(texts), widest)


def hex_text(array: pa.Array) -> pa.StringArray:
    data = np.frombuffer(data_of(array), np.uint8)
    return _with_data(array, np.diff(offsets_of(array)).astype(np.int64) * 2, _HEX[data].view(np.uint8))
