"""A TableInfo as one nested Arrow value: every fact that the schema history keeps of a table version."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from tidemark.wire import types
from tidemark.wire.table_form import compact_type, type_name
from tidemark.wire.table_info import Column, Index, TableInfo

_BITS = re.compile(r"x'(?:[0-9a-f]{2})*'")

COLUMN = pa.struct(
    {
        "id": pa.int64(),
        "name": pa.string(),
        "mysql_type": pa.int32(),
        "type_name": pa.string(),
        "column_type": pa.string(),
        "flag": pa.int64(),
        "flen": pa.int64(),
        "decimal": pa.int32(),
        "charset": pa.string(),
        "collation": pa.string(),
        "elems": pa.list_(pa.string()),
        "default_value": pa.string(),
        "origin_default": pa.string(),
        "generated_expr": pa.string(),
        "is_unsigned": pa.bool_(),
        "is_nullable": pa.bool_(),
        "is_primary_key": pa.bool_(),
        "is_handle_key": pa.bool_(),
        "is_binary": pa.bool_(),
        "is_stored_generated": pa.bool_(),
        "is_virtual_generated": pa.bool_(),
        "is_hidden": pa.bool_(),
        "comment": pa.string(),
    }
)
INDEX = pa.struct(
    {"name": pa.string(), "columns": pa.list_(pa.string()), "is_unique": pa.bool_(), "is_primary": pa.bool_()}
)
TABLE = pa.struct(
    {
        "table_id": pa.int64(),
        "schema_name": pa.string(),
        "table_name": pa.string(),
        "table_version": pa.int64(),
        "is_partition": pa.bool_(),
        "is_view": pa.bool_(),
        "is_active_active": pa.bool_(),
        "is_soft_delete": pa.bool_(),
        "handle_key": pa.list_(pa.string()),
        "columns": pa.list_(COLUMN),
        "indexes": pa.list_(INDEX),
    }
)


def table_row(table: TableInfo) -> dict[str, Any]:
    return {
        "table_id": table.table_id,
        "schema_name": table.schema,
        "table_name": table.table,
        "table_version": table.version,
        "is_partition": table.is_partition,
        "is_view": table.is_view,
        "is_active_active": table.is_active_active,
        "is_soft_delete": table.is_soft_delete,
        "handle_key": list(table.handle_key),
        "columns": [_column_row(column) for column in table.columns],
        "indexes": [
            {
                "name": index.name,
                "columns": list(index.columns),
                "is_unique": index.is_unique,
                "is_primary": index.is_primary,
            }
            for index in table.indexes
        ],
    }


def _column_row(column: Column) -> dict[str, Any]:
    return {
        "id": column.id,
        "name": column.name,
        "mysql_type": column.mysql_type,
        "type_name": type_name(column),
        "column_type": compact_type(column) + (" unsigned" if column.is_unsigned else ""),
        "flag": column.flag,
        "flen": column.flen,
        "decimal": column.decimal,
        "charset": column.charset,
        "collation": column.collate,
        "elems": list(column.elems),
        "default_value": _default_text(column, column.default, column.default_bit),
        "origin_default": _default_text(column, column.origin_default, column.origin_default_bit),
        "generated_expr": column.generated_expr or None,
        "is_unsigned": column.is_unsigned,
        "is_nullable": not column.is_not_null,
        "is_primary_key": column.is_primary_key,
        "is_handle_key": column.is_handle_key,
        "is_binary": column.is_binary,
        "is_stored_generated": column.is_stored_generated,
        "is_virtual_generated": column.is_virtual_generated,
        "is_hidden": column.hidden,
        "comment": column.comment or None,
    }


def _default_text(column: Column, default: Any, bits: str | None) -> str | None:
    """A default as text; of a BIT column, whose bytes are no text, as x'…'."""
    if column.mysql_type == types.BIT and bits is not None:
        return f"x'{b64decode(bits).hex()}'"
    return None if default is None else str(default)


def _default_of_text(mysql_type: int, text: str | None) -> tuple[str | None, str | None]:
    if text is not None and mysql_type == types.BIT and _BITS.fullmatch(text):
        return None, b64encode(bytes.fromhex(text[2:-1])).decode()
    return text, None


def table_of_row(row: Mapping[str, Any]) -> TableInfo:
    """The table that `table_row` describes, as far as it does."""
    return TableInfo.build(
        row["schema_name"],
        row["table_name"],
        row["table_id"],
        row["table_version"],
        columns=[_column(place, column) for place, column in enumerate(row["columns"])],
        indexes=[
            Index(index["name"], tuple(index["columns"]), index["is_unique"], index["is_primary"])
            for index in row["indexes"]
        ],
        is_partition=row["is_partition"],
        is_view=row["is_view"],
        is_active_active=row["is_active_active"],
        is_soft_delete=row["is_soft_delete"],
    )


def _column(place: int, row: Mapping[str, Any]) -> Column:
    default, bits = _default_of_text(row["mysql_type"], row["default_value"])
    origin_default, origin_bits = _default_of_text(row["mysql_type"], row["origin_default"])
    return Column(
        id=row["id"],
        name=row["name"],
        offset=place,
        mysql_type=row["mysql_type"],
        flag=row["flag"],
        flen=row["flen"],
        decimal=row["decimal"],
        charset=row["charset"],
        collate=row["collation"],
        elems=tuple(row["elems"]),
        default=default,
        origin_default=origin_default,
        default_bit=bits,
        origin_default_bit=origin_bits,
        generated_expr=row["generated_expr"] or "",
        is_stored_generated=row["is_stored_generated"],
        hidden=row["is_hidden"],
        comment=row["comment"] or "",
    )
