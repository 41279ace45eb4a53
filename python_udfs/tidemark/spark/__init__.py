"""Data sources, UDF registration and the session."""

from tidemark.spark.fast_start import uses
from tidemark.spark.fast_start.worker_imports import read_archives_once

# Every worker that runs a source or a function of ours comes through here.
if uses("workers"):
    read_archives_once()
