"""Our client, and our forecast, against a registry that is not ours."""

import uuid
from urllib.parse import quote

import pytest
from encode_support import ddl_events

from tidemark.config import load
from tidemark.encode.avro import AvroEncoder
from tidemark.encode.ddl import statements
from tidemark.registry.errors import IncompatibleSchema, SchemaNotFound, SubjectNotFound
from tidemark.registry.forecast import TableVersion, forecast, snapshot
from tidemark.registry.open import open_url

STRING, LONG = (
    f'{{"type":"record","name":"r","fields":[{{"name":"a","type":"{kind}"}}]}}' for kind in ("string", "long")
)


@pytest.fixture
def registry(apicurio):
    opened = open_url(apicurio.url)
    opened.set_compatibility("BACKWARD")
    yield opened
    opened.close()


@pytest.fixture
def subject():
    return f"s{uuid.uuid4().hex[:8]}"


def test_a_schema_is_registered_once_and_found(registry, subject):
    schema_id = registry.register(subject, STRING)
    assert registry.register(subject, STRING) == schema_id
    assert registry.versions(subject) == [1]
    assert registry.version(subject).id == schema_id
    assert '"string"' in registry.schema(schema_id)
    assert subject in registry.subjects()


def test_a_subject_without_a_level_has_that_of_the_registry(registry, subject):
    registry.register(subject, STRING)
    assert registry.compatibility(subject) == "BACKWARD"
    registry.set_compatibility("NONE", subject)
    assert registry.compatibility(subject) == "NONE"


def test_a_refused_schema_is_passed_on_with_subject_and_reason(registry, subject):
    registry.register(subject, STRING)
    with pytest.raises(IncompatibleSchema, match=rf"subject '{subject}'.*(?i:incompatible).*409"):
        registry.register(subject, LONG)
    registry.set_compatibility("NONE", subject)
    registry.register(subject, LONG)
    assert registry.versions(subject) == [1, 2]


def test_what_is_not_there_is_told(registry, subject):
    with pytest.raises(SubjectNotFound):
        registry.versions(subject)
    with pytest.raises(SchemaNotFound):
        registry.schema(999_999_999)


def test_the_forecast_is_what_the_registry_then_says(registry, subject, apicurio):
    """Every statement of a stream of schema changes, first foretold and then registered for real."""
    settings = load(
        {"sink": {"dispatchers": [{"matcher": ["*.*"], "topic": f"{subject}_{{schema}}_{{table}}"}]}},
        f"kafka://127.0.0.1:9092/t?protocol=avro&schema-registry={quote(apicurio.url, safe='')}",
    )
    versions = [
        TableVersion(ddl.table_info, ddl.query)
        for event in ddl_events("evolve")
        for ddl in statements(event)
        if ddl.table_info is not None and not ddl.table_info.is_view
    ]
    foretold = {}
    for one in forecast(versions, snapshot(registry, []), settings):
        foretold.setdefault(id(one.table), []).append(one.accepted)
    said = {}
    for version in versions:
        try:
            AvroEncoder(settings, registry=registry).register(version.table)
            said[id(version.table)] = True
        except IncompatibleSchema:
            said[id(version.table)] = False
    assert {table: all(parts) for table, parts in foretold.items()} == said
    assert set(said.values()) == {True, False}
