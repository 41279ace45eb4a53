"""MySQL types: their numbers, their chunk cells and their Arrow types.

MYSQL_TYPES is the one table that says, per type number, which family of cells it has (`Kind`). Every decoder, encoder and text form reads
the family from here; the number alone never decides anywhere else.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from tidemark.wire.errors import InvalidField

if TYPE_CHECKING:
    from tidemark.wire.table_info import Column

# Column flags, as in `type.Flag` of a TableInfo.
NOT_NULL = 1
PRIMARY_KEY = 2
UNIQUE_KEY = 4
MULTIPLE_KEY = 8
BLOB = 16
UNSIGNED = 32
ZEROFILL = 64
BINARY = 128

BINARY_CHARSET = "binary"
UNSPECIFIED = -1

TINYINT, SMALLINT, INT, FLOAT, DOUBLE = 1, 2, 3, 4, 5
TIMESTAMP, BIGINT, MEDIUMINT, DATE, TIME, DATETIME, YEAR, NEWDATE = 7, 8, 9, 10, 11, 12, 13, 14
VARCHAR, BIT = 15, 16
VECTOR, JSON, DECIMAL, ENUM, SET = 225, 245, 246, 247, 248
TINYBLOB, MEDIUMBLOB, LONGBLOB, BLOB_TYPE = 249, 250, 251, 252
VAR_STRING, STRING = 253, 254


class Kind(Enum):
    """A family of chunk cells that is decoded, encoded and printed by the same code."""

    INTEGER = "integer"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    DATETIME = "datetime"
    TIME = "time"
    ENUM = "enum"
    SET = "set"
    BIT = "bit"
    STRING = "string"
    JSON = "json"
    VECTOR = "vector"


# Bytes per cell of the fixed-width families; the others have offsets.
FIXED_WIDTH = {
    Kind.INTEGER: 8,
    Kind.FLOAT: 4,
    Kind.DOUBLE: 8,
    Kind.DECIMAL: 40,
    Kind.DATETIME: 8,
    Kind.TIME: 8,
}


class MysqlType(NamedTuple):
    name: str
    kind: Kind


MYSQL_TYPES = {
    TINYINT: MysqlType("tinyint", Kind.INTEGER),
    SMALLINT: MysqlType("smallint", Kind.INTEGER),
    MEDIUMINT: MysqlType("mediumint", Kind.INTEGER),
    INT: MysqlType("int", Kind.INTEGER),
    BIGINT: MysqlType("bigint", Kind.INTEGER),
    YEAR: MysqlType("year", Kind.INTEGER),
    FLOAT: MysqlType("float", Kind.FLOAT),
    DOUBLE: MysqlType("double", Kind.DOUBLE),
    DECIMAL: MysqlType("decimal", Kind.DECIMAL),
    DATE: MysqlType("date", Kind.DATETIME),
    NEWDATE: MysqlType("date", Kind.DATETIME),
    DATETIME: MysqlType("datetime", Kind.DATETIME),
    TIMESTAMP: MysqlType("timestamp", Kind.DATETIME),
    TIME: MysqlType("time", Kind.TIME),
    ENUM: MysqlType("enum", Kind.ENUM),
    SET: MysqlType("set", Kind.SET),
    BIT: MysqlType("bit", Kind.BIT),
    STRING: MysqlType("char", Kind.STRING),
    VARCHAR: MysqlType("varchar", Kind.STRING),
    VAR_STRING: MysqlType("varchar", Kind.STRING),
    TINYBLOB: MysqlType("tinytext", Kind.STRING),
    BLOB_TYPE: MysqlType("text", Kind.STRING),
    MEDIUMBLOB: MysqlType("mediumtext", Kind.STRING),
    LONGBLOB: MysqlType("longtext", Kind.STRING),
    JSON: MysqlType("json", Kind.JSON),
    VECTOR: MysqlType("vector", Kind.VECTOR),
}

DECIMAL_MAX_DIGITS = 65
DECIMAL_MAX_SCALE = 30
DECIMAL128_DIGITS = 38
FSP_MAX = 6
BIT_MAX = 64
# What MySQL takes when DECIMAL names no precision or scale.
DECIMAL_DEFAULT_DIGITS, DECIMAL_DEFAULT_SCALE = 10, 0

# Arrow knows decimal256 only up to 76 digits; MySQL stops at 65.
_PLAIN_ARROW = {
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.DATETIME: pa.string(),
    Kind.TIME: pa.string(),
    Kind.ENUM: pa.uint64(),
    Kind.SET: pa.uint64(),
    Kind.BIT: pa.uint64(),
    Kind.JSON: pa.string(),
    Kind.VECTOR: pa.string(),
}


def kind_of(mysql_type: int) -> Kind:
    try:
        return MYSQL_TYPES[mysql_type].kind
    except KeyError:
        raise InvalidField(
            f"no column can have the MySQL type number {mysql_type}", actual=mysql_type
        ) from None


def decimal_digits(column: Column) -> tuple[int, int]:
    """(precision, scale) of a decimal column."""
    precision = DECIMAL_DEFAULT_DIGITS if column.flen == UNSPECIFIED else column.flen
    scale = DECIMAL_DEFAULT_SCALE if column.decimal == UNSPECIFIED else column.decimal
    if not (0 < precision <= DECIMAL_MAX_DIGITS and 0 <= scale <= min(precision, DECIMAL_MAX_SCALE)):
        raise InvalidField(
            f"column {column.name!r}: decimal({precision},{scale}) is not a MySQL type",
            expected=f"at most {DECIMAL_MAX_DIGITS} digits, {DECIMAL_MAX_SCALE} of them after the point",
            actual=f"{precision},{scale}",
        )
    return precision, scale


def fsp(column: Column) -> int:
    """Fractional second digits of a date or time column."""
    if column.mysql_type in (DATE, NEWDATE) or column.decimal == UNSPECIFIED:
        return 0
    if not 0 <= column.decimal <= FSP_MAX:
        raise InvalidField(
            f"column {column.name!r}: {column.decimal} fractional second digits",
            expected=f"0 to {FSP_MAX}",
            actual=column.decimal,
        )
    return column.decimal


def bit_width(column: Column) -> int:
    """Bits of a BIT column."""
    width = 1 if column.flen == UNSPECIFIED else column.flen
    if not 0 < width <= BIT_MAX:
        raise InvalidField(
            f"column {column.name!r}: bit({width}) is not a MySQL type", expected="1 to 64", actual=width
        )
    return width


def arrow_type(column: Column) -> pa.DataType:
    """The Arrow type that values of the column have in a RowBatch."""
    kind = column.kind
    if kind is Kind.INTEGER:
        return pa.uint64() if column.is_unsigned else pa.int64()
    if kind is Kind.DECIMAL:
        precision, scale = decimal_digits(column)
        return (pa.decimal128 if precision <= DECIMAL128_DIGITS else pa.decimal256)(precision, scale)
    if kind is Kind.STRING:
        return pa.binary() if column.charset == BINARY_CHARSET else pa.string()
    return _PLAIN_ARROW[kind]
