"""Fixtures that suites share: one Spark session for all, and dbt run inside this process on top of it."""

import os
import sys
import uuid
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
ROOT = Path(__file__).parent.parent

# Tests that several suites run stand in a module of their own.
pytest.register_assert_rewrite("avro_functional")


@pytest.fixture(scope="session")
def state_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("state")
    os.environ["TIDEMARK_STATE_DIR"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def spark(state_dir):
    """The session that dbt uses too: started once, with few partitions."""
    from tidemark.spark.session import session, stop

    # Tasks see the environment that the session was started with.
    os.environ.setdefault("TIDEMARK_TEST_PASSWORD", "pa55/w@rd: %")
    os.environ.setdefault("TIDEMARK_FAULT", f"@{state_dir}/fault")
    yield session(state_dir, {})
    stop()


@pytest.fixture
def dbt(spark, monkeypatch, tmp_path):
    """Runs dbt on this project in a schema of its own; see dbt_support.Dbt."""
    from dbt_support import Dbt

    monkeypatch.chdir(ROOT)
    yield (runner := Dbt(spark, monkeypatch, tmp_path, f"test_{uuid.uuid4().hex[:12]}"))
    runner.drop()
