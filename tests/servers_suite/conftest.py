"""The servers that this suite runs against, each started once. Where their files cannot be fetched, the tests are skipped and say so."""

import os
import sys
import uuid
from pathlib import Path

import pytest
from kafka_support import PASSWORD, PASSWORD_VARIABLE, USER, Topics

from java_servers import Apicurio, KafkaBroker
from server_files import NotFetched

# Spark's workers have the environment that Spark was started with.
os.environ[PASSWORD_VARIABLE] = PASSWORD
# Tables and batches are those of the encoders' tests.
sys.path.insert(0, str(Path(__file__).parent.parent / "encode"))


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    from certificates import self_signed

    return self_signed(tmp_path_factory.mktemp("tls"), "127.0.0.1")


@pytest.fixture(scope="session")
def broker(tmp_path_factory, certificate):
    keystore = certificate.folder / "keystore.pem"
    keystore.write_bytes(certificate.key.read_bytes() + certificate.cert.read_bytes())
    yield from _running(
        lambda: KafkaBroker(tmp_path_factory.mktemp("kafka"), keystore=keystore, users={USER: PASSWORD})
    )


@pytest.fixture(scope="session")
def apicurio(tmp_path_factory):
    yield from _running(lambda: Apicurio(tmp_path_factory.mktemp("apicurio")))


def _running(make):
    try:
        server = make()
    except NotFetched as missing:
        pytest.skip(str(missing))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def topics(broker):
    """Topics with names of this test's own."""
    return Topics(broker, f"t{uuid.uuid4().hex[:8]}")
