"""Tables of Delta and Iceberg that grow by batches: what a process that dies at any step leaves to the next one, and that small files become few."""

import json

import pytest
from deltalake import DeltaTable
from kept_project import check_a_rebuild_that_dies, run_process, write_project

# The process dies before the n-th statement with this text in the run of this batch. `{store}` is where the tables of the format are.
DEATHS = [
    (1, "create or replace table {store}.all_rows", 1),
    (2, "alter view kept.log_segments", 1),
    (3, "alter view kept.all_rows", 1),
    (4, "alter view kept.last_rows", 1),
    (5, "create or replace table {store}.last_rows", 1),
    (6, "alter view kept.winners", 1),
    (7, "alter view kept.notes", 1),
    (8, "{compact}", 1),
    (9, "alter view kept.rarely", 1),
]
LAST = 10
# A model of a user, which replaces rows by their key.
MERGED = """
    {{ config(materialized='incremental', unique_key='id', file_format='delta') }}
    select id, max(batch_id) as batch_id from {{ ref('all_rows') }} group by id
"""


def expected(batch):
    odd = [[number, of] for number in range(3) for of in range(1, batch + 1, 2)]
    return {
        "all_rows": [[number, 0, of] for number in range(3) for of in range(1, batch + 1)],
        "last_rows": [[7, batch, batch]],
        "odd_rows": odd,
        "rarely": odd,
        "winners": [[number, batch, batch] for number in range(3)],
    }


@pytest.fixture(params=["delta", "iceberg"])
def table_format(request):
    return request.param


def test_a_process_that_dies_at_any_step_is_made_good_by_the_next(tmp_path, table_format, format_settings):
    settings = format_settings(table_format, tmp_path)
    project, state = write_project(tmp_path / "project", table_format, settings), tmp_path / "state"
    words = {
        "delta": {"store": "kept_store", "compact": "optimize kept_store.all_rows"},
        "iceberg": {
            "store": "lake.kept",
            "compact": "call lake.system.rewrite_data_files(table => 'kept.all_rows'",
        },
    }[table_format]
    if table_format == "delta":
        (project / "models" / "merged.sql").write_text(MERGED)
    finished = 0
    for batch, text, count in [*DEATHS, (LAST, "", 0)]:
        # Each process first finishes what the one before has left.
        steps = [(number, "", 0) for number in range(max(finished, 1), batch)]
        printed, status = run_process(project, state, [*steps, (batch, text.format(**words), count)])
        assert status == (-9 if text else 0), (text, count, batch)
        for done, rows in printed:
            assert {name: sorted(rows[name]) for name in expected(done)} == expected(done)
        finished = batch
    entry = json.loads((state / "catalog" / "kept" / "all_rows.json").read_text())
    kept = json.loads(entry["properties"]["tidemark.kept"])
    assert (kept["format"], kept["batch"], kept["parts"]) == (table_format, LAST, [])
    if table_format == "delta":
        (folder,) = (state / "warehouse" / "kept_store.db").glob("merged__*")
        merged = DeltaTable(folder)
        assert sorted(row["id"] for row in merged.to_pyarrow_table().to_pylist()) == [0, 1, 2]
        assert {row["batch_id"] for row in merged.to_pyarrow_table().to_pylist()} == {LAST}
        assert [entry["operation"] for entry in merged.history()].count("MERGE") > 0
    check_a_rebuild_that_dies(project, state, "alter view kept.all_rows")


def test_an_iceberg_catalog_of_type_hadoop_is_found_by_the_next_process(tmp_path, format_settings):
    jdbc = format_settings("iceberg", tmp_path)
    settings = {
        **{key: value for key, value in jdbc.items() if not key.endswith((".uri", ".schema-version"))},
        "spark.sql.catalog.lake.type": "hadoop",
    }
    project, state = write_project(tmp_path / "project", "iceberg", settings), tmp_path / "state"
    for batch in (1, 2):
        ((_, rows),), status = run_process(project, state, [(batch, "", 0)])
        assert status == 0
        assert {name: sorted(rows[name]) for name in expected(batch)} == expected(batch)
    assert (tmp_path / "lake" / "kept" / "all_rows" / "metadata").is_dir()
    assert not (state / "warehouse" / "kept_store.db").exists(), (
        "no table of ours beside those of the catalog"
    )
    ((word, said),), _ = run_process(project, tmp_path / "other", [(1, "", 0)])
    assert word == "failed"
    assert f"lake.kept.log_segments is there already, and belongs to {state}" in said
    ((_, rows),), _ = run_process(project, state, [(3, "", 0)])
    assert {name: sorted(rows[name]) for name in expected(3)} == expected(3)
