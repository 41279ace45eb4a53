"""One column of a RowBatch as the pieces of an Avro field, by the Avro type of the field and the kind of the column.

ENUM and SET are their names, BIT is big-endian bytes, dates and times, JSON and vectors are text. A number outside of the members of an ENUM or
SET has no name, and a column that is NOT NULL has no form for NULL: such rows cannot be encoded.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.encode.avro_binary import (
    Narrow,
    Piece,
    constant,
    decimal,
    fixed,
    in_union,
    long,
    small_number,
    text,
    words,
)
from tidemark.encode.avro_schema import AvroField
from tidemark.encode.values import enum_index, set_names
from tidemark.wire.text import decimal_text
from tidemark.wire.types import Kind, bit_width

_INSERTED, _UPDATED = (small_number(1) + letter for letter in (b"c", b"u"))


def field_pieces(array: pa.Array, field: AvroField) -> tuple[list[Piece], pa.StringArray | None]:
    """(the pieces of the field, why a row has none)"""
    kind = field.column.kind
    if kind is Kind.ENUM:
        return _enum(array, field)
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    error = None
    if kind is Kind.SET:
        array, error = set_names(array, field.column)
    pieces = _value(array, field)
    if field.null_branch is not None:
        return in_union(pieces, field.null_branch, valid, len(array)), error
    return pieces, _missing(field, valid) if valid is not None else error


def operation(updated: np.ndarray) -> Piece:
    """_tidb_op: "u" for updates, "c" for inserts."""
    return words(updated.astype(np.int32), [_INSERTED, _UPDATED])


def _value(array: pa.Array, field: AvroField) -> list[Piece]:
    kind, avro_type = field.column.kind, field.avro_type
    if avro_type in ("int", "long"):
        return [_integer(array, avro_type)]
    if avro_type in ("float", "double"):
        return [fixed(_numbers(array).astype(np.float32 if avro_type == "float" else np.float64, copy=False))]
    if kind is Kind.BIT:
        return _bits(array, field)
    if kind is Kind.DECIMAL:
        return decimal(array) if avro_type == "bytes" else text(decimal_text(array))
    return text(array.cast(pa.string()) if kind is Kind.INTEGER else array)


def _numbers(array: pa.Array) -> np.ndarray:
    return (array.fill_null(0) if array.null_count else array).to_numpy()


def _integer(array: pa.Array, avro_type: str) -> Piece:
    # Unsigned numbers keep their bits: Avro has signed integers only.
    numbers = _numbers(array).view(np.int64)
    return long(numbers.astype(np.int32) if avro_type == "int" else numbers)


def _bits(array: pa.Array, field: AvroField) -> list[Piece]:
    width = (bit_width(field.column) + 7) // 8
    block = fixed(_numbers(array).astype(">u8")).block[:, 8 - width :]
    return [constant(small_number(width), len(array)), Narrow(block, None, width)]


def _enum(array: pa.Array, field: AvroField) -> tuple[list[Piece], pa.StringArray | None]:
    index, error = enum_index(array, field.column)
    names = [name.encode() for name in field.column.elems]
    known = [small_number(len(name)) + name for name in names]
    if field.null_branch is None:
        missing = (
            _missing(field, array.is_valid().to_numpy(zero_copy_only=False)) if array.null_count else None
        )
        return [words(index, [*known, b""])], error if missing is None else missing
    branch = bytes([2 * (1 - field.null_branch)])
    return [words(index, [*(branch + word for word in known), bytes([2 * field.null_branch])])], error


def _missing(field: AvroField, valid: np.ndarray) -> pa.StringArray:
    reason = f"column {field.column.name!r}: NULL, but the column is NOT NULL"
    return pc.if_else(pa.array(valid), pa.scalar(None, pa.string()), reason)
