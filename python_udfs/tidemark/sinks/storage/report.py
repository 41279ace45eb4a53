"""What the process that published has to tell the one that holds the lease: warnings, in a file of the work folder."""

from __future__ import annotations

import json

from tidemark.encode.paths import WORK
from tidemark.sinks.storage.filesystem import Store

REPORT = f"{WORK}/report.json"


def write_report(store: Store, warnings: list[str]) -> None:
    if warnings:
        store.write(REPORT, json.dumps(warnings).encode())


def take_report(store: Store) -> list[str]:
    """The warnings, which are gone from the store then."""
    content = store.read_optional(REPORT)
    if content is None:
        return []
    store.delete(REPORT)
    return json.loads(content)
