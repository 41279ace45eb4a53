"""From decisions to messages, without a broker: order, statements between rows, and where statements go."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "encode"))

from encode_support import batch_of, column, events, table_of
from test_logged_rows import decisions as places
from test_logged_rows import read_log

from support import golden
from tidemark.config import load
from tidemark.dispatch.routing import Routing
from tidemark.encode.ddl import statements
from tidemark.encode.errors import UnroutableStatement
from tidemark.encode.protocol import encoder_for
from tidemark.sinks.kafka import decided
from tidemark.sinks.kafka.decided import decide_statements
from tidemark.sinks.kafka.errors import UnencodableRow
from tidemark.sinks.logged_rows import LoggedRows, logged_rows
from tidemark.spark.kafka_sink import KafkaWriter
from tidemark.spark.mysql_sink import MysqlWriter
from tidemark.spark.sink_settings import settings_option
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


ROUTED = [
    {"matcher": ["*.*"], "topic": "{schema}_{table}"},
    {"matcher": ["shop.*"], "target-schema": "archive", "target-table": "{table}_y"},
]


def test_statements_have_the_names_of_the_targets_and_the_topics_of_the_source():
    settings, sender = settings_of(dispatchers=ROUTED), Events()
    plain = decide_statements(settings_of(dispatchers=ROUTED[:1]), ddl_places())
    found = decide_statements(settings, ddl_places())
    assert found == plain
    for one in found:
        decision = {"file": one.file, "offset": one.offset, "row_number": one.number}
        decision |= {"topic": one.topic, "partition": one.partition}
        decided._send_statement(sender, encoder_for(settings), Routing.of(settings), decision)
    sent = {(topic, message["database"], message["table"]): message["sql"] for topic, message in sender.sent}
    assert sent["shop_orders", "archive", "orders_y"].startswith("create table `archive`.`orders_y` (")
    assert sent["main", "archive", ""] == "create database `archive`"


def test_a_statement_that_cannot_be_rewritten_ends_the_run_before_the_first_message(monkeypatch):
    ddl = replace(statements(ddl_event("orders"))[0], query="create table orders as select 1")
    monkeypatch.setattr(decided, "_statements_at", lambda file, offset: [ddl])
    with pytest.raises(UnroutableStatement, match=r"create table orders as select 1' of shop\.orders"):
        decide_statements(settings_of(dispatchers=ROUTED), [(LOG, 0)])


def ddl_event(table):
    return next(
        event for event in events("orders") if isinstance(event, DDLEvent) and event.table_name == table
    )


class Events:
    def __init__(self):
        self.sent = []

    def event(self, topic, partition, message, what):
        self.sent.append((topic, json.loads(message.value)))


@pytest.mark.parametrize(
    ("writer", "sends"), [(KafkaWriter, "kafka_sink.send_decided"), (MysqlWriter, "mysql_sink.write_decided")]
)
def test_tasks_know_under_which_name_tables_are_written(writer, sends, monkeypatch):
    schemas, rows = read_log(LOG)
    uri = (
        "kafka://h:9092/main?partition-num=3&protocol=canal-json"
        if writer is KafkaWriter
        else "mysql://u@h:3306/"
    )
    options = {
        "settings": settings_option({"sink": {"dispatchers": ROUTED}}, uri, "design"),
        "schemas": json.dumps(schemas),
        "prepared": json.dumps({"partition_num": 3, "max_message_bytes": 10**6, "watermark_topics": []}),
    }
    found = set()

    def send(settings, given, schemas=None):
        for chunk in logged_rows(given, schemas) if schemas else given:
            found.update((part.batch.table.table, part.batch.table.written_to) for part in chunk)
        return SimpleNamespace(rows=0)

    monkeypatch.setattr(f"tidemark.spark.{sends}", send)
    writer(options).write(iter(places(rows).to_batches()))
    assert found
    assert found == {(table, ("archive", f"{table}_y")) for table, _ in found}
