"""Schema ids without a registry: 1, 2, 3 in the order in which a fresh registry would see the schemas."""

from __future__ import annotations


class SequentialIds:
    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], int] = {}

    def register(self, subject: str, schema: str) -> int:
        return self._ids.setdefault((subject, schema), len(self._ids) + 1)
