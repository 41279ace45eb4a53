"""A MariaDB and dbt for the tests of the models; runs are few, so one run serves several tests."""

import uuid
from pathlib import Path

import pytest

from dbt_support import Dbt
from servers import MariaDb
from tidemark.config import load
from tidemark.sinks.mysql.connection import Connection, Target, driver
from tidemark.sinks.mysql.errors import DriverMissing

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def mariadb_uri(tmp_path_factory):
    """A server of this test run."""
    try:
        driver()
    except DriverMissing as missing:
        pytest.skip(str(missing))
    server = MariaDb(tmp_path_factory.mktemp("mariadb_models"), "--innodb-flush-log-at-trx-commit=2")
    server.start()
    yield server.uri
    server.stop()


@pytest.fixture(scope="session")
def mariadb(mariadb_uri):
    """A session on it."""
    connection = Connection(Target.from_settings(load(None, mariadb_uri), {}))
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def patches():
    with pytest.MonkeyPatch.context() as context:
        yield context


@pytest.fixture(scope="module")
def models(spark, patches, tmp_path_factory):
    """As the fixture dbt, for all tests of a module."""
    patches.chdir(ROOT)
    yield (runner := Dbt(spark, patches, tmp_path_factory.mktemp("dbt"), f"test_{uuid.uuid4().hex[:12]}"))
    runner.drop()
