"""A registry whose registrations can be shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

if TYPE_CHECKING:
    from tidemark.encode.avro import SchemaIds


@dataclass(frozen=True)
class Registration:
    id: int
    subject: str
    schema: str

    def document(self) -> dict[str, int | str]:
        path = f"/subjects/{quote_plus(self.subject)}/versions"
        return {"id": self.id, "request_path": path, "schema": self.schema, "subject": self.subject}


class Recorded:
    """Passes registrations on and keeps them until they are taken."""

    def __init__(self, registry: SchemaIds):
        self._registry = registry
        self._waiting: list[Registration] = []

    def register(self, subject: str, schema: str) -> int:
        schema_id = self._registry.register(subject, schema)
        self._waiting.append(Registration(schema_id, subject, schema))
        return schema_id

    def take(self) -> list[Registration]:
        """What was registered since the last call."""
        taken, self._waiting = self._waiting, []
        return taken
