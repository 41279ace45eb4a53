"""What the process that published has to tell the one that holds the lease, in a file of the work folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from tidemark.encode.paths import WORK
from tidemark.sinks.storage.filesystem import Store

REPORT = f"{WORK}/report.json"


@dataclass(frozen=True)
class Report:
    # The range that was published, the row changes in it, and their data files.
    after_ts: int
    up_to_ts: int
    rows: int
    files: int
    warnings: list[str] = field(default_factory=list)


def write_report(store: Store, report: Report) -> None:
    store.write(REPORT, json.dumps(asdict(report)).encode())


def read_report(store: Store) -> Report | None:
    content = store.read_optional(REPORT)
    return None if content is None else Report(**json.loads(content))


def take_report(store: Store) -> Report | None:
    """The report, which is gone from the store then."""
    report = read_report(store)
    if report is not None:
        store.delete(REPORT)
    return report
