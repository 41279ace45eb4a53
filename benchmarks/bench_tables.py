"""Many tables with a few rows each, beside a few tables with as many rows: what int_row_changes costs.

    python benchmarks/bench_tables.py [--tables 2000] [--rows 25] [--rounds 5] [--no-dbt]

The same row changes are written for many tables and for three (benchmarks/many_tables_stream.py). Decoding them is measured twice: by the function that the tasks call, outside of Spark, and as the
model int_row_changes in a dbt run, in a session that has run everything once before. CPU seconds are those of all processes together. Reported are:

    few       CPU seconds for three tables
    many      CPU seconds for many tables
    ratio     many / few
    ms/table  (many - few) / tables: what a table costs besides its rows
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

from dbt.cli.main import dbtRunner

from common import CpuMeter
from many_tables_stream import FRAME, ManyTables, write_many_tables
from tidemark.log_schemas import LogSchemas
from tidemark.spark.row_change_writer import row_change_batches

ROOT = Path(__file__).parent.parent
FEW = 3
MODEL = "int_row_changes"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=2_000, help="number of tables (default 2000)")
    parser.add_argument("--rows", type=int, default=25, help="row changes of each (default 25)")
    parser.add_argument("--rounds", type=int, default=5, help="the best of so many counts (default 5)")
    parser.add_argument("--no-dbt", action="store_true", help="only outside of Spark")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = {}
        for kind, tables, frame in (("few", FEW, FRAME), ("many", args.tables, 10)):
            (folder / kind).mkdir()
            rows = -(-args.tables * args.rows // tables)
            logs[kind] = write_many_tables(folder / kind / "log.bin", tables, rows, frame)
        print(f"{args.tables} tables of {args.rows} row changes, load average {os.getloadavg()[0]:.1f}\n")
        print(f"{'':20}{'few':>8}{'many':>8}{'ratio':>8}{'ms/table':>10}")
        show("outside of Spark", {kind: alone(log, args.rounds) for kind, log in logs.items()}, args.tables)
        if not args.no_dbt:
            show(f"model {MODEL}", through_dbt(folder), args.tables)


def show(what: str, cpu: dict[str, float], tables: int) -> None:
    few, many = cpu["few"], cpu["many"]
    print(f"{what:20}{few:8.2f}{many:8.2f}{many / few:8.1f}{1000 * (many - few) / tables:10.3f}")


def alone(log: ManyTables, rounds: int) -> float:
    places, transactions = log.schemas(), log.batch()
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        for _ in row_change_batches(transactions, LogSchemas(places), {}):
            pass
        best = min(best, time.process_time() - start)
    return best


def through_dbt(folder: Path) -> dict[str, float]:
    os.chdir(ROOT)
    os.environ["TIDEMARK_STATE_DIR"] = str(folder / "state")
    meter = CpuMeter()
    dbt(folder, meter, "few", "seed", "seed")
    for turn in ("first", "second"):
        found = {
            kind: dbt(folder, meter, kind, f"{kind}_{turn}", "run", "--select", f"+{MODEL}")[MODEL]
            for kind in ("few", "many")
        }
    from tidemark.spark.session import stop

    stop()
    return found


def dbt(folder: Path, meter: CpuMeter, kind: str, schema: str, *command: str) -> dict[str, float]:
    """CPU seconds by model. Each run has a schema of its own, and so begins with nothing."""
    used: dict[str, float] = {}
    last = [meter.seconds()]

    def note(event) -> None:
        if event.info.name in ("NodeStart", "NodeFinished"):
            now = meter.seconds()
            if event.info.name == "NodeFinished":
                used[event.data.node_info.node_name] = now - last[0]
            last[0] = now

    os.environ["TIDEMARK_SCHEMA"] = f"bench_{schema}"
    variables = {"event_logs": [{"upstream_id": "1", "path": str(folder / kind)}]}
    places = ["--target-path", str(folder / "target"), "--log-path", str(folder / "logs")]
    options = ["--threads", "1", "--vars", json.dumps(variables), "--profiles-dir", "profiles"]
    outcome = dbtRunner(callbacks=[note]).invoke([*command, *options, *places, "--log-level", "none"])
    if not outcome.success:
        raise SystemExit(f"dbt {' '.join(command)} failed; see {folder / 'logs'}")
    return used


if __name__ == "__main__":
    main()
