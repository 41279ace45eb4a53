"""What librdkafka, the client behind confluent-kafka, is told about the brokers of a sink URI."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tidemark.sinks.kafka.errors import BrokerUnreachable, ClientMissing, InvalidClientOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemark.config import Settings

DEFAULT_PORT = 9092
_CLIENT_ID = "tidemark"
_SASL = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def client_library() -> Any:
    """The module confluent_kafka."""
    try:
        import confluent_kafka
    except ImportError as problem:
        raise ClientMissing(
            f"the Kafka client is not installed ({problem.name}); run `make setup`, or pip install '.[kafka]' in the folder of Tidemark"
        ) from None
    return confluent_kafka


class Connection:
    """The options of a client, and the last thing that a broker or the network objected to."""

    def __init__(self, settings: Settings):
        self.timeout = settings.uri.options.dial_timeout.total_seconds()
        self.brokers = ", ".join(_addresses(settings))
        self._options = client_options(settings)
        self._last_problem = ""

    def options(self, **more: Any) -> dict[str, Any]:
        return {**self._options, "error_cb": self._note, **more}

    def _note(self, error: Any) -> None:
        self._last_problem = error.str()

    def reason(self, error: Any) -> str:
        """Why a request failed: what the network or the broker said, else what the client says."""
        return self._last_problem or error.str()

    @contextmanager
    def asking(self, client: Any) -> Iterator[None]:
        """A request of a client to the brokers; one that fails becomes BrokerUnreachable."""
        try:
            yield
        except client_library().KafkaException as problem:
            # Delivers what the client has noted about the network.
            client.poll(0)
            raise BrokerUnreachable(
                f"Kafka at {self.brokers} does not answer: {self.reason(problem.args[0])}; "
                "check the address and the TLS and SASL options of the sink URI"
            ) from None


def client_options(settings: Settings) -> dict[str, Any]:
    """Options of librdkafka that producers and administration share."""
    options = settings.uri.options
    made: dict[str, Any] = {
        "bootstrap.servers": ",".join(_addresses(settings)),
        "client.id": options.kafka_client_id or _CLIENT_ID,
        # What matters is raised; what is logged besides would only repeat it.
        "log_level": 0,
        "socket.connection.setup.timeout.ms": max(1000, int(options.dial_timeout.total_seconds() * 1000)),
    }
    tls = settings.uri.scheme == "kafka+ssl" or options.enable_tls
    tls = tls or bool(options.ca or options.cert or options.tls_key)
    if tls:
        made |= _tls(settings)
    sasl = _sasl(settings)
    made["security.protocol"] = ("SASL_" if sasl else "") + ("SSL" if tls else "PLAINTEXT")
    return made | sasl


def _addresses(settings: Settings) -> list[str]:
    hosts = settings.uri.hosts or ("127.0.0.1",)
    return [host if ":" in host.rpartition("]")[2] else f"{host}:{DEFAULT_PORT}" for host in hosts]


def _tls(settings: Settings) -> dict[str, Any]:
    options = settings.uri.options
    if bool(options.cert) != bool(options.tls_key):
        raise InvalidClientOptions("TLS: cert and key are given together or not at all")
    files = {
        "ssl.ca.location": ("ca", options.ca),
        "ssl.certificate.location": ("cert", options.cert),
        "ssl.key.location": ("key", options.tls_key),
    }
    for name, path in files.values():
        if path and not os.path.isfile(path):
            raise InvalidClientOptions(f"TLS: the file that the option {name} names does not exist")
    made: dict[str, Any] = {option: path for option, (_, path) in files.items() if path}
    if options.insecure_skip_verify:
        made["enable.ssl.certificate.verification"] = False
    return made


def _sasl(settings: Settings) -> dict[str, Any]:
    options = settings.uri.options
    if not options.sasl_mechanism and not options.sasl_user:
        return {}
    mechanism = options.sasl_mechanism or "PLAIN"
    if mechanism not in _SASL:
        raise InvalidClientOptions(
            f"SASL: no client for {mechanism} is built in; allowed: {', '.join(_SASL)}"
        )
    if not options.sasl_user or not options.sasl_password:
        raise InvalidClientOptions(f"SASL: {mechanism} needs sasl-user and sasl-password")
    return {
        "sasl.mechanism": mechanism,
        "sasl.username": options.sasl_user,
        "sasl.password": options.sasl_password,
    }
