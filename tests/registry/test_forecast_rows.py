"""The forecast over table versions as the warehouse keeps them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "encode"))

from encode_support import SCENARIOS, TEXT, batches, column, table_of

from avro_functional import ID, NAME, OPTIONAL, REQUIRED
from tidemark.config import load
from tidemark.encode.avro_schema import AvroOptions, key_schema, value_schema
from tidemark.registry.embedded import EmbeddedRegistry
from tidemark.registry.forecast_rows import forecast_rows
from tidemark.wire import types
from tidemark.wire.table_columns import table_of_row, table_row


def settings_of(folder, query="", topic="{schema}_{table}"):
    rules = [{"matcher": ["*.*"], "topic": topic}] if topic else []
    return load(
        {"sink": {"dispatchers": rules}},
        f"kafka://127.0.0.1:9092/t?protocol=avro&schema-registry=file://{folder}{query}",
    )


def version(table, query="", upstream_id="1"):
    return {**table_row(table), "upstream_id": upstream_id, "query": query}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_schemas_of_tables_from_the_warehouse_are_those_of_the_tables(scenario):
    options = AvroOptions()
    for batch in batches(scenario):
        restored = table_of_row(table_row(batch.table))
        assert value_schema(restored, options) == value_schema(batch.table, options)
        assert key_schema(restored, options) == key_schema(batch.table, options)
        assert restored.handle_key == batch.table.handle_key


def test_the_default_of_a_bit_column_keeps_its_bytes():
    bits = column("b", types.BIT, flen=16, default_bit="AP8=")
    restored = table_of_row(table_row(table_of(ID, bits)))
    assert restored.columns[1].default_bit == "AP8="


def test_a_history_is_played_against_what_the_registry_holds(tmp_path):
    settings = settings_of(tmp_path)
    first, second = table_of(ID, NAME), table_of(ID, NAME, REQUIRED)
    EmbeddedRegistry(tmp_path).register("db_t-value", value_schema(first, AvroOptions()).text)
    found = forecast_rows(settings, [version(first, "create"), version(second, "add column note")])
    assert [(row["part"], row["outcome"], row["subject_version"]) for row in found] == [
        ("key", "new subject", 1),
        ("value", "known", 1),
        ("key", "known", 1),
        ("value", "refused", 2),
    ]
    (reason,) = found[3]["reasons"]
    assert reason["query"] == "add column note"
    assert "note" in reason["reason"]
    assert EmbeddedRegistry(tmp_path).subjects() == ["db_t-value"], "nothing was registered"


def test_upstreams_are_told_apart_also_with_equal_tables(tmp_path):
    table = table_of(ID, NAME)
    found = forecast_rows(settings_of(tmp_path), [version(table, upstream_id=name) for name in ("1", "2")])
    assert [(row["upstream_id"], row["outcome"]) for row in found] == [
        ("1", "new subject"),
        ("1", "new subject"),
        ("2", "known"),
        ("2", "known"),
    ]


def test_a_second_table_in_a_topic_has_no_schema(tmp_path):
    tables = [table_of(ID, NAME, table=name) for name in ("t", "u")]
    found = forecast_rows(settings_of(tmp_path, topic=""), [version(table) for table in tables])
    assert (found[2]["outcome"], found[2]["is_accepted"], found[2]["part"]) == ("no schema", False, "")
    assert "one table only" in found[2]["reasons"][0]["reason"]


def test_other_protocols_have_no_forecast():
    settings = load(None, "kafka://127.0.0.1:9092/t?protocol=canal-json")
    assert forecast_rows(settings, [version(table_of(ID, NAME))]) == []


def test_container_files_are_judged_without_a_registry(tmp_path):
    settings = load(None, f"file://{tmp_path}/tree?protocol=avro")
    found = forecast_rows(settings, [version(table_of(ID, NAME)), version(table_of(ID, NAME, OPTIONAL))])
    assert [row["outcome"] for row in found] == ["new subject", "new subject", "known", "new version"]
    assert not (tmp_path / "tree").exists()


def test_text_columns_of_other_charsets_survive():
    latin = column("l", types.VARCHAR, charset="latin1", collate="latin1_bin")
    table = table_of(ID, latin, column("m", types.VARCHAR, **TEXT))
    assert table_of_row(table_row(table)) == table
