"""VECTOR: `dimension:u32 value:f32*dimension` (little-endian) in a variable-width cell; `[1,2.5]` in Arrow."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.wire.columns.cells import Cells, first_bad, validity
from tidemark.wire.errors import InvalidField
from tidemark.wire.floats import go_f
from tidemark.wire.table_info import Column

COUNT_SIZE = 4


def decode(cells: Cells, column: Column) -> pa.Array:
    lengths = cells.lengths()
    bad = first_bad(cells.valid, (lengths < COUNT_SIZE) | (lengths % COUNT_SIZE != 0))
    if bad is not None:
        raise InvalidField(f"row {bad}: a vector of {lengths[bad]} bytes", expected="4 + 4 * dimension")
    # Cells are whole words and follow each other without gaps, unless a NULL hides some bytes.
    words = cells.data
    if cells.valid is not None:
        lengths = np.where(cells.valid, lengths, 0)
        words = words[np.repeat(cells.valid, np.diff(cells.offsets))]
    words = words.view("<u4")
    ends = np.cumsum(lengths // COUNT_SIZE)
    starts = (ends - lengths // COUNT_SIZE)[lengths > 0]
    dimensions = words[starts]
    sizes = np.maximum(lengths // COUNT_SIZE - 1, 0)
    if (dimensions != sizes[lengths > 0]).any():
        raise InvalidField("a vector's dimension and its bytes disagree", expected="4 + 4 * dimension")
    if column.flen > 0 and (dimensions != column.flen).any():
        raise InvalidField(f"a vector that has not {column.flen} dimensions", expected=column.flen)
    kept = np.ones(len(words), dtype=bool)
    kept[starts] = False
    numbers = go_f(pa.array(words[kept].view("<f4")))
    bounds = np.zeros(cells.rows + 1, dtype=np.int32)
    np.cumsum(sizes, out=bounds[1:])
    lists = pa.ListArray.from_arrays(pa.array(bounds), numbers)
    text = pc.binary_join_element_wise("[", pc.binary_join(lists, ","), "]", "")
    return text if cells.valid is None else pc.if_else(pa.array(cells.valid), text, None)


def encode(array: pa.Array, column: Column) -> Cells:
    """Text is parsed value by value: nothing writes large numbers of vectors."""
    forms = []
    for text in array.to_pylist():
        if text is None:
            forms.append(b"")
            continue
        try:
            values = np.array([float(word) for word in text.strip("[]").split(",") if word], dtype="<f4")
        except ValueError:
            raise InvalidField(
                f"column {column.name!r}: not a vector: {text!r:.60}", expected="[1,2.5]"
            ) from None
        forms.append(len(values).to_bytes(COUNT_SIZE, "little") + values.tobytes())
    offsets = np.zeros(len(forms) + 1, dtype=np.int64)
    np.cumsum([len(form) for form in forms], out=offsets[1:])
    return Cells(len(array), validity(array), offsets, np.frombuffer(b"".join(forms), dtype=np.uint8))
