"""A TableInfo as JSON: names, column types as MySQL writes them, keys."""

from __future__ import annotations

from typing import Any

from tidemark.wire import types
from tidemark.wire.table_info import Column, TableInfo

# What a length or a scale means where the column names none.
_DEFAULT_LENGTH = {
    types.BIT: 1,
    types.TINYINT: 4,
    types.SMALLINT: 6,
    types.MEDIUMINT: 9,
    types.INT: 11,
    types.BIGINT: 20,
    types.FLOAT: 12,
    types.DOUBLE: 22,
    types.DECIMAL: types.DECIMAL_DEFAULT_DIGITS,
    types.STRING: 1,
    types.VARCHAR: 5,
    types.VAR_STRING: 5,
}
_LENGTH_SHOWN = {
    types.BIT,
    types.TINYINT,
    types.SMALLINT,
    types.MEDIUMINT,
    types.INT,
    types.BIGINT,
    types.STRING,
    types.VARCHAR,
    types.VAR_STRING,
}
_MEMBER_ESCAPES = str.maketrans({"\0": "\\0", "'": "''", "\n": "\\n", "\r": "\\r"})


def type_name(column: Column) -> str:
    """The type without its length: text and char are blob and binary where the charset is binary."""
    if column.mysql_type == types.VAR_STRING:
        return "var_string"
    known = types.MYSQL_TYPES.get(column.mysql_type)
    if known is None:
        return "unspecified" if column.mysql_type == 0 else f"type {column.mysql_type}"
    if known.kind is types.Kind.STRING and column.charset == types.BINARY_CHARSET:
        return known.name.replace("text", "blob").replace("char", "binary")
    return known.name


def compact_type(column: Column) -> str:
    """The type as `show columns` has it, for example varchar(20) or decimal(10,2)."""
    mysql_type, name = column.mysql_type, type_name(column)
    length = column.flen
    if length == types.UNSPECIFIED:
        length = _DEFAULT_LENGTH.get(mysql_type, types.UNSPECIFIED)
    has_scale = column.decimal not in (0, types.UNSPECIFIED)
    if mysql_type in (types.ENUM, types.SET):
        return f"{name}({','.join(_quoted(member) for member in column.elems)})"
    if mysql_type in (types.TIMESTAMP, types.DATETIME, types.TIME):
        return f"{name}({column.decimal})" if has_scale else name
    if mysql_type in (types.FLOAT, types.DOUBLE):
        return f"{name}({length},{column.decimal})" if has_scale else name
    if mysql_type == types.DECIMAL:
        return f"{name}({length},{max(column.decimal, types.DECIMAL_DEFAULT_SCALE)})"
    if mysql_type in _LENGTH_SHOWN:
        return f"{name}({length})"
    if mysql_type == types.YEAR or (mysql_type == types.VECTOR and column.flen != types.UNSPECIFIED):
        return f"{name}({column.flen})"
    return name


def _quoted(member: str) -> str:
    return f"'{member.translate(_MEMBER_ESCAPES)}'"


def table_form(table: TableInfo) -> dict[str, Any]:
    ids = {column.name: column.id for column in table.columns}
    return {
        "schema": table.schema,
        "table": table.table,
        "table_id": str(table.table_id),
        "table_version": str(table.version),
        "is_partition": table.is_partition,
        "active_active": table.is_active_active,
        "soft_delete": table.is_soft_delete,
        "has_pk_or_not_null_uk": table.has_pk_or_not_null_uk,
        "pk_is_handle": table.pk_is_handle,
        "charset": table.charset,
        "collate": table.collate,
        "columns": [_column_form(column) for column in table.columns],
        "indexes": [
            {"name": i.name, "columns": list(i.columns), "primary": i.is_primary, "unique": i.is_unique}
            for i in table.indexes
        ]
        or None,
        "handle_key_column_ids": [ids[name] for name in table.handle_key],
    }


def _column_form(column: Column) -> dict[str, Any]:
    return {
        "id": column.id,
        "name": column.name,
        "offset": column.offset,
        "mysql_type": column.mysql_type,
        "type_name": type_name(column),
        "compact": compact_type(column),
        "flag": column.flag,
        "flen": column.flen,
        "decimal": column.decimal,
        "charset": column.charset,
        "collate": column.collate,
        "elems": list(column.elems) or None,
        "default": column.default,
        "origin_default": column.origin_default,
        "unsigned": column.is_unsigned,
        "not_null": column.is_not_null,
        "pk": column.is_primary_key,
        "binary_flag": column.is_binary,
        "handle_key": column.is_handle_key,
        "hidden": column.hidden,
        "stored_generated": column.is_stored_generated,
        "virtual_generated": column.is_virtual_generated,
    }
