"""Active-active tables: current_rows are the rows a real database ends with, however the logs arrive.

The loop guard is off, though no changefeed allows that: with it, rows that carry an origin ts would never meet others. One test looks with it.
"""

import random
from dataclasses import replace

import pytest
from histories import ACTIVE_ACTIVE, ORIGIN_TS, in_order_of_application, keyed_tables, write_history
from truth import Truth, is_there, upserted
from worlds import WAYS, CurrentRow, change_counts, current_rows, run_all_ways, upstream_id

# Many dbt runs: `make test-long`.
pytestmark = pytest.mark.long

SEED, RUNS = 20250301, 3
UPSTREAMS = ["1", "2", "3"]
TABLES = keyed_tables(ACTIVE_ACTIVE, "is_active_active", size=70)


@pytest.fixture(scope="module")
def history():
    return write_history(random.Random(SEED), TABLES, UPSTREAMS, ticks=400)


@pytest.fixture(scope="module")
def delivered(models, patches, history, tmp_path_factory):
    """The models after the last run."""
    from dbt.adapters.tidemark.impl import TidemarkAdapter

    settings = TidemarkAdapter.changefeed_settings
    folder = tmp_path_factory.mktemp("logs")
    (folder / "changefeed.toml").write_text("bdr-mode = true\nenable-active-active = true\n")
    models.vars = {"changefeed": str(folder / "changefeed.toml"), "sink_uri": "tidb://root@127.0.0.1:4000/"}
    patches.setattr(
        TidemarkAdapter, "changefeed_settings", lambda adapter: {**settings(adapter), "bdr_mode": False}
    )
    run_all_ways(models, folder, SEED, TABLES, history, RUNS)
    patches.setattr(TidemarkAdapter, "changefeed_settings", settings)
    return models


def expected(mariadb, changes, *, loop_guard=False) -> dict[tuple, CurrentRow]:
    rows = upserted(Truth(mariadb, TABLES), changes, loop_guard=loop_guard)
    return {key: CurrentRow(row, int(row[ORIGIN_TS]), not is_there(row)) for key, row in rows.items()}


def found(models, way) -> dict[tuple, CurrentRow]:
    """A row in the log has no origin ts where it was written first; downstream it always has one."""
    return {
        key: replace(row, values={**row.values, ORIGIN_TS: str(row.origin_ts)})
        for key, row in current_rows(models, TABLES, way).items()
    }


@pytest.fixture(scope="module")
def final_rows(mariadb, history):
    return expected(mariadb, in_order_of_application(history))


def test_the_history_has_what_makes_last_writer_wins_hard(history, final_rows):
    writes = {}
    for transaction, change in in_order_of_application(history):
        if change.post is not None:
            key = (transaction.table.name, *(change.post[name] for name in transaction.table.key))
            version = change.post[ORIGIN_TS] or transaction.commit_ts
            writes.setdefault(key, []).append((version, transaction.upstream))
    assert len(writes) > 200
    winners = [(max(written)[0], written) for written in writes.values()]
    ties = [len({upstream for ts, upstream in written if ts == winner}) > 1 for winner, written in winners]
    late_losers = [written[-1][0] < winner for winner, written in winners]
    tombstones = [row.is_deleted for row in final_rows.values()]
    for hard in (ties, late_losers, tombstones):
        assert len(hard) // 10 < sum(hard) < len(hard)


@pytest.mark.parametrize("way", WAYS)
def test_current_rows_are_those_of_a_real_database_however_the_logs_arrive(delivered, final_rows, way):
    assert found(delivered, way) == final_rows


@pytest.mark.parametrize("way", WAYS)
def test_every_row_change_is_taken_exactly_once(delivered, history, way):
    counts = change_counts(delivered)
    for upstream, transactions in history.items():
        assert counts[way, upstream_id(way, upstream)] == sum(len(item.changes) for item in transactions)


def test_nothing_is_quarantined_and_no_gap_is_left(delivered):
    assert delivered.table("quarantine") == []
    assert delivered.table("sequence_gaps") == []
    assert len(delivered.rows("select distinct batch_id from {schema}.log_segments")) == RUNS


def test_a_snapshot_has_the_writes_up_to_its_ts_and_the_loop_guard_keeps_replicated_rows_out(
    delivered, mariadb, history
):
    middle = history["2"][len(history["2"]) // 2].commit_ts
    early = ((item, change) for item, change in in_order_of_application(history) if item.commit_ts <= middle)
    wanted = expected(mariadb, early, loop_guard=True)
    delivered.ok("run", "--select", "row_policy", "current_rows", as_of_ts=str(middle))
    assert found(delivered, "once") == wanted
