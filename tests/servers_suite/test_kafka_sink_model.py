"""The Kafka sink through dbt and Spark: one warehouse, sent to topics of each test's own."""

import io
import json
import shutil
import urllib.request
import uuid
from collections import defaultdict
from pathlib import Path
from urllib.parse import quote

import fastavro
import pytest
from encode_support import batches, ddl_events, events
from kafka_support import PASSWORD, PASSWORD_VARIABLE, USER, Topics

from dbt_support import Dbt
from support import golden
from tidemark.config import load
from tidemark.dispatch.router import Router
from tidemark.encode.ddl import statements
from tidemark.encode.protocol import encoder_for
from tidemark.registry.open import open_url
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.framing import scan

ROOT = Path(__file__).parent.parent.parent
STREAM = "orders"
# What depends on the sink URI and has to be built again for another one.
SINK_MODELS = ("dispatch_rules", "table_dispatch", "row_dispatch", "schema_forecast", "sink_kafka")


def frame_ends():
    with golden(f"streams/{STREAM}.bin").open("rb") as log:
        return [piece.offset + piece.length for piece in scan(log)]


def first_part() -> int:
    """Bytes of the log up to the middle one of its frames with rows."""
    with_rows = [
        end
        for end, event in zip(frame_ends(), events(STREAM), strict=True)
        if isinstance(event, BatchDMLEvent)
    ]
    return with_rows[len(with_rows) // 2]


@pytest.fixture(scope="module")
def warehouse(spark, tmp_path_factory):
    """The tables of the first part of a log, without a sink."""
    with pytest.MonkeyPatch.context() as patches:
        patches.chdir(ROOT)
        folder = tmp_path_factory.mktemp("dbt")
        runner = Dbt(spark, patches, folder, f"test_{uuid.uuid4().hex[:12]}")
        runner.log = folder / "log.bin"
        runner.log.write_bytes(golden(f"streams/{STREAM}.bin").read_bytes()[: first_part()])
        runner.vars = {"event_logs": [{"upstream_id": "1", "path": str(runner.log)}]}
        runner.ok("run")
        yield runner
        runner.drop()


class Feed:
    """A changefeed of one test, into topics that nobody else has."""

    def __init__(self, warehouse, broker, protocol, query="", address=""):
        self.warehouse = warehouse
        self.topics = Topics(broker, f"m{uuid.uuid4().hex[:8]}")
        self.changefeed = {
            "sink": {
                "dispatchers": [
                    {
                        "matcher": ["*.*"],
                        "topic": self.topics.prefix + "_{schema}_{table}",
                        "partition": "index-value",
                    }
                ]
            }
        }
        address = address or broker.address
        self.uri = f"kafka://{address}/{self.topics.prefix}?protocol={protocol}{query}"

    @property
    def vars(self):
        return {"sink_uri": self.uri, "changefeed": self.changefeed}

    def run(self, *models):
        return self.warehouse.ok("run", "--select", *(models or SINK_MODELS), **self.vars)

    def fails(self, *models):
        return self.warehouse.fails("run", "--select", *(models or SINK_MODELS), **self.vars)

    def names(self):
        found = self.topics.broker.admin().list_topics(timeout=10).topics
        return [name for name in found if name.startswith(self.topics.prefix)]

    def received(self):
        return self.topics.received(*self.names())

    def checkpoints(self):
        place = self.uri.partition("?")[0]
        return self.warehouse.rows(
            f"select checkpoint_ts, row_count from {{schema}}.sink_checkpoints where sink_uri = '{place}' order by 1"
        )


def expected_rows(settings, up_to):
    """(topic, partition) -> canal-json objects, by commit ts."""
    router, encoder, found = Router(settings), encoder_for(settings, lambda: 0), defaultdict(list)
    for batch in batches(STREAM):
        topic = router.route(batch.table.schema, batch.table.table).topic
        for ts, partition, value in zip(
            batch.changes.commit_ts.tolist(),
            router.partitions(batch).tolist(),
            encoder.encode_rows(batch).value.to_pylist(),
            strict=True,
        ):
            if ts <= up_to:
                found[topic, partition].append((ts, shown(value)))
    return {place: sorted(rows, key=lambda row: row[0]) for place, rows in found.items()}


def shown(value):
    """A canal-json message without its build time."""
    message = json.loads(value)
    del message["ts"]
    return message


def sent_rows(received):
    found = defaultdict(list)
    for one in received:
        message = shown(one.value)
        if not message["isDdl"] and message["type"] != "TIDB_WATERMARK":
            found[one.topic, one.partition].append((message["_tidb"]["commitTs"], message))
    return dict(found)


def test_canal_json_in_two_runs_is_all_there_once_and_in_order(warehouse, broker):
    """With a password that no artifact holds, rows, statements and watermarks in their partitions; the second run sends what is new."""
    query = (
        f"&partition-num=3&enable-tidb-extension=true&sasl-user={USER}&sasl-password=${{{PASSWORD_VARIABLE}}}"
    )
    feed = Feed(warehouse, broker, "canal-json", query, f"127.0.0.1:{broker.sasl_port}")
    feed.run()
    (first,) = feed.checkpoints()
    settings = load(feed.changefeed, feed.uri.replace(f"${{{PASSWORD_VARIABLE}}}", "x"))
    wanted = expected_rows(settings, first["checkpoint_ts"])
    received = feed.received()
    assert sent_rows(received) == wanted
    assert first["row_count"] == sum(map(len, wanted.values())) > 0
    assert {(one.key, one.headers) for one in received} == {(None, None)}
    feed.run()
    assert len(feed.received()) == len(received), "nothing new, nothing sent"

    warehouse.log.write_bytes(golden(f"streams/{STREAM}.bin").read_bytes())
    warehouse.ok("run", **feed.vars)
    _, second = feed.checkpoints()
    received = feed.received()
    assert sent_rows(received) == expected_rows(settings, second["checkpoint_ts"])
    assert sum(map(len, sent_rows(received).values())) > sum(map(len, wanted.values()))

    router = Router(settings)
    ddl = {
        (router.ddl_topic(one.schema, one.table), one.finished_ts, one.query)
        for event in ddl_events(STREAM)
        for one in statements(event)
    }
    sent_ddl = [(one, shown(one.value)) for one in received if shown(one.value)["isDdl"]]
    assert {(one.topic, it["_tidb"]["commitTs"], it["sql"]) for one, it in sent_ddl} == ddl
    assert len(sent_ddl) == len(ddl), "each once, although every dispatcher has it"
    assert {one.partition for one, _ in sent_ddl} == {0}
    last = {(one.topic, one.partition): shown(one.value) for one in received}
    assert len(last) == 3 * len(feed.names())
    assert {message["_tidb"].get("watermarkTs") for message in last.values()} == {second["checkpoint_ts"]}

    for file in [
        *warehouse.folder.rglob("*.sql"),
        *warehouse.folder.rglob("*.json"),
        *warehouse.folder.rglob("*.log"),
    ]:
        text = file.read_text(errors="replace")
        assert PASSWORD not in text, file
        assert quote(PASSWORD, safe="") not in text, file


def test_late_rows_are_refused_or_follow_the_range(dbt, broker, tmp_path):
    log = str(golden(f"streams/{STREAM}.bin"))
    logs = [
        {"upstream_id": "1", "path": log},
        {"upstream_id": "2", "path": str(shutil.copy(log, tmp_path / "other.bin"))},
    ]
    feed = Feed(dbt, broker, "canal-json", "&partition-num=2&enable-tidb-extension=true")
    dbt.vars = feed.vars
    dbt.ok("run", "--select", "+sink_kafka", event_logs=logs[:1])
    first = sent_rows(feed.received())
    said = dbt.fails("run", "--select", "+sink_kafka", event_logs=logs)
    assert "sink_kafka is past commit ts" in said
    assert "'late_rows: send' sends them, as they are, after the others" in said
    assert sent_rows(feed.received()) == first
    dbt.ok("run", "--select", "+sink_kafka", event_logs=logs, late_rows="send")
    assert sent_rows(feed.received()) == {place: rows + rows for place, rows in first.items()}
    dbt.ok("run", "--select", "+sink_kafka", event_logs=logs)
    assert sent_rows(feed.received()) == {place: rows + rows for place, rows in first.items()}


def open_protocol_rows(key, value):
    """(key, value) of everything in a message of the open protocol."""
    assert key[:8] == (1).to_bytes(8, "big")

    def texts(data):
        while data:
            length = int.from_bytes(data[:8], "big")
            yield data[8 : 8 + length]
            data = data[8 + length :]

    return [(json.loads(one), other) for one, other in zip(texts(key[8:]), texts(value), strict=True)]


def test_open_protocol_is_all_there_in_batches_with_ddl_and_watermarks_in_every_partition(warehouse, broker):
    feed = Feed(warehouse, broker, "open-protocol", "&partition-num=3&max-batch-size=4")
    feed.changefeed["sink"]["dispatchers"] = []
    feed.run()
    (checkpoint,) = feed.checkpoints()
    up_to = checkpoint["checkpoint_ts"]
    settings = load(feed.changefeed, feed.uri)
    router, encoder = Router(settings), encoder_for(settings)
    wanted = defaultdict(list)
    for batch in batches(STREAM):
        made = encoder.encode_rows(batch)
        for ts, partition, key, value in zip(
            batch.changes.commit_ts.tolist(),
            router.partitions(batch).tolist(),
            made.key.to_pylist(),
            made.value.to_pylist(),
            strict=True,
        ):
            if ts <= up_to:
                wanted[partition] += open_protocol_rows(key, value)
    received, found, kinds, largest = feed.received(), defaultdict(list), defaultdict(set), 0
    for one in received:
        rows = open_protocol_rows(one.key, one.value)
        kind = rows[0][0]["t"]
        kinds[one.partition] |= {(kind, rows[0][0]["ts"])} if kind != 1 else set()
        if kind == 1:
            largest = max(largest, len(rows))
            found[one.partition] += rows
    in_order = {partition: sorted(rows, key=lambda row: row[0]["ts"]) for partition, rows in wanted.items()}
    assert {partition: sorted(rows, key=str) for partition, rows in found.items()} == {
        partition: sorted(rows, key=str) for partition, rows in wanted.items()
    }
    for partition, rows in found.items():
        assert [row[0]["ts"] for row in rows] == [row[0]["ts"] for row in in_order[partition]]
    assert 1 < largest <= 4
    assert sum(map(len, found.values())) == checkpoint["row_count"]
    ddl = {(2, event.finished_ts) for event in ddl_events(STREAM) if event.finished_ts <= up_to}
    assert {partition: kinds[partition] for partition in range(3)} == dict.fromkeys(
        range(3), ddl | {(3, up_to)}
    )


def decoded(apicurio, message):
    if message is None:
        return None
    schema_id = int.from_bytes(message[1:5], "big")
    with urllib.request.urlopen(f"{apicurio.url}/schemas/ids/{schema_id}", timeout=10) as answer:
        schema = fastavro.parse_schema(json.loads(json.load(answer)["schema"]))
    return fastavro.schemaless_reader(io.BytesIO(message[5:]), schema, None)


def test_avro_after_a_refused_schema_is_all_there_once(warehouse, broker, apicurio):
    feed = Feed(warehouse, broker, "avro", f"&partition-num=2&schema-registry={quote(apicurio.url, safe='')}")
    registry, subject = open_url(apicurio.url), f"{feed.topics.prefix}_shop_orders-value"
    registry.set_compatibility("BACKWARD")
    registry.register(
        subject, '{"type":"record","name":"orders","fields":[{"name":"order_id","type":"string"}]}'
    )
    message = feed.fails()
    assert "table shop.orders" in message
    assert subject in message
    assert (feed.received(), feed.checkpoints()) == ([], [])
    refused = warehouse.rows("select subject, reasons from {schema}.schema_forecast where not is_accepted")
    assert [row["subject"] for row in refused] == [subject]
    assert "order_id" in refused[0]["reasons"][0]["reason"]

    registry.set_compatibility("NONE", subject)
    feed.run()
    (checkpoint,) = feed.checkpoints()
    received = feed.received()
    assert len(received) == checkpoint["row_count"] > 0
    assert all(
        row["is_accepted"] for row in warehouse.rows("select is_accepted from {schema}.schema_forecast")
    )
    orders = [one for one in received if one.topic.endswith("_shop_orders")]
    keys = {decoded(apicurio, one.key)["order_id"] for one in orders}
    assert keys
    for one in orders:
        value = decoded(apicurio, one.value)
        assert value is None or value["order_id"] in keys


def test_what_is_wrong_with_a_topic_is_told_before_anything_is_sent(warehouse, broker):
    feed = Feed(warehouse, broker, "canal-json", "&partition-num=3")
    small = feed.topics.create(f"{feed.topics.prefix}_shop_orders", 1)
    message = feed.fails()
    assert f"topic '{small}': partition-num = 3" in message
    assert "Traceback" not in message
    assert (feed.received(), feed.checkpoints()) == ([], [])


def test_a_row_above_the_limit_names_its_table_and_leaves_the_checkpoint(warehouse, broker):
    feed = Feed(warehouse, broker, "canal-json", "&partition-num=1&max-message-bytes=400")
    message = feed.fails()
    assert "table shop." in message
    assert "max-message-bytes is 400" in message
    assert feed.checkpoints() == []


def test_a_broker_that_is_gone_is_told_without_a_stack_trace(warehouse, broker):
    feed = Feed(warehouse, broker, "canal-json", "&partition-num=1&dial-timeout=2s", "127.0.0.1:1")
    message = feed.fails()
    assert "Kafka at 127.0.0.1:1 does not answer" in message
    assert "Traceback" not in message
    assert feed.checkpoints() == []


@pytest.mark.parametrize("form", ["container", "messages"])
def test_avro_files_through_the_storage_sink(warehouse, tmp_path, form):
    settings = {
        "sink_uri": f"file://{tmp_path}?protocol=avro&avro-file-format={form}",
        "changefeed": {"sink": {"date-separator": "none"}},
    }
    warehouse.ok("run", "--select", "sink_storage", **settings)
    files = sorted(tmp_path.glob("*/*/*/CDC*.*"))
    (sent,) = warehouse.rows(
        f"select row_count from {{schema}}.sink_checkpoints where sink = 'storage' and sink_uri like '%{tmp_path}%'"
    )
    assert files
    if form == "container":
        changes = [change for file in files for change in fastavro.reader(io.BytesIO(file.read_bytes()))]
        assert len(changes) == sent["row_count"] > 0
        assert not (tmp_path / ".tidemark-registry").exists()
    else:
        assert {file.suffix for file in files} == {".messages"}
        assert (tmp_path / ".tidemark-registry" / "schemas.json").exists()
