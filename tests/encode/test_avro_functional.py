"""The functional tests of the design document with the embedded registry, and its CLI tests."""

import pytest

from avro_functional import *  # noqa: F403 - the tests themselves
from avro_functional import Downstream, Record
from support import golden
from tidemark.cli import main
from tidemark.dispatch.router import Router
from tidemark.encode.avro import AvroEncoder
from tidemark.registry.embedded import EmbeddedRegistry
from tidemark.registry.errors import SubjectNotFound
from tidemark.sinks.kafka.sender import refuse_errors


class EmbeddedDownstream(Downstream):
    def __init__(self, folder):
        super().__init__(f"file://{folder}")
        self._registry = EmbeddedRegistry(folder)

    def send(self, settings, *given):
        encoder, router, sent = AvroEncoder(settings), Router(settings), []
        for batch in given:
            messages = encoder.encode_rows(batch)
            refuse_errors(batch, messages)
            topic = router.route(batch.table.schema, batch.table.table).topic
            pairs = zip(messages.key.to_pylist(), messages.value.to_pylist(), strict=True)
            sent += [Record(topic, key, value) for key, value in pairs]
        return sent

    def schema(self, schema_id):
        return self._registry.schema(schema_id)

    def versions(self, subject):
        try:
            return [
                self._registry.version(subject, number).schema for number in self._registry.versions(subject)
            ]
        except SubjectNotFound:
            return []


@pytest.fixture
def downstream(tmp_path):
    return EmbeddedDownstream(tmp_path / "registry")


# --- CLI ------------------------------------------------------------------------------------------------------------------------

LOG = str(golden("streams/orders.bin"))
RULES = "[sink]\ndispatchers = [ { matcher = ['*.*'], topic = '{schema}_{table}' } ]\n"


@pytest.fixture(params=["avro", "flat-avro"])
def cli(request, tmp_path, capsys):
    """Runs `check` and `encode` with a protocol and further options; gives both statuses and what was said."""
    changefeed = tmp_path / "changefeed.toml"
    changefeed.write_text(RULES)

    def run(query, registry="&schema-registry=http://127.0.0.1:8081"):
        uri = f"kafka://127.0.0.1:9092/t?protocol={request.param}{registry}{query}"
        checked = main(["check", str(changefeed), "--sink-uri", uri])
        encoded = main(["encode", LOG, "--sink-uri", uri, "--changefeed", str(changefeed)])
        said = capsys.readouterr()
        return checked, encoded, said.out + said.err

    return run


def test_cli_avro_flat_avro_protocol(cli):
    assert cli("")[:2] == (0, 0)


def refused(outcome, name):
    return outcome[0] != 0 and outcome[1] != 0 and name in outcome[2]


def test_cli_avro_flat_avro_protocol_and_true_false_invalid_enable_tidb_extension(cli):
    assert [cli(f"&enable-tidb-extension={value}")[:2] for value in ("true", "false")] == [(0, 0)] * 2
    assert refused(cli("&enable-tidb-extension=invalid"), "enable-tidb-extension")


def test_cli_avro_flat_avro_protocol_and_precise_string_invalid_avro_decimal_handling_mode(cli):
    assert [cli(f"&avro-decimal-handling-mode={value}")[:2] for value in ("precise", "string")] == [
        (0, 0)
    ] * 2
    assert refused(cli("&avro-decimal-handling-mode=invalid"), "avro-decimal-handling-mode")


def test_cli_avro_flat_avro_protocol_and_long_string_invalid_avro_bigint_unsigned_handling_mode(cli):
    name = "avro-bigint-unsigned-handling-mode"
    assert [cli(f"&{name}={value}")[:2] for value in ("long", "string")] == [(0, 0)] * 2
    assert refused(cli(f"&{name}=invalid"), name)


def test_cli_avro_flat_avro_protocol_and_valid_invalid_schema_registry(cli):
    assert [cli("", f"&schema-registry={url}")[:2] for url in ("https://h:8081", "file:///folder")] == [
        (0, 0)
    ] * 2
    assert refused(cli("", ""), "schema-registry")
    assert cli("", "&schema-registry=ftp://h")[1] != 0
