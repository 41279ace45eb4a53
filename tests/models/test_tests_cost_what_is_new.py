"""A test that has passed is run again only where its result may have changed: on a project with the macros of Tidemark and a few tiny models."""

import pytest
from kept_project import MODELS, ROOT

from dbt_support import Dbt

PROJECT = f"""
name: tidemark
version: "1.0"
profile: tidemark
model-paths: [models]
seed-paths: [seeds]
test-paths: [tests]
macro-paths: ["{ROOT / "macros"}", "{ROOT / "tests/dbt/generic"}", macros]
vars: {{batch: 0, back: 0, limit: 1000, rebuild_from_logs: false, table_format: parquet, event_logs: [], changefeed: null, sink_uri: null, compat: design}}
"""
FILES = {
    "dbt_project.yml": PROJECT,
    "seeds/factors.csv": "factor\n2\n",
    "macros/scale.sql": "{% macro scale() %}id * factor{% endmacro %}",
    "models/log_segments.sql": MODELS["log_segments"],
    # With the var `back` a batch brings ids of an earlier one.
    "models/numbers.sql": """
        {{ config(materialized='batched') }}
        select id + 10 * (batch_id - {{ var('back') }}) as id, batch_id from {{ ref('log_segments') }} where batch_id > {{ tidemark.last_batch() }}
    """,
    "models/scaled.sql": """
        {{ config(materialized='view') }}
        select id, {{ scale() }} as scaled, batch_id from {{ ref('numbers') }} cross join {{ ref('factors') }}
    """,
    "models/by_key.sql": """
        {{ config(materialized='view') }}
        select id % 10 as key, id, count(*) over (partition by id % 10) as key_count from {{ ref('scaled') }}
    """,
    "models/keyed.sql": """
        {{ config(materialized='view') }} select id % 10 as key, batch_id from {{ ref('numbers') }}
    """,
    "models/inlined.sql": "{{ config(materialized='ephemeral') }} select * from {{ ref('scaled') }}",
    "models/sums.sql": "{{ config(materialized='view') }} select sum(scaled) as total from {{ ref('inlined') }}",
    "models/recent.sql": """
        {{ config(materialized='view') }} select id from {{ ref('numbers') }} where current_date() is null
    """,
    "tests/none_is_large.sql": "select * from {{ ref('inlined') }} where id > {{ var('limit') }}",
    "models/_models.yml": """
sources:
  - name: elsewhere
    schema: "{{ target.schema }}"
    tables: [{name: foreign_rows, columns: [{name: id, data_tests: [not_null]}]}]
models:
  - {name: log_segments, columns: [{name: id, data_tests: [not_null]}]}
  - {name: numbers, data_tests: [{primary_key: {arguments: {columns: [id]}}}]}
  - {name: scaled, data_tests: [{primary_key: {arguments: {columns: [id], rows_of: numbers}}}]}
  - {name: by_key, data_tests: [{primary_key: {arguments: {columns: [key, id], rows_of: numbers, keys_of: keyed}}}]}
  - {name: sums, columns: [{name: total, data_tests: [not_null]}]}
  - {name: recent, columns: [{name: id, data_tests: [not_null]}]}
seeds:
  - {name: factors, columns: [{name: factor, data_tests: [not_null]}]}
unit_tests:
  - name: a_number_is_scaled
    model: scaled
    given:
      - {input: ref('numbers'), rows: [{id: 3, batch_id: 1}]}
      - {input: ref('factors'), rows: [{factor: 5}]}
    expect: {rows: [{id: 3, scaled: 15}]}
""",
}
# Nothing is known of the rows of a table that someone else wrote, and other rows are recent tomorrow.
ALWAYS = {"source_not_null_elsewhere_foreign_rows_id", "not_null_recent_id"}
OF_NUMBERS = {
    "primary_key_numbers_id",
    "primary_key_scaled_id__numbers",
    "primary_key_by_key_key__id__keyed__numbers",
    "not_null_sums_total",
    "none_is_large",
}
KEY_TESTS = (
    "primary_key_numbers_id",
    "primary_key_scaled_id__numbers",
    "primary_key_by_key_key__id__keyed__numbers",
)
STEADY = {"not_null_log_segments_id", "not_null_factors_factor", "a_number_is_scaled"}


@pytest.fixture
def project(spark, monkeypatch, tmp_path):
    import uuid

    folder = tmp_path / "project"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.chdir(ROOT)
    runner = Dbt(spark, monkeypatch, tmp_path, f"test_{uuid.uuid4().hex[:12]}", project_dir=folder)
    spark.sql(f"create schema {runner.schema}")
    spark.sql(f"create table {runner.schema}.foreign_rows using parquet as select 1 as id")
    yield runner
    runner.drop()


def outcomes_of(outcome):
    """The tests of a command by name: whether they were run, and how they ended."""
    return {
        result.node.name: (result.adapter_response.get("_message") != "unchanged", str(result.status))
        for result in outcome.result.results
        if result.node.resource_type in ("test", "unit_test")
    }


def ran(outcome):
    assert outcome.success, outcome.exception or outcomes_of(outcome)
    assert {status for _, status in outcomes_of(outcome).values()} == {"pass"}
    return {name for name, (was_run, _) in outcomes_of(outcome).items() if was_run}


def statement_of(dbt, test):
    """The statement that the last command ran for a test."""
    (file,) = (dbt.folder / "target" / "run").rglob(f"{test}.sql")
    return file.read_text()


def test_a_test_that_passed_runs_again_only_if_its_result_may_have_changed(project):
    assert ran(project("build", batch=1)) == ALWAYS | OF_NUMBERS | STEADY
    assert ran(project("build", batch=1)) == ALWAYS
    assert "8 tests were not run again" in (project.folder / "logs" / "dbt.log").read_text()
    assert ran(project("test", batch=1)) == ALWAYS
    assert ran(project("test", "--select", "numbers", batch=1)) == set()
    assert ran(project("test", "--select", "numbers", batch=1, run_all_tests=True)) == {
        "primary_key_numbers_id"
    }

    # a new batch
    assert ran(project("build", batch=2)) == ALWAYS | OF_NUMBERS | {"not_null_log_segments_id"}
    for test in KEY_TESTS:
        assert "where batch_id > 1" in statement_of(project, test)

    # other text: of a test, of a macro, of a seed
    assert ran(project("test", batch=2, limit=2000)) == ALWAYS | {"none_is_large"}
    scale = project.project_dir / "macros" / "scale.sql"
    scale.write_text(scale.read_text().replace("id * factor", "factor * id"))
    of_scaled = OF_NUMBERS - {"primary_key_numbers_id"}
    assert ran(project("build", batch=2)) == ALWAYS | of_scaled | {"a_number_is_scaled"}
    (project.project_dir / "seeds" / "factors.csv").write_text("factor\n3\n")
    assert ran(project("build", batch=2)) == ALWAYS | of_scaled | {"not_null_factors_factor"}
    assert "where batch_id >" not in statement_of(project, "primary_key_scaled_id__numbers")


def test_a_test_that_failed_fails_again(project):
    project.ok("build", batch=1)
    for _ in range(2):
        failed = project("test", batch=1, limit=5)
        assert outcomes_of(failed)["none_is_large"] == (True, "fail")
        assert not failed.success
    assert "none_is_large" in ran(project("test", batch=1))
    scale = project.project_dir / "macros" / "scale.sql"
    right = scale.read_text()
    scale.write_text(right.replace("*", "+"))
    for _ in range(2):
        assert outcomes_of(project("test", "--select", "scaled", batch=1))["a_number_is_scaled"] == (
            True,
            "fail",
        )
    scale.write_text(right)
    assert "a_number_is_scaled" in ran(project("test", "--select", "scaled", batch=1))


def test_a_key_of_an_earlier_batch_is_found_in_a_new_one(project):
    project.ok("build", batch=1)
    project.ok("build", batch=2)
    project("run", batch=3, back=2)
    for statement in ("where batch_id > 2", "with keys as ("):
        outcome = project("test", "--select", "numbers", "scaled", "by_key", batch=3)
        for test in KEY_TESTS:
            (failed,) = [result for result in outcome.result.results if result.node.name == test]
            assert (str(failed.status), failed.failures) == ("fail", 3), test
            assert statement in statement_of(project, test), "all rows once the test has failed"


def test_rows_that_are_written_into_a_table_by_hand_are_seen_with_the_next_batch(project):
    project.ok("build", batch=1)
    project.ok("run", batch=2)
    store, version = project.schema + "_store", project.rows("show tblproperties {schema}.numbers")
    (table,) = [row["value"] for row in version if row["key"] == "tidemark.version"]
    project.spark.sql(f"insert into {store}.{table} select 10 as id, 2 as batch_id, 2 as part")
    project.spark.catalog.refreshTable(f"{project.schema}.numbers")
    assert outcomes_of(project("test", "--select", "numbers", batch=2))["primary_key_numbers_id"] == (
        True,
        "fail",
    )
