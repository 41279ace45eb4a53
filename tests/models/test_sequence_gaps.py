"""A log that misses an event: the checkpoint stays where everything is there, and the gap is listed until the event comes."""

import pytest
from histories import PLAIN, START_TS, Change, Table, Transaction
from streams import Sender

TABLE = Table("orders", {"id": "int"}, PLAIN, ())
OTHER = Table("stock", {"id": "int"}, PLAIN, ())
END_TS = START_TS + 1000


def inserted(table: Table, number: int) -> Transaction:
    """The transaction that inserts row `number`, at START_TS + 10 * number."""
    commit_ts = START_TS + 10 * number
    return Transaction(
        "1", table, commit_ts - 1, commit_ts, (Change("insert", None, {"id": number, "v": "a", "n": number}),)
    )


def sender(table: Table, table_id: int) -> Sender:
    made = Sender(table.info("shop", table_id), table_id.to_bytes(16, "big"))
    made.begin(START_TS)
    return made


@pytest.fixture
def log(dbt, tmp_path):
    """Adds a file to the log and runs the models."""
    folder = tmp_path / "log"
    folder.mkdir()
    dbt.vars = {"event_logs": [{"upstream_id": "1", "path": str(folder)}]}
    # A table that is complete, so that only the other one holds the checkpoint back.
    stock = sender(OTHER, 8)
    stock.resolve(END_TS)
    (folder / "stock.bin").write_bytes(b"".join(stock.frames))

    def deliver(name: str, frames: list[bytes]) -> None:
        (folder / name).write_bytes(b"".join(frames))
        dbt.ok("run", "--select", "+int_row_changes", "+sequence_gaps", "+late_transactions")

    return deliver


def checkpoint(dbt) -> int:
    return dbt.rows("select max(checkpoint_ts) as ts from {schema}.int_checkpoints")[0]["ts"] - START_TS


def taken(dbt) -> list[int]:
    rows = dbt.rows(
        "select commit_ts from {schema}.int_row_changes where table_name = 'orders' order by commit_ts"
    )
    return [(row["commit_ts"] - START_TS) // 10 for row in rows]


def gaps(dbt) -> list[tuple]:
    fields = ("dispatcher_id", "epoch", "schema_name", "table_name", "expected_seq", "found_seq")
    return [
        (*(row[field] for field in fields), row["held_back_at_ts"] - START_TS)
        for row in dbt.table("sequence_gaps")
    ]


def test_a_lost_event_holds_the_checkpoint_until_it_arrives_whatever_comes_after_it(dbt, log):
    orders = sender(TABLE, 7)
    for number in (1, 2, 3):
        orders.send([inserted(TABLE, number)])
        orders.resolve(START_TS + 10 * number)
    lost = orders.frames.pop(3)
    log("first.bin", orders.frames)
    gap = (orders.id.hex(), 1, "shop", "orders", 3, 3, 10)
    assert gaps(dbt) == [gap]
    assert checkpoint(dbt) == 10
    assert taken(dbt) == [1]

    # It begins again behind what is missing: row 2 is not sent again.
    orders.frames.clear()
    orders.begin(START_TS + 30)
    orders.send([inserted(TABLE, 4)])
    orders.resolve(START_TS + 40)
    log("second.bin", orders.frames)
    assert gaps(dbt) == [gap]
    assert checkpoint(dbt) == 10
    assert taken(dbt) == [1]

    log("third.bin", [lost])
    assert gaps(dbt) == []
    assert checkpoint(dbt) == 40
    assert taken(dbt) == [1, 2, 3, 4]
    assert dbt.table("late_transactions") == []


def test_a_lost_last_event_is_a_gap_until_the_dispatcher_sends_it_again(dbt, log):
    orders = sender(TABLE, 7)
    orders.send([inserted(TABLE, 1)])
    orders.send([inserted(TABLE, 2)])
    orders.frames.pop()
    orders.resolve(START_TS + 30)
    log("first.bin", orders.frames)
    assert gaps(dbt) == [(orders.id.hex(), 1, "shop", "orders", 3, 3, 0)]
    assert checkpoint(dbt) == 0
    assert taken(dbt) == []

    # Row 1 is there, so beginning right before it sends again all that is missing.
    orders.frames.clear()
    orders.begin(START_TS + 9)
    orders.send([inserted(TABLE, 1)])
    orders.send([inserted(TABLE, 2)])
    orders.resolve(START_TS + 30)
    log("second.bin", orders.frames)
    assert gaps(dbt) == []
    assert checkpoint(dbt) == 30
    assert taken(dbt) == [1, 2]
