"""Values of a column as text.

`canonical_text` is the form that keys, hashes and the warehouse use. `canonical_values` is the JSON form of the command line, which also tells
what kind of value it was: `{"b64": …}` for bytes, number and name for ENUM and SET, number and bytes for BIT.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.wire.columns import elements
from tidemark.wire.columns.cells import plain_bytes
from tidemark.wire.floats import go_g
from tidemark.wire.table_info import Column
from tidemark.wire.types import Kind, bit_width

# Up to this scale Arrow never prints a decimal with an exponent.
_ARROW_PLAIN_SCALE = 6
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", dtype=np.uint8)


def canonical_text(array: pa.Array, column: Column) -> pa.StringArray:
    """Numbers in decimal (ENUM, SET and BIT too), floats as Go's %g, dates and strings as they are, bytes in base64."""
    kind = column.kind
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        return go_g(array)
    if kind is Kind.DECIMAL:
        return decimal_text(array)
    if pa.types.is_binary(array.type):
        return base64_text(array)
    return array if pa.types.is_string(array.type) else pc.cast(array, pa.string())


def canonical_values(array: pa.Array, column: Column) -> list[Any]:
    """The JSON value of every row; None for NULL."""
    kind = column.kind
    if kind in (Kind.ENUM, Kind.SET, Kind.BIT):
        numbers = array.to_pylist()
        forms = {number: _element_form(number, column) for number in set(numbers) if number is not None}
        return [None if number is None else forms[number] for number in numbers]
    texts = canonical_text(array, column).to_pylist()
    if pa.types.is_binary(array.type):
        return [None if text is None else {"b64": text} for text in texts]
    return texts


def _element_form(number: int, column: Column) -> dict[str, str]:
    if column.kind is Kind.BIT:
        return {"bit": str(number), "hex": number.to_bytes((bit_width(column) + 7) // 8, "big").hex()}
    family = elements.ENUMS if column.kind is Kind.ENUM else elements.SETS
    return {column.kind.value: str(number), "name": family.name(number, column)}


def decimal_text(array: pa.Array) -> pa.StringArray:
    """Plain notation with all decimals of the scale. (Arrow's own text switches to an exponent for small numbers.)"""
    scale = array.type.scale
    if scale <= _ARROW_PLAIN_SCALE:
        return pc.cast(array, pa.string())
    whole = type(array.type)  # decimal128 or decimal256
    unscaled = (pa.decimal128 if whole is pa.Decimal128Type else pa.decimal256)(array.type.precision, 0)
    digits = pc.cast(
        pa.Array.from_buffers(unscaled, len(array), array.buffers(), offset=array.offset), pa.string()
    )
    sign = pc.if_else(pc.starts_with(digits, "-"), "-", "")
    digits = pc.utf8_lpad(pc.ascii_ltrim(digits, "-"), scale + 1, "0")
    before = pc.utf8_slice_codeunits(digits, 0, -scale)
    after = pc.utf8_slice_codeunits(digits, -scale)
    return pc.binary_join_element_wise(sign, pc.binary_join_element_wise(before, after, "."), "")


def base64_text(array: pa.BinaryArray) -> pa.StringArray:
    offsets, data = plain_bytes(array)
    lengths = np.diff(offsets)
    groups = (lengths + 2) // 3
    # One line per group of three bytes: where it starts, and where its row ends.
    first_group = np.cumsum(groups) - groups
    starts = np.repeat(offsets[:-1] - 3 * first_group, groups) + 3 * np.arange(int(groups.sum()))
    ends = np.repeat(offsets[1:], groups)
    padded = np.concatenate([data, np.zeros(2, dtype=np.uint8)])
    bits = np.zeros(len(starts), dtype=np.uint32)
    for place in range(3):
        byte = np.where(starts + place < ends, padded[starts + place], 0)
        bits |= byte.astype(np.uint32) << np.uint32(16 - 8 * place)
    text = np.stack([_BASE64[bits >> np.uint32(shift) & np.uint32(0x3F)] for shift in (18, 12, 6, 0)], axis=1)
    text[starts + 1 >= ends, 2] = ord("=")
    text[starts + 2 >= ends, 3] = ord("=")
    bounds = np.zeros(len(array) + 1, dtype=np.int32)
    np.cumsum(4 * groups, out=bounds[1:])
    valid = pc.is_valid(array).buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(
        pa.string(), len(array), [valid, pa.py_buffer(bounds), pa.py_buffer(text.reshape(-1))]
    )
