"""How work is cut into lanes, statements and transactions; no server."""

import numpy as np
import pytest
from mysql_support import active_table, batch_of, put

from tidemark.compat import Compat
from tidemark.config import load
from tidemark.sinks.mysql.connection import Target
from tidemark.sinks.mysql.statements import insert_rows
from tidemark.sinks.mysql.steps import Step, lww_steps, normal_steps, plain_step
from tidemark.sinks.mysql.writer import Limits, Writer, cut, lane_parts
from tidemark.wire import types
from tidemark.wire.table_info import Column, TableInfo

TABLE = TableInfo.build(
    "d", "t", 7, 1, columns=[Column(1, "v", 0, types.INT, flag=types.NOT_NULL | types.PRIMARY_KEY)]
)
PACKET = 1 << 24


def step_of(sizes) -> Step:
    count = len(sizes)
    return Step(
        insert_rows(TABLE),
        [(row,) for row in range(count)],
        np.zeros(count, dtype=np.uint64),
        np.array(sizes),
    )


def shape(step, packet=PACKET, **limits):
    """Rows per statement, per transaction."""
    parts = lane_parts([step], 0, 1)
    return [[len(part.rows) for part in transaction] for transaction in cut(parts, Limits(**limits), packet)]


def test_statements_and_transactions_have_bounded_rows():
    assert shape(step_of([1] * 25), statement_rows=4, transaction_rows=10) == [[4, 4, 2], [4, 4, 2], [4, 1]]


def test_transactions_have_bounded_bytes():
    assert shape(step_of([40] * 7), transaction_bytes=100) == [[2], [2], [2], [1]]


def test_a_statement_stays_below_half_of_the_servers_packet():
    assert shape(step_of([40] * 5), packet=200) == [[2, 2, 1]]


def test_a_row_that_is_larger_than_every_limit_is_alone():
    assert shape(step_of([1, 1, 5000, 1]), transaction_bytes=100) == [[2], [1], [1]]


@pytest.mark.parametrize(
    ("uri", "limits"),
    [
        ("mysql://h/", Limits()),
        ("mysql://h/?worker-count=9&max-txn-row=300", Limits(connections=9, transaction_rows=300)),
    ],
)
def test_limits_of_the_sink_uri(uri, limits):
    assert Limits.from_settings(load(None, uri)) == limits


def test_all_rows_are_written_once_and_in_order():
    sizes = np.random.default_rng(7).integers(1, 500, 1000)
    parts = lane_parts([step_of(sizes)], 0, 1)
    transactions = list(
        cut(parts, Limits(statement_rows=9, transaction_rows=50, transaction_bytes=4000), 3000)
    )
    assert [row for transaction in transactions for part in transaction for (row,) in part.rows] == list(
        range(1000)
    )
    assert max(sum(len(part.rows) for part in transaction) for transaction in transactions) <= 50


def test_rows_of_one_key_are_in_one_lane_in_order():
    table = active_table("d")
    batch = put(table, *((100 + i, i % 17, f"w{i}", i) for i in range(1000)))
    steps = lww_steps(batch, Compat.named("design"), skip_replicated=False)
    seen = {}
    for lane in range(4):
        for transaction in cut(lane_parts(steps, lane, 4), Limits(statement_rows=13), PACKET):
            for part in transaction:
                for row in part.rows:
                    assert seen.setdefault(row[0], (lane, []))[0] == lane
                    seen[row[0]][1].append(row[2])
    assert len(seen) == 17
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

    def execute(self, sql, params=None):
        self.log.append((sql, params))

    def commit(self):
        self.log.append(("COMMIT", None))

    def close(self):
        pass


def test_plain_rows_can_be_written_too():
    made = []

    def connect(target):
        made.append(Recorder(target))
        return made[-1]

    with Writer(Target(), Limits(connections=2, statement_rows=2), connect=connect) as writer:
        written = writer.write([plain_step(insert_rows(TABLE), [(1,), (2,), (3,)])])
    assert (written.rows, written.statements, written.transactions, written.retries) == (3, 2, 1, 0)
    assert made[0].log == [
        ("INSERT INTO `d`.`t` (`v`) VALUES (%s),(%s)", [1, 2]),
        ("INSERT INTO `d`.`t` (`v`) VALUES (%s)", [3]),
        ("COMMIT", None),
    ]


def test_nothing_to_write_is_nothing_done():
    with Writer(Target(), connect=Recorder) as writer:
        assert writer.write([]).rows == 0


@pytest.mark.parametrize("connections", [1, 3])
def test_a_problem_that_is_not_the_servers_is_raised_as_it_is(connections):
    class Wrong(Recorder):
        def execute(self, sql, params=None):
            raise ZeroDivisionError

    with (
        Writer(Target(), Limits(connections=connections), connect=Wrong) as writer,
        pytest.raises(ZeroDivisionError),
    ):
        writer.write([step_of([1])])
