"""Models that grow by batches: how their parts merge, and what a process that dies at any step leaves to the next one."""

import json
import os
import re
import subprocess
import sys

import jinja2
import pytest
import yaml
from kept_project import ROOT, check_a_rebuild_that_dies, run_process, write_project

from doc_pages import blocks

KB, MB = 1024, 1024 * 1024


def expected(batch):
    return {
        "all_rows": [[number, 0, of] for number in range(3) for of in range(1, batch + 1)],
        "last_rows": [[7, batch, batch]],
        "odd_rows": [[number, of] for number in range(3) for of in range(1, batch + 1, 2)],
        "rarely": [[number, of] for number in range(3) for of in range(1, batch + 1, 2)],
    }


class Returned(Exception):
    pass


@pytest.fixture(scope="module")
def parts_to_merge():
    """The macro, as a function."""

    def give_back(value):
        raise Returned(value)

    macros = jinja2.Environment(extensions=["jinja2.ext.do"]).from_string(
        (ROOT / "macros" / "kept" / "parts.sql").read_text(), globals={"return": give_back}
    )

    def call(parts):
        with pytest.raises(Returned) as returned:
            macros.module.parts_to_merge(parts)
        return returned.value.args[0]

    return call


@pytest.mark.parametrize(
    ("sizes", "merged"),
    [
        ([10 * KB] * 7, 0),
        ([10 * KB] * 8, 8),
        ([200 * MB] + [10 * KB] * 7, 0),
        ([200 * MB] + [10 * KB] * 8, 8),
        # a large one among small ones divides them
        ([10 * KB] * 4 + [200 * MB] + [10 * KB] * 4, 0),
        ([3 * MB] * 7 + [10 * KB] * 7, 14),
        ([200 * MB] * 3 + [3 * MB] * 7 + [10 * KB], 8),
        ([3000 * MB] * 20, 0),
    ],
)
def test_the_newest_parts_are_merged_when_they_are_eight_of_like_size(parts_to_merge, sizes, merged):
    parts = [[number, size] for number, size in enumerate(sizes, 1)]
    newest = [number for number, _ in reversed(parts)]
    assert parts_to_merge(parts) == newest[:merged]


def test_parts_grow_with_the_logarithm_of_the_writes(parts_to_merge):
    parts, rewritten, most = [], 0, 0
    for number in range(1, 5001):
        parts.append([number, 20 * KB])
        merged = parts_to_merge(parts)
        if merged:
            size = sum(size for part, size in parts if part in merged)
            parts = [part for part in parts if part[0] not in merged] + [[number + 0.5, size]]
            rewritten += size
        most = max(most, len(parts))
    assert most <= 24
    assert rewritten <= 6 * 5000 * 20 * KB


def shown(state, name):
    entry = json.loads((state / "catalog" / "kept" / f"{name}.json").read_text())
    return json.loads(entry["properties"]["tidemark.kept"])


# The process dies before the n-th statement with this text in the run of this batch. Eight parts of all_rows are merged in batch 8.
DEATHS = [
    (1, "create table kept_store.all_rows__", 1),
    (2, "create or replace view kept.all_rows", 1),
    (3, "insert overwrite table kept_store.all_rows__", 1),
    (4, "alter view kept.rarely", 1),
    (5, "create or replace view kept.last_rows", 1),
    (6, "create or replace view kept.winners", 1),
    (7, "create or replace view kept.notes", 1),
    (8, "insert overwrite table kept_store.all_rows__", 2),
    (8, "create or replace view kept.all_rows", 1),
    (9, "alter table kept_store.all_rows__", 1),
]
LAST = 10


@pytest.mark.long
def test_a_process_that_dies_at_any_step_is_made_good_by_the_next(tmp_path):
    project, state = write_project(tmp_path / "project"), tmp_path / "state"
    finished = 0
    for batch, text, count in [*DEATHS, (LAST, "", 0)]:
        # Each process first finishes what the one before has left.
        steps = [(number, "", 0) for number in range(max(finished, 1), batch)]
        printed, status = run_process(project, state, [*steps, (batch, text, count)])
        assert status == (-9 if text else 0), (text, count, batch)
        assert [done for done, _ in printed] == [number for number, *_ in steps] + ([] if text else [batch])
        for done, rows in printed:
            assert {name: sorted(rows[name]) for name in expected(done)} == expected(done)
            assert {
                key: max(of for other, _, of in rows["winners"] if other == key) for key in range(3)
            } == dict.fromkeys(range(3), done)
        finished = batch
    kept = shown(state, "all_rows")
    assert len(kept["parts"]) < 8
    (table,) = (state / "warehouse" / "kept_store.db").glob("all_rows__*")
    assert re.fullmatch(r"all_rows__\d{20}", table.name)
    assert len(list(table.glob("part=*"))) <= len(kept["parts"]) + len(kept["left"])
    check_a_rebuild_that_dies(project, state, "create or replace view kept.all_rows")


@pytest.mark.long
def test_a_hive_metastore_of_the_profile_takes_the_place_of_our_catalog(tmp_path):
    """The settings are those of docs/table-formats.md. The second process finds what the first has made."""
    (shown,) = (
        block
        for block in blocks("docs/table-formats.md")
        if "catalogImplementation" in block.text and block.language == "yaml"
    )
    state = tmp_path / "state"
    settings = {
        key: str(value).replace("/data/metastore", str(state / "metastore"))
        for key, value in yaml.safe_load(shown.text)["spark_settings"].items()
    }
    project = write_project(tmp_path / "project", spark_settings=settings)
    for batch in (1, 2):
        ((done, rows),), status = run_process(project, state, [(batch, "", 0)])
        assert (done, status) == (batch, 0)
        assert {name: sorted(rows[name]) for name in expected(batch)} == expected(batch)
    assert (state / "metastore").is_dir()
    assert not (state / "catalog").exists()


@pytest.mark.long
def test_a_format_without_its_jars_ends_the_command_with_one_sentence(tmp_path):
    project = write_project(
        tmp_path / "project", "delta", {"spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension"}
    )
    done = subprocess.run(
        [sys.executable, "-m", "dbt.cli.main", "run"],
        cwd=project,
        env={**os.environ, "TIDEMARK_STATE_DIR": str(tmp_path / "state"), "DBT_PROFILES_DIR": str(project)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode != 0
    assert "Delta is not there" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert "\tat org." not in done.stdout + done.stderr
