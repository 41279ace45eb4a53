"""The Kafka sink's library against a real broker, read back with a consumer of its own."""

import numpy as np
import pyarrow as pa
import pytest
from encode_support import batch_of, batches, table_of
from kafka_support import PASSWORD, USER

from avro_functional import ID, NAME
from support import jsonl
from tidemark.config import load
from tidemark.dispatch.router import Router
from tidemark.encode.protocol import Message, Messages, encoder_for
from tidemark.sinks.kafka import sender as sender_module
from tidemark.sinks.kafka.errors import (
    BrokerUnreachable,
    DeliveryFailed,
    KafkaSinkError,
    TooFewPartitions,
    TopicMissing,
    UnencodableRow,
)
from tidemark.sinks.kafka.sender import Sender
from tidemark.sinks.kafka.topics import BATCH_OVERHEAD, DEFAULT_PARTITIONS, check_topics

TABLE = table_of(ID, NAME)


def settings_of(topics, query="", changefeed=None, *, topic=None, address=None, protocol="canal-json"):
    address, topic = address or topics.broker.address, topic or topics.prefix
    return load(changefeed, f"kafka://{address}/{topic}?protocol={protocol}{query}")


def send(settings, *given):
    checked = check_topics(settings, [settings.default_topic]).settings(settings)
    router, encoder = Router(checked), encoder_for(checked, lambda: 0)
    with Sender(checked) as sender:
        for batch in given:
            topic = router.route(batch.table.schema, batch.table.table).topic
            sender.rows(topic, router.partitions(batch), batch, encoder.encode_rows(batch))
        sender.flush()
        return sender.sent


def test_canal_json_messages_are_those_of_the_vectors_in_their_partitions(topics):
    rules = {"sink": {"dispatchers": [{"matcher": ["*.*"], "partition": "index-value"}]}}
    settings = settings_of(topics, "&partition-num=4&enable-tidb-extension=true", rules)
    router, given = Router(settings), batches("orders")
    assert send(settings, *given) == sum(len(batch.changes) for batch in given)
    received = topics.received(topics.prefix)
    encoder = encoder_for(settings, lambda: 0)
    wanted: dict[int, list[bytes]] = {}
    for batch in given:
        for partition, value in zip(
            router.partitions(batch).tolist(), encoder.encode_rows(batch).value.to_pylist(), strict=True
        ):
            wanted.setdefault(partition, []).append(value)
    assert len(wanted) > 1
    for partition in range(4):
        assert [one.value for one in received if one.partition == partition] == wanted.get(partition, [])
    assert {(one.key, one.headers) for one in received} == {(None, None)}
    assert len(received) == len(jsonl("encode/orders/canal-json.tidb_extension.jsonl"))


def test_null_and_empty_keys_and_values_stay_apart(topics):
    settings = settings_of(topics, "&partition-num=2")
    check_topics(settings, [topics.prefix])
    batch = batch_of(TABLE, *[("I", (number, "x")) for number in range(3)])
    given = pa.array([None, b"", b"x"], pa.binary())
    with Sender(settings) as sender:
        messages = Messages(np.arange(3), given, given, pa.nulls(3, pa.string()))
        sender.rows(topics.prefix, np.array([1, 1, 1]), batch, messages)
        sender.flush()
    received = topics.received(topics.prefix)
    assert [(one.partition, one.key, one.value) for one in received] == [
        (1, None, None),
        (1, b"", b""),
        (1, b"x", b"x"),
    ]


def test_order_within_a_partition_survives_many_rounds(topics, monkeypatch):
    monkeypatch.setattr(sender_module, "_ROUND_BYTES", 10_000)
    monkeypatch.setattr(sender_module, "_SLICE_MESSAGES", 700)
    settings = settings_of(topics, "&partition-num=3&compression=lz4")
    check_topics(settings, [topics.prefix])
    count = 5_000
    batch = batch_of(TABLE, *[("I", (number, "x")) for number in range(count)])
    values = pa.array([str(number).encode() for number in range(count)], pa.binary())
    messages = Messages(np.arange(count), pa.nulls(count, pa.binary()), values, pa.nulls(count, pa.string()))
    partitions = np.arange(count) % 3
    with Sender(settings) as sender:
        sender.rows(topics.prefix, partitions, batch, messages)
        sender.flush()
    received = topics.received(topics.prefix)
    for partition in range(3):
        found = [int(one.value) for one in received if one.partition == partition]
        assert found == list(range(partition, count, 3))


def test_a_missing_topic_is_created_with_the_partitions_of_the_settings(topics):
    check_topics(settings_of(topics, "&partition-num=5"), [topics.prefix])
    assert topics.partitions(topics.prefix) == 5


def test_a_missing_topic_is_created_with_three_partitions_without_a_setting(topics):
    checked = check_topics(settings_of(topics), [topics.prefix])
    assert (checked.spread, topics.partitions(topics.prefix)) == (DEFAULT_PARTITIONS, DEFAULT_PARTITIONS)


def test_a_missing_topic_is_an_error_where_none_may_be_created(topics):
    with pytest.raises(TopicMissing, match=f"no topic '{topics.prefix}'.*auto-create-topic"):
        check_topics(settings_of(topics, "&auto-create-topic=false"), [topics.prefix])
    assert topics.partitions(topics.prefix) == 0


def test_a_topic_that_cannot_be_created_says_why(topics):
    with pytest.raises(TopicMissing, match=r"(?i)replic"):
        check_topics(settings_of(topics, "&replication-factor=3"), [topics.prefix])


@pytest.mark.parametrize(("configured", "works"), [(2, True), (3, True), (4, False)])
def test_configured_partitions_may_be_fewer_than_the_topic_has_but_not_more(topics, configured, works):
    topics.create(topics.prefix, 3)
    settings = settings_of(topics, f"&partition-num={configured}")
    if not works:
        with pytest.raises(
            TooFewPartitions, match=f"topic '{topics.prefix}': partition-num = 4.*3 partitions"
        ):
            check_topics(settings, [topics.prefix])
        return
    assert check_topics(settings, [topics.prefix]).spread == configured


def test_without_a_configured_number_the_partitions_of_the_topic_count(topics):
    topics.create(topics.prefix, 7)
    assert check_topics(settings_of(topics), [topics.prefix]).spread == 7


def test_a_row_above_max_message_bytes_is_an_error_that_names_its_table(topics):
    settings = settings_of(topics, "&max-message-bytes=2000")
    fits, large = (batch_of(TABLE, ("I", (1, "x" * size))) for size in (100, 2000))
    assert send(settings, fits) == 1
    with pytest.raises(
        UnencodableRow, match=r"table db\.t: a row with commit ts \d+.*max-message-bytes is 2000"
    ):
        send(settings, large)
    assert len(topics.received(topics.prefix)) == 1


def test_the_limit_of_the_topic_counts_before_anything_is_sent(topics):
    topics.create(topics.prefix, 1, **{"max.message.bytes": "3000"})
    settings = settings_of(topics, "&partition-num=1")
    with pytest.raises(UnencodableRow, match=rf"table db\.t.*max-message-bytes is {3000 - BATCH_OVERHEAD}"):
        send(settings, batch_of(TABLE, ("I", (1, "x" * 5000))))
    assert topics.received(topics.prefix) == []


def test_the_largest_message_and_many_small_ones_fit_the_limit_of_the_topic(topics):
    topics.create(topics.prefix, 1, **{"max.message.bytes": "3000"})
    settings = settings_of(topics, "&partition-num=1")
    checked = check_topics(settings, [topics.prefix]).settings(settings)
    encoder = encoder_for(checked, lambda: 0)

    def fits(size):
        encoded = encoder.encode_rows(batch_of(TABLE, ("I", (1, "x" * size))))
        return encoded.error.null_count == 1

    largest = max(size for size in range(3000) if fits(size))
    rows = [("I", (number, "x")) for number in range(200)]
    assert send(settings, batch_of(TABLE, ("I", (1, "x" * largest))), batch_of(TABLE, *rows)) == 201
    assert len(topics.received(topics.prefix)) == 201


def test_a_message_that_the_broker_refuses_is_an_error_that_names_its_table(topics):
    topics.create(topics.prefix, 1, **{"max.message.bytes": "1000"})
    settings = settings_of(topics)
    batch = batch_of(TABLE, ("I", (1, "x" * 5000)))
    encoded = encoder_for(settings, lambda: 0).encode_rows(batch)
    with Sender(settings) as sender:
        sender.rows(topics.prefix, np.array([0]), batch, encoded)
        with pytest.raises(DeliveryFailed, match=r"db\.t: .*partition 0.*(?i:too large)"):
            sender.flush()


def test_a_topic_that_can_never_acknowledge_is_refused_before_anything_is_sent(topics):
    topics.create(topics.prefix, 1, **{"min.insync.replicas": "2"})
    with pytest.raises(KafkaSinkError, match=r"min\.insync\.replicas"):
        check_topics(settings_of(topics), [topics.prefix])


def event_acknowledged(sender, topic, partition):
    sender.event(topic, partition, Message(None, b"x"), "a DDL statement of db.t")
    sender.flush()


def test_a_partition_that_does_not_exist_is_an_error_in_bounded_time(topics):
    topics.create(topics.prefix, 1)
    sender = Sender(settings_of(topics), delivery_seconds=3)
    with sender, pytest.raises(DeliveryFailed, match="a DDL statement"):
        event_acknowledged(sender, topics.prefix, 9)


def test_a_broker_that_is_gone_is_an_error_that_names_it(topics):
    settings = settings_of(topics, "&dial-timeout=2s", address="127.0.0.1:1")
    with pytest.raises(BrokerUnreachable, match=r"127\.0\.0\.1:1 does not answer: .*refused"):
        check_topics(settings, [topics.prefix])


def test_tls(topics, certificate):
    address = f"127.0.0.1:{topics.broker.tls_port}"
    settings = settings_of(topics, f"&ca={certificate.cert}", address=address)
    assert send(settings, batch_of(TABLE, ("I", (1, "x")))) == 1
    assert len(topics.received(topics.prefix)) == 1
    unverified = settings_of(topics, "&enable-tls=true&insecure-skip-verify=true", address=address)
    assert check_topics(unverified, [topics.prefix]).partitions
    with pytest.raises(BrokerUnreachable, match=r"(?i)certificate"):
        check_topics(
            settings_of(topics, "&enable-tls=true&dial-timeout=2s", address=address), [topics.prefix]
        )


def test_sasl(topics):
    from urllib.parse import quote

    address = f"127.0.0.1:{topics.broker.sasl_port}"
    query = f"&sasl-user={USER}&sasl-mechanism=plain&dial-timeout=3s&sasl-password="
    settings = settings_of(topics, query + quote(PASSWORD, safe=""), address=address)
    assert send(settings, batch_of(TABLE, ("I", (1, "x")))) == 1
    with pytest.raises(BrokerUnreachable, match=r"(?i)authentication") as refused:
        check_topics(settings_of(topics, query + "wr0ng", address=address), [topics.prefix])
    assert "wr0ng" not in str(refused.value)
