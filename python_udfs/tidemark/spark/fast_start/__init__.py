"""What makes short runs start faster, and nothing else: every result is the same without it.

    classes    class_archive.py    Java maps the classes of a run from one file
    workers    worker_site,        Spark's Python processes load the installed pyspark, and what their workers need, once
               worker_imports.py
    ctes       inlining.py         models that ask for it (`inline_ctes`) run in a session that puts CTEs in place as it reads them

The environment variable TIDEMARK_FAST_START turns it off (`off`), or names the parts to use (`classes,workers`). docs/performance.md has what each part brings.
"""

from __future__ import annotations

import os

from tidemark.errors import TidemarkError

VARIABLE = "TIDEMARK_FAST_START"
PARTS = ("classes", "workers", "ctes")


class UnknownPart(TidemarkError):
    """The variable says something that it cannot mean."""


def uses(part: str) -> bool:
    """Whether a part of fast start is on."""
    return part in _chosen()


def check() -> None:
    """Refuse a value of the variable that it cannot have."""
    unknown = _chosen() - set(PARTS)
    if unknown:
        raise UnknownPart(
            f"the environment variable {VARIABLE} names {', '.join(sorted(unknown))!r}: it takes on, off, or some of {', '.join(PARTS)} with commas between"
        )


def _chosen() -> set[str]:
    value = os.environ.get(VARIABLE, "").strip().lower()
    if value in ("", "on"):
        return set(PARTS)
    return set() if value == "off" else {name.strip() for name in value.split(",")}
