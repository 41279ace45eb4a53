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
DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "table-formats.md"
FORMATS = ("delta", "iceberg")


def shown_settings(word):
    """The Spark settings with this word that the documentation shows."""
    blocks = re.findall(r"```yaml\n(\s+spark_settings:.+?)```", DOCUMENT.read_text(), re.DOTALL)
    found = [yaml.safe_load(block)["spark_settings"] for block in blocks]
    (settings,) = [one for one in found if word in str(one)]
    return settings


@pytest.fixture(scope="session")
def format_settings():
    """The settings of the documentation for a format, with jars of the locked versions and Iceberg's catalog in a folder."""

    def settings(table_format, folder):
        try:
            jars = files_of(table_format)
        except NotFetched as missing:
            pytest.skip(str(missing))
        shown = shown_settings(table_format)
        for package in shown.pop("spark.jars.packages").split(","):
            _, name, version = package.split(":")
            assert f"{name}-{version}.jar" in [jar.name for jar in jars], (
                "the version of the documentation is locked"
            )
        placed = {key: str(value).replace("/data/lake", f"{folder}/lake") for key, value in shown.items()}
        return {**placed, "spark.jars": ",".join(str(jar) for jar in jars)}

    return settings


@pytest.fixture(scope="session")
def lake(tmp_path_factory):
    """The folder of Iceberg's catalog, for the shared session."""
    return tmp_path_factory.mktemp("iceberg")


@pytest.fixture(scope="session")
def all_settings(lake, format_settings):
    """Delta and Iceberg in one session; none where they cannot be fetched."""
    try:
        delta, iceberg = (format_settings(table_format, lake) for table_format in FORMATS)
    except pytest.skip.Exception as missing:
        warnings.warn(f"the session has no Delta and no Iceberg: {missing}", stacklevel=1)
        return {}
    both = {key: f"{delta[key]},{iceberg[key]}" for key in ("spark.jars", "spark.sql.extensions")}
    return {**delta, **iceberg, **both}


@pytest.fixture(scope="session")
def spark(state_dir, all_settings):
    """As in other suites, with both formats: a Spark process has its jars from the start."""
    from tidemark.spark.session import session, stop

    yield session(state_dir, all_settings)
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
