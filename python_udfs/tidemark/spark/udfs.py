"""Tidemark's functions for Spark SQL: thin wrappers of `tidemark.wire` and `tidemark.dispatch`, one line in UDFS each."""

from __future__ import annotations

import json

import pyarrow as pa

from tidemark.dispatch import TableFilter
from tidemark.dispatch.routing import Routing
from tidemark.dispatch.topic import parse_topic
from tidemark.wire import event_columns as events
from tidemark.wire.header_columns import HEADER_FIELDS, header_columns

TARGET = pa.struct({"schema_name": pa.string(), "table_name": pa.string()})
FORECAST = pa.struct(
    {
        "upstream_id": pa.string(),
        "table_id": pa.int64(),
        "schema_name": pa.string(),
        "table_name": pa.string(),
        "table_version": pa.int64(),
        "part": pa.string(),
        "subject": pa.string(),
        "avro_schema": pa.string(),
        "outcome": pa.string(),
        "is_accepted": pa.bool_(),
        "subject_version": pa.int32(),
        "compatibility": pa.string(),
        "reasons": pa.list_(pa.struct({"reason": pa.string(), "query": pa.string()})),
        "warnings": pa.list_(pa.string()),
    }
)


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


def tidemark_table_matches(
    matcher: pa.Array, case_sensitive: pa.Array, schema_name: pa.Array, table_name: pa.Array
) -> pa.Array:
    """Whether the rules of a matcher take a table."""
    filters: dict[tuple, TableFilter] = {}
    answers = []
    for rules, exact, schema, table in zip(
        matcher.to_pylist(),
        case_sensitive.to_pylist(),
        schema_name.to_pylist(),
        table_name.to_pylist(),
        strict=True,
    ):
        chosen = (tuple(rules), exact)
        if chosen not in filters:
            filters[chosen] = TableFilter(rules, case_sensitive=exact)
        answers.append(filters[chosen].matches(schema, table))
    return pa.array(answers, pa.bool_())


def tidemark_topic(
    expression: pa.Array,
    sink_kind: pa.Array,
    protocol: pa.Array,
    default_topic: pa.Array,
    schema_name: pa.Array,
    table_name: pa.Array,
) -> pa.Array:
    """The topic that an expression gives a table."""
    arguments = (expression, sink_kind, protocol, default_topic, schema_name, table_name)
    rows = zip(*(argument.to_pylist() for argument in arguments), strict=True)
    return pa.array([parse_topic(*row[:4]).name(*row[4:]) for row in rows], pa.string())


def tidemark_target(routing: pa.Array, schema_name: pa.Array, table_name: pa.Array) -> pa.Array:
    """Under which name a table is written, by the rules of `tidemark.dispatch.routing`."""
    known: dict[str, Routing] = {}
    answers = []
    for rules, schema, table in zip(
        routing.to_pylist(), schema_name.to_pylist(), table_name.to_pylist(), strict=True
    ):
        if rules not in known:
            known[rules] = Routing.of_document(json.loads(rules))
        answers.append(dict(zip(TARGET.names, known[rules].target(schema, table), strict=True)))
    return pa.array(answers, TARGET)


def tidemark_schema_forecast(settings: pa.Array, versions: pa.Array) -> pa.Array:
    """For lists of table versions, what the schema registry will say to their Avro schemas."""
    # Here, since every worker imports this module and few ask for a forecast.
    from tidemark.registry.forecast_rows import forecast_rows
    from tidemark.spark.sink_settings import settings_of

    answers = [
        forecast_rows(settings_of({"settings": given}), asked)
        for given, asked in zip(settings.to_pylist(), versions.to_pylist(), strict=True)
    ]
    return pa.array(answers, pa.list_(FORECAST))


# function over Arrow arrays -> type of its result; the name in SQL is the function's
UDFS = {
    tidemark_header: HEADER_FIELDS,
    tidemark_dml: events.DML,
    tidemark_ddl: events.DDL,
    tidemark_resolved: events.RESOLVED,
    tidemark_sync_point: events.SYNC_POINT,
    tidemark_handshake: events.HANDSHAKE,
    tidemark_control: events.CONTROL,
    tidemark_table_matches: pa.bool_(),
    tidemark_topic: pa.string(),
    tidemark_target: TARGET,
    tidemark_schema_forecast: pa.list_(FORECAST),
}
