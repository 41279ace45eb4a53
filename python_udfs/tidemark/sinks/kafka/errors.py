"""Typed errors of the Kafka sink."""

from __future__ import annotations

from tidemark.errors import TidemarkError


class KafkaSinkError(TidemarkError):
    """Messages cannot be sent."""


class ClientMissing(KafkaSinkError):
    """The package with the Kafka client is not installed."""


class InvalidClientOptions(KafkaSinkError):
    """TLS or SASL options of the sink URI that do not go together, or that no client is built in for."""


class BrokerUnreachable(KafkaSinkError):
    """No broker answered in time."""


class TopicMissing(KafkaSinkError):
    """A topic does not exist and may not be created, or cannot be."""


class TooFewPartitions(KafkaSinkError):
    """Rows would go to partitions that a topic does not have."""


class UnencodableRow(KafkaSinkError):
    """A row that the protocol cannot express, or whose message is larger than allowed."""


class DeliveryFailed(KafkaSinkError):
    """A message was not acknowledged."""
