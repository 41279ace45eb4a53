"""What a registry will say about the schemas of tables, before anything is sent.

The table versions are played in order against a copy of the registry's state. A version whose schema is refused changes nothing, as with a real
registry, so later versions are compared with the last one that was accepted; each reason is put down to the statement that brought it in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemark.encode.avro_schema import DEFAULT_KEYSPACE, RecordSchema
from tidemark.encode.avro_tables import AvroSchemas, SharedTopic
from tidemark.registry.errors import RegistryError, SubjectNotFound
from tidemark.registry.state import RegistryState, SubjectVersion
from tidemark.wire import types as wire
from tidemark.wire.table_info import TableInfo
from tidemark.wire.types import Kind

if TYPE_CHECKING:
    from tidemark.config import Settings
    from tidemark.registry.open import Registry

NEW_SUBJECT, NEW_VERSION, KNOWN, REFUSED, NO_SCHEMA = (
    "new subject",
    "new version",
    "known",
    "refused",
    "no schema",
)


@dataclass(frozen=True)
class TableVersion:
    table: TableInfo
    # The statement that made this version; empty for the first one.
    ddl: str = ""


@dataclass(frozen=True)
class Reason:
    text: str
    # The statement that brought it in.
    ddl: str


@dataclass(frozen=True)
class Forecast:
    """What becomes of one schema of one table version."""

    table: TableInfo
    ddl: str
    subject: str
    # None: the table version has no schema.
    schema: str | None
    # One of NEW_SUBJECT, NEW_VERSION, KNOWN, REFUSED, NO_SCHEMA.
    outcome: str
    # The version of the subject that the schema is or would be.
    version: int | None
    level: str
    reasons: tuple[Reason, ...] = ()
    # What the registry accepts although readers may be surprised.
    warnings: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        return self.outcome not in (REFUSED, NO_SCHEMA)


def forecast(
    versions: Iterable[TableVersion],
    state: RegistryState,
    settings: Settings,
    keyspace: str = DEFAULT_KEYSPACE,
) -> list[Forecast]:
    """One entry per table version and schema, in order, the key's before the value's. `state` is not changed."""
    state, schemas, found = state.copy(), AvroSchemas(settings, keyspace), []
    progress: dict[str, _Subject] = {}
    for version in versions:
        try:
            made = schemas.of(version.table)
        except SharedTopic as problem:
            found.append(
                Forecast(
                    version.table,
                    version.ddl,
                    "",
                    None,
                    NO_SCHEMA,
                    None,
                    "",
                    (Reason(str(problem), version.ddl),),
                )
            )
            continue
        for subject, schema in zip(made.subjects, (made.key, made.value), strict=True):
            if schema is not None:
                subject_progress = progress.setdefault(subject, _Subject(subject))
                found.append(subject_progress.play(version, schema, state))
    return found


def snapshot(registry: Registry, subjects: Iterable[str]) -> RegistryState:
    """What a registry holds under some subjects, for `forecast`."""
    state = RegistryState(level=registry.compatibility())
    for subject in subjects:
        try:
            numbers = registry.versions(subject)
        except SubjectNotFound:
            continue
        found = [registry.version(subject, number) for number in numbers]
        # Versions that were deleted leave gaps, which decide nothing.
        state.registered[subject] = [
            SubjectVersion(subject, place, one.id, one.schema) for place, one in enumerate(found, 1)
        ]
        level = registry.compatibility(subject)
        if level != state.level:
            state.levels[subject] = level
    return state


class _Subject:
    """What happened to one subject so far."""

    def __init__(self, name: str):
        self._name = name
        self._accepted: TableInfo | None = None
        # (kind, path) of a mismatch that is in force -> the statement that brought it in
        self._broken_by: dict[tuple[str, str], str] = {}

    def play(self, version: TableVersion, schema: RecordSchema | str, state: RegistryState) -> Forecast:
        level = state.compatibility(self._name)

        def entry(outcome: str, number: int | None, reasons: tuple[Reason, ...] = ()) -> Forecast:
            text = None if isinstance(schema, str) else schema.text
            warnings = (
                self._warnings(version.table) if outcome in (NEW_VERSION, KNOWN) and not reasons else ()
            )
            return Forecast(
                version.table, version.ddl, self._name, text, outcome, number, level, reasons, warnings
            )

        if isinstance(schema, str):
            return entry(NO_SCHEMA, None, (Reason(schema, version.ddl),))
        before = len(state.registered.get(self._name, ()))
        known = state.find(self._name, schema.text)
        mismatches = [] if known else state.incompatibilities(self._name, schema.text)
        if mismatches:
            keys = [(mismatch.kind, mismatch.path) for mismatch in mismatches]
            self._broken_by = {key: self._broken_by.get(key, version.ddl) for key in keys}
            reasons = (
                Reason(str(one), self._broken_by[key]) for one, key in zip(mismatches, keys, strict=True)
            )
            return entry(REFUSED, before + 1, tuple(reasons))
        try:
            number = state.register(self._name, schema.text).version
        except RegistryError as problem:
            return entry(REFUSED, before + 1, (Reason(problem.reason, version.ddl),))
        made = entry(KNOWN if known else NEW_VERSION if before else NEW_SUBJECT, number)
        self._accepted, self._broken_by = version.table, {}
        return made

    def _warnings(self, table: TableInfo) -> tuple[str, ...]:
        """Registries do not look at the digits of a decimal."""
        if self._accepted is None:
            return ()
        old = {column.name: column for column in self._accepted.columns if column.kind is Kind.DECIMAL}
        return tuple(
            f"column {column.name!r}: decimal{was} became decimal{now}; a reader with the old schema gets wrong numbers"
            for column in table.columns
            if column.kind is Kind.DECIMAL and column.name in old
            for was, now in [(wire.decimal_digits(old[column.name]), wire.decimal_digits(column))]
            if was[1] != now[1]
        )
