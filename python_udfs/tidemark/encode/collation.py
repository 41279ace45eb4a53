"""Which texts a server takes for equal, by the collation of their column.

| collation | case | trailing spaces |
|---|---|---|
| `…_ci` | does not count | do not count |
| `…_0900_ai_ci` | does not count | count |
| `…_bin` | counts | do not count |
| `…_0900_bin`, `binary` | counts | count |

What else a collation takes for equal (accents, ß and ss) depends on its tables of weights, which are not here: such texts are told apart, and where that would be wrong,
`coarsely_folded` says that it does not know.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.wire.table_info import Column
from tidemark.wire.types import Kind


def is_collated(array: pa.Array, column: Column) -> bool:
    """Whether values are texts, which a collation compares; enum and set are numbers."""
    return column.kind is Kind.STRING and pa.types.is_string(array.type)


def case_folded(array: pa.Array, column: Column) -> pa.Array:
    """One text for those that differ in case only, where the collation says so."""
    if is_collated(array, column) and column.collate.endswith("_ci"):
        return pc.utf8_lower(array)
    return array


def folded(array: pa.Array, column: Column) -> pa.Array:
    """One text for those that the server takes for equal, as far as this module knows."""
    if not is_collated(array, column):
        return array
    array = case_folded(array, column)
    return array if "_0900_" in column.collate else pc.utf8_rtrim(array, " ")


def coarsely_folded(array: pa.StringArray, column: Column) -> pa.StringArray | None:
    """One text for all that the server may take for equal, and perhaps for more; None where that is not known."""
    if not column.collate.endswith("_bin"):
        if not pc.all(pc.string_is_ascii(array), min_count=0).as_py():
            return None
        array = pc.ascii_lower(array)
    return pc.ascii_rtrim(array, " ")
