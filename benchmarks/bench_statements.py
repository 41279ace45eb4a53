"""What a run of so many models costs that have next to nothing to do: the part of `bench_models.py` that no query of ours can save.

    python benchmarks/bench_statements.py [--models 9] [--views 12]

A dbt project of incremental models in a chain, each of which takes ten rows from the one before, and of views. Of the 21 models of `+current_rows` a run with a few new
rows adds to nine; the others it only looks at, as here at the views. dbt and Spark run in this process; Spark is there before the clock starts. The first run builds the tables, in a session in which Java has
not compiled its code; of the later ones, each of which adds ten rows to every table, the fastest of five is shown.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

from dbt.cli.main import dbtRunner

PROFILES = Path(__file__).resolve().parent.parent / "profiles"
PROJECT = """
name: chain
version: "1.0"
profile: tidemark
model-paths: [models]
models: {chain: {+materialized: incremental, +partition_by: batch_id}}
"""
FIRST = "select id, cast(id as string) as name, {{ var('batch') }}L as batch_id from range(10)"
NEXT = "select * from {{{{ ref('model_{0}') }}}} where batch_id = {{{{ var('batch') }}}}"
VIEW = "{{{{ config(materialized='view') }}}} select * from {{{{ ref('model_{0}') }}}}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=9, help="incremental models, a chain (default 9)")
    parser.add_argument("--views", type=int, default=12, help="views of them (default 12)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_project(folder, args.models, args.views)
        run(folder, 0, "--select", "model_0")
        first = run(folder, 1)
        later = min(run(folder, batch) for batch in range(2, 7))
    print(f"{args.models} models and {args.views} views, load average {os.getloadavg()[0]:.1f}")
    print(f"first run {first:.1f} s, with ten more rows for each model {later:.1f} s")


def write_project(folder: Path, models: int, views: int) -> None:
    (folder / "models").mkdir()
    (folder / "dbt_project.yml").write_text(PROJECT)
    for number in range(models):
        text = NEXT.format(number - 1) if number else FIRST
        (folder / "models" / f"model_{number}.sql").write_text(text)
    for number in range(views):
        (folder / "models" / f"view_{number}.sql").write_text(VIEW.format(models - 1 - number % models))


def run(folder: Path, batch: int, *selection: str) -> float:
    variables = {"state_dir": str(folder / "state"), "batch": batch}
    # The adapter checks the settings of every run.
    variables["event_logs"] = [{"upstream_id": "1", "path": str(folder)}]
    places = ["--project-dir", str(folder), "--profiles-dir", str(PROFILES)]
    places += ["--target-path", str(folder / "target"), "--log-path", str(folder / "logs")]
    start = time.perf_counter()
    outcome = dbtRunner().invoke(
        ["run", *selection, "--vars", json.dumps(variables), "--log-level", "none", *places]
    )
    if not outcome.success:
        raise SystemExit(f"dbt run failed; see {folder / 'logs'}")
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
