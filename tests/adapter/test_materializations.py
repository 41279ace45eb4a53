"""The adapter: tables that are never missing or half written, Python models, sinks, and messages for people."""

import os
import shutil
import subprocess
import sys
import textwrap
import uuid

import pytest

from dbt.adapters.tidemark import catalog
from dbt_support import Dbt

PROFILE = """
mini:
  target: embedded
  outputs:
    embedded:
      type: tidemark
      schema: "{{ env_var('TIDEMARK_SCHEMA') }}"
      threads: 2
"""


@pytest.fixture
def mini(spark, monkeypatch, tmp_path):
    """A dbt project that has only what a test writes into it."""
    project = tmp_path / "project"
    (project / "models").mkdir(parents=True)
    (project / "seeds").mkdir()
    (project / "dbt_project.yml").write_text(
        "name: mini\nversion: '1.0'\nprofile: mini\nmodel-paths: [models]\n"
    )
    (project / "profiles").mkdir()
    (project / "profiles" / "profiles.yml").write_text(PROFILE)
    monkeypatch.chdir(project)
    runner = Dbt(spark, monkeypatch, tmp_path, f"test_{uuid.uuid4().hex[:12]}", project)

    def model(name, code, suffix="sql"):
        (project / "models" / f"{name}.{suffix}").write_text(textwrap.dedent(code))

    runner.model = model
    runner.project = project
    yield runner
    runner.drop()


def stored(mini, name):
    return [
        row["tableName"]
        for row in mini.rows("show tables in {schema}_store")
        if row["tableName"].startswith(name + "__")
    ]


def test_a_table_is_replaced_and_its_old_version_is_removed(mini):
    mini.model("t", "{{ config(materialized='table') }} select 1 as a")
    mini.ok("run")
    mini.model("t", "{{ config(materialized='table') }} select 2 as a, 'x' as b")
    mini.ok("run")
    assert mini.table("t") == [{"a": 2, "b": "x"}]
    assert len(stored(mini, "t")) == 1


def test_a_table_that_fails_to_build_keeps_its_old_rows(mini):
    mini.model("t", "{{ config(materialized='table') }} select id from range(3)")
    mini.ok("run")
    mini.model("t", "{{ config(materialized='table') }} select id, raise_error('no') as e from range(3)")
    assert "no" in mini.fails("run")
    assert [row["id"] for row in mini.table("t")] == [0, 1, 2]
    mini.model("t", "{{ config(materialized='table') }} select id from range(4)")
    mini.ok("run")
    assert len(mini.table("t")) == 4
    assert len(stored(mini, "t")) == 1


def test_models_with_similar_names_keep_their_own_versions(mini):
    mini.model("t", "{{ config(materialized='table') }} select 1 as a")
    mini.model("t__x", "{{ config(materialized='table') }} select 2 as a")
    mini.ok("run")
    mini.ok("run")
    assert (mini.table("t"), mini.table("t__x")) == ([{"a": 1}], [{"a": 2}])


def test_an_incremental_model_appends_once_per_run(mini):
    mini.model(
        "t",
        "{{ config(materialized='incremental') }} select 1 as a, is_in as b from (select {{ is_incremental() }} as is_in)",
    )
    mini.ok("run")
    mini.ok("run")
    assert sorted(row["b"] for row in mini.table("t")) == [False, True]
    assert [set(row) for row in mini.table("t")] == [{"a", "b"}] * 2, "the hidden run column is not shown"


def test_an_incremental_model_replaces_the_partitions_it_writes_again(mini):
    mini.model(
        "t",
        "{{ config(materialized='incremental', partition_by='p') }} select {{ var('v') }} as a, {{ var('p') }} as p",
    )
    for value, partition in ((1, 1), (2, 2), (3, 2)):
        mini.ok("run", v=value, p=partition)
    assert mini.table("t", "p") == [{"a": 1, "p": 1}, {"a": 3, "p": 2}]


def test_a_failed_incremental_run_leaves_the_table_as_it_was(mini):
    code = "{{{{ config(materialized='incremental', partition_by='p') }}}} select id, {} as e, 1 as p from range(1000)"
    mini.model("t", code.format("'good'"))
    mini.ok("run")
    mini.model("t", code.format("if(id = 999, raise_error('no'), 'bad')"))
    assert "no" in mini.fails("run")
    assert mini.rows("select e, count(*) as n from {schema}.t group by e") == [{"e": "good", "n": 1000}]


def test_an_incremental_model_with_other_columns_asks_for_a_full_refresh(mini):
    mini.model("t", "{{ config(materialized='incremental') }} select 1 as a")
    mini.ok("run")
    mini.model("t", "{{ config(materialized='incremental') }} select 1 as b")
    assert "--full-refresh" in mini.fails("run")
    mini.ok("run", "--full-refresh")
    assert mini.table("t") == [{"b": 1}]


def test_an_incremental_model_gets_the_columns_that_it_may_append(mini):
    code = "{{{{ config(materialized='incremental', partition_by='p', on_schema_change='append_new_columns') }}}} select {}"
    mini.model("t", code.format("1 as a, 1 as p"))
    mini.ok("run")
    mini.model("t", code.format("2 as a, 'x' as b, 2 as p"))
    mini.ok("run")
    assert mini.table("t", "p") == [{"a": 1, "b": None, "p": 1}, {"a": 2, "b": "x", "p": 2}]
    mini.model("t", code.format("3 as a, 3 as p"))
    assert "--full-refresh" in mini.fails("run"), "a column that is gone is another matter"


def told(mini, name, *arguments):
    """What dbt says of a model that it has run."""
    return {node.node.name: node.message for node in mini.ok("run", *arguments).result.results}[name]


def test_a_view_is_made_again_only_when_something_has_changed_that_it_is_made_from(mini):
    mini.model("t", "{{ config(materialized='table') }} select 1 as a")
    mini.model("v", "select * from {{ ref('t') }}")
    assert told(mini, "v") != "unchanged"
    assert told(mini, "v") == "unchanged"
    mini.model("t", "{{ config(materialized='table') }} select 2 as a")
    assert (told(mini, "v"), mini.table("v")) == ("unchanged", [{"a": 2}])
    mini.model("t", "{{ config(materialized='table') }} select 1 as a, 'x' as b")
    assert told(mini, "v") != "unchanged"
    assert mini.table("v") == [{"a": 1, "b": "x"}]
    mini.model("v", "select a + 1 as a from {{ ref('t') }}")
    assert told(mini, "v") != "unchanged"
    assert mini.table("v") == [{"a": 2}]
    assert told(mini, "v", "--full-refresh") != "unchanged"
    assert told(mini, "v") == "unchanged"
    mini.rows("drop view {schema}.v")
    assert told(mini, "v") != "unchanged"
    mini.model(
        "models",
        """
        models:
          - name: v
            config: {contract: {enforced: true}}
            columns: [{name: a, data_type: string}]
        """,
        "yml",
    )
    assert "contract" in mini.fails("run", "--select", "v")


def test_a_table_that_says_so_is_built_again_only_when_text_or_rows_have_changed(mini):
    source = "{{ config(materialized='incremental', partition_by='p') }} select 1 as a, %d as p where %s"
    table = "{{ config(materialized='table', only_if_changed=true) }} select a, p + %d as p from {{ ref('source') }}"
    mini.model("source", source % (1, "true"))
    mini.model("t", table % 0)
    mini.model(
        "behind", "{{ config(materialized='table', only_if_changed=true) }} select * from {{ ref('t') }}"
    )
    assert told(mini, "t") != "unchanged"
    mini.model("source", source % (2, "false"))
    assert (told(mini, "t"), told(mini, "behind")) == ("unchanged", "unchanged")
    mini.model("source", source % (2, "true"))
    assert told(mini, "t") != "unchanged"
    assert [row["p"] for row in mini.table("t", "p")] == [1, 2]
    assert [row["p"] for row in mini.table("behind", "p")] == [1, 2]
    # A partition that is written again may have other rows.
    assert told(mini, "t") != "unchanged"
    mini.model("source", source % (2, "false"))
    assert told(mini, "t") == "unchanged"
    assert told(mini, "t", "--full-refresh", "--select", "t") != "unchanged"
    mini.model("t", table % 10)
    assert told(mini, "behind") != "unchanged"
    assert [row["p"] for row in mini.table("behind", "p")] == [11, 12]


def test_a_table_is_built_again_when_its_version_is_gone_or_its_code_or_parents_may_be_others(
    mini, monkeypatch
):
    mini.model("source", "{{ config(materialized='table') }} select 1 as a")
    mini.model(
        "t", "{{ config(materialized='table', only_if_changed=true) }} select a from {{ ref('source') }}"
    )
    mini.ok("run")
    assert told(mini, "t", "--select", "t") == "unchanged"
    (version,) = stored(mini, "t")
    mini.rows(f"drop table {{schema}}_store.{version}")
    assert told(mini, "t", "--select", "t") != "unchanged"
    assert mini.table("t") == [{"a": 1}]
    assert told(mini, "t", "--select", "t") == "unchanged"
    # What --defer reads may be something else than the project's own.
    state = shutil.copytree(mini.folder / "target", mini.folder / "state")
    assert told(mini, "t", "--select", "t", "--defer", "--state", str(state)) != "unchanged"
    monkeypatch.setattr(catalog, "_source_digest", lambda: "other code")
    assert told(mini, "t", "--select", "t") != "unchanged"


def test_a_table_over_a_view_is_always_built_again(mini):
    mini.model("v", "select 1 as a from range(1)")
    mini.model("t", "{{ config(materialized='table', only_if_changed=true) }} select * from {{ ref('v') }}")
    assert told(mini, "t") != "unchanged"
    assert told(mini, "t") != "unchanged"


def test_a_view_of_tables_that_dbt_does_not_know_is_always_made(mini):
    mini.model("t", "{{ config(materialized='table') }} select 1 as a")
    mini.model("v", "-- depends_on: {{ this.schema }}\nselect * from {{ this.schema }}.t")
    mini.ok("run", "--select", "t")
    assert told(mini, "v", "--select", "v") != "unchanged"
    assert told(mini, "v", "--select", "v") != "unchanged"


def test_ctes_are_put_in_place_as_they_are_read_only_where_a_model_asks_for_it(mini):
    """Where two have one name, Spark's old way to read them takes the outer one: that is how the two ways are told apart."""
    nested = "with a as (select 1 as x), b as (with a as (select 2 as x) select * from a) select * from b"
    for kind in ("table", "view", "incremental"):
        mini.model(f"plain_{kind}", f"{{{{ config(materialized='{kind}') }}}} {nested}")
        mini.model(f"inlined_{kind}", f"{{{{ config(materialized='{kind}', inline_ctes=true) }}}} {nested}")
        mini.model(
            f"reads_{kind}", f"with a as (select * from {{{{ ref('inlined_{kind}') }}}}) select * from a"
        )
    mini.ok("run")
    for kind in ("table", "view", "incremental"):
        assert mini.table(f"plain_{kind}") == [{"x": 2}]
        assert mini.table(f"inlined_{kind}") == mini.table(f"reads_{kind}") == [{"x": 1}]


def test_models_with_ctes_in_place_and_others_read_what_each_other_writes(mini):
    by_part = "materialized='incremental', partition_by='part'"
    mini.model("a", f"{{{{ config({by_part}) }}}} select {{{{ var('n') }}}} as n, 1 as part")
    mini.model("b", f"{{{{ config({by_part}, inline_ctes=true) }}}} select * from {{{{ ref('a') }}}}")
    mini.model("c", f"{{{{ config({by_part}) }}}} select * from {{{{ ref('b') }}}}")
    mini.model("d", f"{{{{ config({by_part}, inline_ctes=true) }}}} select * from {{{{ ref('c') }}}}")
    for n in (1, 2, 3):
        mini.ok("run", n=n)
        for name in ("a", "b", "c", "d"):
            assert mini.table(name) == [{"n": n, "part": 1}]


def test_a_later_command_with_ctes_in_place_sees_the_settings_and_temporary_views_of_its_time(mini):
    mini.model("t", "{{ config(materialized='table', inline_ctes=true) }} select n from chosen")
    for n in (1, 2):
        mini.spark.sql(f"create or replace temporary view chosen as select {n} as n")
        mini.ok("run")
        assert mini.table("t") == [{"n": n}]
    mini.spark.catalog.dropTempView("chosen")


def test_unique_key_is_refused_with_what_to_do(mini):
    mini.model("t", "{{ config(materialized='incremental', unique_key='a') }} select 1 as a")
    assert "partition_by" in mini.fails("run")


def test_a_python_model_runs_in_process_and_reads_other_models(mini):
    mini.model("source", "{{ config(materialized='table') }} select id from range(5)")
    mini.model(
        "doubled",
        """
        import os

        def model(dbt, session):
            dbt.config(materialized="table")
            frame = dbt.ref("source")
            return frame.selectExpr("id * 2 as twice", f"{os.getpid()} as pid")
        """,
        suffix="py",
    )
    mini.ok("run")
    rows = mini.table("doubled")
    assert [row["twice"] for row in rows] == [0, 2, 4, 6, 8]
    assert {row["pid"] for row in rows} == {os.getpid()}


def test_a_python_model_may_return_pandas_and_be_incremental(mini):
    mini.model(
        "frame",
        """
        import pandas

        def model(dbt, session):
            dbt.config(materialized="incremental")
            return pandas.DataFrame({"a": [1, 2]})
        """,
        suffix="py",
    )
    mini.ok("run")
    mini.ok("run")
    assert [row["a"] for row in mini.table("frame", "a")] == [1, 1, 2, 2]


def test_an_error_in_a_python_model_names_model_and_line(mini):
    mini.model("broken", "def model(dbt, session):\n    return 1 / 0\n", suffix="py")
    message = mini.fails("run")
    assert "Python model broken, line " in message
    assert "ZeroDivisionError" in message


def test_a_contract_is_enforced(mini):
    mini.model("t", "{{ config(materialized='table') }} select 'x' as a")
    (mini.project / "models" / "t.yml").write_text(
        "version: 2\nmodels: [{name: t, config: {contract: {enforced: true}}, columns: [{name: a, data_type: int}]}]"
    )
    assert "contract" in mini.fails("run")


def test_a_seed_keeps_types_quotes_and_nulls(mini):
    (mini.project / "seeds" / "s.csv").write_text('n,t\n1,it\'s\n2,"a\\b"\n3,\n')
    mini.ok("seed")
    mini.ok("seed")
    assert mini.table("s") == [{"n": 1, "t": "it's"}, {"n": 2, "t": "a\\b"}, {"n": 3, "t": None}]


def test_session_time_zone_is_utc_ansi_is_on_and_workers_use_this_interpreter(spark):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert spark.range(1).rdd.map(lambda _: sys.executable).collect() == [sys.executable]


def test_spark_errors_come_without_a_stack_trace(mini):
    mini.model("t", "{{ config(materialized='table') }} select no_such_column from range(1)")
    message = mini.fails("run")
    assert "no_such_column" in message
    assert "\tat " not in message
    assert "Traceback" not in message


def test_docs_and_show_work(mini):
    mini.model("t", "{{ config(materialized='table') }} select 1 as a")
    mini.ok("run")
    mini.ok("docs", "generate")
    mini.ok("show", "--inline", "select * from {{ ref('t') }}")


STEP = """
import os, sys
from dbt.adapters.tidemark.connections import TidemarkConnectionManager, TidemarkCursor
from dbt.cli.main import dbtRunner

execute = TidemarkCursor.execute

def die_before(self, sql, *parameters):
    if os.environ.get("DIE_BEFORE", "nowhere") in sql.lower():
        sys.stdout.flush()
        os.kill(os.getpid(), 9)
    return execute(self, sql, *parameters)

def show():
    spark = TidemarkConnectionManager.spark_session()
    for name in ("built", "grown"):
        print(name, [tuple(row) for row in spark.sql(f"select a from crash.{name}").collect()], flush=True)

if "SHOW" in os.environ:
    assert dbtRunner().invoke(["run", "--select", "nothing"]).success
    show()
TidemarkCursor.execute = die_before
select = os.environ.get("SELECT", "built grown").split()
assert dbtRunner().invoke(["run", "--select", *select, "--vars", "{v: %s}" % os.environ["VALUE"], "--log-level", "none"]).success
TidemarkCursor.execute = execute
show()
"""


def test_a_killed_run_leaves_the_tables_as_they_were(tmp_path):
    """Processes of their own are killed in the middle of a build and of an insert; the next one finds the old rows and finishes the job."""
    project = tmp_path / "project"
    (project / "models").mkdir(parents=True)
    (project / "profiles").mkdir()
    (project / "dbt_project.yml").write_text(
        "name: mini\nversion: '1.0'\nprofile: mini\nmodel-paths: [models]\n"
    )
    (project / "profiles" / "profiles.yml").write_text(PROFILE)
    for name, config in (("built", "'table'"), ("grown", "'incremental', partition_by='p'")):
        (project / "models" / f"{name}.sql").write_text(
            "{{ config(materialized=" + config + ") }} select {{ var('v', 0) }} as a, 1 as p"
        )
    environment = {
        **os.environ,
        "TIDEMARK_STATE_DIR": str(tmp_path / "state"),
        "TIDEMARK_SCHEMA": "crash",
        "DBT_PROFILES_DIR": str(project / "profiles"),
    }

    def step(**extra):
        answer = subprocess.run(
            [sys.executable, "-c", STEP],
            cwd=project,
            env={**environment, **extra},
            capture_output=True,
            text=True,
            timeout=300,
        )
        return answer.returncode, [
            line for line in answer.stdout.splitlines() if line.startswith(("built", "grown"))
        ]

    old, new = ["built [(1,)]", "grown [(1,)]"], ["built [(2,)]", "grown [(2,)]"]
    assert step(VALUE="1") == (0, old)
    assert step(VALUE="2", SELECT="built", DIE_BEFORE="create or replace view") == (-9, [])
    assert step(VALUE="2", SELECT="grown", DIE_BEFORE="insert overwrite", SHOW="1") == (-9, old)
    assert step(VALUE="2", SHOW="1") == (0, old + new)
