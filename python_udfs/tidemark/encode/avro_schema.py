"""Avro schemas of a table version: the record of its key and the record of its value.

    record := {"type":"record","name":table,"namespace":keyspace.schema,"fields":[field,…]}
    field  := {["default":value,]"name":column,"type":block | ["null",block] | [block,"null"]}
    block  := {"type":avro type,"connect.parameters":{["allowed"|"length":…,]"tidb_type":…}[,"logicalType":"decimal","precision":p,"scale":s]}

The key has the columns of the handle key: the primary key, else a NOT NULL unique key; with `compat: ticdc` of a primary key only. A table without
one has no key record. The value has all columns, virtual generated ones too (they
are null), and with enable-tidb-extension the three fields `_tidb_op`, `_tidb_commit_ts` and `_tidb_commit_physical_time`. A nullable column is a
union with null. A union's default belongs to its first branch, so null comes first unless the column has a default; decimals as bytes never carry one.

In a name, each character that Avro does not allow becomes `_`; a leading digit gets a `_` in front. Registries compare schemas as text, so
the text is the one that TiCDC sends, byte for byte.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from tidemark.encode import types
from tidemark.encode.errors import EncodeError
from tidemark.wire import types as wire
from tidemark.wire.table_info import Column, TableInfo
from tidemark.wire.table_json import go_json
from tidemark.wire.types import Kind

if TYPE_CHECKING:
    from tidemark.config import Settings

DEFAULT_KEYSPACE = "default"
OP, COMMIT_TS, PHYSICAL_TIME = "_tidb_op", "_tidb_commit_ts", "_tidb_commit_physical_time"
EXTENSION_FIELDS = (
    f'{{"default":"","name":"{OP}","type":"string"}}',
    f'{{"default":0,"name":"{COMMIT_TS}","type":"long"}}',
    f'{{"default":0,"name":"{PHYSICAL_TIME}","type":"long"}}',
)

_NOT_IN_NAMES = re.compile("[^A-Za-z0-9_]")
_INTEGER = re.compile("[+-]?[0-9]+")
# What Go reads as a float, but for hexadecimal forms. Python also takes underscores, spaces and the digits of other scripts.
_FLOAT = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE
)
# Go writes a float with an exponent outside of this range.
_PLAIN_FLOATS = (1e-6, 1e21)
# Bits of the integers that a default of the type may be.
_DEFAULT_BITS = {
    wire.TINYINT: 32,
    wire.SMALLINT: 32,
    wire.MEDIUMINT: 32,
    wire.YEAR: 32,
    wire.INT: 64,
    wire.BIGINT: 64,
}


class NoAvroSchema(EncodeError):
    """A table version that has no Avro schema."""


@dataclass(frozen=True)
class AvroOptions:
    """What the settings say about Avro."""

    precise_decimals: bool = True
    long_bigints: bool = True
    extension: bool = False
    keyspace: str = DEFAULT_KEYSPACE
    float_as_double: bool = False
    handle_keys: bool = False

    @classmethod
    def of(cls, settings: Settings, keyspace: str = DEFAULT_KEYSPACE) -> AvroOptions:
        options = settings.uri.options
        return cls(
            options.avro_decimal_handling_mode == "precise",
            options.avro_bigint_unsigned_handling_mode == "long",
            options.enable_tidb_extension,
            keyspace,
            settings.compat.avro_float_as_double,
            settings.compat.avro_handle_keys,
        )

    def avro_type(self, column: Column) -> str:
        if column.kind is Kind.DECIMAL and not self.precise_decimals:
            return "string"
        if column.mysql_type == wire.BIGINT and column.is_unsigned and not self.long_bigints:
            return "string"
        if column.kind is Kind.FLOAT and self.float_as_double:
            return "double"
        return types.avro_type(column)


@dataclass(frozen=True)
class AvroField:
    """One column of a record."""

    # In the table's columns.
    position: int
    column: Column
    name: str
    avro_type: str
    # The position of null in the union; None where the column is no union.
    null_branch: int | None


@dataclass(frozen=True)
class RecordSchema:
    fields: tuple[AvroField, ...]
    text: str


def key_schema(
    table: TableInfo, options: AvroOptions, positions: list[int] | None = None
) -> RecordSchema | None:
    """The record of the key, of `positions` only if given; None where the table has no key that counts."""
    chosen = range(len(table.columns)) if positions is None else positions
    keys = [
        position
        for position, column in enumerate(table.columns)
        if (column.is_handle_key if options.handle_keys else column.is_primary_key)
    ]
    if not keys:
        return None
    return _record(table, [position for position in keys if position in chosen], options, ())


def value_schema(table: TableInfo, options: AvroOptions, positions: list[int] | None = None) -> RecordSchema:
    """The record of the value, of `positions` only if given."""
    chosen = range(len(table.columns)) if positions is None else positions
    return _record(table, list(chosen), options, EXTENSION_FIELDS if options.extension else ())


def subjects(topic: str) -> tuple[str, str]:
    """The subjects of key and value (TopicNameStrategy). A dot has a meaning for some connectors, so it becomes `_`."""
    name = topic.replace(".", "_")
    return f"{name}-key", f"{name}-value"


def avro_name(name: str) -> str:
    clean = _NOT_IN_NAMES.sub("_", name)
    return f"_{clean}" if clean[:1].isdigit() else clean


def namespace(keyspace: str, schema: str) -> str:
    return ".".join(avro_name(part) for part in (keyspace, schema) if part)


def _record(
    table: TableInfo, positions: list[int], options: AvroOptions, more: tuple[str, ...]
) -> RecordSchema:
    where = f"table {table.schema}.{table.table}"
    if not positions:
        raise NoAvroSchema(f"{where}: no column is left for an Avro record; check column-selectors")
    fields, texts = [], []
    for position in positions:
        column = table.columns[position]
        try:
            default = _default(column, options)
        except ValueError as problem:
            raise NoAvroSchema(
                f"{where}, column {column.name!r}: the default {column.default!r} {problem}"
            ) from None
        field = _field(position, column, default, options)
        fields.append(field)
        texts.append(_field_text(field, default, options))
    names = [field.name for field in fields] + [json.loads(text)["name"] for text in more]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise NoAvroSchema(
            f"{where}: {count} fields would have the Avro name {name!r}; leave one out with column-selectors"
        )
    text = (
        f'{{"type":"record","name":{_text(avro_name(table.target_table))},'
        f'"namespace":{_text(namespace(options.keyspace, table.target_schema))},"fields":[{",".join([*texts, *more])}]}}'
    )
    return RecordSchema(tuple(fields), text)


def _field(position: int, column: Column, default: str | None, options: AvroOptions) -> AvroField:
    null_branch = None
    if not column.is_not_null:
        null_branch = 0 if default is None else 1
    return AvroField(position, column, avro_name(column.name), options.avro_type(column), null_branch)


def _field_text(field: AvroField, default: str | None, options: AvroOptions) -> str:
    block = _block(field, options)
    kind = {None: block, 0: f'["null",{block}]', 1: f'[{block},"null"]'}[field.null_branch]
    shown = "null" if default is None and field.null_branch == 0 else default
    head = "" if shown is None else f'"default":{shown},'
    return f'{{{head}"name":{_text(field.name)},"type":{kind}}}'


def _block(field: AvroField, options: AvroOptions) -> str:
    column = field.column
    parameters = f'"tidb_type":{_text(types.tidb_type(column))}'
    if column.kind is Kind.BIT:
        parameters = f'"length":"{types.length(column)}",{parameters}'
    elif column.kind in (Kind.ENUM, Kind.SET):
        parameters = f'"allowed":{_text(",".join(map(_member, column.elems)))},{parameters}'
    logical = ""
    if column.kind is Kind.DECIMAL and options.precise_decimals:
        precision, scale = wire.decimal_digits(column)
        logical = f',"logicalType":"decimal","precision":{precision},"scale":{scale}'
    return f'{{"type":"{field.avro_type}","connect.parameters":{{{parameters}}}{logical}}}'


def _member(name: str) -> str:
    return name.replace(",", "\\,").replace("\\'", "'").replace("''", "'")


def _default(column: Column, options: AvroOptions) -> str | None:
    """The JSON text of the column's default, or None. A ValueError says why the default has none."""
    if column.kind is Kind.DECIMAL and options.precise_decimals:
        return None
    if column.kind is Kind.BIT and column.default_bit is not None:
        return _text(column.default_bit)
    value = column.default
    if value is None:
        return None
    if not isinstance(value, str):
        return _plain_number(value)
    if column.kind is Kind.INTEGER:
        if column.mysql_type == wire.BIGINT and column.is_unsigned and not options.long_bigints:
            return _text(value)
        return str(_integer(value, column))
    if column.kind in (Kind.FLOAT, Kind.DOUBLE):
        return _float(value, column)
    if column.kind is Kind.BIT or types.holds_bytes(column):
        return f'"{b64encode(value.encode()).decode()}"'
    return _text(value)


def _integer(text: str, column: Column) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError("is not an integer")
    number, bits = int(text), _DEFAULT_BITS[column.mysql_type]
    if column.mysql_type == wire.BIGINT and column.is_unsigned:
        if text[0] in "+-" or number >= 1 << bits:
            raise ValueError("is not an unsigned integer of 64 bits")
        # Avro has no unsigned long: the number wraps as the values do.
        return number - (1 << bits) if number >= 1 << bits - 1 else number
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(f"does not fit into {bits} bits")
    if column.mysql_type == wire.INT and not column.is_unsigned:
        return (number + (1 << 31)) % (1 << 32) - (1 << 31)
    return number


def _float(text: str, column: Column) -> str:
    if not _FLOAT.fullmatch(text):
        raise ValueError("is not a number")
    number = float(text)
    if column.kind is Kind.FLOAT:
        with np.errstate(over="ignore"):
            number = float(np.float32(number))
    if not np.isfinite(number):
        raise ValueError("is out of range")
    return go_float(number)


def _plain_number(value: Any) -> str:
    return ("false", "true")[value] if isinstance(value, bool) else go_float(float(value))


def go_float(number: float) -> str:
    """A float as Go's JSON encoder writes it."""
    digits = Decimal(repr(number))
    if number == 0 or _PLAIN_FLOATS[0] <= abs(number) < _PLAIN_FLOATS[1]:
        text = f"{digits:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, exponent = f"{digits.normalize():e}".split("e")
    return f"{mantissa}e{int(exponent):+d}"


def _text(value: str) -> str:
    """One JSON string, as Go writes it."""
    return go_json(value).decode()
