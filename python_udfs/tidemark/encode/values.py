"""Column values as text: what CSV and canal-json share.

ENUM and SET hold numbers in a RowBatch. A number outside of the members has no name: the row cannot be encoded where names are asked for.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.wire.table_info import Column


def enum_index(array: pa.Array, column: Column) -> tuple[np.ndarray, pa.StringArray | None]:
    """(position of the member, their number for NULL and for no member; why a row has none)"""
    count = len(column.elems)
    numbers = (array.fill_null(0) if array.null_count else array).to_numpy()
    # Unsigned: what is below 1 is above all members.
    index = np.minimum(numbers - np.uint64(1), np.uint64(count)).astype(np.int32)
    if index.max(initial=0) < count:
        return index, None
    unknown = index == count
    if array.null_count:
        unknown &= array.is_valid().to_numpy(zero_copy_only=False)
    if not unknown.any():
        return index, None
    reason = pa.scalar(f"column {column.name!r}: the ENUM has members 1 to {count}, the value is ")
    return index, _only(unknown, pc.binary_join_element_wise(reason, array.cast(pa.string()), ""))


def set_names(array: pa.Array, column: Column) -> tuple[pa.StringArray, pa.StringArray | None]:
    """(members joined by commas, why a row has none)"""
    coded = array.dictionary_encode()
    numbers = coded.dictionary.to_pylist()
    every = (1 << len(column.elems)) - 1
    texts = [_members(number, column.elems) if number & ~every == 0 else None for number in numbers]
    names = pa.array(texts, pa.string()).take(coded.indices)
    if None not in texts:
        return names, None
    unknown = pc.and_not(names.is_null(), array.is_null()).to_numpy(zero_copy_only=False)
    reason = pa.scalar(f"column {column.name!r}: the SET has {len(column.elems)} members, no set of them is ")
    return names, _only(unknown, pc.binary_join_element_wise(reason, array.cast(pa.string()), ""))


def _members(number: int, elems: tuple[str, ...]) -> str:
    return ",".join(member for bit, member in enumerate(elems) if number >> bit & 1)


def _only(mask: np.ndarray, text: pa.Array) -> pa.StringArray:
    return pc.if_else(pa.array(mask), text, pa.scalar(None, pa.string()))
