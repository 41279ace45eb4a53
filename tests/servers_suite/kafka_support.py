"""Topics of one test, and a consumer that knows nothing of Tidemark."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewTopic

from java_servers import KafkaBroker

_SECONDS = 30
# Of the SASL listener.
USER, PASSWORD = "alice", "s3cret/&="
PASSWORD_VARIABLE = "TIDEMARK_TEST_KAFKA_PASSWORD"


@dataclass(frozen=True)
class Received:
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list | None


class Topics:
    def __init__(self, broker: KafkaBroker, prefix: str):
        self.broker, self.prefix = broker, prefix

    def create(self, name: str, partitions: int, **config: str) -> str:
        admin = self.broker.admin()
        (made,) = admin.create_topics([NewTopic(name, partitions, 1, config=config)]).values()
        made.result()
        return name

    def partitions(self, name: str) -> int:
        found = self.broker.admin().list_topics(timeout=10).topics
        return len(found[name].partitions) if name in found else 0

    def received(self, *names: str) -> list[Received]:
        """Everything in the topics, partition by partition."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.address,
                "group.id": uuid.uuid4().hex,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        ends, found = {}, []
        for name in names:
            for partition in range(self.partitions(name)):
                low, high = consumer.get_watermark_offsets(TopicPartition(name, partition), timeout=10)
                ends[name, partition] = high - low
        consumer.assign(
            [TopicPartition(name, partition, 0) for (name, partition), count in ends.items() if count]
        )
        deadline = time.monotonic() + _SECONDS
        while len(found) < sum(ends.values()) and time.monotonic() < deadline:
            for message in consumer.consume(10_000, 0.5):
                assert message.error() is None, message.error()
                found.append(
                    Received(
                        message.topic(),
                        message.partition(),
                        message.offset(),
                        message.key(),
                        message.value(),
                        message.headers(),
                    )
                )
        consumer.close()
        assert len(found) == sum(ends.values()), "not everything came in time"
        return sorted(found, key=lambda item: (item.topic, item.partition, item.offset))
