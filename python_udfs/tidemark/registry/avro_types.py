"""Avro schemas as types: parsed, names resolved, checked.

    schema := "primitive" | "name" | [schema,…] | {"type":…}                          (a list is a union)

Only what decides whether data can be read is kept: names, aliases, fields and their defaults, symbols, sizes. Logical types are not:
registries do not look at them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tidemark.registry.errors import InvalidSchema

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_FULL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_RANGES = {"int": 1 << 31, "long": 1 << 63}


@dataclass(eq=False)
class AvroType:
    # A primitive's name, or record, enum, fixed, array, map, union.
    kind: str
    full_name: str = ""
    aliases: tuple[str, ...] = ()
    fields: list[RecordField] = field(default_factory=list)
    symbols: tuple[str, ...] = ()
    # Of an enum: what stands for a symbol that is not known.
    default_symbol: str | None = None
    size: int = 0
    # Of an array or map: its one member; of a union: its branches.
    members: list[AvroType] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.full_name.rpartition(".")[2]

    def __str__(self) -> str:
        return self.full_name or self.kind


@dataclass(frozen=True, eq=False)
class RecordField:
    name: str
    aliases: tuple[str, ...]
    type: AvroType
    has_default: bool


def parse(text: str) -> AvroType:
    """The type that a schema describes, or InvalidSchema."""
    try:
        return _Parser().type(json.loads(text), "")
    except (ValueError, RecursionError) as problem:
        shown = "nested too deeply" if isinstance(problem, RecursionError) else problem
        raise InvalidSchema(f"Invalid schema: {shown}") from None


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """Two schemas are one when this is equal: neither white space nor the order of keys matters."""
    try:
        return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError) as problem:
        raise InvalidSchema(f"Invalid schema: {problem}") from None


class _Parser:
    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}

    def type(self, schema: Any, namespace: str) -> AvroType:
        if isinstance(schema, str):
            return self._by_name(schema, namespace)
        if isinstance(schema, list):
            return self._union(schema, namespace)
        if not isinstance(schema, dict):
            raise ValueError(f"{schema!r:.60} is no schema")
        kind = schema.get("type")
        if isinstance(kind, (dict, list)):
            return self.type(kind, namespace)
        if kind in ("record", "error"):
            return self._record(schema, namespace)
        if kind == "enum":
            return self._enum(schema, namespace)
        if kind == "fixed":
            return self._fixed(schema, namespace)
        if kind in ("array", "map"):
            member = "items" if kind == "array" else "values"
            if member not in schema:
                raise ValueError(f"an {kind} without {member!r}")
            return AvroType(kind, members=[self.type(schema[member], namespace)])
        if not isinstance(kind, str):
            raise ValueError("a schema without a type")
        return self._by_name(kind, namespace)

    def _by_name(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self._named.get(full) or self._named.get(name)
        if found is None:
            raise ValueError(f"the type {name!r} is not known")
        return found

    def _union(self, branches: list, namespace: str) -> AvroType:
        members = [self.type(branch, namespace) for branch in branches]
        if any(member.kind == "union" for member in members):
            raise ValueError("a union directly in a union")
        if len({str(member) for member in members}) != len(members):
            raise ValueError("a union with two branches of one type")
        return AvroType("union", members=members)

    def _declared(self, kind: str, schema: dict, namespace: str) -> AvroType:
        name, own = schema.get("name"), schema.get("namespace")
        if not isinstance(name, str) or not _FULL_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a name")
        if own is not None and (not isinstance(own, str) or (own and not _FULL_NAME.fullmatch(own))):
            raise ValueError(f"{own!r} is not a namespace")
        space = namespace if own is None else own
        full = name if "." in name or not space else f"{space}.{name}"
        if full in self._named:
            raise ValueError(f"the type {full!r} is declared twice")
        aliases = tuple(
            alias if "." in alias or not space else f"{space}.{alias}" for alias in _names(schema, "aliases")
        )
        made = self._named[full] = AvroType(kind, full, aliases)
        return made

    def _record(self, schema: dict, namespace: str) -> AvroType:
        record = self._declared("record", schema, namespace)
        fields = schema.get("fields")
        if not isinstance(fields, list):
            raise ValueError(f"the record {record} has no list of fields")
        inner = record.full_name.rpartition(".")[0]
        for item in fields:
            if not isinstance(item, dict) or "type" not in item:
                raise ValueError(f"the record {record} has a field without a type")
            name = item.get("name")
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise ValueError(f"the record {record} has a field of the name {name!r}")
            if any(name == known.name for known in record.fields):
                raise ValueError(f"the record {record} has two fields {name!r}")
            kind = self.type(item["type"], inner)
            if "default" in item and not _is_value(item["default"], kind):
                raise ValueError(
                    f"the default {item['default']!r:.60} of field {name!r} is no {_expected(kind)}"
                )
            record.fields.append(RecordField(name, _names(item, "aliases"), kind, "default" in item))
        return record

    def _enum(self, schema: dict, namespace: str) -> AvroType:
        enum = self._declared("enum", schema, namespace)
        enum.symbols = _names(schema, "symbols")
        if not enum.symbols or len(set(enum.symbols)) != len(enum.symbols):
            raise ValueError(f"the enum {enum} needs symbols that differ")
        enum.default_symbol = schema.get("default")
        if enum.default_symbol is not None and enum.default_symbol not in enum.symbols:
            raise ValueError(f"the default of the enum {enum} is none of its symbols")
        return enum

    def _fixed(self, schema: dict, namespace: str) -> AvroType:
        fixed, size = self._declared("fixed", schema, namespace), schema.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise ValueError(f"the fixed {fixed} has no size")
        fixed.size = size
        return fixed


def _names(schema: dict, key: str) -> tuple[str, ...]:
    found = schema.get(key, [])
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"{key!r} is not a list of names")
    return tuple(found)


def _expected(kind: AvroType) -> str:
    return str(kind.members[0]) if kind.kind == "union" and kind.members else str(kind)


def _is_value(value: Any, kind: AvroType) -> bool:
    """Whether a JSON value can be a default of the type. A union's default belongs to its first branch."""
    name = kind.kind
    if name == "union":
        return bool(kind.members) and _is_value(value, kind.members[0])
    if name == "null":
        return value is None
    if name == "boolean":
        return isinstance(value, bool)
    if name in _RANGES:
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        return is_integer and -_RANGES[name] <= value < _RANGES[name]
    if name in ("float", "double"):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == "array":
        return isinstance(value, list) and all(_is_value(item, kind.members[0]) for item in value)
    if name == "map":
        return isinstance(value, dict) and all(_is_value(item, kind.members[0]) for item in value.values())
    if name == "record":
        return isinstance(value, dict) and all(
            _is_value(value[one.name], one.type) if one.name in value else one.has_default
            for one in kind.fields
        )
    if name == "enum":
        return value in kind.symbols
    return isinstance(value, str)
