"""How work is cut into lanes, statements and transactions; no server."""

import numpy as np
import pyarrow as pa
import pytest
from mysql_support import active_table, batch_of, put, text_column

from tidemark.compat import Compat
from tidemark.config import load
from tidemark.sinks.mysql.connection import Target
from tidemark.sinks.mysql.prepared import encode_rows
from tidemark.sinks.mysql.statements import insert_rows
from tidemark.sinks.mysql.steps import Step, lww_steps, normal_steps
from tidemark.sinks.mysql.writer import Limits, Writer, cut, lane_parts
from tidemark.wire import types
from tidemark.wire.table_info import Column, TableInfo

TABLE = TableInfo.build(
    "d", "t", 7, 1, columns=[Column(1, "v", 0, types.INT, flag=types.NOT_NULL | types.PRIMARY_KEY)]
)
PACKET = 1 << 24


# A row of TEXT takes its text, a byte for its length, two for its type and one for its null bit.
TEXT = TableInfo.build("d", "texts", 8, 1, columns=[text_column(0, "v")])
BESIDES = 4


def numbers(count) -> Step:
    values = pa.record_batch({"v": pa.array(range(count), pa.int64())})
    return Step(insert_rows(TABLE), values, np.zeros(count, dtype=np.uint64))


def texts(sizes) -> Step:
    """A step whose rows take this many bytes each."""
    values = pa.record_batch({"v": ["x" * (size - BESIDES) for size in sizes]})
    return Step(insert_rows(TEXT), values, np.zeros(len(sizes), dtype=np.uint64))


def shape(step, packet=PACKET, **limits):
    """Rows per statement, per transaction."""
    parts = lane_parts([step], 0, 1)
    return [list(map(len, transaction)) for transaction in cut(parts, Limits(**limits), packet)]


def test_statements_and_transactions_have_bounded_rows():
    assert shape(numbers(25), statement_rows=4, transaction_rows=10) == [[4, 4, 2], [4, 4, 2], [4, 1]]


def test_statements_have_powers_of_two_rows():
    assert shape(numbers(1200), statement_rows=500) == [[256, 256, 256, 256, 128, 32, 16]]


def test_a_statement_has_no_more_parameters_than_the_protocol_counts():
    columns = [Column(place + 1, f"c{place}", place, types.INT) for place in range(1000)]
    wide = TableInfo.build("d", "wide", 9, 1, columns=columns)
    values = pa.record_batch({column.name: pa.array([1] * 100, pa.int64()) for column in columns})
    assert shape(Step(insert_rows(wide), values, np.zeros(100, dtype=np.uint64))) == [[64, 32, 4]]


def test_transactions_have_bounded_bytes():
    assert shape(texts([40] * 7), transaction_bytes=100) == [[2], [2], [2], [1]]


def test_a_statement_stays_below_the_servers_packet():
    assert shape(texts([40] * 5), packet=100) == [[2, 2, 1]]


def test_a_row_that_is_larger_than_every_limit_is_alone():
    assert shape(texts([5, 5, 250, 5]), transaction_bytes=100) == [[2], [1], [1]]


@pytest.mark.parametrize(
    ("uri", "limits"),
    [
        ("mysql://h/", Limits()),
        ("mysql://h/?worker-count=9&max-txn-row=300", Limits(connections=9, transaction_rows=300)),
    ],
)
def test_limits_of_the_sink_uri(uri, limits):
    assert Limits.from_settings(load(None, uri)) == limits


def rows_of(step, transactions):
    """The numbers of the rows in the order of the statements, found again by the bytes of their parameters."""
    rows = encode_rows(step.params)
    lines = {rows.parameters(row, row + 1): row for row in range(len(step))}
    parts = [part for transaction in transactions for part in transaction]
    return [
        lines[part.rows.parameters(row, row + 1)] for part in parts for row in range(part.start, part.end)
    ]


def test_all_rows_are_written_once_and_in_order():
    step = numbers(1000)
    limits = Limits(statement_rows=9, transaction_rows=50, transaction_bytes=400)
    transactions = list(cut(lane_parts([step], 0, 1), limits, 300))
    assert rows_of(step, transactions) == list(range(1000))
    assert max(sum(map(len, transaction)) for transaction in transactions) <= 50


def test_rows_of_one_key_are_in_one_lane_in_order():
    table = active_table("d")
    batch = put(table, *((100 + i, i % 17, f"w{i}", i) for i in range(1000)))
    [step] = lww_steps(batch, Compat.named("design"), skip_replicated=False)
    seen = {}
    for lane in range(4):
        for row in rows_of(step, cut(lane_parts([step], lane, 4), Limits(statement_rows=13), PACKET)):
            assert seen.setdefault(row % 17, (lane, []))[0] == lane
            seen[row % 17][1].append(row)
    assert sum(len(order) for _, order in seen.values()) == 1000
    assert {lane for lane, _ in seen.values()} == {0, 1, 2, 3}
    assert all(order == sorted(order) for _, order in seen.values())


def test_lanes_share_sequential_keys_evenly():
    batch = batch_of(TABLE, [("insert", 1, None, {"v": i}) for i in range(10_000)])
    lanes = normal_steps(batch)[0].lanes % np.uint64(4)
    assert np.bincount(lanes.astype(int)).min() > 2000


class Recorder:
    is_tidb, max_packet = True, PACKET

    def __init__(self, target):
        self.log = []

    def execute_prepared(self, sql, parameters):
        self.log.append(sql)

    def commit(self):
        self.log.append("COMMIT")

    def close(self):
        pass


def test_a_write_is_over_when_everything_is_committed():
    made = []

    def connect(target):
        made.append(Recorder(target))
        return made[-1]

    with Writer(Target(), Limits(connections=2, statement_rows=2), connect=connect) as writer:
        written = writer.write([numbers(3)])
        assert made[0].log == [
            "INSERT INTO `d`.`t` (`v`) VALUES (?),(?)",
            "INSERT INTO `d`.`t` (`v`) VALUES (?)",
            "COMMIT",
        ]
    assert (written.rows, written.statements, written.transactions, written.retries) == (3, 2, 1, 0)


def test_nothing_to_write_is_nothing_done():
    with Writer(Target(), connect=Recorder) as writer:
        assert writer.write([]).rows == 0


@pytest.mark.parametrize("connections", [1, 3])
def test_a_problem_that_is_not_the_servers_is_raised_as_it_is(connections):
    class Wrong(Recorder):
        def execute_prepared(self, sql, parameters):
            raise ZeroDivisionError

    with (
        Writer(Target(), Limits(connections=connections), connect=Wrong) as writer,
        pytest.raises(ZeroDivisionError),
    ):
        writer.write([numbers(1)])
