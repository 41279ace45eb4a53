"""The two JSON documents of a TableInfo, as TiCDC writes them: key order, derived keys and Go's JSON escapes."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import TYPE_CHECKING, Any

from tidemark.wire import types

if TYPE_CHECKING:
    from tidemark.wire.table_info import Column, Index, TableInfo

# Go's encoder makes JSON safe inside HTML and JavaScript.
_GO_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})
COLUMN_INFO_VERSION = 2
NO_HANDLE_COLUMN = -1
BTREE = 1


def go_json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_GO_ESCAPES).encode("utf-8")


def table_document(table: TableInfo) -> dict:
    return {
        "table-name": {
            "Schema": table.schema,
            "Table": table.table,
            "TableID": table.table_id,
            "IsPartition": table.is_partition,
            "TargetSchema": "",
            "TargetTable": "",
        },
        "charset": table.charset,
        "collate": table.collate,
        "comment": table.comment,
        "has-pk-or-not-null-uk": table.has_pk_or_not_null_uk,
        "view": {} if table.is_view else None,
        "sequence": {} if table.is_sequence else None,
        "active-active-table": table.is_active_active,
        "soft-delete-table": table.is_soft_delete,
        "update_timestamp": table.version,
    }


def columns_document(table: TableInfo) -> dict:
    columns = table.columns
    names = sorted(column.name.lower() for column in columns)
    stored = [column for column in columns if not column.is_virtual_generated]
    ids = {column.name: column.id for column in columns}
    offsets = {column.name: column.offset for column in columns}
    key_ids = [ids[name] for name in table.handle_key]
    row_infos = [_row_info(table, column) for column in columns]
    virtual = [position for position, column in enumerate(columns) if column.is_virtual_generated]
    column_documents = [_column(column, names) for column in columns]
    index_documents = [_index(index, offsets) for index in table.indexes] or None
    return {
        "digest": _digest(column_documents, index_documents),
        "cols": column_documents,
        "index_info": index_documents,
        "pk_is_handle": table.pk_is_handle,
        "is_common_handle": table.is_common_handle,
        "columns_offset": _sorted({str(column.id): position for position, column in enumerate(columns)}),
        "name_to_col_id": _sorted({column.name: column.id for column in stored}),
        "row_columns_offset": _sorted({str(column.id): position for position, column in enumerate(stored)}),
        "handle_col_id": key_ids if table.pk_is_handle or table.is_common_handle else [NO_HANDLE_COLUMN],
        "handle_key_ids": _sorted({str(key_id): {} for key_id in key_ids}),
        "handle_key_id_list": key_ids,
        "index_columns": _index_columns(table) or None,
        "pk_index": next(iter(_primary_keys(table)), []),
        "row_col_infos": row_infos,
        "row_col_field_tps": _sorted({str(column.id): _field_type(column) for column in columns}),
        "row_col_field_tps_slice": [_field_type(column) for column in columns],
        "virtual_columns_offset": virtual or None,
        "row_col_infos_without_virtual_cols": [info for info in row_infos if not info["VirtualGenCol"]],
        "pre_sqls": _statements([column for column in columns if not column.generated_expr]),
    }


def _sorted(mapping: dict) -> dict:
    return dict(sorted(mapping.items()))


def _identifier(name: str) -> dict:
    return {"O": name, "L": name.lower()}


def _field_type(column: Column) -> dict:
    return {
        "Tp": column.mysql_type,
        "Flag": column.flag,
        "Flen": column.flen,
        "Decimal": column.decimal,
        "Charset": column.charset,
        "Collate": column.collate,
        "Elems": list(column.elems) or None,
        "ElemsIsBinaryLit": None,
        "Array": False,
    }


def _column(column: Column, names: list[str]) -> dict:
    return {
        "id": column.id,
        "name": _identifier(column.name),
        "offset": column.offset,
        "origin_default": column.origin_default,
        "origin_default_bit": column.origin_default_bit,
        "default": column.default,
        "default_bit": column.default_bit,
        "default_is_expr": False,
        "generated_expr_string": column.generated_expr,
        "generated_stored": column.is_stored_generated,
        "dependences": {name: {} for name in names if f"`{name}`" in column.generated_expr.lower()} or None,
        "type": _field_type(column),
        "state": column.state,
        "comment": column.comment,
        "hidden": column.hidden,
        "change_state_info": None,
        "version": COLUMN_INFO_VERSION,
    }


def _index(index: Index, offsets: dict[str, int]) -> dict:
    lengths = index.lengths or (types.UNSPECIFIED,) * len(index.columns)
    return {
        "id": index.id,
        "idx_name": _identifier(index.name),
        "tbl_name": _identifier(""),
        "idx_cols": [
            {"name": _identifier(name), "offset": offsets[name], "length": length}
            for name, length in zip(index.columns, lengths, strict=True)
        ],
        "state": 5,
        "backfill_state": 0,
        "comment": "",
        "index_type": BTREE,
        "is_unique": index.is_unique,
        "is_primary": index.is_primary,
        "is_invisible": False,
        "is_global": False,
        "mv_index": False,
        "vector_index": None,
        "inverted_index": None,
        "full_text_index": None,
        "condition_expr_string": "",
    }


def _row_info(table: TableInfo, column: Column) -> dict:
    virtual = column.is_virtual_generated
    return {
        "ID": column.id,
        "IsPKHandle": table.pk_is_handle and column.is_primary_key and not virtual,
        "VirtualGenCol": virtual,
        "Ft": _field_type(column),
    }


def _index_columns(table: TableInfo) -> list[list[int]]:
    """Column ids of the primary key and of every unique index, without virtual columns."""
    by_name = table.columns_by_name
    keys = [[column.id] for column in table.columns if table.pk_is_handle and column.is_primary_key]
    for index in table.indexes:
        if index.is_unique or index.is_primary:
            ids = [by_name[name].id for name in index.columns if not by_name[name].is_virtual_generated]
            keys += [ids] if ids else []
    return keys


def _primary_keys(table: TableInfo) -> list[list[int]]:
    by_name = table.columns_by_name
    if table.pk_is_handle:
        return [[column.id] for column in table.columns if column.is_primary_key]
    return [[by_name[name].id for name in index.columns] for index in table.indexes if index.is_primary]


def _statements(columns: list[Column]) -> dict[str, str]:
    names = ["`" + column.name.replace("`", "``") + "`" for column in columns]
    values = f"({','.join(names)}) VALUES ({','.join('?' * len(names))})"
    assignments = ",".join(f"{name} = ?" for name in names)
    return {
        "0": f"INSERT INTO %s {values}",
        "1": f"REPLACE INTO %s {values}",
        "2": f"UPDATE %s SET {assignments}",
    }


def _digest(columns: list[dict], indexes: list[dict] | None) -> dict[str, int]:
    """SHA-256 over columns and indexes, as four big-endian u64. TiCDC shares column schemas with equal digests after comparing them,
    so any digest of the content serves."""
    digest = hashlib.sha256(go_json([columns, indexes])).digest()
    return dict(zip("abcd", struct.unpack(">4Q", digest), strict=True))
