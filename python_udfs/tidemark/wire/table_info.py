"""TableInfo: what the sender says about one version of one table.

    table_info := table-json columns-json length:u64be              (length = bytes of columns-json)

`table-json` has the name, the flags and the version (`update_timestamp`), `columns-json` has columns, indexes and what TiCDC derives from
them. A parsed TableInfo gives its bytes back unchanged; one built by code is written with all derived keys, so that TiCDC can read it.
Numbers exceed 2^53: they stay Python integers.
"""

from __future__ import annotations

import math
import struct
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa

from tidemark.wire import types
from tidemark.wire.errors import InvalidField, TruncatedPayload
from tidemark.wire.json_text import read_object
from tidemark.wire.table_json import columns_document, go_json, table_document

LENGTH = struct.Struct(">Q")
PUBLIC = 5
_HEAD, _BODY = "the head of a TableInfo", "the columns of a TableInfo"
# Signed and unsigned, of 64 bits.
_DEFAULT_INTEGERS = range(-(1 << 63), 1 << 64)


@dataclass(frozen=True)
class Column:
    id: int
    name: str
    offset: int
    mysql_type: int
    flag: int = 0
    flen: int = types.UNSPECIFIED
    decimal: int = types.UNSPECIFIED
    charset: str = types.BINARY_CHARSET
    collate: str = types.BINARY_CHARSET
    elems: tuple[str, ...] = ()
    default: Any = None
    origin_default: Any = None
    default_bit: str | None = None  # base64, as in the JSON
    origin_default_bit: str | None = None
    generated_expr: str = ""
    is_stored_generated: bool = False
    hidden: bool = False
    state: int = PUBLIC
    is_handle_key: bool = False
    comment: str = ""

    @cached_property
    def kind(self) -> types.Kind:
        return types.kind_of(self.mysql_type)

    @property
    def is_virtual_generated(self) -> bool:
        return bool(self.generated_expr) and not self.is_stored_generated

    @property
    def is_unsigned(self) -> bool:
        return bool(self.flag & types.UNSIGNED)

    @property
    def is_not_null(self) -> bool:
        return bool(self.flag & types.NOT_NULL)

    @property
    def is_primary_key(self) -> bool:
        return bool(self.flag & types.PRIMARY_KEY)

    @property
    def is_unique_key(self) -> bool:
        return bool(self.flag & types.UNIQUE_KEY)

    @property
    def is_multiple_key(self) -> bool:
        return bool(self.flag & types.MULTIPLE_KEY)

    @property
    def is_binary(self) -> bool:
        return bool(self.flag & types.BINARY)


@dataclass(frozen=True)
class Index:
    name: str
    columns: tuple[str, ...]
    is_unique: bool = False
    is_primary: bool = False
    id: int = 0
    lengths: tuple[int, ...] = ()  # prefix length per column (-1: whole column); empty when all are whole


@dataclass(frozen=True)
class TableInfo:
    schema: str
    table: str
    table_id: int
    version: int
    columns: tuple[Column, ...]
    indexes: tuple[Index, ...] = ()
    handle_key: tuple[str, ...] = ()
    is_partition: bool = False
    is_view: bool = False
    is_sequence: bool = False
    is_active_active: bool = False
    is_soft_delete: bool = False
    has_pk_or_not_null_uk: bool = False
    pk_is_handle: bool = False
    is_common_handle: bool = False
    charset: str = "utf8mb4"
    collate: str = "utf8mb4_bin"
    comment: str = ""
    # (schema, table) under which a sink writes it, where that is another name (tidemark.dispatch.routing). Not on the wire.
    written_to: tuple[str, str] | None = None
    # The bytes this was read from. `dataclasses.replace` drops them, so a changed copy is written anew.
    _raw: bytes | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> TableInfo:
        data = bytes(data)
        if len(data) < LENGTH.size:
            raise TruncatedPayload(
                f"a TableInfo ends with an {LENGTH.size}-byte length, {len(data)} bytes are there",
                expected=LENGTH.size,
                actual=len(data),
            )
        (length,) = LENGTH.unpack_from(data, len(data) - LENGTH.size)
        split = len(data) - LENGTH.size - length
        if split < 0:
            raise TruncatedPayload(
                f"the columns of a TableInfo take {length} bytes, {len(data) - LENGTH.size} are there",
                offset=len(data) - LENGTH.size,
                expected=length,
                actual=len(data) - LENGTH.size,
            )
        table = _parse(read_object(data[:split], _HEAD, 0), data[split : -LENGTH.size], split)
        object.__setattr__(table, "_raw", data)
        return table

    @classmethod
    def build(
        cls,
        schema: str,
        table: str,
        table_id: int,
        version: int,
        *,
        columns: Iterable[Column],
        indexes: Iterable[Index] = (),
        pk_is_handle: bool | None = None,
        **flags: Any,
    ) -> TableInfo:
        """A table made by code. Handle key and key flags follow from columns and indexes, as TiCDC derives them.

        `pk_is_handle` is assumed for a table whose only primary key column is an integer and that has no primary index.
        """
        columns, indexes = tuple(columns), tuple(indexes)
        if pk_is_handle is None:
            keys = [column for column in columns if column.is_primary_key]
            pk_is_handle = (
                len(keys) == 1
                and keys[0].kind is types.Kind.INTEGER
                and not any(index.is_primary for index in indexes)
            )
        key = handle_key(columns, indexes, pk_is_handle)
        return cls(
            schema=schema,
            table=table,
            table_id=table_id,
            version=version,
            columns=tuple(replace(column, is_handle_key=column.name in key) for column in columns),
            indexes=indexes,
            handle_key=key,
            has_pk_or_not_null_uk=flags.pop("has_pk_or_not_null_uk", bool(key)),
            pk_is_handle=pk_is_handle,
            **flags,
        )

    def to_bytes(self) -> bytes:
        if self._raw is not None:
            return self._raw
        columns = go_json(columns_document(self))
        return go_json(table_document(self)) + columns + LENGTH.pack(len(columns))

    @property
    def target_schema(self) -> str:
        """The database that a sink writes it to."""
        return self.written_to[0] if self.written_to else self.schema

    @property
    def target_table(self) -> str:
        return self.written_to[1] if self.written_to else self.table

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """One field per column, in chunk order."""
        return _arrow_schema(self.columns)

    @cached_property
    def columns_by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}


def _arrow_schema(columns: tuple[Column, ...]) -> pa.Schema:
    return pa.schema([pa.field(column.name, types.arrow_type(column)) for column in columns])


def handle_key(
    columns: tuple[Column, ...], indexes: tuple[Index, ...], pk_is_handle: bool
) -> tuple[str, ...]:
    """The columns that identify a row: the primary key, else the shortest unique key without NULLs (the smallest id among equals)."""
    if pk_is_handle:
        return tuple(
            column.name for column in columns if column.is_primary_key and not column.is_virtual_generated
        )
    for index in indexes:
        if index.is_primary:
            return index.columns
    by_name = {column.name: column for column in columns}
    unique = [
        index
        for index in indexes
        if index.is_unique
        and index.columns
        and all(
            by_name[name].is_not_null and not by_name[name].is_virtual_generated for name in index.columns
        )
    ]
    return min(unique, key=lambda index: (len(index.columns), index.id)).columns if unique else ()


_MISSING = object()


def _get(document: dict, key: str, kind: type | tuple[type, ...], default: Any = _MISSING) -> Any:
    """The value under `key` if it has the right type; `default` where the key is absent or null."""
    value = document.get(key)
    if value is None:
        if default is _MISSING:
            raise InvalidField(f"a TableInfo without {key!r}", expected=key)
        return default
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise InvalidField(
            f"TableInfo: {key!r} cannot be {value!r:.60}", expected=kind, actual=type(value).__name__
        )
    return value


def _objects(document: dict, key: str) -> list[dict]:
    items = _get(document, key, list, [])
    if not all(isinstance(item, dict) for item in items):
        raise InvalidField(f"TableInfo: {key!r} must hold objects", expected="objects")
    return items


def _words(document: dict, key: str) -> tuple[str, ...]:
    items = _get(document, key, list, [])
    if not all(isinstance(item, str) for item in items):
        raise InvalidField(f"TableInfo: {key!r} must hold strings", expected="strings")
    return tuple(items)


def _name(document: dict, key: str) -> str:
    return _get(_get(document, key, dict), "O", str)


def _parse(head: dict, columns_json: bytes, position: int) -> TableInfo:
    """`position`: where columns-json is, for errors."""
    name = _get(head, "table-name", dict)
    try:
        body = _body(columns_json)
    except InvalidField:
        # Of text that is no JSON, the error says where it is wrong.
        read_object(columns_json, _BODY, position)
        raise
    table = TableInfo(
        schema=_get(name, "Schema", str),
        table=_get(name, "Table", str),
        table_id=_get(name, "TableID", int),
        version=_get(head, "update_timestamp", int),
        columns=body.columns,
        indexes=body.indexes,
        handle_key=body.handle_key,
        is_partition=_get(name, "IsPartition", bool, False),
        is_view=head.get("view") is not None,
        is_sequence=head.get("sequence") is not None,
        is_active_active=_get(head, "active-active-table", bool, False),
        is_soft_delete=_get(head, "soft-delete-table", bool, False),
        has_pk_or_not_null_uk=_get(head, "has-pk-or-not-null-uk", bool, False),
        pk_is_handle=body.pk_is_handle,
        is_common_handle=body.is_common_handle,
        charset=_get(head, "charset", str, ""),
        collate=_get(head, "collate", str, ""),
        comment=_get(head, "comment", str, ""),
    )
    if not table.is_view and not table.is_sequence:  # these have no rows, and a view's columns have no types
        # A precision or a type that cannot be is told here, not at the first row.
        vars(table)["arrow_schema"] = body.arrow_schema
    return table


@dataclass(frozen=True)
class _Body:
    """What columns-json says."""

    columns: tuple[Column, ...]
    indexes: tuple[Index, ...]
    handle_key: tuple[str, ...]
    pk_is_handle: bool
    is_common_handle: bool

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        return _arrow_schema(self.columns)


# Many a database has a table per customer or month, with the same columns in all of them.
@lru_cache(maxsize=256)
def _body(columns_json: bytes) -> _Body:
    document = read_object(columns_json, _BODY, 0)
    columns = [_column(item) for item in _objects(document, "cols")]
    by_id = {column.id: column.name for column in columns}
    if len({column.name for column in columns}) != len(columns) or len(by_id) != len(columns):
        raise InvalidField("TableInfo: two columns with the same name or id")
    types_in_chunk = document.get("row_col_field_tps_slice")
    if isinstance(types_in_chunk, list) and len(types_in_chunk) != len(columns):
        raise InvalidField(
            "TableInfo: the chunk has another number of columns than the table",
            expected=len(columns),
            actual=len(types_in_chunk),
        )
    indexes = tuple(_index(item) for item in _objects(document, "index_info"))
    unknown = {column for index in indexes for column in index.columns} - set(by_id.values())
    if unknown:
        raise InvalidField(f"TableInfo: an index on unknown columns {sorted(unknown)}")
    pk_is_handle = _get(document, "pk_is_handle", bool, False)
    if document.get("handle_key_id_list") is None:
        key = handle_key(tuple(columns), indexes, pk_is_handle)
    else:
        key_ids = _get(document, "handle_key_id_list", list)
        if not all(isinstance(key_id, int) and key_id in by_id for key_id in key_ids):
            raise InvalidField(
                "TableInfo: the handle key names columns that the table does not have", actual=key_ids
            )
        key = tuple(by_id[key_id] for key_id in key_ids)
    return _Body(
        columns=tuple(
            replace(column, is_handle_key=True) if column.name in key else column for column in columns
        ),
        indexes=indexes,
        handle_key=key,
        pk_is_handle=pk_is_handle,
        is_common_handle=_get(document, "is_common_handle", bool, False),
    )


def _column(item: dict) -> Column:
    kind = _get(item, "type", dict)
    return Column(
        id=_get(item, "id", int),
        name=_name(item, "name"),
        offset=_get(item, "offset", int),
        mysql_type=_get(kind, "Tp", int),
        flag=_get(kind, "Flag", int, 0),
        flen=_get(kind, "Flen", int, types.UNSPECIFIED),
        decimal=_get(kind, "Decimal", int, types.UNSPECIFIED),
        charset=_get(kind, "Charset", str, ""),
        collate=_get(kind, "Collate", str, ""),
        elems=_words(kind, "Elems"),
        default=_default(item, "default"),
        origin_default=_default(item, "origin_default"),
        default_bit=_base64(item, "default_bit"),
        origin_default_bit=_base64(item, "origin_default_bit"),
        generated_expr=_get(item, "generated_expr_string", str, ""),
        is_stored_generated=_get(item, "generated_stored", bool, False),
        hidden=_get(item, "hidden", bool, False),
        state=_get(item, "state", int, PUBLIC),
        comment=_get(item, "comment", str, ""),
    )


def can_be_default(value: Any) -> bool:
    """Whether a JSON value can be the default of a column: none, a text, a truth value or a number of 64 bits."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return value in _DEFAULT_INTEGERS
    return value is None or isinstance(value, str)


def _default(item: dict, key: str) -> str | int | float | bool | None:
    value = item.get(key)
    if not can_be_default(value):
        raise InvalidField(
            f"TableInfo: {key!r} cannot be {value!r:.60}",
            expected="a text or a number of 64 bits",
            actual=f"{value!r:.60}",
        )
    return value


def _base64(item: dict, key: str) -> str | None:
    text = _get(item, key, str, None)
    if text is None:
        return None
    try:
        b64decode(text, validate=True)
    except ValueError:
        raise InvalidField(
            f"TableInfo: {key!r} cannot be {text!r:.60}", expected="base64", actual=f"{text!r:.60}"
        ) from None
    return text


def _index(item: dict) -> Index:
    columns = _objects(item, "idx_cols")
    lengths = tuple(_get(column, "length", int, types.UNSPECIFIED) for column in columns)
    return Index(
        name=_name(item, "idx_name"),
        columns=tuple(_name(column, "name") for column in columns),
        is_unique=_get(item, "is_unique", bool, False),
        is_primary=_get(item, "is_primary", bool, False),
        id=_get(item, "id", int, 0),
        lengths=lengths if set(lengths) - {types.UNSPECIFIED} else (),
    )
