"""The `sink` materialization: rows of a model go out through a data source."""

import shutil
import uuid
from pathlib import Path

import line_sink
import pytest
from pyspark import cloudpickle

from dbt_support import Dbt

ROOT = Path(__file__).parent.parent.parent
PROFILE = (
    "p: {target: t, outputs: {t: {type: tidemark, schema: \"{{ env_var('TIDEMARK_SCHEMA') }}\", threads: 2}}}"
)


@pytest.fixture
def project(spark, monkeypatch, tmp_path):
    folder = tmp_path / "project"
    (folder / "models").mkdir(parents=True)
    shutil.copytree(ROOT / "macros", folder / "macros")
    (folder / "dbt_project.yml").write_text("name: tidemark\nversion: '1.0'\nprofile: p\n")
    (folder / "profiles").mkdir()
    (folder / "profiles" / "profiles.yml").write_text(PROFILE)
    monkeypatch.chdir(folder)
    # Workers cannot import from the tests.
    cloudpickle.register_pickle_by_value(line_sink)
    spark.dataSource.register(line_sink.LineSink)
    out = tmp_path / "it's \\ out"
    out.mkdir()
    runner = Dbt(spark, monkeypatch, tmp_path, f"test_{uuid.uuid4().hex[:12]}", folder)
    runner.vars = {"out": str(out)}
    runner.model = lambda select: (folder / "models" / "emitted.sql").write_text(
        "{{ config(materialized='sink', sink_format='line_sink', sink_options={'path': var('out')}) }}\n"
        + select
    )
    runner.out = out
    yield runner
    runner.drop()


def test_a_sink_model_writes_its_rows_once_and_leaves_no_relation(project):
    project.model("select id, concat('row ', id) as name from range(5)")
    project.ok("run")
    lines = [line for file in project.out.glob("*.txt") for line in file.read_text().splitlines()]
    assert sorted(lines) == [f"{n} row {n}" for n in range(5)]
    assert (project.out / "done").exists()
    assert [row for row in project.rows("show tables in {schema}") if not row["isTemporary"]] == []


def test_a_sink_that_fails_says_why_and_does_not_commit(project):
    project.model("select id, if(id = 3, 'bad', 'good') as name from range(5)")
    message = project.fails("run")
    assert "a bad row" in message
    assert "Traceback" not in message
    assert not (project.out / "done").exists()
