"""Columns as the TableInfo of TiDB describes them, from their SQL.

column := name type [unsigned] [not null] [default 'text'] [primary key]
"""

from __future__ import annotations

import re

from tidemark.wire import types
from tidemark.wire.table_info import Column

# A column that is NOT NULL and has no DEFAULT.
NO_DEFAULT = 4096
TEXT_CHARSET, TEXT_COLLATE = "utf8mb4", "utf8mb4_bin"

# type -> (number, display length, display length when unsigned)
_INTEGERS = {
    "tinyint": (types.TINYINT, 4, 3),
    "smallint": (types.SMALLINT, 6, 5),
    "mediumint": (types.MEDIUMINT, 9, 8),
    "int": (types.INT, 11, 10),
    "bigint": (types.BIGINT, 20, 20),
}
_REALS = {"float": (types.FLOAT, 12), "double": (types.DOUBLE, 22)}
_TEMPORALS = {"datetime": (types.DATETIME, 19), "timestamp": (types.TIMESTAMP, 19), "time": (types.TIME, 10)}
_STRINGS = {
    "char": types.STRING,
    "varchar": types.VARCHAR,
    "binary": types.STRING,
    "varbinary": types.VARCHAR,
}

_COLUMN = re.compile(
    r"(?P<name>\w+) (?P<base>\w+)(?:\((?P<args>[^)]*)\))?(?P<unsigned> unsigned)?(?: null)?(?P<not_null> not null)?"
    r"(?: default '(?P<default>[^']*)')?(?P<primary> primary key)?"
)


def column(sql: str, position: int, *, indexed: bool = False, added: bool = False) -> Column:
    """`added` is for a column that came by ALTER TABLE: rows written before have its default."""
    match = _COLUMN.fullmatch(sql)
    base, args, default = match["base"], match["args"], match["default"]
    flag = types.UNSIGNED if match["unsigned"] else 0
    if match["not_null"] or match["primary"]:
        flag |= types.NOT_NULL | (NO_DEFAULT if default is None else 0)
    flag |= types.PRIMARY_KEY if match["primary"] else 0
    flag |= types.MULTIPLE_KEY if indexed else 0
    return Column(
        id=position + 1,
        name=match["name"],
        offset=position,
        default=default,
        origin_default=default if added else None,
        **_type(base, args, flag),
    )


def _type(base: str, args: str | None, flag: int) -> dict:
    if base in _INTEGERS:
        number, length, unsigned_length = _INTEGERS[base]
        return _form(number, int(args or (unsigned_length if flag & types.UNSIGNED else length)), flag=flag)
    if base in _REALS:
        number, length = _REALS[base]
        return _form(number, length, types.UNSPECIFIED, flag)
    if base in _TEMPORALS:
        number, length = _TEMPORALS[base]
        fsp = int(args or 0)
        return _form(number, length + (fsp + 1 if fsp else 0), fsp, flag | types.BINARY)
    if base in _STRINGS:
        is_text = "char" in base
        return _form(_STRINGS[base], int(args), flag=flag | (0 if is_text else types.BINARY), is_text=is_text)
    if base in ("enum", "set"):
        elems = tuple(elem.strip("'") for elem in args.split(","))
        lengths = [len(elem) for elem in elems]
        number, length = (
            (types.ENUM, max(lengths)) if base == "enum" else (types.SET, sum(lengths) + len(elems) - 1)
        )
        return {**_form(number, length, flag=flag, is_text=True), "elems": elems}
    if base == "decimal":
        digits, scale = args.split(",")
        return _form(types.DECIMAL, int(digits), int(scale), flag)
    return {
        "date": _form(types.DATE, 10, flag=flag | types.BINARY),
        "year": _form(types.YEAR, 4, flag=flag | types.UNSIGNED | types.ZEROFILL),
        "bit": _form(types.BIT, int(args or 1), flag=flag | types.UNSIGNED),
        "text": _form(types.BLOB_TYPE, 65535, flag=flag, is_text=True),
        "json": _form(types.JSON, 4294967295, flag=flag | types.BINARY),
    }[base]


def _form(number: int, flen: int, decimal: int = 0, flag: int = 0, is_text: bool = False) -> dict:
    charset = (TEXT_CHARSET, TEXT_COLLATE) if is_text else (types.BINARY_CHARSET, types.BINARY_CHARSET)
    return {
        "mysql_type": number,
        "flen": flen,
        "decimal": decimal,
        "flag": flag,
        "charset": charset[0],
        "collate": charset[1],
    }
