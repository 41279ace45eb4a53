"""The servers that tests of the database sink write to: MariaDB, and TiDB where TIDEMARK_TEST_TIDB_URI names one."""

import os
import uuid

import pytest
from mysql_support import run, target_of

from servers import MariaDb
from tidemark.sinks.mysql.connection import Connection, driver
from tidemark.sinks.mysql.errors import DriverMissing

TIDB = os.environ.get("TIDEMARK_TEST_TIDB_URI", "")


def need_driver():
    try:
        driver()
    except DriverMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory):
    need_driver()
    # Flushed once a second: tests do not cut the power.
    server = MariaDb(tmp_path_factory.mktemp("mariadb"), "--innodb-flush-log-at-trx-commit=2")
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=["mariadb", "tidb"] if TIDB else ["mariadb"])
def uri(request):
    return TIDB if request.param == "tidb" else request.getfixturevalue("mariadb").uri


@pytest.fixture
def target(uri):
    return target_of(uri)


@pytest.fixture
def session(target):
    connection = Connection(target)
    yield connection
    connection.close()


@pytest.fixture
def database(session):
    """A database of this test's own."""
    name = f"t_{uuid.uuid4().hex[:10]}"
    run(session, f"create database {name}")
    yield name
    run(session, f"drop database {name}")
