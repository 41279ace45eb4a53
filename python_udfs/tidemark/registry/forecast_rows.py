"""The forecast as rows: table versions of the warehouse in, one row per schema out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidemark.config import Settings
from tidemark.dispatch.routing import Routing
from tidemark.encode.avro_schema import subjects
from tidemark.encode.avro_tables import AvroSchemas
from tidemark.registry.forecast import Forecast, TableVersion, forecast, snapshot
from tidemark.registry.open import open_registry
from tidemark.registry.state import RegistryState
from tidemark.wire.table_columns import table_of_row


def forecast_rows(settings: Settings, versions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What the registry will say, for table versions in the order in which their rows come. Nothing without Avro."""
    if settings.protocol != "avro":
        return []
    routing = Routing.of(settings)
    given = [
        (row["upstream_id"], TableVersion(routing.table(table_of_row(row)), row["query"] or ""))
        for row in versions
    ]
    # Two upstreams may have equal tables, so they are told apart by the object.
    upstreams = {id(version.table): upstream_id for upstream_id, version in given}
    tables = [version for _, version in given]
    found = forecast(tables, _state(settings, tables), settings)
    return [_row(upstreams[id(one.table)], one) for one in found]


def _state(settings: Settings, versions: list[TableVersion]) -> RegistryState:
    options = settings.uri.options
    is_container = settings.sink_kind == "storage" and options.avro_file_format == "container"
    if is_container and not options.schema_registry:
        # Such files ask no registry.
        return RegistryState()
    schemas = AvroSchemas(settings)
    names = {subject for version in versions for subject in subjects(schemas.topic(version.table))}
    return snapshot(open_registry(settings), sorted(names))


def _row(upstream_id: str, one: Forecast) -> dict[str, Any]:
    return {
        "upstream_id": upstream_id,
        "table_id": one.table.table_id,
        "schema_name": one.table.schema,
        "table_name": one.table.table,
        "table_version": one.table.version,
        "part": one.subject.rpartition("-")[2],
        "subject": one.subject,
        "avro_schema": one.schema,
        "outcome": one.outcome,
        "is_accepted": one.accepted,
        "subject_version": one.version,
        "compatibility": one.level,
        "reasons": [{"reason": reason.text, "query": reason.ddl} for reason in one.reasons],
        "warnings": list(one.warnings),
    }
