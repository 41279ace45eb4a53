"""The functional tests of the design document with a Kafka broker and an Apicurio registry."""

import json
import urllib.request

import pytest

from avro_functional import *  # noqa: F403 - the tests themselves
from avro_functional import Downstream, Record
from tidemark.dispatch.router import Router
from tidemark.encode.avro import AvroEncoder
from tidemark.sinks.kafka.sender import Sender
from tidemark.sinks.kafka.topics import check_topics


class KafkaDownstream(Downstream):
    def __init__(self, topics, registry_url):
        super().__init__(registry_url)
        self.topics, self.brokers = topics, topics.broker.address
        self._seen = {}

    def send(self, settings, *given):
        router, encoder = Router(settings), AvroEncoder(settings)
        routed = [(router.route(batch.table.schema, batch.table.table).topic, batch) for batch in given]
        names = list(dict.fromkeys(topic for topic, _ in routed))
        check_topics(settings, names)
        with Sender(settings) as sender:
            for topic, batch in routed:
                sender.rows(topic, router.partitions(batch), batch, encoder.encode_rows(batch))
            sender.flush()
        sent = []
        for name in names:
            received = self.topics.received(name)
            sent += [Record(name, one.key, one.value) for one in received[self._seen.get(name, 0) :]]
            self._seen[name] = len(received)
        return sent

    def schema(self, schema_id):
        return self._get(f"/schemas/ids/{schema_id}")["schema"]

    def versions(self, subject):
        if subject not in self._get("/subjects"):
            return []
        numbers = self._get(f"/subjects/{subject}/versions")
        return [self._get(f"/subjects/{subject}/versions/{number}")["schema"] for number in numbers]

    def _get(self, path):
        with urllib.request.urlopen(self.registry_url + path, timeout=10) as answer:
            return json.load(answer)


@pytest.fixture
def downstream(topics, apicurio):
    request = urllib.request.Request(
        f"{apicurio.url}/config",
        json.dumps({"compatibility": "BACKWARD"}).encode(),
        {"Content-Type": "application/vnd.schemaregistry.v1+json"},
        method="PUT",
    )
    urllib.request.urlopen(request, timeout=10).close()
    return KafkaDownstream(topics, apicurio.url)
