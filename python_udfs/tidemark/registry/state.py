"""What a registry holds, and its rules, in memory.

A subject has versions 1, 2, 3, each a schema. A schema has one id wherever it is registered. Registering what a subject already has gives the
known id and changes nothing; anything else must be allowed by the subject's compatibility level, or the registry's where it has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tidemark.registry.avro_types import canonical, parse
from tidemark.registry.compatibility import DEFAULT_LEVEL, LEVELS, Mismatch, incompatibilities
from tidemark.registry.errors import (
    IncompatibleSchema,
    InvalidLevel,
    InvalidVersion,
    NoSubjectLevel,
    SchemaNotFound,
    SubjectNotFound,
    VersionNotFound,
)

LATEST = "latest"
_MAX_VERSION = 2**31 - 1


@dataclass(frozen=True)
class SubjectVersion:
    subject: str
    version: int
    id: int
    schema: str


@dataclass
class RegistryState:
    level: str = DEFAULT_LEVEL
    levels: dict[str, str] = field(default_factory=dict)
    registered: dict[str, list[SubjectVersion]] = field(default_factory=dict)

    def register(self, subject: str, schema: str) -> SubjectVersion:
        parse(schema)
        known = self.find(subject, schema)
        if known is not None:
            return known
        found = self.incompatibilities(subject, schema)
        if found:
            details = "; ".join(map(str, found))
            raise IncompatibleSchema(
                f"the schema is incompatible with an earlier one (compatibility {self.compatibility(subject)}): {details}",
                subject=subject,
            )
        versions = self.registered.setdefault(subject, [])
        made = SubjectVersion(subject, len(versions) + 1, self._id_for(schema), schema)
        versions.append(made)
        return made

    def incompatibilities(
        self, subject: str, schema: str, against: int | str | None = None
    ) -> list[Mismatch]:
        """Why the schema would be refused. `against`: compare with this version only."""
        level = self.compatibility(subject)
        if against is None:
            olds = [version.schema for version in self.registered.get(subject, ())]
        else:
            olds = [self.version(subject, against).schema]
        return incompatibilities(schema, olds, level)

    def find(self, subject: str, schema: str) -> SubjectVersion | None:
        """The version of a subject that is this schema, or None."""
        wanted = canonical(schema)
        versions = reversed(self.registered.get(subject, []))
        return next((version for version in versions if canonical(version.schema) == wanted), None)

    def lookup(self, subject: str, schema: str) -> SubjectVersion:
        """As `find`; an error where there is none."""
        self.versions(subject)
        known = self.find(subject, schema)
        if known is None:
            raise SchemaNotFound("Schema not found", subject=subject)
        return known

    def schema(self, schema_id: int) -> str:
        for version in self._all():
            if version.id == schema_id:
                return version.schema
        raise SchemaNotFound("Schema not found", schema_id=schema_id)

    def uses(self, schema_id: int) -> list[SubjectVersion]:
        """Where a schema is registered."""
        self.schema(schema_id)
        return [version for version in self._all() if version.id == schema_id]

    def subjects(self) -> list[str]:
        return sorted(self.registered)

    def versions(self, subject: str) -> list[int]:
        if subject not in self.registered:
            raise SubjectNotFound("Subject not found", subject=subject)
        return [version.version for version in self.registered[subject]]

    def version(self, subject: str, version: int | str = LATEST) -> SubjectVersion:
        versions = self.versions(subject)
        number = versions[-1] if version in (LATEST, -1, "-1") else version
        if not str(number).isdecimal() or not 1 <= int(number) <= _MAX_VERSION:
            raise InvalidVersion(
                f"The specified version {version!r} is not a valid version id", subject=subject
            )
        if int(number) not in versions:
            raise VersionNotFound(f"Version {number} not found", subject=subject)
        return self.registered[subject][int(number) - 1]

    def compatibility(self, subject: str | None = None, *, own: bool = False) -> str:
        """The level of a subject, else that of the registry. `own`: an error where the subject has none of its own."""
        if subject is None:
            return self.level
        if own and subject not in self.levels:
            raise NoSubjectLevel(
                "Subject does not have subject-level compatibility configured", subject=subject
            )
        return self.levels.get(subject, self.level)

    def set_compatibility(self, level: str, subject: str | None = None) -> None:
        if level not in LEVELS:
            raise InvalidLevel(f"Invalid compatibility level {level!r}; allowed: {', '.join(LEVELS)}")
        if subject is None:
            self.level = level
        else:
            self.levels[subject] = level

    def copy(self) -> RegistryState:
        registered = {subject: list(versions) for subject, versions in self.registered.items()}
        return RegistryState(self.level, dict(self.levels), registered)

    def document(self) -> dict[str, Any]:
        """As JSON. Each schema is written once."""
        schemas = {str(version.id): version.schema for version in self._all()}
        subjects = {
            subject: [version.id for version in versions] for subject, versions in self.registered.items()
        }
        return {
            "compatibility": self.level,
            "levels": dict(self.levels),
            "schemas": schemas,
            "subjects": subjects,
        }

    @classmethod
    def of(cls, document: dict[str, Any]) -> RegistryState:
        """The state that a document describes; KeyError, TypeError or ValueError where it describes none."""
        schemas = {int(schema_id): schema for schema_id, schema in document["schemas"].items()}
        registered = {
            subject: [
                SubjectVersion(subject, number, schema_id, schemas[schema_id])
                for number, schema_id in enumerate(ids, 1)
            ]
            for subject, ids in document["subjects"].items()
        }
        return cls(document["compatibility"], dict(document["levels"]), registered)

    def _all(self) -> Iterable[SubjectVersion]:
        return (version for versions in self.registered.values() for version in versions)

    def _id_for(self, schema: str) -> int:
        wanted, highest = canonical(schema), 0
        for version in self._all():
            if canonical(version.schema) == wanted:
                return version.id
            highest = max(highest, version.id)
        return highest + 1
