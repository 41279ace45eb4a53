"""Normal mode: current_rows are the rows a real database ends with when the changes that the policy lets through are applied to it."""

import random

import pytest
from histories import (
    ACTIVE_ACTIVE,
    PLAIN,
    SOFT_DELETE,
    in_order_of_application,
    keyed_tables,
    write_history,
)
from truth import Truth, applied, is_there
from worlds import WAYS, change_counts, current_rows, run_all_ways, upstream_id

# Many dbt runs: `make test-long`.
pytestmark = pytest.mark.long

SEED, RUNS = 20250302, 2
UPSTREAMS = ["1", "2"]
TABLES = [
    *keyed_tables(PLAIN, size=20, prefix="plain_"),
    *keyed_tables(SOFT_DELETE, "is_soft_delete", size=20, prefix="soft_"),
    *keyed_tables(ACTIVE_ACTIVE, "is_active_active", size=20, prefix="active_")[:1],
    # Has the column, but nobody made it a soft-delete table.
    *keyed_tables(SOFT_DELETE, size=20, prefix="unflagged_")[:1],
]


@pytest.fixture(scope="module")
def history():
    return write_history(random.Random(SEED), TABLES, UPSTREAMS, ticks=300)


@pytest.fixture(scope="module")
def delivered(models, history, tmp_path_factory):
    run_all_ways(models, tmp_path_factory.mktemp("logs"), SEED, TABLES, history, RUNS)
    return models


@pytest.fixture(scope="module")
def live_rows(mariadb, history):
    flagged = {table.name for table in TABLES if table.flags}
    rows = applied(Truth(mariadb, TABLES), in_order_of_application(history))
    return {key: row for key, row in rows.items() if key[0] not in flagged or is_there(row)}


@pytest.mark.parametrize("way", WAYS)
def test_current_rows_are_those_of_a_real_database_however_the_logs_arrive(delivered, live_rows, way):
    rows = current_rows(delivered, TABLES, way)
    assert {key: row.values for key, row in rows.items() if not row.is_deleted} == live_rows


@pytest.mark.parametrize("way", WAYS)
def test_a_key_that_is_gone_stays_as_a_tombstone(delivered, history, live_rows, way):
    """A hard delete in a soft-delete table is no delete; every other write of a key leaves a row or a tombstone."""
    written = {
        (item.table.name, *(str(image[name]) for name in item.table.key))
        for item, change in in_order_of_application(history)
        for image in (change.pre, change.post)
        if image is not None
    }
    rows = current_rows(delivered, TABLES, way)
    assert {key for key, row in rows.items() if row.is_deleted} == written - live_rows.keys()
    assert len(live_rows) < len(rows)


@pytest.mark.parametrize("way", WAYS)
def test_every_row_change_is_taken_exactly_once(delivered, history, way):
    counts = change_counts(delivered)
    for upstream, transactions in history.items():
        assert counts[way, upstream_id(way, upstream)] == sum(len(item.changes) for item in transactions)
