"""What a registry may answer instead of a result, with the numbers of the Confluent API."""

from __future__ import annotations

from tidemark.errors import TidemarkError


class RegistryError(TidemarkError):
    """A registry did not do what it was asked for."""

    # The number in the answer, and the HTTP status that it comes with.
    code = 50001
    status = 500

    def __init__(
        self, reason: str, *, subject: str = "", schema_id: int | None = None, code: int | None = None
    ):
        super().__init__(reason)
        self.reason, self.subject, self.schema_id = reason, subject, schema_id
        self.code = self.code if code is None else code
        # The table whose rows needed the schema, as schema.table.
        self.table = ""

    def __str__(self) -> str:
        about = [f"table {self.table}"] * bool(self.table) + [f"subject {self.subject!r}"] * bool(
            self.subject
        )
        about += [f"schema id {self.schema_id}"] * (self.schema_id is not None)
        where = f"{', '.join(about)}: " if about else ""
        return f"schema registry: {where}{self.reason} (code {self.code})"


class SubjectNotFound(RegistryError):
    code, status = 40401, 404


class VersionNotFound(RegistryError):
    code, status = 40402, 404


class SchemaNotFound(RegistryError):
    code, status = 40403, 404


class NoSubjectLevel(RegistryError):
    """The subject has no compatibility level of its own."""

    code, status = 40408, 404


class IncompatibleSchema(RegistryError):
    """The subject's compatibility level does not allow the schema."""

    code, status = 409, 409


class InvalidSchema(RegistryError):
    code, status = 42201, 422


class InvalidVersion(RegistryError):
    code, status = 42202, 422


class InvalidLevel(RegistryError):
    code, status = 42203, 422


class Unauthorized(RegistryError):
    code, status = 40101, 401


class RegistryUnreachable(RegistryError):
    """No answer, also after the retries."""

    code, status = 50302, 503


class DamagedRegistry(RegistryError):
    """The file of an embedded registry cannot be read."""


BY_CODE = {
    kind.code: kind
    for kind in (
        SubjectNotFound,
        VersionNotFound,
        SchemaNotFound,
        NoSubjectLevel,
        IncompatibleSchema,
        InvalidSchema,
        InvalidVersion,
        InvalidLevel,
        Unauthorized,
    )
}
