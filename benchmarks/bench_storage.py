"""What an event log costs on its way to a finished CSV tree, through dbt and Spark: all models that the storage sink needs, and the sink.

    python benchmarks/bench_storage.py [--rows 1000000] [--tables 8] [--protocol csv]

Two demo logs are written into a temporary folder, one of them an eighth of the other, and `dbt run --select +sink_storage` reads each into tables and a tree of its own, in one
process and one Spark session. The first run also warms the session up. What the second takes more than the first is what row changes cost; the rest is fixed.
Models run one after another, so that time and core seconds can be told apart:

    seconds     of the large log
    CPU s       core seconds of driver, JVM and Python workers together
    us per row  CPU seconds by row change, without what is fixed
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path

from dbt.cli.main import dbtRunner

from common import cpu_seconds
from tidemark.demo.shop import write_demo_logs

ROOT = Path(__file__).parent.parent
OPTIONS = {"csv": "protocol=csv", "canal-json": "protocol=canal-json&enable-tidb-extension=true"}


class Run:
    """One dbt run: seconds and core seconds by model."""

    def __init__(self, folder: Path, name: str, rows: int, tables: int, protocol: str):
        self.rows = rows
        self.tree = folder / f"tree-{name}"
        log = folder / f"log-{name}"
        write_demo_logs(log, tables=tables, rows=rows, upstreams=1, seed=7)
        self.log_bytes = sum(file.stat().st_size for file in log.rglob("*.bin"))
        self.cpu: dict[str, float] = {}
        self._last = cpu_seconds()
        variables = {
            "event_logs": [{"upstream_id": "1", "path": str(log / "upstream-1")}],
            "changefeed": {"sink": {"csv": {"include-commit-ts": True}}},
            "sink_uri": f"file://{self.tree}?{OPTIONS[protocol]}",
        }
        os.environ["TIDEMARK_SCHEMA"] = f"bench_{name}"
        command = ["run", "--select", "+sink_storage", "--threads", "1", "--vars", json.dumps(variables)]
        folders = ["--target-path", str(folder / "target"), "--log-path", str(folder / "logs")]
        outcome = dbtRunner(callbacks=[self._note]).invoke([*command, *folders, "--log-level", "none"])
        if not outcome.success:
            messages = [str(node.message) for node in getattr(outcome.result, "results", [])]
            raise SystemExit(f"dbt run failed: {outcome.exception or messages}")
        self.seconds = {node.node.name: node.execution_time for node in outcome.result.results}

    def _note(self, event) -> None:
        if event.info.name in ("NodeStart", "NodeFinished"):
            now = cpu_seconds()
            if event.info.name == "NodeFinished":
                self.cpu[event.data.node_info.node_name] = now - self._last
            self._last = now


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="row changes of the large log")
    parser.add_argument("--tables", type=int, default=8, help="tables of the log")
    parser.add_argument("--protocol", choices=OPTIONS, default="csv")
    args = parser.parse_args()
    os.chdir(ROOT)
    os.environ["DBT_PROFILES_DIR"] = str(ROOT / "profiles")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["TIDEMARK_STATE_DIR"] = str(folder / "state")
        small = Run(folder, "small", args.rows // 8, args.tables, args.protocol)
        large = Run(folder, "large", args.rows, args.tables, args.protocol)
        show(small, large)
        from tidemark.spark.session import stop

        stop()


def show(small: Run, large: Run) -> None:
    cores = os.cpu_count() or 1
    more = large.rows - small.rows
    print(
        f"{large.rows} row changes, {large.log_bytes / 1e6:.0f} MB of log, {cores} cores, load average {os.getloadavg()[0]:.1f}"
    )
    print(f"{'model':24} {'seconds':>8} {'CPU s':>8} {'us per row':>11}")
    for model in large.seconds:
        slope = (large.cpu.get(model, 0) - small.cpu.get(model, 0)) / more * 1e6
        print(f"{model:24} {large.seconds[model]:8.2f} {large.cpu.get(model, 0):8.2f} {slope:11.2f}")
    seconds, cpu = sum(large.seconds.values()), sum(large.cpu.values())
    gained = seconds - sum(small.seconds.values())
    cpu_gained = cpu - sum(small.cpu.values())
    print(f"{'all':24} {seconds:8.2f} {cpu:8.2f} {cpu_gained / more * 1e6:11.2f}")
    print(
        f"rows/s per core: {large.rows / seconds / cores:,.0f} with what is fixed, {more / gained / cores:,.0f} without; "
        f"rows per CPU second: {large.rows / cpu:,.0f} with, {more / cpu_gained:,.0f} without"
    )
    files = [path for path in large.tree.rglob("CDC*") if path.suffix in (".csv", ".json")]
    print(f"tree: {len(files)} data files, {sum(path.stat().st_size for path in files) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
