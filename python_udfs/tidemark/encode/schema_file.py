"""Schema files: what a table or database looks like after a DDL statement, as JSON, and the hash in their names.

    {"Table","Schema","Version":1,"TableVersion","Query","Type","TableColumns":[…]|null,"TableColumnsTotal"}

A column has ColumnName and ColumnType and, where they apply, ColumnId, ColumnDefault, ColumnLength, ColumnPrecision, ColumnScale,
ColumnNullable "false", ColumnIsPk "true", ColumnIsVirtual "true" and ColumnElems. All values are text. Two forms, by compat:

| | design | ticdc |
|---|---|---|
| text, binary | ColumnLength | ColumnPrecision |
| JSON | ColumnLength | nothing |
| BIT | `BIT` | `BIT UNSIGNED` |
| YEAR | `YEAR` | `YEAR UNSIGNED`, ColumnPrecision 4 |
| virtual generated column | ColumnIsVirtual | nothing |
| TableColumnsTotal of a table | text | number |

The design document has neither ColumnDefault nor ColumnElems; they are written in both forms, because without the members of an ENUM its rows cannot be
read back, and without the default the hash cannot be verified. ColumnIsVirtual is ours: data files leave such columns out, and without it a CSV line
could not be read back.

The hash is the CRC-32 of the indented JSON of {Table, Schema, Version 0, TableColumns in the ticdc form sorted by name, TableColumnsTotal}: it
does not depend on compat, so a tree does not get new schema files when the setting changes.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import dataclass, field
from typing import Any

from tidemark.encode import paths, types
from tidemark.encode.ddl import DdlStatement
from tidemark.encode.errors import InvalidSchemaFile
from tidemark.encode.types import Shape
from tidemark.wire import types as wire
from tidemark.wire.errors import InvalidField
from tidemark.wire.json_text import read_object
from tidemark.wire.table_info import Column, TableInfo, can_be_default

FORMAT_VERSION = 1
# Python's stand-ins for bytes that are no UTF-8.
_BROKEN = re.compile("[\ud800-\udfff]")
_GO_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})
_UNSIGNED = " UNSIGNED"
# No more digits than 64 bits take.
_INTEGER = re.compile("-?[0-9]{1,20}")


@dataclass(frozen=True)
class SchemaFile:
    schema: str
    # "" for a database.
    table: str
    table_version: int
    query: str = ""
    type: int = 0
    columns: tuple[Column, ...] = ()
    column_ids: bool = field(default=False, compare=False)

    @classmethod
    def of_ddl(cls, ddl: DdlStatement, column_ids: bool = False) -> SchemaFile:
        """The file that a DDL statement leaves."""
        schema, table, columns = ddl.schema, ddl.table, ()
        if ddl.table_info is not None:
            info = ddl.table_info
            schema, table, columns = info.target_schema, info.target_table, info.columns
        return cls(schema, table, ddl.finished_ts, ddl.query, ddl.type, columns, column_ids)

    @classmethod
    def of_table(cls, table: TableInfo, version: int, column_ids: bool = False) -> SchemaFile:
        """The file of a table that no DDL statement was seen for."""
        return cls(
            table.target_schema, table.target_table, version, columns=table.columns, column_ids=column_ids
        )

    @classmethod
    def parse(cls, content: bytes) -> SchemaFile:
        """A schema file of either form."""
        try:
            document = read_object(content, "a schema file", 0)
        except InvalidField as error:
            raise InvalidSchemaFile(error.message) from None
        items = _get(document, "TableColumns", list, [])
        if not all(isinstance(item, dict) for item in items):
            raise InvalidSchemaFile("a schema file: 'TableColumns' must hold objects")
        columns = tuple(_parse_column(item, place) for place, item in enumerate(items))
        total = _integer(document, "TableColumnsTotal")
        parsed = cls(
            _get(document, "Schema", str),
            _get(document, "Table", str),
            _integer(document, "TableVersion"),
            _get(document, "Query", str, ""),
            _integer(document, "Type", 0),
            columns,
            any("ColumnId" in item for item in items),
        )
        if total != len(columns):
            raise InvalidSchemaFile(f"a schema file announces {total} columns and lists {len(columns)}")
        return parsed

    def content(self, *, design: bool = True) -> bytes:
        columns = [_column(column, self.column_ids, design) for column in self.columns]
        total = str(len(columns)) if design and columns else len(columns)
        return _indented(
            {
                "Table": self.table,
                "Schema": self.schema,
                "Version": FORMAT_VERSION,
                "TableVersion": self.table_version,
                "Query": self.query,
                "Type": self.type,
                "TableColumns": columns or None,
                "TableColumnsTotal": total,
            }
        )

    def checksum(self) -> int:
        """The hash in the file's name."""
        columns = [_column(column, self.column_ids, design=False) for column in self.columns]
        # Go compares strings by their bytes.
        columns.sort(key=lambda column: column["ColumnName"].encode("utf-8", "surrogateescape"))
        document = {
            "Table": self.table,
            "Schema": self.schema,
            "Version": 0,
            "TableColumns": columns,
            "TableColumnsTotal": len(columns),
        }
        return zlib.crc32(_indented(document))

    def path(self, table_id: int | None = None, *, encode: bool = True) -> str:
        """Below the prefix; with a table id, under it. A database is always under its name."""
        if self.table and not self.columns:
            raise InvalidSchemaFile(
                f"table {self.schema}.{self.table} has no columns: a schema file cannot describe it"
            )
        return paths.schema_file(
            self.schema, self.table, self.table_version, self.checksum(), table_id, encode=encode
        )

    def verify(self, path: str) -> None:
        """Raise unless the content is what the path says."""
        version, checksum = paths.parse_schema_file(path)
        if (version, checksum) != (self.table_version, self.checksum()):
            raise InvalidSchemaFile(
                f"{path}: the name says version {version} and hash {checksum:010d}, "
                f"the content is version {self.table_version} and hash {self.checksum():010d}"
            )

    def table_info(self, table_id: int = 0) -> TableInfo:
        """The table as far as a schema file tells: enough to read data files."""
        return TableInfo.build(
            self.schema, self.table, table_id, self.table_version, columns=self.columns, pk_is_handle=True
        )


def _column(column: Column, column_id: bool, design: bool) -> dict[str, Any]:
    """Fields in the order of the file; those that do not apply are left out."""
    shape = types.mapping(column).shape
    says_unsigned = column.is_unsigned and not (design and shape in (Shape.BIT, Shape.YEAR))
    has_length = shape in (Shape.CHARS, Shape.BLOB, Shape.JSON)
    has_precision = shape in (Shape.INTEGER, Shape.BIT, Shape.REAL, Shape.DECIMAL)
    if not design:
        has_precision |= shape in (Shape.CHARS, Shape.BLOB, Shape.YEAR)
    has_scale = shape is Shape.DECIMAL or (shape in (Shape.REAL, Shape.FSP) and types.has_own_scale(column))
    default = _default(column)
    fields = {
        "ColumnId": str(column.id) if column_id else None,
        "ColumnName": column.name,
        "ColumnType": types.base_name(column).upper() + (_UNSIGNED if says_unsigned else ""),
        "ColumnDefault": default,
        "ColumnLength": str(types.length(column)) if design and has_length else None,
        "ColumnPrecision": str(types.length(column)) if has_precision else None,
        "ColumnScale": str(types.scale(column)) if has_scale else None,
        "ColumnNullable": "false" if column.is_not_null else None,
        "ColumnIsPk": "true" if column.is_primary_key else None,
        "ColumnIsVirtual": "true" if design and column.is_virtual_generated else None,
        "ColumnElems": list(column.elems) if shape is Shape.MEMBERS and column.elems else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _default(column: Column) -> Any:
    if types.mapping(column).shape is Shape.BIT and column.default_bit is not None:
        return base64.b64decode(column.default_bit).decode("utf-8", "surrogateescape")
    return column.default


# Type name -> (MySQL type number, whether it is the name for the binary charset).
_NUMBERS = {row.name.upper(): (number, False) for number, row in reversed(types.TYPES.items())}
_NUMBERS |= {
    row.binary_name.upper(): (number, True) for number, row in types.TYPES.items() if row.binary_name
}


def _parse_column(item: dict[str, Any], place: int) -> Column:
    name, words = _get(item, "ColumnName", str), _get(item, "ColumnType", str)
    base = words.removesuffix(_UNSIGNED)
    if base not in _NUMBERS:
        raise InvalidSchemaFile(f"column {name!r:.80}: unknown type {words!r:.80}")
    number, is_binary = _NUMBERS[base]
    row = types.TYPES[number]
    flag = 0
    if words != base or row.shape in (Shape.BIT, Shape.YEAR):
        flag |= wire.UNSIGNED
    if item.get("ColumnIsPk") == "true":
        flag |= wire.PRIMARY_KEY
    if item.get("ColumnNullable") == "false":
        flag |= wire.NOT_NULL
    if is_binary:
        flag |= wire.BINARY
    is_text = row.shape in (Shape.CHARS, Shape.BLOB, Shape.MEMBERS) and not is_binary
    length = _integer(item, "ColumnPrecision", row.flen)
    default, default_bit = item.get("ColumnDefault"), None
    if not can_be_default(default):
        raise InvalidSchemaFile(f"column {name!r:.80}: 'ColumnDefault' cannot be {default!r:.60}")
    elems = _get(item, "ColumnElems", list, [])
    if not all(isinstance(elem, str) for elem in elems):
        raise InvalidSchemaFile(f"column {name!r:.80}: 'ColumnElems' must hold texts")
    if row.shape is Shape.BIT and isinstance(default, str):
        # Bytes that are no UTF-8 were written as U+FFFD; which ones is lost, but not that there were any.
        default = default.replace("\ufffd", "\udcff")
        default_bit = base64.b64encode(default.encode("utf-8", "surrogateescape")).decode()
    return Column(
        id=_integer(item, "ColumnId", place + 1),
        name=name,
        offset=place,
        mysql_type=number,
        flag=flag,
        flen=_integer(item, "ColumnLength", length),
        decimal=_integer(item, "ColumnScale", row.decimal),
        charset="utf8mb4" if is_text else wire.BINARY_CHARSET,
        collate="utf8mb4_bin" if is_text else wire.BINARY_CHARSET,
        elems=tuple(elems),
        default=default,
        default_bit=default_bit,
        # The expression is not in the file; that there is one is.
        generated_expr="?" if item.get("ColumnIsVirtual") == "true" else "",
    )


def _get(item: dict[str, Any], key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
    """The value under `key` if it has the right type; `default`, if there is one, where the key is absent or null."""
    value = default if item.get(key) is None else item[key]
    if value is None:
        raise InvalidSchemaFile(f"a schema file without {key!r}")
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InvalidSchemaFile(f"a schema file: {key!r} cannot be {value!r:.60}")
    return value


def _integer(item: dict[str, Any], key: str, default: int | None = None) -> int:
    """An integer, as a number or as text."""
    value = _get(item, key, (int, str), default)
    if not _INTEGER.fullmatch(str(value)):
        raise InvalidSchemaFile(f"a schema file: {key!r} cannot be {value!r:.60}")
    return int(value)


def _indented(document: dict[str, Any]) -> bytes:
    """Go's MarshalIndent with four spaces."""
    text = json.dumps(document, ensure_ascii=False, indent=4).translate(_GO_ESCAPES)
    return _BROKEN.sub(r"\\ufffd", text).encode()
