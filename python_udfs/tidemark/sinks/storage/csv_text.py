"""CSV data files taken apart into columns of text, before anything is known about types.

    line := field {delimiter field} terminator
    field := quote text quote           (quotes inside doubled)
           | bare                       (numbers, the null text; without a quote everything, escaped with backslashes)

Delimiters of one byte with a quote and the usual line ends are read by Arrow. Everything else (long delimiters, other terminators, no quote) is split here with
numpy: a separator counts where the number of quotes before it is even, or, without a quote, where no backslash escapes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv

from tidemark.sinks.storage.errors import InvalidTree

if TYPE_CHECKING:
    from tidemark.config import Settings

_BACKSLASH, _CR, _LF = 92, 13, 10


# Arrow counts the fields of the first line, and gives them these names. TiDB allows 4,096 columns; a line has up to five fields of its own.
_FIELD_TYPES = {f"f{number}": pa.binary() for number in range(4096 + 5)}


@dataclass(frozen=True)
class CsvDialect:
    delimiter: str = ","
    quote: str = '"'
    null: str = "\\N"
    terminator: str = "\r\n"
    binary_encoding_method: str = "base64"

    @classmethod
    def of(cls, settings: Settings) -> CsvDialect:
        form = settings.sink.csv
        return cls(
            form.delimiter, form.quote, form.null, settings.sink.terminator, form.binary_encoding_method
        )

    @property
    def is_common(self) -> bool:
        """Whether Arrow can read it."""
        return len(self.delimiter.encode()) == 1 and bool(self.quote) and self.terminator in ("\r\n", "\n")


def read_columns(data: bytes, dialect: CsvDialect) -> list[pa.BinaryArray]:
    """The fields of all lines, column by column; NULL where the null text stands."""
    if not data:
        return []
    if not data.endswith(dialect.terminator.encode()):
        raise InvalidTree("the last line has no end: the file is torn, or has another terminator")
    return _read_with_arrow(data, dialect) if dialect.is_common else _split(data, dialect)


def _read_with_arrow(data: bytes, dialect: CsvDialect) -> list[pa.BinaryArray]:
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(data),
            read_options=pa.csv.ReadOptions(autogenerate_column_names=True, block_size=len(data) + 1),
            parse_options=pa.csv.ParseOptions(
                delimiter=dialect.delimiter, quote_char=dialect.quote, newlines_in_values=True
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=_FIELD_TYPES,
                null_values=[dialect.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                check_utf8=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise InvalidTree(f"the lines do not fit together: {error}") from None
    return [_whole(column) for column in table.columns]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _split(data: bytes, dialect: CsvDialect) -> list[pa.BinaryArray]:
    text = np.frombuffer(data, np.uint8)
    if dialect.quote:
        quotes = text == ord(dialect.quote)
        inside = np.cumsum(quotes, dtype=np.int64) & 1 == 1
        counts = ~inside & ~quotes
        escaped = None
    else:
        escaped = _escaped(text)
        counts = ~escaped
    delimiters = _matches(text, dialect.delimiter.encode(), counts)
    ends_of_lines = _matches(text, dialect.terminator.encode(), counts)
    ends = np.concatenate([delimiters, ends_of_lines])
    widths = np.repeat(
        [len(dialect.delimiter.encode()), len(dialect.terminator.encode())],
        [len(delimiters), len(ends_of_lines)],
    )
    order = np.argsort(ends, kind="stable")
    ends, widths = ends[order], widths[order]
    starts = np.concatenate([[0], (ends + widths)[:-1]])
    last_fields = np.searchsorted(ends, ends_of_lines)
    per_line = np.diff(last_fields, prepend=-1)
    if len(per_line) == 0 or (per_line != per_line[0]).any():
        line = int(np.argmax(per_line != per_line[0])) if len(per_line) else 0
        raise InvalidTree(
            f"line {line + 1} has another number of fields than the first; is this the right CSV form?"
        )
    is_null = _equal(text, starts, ends, dialect.null.encode())
    if dialect.quote:
        closing = np.zeros(len(text), bool)
        # An opening quote, the second one of a doubled quote, and the closing quote are not part of the text.
        closing[ends[(ends > starts) & quotes[starts]] - 1] = True
        keep = ~(quotes & (inside | closing))
    else:
        keep = ~((text == _BACKSLASH) & ~escaped)
        text = np.where(escaped & (text == ord("r")), _CR, np.where(escaped & (text == ord("n")), _LF, text))
        text = text.astype(np.uint8)
    return _columns(text, keep, starts, ends, is_null, int(per_line[0]))


def _columns(
    text: np.ndarray, keep: np.ndarray, starts: np.ndarray, ends: np.ndarray, is_null: np.ndarray, width: int
) -> list[pa.BinaryArray]:
    position = np.zeros(len(text) + 1, np.int64)
    np.cumsum(keep, out=position[1:])
    # Fields and the separators behind them, in turn, are one array over all bytes.
    edges = np.empty(2 * len(starts) + 1, np.int32)
    edges[0:-1:2], edges[1::2], edges[-1] = position[starts], position[ends], position[-1]
    pieces = pa.Array.from_buffers(
        pa.binary(), 2 * len(starts), [None, pa.py_buffer(edges), pa.py_buffer(text[keep])]
    )
    lines = len(starts) // width
    found = []
    for column in range(width):
        fields = np.arange(column, lines * width, width)
        found.append(pieces.take(pa.array(fields * 2, mask=is_null[fields])))
    return found


def _escaped(text: np.ndarray) -> np.ndarray:
    """Which bytes have an odd number of backslashes right before them."""
    places = np.arange(len(text))
    others = np.maximum.accumulate(np.where(text != _BACKSLASH, places, -1))
    before = np.concatenate([[-1], others[:-1]])
    return (places - 1 - before) % 2 == 1


def _matches(text: np.ndarray, word: bytes, counts: np.ndarray) -> np.ndarray:
    """Where `word` begins, from left to right and without overlap."""
    last = len(text) - len(word) + 1
    match = counts[:last].copy()
    for place, byte in enumerate(word):
        match &= text[place : last + place] == byte
    found = np.flatnonzero(match)
    if len(word) > 1 and len(found) > 1 and (np.diff(found) < len(word)).any():
        kept, end = [], -1
        for place in found.tolist():
            if place >= end:
                kept.append(place)
                end = place + len(word)
        found = np.array(kept)
    return found


def _equal(text: np.ndarray, starts: np.ndarray, ends: np.ndarray, word: bytes) -> np.ndarray:
    """Which fields are exactly `word`."""
    same = ends - starts == len(word)
    for place, byte in enumerate(word):
        where = np.flatnonzero(same)
        same[where] = text[starts[where] + place] == byte
    return same
