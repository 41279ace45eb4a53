"""A dispatch rule, and the partition expressions that it may hold.

    expression := default | table                       by the table's name
                | ts                                    by the commit ts
                | rowid | pk | index-value | index      by the handle key, or by the columns of the index named in `index`
                | columns                               by the columns listed in `columns`
                | [column, column, …]                   by these columns
                | number                                that partition
                | any other text                        Pulsar only: the message key

Words are read without regard to case. Anything else is an error, whatever `compat` says: the shipped TiCDC uses `table` silently.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT = "default"
TABLE = "table"
TS = "ts"
INDEX_VALUE = "index-value"
COLUMNS = "columns"
NUMBER = "number"
KEY = "key"

_WORDS = {
    "": DEFAULT,
    "default": DEFAULT,
    "table": TABLE,
    "ts": TS,
    "rowid": INDEX_VALUE,
    "pk": INDEX_VALUE,
    "index-value": INDEX_VALUE,
    "index": INDEX_VALUE,
    "columns": COLUMNS,
}
ALLOWED_EXPRESSIONS = (
    "default, table, ts, rowid, pk, index-value, index, columns, [column, …] or a partition number"
)


@dataclass(frozen=True)
class DispatchRule:
    """One dispatch rule, ready to use. The first rule whose matcher takes a table decides on its topic and partition."""

    # Position in the list of rules, from 0.
    index: int
    matcher: tuple[str, ...]
    # The partition expression as written, and what it is: default, table, ts, index-value, columns, number or key.
    partition: str = ""
    kind: str = DEFAULT
    # kind columns: the columns to hash, in the order written.
    columns: tuple[str, ...] = ()
    # kind index-value: the index to take the columns of; "" is the handle key.
    index_name: str = ""
    # kind number: the partition.
    number: int | None = None
    # Topic expression; "" is the topic of the sink URI.
    topic: str = ""
    target_schema: str = ""
    target_table: str = ""


class ExpressionError(ValueError):
    """Not a partition expression."""


def parse_partition(expression: str, *, pulsar: bool) -> tuple[str, tuple[str, ...], int | None]:
    """Kind, columns and number of a partition expression, or ExpressionError."""
    text = expression.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()], (), None
    if text.startswith("[") and text.endswith("]"):
        columns = tuple(name.strip() for name in text[1:-1].split(","))
        if not all(columns):
            raise ExpressionError("has an empty column name")
        return COLUMNS, columns, None
    if re.fullmatch(r"[0-9]{1,9}", text):
        return NUMBER, (), int(text)
    if pulsar:
        return KEY, (), None
    if re.fullmatch(r"[+-]?[0-9]+", text):
        raise ExpressionError("is not a partition number")
    raise ExpressionError("is not a partition expression")
