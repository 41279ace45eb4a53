"""What an event log costs on its way to a finished CSV tree, through dbt and Spark: all models that the storage sink needs, and the sink.

    python benchmarks/bench_storage.py [--rows 1000000] [--tables 8] [--protocol csv]

Two demo logs are written into a temporary folder, one of them an eighth of the other, and `dbt run --select +sink_storage` reads each twice into tables and a tree of its own, in
one process and one Spark session: large, small, large, small. In the first round Java compiles its code while it runs, which is reported in one line. Of the second round, what the
large log takes more is what row changes cost; the rest is fixed. DBT_PROFILES_DIR may name another profile, with other Spark settings. Models run one after another, so that time and
core seconds can be told apart:

    seconds     of the large log, second round
    CPU s       core seconds of driver, JVM and Python workers together
    us per row  CPU seconds by row change, without what is fixed

With --task only what a task of the sink does is measured, on one core and outside of Spark: decided rows are read from the log again, encoded and staged.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from dbt.cli.main import dbtRunner

from common import CpuMeter
from tidemark.config import load
from tidemark.demo.shop import write_demo_logs
from tidemark.joined_frames import frames_at
from tidemark.log_schemas import LogSchemas
from tidemark.logs import find_logs, open_log, read_exactly
from tidemark.sinks.logged_rows import logged_rows
from tidemark.sinks.storage.filesystem import LocalStore
from tidemark.sinks.storage.span import Span
from tidemark.sinks.storage.staging import stage_decided
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.framing import scan
from tidemark.wire.registry import decode
from tidemark.wire.rows import op_names

ROOT = Path(__file__).parent.parent
CHANGEFEED = {"sink": {"csv": {"include-commit-ts": True}}}
OPTIONS = {"csv": "protocol=csv", "canal-json": "protocol=canal-json&enable-tidb-extension=true"}


class Run:
    """One dbt run: seconds and core seconds by model."""

    def __init__(self, meter: CpuMeter, folder: Path, name: str, rows: int, tables: int, protocol: str):
        self.rows, self._meter = rows, meter
        self.tree = folder / f"tree-{name}"
        log = folder / f"log-{rows}"
        if not log.exists():
            write_demo_logs(log, tables=tables, rows=rows, upstreams=1, seed=7)
        self.log_bytes = sum(file.stat().st_size for file in log.rglob("*.bin"))
        self.cpu: dict[str, float] = {}
        self._last = meter.seconds()
        variables = {
            "event_logs": [{"upstream_id": "1", "path": str(log / "upstream-1")}],
            "changefeed": CHANGEFEED,
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
            now = self._meter.seconds()
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
    parser.add_argument("--task", action="store_true", help="only a task of the sink, outside of Spark")
    args = parser.parse_args()
    if args.task:
        task(args.rows, args.tables, args.protocol)
        return
    os.chdir(ROOT)
    os.environ.setdefault("DBT_PROFILES_DIR", str(ROOT / "profiles"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["TIDEMARK_STATE_DIR"] = str(folder / "state")
        meter = CpuMeter()
        for turn in ("first", "second"):
            large = Run(meter, folder, f"large_{turn}", args.rows, args.tables, args.protocol)
            small = Run(meter, folder, f"small_{turn}", args.rows // 8, args.tables, args.protocol)
            if turn == "first":
                print(
                    f"first round: {sum(large.seconds.values()):.1f} s, {sum(large.cpu.values()):.1f} CPU s\n"
                )
        show(small, large)
        from tidemark.spark.session import stop

        stop()


def task(rows: int, tables: int, protocol: str) -> None:
    settings = load(CHANGEFEED, f"file:///x?{OPTIONS[protocol]}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_demo_logs(folder / "log", tables=tables, rows=rows, upstreams=1, seed=7)
        places, decisions, last_ts = decide_all(folder / "log")
        batches = decisions.to_batches(max_chunksize=10_000)
        start = time.process_time()
        for _ in logged_rows(batches, LogSchemas(places)):
            pass
        read = time.process_time() - start
        start = time.process_time()
        store = LocalStore(str(folder / "tree"))
        stage_decided(store, Span(0, last_ts), settings, logged_rows(batches, LogSchemas(places)))
        staged = time.process_time() - start
    count = decisions.num_rows
    print(f"{count} row changes, {protocol}, one core, load average {os.getloadavg()[0]:.1f}")
    print(
        f"read again: {count / read:,.0f} rows per CPU second; with encoding and staging: {count / staged:,.0f}"
    )


def decide_all(log: Path) -> tuple[list[list], pa.Table, int]:
    """Everything in a log is sent as it is: places of schemas, decisions in the order of the sink, and the last commit ts."""
    places, columns = [], []
    for file in find_logs(str(log)):
        offsets = []
        with open_log(file.path) as stream:
            for frame in scan(stream):
                event = decode(read_exactly(stream, frame.offset, frame.length))
                if isinstance(event, HandshakeEvent | DDLEvent):
                    where = [file.path, frame.offset, frame.length]
                    places.append(["1", event.dispatcher_id.hex(), event.epoch, event.seq, *where])
                elif isinstance(event, BatchDMLEvent) and event.transactions:
                    offsets.append(frame.offset)
            for group in frames_at(offsets, "1", stream, LogSchemas(places)):
                found = group.decode()[0]
                changes = found.batch.changes
                columns.append(
                    pa.table(
                        {
                            "file": pa.repeat(file.path, len(changes)),
                            "offset": found.offset,
                            "row_number": found.row_number.astype("int32"),
                            "policy_op": op_names().take(pa.array(changes.op)),
                            "table": pa.repeat(found.batch.table.table, len(changes)),
                            "version": pa.repeat(group.schema.table_info_version, len(changes)),
                            "commit_ts": changes.commit_ts.astype("int64"),
                            "seq": changes.seq.astype("int64"),
                        }
                    )
                )
    order = [(name, "ascending") for name in ("table", "version", "commit_ts", "seq", "row_number")]
    rows = pa.concat_tables(columns).sort_by(order)
    decisions = rows.select(["file", "offset", "row_number", "policy_op"])
    decisions = decisions.add_column(0, "upstream_id", [pa.repeat("1", rows.num_rows)])
    return places, decisions, pc.max(rows["commit_ts"]).as_py()


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
