"""What CSV, canal-json and the open protocol cost on one core, outside Spark: wire bytes -> encoded bytes, and Arrow columns -> encoded bytes alone.

    python benchmarks/bench_encode.py [LOG] [--joined 32] [--rounds 15]

LOG holds row changes of one table. Without it an orders table is generated: 10 columns, 1,000 row changes per batch in transactions of 50, 80 %
inserts, 15 % updates, 5 % deletes. Each figure is the best of the rounds, since everything else on the machine only adds to it. CSV has the
commit ts, canal-json the TiDB extension; messages of the open protocol hold 16 row changes, and there are no files of it.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa

from tidemark.config import load
from tidemark.encode import encoder_for
from tidemark.encode.protocol import Encoder, Messages, packed
from tidemark.encode.strings import contiguous
from tidemark.wire import types
from tidemark.wire.chunk import encode_chunk
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.dml import DELETE, INSERT, UPDATE, DMLEvent, pack_keys
from tidemark.wire.framing import Frame, scan
from tidemark.wire.header import HEADER_SIZE
from tidemark.wire.registry import decode, encode
from tidemark.wire.rows import RowBatch, decode_batch
from tidemark.wire.table_info import Column, TableInfo
from tidemark.wire.tracker import SchemaTracker

SETTINGS = {
    "csv": load({"sink": {"csv": {"include-commit-ts": True}}}, "file:///x?protocol=csv"),
    "canal-json": load(None, "file:///x?protocol=canal-json&enable-tidb-extension=true"),
    "open-protocol": load(None, "kafka://127.0.0.1:9092/t?protocol=open-protocol"),
}
ROWS_PER_BATCH, ROWS_PER_TXN = 1000, 50


def read_payloads(path: str) -> tuple[list[bytes], TableInfo]:
    """The BatchDML payloads of a log, and the schema of the first."""
    tracker, payloads, table = SchemaTracker(), [], None
    with open(path, "rb") as log:
        for piece in scan(log):
            if not isinstance(piece, Frame):
                continue
            log.seek(piece.offset)
            frame = log.read(piece.length)
            event = decode(frame)
            tracker.feed(event)
            if isinstance(event, BatchDMLEvent) and event.transactions:
                table = table or tracker.in_force(event.dispatcher_id).table
                payloads.append(frame[HEADER_SIZE:])
    if table is None:
        raise SystemExit(f"{path}: no row changes")
    return payloads, table


def make_payloads(batches: int, seed: int = 7) -> tuple[list[bytes], TableInfo]:
    table, random = orders_table(), np.random.default_rng(seed)
    payloads = []
    for batch in range(batches):
        ops = random.choice([INSERT, UPDATE, DELETE], size=ROWS_PER_BATCH, p=[0.8, 0.15, 0.05])
        transactions, start = [], 0
        for number, some in enumerate(np.split(ops, ROWS_PER_BATCH // ROWS_PER_TXN)):
            row_types = np.repeat(some, np.where(some == UPDATE, 2, 1)).astype(np.uint8).tobytes()
            ts = (450_000_000_000 + batch * 100 + number) << 10
            keys = pack_keys([b"t" * 19] * len(row_types))
            transactions.append(
                DMLEvent(
                    b"d" * 16,
                    100,
                    ts - 1,
                    ts,
                    number,
                    1,
                    len(some),
                    0,
                    start,
                    row_types,
                    len(row_types),
                    keys,
                )
            )
            start += len(row_types)
        chunk = encode_chunk(orders_rows(table, start, random), table)
        payloads.append(encode(BatchDMLEvent(tuple(transactions), chunk))[HEADER_SIZE:])
    return payloads, table


def orders_table() -> TableInfo:
    key = types.NOT_NULL | types.PRIMARY_KEY | types.UNSIGNED
    text = {"charset": "utf8mb4", "collate": "utf8mb4_bin"}
    columns = [
        ("order_id", types.BIGINT, {"flag": key, "flen": 20}),
        ("customer_id", types.INT, {"flag": types.NOT_NULL, "flen": 11}),
        ("status", types.VARCHAR, {"flag": types.NOT_NULL, "flen": 16, **text}),
        ("total", types.DECIMAL, {"flen": 15, "decimal": 2}),
        ("currency", types.STRING, {"flag": types.NOT_NULL, "flen": 3, **text}),
        ("note", types.VARCHAR, {"flen": 200, **text}),
        ("paid", types.TINYINT, {"flag": types.NOT_NULL, "flen": 1}),
        ("placed_at", types.DATETIME, {"flen": 26, "decimal": 6}),
        ("weight_kg", types.DOUBLE, {"flen": 22}),
        ("channel", types.ENUM, {"elems": ("web", "app", "store"), **text}),
    ]
    built = [Column(place + 1, name, place, kind, **more) for place, (name, kind, more) in enumerate(columns)]
    return TableInfo.build("shop", "bench_orders", 100, 1, columns=built)


def orders_rows(table: TableInfo, count: int, random: np.random.Generator) -> pa.RecordBatch:
    cents = random.integers(0, 10**7, count).tolist()
    seconds = random.integers(1_600_000_000, 1_700_000_000, count)
    micros = seconds * 1_000_000 + random.integers(0, 1_000_000, count)
    notes = [
        None if size < 30 else "please deliver to the back door "[:16] * (size // 30)
        for size in random.integers(0, 120, count)
    ]
    values = [
        random.integers(1, 2**40, count).astype(np.uint64),
        random.integers(1, 10**6, count),
        random.choice(["new", "paid", "shipped", "delivered"], count).tolist(),
        [Decimal(number).scaleb(-2) for number in cents],
        random.choice(["EUR", "USD", "GBP"], count).tolist(),
        notes,
        random.integers(0, 2, count),
        [str(moment).replace("T", " ") for moment in micros.astype("datetime64[us]")],
        np.round(random.random(count) * 50, 3),
        random.integers(1, 4, count).astype(np.uint64),
    ]
    arrays = [pa.array(value, field.type) for value, field in zip(values, table.arrow_schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=table.arrow_schema)


def best(work: Callable[[], object], rounds: int) -> float:
    fastest = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def messages(encoder: Encoder, batch: RowBatch) -> Messages:
    return packed(encoder, encoder.encode_rows(batch))


def sent_bytes(encoder: Encoder, batch: RowBatch) -> int:
    if hasattr(encoder, "encode_file"):
        return len(encoder.encode_file(batch).data)
    made = messages(encoder, batch)
    return len(contiguous(made.key)) + len(contiguous(made.value))


def ways(
    encoder: Encoder, decoded: list[RowBatch], groups: list[list[bytes]], table: TableInfo
) -> dict[str, Callable[[], object]]:
    if not hasattr(encoder, "encode_file"):
        return {
            "Arrow columns -> messages": lambda: [messages(encoder, batch) for batch in decoded],
            "wire bytes -> messages": lambda: [
                messages(encoder, decode_batch(group, table)) for group in groups
            ],
        }
    return {
        "Arrow columns -> bytes": lambda: [encoder.encode_file(batch) for batch in decoded],
        "Arrow columns -> messages": lambda: [encoder.encode_rows(batch) for batch in decoded],
        "wire bytes -> bytes": lambda: [encoder.encode_file(decode_batch(group, table)) for group in groups],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", nargs="?", metavar="LOG")
    parser.add_argument("--joined", type=int, default=32, help="batches joined before decoding (default 32)")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    pa.set_cpu_count(1)
    payloads, table = read_payloads(args.log) if args.log else make_payloads(args.joined)
    groups = [payloads[start : start + args.joined] for start in range(0, len(payloads), args.joined)]
    decoded = [decode_batch(group, table) for group in groups]
    rows = sum(len(batch.changes) for batch in decoded)
    print(f"{rows} row changes, {len(table.columns)} columns, {args.joined} batches joined")
    seconds = best(lambda: [decode_batch(group, table) for group in groups], args.rounds)
    print(f"{'decode':36} {rows / seconds:12,.0f} rows/s")
    for protocol, settings in SETTINGS.items():
        encoder = encoder_for(settings)
        size = sum(sent_bytes(encoder, batch) for batch in decoded)
        for what, work in ways(encoder, decoded, groups, table).items():
            seconds = best(work, args.rounds)
            print(
                f"{protocol + ': ' + what:36} {rows / seconds:12,.0f} rows/s {size / seconds / 1e6:8.0f} MB/s"
            )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
