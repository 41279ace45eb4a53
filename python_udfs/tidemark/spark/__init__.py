"""Data sources, UDF registration and the session."""

from tidemark.spark.worker_imports import forget_zip_importers

# Every worker that runs a source or a function of ours comes through here once.
forget_zip_importers()
