"""Start-up of the Python processes that Spark forks its workers from: they load Tidemark once, and not in every worker.

Spark plans each scan and each write of a data source in a worker of its own, which lives as long as that takes. The imports were most of it: 0.5 to 0.9 s of a core
each, some twenty times in a run without anything to do. `session` puts this folder on the path of these processes; Python imports a module of this name when it starts.
"""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run_the_one_behind() -> None:
    """What this file hides: the start-up file of the installation, if it has one."""
    behind = [entry for entry in sys.path if entry and Path(entry).resolve() != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", behind)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


run_the_one_behind()
if "pyspark.daemon" in sys.orig_argv:
    import tidemark.spark.registration  # noqa: F401
