"""Tidemark's functions in Spark SQL: registered, and the same as the Python functions they wrap."""

import json

import pyarrow as pa
import pytest

from support import golden
from tidemark.spark.sink_settings import settings_option
from tidemark.spark.udfs import UDFS
from tidemark.wire.header import write_header

RESOLVED = golden("wire/resolved_typical.bin").read_bytes()
THREE_RESOLVED = golden("wire/batch_resolved_three.bin").read_bytes()
VECTORS = {
    "tidemark_header": ["wire/resolved_typical.bin", "wire/ddl_evolve_add_column.bin"],
    "tidemark_dml": ["wire/batch_dml_orders_0.bin", "wire/dml_orders_0.bin"],
    "tidemark_ddl": ["wire/ddl_evolve_rename_tables.bin", "wire/ddl_evolve_drop_table.bin"],
    "tidemark_resolved": ["wire/resolved_typical.bin", "wire/resolved_max.bin"],
    "tidemark_sync_point": ["wire/sync_point_typical.bin"],
    "tidemark_handshake": ["wire/handshake_alltypes_0.bin", "wire/handshake_active_active_0.bin"],
    "tidemark_control": ["wire/drop_typical.bin", "wire/congestion_control_v2_two.bin"],
}
FUNCTIONS = {function.__name__: function for function in UDFS}


def frames_for(name):
    """Good frames, and frames that the function must answer with an error."""
    frames = [golden(path).read_bytes() for path in VECTORS[name]]
    if name == "tidemark_resolved":
        frames.append(write_header(4, 1, len(THREE_RESOLVED)) + THREE_RESOLVED)
    return [*frames, b"", RESOLVED[:-1], b"\x00" * 40, frames[0]]


@pytest.mark.parametrize("name", VECTORS)
def test_the_sql_function_gives_what_the_python_function_gives(spark, name):
    frames = frames_for(name)
    lengths = [len(frame) for frame in frames]
    arguments = "frame, length" if name == "tidemark_header" else "frame"
    columns = [pa.array(frames, pa.binary()), pa.array(lengths, pa.int64())]
    expected = FUNCTIONS[name](*columns[: arguments.count(",") + 1]).to_pylist()
    spark.createDataFrame(
        list(zip(range(len(frames)), frames, lengths, strict=True)),
        "place int, frame binary, length bigint",
    ).createOrReplaceTempView("frames_of_a_function")
    found = spark.sql(f"select {name}({arguments}) as event from frames_of_a_function order by place")
    assert [row.event.asDict(recursive=True) for row in found.collect()] == expected


def test_every_function_is_tested_here():
    others = {"tidemark_table_matches", "tidemark_topic", "tidemark_target", "tidemark_schema_forecast"}
    assert set(FUNCTIONS) == {*VECTORS, *others}


@pytest.mark.parametrize(("protocol", "parts"), [("avro", ["key", "value"]), ("csv", [])])
def test_the_forecast_plays_table_versions_against_the_registry(spark, tmp_path, protocol, parts):
    frame = golden("wire/handshake_active_active_0.bin").read_bytes()
    spark.createDataFrame([(frame,)], "frame binary").createOrReplaceTempView("frames_of_a_forecast")
    settings = settings_option(None, f"file://{tmp_path}?protocol={protocol}", "design")
    found = spark.sql(
        f"""
        with tables as (
            select '1' as upstream_id, cast(null as string) as query, event.`table`.*
            from (select tidemark_handshake(frame) as event from frames_of_a_forecast)
        )
        select inline(tidemark_schema_forecast('{settings}', array(struct(tables.*)))) from tables
        """
    ).collect()
    assert sorted(row.part for row in found) == parts
    assert all(row.is_accepted for row in found)


def test_the_dispatch_functions_match_tables_and_name_topics(spark):
    found = spark.sql(
        """
        select
            tidemark_table_matches(array('shop.*', '!shop.audit*'), false, schema_name, table_name) as any_case,
            tidemark_table_matches(array('shop.*', '!shop.audit*'), true, schema_name, table_name) as exact,
            tidemark_topic('{schema}_{table}', 'kafka', 'canal-json', 'main', schema_name, table_name) as topic,
            tidemark_topic('', 'kafka', 'canal-json', 'main', schema_name, table_name) as default_topic
        from values (1, 'shop', 'orders'), (2, 'SHOP', 'orders'), (3, 'shop', 'audit_log') as tables (place, schema_name, table_name)
        order by place
        """
    ).collect()
    assert [(row.any_case, row.exact) for row in found] == [(True, True), (True, False), (False, False)]
    assert [row.topic for row in found] == ["shop_orders", "SHOP_orders", "shop_audit_log"]
    assert {row.default_topic for row in found} == {"main"}


def test_the_first_rule_with_a_target_says_under_which_name_a_table_is_written(spark):
    rules = [
        {"matcher": ["shop.o*"], "schema": "copy", "table": "{schema}_{table}"},
        {"matcher": ["shop.*"], "schema": "other", "table": ""},
    ]
    routing = json.dumps({"case_sensitive": True, "rules": rules})
    found = spark.sql(
        f"""
        select tidemark_target('{routing}', schema_name, table_name) as target
        from values (1, 'shop', 'orders'), (2, 'shop', 'users'), (3, 'logs', 'orders') as tables (place, schema_name, table_name)
        order by place
        """
    ).collect()
    assert [tuple(row.target) for row in found] == [
        ("copy", "shop_orders"),
        ("other", "users"),
        ("logs", "orders"),
    ]
