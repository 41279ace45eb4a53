"""What last-write-wins upserts cost on a local MariaDB, beside plain multi-row REPLACE of the same rows in the same run.

    python benchmarks/bench_mysql.py [--rows 100000] [--rounds 3] [--connections 1 2 4] [--uri mysql://root@127.0.0.1:3306/]

Measured from Arrow columns to committed rows: parameters, statements, network, server. The table has a key, five business columns and the hidden columns;
half of the rows exist already, of which half are newer than what is written. Without --uri a private server is started from the Debian package, with
its defaults for durability (every commit is flushed).

"plain REPLACE" is what a program would do without us: values bound by the driver, 500 rows per statement, one connection. Columns: the slowest and the best
round; the best beside plain REPLACE; rows per core second of this process and its server together; core seconds of this process alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from common import cpu_seconds
from servers import MariaDb
from tidemark.compat import Compat
from tidemark.config import load
from tidemark.sinks.mysql.connection import Connection, Target
from tidemark.sinks.mysql.prepared import encode_rows
from tidemark.sinks.mysql.steps import Step, lww_steps, normal_steps
from tidemark.sinks.mysql.writer import Limits, Writer
from tidemark.wire import types
from tidemark.wire.rows import INSERT, NO_ROW, Changes, RowBatch
from tidemark.wire.table_info import Column, TableInfo

DATABASE = "tidemark_bench"
DDL = (
    f"create table {DATABASE}.orders (id bigint primary key, customer int not null, status varchar(16) not null, total decimal(15,2), note varchar(200), "
    "placed_at datetime(6), _tidb_origin_ts bigint unsigned, _tidb_softdelete_time timestamp(6) null, _tidb_commit_ts bigint unsigned)"
)
FIRST_TS = 450_000_000_000_000_000
BATCH = 10_000


def orders_table() -> TableInfo:
    text = {"charset": "utf8mb4", "collate": "utf8mb4_bin"}
    columns = [
        ("id", types.BIGINT, {"flag": types.NOT_NULL | types.PRIMARY_KEY, "flen": 20}),
        ("customer", types.INT, {"flag": types.NOT_NULL, "flen": 11}),
        ("status", types.VARCHAR, {"flag": types.NOT_NULL, "flen": 16, **text}),
        ("total", types.DECIMAL, {"flen": 15, "decimal": 2}),
        ("note", types.VARCHAR, {"flen": 200, **text}),
        ("placed_at", types.DATETIME, {"flen": 26, "decimal": 6}),
        ("_tidb_origin_ts", types.BIGINT, {"flag": types.UNSIGNED, "flen": 20}),
        ("_tidb_softdelete_time", types.TIMESTAMP, {"flen": 26, "decimal": 6}),
        ("_tidb_commit_ts", types.BIGINT, {"flag": types.UNSIGNED, "flen": 20}),
    ]
    built = [Column(place + 1, name, place, kind, **more) for place, (name, kind, more) in enumerate(columns)]
    return TableInfo.build(DATABASE, "orders", 100, 1, columns=built, is_active_active=True)


def batches(rows: int, seed: int = 7) -> list[RowBatch]:
    table, random = orders_table(), np.random.default_rng(seed)
    keys = random.permutation(rows)
    return [
        _batch(table, keys[start : start + BATCH], FIRST_TS + start, random)
        for start in range(0, rows, BATCH)
    ]


def _batch(table: TableInfo, keys: np.ndarray, first_ts: int, random: np.random.Generator) -> RowBatch:
    count = len(keys)
    micros = random.integers(1_600_000_000, 1_700_000_000, count) * 1_000_000 + random.integers(
        0, 10**6, count
    )
    values = [
        keys,
        random.integers(1, 10**6, count),
        random.choice(["new", "paid", "shipped", "delivered"], count).tolist(),
        [Decimal(int(cents)).scaleb(-2) for cents in random.integers(0, 10**7, count)],
        [
            None if size < 30 else "please deliver to the back door "[: size // 4]
            for size in random.integers(0, 120, count)
        ],
        [str(moment).replace("T", " ") for moment in micros.astype("datetime64[us]")],
        *[pa.nulls(count)] * 3,
    ]
    arrays = [pa.array(value, field.type) for value, field in zip(values, table.arrow_schema, strict=True)]
    commit_ts = np.arange(first_ts, first_ts + count, dtype=np.uint64)
    changes = Changes(
        op=np.full(count, INSERT, dtype=np.uint8),
        pre=np.full(count, NO_ROW),
        post=np.arange(count),
        start_ts=commit_ts - np.uint64(1),
        commit_ts=commit_ts,
        seq=commit_ts,
        epoch=np.zeros(count, dtype=np.uint64),
        physical_table_id=np.full(count, table.table_id),
        row_key=pa.nulls(count, pa.binary()),
    )
    return RowBatch(table, pa.RecordBatch.from_arrays(arrays, schema=table.arrow_schema), changes, b"d" * 16)


def prepare(session: Connection, rows: int) -> None:
    """Half of the keys are there, every second of them with a newer write."""
    session.execute(f"drop database if exists {DATABASE}")
    session.execute(f"create database {DATABASE}")
    session.execute(DDL)
    older, newer = FIRST_TS - 1, FIRST_TS + 10 * rows
    for start in range(0, rows, 2000):
        there = [(key, newer if key % 4 else older) for key in range(start, min(start + 2000, rows), 2)]
        marks = ",".join(["(%s, 1, 'old', %s)"] * len(there))
        session.execute(
            f"insert into {DATABASE}.orders (id, customer, status, _tidb_origin_ts) values {marks}",
            [value for pair in there for value in pair],
        )
    session.commit()


@dataclass(frozen=True)
class Measured:
    seconds: float
    core_seconds: float
    own_core_seconds: float


def measure(target: Target, rows: int, write: Callable[[], int]) -> Measured:
    session = Connection(target)
    prepare(session, rows)
    session.close()
    start, used, own = time.perf_counter(), cpu_seconds(), time.process_time()
    written = write()
    seconds, used, own = time.perf_counter() - start, cpu_seconds() - used, time.process_time() - own
    assert written == rows
    return Measured(seconds, used, own)


def plain_replace(target: Target, data: list[RowBatch]) -> int:
    session, written = Connection(target), 0
    for batch in data:
        for step in normal_steps(batch):
            rows, names = step.rows, ",".join(step.params.schema.names)
            marks = "(" + ",".join(["%s"] * step.params.num_columns) + ")"
            for start in range(0, len(rows), 500):
                some = rows[start : start + 500]
                sql = f"replace into {DATABASE}.orders ({names}) values {','.join([marks] * len(some))}"
                session.execute(sql, [value for row in some for value in row])
                written += len(some)
                if not written % 2000:
                    session.commit()
    session.commit()
    session.close()
    return written


def written_with(
    target: Target, connections: int, data: list[RowBatch], steps_of: Callable[[RowBatch], list[Step]]
) -> int:
    with Writer(target, Limits(connections=connections)) as writer:
        return sum(writer.write(steps_of(batch)).rows for batch in data)


def run(target: Target, args: argparse.Namespace) -> None:
    data = batches(args.rows)
    design, ticdc = Compat.named("design"), Compat.named("ticdc")
    start = time.perf_counter()
    for batch in data:
        for step in lww_steps(batch, design, skip_replicated=True):
            encode_rows(step.params)
    print(f"{args.rows} rows of {len(data[0].table.columns)} columns, load average {os.getloadavg()[0]:.1f}")
    print(f"Arrow columns -> parameters: {args.rows / (time.perf_counter() - start):,.0f} rows/s")
    ways = {"plain REPLACE": partial(plain_replace, target, data)}
    for connections in args.connections:
        for name, steps_of in {
            "REPLACE": normal_steps,
            "upsert, design": partial(lww_steps, compat=design, skip_replicated=True),
            "upsert, ticdc": partial(lww_steps, compat=ticdc, skip_replicated=True),
        }.items():
            ways[f"{connections} connections: {name}"] = partial(
                written_with, target, connections, data, steps_of
            )
    found: dict[str, list[Measured]] = {name: [] for name in ways}
    for _ in range(args.rounds):
        for name, write in ways.items():
            found[name].append(measure(target, args.rows, write))
    plain = min(each.seconds for each in found["plain REPLACE"])
    print(f"{'':32} {'slowest':>10} {'best':>10} {'of plain':>9} {'per core s':>10} {'own core s':>10}")
    for name, rounds in found.items():
        seconds = sorted(each.seconds for each in rounds)
        cores, own = min(each.core_seconds for each in rounds), min(each.own_core_seconds for each in rounds)
        print(
            f"{name:32} {args.rows / seconds[-1]:10,.0f} {args.rows / seconds[0]:10,.0f} {plain / seconds[0]:9.2f} "
            f"{args.rows / cores:10,.0f} {own:10.2f}"
        )
    print(f"load average {os.getloadavg()[0]:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument(
        "--uri", help="a server to write to, instead of a private one; its database tidemark_bench is dropped"
    )
    args = parser.parse_args()
    if args.uri:
        run(Target.from_settings(load(None, args.uri)), args)
        return
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        server = MariaDb(Path(folder))
        server.start()
        try:
            run(Target.from_settings(load(None, server.uri)), args)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
