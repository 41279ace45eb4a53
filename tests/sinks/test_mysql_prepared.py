"""Parameters in MySQL's binary protocol: their bytes, and what a server reads from them."""

import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from mysql_support import batch_of, run

from tidemark.sinks.mysql import connection as module
from tidemark.sinks.mysql.prepared import encode_rows
from tidemark.sinks.mysql.steps import normal_steps
from tidemark.sinks.mysql.writer import Writer
from tidemark.wire import types
from tidemark.wire.table_info import Column, TableInfo

LENGTHS = [0, 1, 250, 251, 252, 65535, 65536, 70000]


def test_the_parameters_of_two_rows_byte_by_byte():
    rows = encode_rows(
        pa.record_batch(
            {
                "i": pa.array([-2, None], pa.int64()),
                "u": pa.array([2**64 - 1, 1], pa.uint64()),
                "f": pa.array([0.5, None], pa.float64()),
                "d": pa.array([Decimal("-1.50"), None], pa.decimal128(10, 2)),
                "s": ["é", None],
                "b": [None, b"\x00'"],
            }
        )
    )
    kinds = struct.pack("<6H", 8, 0x8008, 5, 246, 253, 252)
    first = struct.pack("<qQd", -2, 2**64 - 1, 0.5) + b"\x05-1.50" + b"\x02" + "é".encode()
    second = struct.pack("<Q", 1) + b"\x02\x00'"
    # Nulls, first to last: row one has its sixth, row two its first, third, fourth and fifth.
    assert rows.parameters(0, 2) == b"\x60\x07" + b"\x01" + kinds * 2 + first + second
    assert rows.parameters(1, 2) == b"\x1d" + b"\x01" + kinds + second
    assert rows.sizes.tolist() == [len(first) + 13, len(second) + 13]


@pytest.mark.parametrize("length", [*LENGTHS, 2**24 - 1, 2**24])
def test_a_length_takes_the_bytes_it_needs(length):
    parameters = encode_rows(pa.record_batch({"b": [b"x" * length]})).parameters(0, 1)
    head = parameters[4 : len(parameters) - length]
    if length < 251:
        assert head == bytes([length])
    elif length < 2**16:
        assert head == b"\xfc" + length.to_bytes(2, "little")
    elif length < 2**24:
        assert head == b"\xfd" + length.to_bytes(3, "little")
    else:
        assert head == b"\xfe" + length.to_bytes(8, "little")


def test_a_slice_of_a_batch_is_encoded_as_what_it_shows():
    whole = pa.record_batch({"i": pa.array([1, None, 3, 4], pa.int64()), "s": ["a", "bb", None, "dddd"]})
    part = pa.record_batch({"i": pa.array([3, 4], pa.int64()), "s": [None, "dddd"]})
    assert encode_rows(whole.slice(2)).parameters(0, 2) == encode_rows(part).parameters(0, 2)


def test_texts_of_every_length_arrive(session, database, target):
    run(session, f"create table {database}.t (id int primary key, v longtext)")
    columns = [
        Column(1, "id", 0, types.INT, flag=types.NOT_NULL | types.PRIMARY_KEY),
        Column(2, "v", 1, types.LONGBLOB, charset="utf8mb4", collate="utf8mb4_bin"),
    ]
    table = TableInfo.build(database, "t", 7, 1, columns=columns)
    rows = [{"id": place, "v": "x" * length} for place, length in enumerate(LENGTHS)]
    batch = batch_of(table, [("insert", 1, None, row) for row in [*rows, {"id": -1, "v": None}]])
    with Writer(target) as writer:
        writer.write(normal_steps(batch))
    session.commit()
    found = session.query(f"select id, length(v), v = repeat('x', length(v)) from {database}.t order by id")
    assert found == [(-1, None, None), *((place, length, 1) for place, length in enumerate(LENGTHS))]


def test_neighbouring_decimal_keys_are_different_rows(session, database, target):
    """As floating point numbers they would be equal."""
    run(session, f"create table {database}.t (k decimal(30,0) primary key)")
    columns = [Column(1, "k", 0, types.DECIMAL, flag=types.NOT_NULL | types.PRIMARY_KEY, flen=30, decimal=0)]
    table = TableInfo.build(database, "t", 7, 1, columns=columns)
    first, second = ({"k": Decimal(10**29 + number)} for number in (1, 2))
    with Writer(target) as writer:
        writer.write(normal_steps(batch_of(table, [("insert", 1, None, row) for row in (first, second)])))
        writer.write(normal_steps(batch_of(table, [("delete", 2, first, None)])))
    session.commit()
    assert session.query(f"select cast(k as char) from {database}.t") == [(str(second["k"]),)]


def test_a_connection_keeps_a_bounded_number_of_statements(session, database, monkeypatch):
    monkeypatch.setattr(module, "_MOST_PREPARED", 3)
    run(session, f"create table {database}.t (v bigint)")
    [(before,)] = _prepared(session)
    for number in (1, 2, 3, 4, 5, 1, 2, 5):
        values = encode_rows(pa.record_batch({"v": pa.array(np.arange(number))})).parameters(0, number)
        session.execute_prepared(f"insert into {database}.t values {','.join(['(?)'] * number)}", values)
    session.commit()
    assert session.query(f"select count(*) from {database}.t") == [(1 + 2 + 3 + 4 + 5 + 1 + 2 + 5,)]
    assert _prepared(session) == [(before + 3,)] or session.is_tidb


def _prepared(session):
    rows = session.query("show global status like 'Prepared_stmt_count'")
    return [(int(value),) for _, value in rows] or [(0,)]
