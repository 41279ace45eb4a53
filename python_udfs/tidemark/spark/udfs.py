"""Tidemark's functions for Spark SQL: thin wrappers of `tidemark.wire`, one line in UDFS each."""

from __future__ import annotations

import pyarrow as pa

from tidemark.wire.header_columns import header_columns


def tidemark_header(frame: pa.Array, length: pa.Array) -> pa.Array:
    """What the 16-byte header of a frame says, and the reason word of what is wrong with it."""
    return header_columns(frame, length)


# SQL name -> (function over Arrow arrays, type of the result)
UDFS = {
    "tidemark_header": (
        tidemark_header,
        "struct<event_type int, version int, payload_length bigint, error string>",
    ),
}
