"""Data sources, UDF registration and the session."""

from tidemark.spark.worker_imports import read_archives_once

# Every worker that runs a source or a function of ours comes through here.
read_archives_once()
