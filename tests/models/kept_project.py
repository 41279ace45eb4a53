"""A project with the macros of Tidemark and a few tiny models that grow by batches: what the models are about does not matter here."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

# The var `batch` is what the logs hold: a run plans it if it is new.
MODELS = {
    "log_segments": """
        {{ config(materialized='batched') }}
        {% if tidemark.last_batch() >= var('batch') %}{% do adapter.remember('frames of log_segments', 'none') %}{% endif %}
        select id, cast({{ tidemark.last_batch() + 1 }} as bigint) as batch_id from range(3)
    """,
    "all_rows": """
        {{ config(materialized='batched') }}
        select id, cast({{ var('salt', 0) }} as int) as salt, batch_id from {{ ref('log_segments') }} where batch_id > {{ tidemark.last_batch() }}
    """,
    "last_rows": """
        {{ config(materialized='batched', keeps='last_batch') }}
        -- depends_on: {{ ref('log_segments') }}
        {% if tidemark.is_kept() %}select id, total + 1 as total, batch_id + 1 as batch_id from {{ this }} where batch_id = {{ tidemark.last_batch() }}
        {% else %}select 7 as id, 1 as total, cast({{ tidemark.current_batch() }} as bigint) as batch_id{% endif %}
    """,
    "odd_rows": """
        {{ config(materialized='batched') }}
        -- depends_on: {{ ref('log_segments') }}
        select id, batch_id from {{ ref('all_rows') }} where batch_id > {{ tidemark.last_batch() }} and batch_id % 2 = 1
    """,
    "rarely": """
        {{ config(materialized='batched', rows_from='odd_rows') }}
        -- depends_on: {{ ref('log_segments') }}
        select id, batch_id from {{ ref('odd_rows') }} where batch_id > {{ tidemark.last_batch() }}
    """,
    "winners": """
        {{ config(materialized='batched', rows_from='all_rows', takes_over=true, merged_by=['id']) }}
        -- depends_on: {{ ref('log_segments') }}
        {% set taken = tidemark.parts_to_take_over() %}
        select id, max(batch_id) as write_order, max(batch_id) as batch_id from (
            select id, batch_id from {{ ref('all_rows') }} where batch_id > {{ tidemark.last_batch() }}
            {% if taken %}union all select id, batch_id from {{ tidemark.stored_table(this) }} where part in ({{ taken | join(', ') }}){% endif %}
        ) group by id
    """,
    "notes": "{{ config(materialized='appended', full_refresh=false) }} select cast(null as bigint) as batch_id from range(0)",
    "noted": """
        {{ config(materialized='view', post_hook="{{ tidemark.add_rows(ref('notes'), 'select ' ~ var('batch') ~ ' as batch_id') }}") }}
        -- depends_on: {{ ref('winners') }}, {{ ref('rarely') }}
        select 1 as one from {{ ref('notes') }}
    """,
}
PROJECT = f"""
name: tidemark
version: "1.0"
profile: mini
model-paths: [models]
macro-paths: ["{ROOT / "macros"}"]
vars: {{batch: 0, rebuild_from_logs: true, table_format: parquet, iceberg_catalog: lake, event_logs: [], changefeed: null, sink_uri: null, compat: design}}
"""


def write_project(folder, table_format="parquet", spark_settings=None):
    (folder / "models").mkdir(parents=True)
    for name, code in MODELS.items():
        (folder / "models" / f"{name}.sql").write_text(code)
    (folder / "dbt_project.yml").write_text(
        PROJECT.replace("table_format: parquet", f"table_format: {table_format}")
    )
    target = {"type": "tidemark", "schema": "kept", "threads": 1, "spark_settings": spark_settings or {}}
    (folder / "profiles.yml").write_text(json.dumps({"mini": {"target": "t", "outputs": {"t": target}}}))
    return folder


# Runs of a process: (batch, text before whose n-th statement the process dies, n, further arguments). It prints the rows after each run, or why it failed.
PROCESS = """
import json, os, sys
from dbt.adapters.tidemark.connections import TidemarkConnectionManager, TidemarkCursor
from dbt.cli.main import dbtRunner

deadly = None
execute = TidemarkCursor.execute

def counted(self, sql, *parameters):
    global deadly
    if deadly and deadly[0] in " ".join(sql.lower().split()):
        if deadly[1] == 1:
            sys.stdout.flush()
            os.kill(os.getpid(), 9)
        deadly = (deadly[0], deadly[1] - 1)
    return execute(self, sql, *parameters)

TidemarkCursor.execute = counted
for batch, text, number, *arguments in json.loads(sys.argv[1]):
    deadly = (text, number) if text else None
    outcome = dbtRunner().invoke(["run", *arguments, "--log-level", "none", "--vars", json.dumps({"batch": batch})])
    if not outcome.success:
        failed = outcome.exception or [node.message for node in outcome.result.results if str(node.status) == "error"]
        print(json.dumps(["failed", str(failed)]), flush=True)
    elif not text:
        spark = TidemarkConnectionManager.spark_session()
        rows = {
            name: sorted(map(tuple, spark.sql(f"select * from kept.{name}").collect()))
            for name in ("all_rows", "last_rows", "odd_rows", "rarely", "winners", "notes")
        }
        print(json.dumps([batch, rows]), flush=True)
"""


def run_process(project, state, steps):
    """What a process with these steps has printed, and whether it was killed."""
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, json.dumps(steps)],
        cwd=project,
        env={**os.environ, "TIDEMARK_STATE_DIR": str(state), "DBT_PROFILES_DIR": str(project)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode in (0, -9), done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")], done.returncode


def check_a_rebuild_that_dies(project, state, text):
    """Models that it did not come to count batches of the plan before: a plain run says so, and does not take new batches for handled ones."""
    _, status = run_process(project, state, [(1, text, 1, "--full-refresh")])
    assert status == -9
    ((word, said), (done, rows)), status = run_process(
        project, state, [(1, "", 0), (1, "", 0, "--full-refresh")]
    )
    assert (word, status) == ("failed", 0)
    assert "a rebuild did not come to its end" in said
    assert done == 1
    assert sorted(rows["all_rows"]) == [[number, 0, 1] for number in range(3)]
    assert rows["last_rows"] == [[7, 1, 1]]
