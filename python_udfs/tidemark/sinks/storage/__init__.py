"""The storage sink: a directory tree of data, index, schema and metadata files, written exactly once, and read back."""
