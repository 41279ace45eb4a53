"""The stream the benchmarks read: one table of 10 columns, 1,000 row changes per batch, 50 per transaction, 80 % inserts, 15 % updates, 5 % deletes.

create table bench_orders (order_id bigint unsigned not null primary key, customer_id int not null, status varchar(16) not null,
    total decimal(15,2), currency char(3) not null, note varchar(200), paid tinyint(1) not null, placed_at datetime(6),
    weight_kg double, channel enum('web','app','store'))
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.wire import types
from tidemark.wire.chunk import encode_chunk
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.dml import DELETE, INSERT, UPDATE, DMLEvent, pack_keys
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.registry import encode
from tidemark.wire.table_info import Column, TableInfo

DISPATCHER = bytes(range(16))
TABLE_ID = 112
START_TS = 470_000_000_000_000_000
CHANGES_PER_BATCH, CHANGES_PER_TRANSACTION = 1_000, 50
# Rows of a transaction come as deletes, updates, inserts. Two kinds take turns, so that the mix is met.
SHAPES = ((3, 7, 40), (2, 8, 40))

NOT_NULL = types.NOT_NULL
TEXT = {"charset": "utf8mb4", "collate": "utf8mb4_bin"}


def orders_table() -> TableInfo:
    columns = [
        ("order_id", types.BIGINT, {"flag": NOT_NULL | types.PRIMARY_KEY | types.UNSIGNED, "flen": 20}),
        ("customer_id", types.INT, {"flag": NOT_NULL, "flen": 11}),
        ("status", types.VARCHAR, {"flag": NOT_NULL, "flen": 16, **TEXT}),
        ("total", types.DECIMAL, {"flen": 15, "decimal": 2}),
        ("currency", types.STRING, {"flag": NOT_NULL, "flen": 3, **TEXT}),
        ("note", types.VARCHAR, {"flen": 200, **TEXT}),
        ("paid", types.TINYINT, {"flag": NOT_NULL, "flen": 1}),
        ("placed_at", types.DATETIME, {"flen": 26, "decimal": 6}),
        ("weight_kg", types.DOUBLE, {"flen": 22}),
        ("channel", types.ENUM, {"elems": ("web", "app", "store"), **TEXT}),
    ]
    return TableInfo.build(
        "bench",
        "bench_orders",
        TABLE_ID,
        START_TS,
        columns=[
            Column(position + 1, name, position, kind, **more)
            for position, (name, kind, more) in enumerate(columns)
        ],
    )


def orders_stream(batches: int, seed: int = 1) -> Iterator[bytes]:
    """The frames: a Handshake, then the batches."""
    table, random = orders_table(), np.random.default_rng(seed)
    yield encode(HandshakeEvent(START_TS, 1, 1, DISPATCHER, table.to_bytes()))
    for number in range(batches):
        yield encode(_batch(table, random, number))


def _batch(table: TableInfo, random: np.random.Generator, number: int) -> BatchDMLEvent:
    transactions, offset = [], 0
    count = CHANGES_PER_BATCH // CHANGES_PER_TRANSACTION
    ids = []
    for index in range(count):
        deletes, updates, inserts = SHAPES[index % 2]
        row_types = bytes([DELETE] * deletes + [UPDATE] * 2 * updates + [INSERT] * inserts)
        first = (number * count + index) * CHANGES_PER_TRANSACTION
        changed = list(range(first, first + CHANGES_PER_TRANSACTION))
        rows = (
            changed[:deletes]
            + [i for i in changed[deletes : deletes + updates] for _ in (0, 1)]
            + changed[-inserts:]
        )
        ids += rows
        ts = START_TS + (first << 10)
        transactions.append(
            DMLEvent(
                DISPATCHER,
                TABLE_ID,
                ts,
                ts + 1,
                number * count + index + 2,
                1,
                CHANGES_PER_TRANSACTION,
                200 * len(rows),
                offset,
                row_types,
                len(rows),
                pack_keys([_record_key(row) for row in rows]),
            )
        )
        offset += len(rows)
    return BatchDMLEvent(tuple(transactions), encode_chunk(orders_rows(table, random, np.array(ids)), table))


def _record_key(row: int) -> bytes:
    sign = 1 << 63
    return b"t" + (TABLE_ID + sign).to_bytes(8, "big") + b"_r" + (row + sign).to_bytes(8, "big")


def orders_rows(table: TableInfo, random: np.random.Generator, ids: np.ndarray) -> pa.RecordBatch:
    count = len(ids)
    cents = np.zeros((count, 2), dtype=np.int64)
    cents[:, 0] = random.integers(100, 10_000_000, count)
    placed = np.datetime64("2024-01-01", "us") + random.integers(0, 366 * 86_400 * 10**6, count)
    note = pa.array([f'note for order {number} handled "fast"' for number in ids.tolist()])
    arrays = [
        pa.array(ids.astype(np.uint64)),
        pa.array(random.integers(1, 1_000_000, count)),
        pa.array(["new", "paid", "shipped", "returned"]).take(pa.array(random.integers(0, 4, count))),
        pa.Array.from_buffers(pa.decimal128(15, 2), count, [None, pa.py_buffer(cents)]),
        pa.array(["EUR", "USD", "SEK", "CNY"]).take(pa.array(random.integers(0, 4, count))),
        pc.if_else(pa.array(random.integers(0, 3, count) == 0), None, note),
        pa.array(random.integers(0, 2, count)),
        pc.replace_substring(pa.array(np.datetime_as_string(placed)), "T", " "),
        pa.array(np.round(random.random(count) * 100, 3)),
        pa.array(random.integers(1, 4, count).astype(np.uint64)),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=table.arrow_schema)
