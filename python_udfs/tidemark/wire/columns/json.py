"""JSON: TiDB's binary JSON in variable-width cells, its text in Arrow. A document is a tree: this family loops over cells."""

from __future__ import annotations

from itertools import repeat

import numpy as np
import pyarrow as pa

from tidemark.wire.columns.cells import Cells, validity
from tidemark.wire.json_binary import json_bytes, json_text
from tidemark.wire.table_info import Column


def decode(cells: Cells, column: Column) -> pa.Array:
    data = cells.data.tobytes()
    bounds = cells.offsets.tolist()
    present = repeat(True, cells.rows) if cells.valid is None else cells.valid.tolist()
    # The two images of an update mostly hold the same document.
    known: dict[bytes, str] = {}
    texts: list[str | None] = []
    for start, end, there in zip(bounds, bounds[1:], present, strict=False):
        text = None
        if there:
            document = data[start:end]
            text = known.get(document)
            if text is None:
                text = known[document] = json_text(document)
        texts.append(text)
    return pa.array(texts, type=pa.string())


def encode(array: pa.Array, column: Column) -> Cells:
    forms = [b"" if text is None else json_bytes(text) for text in array.to_pylist()]
    offsets = np.zeros(len(forms) + 1, dtype=np.int64)
    np.cumsum([len(form) for form in forms], out=offsets[1:])
    return Cells(len(array), validity(array), offsets, np.frombuffer(b"".join(forms), dtype=np.uint8))
