"""Topics before anything is sent: there, with enough partitions, and what they take at most.

A topic that does not exist is created with partition-num partitions (3 without it) and replication-factor replicas, unless auto-create-topic is false.
Rows are spread over partition-num partitions: a topic with fewer is refused, one with more keeps the surplus empty. Without partition-num the partitions of
the topic of the sink URI count. A topic whose own limit is below max-message-bytes lowers it, so that a large message is an error before it is sent.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidemark.config.findings import ConfigError
from tidemark.config.rules import check_partition_count
from tidemark.sinks.kafka.client import Connection, client_library
from tidemark.sinks.kafka.errors import KafkaSinkError, TooFewPartitions, TopicMissing

if TYPE_CHECKING:
    from tidemark.config import Settings

DEFAULT_PARTITIONS = 3
# A topic's limit is for a batch of records, which takes a little more than its only record.
BATCH_OVERHEAD = 128
_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class CheckedTopics:
    # Partitions that each topic really has.
    partitions: dict[str, int]
    # Partitions that rows are spread over.
    spread: int
    # The largest message that max-message-bytes and every topic allow.
    max_message_bytes: int

    def settings(self, settings: Settings) -> Settings:
        """The settings with what was found out, for encoders and routers."""
        return settings_for(settings, self.spread, self.max_message_bytes)


def settings_for(settings: Settings, partition_num: int, max_message_bytes: int) -> Settings:
    """The settings with what brokers said instead of what was configured."""
    options = replace(settings.uri.options, partition_num=partition_num, max_message_bytes=max_message_bytes)
    return replace(settings, uri=replace(settings.uri, options=options))


class Topics:
    """The topics of the brokers that a sink URI names."""

    def __init__(self, settings: Settings):
        client_library()
        from confluent_kafka.admin import AdminClient

        self._settings = settings
        self._connection = Connection(settings)
        self._admin = AdminClient(self._connection.options())

    def existing(self) -> dict[str, Any]:
        """The metadata of every topic by name."""
        with self._connection.asking(self._admin):
            return self._admin.list_topics(timeout=self._connection.timeout).topics

    def spread(self) -> int:
        """Partitions that rows are spread over."""
        configured = self._settings.uri.options.partition_num
        if configured is not None:
            return configured
        default = self.existing().get(self._settings.default_topic)
        return len(default.partitions) if default is not None else DEFAULT_PARTITIONS

    def checked(self, names: Iterable[str]) -> CheckedTopics:
        """Everything about some topics that could make a run fail in its middle; an error names the topic."""
        wanted = sorted(set(names))
        found, spread = self.existing(), self.spread()
        missing = [name for name in wanted if name not in found]
        if missing:
            _create(self._admin, self._connection, missing, spread, self._settings)
            found = _visible(self._admin, self._connection, wanted)
        counts = {name: len(found[name].partitions) for name in wanted}
        for name, count in counts.items():
            try:
                check_partition_count(spread, count)
            except ConfigError as problem:
                raise TooFewPartitions(f"topic {name!r}: {problem.findings[0]}") from None
        limits = [
            _checked_limit(name, found[name], said)
            for name, said in _configurations(self._admin, self._connection, wanted)
        ]
        return CheckedTopics(counts, spread, min([self._settings.uri.options.max_message_bytes, *limits]))


def check_topics(settings: Settings, names: Iterable[str]) -> CheckedTopics:
    return Topics(settings).checked(names)


def _create(
    admin: Any, connection: Connection, names: list[str], partitions: int, settings: Settings
) -> None:
    options, listed = settings.uri.options, ", ".join(map(repr, names))
    if not options.auto_create_topic:
        raise TopicMissing(
            f"Kafka at {connection.brokers} has no topic {listed}, and auto-create-topic is false; create it, or allow that"
        )
    from confluent_kafka.admin import NewTopic

    wanted = [NewTopic(name, partitions, options.replication_factor) for name in names]
    already_there = client_library().KafkaError.TOPIC_ALREADY_EXISTS
    for name, made in admin.create_topics(wanted, operation_timeout=connection.timeout).items():
        try:
            made.result()
        except client_library().KafkaException as problem:
            error = problem.args[0]
            if error.code() != already_there:
                raise TopicMissing(
                    f"topic {name!r} cannot be created with {partitions} partitions and {options.replication_factor} replicas: "
                    f"{error.str()}"
                ) from None


def _visible(admin: Any, connection: Connection, names: list[str]) -> dict[str, Any]:
    """The metadata of topics, once all partitions have a leader."""
    deadline = time.monotonic() + connection.timeout
    while True:
        with connection.asking(admin):
            found = admin.list_topics(timeout=connection.timeout).topics
        waiting = [name for name in names if name not in found or not _has_leaders(found[name])]
        if not waiting:
            return found
        if time.monotonic() > deadline:
            raise TopicMissing(
                f"topic {waiting[0]!r} was created, but has no leader after {connection.timeout:g} s"
            )
        time.sleep(_POLL_SECONDS)


def _has_leaders(topic: Any) -> bool:
    return bool(topic.partitions) and all(part.leader >= 0 for part in topic.partitions.values())


def _configurations(
    admin: Any, connection: Connection, names: list[str]
) -> Iterable[tuple[str, dict[str, Any]]]:
    from confluent_kafka.admin import ConfigResource, ResourceType

    if not names:
        return
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    for resource, answer in admin.describe_configs(resources, request_timeout=connection.timeout).items():
        try:
            yield resource.name, answer.result()
        except client_library().KafkaException as problem:
            error = problem.args[0]
            # A user who may write need not be allowed to look; the broker then judges itself.
            if error.code() not in (
                client_library().KafkaError.TOPIC_AUTHORIZATION_FAILED,
                client_library().KafkaError.CLUSTER_AUTHORIZATION_FAILED,
            ):
                raise KafkaSinkError(f"topic {resource.name!r}: {error.str()}") from None


def _checked_limit(name: str, topic: Any, configuration: dict[str, Any]) -> int:
    """The largest message that a topic takes. Refuses one that can never acknowledge by all."""
    needed = int(configuration["min.insync.replicas"].value)
    replicas = min(len(part.replicas) for part in topic.partitions.values())
    if needed > replicas:
        raise KafkaSinkError(
            f"topic {name!r} has {replicas} replicas but wants {needed} in step (min.insync.replicas), so no message is ever acknowledged; "
            "set replication-factor, or lower the topic's setting"
        )
    return int(configuration["max.message.bytes"].value) - BATCH_OVERHEAD
