"""Cheap tasks: Spark's Python workers read the directories of archives again before every task, those of pyspark where worker_site cannot leave them out, and that of a jar.

A worker calls `importlib.invalidate_caches` for each task. Every importer of an archive that it holds (one for each package of pyspark, and one
for a jar) then parses all entries of its archive: about 0.2 s of a core for each task and each planned scan, as much as reading 100 MB of log. The
archives do not change while a worker lives, so their directories are read once.
"""

from __future__ import annotations

from zipimport import zipimporter


def read_archives_once() -> None:
    zipimporter.invalidate_caches = lambda importer: None  # type: ignore[method-assign]
