"""Start-up of the Python processes that Spark forks its workers from: they load what workers need once, and not in every worker.

Spark has one such process for tasks, and one for each step of planning: it plans each scan and each write of a data source in a worker of its own, which lives as long
as that takes. `session` puts this folder on the path of these processes; Python imports a module of this name when it starts.
"""

import importlib
import importlib.machinery
import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

# What the workers of each process load in every run. What only some runs need, as sinks, is left to them.
LOADED_FOR = {
    "pyspark.worker": ["pandas", "tidemark.spark.registration"],
    "pyspark.sql.worker.create_data_source": ["tidemark.spark.event_log"],
    "pyspark.sql.worker.plan_data_source_read": ["tidemark.spark.event_log"],
    "pyspark.sql.worker.write_into_data_source": ["tidemark.spark.row_change_writer"],
    "pyspark.sql.worker.commit_data_source_write": ["tidemark.spark.row_change_writer"],
}


def run_the_one_behind() -> None:
    """What this file hides: the start-up file of the installation, if it has one."""
    behind = [entry for entry in sys.path if entry and Path(entry).resolve() != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", behind)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def prefer_installed_packages() -> None:
    """Spark puts archives of pyspark and py4j on the path, whose modules Python compiles again in every process; where they lie inside of the installed
    pyspark, that one is the same, and compiled."""
    installed = [
        entry
        for entry in sys.path
        if entry.endswith(".zip")
        and Path(entry).parent.parts[-3:] == ("pyspark", "python", "lib")
        and str(Path(entry).parents[3]) in sys.path
    ]
    sys.path[:] = [entry for entry in sys.path if entry not in installed]


run_the_one_behind()
if "pyspark.daemon" in sys.orig_argv:
    prefer_installed_packages()
    for name in LOADED_FOR.get(sys.orig_argv[-1], []):
        importlib.import_module(name)
