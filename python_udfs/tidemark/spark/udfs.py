"""Tidemark's functions for Spark SQL: thin wrappers of `tidemark.wire`, one line in UDFS each."""

from __future__ import annotations

import pyarrow as pa

from tidemark.wire import event_columns as events
from tidemark.wire.header_columns import HEADER_FIELDS, header_columns


def tidemark_header(frame: pa.Array, length: pa.Array) -> pa.Array:
    return header_columns(frame, length)


def tidemark_dml(frame: pa.Array) -> pa.Array:
    return events.dml_columns(frame)


def tidemark_ddl(frame: pa.Array) -> pa.Array:
    return events.ddl_columns(frame)


def tidemark_resolved(frame: pa.Array) -> pa.Array:
    return events.resolved_columns(frame)


def tidemark_sync_point(frame: pa.Array) -> pa.Array:
    return events.sync_point_columns(frame)


def tidemark_handshake(frame: pa.Array) -> pa.Array:
    return events.handshake_columns(frame)


def tidemark_control(frame: pa.Array) -> pa.Array:
    return events.control_columns(frame)


# function over Arrow arrays -> type of its result; the name in SQL is the function's
UDFS = {
    tidemark_header: HEADER_FIELDS,
    tidemark_dml: events.DML,
    tidemark_ddl: events.DDL,
    tidemark_resolved: events.RESOLVED,
    tidemark_sync_point: events.SYNC_POINT,
    tidemark_handshake: events.HANDSHAKE,
    tidemark_control: events.CONTROL,
}
