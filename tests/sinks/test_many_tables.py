"""Tables with a few rows each are decoded together, with the rows that each would give alone."""

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from tidemark import joined_frames, pooled_frames
from tidemark.log_schemas import LogSchemas
from tidemark.spark import row_change_writer
from tidemark.spark.row_change_writer import row_change_batches
from tidemark.spark.row_changes import ARROW_SCHEMA
from tidemark.wire import types
from tidemark.wire.chunk import encode_chunk
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.dml import DELETE, INSERT, UPDATE, DMLEvent, pack_keys
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.header import HEADER_SIZE
from tidemark.wire.registry import encode
from tidemark.wire.table_info import Column, Index, TableInfo

TS = 450_000_000_000_000_000
WORDS = ["", "a", "A", "a ", "Ä", "ß", '"<\n', "\u2028", "x" * 40, "7"]
COLLATIONS = ["utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_0900_ai_ci", "utf8mb4_0900_bin"]


def text(dice):
    return {"flen": dice.choice([20, 100]), "charset": "utf8mb4", "collate": dice.choice(COLLATIONS)}


BYTES = {"flen": 100, "charset": "binary", "collate": "binary", "flag": types.BINARY}
# (type, what else the column has, a value of it)
KINDS = [
    (types.INT, lambda dice: {"flen": 11}, lambda dice, _: dice.choice([0, 1, -7, dice.randrange(10**6)])),
    (
        types.BIGINT,
        lambda dice: {"flag": types.UNSIGNED},
        lambda dice, column: dice.randrange(1 << (9 if column.name.startswith("_") else 64)),
    ),
    (types.FLOAT, lambda dice: {}, lambda dice, _: dice.choice([0.0, -0.0, 1.5, 1e-9, 3e30])),
    (types.DOUBLE, lambda dice: {}, lambda dice, _: dice.choice([0.0, -0.0, 0.125, 1e300, dice.random()])),
    (
        types.DECIMAL,
        lambda dice: {"flen": dice.choice([15, 40]), "decimal": dice.choice([0, 2, 9])},
        lambda dice, column: Decimal(dice.randrange(-(10**6), 10**6)).scaleb(-column.decimal),
    ),
    (types.VARCHAR, text, lambda dice, _: dice.choice(WORDS)),
    (types.BLOB_TYPE, lambda dice: dict(BYTES), lambda dice, _: dice.randbytes(dice.randrange(9))),
    (types.DATE, lambda dice: {}, lambda dice, _: f"20{dice.randrange(10, 99)}-02-0{dice.randrange(10)}"),
    (
        types.TIMESTAMP,
        lambda dice: {"decimal": dice.choice([0, 3])},
        lambda dice, column: (
            dice.choice(["2024-03-10 02:30:00", "0000-00-00 00:00:00", "2024-11-03 01:10:00"])
            + (".123" if column.decimal else "")
        ),
    ),
    (types.TIME, lambda dice: {"decimal": 0}, lambda dice, _: dice.choice(["-00:00:01", "838:59:59"])),
    (
        types.ENUM,
        lambda dice: {"elems": ("x", "y", "z")[: dice.randint(1, 3)], **text(dice)},
        lambda dice, _: 1,
    ),
    (types.SET, lambda dice: {"elems": ("x", "y"), **text(dice)}, lambda dice, _: dice.randrange(4)),
    (types.BIT, lambda dice: {"flen": dice.choice([1, 9])}, lambda dice, _: dice.randrange(2)),
    (types.JSON, lambda dice: {}, lambda dice, _: dice.choice(['{"a": 1}', "[]", '"<"'])),
    (types.VECTOR, lambda dice: {}, lambda dice, _: dice.choice(["[]", "[1,2.5]"])),
]
VALUES = {kind: value for kind, _, value in KINDS}


def a_table(dice, number):
    columns = []
    for place in range(dice.randint(1, 7)):
        kind, more, _ = dice.choice(KINDS)
        virtual = {"generated_expr": "1"} if place and dice.random() < 0.1 else {}
        columns.append(
            Column(place + 1, dice.choice('abc"<') + str(place), place, kind, **more(dice), **virtual)
        )
    hidden = dice.random()
    if hidden < 0.3:
        place = len(columns)
        columns.append(Column(place + 1, "_tidb_softdelete_time", place, types.TIMESTAMP, decimal=0))
        columns.append(Column(place + 2, "_tidb_origin_ts", place + 1, types.BIGINT, flag=types.UNSIGNED))
    elif hidden < 0.32:
        # Any table may have a column of this name.
        columns.append(Column(len(columns) + 1, "_tidb_origin_ts", len(columns), types.VARCHAR, **text(dice)))
    stored = [column.name for column in columns if not column.is_virtual_generated]
    keys = dice.sample(stored, min(len(stored), dice.randint(0, 3)))
    indexes = [Index("PRIMARY", tuple(keys), True, True, 1)] if keys else []
    flags = {"is_active_active": dice.random() < 0.5, "is_soft_delete": dice.random() < 0.5}
    name = f"t{number // 2}"
    return TableInfo.build("d", name, number, TS + number, columns=columns, indexes=indexes, **flags)


def a_row(dice, table):
    return [
        None if dice.random() < 0.15 else VALUES[column.mysql_type](dice, column) for column in table.columns
    ]


def a_batch(dice, table, dispatcher_id, seq, keys):
    """Some transactions, and the rows they list."""
    transactions, rows = [], []
    for number in range(dice.choice([1, 1, 2, 3])):
        types_of, first = [], len(rows)
        for _ in range(dice.choice([0, 1, 2, 5])):
            op = dice.choice([INSERT, UPDATE, DELETE])
            types_of += [op] * (2 if op == UPDATE else 1)
            rows.append(a_row(dice, table))
            if op == UPDATE:
                # Most updates leave some columns as they are.
                new = a_row(dice, table)
                rows.append(
                    [old if dice.random() < 0.6 else new[place] for place, old in enumerate(rows[-1])]
                )
        count = len(types_of)
        lengths = [8 if keys == "same" else dice.randrange(20) for _ in range(count)]
        packed = pack_keys([dice.randbytes(length) for length in lengths]) if keys else b""
        transactions.append(
            DMLEvent(
                dispatcher_id=dispatcher_id,
                physical_table_id=table.table_id,
                start_ts=TS + seq + number,
                commit_ts=TS + seq + number + 1,
                seq=seq + number,
                epoch=1,
                row_count=count - types_of.count(UPDATE) // 2,
                approximate_size=0,
                previous_total_offset=first,
                row_types=bytes(types_of),
                key_count=count if keys else 0,
                keys=packed,
            )
        )
    arrays = [
        pa.array([row[place] for row in rows], field.type) for place, field in enumerate(table.arrow_schema)
    ]
    chunk = encode_chunk(pa.RecordBatch.from_arrays(arrays, schema=table.arrow_schema), table)
    return BatchDMLEvent(tuple(transactions), chunk)


def a_world(folder, seed, damage=0.0, tables=40):
    """Logs of two upstreams: the places of their schemas, and of most of their transactions."""
    dice = random.Random(seed)
    places, transactions = [], []
    logs = [("1", folder / "a.bin"), ("2", folder / "b.bin"), ("2", folder / "c.bin")]
    seqs = {}
    for upstream_id, path in logs:
        data = b""
        frames = []
        for number in range(tables):
            table, dispatcher_id = a_table(dice, number), dice.randbytes(16)
            frame = encode(HandshakeEvent(TS, 1, 1, dispatcher_id, table.to_bytes()))
            places.append([upstream_id, dispatcher_id.hex(), 1, 1, str(path), len(data), len(frame)])
            data += frame
            keys = dice.choice(["same", "same", "several", None])
            frames += [(table, dispatcher_id, keys)] * dice.randint(0, 4)
        dice.shuffle(frames)
        for table, dispatcher_id, keys in frames:
            seq = seqs.get(dispatcher_id, 2)
            event = a_batch(dice, table, dispatcher_id, seq, keys)
            seqs[dispatcher_id] = seq + len(event.transactions)
            frame = encode(event)
            if dice.random() < damage:
                frame = damaged(dice, frame)
            for part in event.transactions:
                if dice.random() < 0.9:
                    transactions.append((upstream_id, str(path), len(data), part.seq, 1 + (seq > 4)))
            data += frame
        path.write_bytes(data)
    names = ("upstream_id", "file", "offset", "seq", "batch_id")
    columns = dict(zip(names, map(list, zip(*transactions, strict=True)), strict=True))
    return places, pa.RecordBatch.from_pydict(columns)


def damaged(dice, frame):
    data = bytearray(frame)
    for _ in range(dice.choice([1, 1, 3])):
        data[dice.randrange(HEADER_SIZE, len(data))] = dice.choice([0, 1, 2, 127, 128, 255])
    return bytes(data)


def decoded(world, zones=None):
    places, transactions = world
    return list(row_change_batches(transactions, LogSchemas(places), zones or {}))


def rows_of(batches):
    rows = [{**row, "batch_id": batch_id} for batch_id, batch in batches for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: (row["file"], row["offset"], row["row_number"] or 0))


def one_by_one(monkeypatch, world, zones=None):
    with monkeypatch.context() as patch:
        patch.setattr(pooled_frames, "POOLED_BYTES", 0)
        return decoded(world, zones)


@pytest.mark.parametrize("seed", range(8))
def test_tables_give_the_same_rows_together_as_one_by_one(tmp_path, monkeypatch, seed):
    zones = {"2": "America/New_York"} if seed % 2 else {}
    world = a_world(tmp_path, seed)
    together = decoded(world, zones)
    assert rows_of(together) == rows_of(one_by_one(monkeypatch, world, zones))
    assert all(batch.schema == ARROW_SCHEMA for _, batch in together)


@pytest.mark.parametrize("seed", range(8))
def test_a_bad_frame_costs_only_itself(tmp_path, monkeypatch, seed):
    world = a_world(tmp_path, seed, damage=0.02 if seed % 3 else 0.3)
    found, expected = rows_of(decoded(world)), rows_of(one_by_one(monkeypatch, world))
    assert found == expected
    assert any(row["error_reason"] for row in found)


def test_dispatchers_do_not_wait_for_rows_without_end(monkeypatch):
    monkeypatch.setattr(joined_frames, "WAITING_BYTES", 1000)
    joiner, schema = joined_frames.FrameJoiner(), object()
    found, most = [], 0
    for number in range(100):
        dispatcher_id = (number % 40).to_bytes(16, "big")
        found += joiner.add(dispatcher_id, schema, number, memoryview(bytes(100)))
        most = max(most, number + 1 - sum(len(group.frames) for group in found))
    found += joiner.rest()
    assert most < 10
    assert sorted(offset for group in found for offset, _ in group.frames) == list(range(100))


def test_tables_of_several_logs_come_in_few_record_batches(tmp_path, monkeypatch):
    world = a_world(tmp_path, 1)
    good = {(row["file"], row["offset"]) for row in rows_of(decoded(world)) if not row["error_reason"]}
    places, transactions = world
    kept = [(row["file"], row["offset"]) in good for row in transactions.to_pylist()]
    batches = decoded((places, transactions.filter(pa.array(kept))))
    assert [batch_id for batch_id, _ in batches] == [1, 2]
    monkeypatch.setattr(row_change_writer, "JOINED_BYTES", 1000)
    assert len(decoded((places, transactions.filter(pa.array(kept))))) > 10
