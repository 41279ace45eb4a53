"""What the Kafka client is told, without a broker."""

import pytest

from tidemark.config import load
from tidemark.sinks.kafka.client import client_options
from tidemark.sinks.kafka.errors import BrokerUnreachable, InvalidClientOptions
from tidemark.sinks.kafka.topics import check_topics


def options(uri, changefeed=None):
    return client_options(load(changefeed, uri))


def test_brokers_get_the_default_port():
    made = options("kafka://a,b:1,[::1]/t?protocol=canal-json")
    assert made["bootstrap.servers"] == "a:9092,b:1,[::1]:9092"
    assert made["security.protocol"] == "PLAINTEXT"


def test_options_of_the_changefeed_file_count_and_the_uri_wins():
    file = {"sink": {"kafka-config": {"sasl-user": "u", "sasl-password": "p", "kafka-client-id": "file"}}}
    made = options("kafka://a/t?protocol=canal-json&kafka-client-id=uri", file)
    assert (made["client.id"], made["security.protocol"]) == ("uri", "SASL_PLAINTEXT")
    assert (made["sasl.mechanism"], made["sasl.username"], made["sasl.password"]) == ("PLAIN", "u", "p")


@pytest.mark.parametrize("query", ["&enable-tls=true", "&ca={ca}", "&cert={ca}&key={ca}"])
def test_any_tls_option_switches_tls_on(tmp_path, query):
    (tmp_path / "ca.pem").write_text("")
    made = options("kafka://a/t?protocol=canal-json" + query.format(ca=tmp_path / "ca.pem"))
    assert made["security.protocol"] == "SSL"


def test_the_scheme_switches_tls_on():
    assert options("kafka+ssl://a/t?protocol=canal-json")["security.protocol"] == "SSL"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("&ca=/no/such/file", "ca"),
        ("&cert=/x", "cert and key"),
        ("&sasl-user=u", "sasl-password"),
        ("&sasl-mechanism=SCRAM-SHA-512", "sasl-user"),
        ("&sasl-mechanism=gssapi&sasl-user=u&sasl-password=p", "GSSAPI"),
    ],
)
def test_options_that_do_not_go_together_are_refused(query, said):
    with pytest.raises(InvalidClientOptions, match=said):
        options("kafka://a/t?protocol=canal-json" + query)


def test_no_broker_is_an_error_in_bounded_time():
    settings = load(None, "kafka://127.0.0.1:1/t?protocol=canal-json&dial-timeout=1s")
    with pytest.raises(BrokerUnreachable, match=r"127\.0\.0\.1:1 does not answer"):
        check_topics(settings, ["t"])
