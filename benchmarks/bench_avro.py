"""How fast row changes become Avro: wire bytes to framed key and value messages, on one core.

    python benchmarks/bench_avro.py [LOG] [--joined 32] [--seconds N]

LOG holds row changes of one table; without it a stream of 10 columns is generated. Beside the vectorised encoder runs fastavro, which is written in C, on
the same decoded columns: a dictionary per row and one call per key and value. Both must make the same bytes. Decimals are precise, bigints
long, without the extension unless it says so.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
from pathlib import Path

import fastavro
import pyarrow as pa

from bench_wire import load as load_log
from common import best_time, peak_memory_mib
from orders_stream import orders_stream
from tidemark.config import load
from tidemark.encode.avro import FRAME, MAGIC, AvroEncoder
from tidemark.encode.avro_schema import AvroOptions, key_schema, value_schema
from tidemark.registry.sequential import SequentialIds
from tidemark.wire.rows import DELETE, RowBatch, decode_batch
from tidemark.wire.table_info import TableInfo
from tidemark.wire.types import Kind

BATCHES = 42
URI = "kafka://127.0.0.1:9092/orders?protocol=avro&schema-registry=http://127.0.0.1:8081"
MODES = {
    "precise, long": "",
    "precise, long, extension": "&enable-tidb-extension=true",
    "string, string": "&avro-decimal-handling-mode=string&avro-bigint-unsigned-handling-mode=string",
}


class RowByRow:
    """Plain fastavro: a dictionary per row, one call per message."""

    def __init__(self, table: TableInfo):
        self._table = table
        self._key, self._value = (
            fastavro.parse_schema(json.loads(schema(table, AvroOptions()).text))
            for schema in (key_schema, value_schema)
        )
        self._key_names = [column.name for column in table.columns if column.is_primary_key]
        self._names = {
            column.name: (None, *column.elems) for column in table.columns if column.kind is Kind.ENUM
        }

    def encode(self, batch: RowBatch) -> list[tuple[bytes, bytes | None]]:
        rows = batch.columns.to_pylist()
        changes, messages = batch.changes, []
        for op, pre, post in zip(
            changes.op.tolist(), changes.pre.tolist(), changes.post.tolist(), strict=True
        ):
            row = rows[pre if op == DELETE else post]
            for name, members in self._names.items():
                row[name] = row[name] and members[row[name]]
            # An unsigned number above 2**63 would have to wrap; the stream has none.
            key = self._message(1, self._key, {name: row[name] for name in self._key_names})
            messages.append((key, None if op == DELETE else self._message(2, self._value, row)))
        return messages

    def _message(self, schema_id: int, schema: dict, row: dict) -> bytes:
        out = io.BytesIO(FRAME.pack(MAGIC, schema_id))
        out.seek(FRAME.size)
        fastavro.schemaless_writer(out, schema, row)
        return out.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", nargs="?", type=Path, help="a log of one table; generated when left out")
    parser.add_argument("--joined", type=int, default=32, help="batches joined before decoding (default 32)")
    parser.add_argument("--seconds", type=float, default=3.0, help="time for each measurement")
    args = parser.parse_args()
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as folder:
        log = args.log
        if log is None:
            log = Path(folder) / "orders.bin"
            log.write_bytes(b"".join(orders_stream(BATCHES)))
        table, payloads = load_log(log)
    groups = [payloads[start : start + args.joined] for start in range(0, len(payloads), args.joined)]
    decoded = [decode_batch(group, table) for group in groups]
    rows = sum(len(batch.changes) for batch in decoded)
    plain = RowByRow(table)
    compare(decoded, plain)
    print(f"{rows} row changes, {len(table.columns)} columns, {args.joined} batches joined")

    def show(what: str, seconds: float, baseline: float | None = None) -> None:
        ratio = "" if baseline is None else f" {baseline / seconds:6.1f}x"
        print(f"{what:48} {rows / seconds:12,.0f} rows/s{ratio}")

    slow = best_time(lambda: [plain.encode(decode_batch(group, table)) for group in groups], args.seconds)
    show("fastavro per row: wire bytes -> messages", slow, slow)
    show("decode only", best_time(lambda: [decode_batch(group, table) for group in groups], args.seconds))
    for mode, query in MODES.items():
        encoder = AvroEncoder(load(None, URI + query), registry=SequentialIds())
        show(
            f"{mode}: columns -> messages",
            best_time(
                lambda encoder=encoder: [encoder.encode_rows(batch) for batch in decoded], args.seconds
            ),
        )
        show(
            f"{mode}: wire bytes -> messages",
            best_time(
                lambda encoder=encoder: [encoder.encode_rows(decode_batch(group, table)) for group in groups],
                args.seconds,
            ),
            slow,
        )
    print(f"peak memory {peak_memory_mib():.0f} MiB")


def compare(decoded: list[RowBatch], plain: RowByRow) -> None:
    encoder = AvroEncoder(load(None, URI), registry=SequentialIds())
    for batch in decoded:
        messages = encoder.encode_rows(batch)
        if list(zip(messages.key.to_pylist(), messages.value.to_pylist(), strict=True)) != plain.encode(
            batch
        ):
            raise SystemExit("fastavro makes other bytes")


if __name__ == "__main__":
    main()
