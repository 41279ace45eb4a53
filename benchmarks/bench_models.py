"""From event logs to current rows, through dbt and Spark: a first run, runs without anything new and without rows, and one with a little more.

    python benchmarks/bench_models.py [--rows 1000000] [--more 10000] [--keys 100000] [--again] [--table-format delta]

Three clusters write the same active-active table (benchmarks/clusters_stream.py). dbt and Spark run in this process, as in a real run; Spark and the seeds are there before the
clock starts. Of the runs without rows and of those with a little more, the faster of two counts. Give --rows twice as large to see how time grows. With --again a last run has as many rows as the first, in a session in which Java has compiled its code. Reported are:

    seconds      what a run took
    CPU s        core seconds of all processes together: the same without what others do on the machine
    rows/s       row changes / seconds, with everything that a run costs however little there is to do
    beyond empty row changes / (seconds - those of a run without anything new)
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from dbt.cli.main import dbtRunner

from clusters_stream import Cluster
from common import cpu_seconds

CLUSTERS = 3
CHANGEFEED = {"bdr-mode": True, "enable-active-active": True}
# The format of all tables in this process: a session has it from the start.
FORMAT = {"table_format": "parquet"}


class Run(NamedTuple):
    seconds: float
    cpu: float
    # The seconds of each test.
    tests: list[tuple[float, str]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows", type=int, default=1_000_000, help="row changes of the first run (default 1000000)"
    )
    parser.add_argument(
        "--more", type=int, default=10_000, help="row changes of the second run (default 10000)"
    )
    parser.add_argument("--keys", type=int, default=100_000, help="different keys (default 100000)")
    parser.add_argument("--again", action="store_true", help="at the end, as many row changes as at first")
    parser.add_argument(
        "--table-format", default="parquet", choices=["parquet", "delta", "iceberg"], help="(default parquet)"
    )
    args = parser.parse_args()
    FORMAT["table_format"] = args.table_format
    with tempfile.TemporaryDirectory() as name:
        measure(Path(name), args)


def measure(folder: Path, args: argparse.Namespace) -> None:
    clusters = [Cluster(folder / "log" / str(n + 1), n, CLUSTERS, args.keys) for n in range(CLUSTERS)]
    rows = write(clusters, args.rows)
    size = sum(file.stat().st_size for file in (folder / "log").rglob("*.bin"))
    print(f"{rows:,} row changes, {size / 1e6:.0f} MB, load average {os.getloadavg()[0]:.1f}\n")
    dbt(folder, "seed")
    first = dbt(folder, "run", "--select", "+current_rows")
    empty = min(dbt(folder, "run", "--select", "+current_rows") for _ in range(2))
    without_rows, with_more = [], []
    for _ in range(2):
        write(clusters, 0)
        without_rows.append(dbt(folder, "run", "--select", "+current_rows"))
        more = write(clusters, args.more)
        with_more.append(dbt(folder, "run", "--select", "+current_rows"))
    quiet, second = min(without_rows), min(with_more)
    runs = [("first", rows, first), ("nothing new", 0, empty), ("resolved events only", 0, quiet)]
    runs.append(("a little more", more, second))
    if args.again:
        write(clusters, args.rows)
        runs.append(("as many again", rows, dbt(folder, "run", "--select", "+current_rows")))
    print(f"{'run':28}{'rows':>12}{'seconds':>9}{'CPU s':>8}{'rows/s':>10}{'beyond empty':>14}")
    for what, count, run in runs:
        beyond = f"{count / max(run.seconds - empty.seconds, 0.001):,.0f}" if count == rows else ""
        print(f"{what:28}{count:12,}{run.seconds:9.1f}{run.cpu:8.1f}{count / run.seconds:10,.0f}{beyond:>14}")
    for what, base in (("without anything new", empty), ("with resolved events only", quiet)):
        expected = base.seconds + (first.seconds - base.seconds) * more / rows
        print(
            f"\n{more:,} more rows: {second.seconds:.1f} s; a run {what} and their share of the first run: "
            f"{expected:.1f} s ({second.seconds / expected - 1:+.1%})"
        )


def write(clusters: list[Cluster], rows: int) -> int:
    for cluster in clusters:
        cluster.write(rows // len(clusters))
    return rows // len(clusters) * len(clusters)


def dbt(folder: Path, *arguments: str, variables: dict[str, Any] | None = None) -> Run:
    variables = {
        **(variables or {}),
        "state_dir": str(folder / "state"),
        "event_logs": [
            {"upstream_id": str(n + 1), "path": str(folder / "log" / str(n + 1))} for n in range(CLUSTERS)
        ],
        "changefeed": CHANGEFEED,
        "sink_uri": "tidb://root@127.0.0.1:4000/",
        **FORMAT,
    }
    os.environ["TIDEMARK_LAKE"] = str(folder / "lake")
    target = "embedded" if FORMAT["table_format"] == "parquet" else FORMAT["table_format"]
    command = [
        *arguments,
        "--target",
        target,
        "--vars",
        json.dumps(variables),
        "--profiles-dir",
        "profiles",
        "--log-level",
        "none",
    ]
    places = ["--target-path", str(folder / "target"), "--log-path", str(folder / "logs")]
    start, used = time.perf_counter(), cpu_seconds()
    outcome = dbtRunner().invoke([*command, *places])
    seconds, cpu = time.perf_counter() - start, cpu_seconds() - used
    if not outcome.success:
        failed = outcome.exception or [
            node.message for node in outcome.result.results if node.status in ("error", "fail")
        ]
        raise SystemExit(f"dbt {' '.join(arguments)} failed: {failed}")
    nodes = getattr(outcome.result, "results", [])
    tests = [(node.execution_time, node.node.name) for node in nodes if "test" in node.node.resource_type]
    return Run(seconds, cpu, tests)


if __name__ == "__main__":
    main()
