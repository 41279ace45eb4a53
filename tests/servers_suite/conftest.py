"""The servers that this suite runs against, each started once. Where their files cannot be fetched, the tests are skipped and say so."""

import os
import re
import sys
import uuid
import warnings
from pathlib import Path

import pytest
import yaml
from kafka_support import PASSWORD, PASSWORD_VARIABLE, USER, Topics

from java_servers import Apicurio, KafkaBroker
from server_files import NotFetched, files_of

# Spark's workers have the environment that Spark was started with.
os.environ[PASSWORD_VARIABLE] = PASSWORD
# Tables and batches are those of the encoders' tests, histories those of the models' tests.
for suite in ("encode", "models"):
    sys.path.insert(0, str(Path(__file__).parent.parent / suite))
DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "models.md"


@pytest.fixture(scope="session")
def delta_settings():
    """The Spark settings that the documentation shows, with jars of the locked versions; none where they cannot be fetched."""
    shown = re.search(r"```yaml\n(\s+spark_settings:.+?)```", DOCUMENT.read_text(), re.DOTALL)
    settings = yaml.safe_load(shown[1])["spark_settings"]
    _, name, version = settings.pop("spark.jars.packages").split(":")
    try:
        jars = files_of("delta")
    except NotFetched as missing:
        warnings.warn(f"the session has no Delta: {missing}", stacklevel=1)
        return {}
    assert f"{name}-{version}.jar" in [jar.name for jar in jars], "the version of the documentation is locked"
    return {**settings, "spark.jars": ",".join(str(jar) for jar in jars)}


@pytest.fixture(scope="session")
def spark(state_dir, delta_settings):
    """As in other suites, with Delta: a Spark process has its jars from the start."""
    from tidemark.spark.session import session, stop

    yield session(state_dir, delta_settings)
    stop()


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
