"""How fast rows are decoded: wire bytes to finished Arrow columns of all values, on one core.

    python benchmarks/bench_wire.py [LOG] [--seconds N]

Without LOG a stream of the same shape is generated. Beside the vectorised decoder runs a naive one, row by row, on the same bytes. The other tables
say how much memory a log takes, whatever its size, and what a cell of each type costs (JSON is the family that loops over cells).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pyarrow as pa

from common import best_time, peak_memory_mib
from naive_rows import decode_rows
from orders_stream import orders_stream
from tidemark.wire import types
from tidemark.wire.chunk import decode_chunks, encode_chunk
from tidemark.wire.framing import Frame, scan
from tidemark.wire.registry import EVENT_TYPES, decode
from tidemark.wire.rows import decode_batch
from tidemark.wire.table_info import Column, TableInfo
from tidemark.wire.tracker import SchemaTracker

BATCHES = 42
JOINED = 12
BATCH_DML = next(kind.id for kind in EVENT_TYPES.values() if kind.name == "batch_dml")
CELLS = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", nargs="?", type=Path, help="a log of one table; generated when left out")
    parser.add_argument("--seconds", type=float, default=3.0, help="time for each measurement")
    parser.add_argument("--read-only", type=int, metavar="TIMES", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.read_only:
        print(read_whole_log(args.log, args.read_only))
        return
    with tempfile.TemporaryDirectory() as folder:
        log = args.log
        if log is None:
            log = Path(folder) / "orders.bin"
            log.write_bytes(b"".join(orders_stream(BATCHES)))
        table, payloads = load(log)
        speed(table, payloads, args.seconds)
        memory(log)
        cost_per_type(args.seconds / 10)


def load(log: Path) -> tuple[TableInfo, list[bytes]]:
    tracker, payloads, table = SchemaTracker(), [], None
    with log.open("rb") as file:
        for frame, data in frames(file):
            if frame.header.event_type == BATCH_DML:
                payloads.append(data[16:])
                table = tracker.in_force(decode(data).dispatcher_id).table
            else:
                tracker.feed(decode(data))
    return table, payloads


def frames(file):
    for piece in scan(file):
        if isinstance(piece, Frame):
            file.seek(piece.offset)
            yield piece, file.read(piece.length)


def speed(table: TableInfo, payloads: list[bytes], seconds: float) -> None:
    groups = [payloads[start : start + JOINED] for start in range(0, len(payloads), JOINED)]
    size = sum(map(len, payloads))
    changes = sum(len(decode_batch(group, table).changes) for group in groups)
    check_values(table, payloads[0])
    print(
        f"{changes:,} row changes, {len(table.columns)} columns, {size / changes:.0f} bytes per row change\n"
    )
    print(f"{'decoder':34}{'rows/s':>14}{'MB/s':>9}{'ns/row':>9}")
    fast = report(
        f"vectorised, {JOINED} batches at once",
        lambda: [decode_batch(g, table) for g in groups],
        changes,
        size,
        seconds,
    )
    report(
        "vectorised, batch by batch",
        lambda: [decode_batch(p, table) for p in payloads],
        changes,
        size,
        seconds,
    )
    few = payloads[: max(1, len(payloads) // 10)]
    share = len(few) / len(payloads)
    slow = report(
        "naive, row by row",
        lambda: [decode_rows(p, table) for p in few],
        int(changes * share),
        int(size * share),
        seconds,
    )
    print(f"\nvectorised / naive: {fast / slow:.1f} times\n")


def report(name: str, function, changes: int, size: int, seconds: float) -> float:
    taken = best_time(function, seconds)
    print(f"{name:34}{changes / taken:>14,.0f}{size / taken / 1e6:>9.0f}{taken / changes * 1e9:>9.0f}")
    return changes / taken


def check_values(table: TableInfo, payload: bytes) -> None:
    """Both decoders must agree on every value before their speeds are compared."""
    batch, naive = decode_batch(payload, table), decode_rows(payload, table)
    rows = list(zip(*(column.to_pylist() for column in batch.columns.columns), strict=True))
    for position, (op, commit_ts, key, pre, post) in enumerate(naive):
        changes = batch.changes
        same = (
            op == changes.op[position]
            and commit_ts == changes.commit_ts[position]
            and key == changes.row_key[position].as_py()
            and (pre is None or list(rows[changes.pre[position]]) == pre)
            and (post is None or list(rows[changes.post[position]]) == post)
        )
        if not same:
            sys.exit(f"the decoders disagree on row change {position}")


def memory(log: Path) -> None:
    print(f"{'log read':>12}{'peak memory':>14}")
    for times in (1, 4, 16):
        command = [sys.executable, __file__, str(log), "--read-only", str(times)]
        peak = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        print(f"{log.stat().st_size * times / 2**20:>8.0f} MiB{peak:>10.0f} MiB")
    print()


def read_whole_log(log: Path, times: int) -> float:
    """Read and decode the log so many times over, as if it were that much longer; gives the peak memory."""
    for _ in range(times):
        tracker, waiting, table = SchemaTracker(), [], None
        with log.open("rb") as file:
            for frame, data in frames(file):
                if frame.header.event_type != BATCH_DML:
                    tracker.feed(decode(data))
                    continue
                table = table or tracker.in_force(decode(data).dispatcher_id).table
                waiting.append(memoryview(data)[16:])
                if len(waiting) == JOINED:
                    decode_batch(waiting, table)
                    waiting = []
    return peak_memory_mib()


def cost_per_type(seconds: float) -> None:
    print(f"{'type':24}{'decode':>10}{'encode':>10}   ns per cell")
    for name, column, array in samples():
        table = TableInfo.build("bench", "t", 1, 1, columns=[column])
        batch = pa.RecordBatch.from_arrays([array], names=[column.name])
        chunk = memoryview(encode_chunk(batch, table))
        decoded = best_time(lambda: decode_chunks([chunk], table), seconds)  # noqa: B023
        encoded = best_time(lambda: encode_chunk(batch, table), seconds)  # noqa: B023
        print(f"{name:24}{decoded / CELLS * 1e9:>10.1f}{encoded / CELLS * 1e9:>10.1f}")


def samples():
    random = np.random.default_rng(1)
    numbers = random.integers(0, 10**9, CELLS)
    texts = pa.array([f"text number {number}" for number in numbers.tolist()])
    micros = pa.array(random.integers(0, 10**15, CELLS)).cast(pa.timestamp("us"))
    moments = micros.cast(pa.string())
    utf8 = {"charset": "utf8mb4", "collate": "utf8mb4_bin"}

    def sample(name: str, mysql_type: int, array: pa.Array, **more):
        return name, Column(1, "c", 0, mysql_type, **more), array

    def decimals(precision: int, scale: int) -> pa.Array:
        kind = (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)
        with localcontext() as context:
            context.prec = precision
            return pa.array([Decimal(n**7 % 10**precision).scaleb(-scale) for n in numbers.tolist()], kind)

    yield sample("bigint", types.BIGINT, pa.array(numbers))
    yield sample("bigint, 1/3 NULL", types.BIGINT, pa.array(numbers, mask=numbers % 3 == 0))
    yield sample("double", types.DOUBLE, pa.array(random.random(CELLS)))
    yield sample("decimal(15,2)", types.DECIMAL, decimals(15, 2), flen=15, decimal=2)
    yield sample("decimal(38,10)", types.DECIMAL, decimals(38, 10), flen=38, decimal=10)
    yield sample("decimal(65,30)", types.DECIMAL, decimals(65, 30), flen=65, decimal=30)
    yield sample("date", types.DATE, pa.array([text[:10] for text in moments.to_pylist()]))
    yield sample("datetime(6)", types.DATETIME, moments, decimal=6)
    yield sample("time(6)", types.TIME, pa.array([text[11:] for text in moments.to_pylist()]), decimal=6)
    yield sample("varchar, ASCII", types.VARCHAR, texts, **utf8)
    yield sample(
        "varchar, other", types.VARCHAR, pa.array([f"zahl fünf {n}" for n in numbers.tolist()]), **utf8
    )
    yield sample("varbinary", types.VARCHAR, texts.cast(pa.binary()))
    yield sample(
        "enum", types.ENUM, pa.array((numbers % 3 + 1).astype(np.uint64)), elems=("web", "app", "store")
    )
    yield sample("set", types.SET, pa.array((numbers % 8).astype(np.uint64)), elems=("a", "b", "c"))
    yield sample("bit(20)", types.BIT, pa.array((numbers % 2**20).astype(np.uint64)), flen=20)
    yield sample(
        "json, 3 keys",
        types.JSON,
        pa.array([f'{{"a": {n}, "b": [1, 2.5], "c": "x"}}' for n in numbers.tolist()]),
    )
    yield sample(
        "vector, 4 dimensions", types.VECTOR, pa.array([f"[{n % 100},0.5,1,2]" for n in numbers.tolist()])
    )


if __name__ == "__main__":
    main()
