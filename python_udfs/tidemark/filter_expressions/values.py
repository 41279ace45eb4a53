"""What a part of an expression is: its SQL, and the MySQL type that decides how it is compared.

| kind | MySQL | in Spark |
|---|---|---|
| NUMBER | integers, DECIMAL up to 38 digits, BIT, YEAR | integers and decimals, exact |
| REAL | FLOAT, DOUBLE | double |
| TEXT | CHAR, VARCHAR, TEXT, ENUM, SET by name | string, compared by its collation |
| MOMENT | DATE, DATETIME, TIMESTAMP | text `YYYY-MM-DD HH:MM:SS.ffffff`, so that zero dates compare, too |
| BYTES | BINARY, VARBINARY, BLOB | binary |
| OPAQUE | JSON, VECTOR, TIME, wider DECIMAL | only whether it is NULL |
| BOOL | a comparison | boolean |
| ANY | a column whose table is not known yet | |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

from tidemark.filter_expressions.parse import ExpressionError

SPARK_DIGITS = 38


class Kind(Enum):
    NUMBER = "a number"
    REAL = "a floating point number"
    TEXT = "a text"
    MOMENT = "a date or time"
    BYTES = "bytes"
    OPAQUE = "opaque"
    BOOL = "a condition"
    NULL = "NULL"
    ANY = "any"


@dataclass(frozen=True)
class Collation:
    """How texts are compared. A literal takes the collation of what it is compared with."""

    ignores_case: bool = False
    ignores_spaces: bool = True
    # Whether the order of code points is the order of texts.
    is_ordered: bool = True
    # 0: literal, 1: column, 2: COLLATE.
    strength: int = 0


LITERAL_COLLATION = Collation()


@dataclass(frozen=True)
class Value:
    sql: str
    kind: Kind
    # NUMBER: digits before and after the point.
    whole: int = 0
    scale: int = 0
    # TEXT
    collation: Collation = LITERAL_COLLATION
    is_member: bool = False
    # TEXT: LENGTH counts bytes of this charset.
    is_utf8: bool = True
    is_year: bool = False
    # What a literal stands for.
    literal: Decimal | str | bytes | None = None
    # For messages.
    name: str = ""

    @property
    def shown(self) -> str:
        return self.name or self.kind.value


ANY = Value("null", Kind.ANY)
NULL = Value("null", Kind.NULL)


def text_literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def number_literal(number: Decimal) -> Value:
    sign, digits, exponent = number.as_tuple()
    scale = max(-exponent, 0)
    whole = max(len(digits) + exponent, 1)
    if whole + scale > SPARK_DIGITS:
        raise ExpressionError(f"{number} has more than {SPARK_DIGITS} digits")
    text = f"{number:f}"
    is_long = scale == 0 and whole <= 18
    sql = text if is_long else f"{text}BD"
    return Value(f"({sql})" if sign else sql, Kind.NUMBER, whole, scale, literal=number)


_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "mediumint": 8, "int": 10, "bigint": 19, "year": 4}
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_UTF8 = ("utf8mb4", "utf8", "utf8mb3", "ascii", "")


def column_value(column: Mapping[str, Any], sql: str) -> Value:
    """A column of a table. `column` is as in the model table_versions; `sql` is its typed value, and the plain text of dates and times."""
    name, kind = f"`{column['name']}`", column["type_name"]
    if column.get("is_virtual_generated"):
        raise ExpressionError(f"{name} is a virtual generated column, whose values are not in the events")
    if column["name"] == "_tidb_origin_ts":
        raise ExpressionError("_tidb_origin_ts says where a row came from, and rows are judged by it already")
    flen, decimal = column.get("flen") or 0, max(column.get("decimal") or 0, 0)
    if kind in _INTEGER_DIGITS:
        digits = 20 if kind == "bigint" and column.get("is_unsigned") else _INTEGER_DIGITS[kind]
        return Value(sql, Kind.NUMBER, digits, is_year=kind == "year", name=name)
    if kind == "bit":
        return Value(sql, Kind.NUMBER, len(str(2 ** max(flen, 1) - 1)), name=name)
    if kind == "decimal" and flen <= SPARK_DIGITS:
        return Value(sql, Kind.NUMBER, max(flen - decimal, 1), decimal, name=name)
    if kind in ("float", "double"):
        # The value of a FLOAT is that of its four bytes, not that of its digits.
        return Value(f"cast({sql} as double)", Kind.REAL, name=name)
    if kind in (*_TEXTS, "enum", "set"):
        return Value(
            sql,
            Kind.TEXT,
            collation=_collation(column),
            is_member=kind in ("enum", "set"),
            is_utf8=(column.get("charset") or "") in _UTF8,
            name=name,
        )
    if kind in _BYTES:
        return Value(sql, Kind.BYTES, name=name)
    if kind == "date":
        return Value(f"concat({sql}, ' 00:00:00.000000')", Kind.MOMENT, name=name)
    if kind in ("datetime", "timestamp"):
        return Value(
            f"rpad({sql}, 26, '0')" if decimal else f"concat({sql}, '.000000')", Kind.MOMENT, name=name
        )
    return Value(sql, Kind.OPAQUE, name=f"{name}, which is {column.get('column_type') or kind},")


def _collation(column: Mapping[str, Any]) -> Collation:
    collation = (column.get("collation") or "").lower()
    return named_collation(collation, 1, (column.get("charset") or "") in _UTF8)


def named_collation(name: str, strength: int, is_utf8: bool = True) -> Collation:
    """As encode/collation.py has it: which texts are equal."""
    return Collation(
        ignores_case=not (name.endswith("_bin") or name in ("binary", "")),
        ignores_spaces="_0900_" not in name and name != "binary",
        is_ordered=is_utf8 and (name.endswith("_bin") or name in ("binary", "")),
        strength=strength,
    )
