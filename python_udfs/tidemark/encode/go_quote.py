"""Bytes as the text between the quotes of a Go string literal, escaped once more for JSON: how the open protocol holds BINARY and VARBINARY.

    printable character in UTF-8      itself
    quote, backslash                  \\" \\\\
    bell to carriage return           \\a \\b \\t \\n \\v \\f \\r
    other control character, or a byte that is no part of a character       \\x00
    any other character               \\u00ad or \\U000e0001

Whole columns at once: each byte of a column is replaced by a piece of text, and the pieces are few.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

from tidemark.encode.strings import data_of, from_pieces, json_plain_string, offsets_of, piece_table

_NAMED = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
_ASCII = 0x80
# Pieces: a byte on its own, a byte of a printable character, the rest of a character that is escaped, and then the escapes.
_AS_IT_IS, _NOTHING, _ESCAPES = 256, 512, 513


def go_quoted(array: pa.Array) -> pa.StringArray:
    data = np.frombuffer(data_of(array), np.uint8)
    which, escapes = data.astype(np.int32), []
    if len(data) and data.max() >= _ASCII:
        offsets = offsets_of(array).astype(np.int64)
        escapes = _mark_characters(data, offsets - offsets[0], which)
    widths, pieces = piece_table([*_fixed_pieces(), *escapes])
    return from_pieces(array, which, widths, pieces)


def _mark_characters(data: np.ndarray, offsets: np.ndarray, which: np.ndarray) -> list[bytes]:
    """Say in `which` which bytes make up characters; gives the escapes of those that are not printable."""
    starts, widths, codes = _characters(data, offsets)
    distinct, code = np.unique(codes, return_inverse=True)
    printable = np.array([chr(number).isprintable() for number in distinct.tolist()], bool)
    escape = np.cumsum(~printable) - 1
    for place in range(4):
        here = widths > place
        at, is_printable = starts[here] + place, printable[code[here]]
        shown = _ESCAPES + escape[code[here]] if place == 0 else _NOTHING
        which[at] = np.where(is_printable, _AS_IT_IS + which[at], shown)
    return [_escaped(_code_point(number)) for number in distinct[~printable].tolist()]


def _characters(data: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(start, width, code point) of the characters of more than one byte. A first byte is never one of the others, so they cannot overlap."""
    width_of, lowest, highest = _first_bytes()
    starts = np.flatnonzero(width_of[data])
    padded = np.concatenate([data, np.zeros(3, np.uint8)])
    first, second, third, fourth = (padded[starts + place].astype(np.uint32) for place in range(4))
    widths = width_of[first]
    ends = offsets[np.searchsorted(offsets, starts, side="right")]
    good = (starts + widths <= ends) & (second >= lowest[first]) & (second <= highest[first])
    good &= (widths < 3) | (third & 0xC0 == 0x80)
    good &= (widths < 4) | (fourth & 0xC0 == 0x80)
    codes = np.select(
        [widths == 2, widths == 3],
        [
            (first & 0x1F) << 6 | second & 0x3F,
            (first & 0xF) << 12 | (second & 0x3F) << 6 | third & 0x3F,
        ],
        (first & 7) << 18 | (second & 0x3F) << 12 | (third & 0x3F) << 6 | fourth & 0x3F,
    )
    return starts[good], widths[good], codes[good]


@cache
def _first_bytes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each first byte of a character: its width (0: none of more than one byte), and what the second byte may be."""
    width, lowest, highest = (
        np.zeros(256, np.int64),
        np.full(256, 0x80, np.uint32),
        np.full(256, 0xBF, np.uint32),
    )
    width[0xC2:0xE0], width[0xE0:0xF0], width[0xF0:0xF5] = 2, 3, 4
    # Longer forms than needed, halves of surrogate pairs, and what is beyond U+10FFFF are no characters.
    lowest[0xE0], lowest[0xF0], highest[0xED], highest[0xF4] = 0xA0, 0x90, 0x9F, 0x8F
    return width, lowest, highest


@cache
def _fixed_pieces() -> tuple[bytes, ...]:
    alone = [_escaped(_byte(number)) for number in range(256)]
    return (*alone, *(bytes([number]) for number in range(256)), b"")


def _byte(number: int) -> str:
    if number in _NAMED:
        return _NAMED[number]
    return chr(number) if number < _ASCII and chr(number).isprintable() else f"\\x{number:02x}"


def _code_point(number: int) -> str:
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _escaped(text: str) -> bytes:
    return json_plain_string(text)[1:-1].encode()
