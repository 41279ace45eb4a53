"""From decisions to messages, without a broker: order, statements between rows, and where statements go."""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "encode"))

from encode_support import batch_of, column, events, table_of

from support import golden
from tidemark.config import load
from tidemark.encode.ddl import statements
from tidemark.encode.protocol import encoder_for
from tidemark.sinks.kafka import decided
from tidemark.sinks.kafka.decided import decide_statements
from tidemark.sinks.kafka.errors import UnencodableRow
from tidemark.sinks.logged_rows import LoggedRows
from tidemark.wire import types
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.framing import scan

LOG = str(golden("streams/orders.bin"))
ID = column("id", types.BIGINT, flag=types.NOT_NULL | types.PRIMARY_KEY)


def settings_of(query="", **sink):
    return load(
        {"sink": sink}, f"kafka://127.0.0.1:9092/main?partition-num=3&protocol={query or 'canal-json'}"
    )


def decisions(*ops):
    return pa.RecordBatch.from_pylist(
        [{"policy_op": op, "row_number": number} for number, op in enumerate(ops)]
    )


def played(*batches):
    """What a stream gives, rows as lists of their numbers and statements as numbers."""
    stream, found = decided._Stream(batches), []
    while True:
        found.append([number for batch in stream.rows() for number in batch.column("row_number").to_pylist()])
        statement = stream.statement()
        if statement is None:
            return found
        found.append(statement["row_number"])


@pytest.mark.parametrize("cut", range(7))
def test_rows_and_statements_come_in_order_however_batches_are_cut(cut):
    whole = decisions("ddl", "insert", "update", "ddl", "ddl", "delete")
    assert played(whole.slice(0, cut), whole.slice(cut)) == [[], 0, [1, 2], 3, [], 4, [5]]


def test_no_decisions_are_nothing():
    assert played() == [[]]


class Collected:
    def __init__(self):
        self.sent = []

    def messages(self, topic, partition, keys, values, what):
        self.sent.append((topic, partition, values.to_pylist(), what))


def logged(table, numbers, positions, topic, partitions):
    batch = batch_of(table, *[("I", (number,)) for number in numbers])
    other = pa.record_batch(
        {"topic": pa.array([topic] * len(numbers)), "partition": pa.array(partitions, pa.int32())}
    )
    return LoggedRows("1", None, batch, other, np.array(positions))


def test_rows_of_several_tables_share_a_partition_in_the_order_of_the_decisions():
    encoder, sender = encoder_for(settings_of(), lambda: 0), Collected()
    chunk = [
        logged(table_of(ID, table="a"), [1, 3, 5], [0, 2, 4], "main", [0, 0, 1]),
        logged(table_of(ID, table="b"), [2, 4], [1, 3], "main", [0, 1]),
    ]
    decided._send_rows(sender, encoder, chunk)
    numbers = [
        (topic, partition, [int(json.loads(value)["data"][0]["id"]) for value in values], what)
        for topic, partition, values, what in sender.sent
    ]
    assert numbers == [("main", 0, [1, 2, 3], "db.a, db.b"), ("main", 1, [4, 5], "db.a, db.b")]


def test_nothing_of_a_chunk_is_sent_when_one_of_its_rows_cannot_be():
    encoder, sender = encoder_for(settings_of("canal-json&max-message-bytes=100")), Collected()
    with pytest.raises(UnencodableRow, match=r"db\.t"):
        decided._send_rows(sender, encoder, [logged(table_of(ID), [1], [0], "main", [0])])
    assert sender.sent == []


def ddl_places():
    with open(LOG, "rb") as log:
        offsets = [piece.offset for piece in scan(log)]
    return [
        (LOG, offset)
        for offset, event in zip(offsets, events("orders"), strict=True)
        if isinstance(event, DDLEvent)
    ]


def test_statements_of_canal_json_go_to_partition_zero_of_their_topic():
    rules = [{"matcher": ["*.*"], "topic": "{schema}_{table}"}]
    found = decide_statements(settings_of(dispatchers=rules), ddl_places())
    assert {one.partition for one in found} == {0}
    names = {
        (ddl.schema, ddl.table)
        for event in events("orders")
        if isinstance(event, DDLEvent)
        for ddl in statements(event)
    }
    assert {one.topic for one in found} == {
        f"{schema}_{table}" if table else "main" for schema, table in names
    }


def test_statements_of_tables_that_are_left_out_are_not_sent():
    settings = load(
        {"filter": {"rules": ["shop.orders"]}},
        "kafka://127.0.0.1:9092/main?partition-num=3&protocol=canal-json",
    )
    event = next(
        event for event in events("orders") if isinstance(event, DDLEvent) and event.table_name == "orders"
    )
    wanted = {event.finished_ts}
    kept = {one.finished_ts for one in decide_statements(settings, ddl_places())}
    assert wanted <= kept
    assert len(kept) < len({one.finished_ts for one in decide_statements(settings_of(), ddl_places())})


@pytest.mark.parametrize(("query", "partitions"), [("", set()), ("&avro-enable-watermark=true", {0, 1, 2})])
def test_statements_of_avro_go_to_all_partitions_and_only_when_asked_for(query, partitions):
    rules = [{"matcher": ["*.*"], "topic": "{schema}_{table}"}]
    settings = settings_of(
        f"avro&schema-registry=file:///x&enable-tidb-extension=true{query}", dispatchers=rules
    )
    assert {one.partition for one in decide_statements(settings, ddl_places())} == partitions


def test_progress_concerns_all_partitions():
    from tidemark.dispatch.router import Router

    assert list(Router(settings_of()).watermark_partitions()) == [0, 1, 2]
