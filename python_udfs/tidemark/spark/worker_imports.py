"""Cheap tasks: Spark's Python workers load pyspark from a zip file, and read its whole directory again before every task.

A worker calls `importlib.invalidate_caches` for each task, and every importer of the zip that it holds (one per package of pyspark) then parses all
entries of the archive: 0.2 s of a core, more than reading 100 MB of log takes. What is loaded stays loaded without its importer, and one that
is needed again is made from the directory that was read before.
"""

from __future__ import annotations

import sys
from zipimport import zipimporter


def forget_zip_importers() -> None:
    cache = sys.path_importer_cache
    for path in [path for path, importer in cache.items() if isinstance(importer, zipimporter)]:
        del cache[path]
