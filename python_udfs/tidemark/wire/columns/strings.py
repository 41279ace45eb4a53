"""CHAR, VARCHAR, TEXT (text is UTF-8 whatever the column's charset) and BINARY, VARBINARY, BLOB: the bytes themselves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemark.wire.columns.cells import Cells, plain_bytes, string_array, validity
from tidemark.wire.errors import InvalidField
from tidemark.wire.table_info import Column
from tidemark.wire.types import arrow_type


def decode(cells: Cells, column: Column) -> pa.Array:
    kind = arrow_type(column)
    array = string_array(kind, cells, cells.offsets, cells.data)
    if pa.types.is_string(kind) and len(cells.data):
        # ASCII, which most text is, is seen at a glance.
        smallest = cells.data.view(np.int8).min()
        cells.is_plain = bool(smallest > 0)
        if smallest < 0:
            check_utf8(array)
    return array


def check_utf8(array: pa.StringArray) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InvalidField(f"the text is not UTF-8 ({error})", expected="UTF-8") from None


def encode(array: pa.Array, column: Column) -> Cells:
    offsets, data = plain_bytes(array)
    return Cells(len(array), validity(array), offsets, data)
