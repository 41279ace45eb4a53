"""What assigning partitions costs, next to decoding the same rows.

    python benchmarks/bench_dispatch.py [LOG] [--joined 32] [--rounds 30]

LOG holds row changes of an orders table (order_id, customer_id, status, currency, placed_at, …); without it one is generated. For each partition
expression the line shows nanoseconds per row change and the share of the decode. It is processor time of all threads, not time on the clock: a decode takes long enough to be
interrupted on a busy machine, an assignment mostly does not. Both are measured in turns, so that cold caches slow down both.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from orders_stream import orders_stream
from tidemark.config import load
from tidemark.dispatch.router import Router
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.framing import Frame, scan
from tidemark.wire.registry import decode
from tidemark.wire.rows import decode_batch
from tidemark.wire.table_info import TableInfo
from tidemark.wire.tracker import SchemaTracker

URI = "kafka://127.0.0.1:9092/t?protocol=canal-json&partition-num=16"
RULES = {
    "table": {"partition": "table"},
    "ts": {"partition": "ts"},
    "rowid": {"partition": "rowid"},
    "index-value": {"partition": "index-value"},
    "[customer_id]": {"partition": "[customer_id]"},
    "[customer_id, status]": {"partition": "[customer_id, status]"},
    "[currency, placed_at]": {"partition": "[currency, placed_at]"},
}


def payloads(path: Path, joined: int) -> Iterator[tuple[list[bytes], TableInfo]]:
    """Groups of BatchDML payloads of one dispatcher, with their schema."""
    tracker = SchemaTracker()
    group: list[bytes] = []
    with open(path, "rb") as log:
        for piece in scan(log):
            if not isinstance(piece, Frame):
                continue
            log.seek(piece.offset)
            frame = log.read(piece.length)
            event = decode(frame)
            tracker.feed(event)
            if isinstance(event, BatchDMLEvent) and event.transactions:
                table = tracker.in_force(event.dispatcher_id).table
                group.append(frame[16:])
                if len(group) == joined:
                    yield group, table
                    group = []
    if group:
        yield group, table


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", nargs="?", type=Path, help="a log of one table; generated when left out")
    parser.add_argument("--joined", type=int, default=32, help="batches decoded at once (default 32)")
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = args.log
        if log is None:
            log = Path(folder) / "orders.bin"
            log.write_bytes(b"".join(orders_stream(args.joined)))
        group, table = next(payloads(log, args.joined))
    batch = decode_batch(group, table)
    rows = len(batch.changes)
    routers = {
        name: Router(load({"sink": {"dispatchers": [{"matcher": ["*.*"], **rule}]}}, URI))
        for name, rule in RULES.items()
    }
    for router in routers.values():
        router.partitions(batch)
    times: dict[str, list[float]] = {name: [] for name in ("decode", *routers)}
    for _ in range(args.rounds):
        times["decode"].append(seconds(lambda: decode_batch(group, table)))
        for name, router in routers.items():
            times[name].append(seconds(lambda router=router: router.partitions(batch)))
    median = {name: statistics.median(values) for name, values in times.items()}
    print(f"{rows} row changes in {len(group)} batches; medians of {args.rounds} rounds")
    print(
        f"{'decode':24} {median['decode'] / rows * 1e9:8.1f} ns/row  {rows / median['decode'] / 1e6:6.2f} M rows/s"
    )
    for name in routers:
        print(
            f"{name:24} {median[name] / rows * 1e9:8.1f} ns/row  {median[name] / median['decode']:6.1%} of decode"
        )


if __name__ == "__main__":
    main()
