"""A TableInfo as one nested Arrow value: every fact that the schema history keeps of a table version."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tidemark.wire.table_form import compact_type, type_name
from tidemark.wire.table_info import Column, TableInfo

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
        "default_value": None if column.default is None else str(column.default),
        "origin_default": None if column.origin_default is None else str(column.origin_default),
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
