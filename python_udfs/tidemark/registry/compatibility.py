"""Whether data written with one Avro schema can be read with another (the schema resolution of the Avro specification).

    same type                                 int -> long, float, double; long -> float, double; float -> double
    bytes <-> string                          records: same name; each field of the reader is in the writer or has a default
    enums: same name; the writer's symbols are known, or the reader has a default          fixed: same name and size
    the writer's union: each branch can be read                                           the reader's union: some branch can read

A level says which of (new schema, old schema) is reader and which is writer: BACKWARD reads old data with the new schema, FORWARD new data with
the old one, FULL both. Without _TRANSITIVE only the latest version counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.registry.avro_types import AvroType, parse

LEVELS = (
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
)
DEFAULT_LEVEL = "BACKWARD"

_PROMOTIONS = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}


@dataclass(frozen=True)
class Mismatch:
    # Words of the Confluent registry, such as READER_FIELD_MISSING_DEFAULT_VALUE.
    kind: str
    # Of the field that cannot be read, such as /total.
    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kind} at {self.path or '/'}: {self.reason}"


def incompatibilities(new: str, olds: Sequence[str], level: str = DEFAULT_LEVEL) -> list[Mismatch]:
    """Why the level does not allow `new` after `olds` (the oldest first)."""
    direction, _, transitive = level.partition("_")
    candidate = parse(new)
    found: list[Mismatch] = []
    if direction == "NONE":
        return found
    for old in olds if transitive else olds[-1:]:
        known = parse(old)
        if direction in ("BACKWARD", "FULL"):
            found += mismatches(candidate, known)
        if direction in ("FORWARD", "FULL"):
            found += mismatches(known, candidate)
    return list(dict.fromkeys(found))


def mismatches(reader: AvroType, writer: AvroType) -> list[Mismatch]:
    """Why data of `writer` cannot be read with `reader`; empty when it can."""
    return _Comparison().compare(reader, writer, "")


class _Comparison:
    def __init__(self) -> None:
        # Pairs that are being compared: a record may contain itself.
        self._open: set[tuple[int, int]] = set()

    def compare(self, reader: AvroType, writer: AvroType, path: str) -> list[Mismatch]:
        pair = (id(reader), id(writer))
        if pair in self._open:
            return []
        self._open.add(pair)
        try:
            return self._compare(reader, writer, path)
        finally:
            self._open.discard(pair)

    def _compare(self, reader: AvroType, writer: AvroType, path: str) -> list[Mismatch]:
        if writer.kind == "union":
            return [
                Mismatch(
                    "MISSING_UNION_BRANCH",
                    path,
                    f"the branch {branch} of the writer cannot be read: {first.reason}",
                )
                for branch in writer.members
                for first in self.compare(reader, branch, path)[:1]
            ]
        if reader.kind == "union":
            if any(not self.compare(branch, writer, path) for branch in reader.members):
                return []
            branches = ", ".join(map(str, reader.members))
            return [
                Mismatch(
                    "MISSING_UNION_BRANCH", path, f"no branch of the reader ({branches}) can read {writer}"
                )
            ]
        if reader.kind != writer.kind:
            if writer.kind in _PROMOTIONS.get(reader.kind, ()):
                return []
            return [Mismatch("TYPE_MISMATCH", path, f"{writer} cannot be read as {reader}")]
        if reader.kind in ("array", "map"):
            return self.compare(reader.members[0], writer.members[0], f"{path}/*")
        if reader.kind not in ("record", "enum", "fixed"):
            return []
        found = []
        if reader.name != writer.name and writer.full_name not in reader.aliases:
            found.append(Mismatch("NAME_MISMATCH", path, f"{writer} cannot be read as {reader}"))
        if reader.kind == "record":
            return found + self._fields(reader, writer, path)
        return found + _enum_or_fixed(reader, writer, path)

    def _fields(self, reader: AvroType, writer: AvroType, path: str) -> list[Mismatch]:
        written = {one.name: one for one in writer.fields}
        found = []
        for one in reader.fields:
            source = next((written[name] for name in (one.name, *one.aliases) if name in written), None)
            here = f"{path}/{one.name}"
            if source is not None:
                found += self.compare(one.type, source.type, here)
            elif not one.has_default:
                reason = (
                    f"the reader has the field {one.name!r} without a default, the writer does not have it"
                )
                found.append(Mismatch("READER_FIELD_MISSING_DEFAULT_VALUE", here, reason))
        return found


def _enum_or_fixed(reader: AvroType, writer: AvroType, path: str) -> list[Mismatch]:
    if reader.kind == "fixed":
        if reader.size == writer.size:
            return []
        return [Mismatch("FIXED_SIZE_MISMATCH", path, f"{writer.size} bytes cannot be read as {reader.size}")]
    unknown = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
    if not unknown or reader.default_symbol is not None:
        return []
    return [Mismatch("MISSING_ENUM_SYMBOLS", path, f"the reader does not know {', '.join(unknown)}")]
