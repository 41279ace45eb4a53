"""Event logs of many tables with a few rows each, or of a few tables with many: the same row changes in both.

The tables have the ten columns of the orders stream, in one of fifty layouts: other names, another order, other lengths. Of the row changes of a frame, most are inserts, some updates and a few deletes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from orders_stream import START_TS, orders_rows, orders_table
from tidemark.wire import types
from tidemark.wire.chunk import encode_chunks
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.dml import DELETE, INSERT, UPDATE, DMLEvent, pack_keys
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.events.resolved import ResolvedEvent
from tidemark.wire.registry import encode
from tidemark.wire.table_info import Column, TableInfo

LAYOUTS = 50
# Row changes of a frame, and of a transaction in it.
FRAME, TRANSACTION = 1_000, 50
# Of ten row changes in a row.
OPS = np.array([INSERT, UPDATE, INSERT, INSERT, DELETE, INSERT, UPDATE, INSERT, INSERT, INSERT], np.uint8)


@dataclass(frozen=True)
class Placed:
    """A frame, and where it is in the log."""

    offset: int
    length: int
    dispatcher_id: bytes
    seq: int


@dataclass(frozen=True)
class ManyTables:
    """What the readers of rows want to know about a log: the places of Handshakes, and of transactions."""

    path: Path
    handshakes: list[Placed]
    transactions: list[Placed]

    def schemas(self, upstream_id: str = "1") -> list[list]:
        """The option `schemas` of the data source tidemark_row_changes."""
        return [
            [upstream_id, place.dispatcher_id.hex(), 1, place.seq, str(self.path), place.offset, place.length]
            for place in self.handshakes
        ]

    def batch(self, upstream_id: str = "1") -> pa.RecordBatch:
        """The transactions as int_transactions has them."""
        count = len(self.transactions)
        return pa.RecordBatch.from_pydict(
            {
                "upstream_id": [upstream_id] * count,
                "file": [str(self.path)] * count,
                "offset": [place.offset for place in self.transactions],
                "seq": [place.seq for place in self.transactions],
                "batch_id": [1] * count,
            }
        )


def write_many_tables(
    path: Path, tables: int, rows: int, frame: int = 10, seed: int = 1, first: int = 0
) -> ManyTables:
    """A log of so many tables with so many row changes each, `frame` at a time. The tables take turns, frame by frame. `first`: the number of the first table."""
    random = np.random.default_rng([seed, first])
    infos = {number: _table(number) for number in range(first, first + tables)}
    frames = {number: list(_frames(number, info, rows, frame, random)) for number, info in infos.items()}
    handshakes, transactions = [], []
    with path.open("wb") as log:
        for number, info in infos.items():
            data = encode(HandshakeEvent(START_TS, 1, 1, _dispatcher(number), info.to_bytes()))
            handshakes.append(Placed(log.tell(), len(data), _dispatcher(number), 1))
            log.write(data)
        for turn in range(max(map(len, frames.values()))):
            for number, of_table in frames.items():
                for event in of_table[turn : turn + 1]:
                    data = encode(event)
                    transactions += [
                        Placed(log.tell(), len(data), _dispatcher(number), part.seq)
                        for part in event.transactions
                    ]
                    log.write(data)
        for number, of_table in frames.items():
            last = of_table[-1].transactions[-1]
            log.write(encode(ResolvedEvent(last.commit_ts + 1, 1, last.seq, _dispatcher(number))))
    return ManyTables(path, handshakes, transactions)


def write_many_logs(folder: Path, files: int, tables: int, rows: int) -> None:
    """So many logs of a few kilobytes, with so many tables each."""
    folder.mkdir(parents=True)
    for number in range(files):
        write_many_tables(folder / f"{number:05d}.bin", tables, rows, first=number * tables)


def _dispatcher(number: int) -> bytes:
    return number.to_bytes(8, "big") * 2


def _table(number: int) -> TableInfo:
    """The orders table in a layout of its own: the key first, the other columns turned, with the number of the layout in their names."""
    layout = number % LAYOUTS
    key, *others = orders_table().columns
    turned = others[layout % len(others) :] + others[: layout % len(others)]
    columns = [key, *(_column(column, layout) for column in turned)]
    return TableInfo.build(
        "bench",
        f"table_{number:05d}",
        1_000 + number,
        START_TS,
        columns=[
            replace(column, id=place + 1, offset=place, name=f"{column.name}_{layout}")
            for place, column in enumerate(columns)
        ],
    )


def _column(column: Column, layout: int) -> Column:
    return replace(column, flen=column.flen + layout) if column.mysql_type == types.VARCHAR else column


def _frames(
    number: int, table: TableInfo, rows: int, frame: int, random: np.random.Generator
) -> Iterator[BatchDMLEvent]:
    op = OPS[np.arange(rows) % len(OPS)]
    images = np.repeat(np.arange(rows), 1 + (op == UPDATE))
    row_types = np.repeat(op, 1 + (op == UPDATE))
    ends = np.append(0, np.cumsum(1 + (op == UPDATE)))
    values = orders_rows(orders_table(), random, images)
    layout = number % LAYOUTS
    order = [0, *(1 + (place + layout) % 9 for place in range(9))]
    values = pa.RecordBatch.from_arrays([values.column(place) for place in order], schema=table.arrow_schema)
    bounds = [*range(0, rows, frame), rows]
    chunks = encode_chunks(values, table, [int(ends[bound]) for bound in bounds])
    keys = [_record_key(table.table_id, row) for row in images.tolist()]
    seq = 1
    for (first, last), chunk in zip(pairwise(bounds), chunks, strict=True):
        parts = []
        for low in range(first, last, TRANSACTION):
            high = min(low + TRANSACTION, last)
            begin, end = int(ends[low]), int(ends[high])
            seq += 1
            ts = START_TS + (seq << 18)
            parts.append(
                DMLEvent(
                    dispatcher_id=_dispatcher(number),
                    physical_table_id=table.table_id,
                    start_ts=ts - 1,
                    commit_ts=ts,
                    seq=seq,
                    epoch=1,
                    row_count=high - low,
                    approximate_size=200 * (end - begin),
                    previous_total_offset=begin - int(ends[first]),
                    row_types=row_types[begin:end].tobytes(),
                    key_count=end - begin,
                    keys=pack_keys(keys[begin:end]),
                )
            )
        yield BatchDMLEvent(tuple(parts), chunk)


def _record_key(table_id: int, row: int) -> bytes:
    sign = 1 << 63
    return b"t" + (table_id + sign).to_bytes(8, "big") + b"_r" + (row + sign).to_bytes(8, "big")
