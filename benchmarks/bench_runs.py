"""Tiny runs one after another: what a run costs, and what a new process costs before it begins, must not depend on how many runs there were.

    python benchmarks/bench_runs.py [--runs 100] [--like 1000] [--rows 60]

Three clusters write the same table (benchmarks/clusters_stream.py), a few rows before each run. dbt and Spark run in this process. At the tenth run, at the last, and in a state that is made
to look like many more runs, the benchmark measures

    run            core seconds of a run with a few new rows: the middle one of five
    process        core seconds of a new process that runs dbt without a model: start, and restoring the catalog; the middle one of three
    files, parts   what the models hold by then

The state that looks like more runs has the rows of all batches again under later numbers, and under other file names.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_models import CLUSTERS, dbt, write
from clusters_stream import Cluster

SCHEMA = "tidemark"
# How many runs a figure is the middle of.
NEAR = 5
# What a table that was written often has beside its one large part.
NEWER_PARTS = 6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100, help="real runs (default 100)")
    parser.add_argument(
        "--like", type=int, default=1000, help="runs that the state is made to look like (default 1000)"
    )
    parser.add_argument("--rows", type=int, default=60, help="row changes of a run (default 60)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        measure(Path(name), args)


def measure(folder: Path, args: argparse.Namespace) -> None:
    clusters = [Cluster(folder / "log" / str(n + 1), n, CLUSTERS, 1000) for n in range(CLUSTERS)]
    print(f"load average {os.getloadavg()[0]:.1f}\n")
    print(
        f"{'after':>16}{'run CPU s':>11}{'process CPU s':>15}{'files':>8}{'parts':>8}{'of tenth: run':>15}{'process':>9}"
    )
    dbt(folder, "seed")
    costs, tenth = [], None
    for number in range(1, args.runs + 1):
        costs.append(tiny_run(folder, clusters, args.rows))
        if number == 10 or number == args.runs:
            tenth = report(folder, f"{number} runs", costs[-NEAR:], tenth)
    repeat_batches(folder / "state", args.like // args.runs)
    costs = [tiny_run(folder, clusters, args.rows) for _ in range(NEAR)]
    report(folder, f"like {args.like} runs", costs, tenth)


def tiny_run(folder: Path, clusters: list[Cluster], rows: int) -> float:
    write(clusters, rows)
    return dbt(folder, "run", "--select", "+current_rows").cpu


def report(
    folder: Path, after: str, costs: list[float], tenth: tuple[float, float] | None
) -> tuple[float, float]:
    from tidemark.spark.session import stop

    # The new process waits for the state folder otherwise.
    stop()
    run, process = statistics.median(costs), statistics.median(process_cpu(folder) for _ in range(3))
    warehouse = folder / "state" / "warehouse"
    files, parts = (len(list(warehouse.rglob(pattern))) for pattern in ("*.parquet", "part=*"))
    ratios = f"{run / tenth[0]:15.2f}{process / tenth[1]:9.2f}" if tenth else ""
    print(f"{after:>16}{run:11.2f}{process:15.2f}{files:8}{parts:8}{ratios}", flush=True)
    # In a new session the next runs would pay for Java's compiler.
    for _ in range(NEAR):
        dbt(folder, "run", "--select", "+current_rows")
    return tenth or (run, process)


def process_cpu(folder: Path) -> float:
    """What a process costs that finds the tables, and does nothing with them."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Java's seconds count when someone has waited for its end.
    code = (
        "import sys; from pathlib import Path; from tidemark.spark.session import session;"
        "gateway = session(Path(sys.argv[1]), {}).sparkContext._gateway;"
        "gateway.shutdown(); gateway.proc.stdin.close(); gateway.proc.wait()"
    )
    subprocess.run([sys.executable, "-c", code, str(folder / "state")], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def repeat_batches(state_dir: Path, times: int) -> None:
    """The rows of all batches again, as if as many runs had brought them; each table then has a few parts."""
    from tidemark.spark.session import note_changes, session

    spark = session(state_dir, {})
    for view in [
        row.viewName for row in spark.sql(f"show views in {SCHEMA}").collect() if not row.isTemporary
    ]:
        properties = {
            row.key: row.value for row in spark.sql(f"show tblproperties {SCHEMA}.{view}").collect()
        }
        kept = json.loads(properties.get("tidemark.kept", "null"))
        if not kept or not kept["batch"]:
            continue
        table, batches = f"{SCHEMA}_store.{properties['tidemark.version']}", kept["batch"]
        columns = spark.table(f"{SCHEMA}.{view}").columns
        # These do not grow with runs.
        last_only = view in ("int_epochs", "int_winners", "stg_handshakes", "stg_ddl_events")
        # The last copy is the real one, whose files the next run looks at.
        changed = {
            "batch_id": f"batch_id + {batches} * again as batch_id",
            "file": f"if(again = {times - 1}, file, concat(file, '#', again)) as file",
        }
        moved = [changed.get(name, f"`{name}`") for name in columns]
        first = times - 1 if last_only else 0
        rows = f"(select *, again from {SCHEMA}.{view} lateral view explode(sequence({first}, {times - 1})) as again)"
        new = max([part for part, _ in kept["parts"]] + kept["left"] + [0]) + 1
        # An old part with most of the rows, and newer ones, as merging leaves them.
        spark.sql(
            f"insert overwrite table {table} partition (part) by name select /*+ repartition(1) */ {', '.join(moved)}, "
            f"{new} + greatest(0, again - {times - NEWER_PARTS}) as part from {rows}"
        )
        parts = [
            [part, size]
            for part in range(new, new + NEWER_PARTS)
            if (size := part_bytes(state_dir, table, part))
        ]
        kept |= {"batch": batches * times, "rows_of": batches * times, "parts": parts}
        shown = f"part in ({', '.join(str(part) for part, _ in parts)})" if parts else "false"
        spark.sql(
            f"create or replace view {SCHEMA}.{view} tblproperties ('tidemark.version' = '{properties['tidemark.version']}', "
            f"'tidemark.kept' = '{json.dumps(kept)}') as select {', '.join(f'`{name}`' for name in columns)} from {table} where {shown}"
        )
    note_changes()


def part_bytes(state_dir: Path, table: str, part: int) -> int:
    schema, name = table.split(".")
    folder = state_dir / "warehouse" / f"{schema}.db" / name / f"part={part}"
    return sum(path.stat().st_size for path in folder.glob("*.parquet"))


if __name__ == "__main__":
    main()
