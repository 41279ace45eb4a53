"""What the forecast says, and that the registry then does the same."""

import pytest

from tidemark.config import load
from tidemark.encode.avro_schema import AvroOptions, value_schema
from tidemark.registry.embedded import EmbeddedRegistry
from tidemark.registry.errors import RegistryError
from tidemark.registry.forecast import (
    KNOWN,
    NEW_SUBJECT,
    NEW_VERSION,
    NO_SCHEMA,
    REFUSED,
    TableVersion,
    forecast,
    snapshot,
)
from tidemark.registry.state import RegistryState
from tidemark.wire import types
from tidemark.wire.table_info import Column, TableInfo

SETTINGS = load(
    {"sink": {"dispatchers": [{"matcher": ["*.*"], "topic": "{schema}_{table}"}]}},
    "kafka://h:9092/t?protocol=avro&schema-registry=http://h:1",
)
KEY = ("id", types.INT, {"flag": types.NOT_NULL | types.PRIMARY_KEY})
NOTE = ("note", types.VARCHAR, {"charset": "utf8mb4", "collate": "utf8mb4_bin"})
COUNT = ("n", types.INT, {"flag": types.NOT_NULL})
PRICE = ("price", types.DECIMAL, {"flen": 10, "decimal": 2})


def version(ddl, *columns, table="t"):
    built = [Column(place + 1, name, place, kind, **more) for place, (name, kind, more) in enumerate(columns)]
    return TableVersion(TableInfo.build("db", table, 1, 1, columns=built), ddl)


def values(found):
    """What happens to the value schemas."""
    return [item for item in found if item.subject.endswith("-value")]


def test_a_first_version_makes_new_subjects():
    found = forecast([version("create", KEY, NOTE)], RegistryState(), SETTINGS)
    assert [(item.subject, item.outcome, item.version) for item in found] == [
        ("db_t-key", NEW_SUBJECT, 1),
        ("db_t-value", NEW_SUBJECT, 1),
    ]
    assert all(item.accepted for item in found)


def test_a_nullable_column_is_accepted_and_an_unchanged_key_is_known():
    found = forecast([version("create", KEY), version("add note", KEY, NOTE)], RegistryState(), SETTINGS)
    assert [(item.subject, item.outcome) for item in found[2:]] == [
        ("db_t-key", KNOWN),
        ("db_t-value", NEW_VERSION),
    ]


def test_a_column_without_default_is_refused_and_its_statement_is_named():
    found = values(
        forecast(
            [version("create", KEY), version("add n int not null", KEY, COUNT)], RegistryState(), SETTINGS
        )
    )
    assert [item.outcome for item in found] == [NEW_SUBJECT, REFUSED]
    (reason,) = found[1].reasons
    assert reason.ddl == "add n int not null"
    assert "/n" in reason.text
    assert not found[1].accepted


def test_later_versions_are_refused_for_the_same_statement_until_it_is_undone():
    found = values(
        forecast(
            [
                version("create", KEY),
                version("add n", KEY, COUNT),
                version("add note", KEY, COUNT, NOTE),
                version("drop n", KEY, NOTE),
            ],
            RegistryState(),
            SETTINGS,
        )
    )
    assert [item.outcome for item in found] == [NEW_SUBJECT, REFUSED, REFUSED, NEW_VERSION]
    assert [reason.ddl for reason in found[2].reasons] == ["add n"]


def test_a_changed_type_is_refused():
    text = ("n", types.VARCHAR, {"charset": "utf8mb4", "collate": "utf8mb4_bin"})
    found = values(
        forecast(
            [version("create", KEY, ("n", types.BIGINT, {})), version("modify n", KEY, text)],
            RegistryState(),
            SETTINGS,
        )
    )
    assert found[1].outcome == REFUSED
    assert found[1].reasons[0].ddl == "modify n"


def test_what_the_registry_holds_counts():
    state = RegistryState()
    state.register("db_t-value", value_schema(version("", KEY).table, AvroOptions()).text)
    found = values(forecast([version("", KEY, COUNT)], state, SETTINGS))
    assert found[0].outcome == REFUSED
    assert state.versions("db_t-value") == [1]


def test_the_level_counts():
    state = RegistryState(levels={"db_t-value": "NONE"})
    found = values(forecast([version("create", KEY), version("add n", KEY, COUNT)], state, SETTINGS))
    assert [(item.outcome, item.level) for item in found] == [(NEW_SUBJECT, "NONE"), (NEW_VERSION, "NONE")]


def test_other_digits_of_a_decimal_are_accepted_with_a_warning():
    other = ("price", types.DECIMAL, {"flen": 10, "decimal": 4})
    found = values(
        forecast(
            [version("create", KEY, PRICE), version("modify price", KEY, other)], RegistryState(), SETTINGS
        )
    )
    assert found[1].accepted
    assert "'price'" in found[1].warnings[0]


def test_a_table_version_without_a_schema_is_told():
    broken = ("n", types.INT, {"default": "nextval(`s`)"})
    found = values(forecast([version("create", KEY, broken)], RegistryState(), SETTINGS))
    assert (found[0].outcome, found[0].schema) == (NO_SCHEMA, None)
    assert "'n'" in found[0].reasons[0].text


def test_two_tables_with_one_topic_are_told():
    settings = load(None, "kafka://h:9092/t?protocol=avro&schema-registry=http://h:1")
    found = forecast([version("", KEY), version("create u", KEY, table="u")], RegistryState(), settings)
    assert found[-1].outcome == NO_SCHEMA
    assert "db.t and db.u" in found[-1].reasons[0].text


def test_the_registry_does_what_the_forecast_said(tmp_path):
    history = [
        version("create", KEY, NOTE),
        version("add n", KEY, NOTE, COUNT),
        version("drop note", KEY),
        version("add price", KEY, PRICE),
        version(
            "key is a string now",
            ("id", types.VARCHAR, {"flag": KEY[2]["flag"], "charset": "utf8mb4"}),
            PRICE,
        ),
    ]
    registry = EmbeddedRegistry(tmp_path)
    registry.register("db_t-value", value_schema(history[0].table, AvroOptions()).text)
    found = forecast(history, snapshot(registry, ["db_t-key", "db_t-value"]), SETTINGS)
    assert {item.outcome for item in found} == {NEW_SUBJECT, NEW_VERSION, KNOWN, REFUSED}
    for item in found:
        if item.accepted:
            registry.register(item.subject, item.schema)
            assert registry.lookup(item.subject, item.schema).version == item.version
        else:
            with pytest.raises(RegistryError):
                registry.register(item.subject, item.schema)
