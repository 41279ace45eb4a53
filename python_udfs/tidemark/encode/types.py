"""How each MySQL type is named and shaped in every output: the one table that all encoders and schema files read.

A row of TYPES says, for one MySQL type number:

| field | read by |
|---|---|
| `name`, `binary_name` | mysqlType of canal-json, ColumnType of schema files (upper case); the second for the `binary` charset |
| `shape` | which of length, scale and members belong to the type: full mysqlType (`content-compatible`) and schema files |
| `flen`, `decimal` | what an unspecified length or scale means |
| `csv_quoted` | CSV: a string (quoted or escaped) or a bare number |
| `jdbc`, `jdbc_binary` | sqlType of canal-json; the second for columns with the binary flag |
| `jdbc_wide` | (largest value, sqlType above it) for unsigned columns: Java has no unsigned integers |
| `avro`, `avro_unsigned`, `tidb_type` | Avro type (precise decimals, `long` bigints) and `connect.parameters.tidb_type` |
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tidemark.wire import types as wire
from tidemark.wire.table_info import Column


class Shape(Enum):
    """Which parameters a type has: T, T(M), T(M,D), T(fsp), T('a','b')."""

    PLAIN = "no parameters"
    INTEGER = "display width"
    BIT = "bits"
    REAL = "(width,scale) when a scale was given"
    DECIMAL = "(precision,scale)"
    FSP = "fractional second digits when there are any"
    YEAR = "display width, always 4"
    CHARS = "length"
    BLOB = "length that is never written in SQL"
    JSON = "a document"
    MEMBERS = "list of members"
    VECTOR = "dimension when one was given"


class Jdbc:
    """java.sql.Types"""

    BIT, TINYINT, BIGINT, CHAR, DECIMAL, INTEGER, SMALLINT = -7, -6, -5, 1, 3, 4, 5
    REAL, DOUBLE, VARCHAR, DATE, TIME, TIMESTAMP, BLOB, CLOB = 7, 8, 12, 91, 92, 93, 2004, 2005


@dataclass(frozen=True)
class TypeMapping:
    name: str
    shape: Shape
    flen: int
    decimal: int
    csv_quoted: bool
    jdbc: int
    avro: str
    tidb_type: str
    binary_name: str = ""
    jdbc_binary: int | None = None
    jdbc_wide: tuple[int, int] | None = None
    avro_unsigned: str = ""


def _integer(
    name: str, flen: int, jdbc: int, wide: tuple[int, int] | None = None, **more: str
) -> TypeMapping:
    more = {"avro": "int", "tidb_type": "INT", **more}
    return TypeMapping(name, Shape.INTEGER, flen, 0, False, jdbc, jdbc_wide=wide, **more)


def _chars(name: str, flen: int, jdbc: int, binary_name: str) -> TypeMapping:
    return TypeMapping(name, Shape.CHARS, flen, 0, True, jdbc, "string", "TEXT", binary_name, Jdbc.BLOB)


def _blob(prefix: str, flen: int) -> TypeMapping:
    return TypeMapping(
        f"{prefix}text", Shape.BLOB, flen, 0, True, Jdbc.CLOB, "string", "TEXT", f"{prefix}blob", Jdbc.BLOB
    )


def _moment(name: str, shape: Shape, flen: int, jdbc: int) -> TypeMapping:
    return TypeMapping(name, shape, flen, 0, True, jdbc, "string", name.upper())


_LONG = {"avro": "long", "tidb_type": "BIGINT"}

# Columns of views have no type.
VIEW_COLUMN = 0

TYPES = {
    VIEW_COLUMN: TypeMapping("unspecified", Shape.PLAIN, -1, -1, True, Jdbc.VARCHAR, "string", "TEXT"),
    wire.TINYINT: _integer("tinyint", 4, Jdbc.TINYINT, (2**7 - 1, Jdbc.SMALLINT)),
    wire.SMALLINT: _integer("smallint", 6, Jdbc.SMALLINT, (2**15 - 1, Jdbc.INTEGER)),
    wire.MEDIUMINT: _integer("mediumint", 9, Jdbc.INTEGER),
    wire.INT: _integer("int", 11, Jdbc.INTEGER, (2**31 - 1, Jdbc.BIGINT), avro_unsigned="long"),
    wire.BIGINT: _integer("bigint", 20, Jdbc.BIGINT, (2**63 - 1, Jdbc.DECIMAL), **_LONG),
    wire.YEAR: TypeMapping("year", Shape.YEAR, 4, 0, False, Jdbc.VARCHAR, "int", "YEAR"),
    wire.BIT: TypeMapping("bit", Shape.BIT, 1, 0, False, Jdbc.BIT, "bytes", "BIT"),
    wire.FLOAT: TypeMapping("float", Shape.REAL, 12, -1, False, Jdbc.REAL, "float", "FLOAT"),
    wire.DOUBLE: TypeMapping("double", Shape.REAL, 22, -1, False, Jdbc.DOUBLE, "double", "DOUBLE"),
    wire.DECIMAL: TypeMapping("decimal", Shape.DECIMAL, 10, 0, True, Jdbc.DECIMAL, "bytes", "DECIMAL"),
    wire.DATE: _moment("date", Shape.PLAIN, 10, Jdbc.DATE),
    wire.NEWDATE: _moment("date", Shape.PLAIN, 10, Jdbc.DATE),
    wire.DATETIME: _moment("datetime", Shape.FSP, 19, Jdbc.TIMESTAMP),
    wire.TIMESTAMP: _moment("timestamp", Shape.FSP, 19, Jdbc.TIMESTAMP),
    wire.TIME: _moment("time", Shape.FSP, 10, Jdbc.TIME),
    wire.STRING: _chars("char", 1, Jdbc.CHAR, "binary"),
    wire.VARCHAR: _chars("varchar", 5, Jdbc.VARCHAR, "varbinary"),
    wire.VAR_STRING: _chars("var_string", 5, Jdbc.VARCHAR, "var_string"),
    wire.TINYBLOB: _blob("tiny", 255),
    wire.BLOB_TYPE: _blob("", 65535),
    wire.MEDIUMBLOB: _blob("medium", 16777215),
    wire.LONGBLOB: _blob("long", 4294967295),
    wire.ENUM: TypeMapping("enum", Shape.MEMBERS, -1, 0, True, Jdbc.INTEGER, "string", "ENUM"),
    wire.SET: TypeMapping("set", Shape.MEMBERS, -1, 0, True, Jdbc.BIT, "string", "SET"),
    wire.JSON: TypeMapping("json", Shape.JSON, 4294967295, 0, True, Jdbc.VARCHAR, "string", "JSON"),
    wire.VECTOR: TypeMapping(
        "vector", Shape.VECTOR, -1, -1, True, Jdbc.VARCHAR, "string", "TiDBVECTORFloat32"
    ),
}

# TiDB marks these unsigned without the word ever being part of the type.
_NEVER_SAYS_UNSIGNED = (Shape.BIT, Shape.YEAR)
# TiDB's escapes inside the quoted members of an ENUM or SET.
_MEMBER_ESCAPES = str.maketrans({"\0": "\\0", "'": "''", "\n": "\\n", "\r": "\\r"})


def mapping(column: Column) -> TypeMapping:
    return TYPES[column.mysql_type]


def is_text_or_bytes(column: Column) -> bool:
    return mapping(column).shape in (Shape.CHARS, Shape.BLOB)


def holds_bytes(column: Column) -> bool:
    """BINARY, VARBINARY and BLOB columns: told by the binary flag, as TiCDC does."""
    return column.is_binary and is_text_or_bytes(column)


def base_name(column: Column) -> str:
    """The name without parameters, such as `int` or `varbinary`."""
    row = mapping(column)
    return row.binary_name if row.binary_name and column.charset == wire.BINARY_CHARSET else row.name


def length(column: Column) -> int:
    return mapping(column).flen if column.flen == wire.UNSPECIFIED else column.flen


def scale(column: Column) -> int:
    return mapping(column).decimal if column.decimal == wire.UNSPECIFIED else column.decimal


def has_own_scale(column: Column) -> bool:
    """True where a scale was written that is not the type's own."""
    return column.decimal not in (mapping(column).decimal, 0, wire.UNSPECIFIED)


def mysql_type(column: Column, *, full: bool) -> str:
    """mysqlType of canal-json: `int unsigned`, or with parameters `int(10) unsigned`."""
    shape = mapping(column).shape
    words = [base_name(column) + (_parameters(column) if full else "")]
    if column.is_unsigned and shape not in _NEVER_SAYS_UNSIGNED:
        words.append("unsigned")
    if column.flag & wire.ZEROFILL and shape is not Shape.YEAR:
        words.append("zerofill")
    return " ".join(words)


def _parameters(column: Column) -> str:
    shape = mapping(column).shape
    if shape in (Shape.INTEGER, Shape.BIT, Shape.CHARS):
        return f"({length(column)})"
    if shape is Shape.YEAR or (shape is Shape.VECTOR and column.flen != wire.UNSPECIFIED):
        return f"({column.flen})"
    if shape is Shape.DECIMAL or (shape is Shape.REAL and has_own_scale(column)):
        return f"({length(column)},{scale(column)})"
    if shape is Shape.FSP and has_own_scale(column):
        return f"({scale(column)})"
    if shape is Shape.MEMBERS:
        return "('" + "','".join(member.translate(_MEMBER_ESCAPES) for member in column.elems) + "')"
    return ""


def sql_type(column: Column) -> int:
    """sqlType of canal-json, for values that fit."""
    row = mapping(column)
    return row.jdbc_binary if row.jdbc_binary is not None and column.is_binary else row.jdbc


def tidb_type(column: Column) -> str:
    """`connect.parameters.tidb_type` of Avro."""
    name = mapping(column).tidb_type
    if name in ("INT", "BIGINT") and column.is_unsigned:
        return f"{name} UNSIGNED"
    return "BLOB" if name == "TEXT" and column.is_binary else name


def avro_type(column: Column) -> str:
    """The Avro type with precise decimals and `long` bigints."""
    row = mapping(column)
    if column.is_unsigned and row.avro_unsigned:
        return row.avro_unsigned
    return "bytes" if holds_bytes(column) else row.avro
