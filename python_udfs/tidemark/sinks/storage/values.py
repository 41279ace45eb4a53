"""Text of data files back to the values of a RowBatch (docs/data-contract.md). The inverse of what the encoders do, column by column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.encode import types
from tidemark.encode.csv import fraction_zeros
from tidemark.encode.strings import as_bytes, as_text, data_of, offsets_of
from tidemark.sinks.storage.errors import InvalidTree
from tidemark.wire.columns.temporal import text_width
from tidemark.wire.table_info import Column, TableInfo
from tidemark.wire.types import Kind, arrow_type

_INVALID = 255
_BASE64 = np.full(256, _INVALID, np.uint8)
_BASE64[np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)] = (
    np.arange(64)
)
_HEX = np.full(256, _INVALID, np.uint8)
_HEX[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_HEX[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)
_NUMBERS = (Kind.INTEGER, Kind.BIT, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL)


def check_names(found: list[pa.Array], table: TableInfo) -> None:
    """Each line says whose it is, first its table; lines that lack a field, or of another table, say something else."""
    for values, name in zip(found, (table.table, table.schema), strict=False):
        same = pc.fill_null(pc.equal(as_bytes(values), name.encode("utf-8", "surrogateescape")), False)
        if not pc.all(same).as_py():
            other = values.filter(pc.invert(same))[0].as_py()
            raise InvalidTree(
                f"a line has {other!r:.80} where the fields of {table.schema}.{table.table} have {name!r:.80}"
            )


def csv_values(text: pa.BinaryArray, column: Column, binary_encoding_method: str) -> pa.Array:
    if column.kind is Kind.ENUM:
        return _enum_numbers(as_text(text), column)
    if column.kind is Kind.SET:
        return _set_numbers(as_text(text), column)
    if types.holds_bytes(column):
        decode = _from_base64 if binary_encoding_method == "base64" else _from_hex
        return _retyped(decode(text, column), column)
    zeros = fraction_zeros(column)
    return _plain(_without(text, zeros, text_width(column)) if zeros else text, column)


def _without(text: pa.BinaryArray, zeros: str, width: int) -> pa.BinaryArray:
    """Values as long as the column's, where zeros follow: files of the design document have six digits of fraction."""
    short = pc.binary_slice(text, 0, width)
    return pc.if_else(pc.equal(text, pc.binary_join_element_wise(short, zeros.encode(), b"")), short, text)


def canal_values(text: pa.StringArray, column: Column) -> pa.Array:
    if column.kind in (Kind.ENUM, Kind.SET):
        return _number(text, column)
    if types.holds_bytes(column):
        return _retyped(_from_latin1(text), column)
    return _plain(as_bytes(text), column)


def _plain(text: pa.BinaryArray, column: Column) -> pa.Array:
    if column.kind in _NUMBERS:
        return _number(as_text(text), column)
    return _retyped(text, column)


def _retyped(raw: pa.BinaryArray, column: Column) -> pa.Array:
    return raw if arrow_type(column) == pa.binary() else as_text(raw)


def _number(text: pa.StringArray, column: Column) -> pa.Array:
    try:
        return text.cast(arrow_type(column))
    except pa.ArrowInvalid as error:
        raise InvalidTree(f"column {column.name!r}: {error}") from None


def _enum_numbers(text: pa.StringArray, column: Column) -> pa.Array:
    place = pc.index_in(text, pa.array(column.elems, pa.string()), skip_nulls=True)
    unknown = pc.and_(place.is_null(), text.is_valid())
    if pc.any(unknown).as_py():
        raise InvalidTree(f"column {column.name!r} has no member {text.filter(unknown)[0].as_py()!r:.80}")
    return pc.add(place.cast(pa.uint64()), pa.scalar(1, pa.uint64()))


def _set_numbers(text: pa.StringArray, column: Column) -> pa.Array:
    bits = {member: 1 << bit for bit, member in enumerate(column.elems)}
    coded = text.dictionary_encode()
    numbers = []
    for names in coded.dictionary.to_pylist():
        unknown = [name for name in names.split(",") if name not in bits] if names else []
        if unknown:
            raise InvalidTree(f"column {column.name!r} has no member {unknown[0]!r:.80}")
        numbers.append(sum(bits[name] for name in names.split(",")) if names else 0)
    return pa.array(numbers, pa.uint64()).take(coded.indices)


def _from_base64(text: pa.BinaryArray, column: Column) -> pa.BinaryArray:
    data, lengths = np.frombuffer(data_of(text), np.uint8), np.diff(offsets_of(text))
    if (lengths % 4 != 0).any():
        raise InvalidTree(f"column {column.name!r}: a value is not base64; is binary-encoding-method hex?")
    padding = data == ord("=")
    digits = np.where(padding, 0, _BASE64[data]).reshape(-1, 4)
    if (digits == _INVALID).any():
        raise InvalidTree(f"column {column.name!r}: a value is not base64; is binary-encoding-method hex?")
    packed = np.empty((len(digits), 3), np.uint8)
    packed[:, 0] = digits[:, 0] << 2 | digits[:, 1] >> 4
    packed[:, 1] = digits[:, 1] << 4 | digits[:, 2] >> 2
    packed[:, 2] = digits[:, 2] << 6 | digits[:, 3]
    # Padding stands in the last two places of a group, and takes as many bytes away.
    keep = ~np.column_stack([np.zeros(len(digits), bool), padding.reshape(-1, 4)[:, 2:]])
    groups = np.concatenate([[0], np.cumsum(keep.sum(axis=1))])
    edges = groups[np.concatenate([[0], np.cumsum(lengths // 4)])]
    return _with_edges(text, edges, packed[keep])


def _from_hex(text: pa.BinaryArray, column: Column) -> pa.BinaryArray:
    data, lengths = _HEX[np.frombuffer(data_of(text), np.uint8)], np.diff(offsets_of(text))
    if (lengths % 2 != 0).any() or (data == _INVALID).any():
        raise InvalidTree(f"column {column.name!r}: a value is not hex; is binary-encoding-method base64?")
    return _with_edges(text, np.concatenate([[0], np.cumsum(lengths // 2)]), data[0::2] << 4 | data[1::2])


def _from_latin1(text: pa.StringArray) -> pa.BinaryArray:
    """Characters U+0000 to U+00FF, in UTF-8, as the bytes they stand for."""
    data, offsets = np.frombuffer(data_of(text), np.uint8), offsets_of(text).astype(np.int64)
    leads = data & 0xC0 == 0xC0
    after = np.concatenate([[False], leads[:-1]]) if len(data) else leads
    # 0xC2 0xA0 is U+00A0, 0xC3 0xA0 is U+00E0: the last bit of the first byte is worth 0x40.
    high = np.concatenate([[0], (data[:-1] & 1) << 6]) if len(data) else data
    raw = np.where(after, data | high, data)[~leads].astype(np.uint8)
    position = np.concatenate([[0], np.cumsum(~leads)])
    return _with_edges(text, position[offsets - offsets[0]], raw)


def _with_edges(like: pa.Array, edges: np.ndarray, data: np.ndarray) -> pa.BinaryArray:
    """An array of `data` cut at `edges`, with the NULLs of `like`."""
    validity = like.is_valid().buffers()[1] if like.null_count else None
    buffers = [validity, pa.py_buffer(edges.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(like), buffers, like.null_count)
