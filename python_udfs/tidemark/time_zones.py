"""TIMESTAMP columns in UTC. On the wire they are in the time zone of the TiCDC that sent them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.wire import types
from tidemark.wire.errors import InvalidField
from tidemark.wire.table_info import TableInfo

_ZERO = "0000-00-00"
_WITHOUT_FRACTION = len("2025-01-02 03:04:05")


def is_known(zone: str) -> bool:
    """Whether this machine has a time zone of this name."""
    try:
        pc.assume_timezone(pa.scalar(0, pa.timestamp("us")), zone)
    except pa.ArrowException:
        return False
    return True


def in_utc(rows: pa.RecordBatch, table: TableInfo, zone: str) -> pa.RecordBatch:
    """The rows, with their timestamps in UTC instead of this zone. Of an hour that the zone has twice, the first is meant.

    InvalidField where a column holds what is no point in time.
    """
    arrays = list(rows.columns)
    for place, column in enumerate(table.columns):
        if column.mysql_type == types.TIMESTAMP:
            try:
                arrays[place] = shifted(arrays[place], zone)
            except pa.ArrowException as error:
                raise InvalidField(
                    f"column {column.name} of {table.schema}.{table.table} holds no timestamp: {error}"
                ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)


def shifted(texts: pa.Array, zone: str) -> pa.Array:
    """Timestamps of one column, as texts, in UTC instead of this zone."""
    # A zero date is no point in time.
    is_time = pc.invert(pc.starts_with(texts, _ZERO))
    times = pc.if_else(is_time, texts, pa.scalar(None, texts.type)).cast(pa.timestamp("us"))
    instants = pc.assume_timezone(times, zone, ambiguous="earliest", nonexistent="latest")
    utc = instants.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us")).cast(texts.type)
    # All values of a column have as many digits behind the point.
    lengths = pc.utf8_length(texts)
    length = pc.max(lengths).as_py() or _WITHOUT_FRACTION
    return pc.if_else(is_time, pc.utf8_slice_codeunits(utc, 0, length), texts)
