"""The rows of a demo log make sense: state is consistent, clusters replicate, the last writer wins."""

from collections import Counter

import numpy as np
import pytest
from demo_log_reader import changes_of, once, replay, upstream_folders

from tidemark.demo.files import LogFiles
from tidemark.demo.shop import Shop
from tidemark.demo.tables import Images
from tidemark.wire.events.dml import DELETE, INSERT, UPDATE

HIDDEN = {"_tidb_origin_ts", "_tidb_softdelete_time", "_tidb_commit_ts"}
SHAPES = {
    "three upstreams": (3, 3, 9000),
    "one upstream": (1, 3, 4000),
    "one table": (2, 1, 2000),
    "tiny": (2, 3, 60),
}


SEVERAL_WITH_INVENTORY = ("three upstreams", "tiny")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Each shape is written once: the shop afterwards, and the row changes of its upstreams."""
    made = {}

    def demo(name):
        if name not in made:
            upstreams, tables, rows = SHAPES[name]
            out = tmp_path_factory.mktemp("demo") / "log"
            files = [LogFiles(out / f"upstream-{number + 1}", 1 << 20) for number in range(upstreams)]
            shop = Shop(files, tables=tables, rows=rows, seed=3, batch_rows=200)
            shop.run()
            for log in files:
                log.close()
            made[name] = shop, [changes_of(folder) for folder in upstream_folders(out)]
        return made[name]

    return demo


@pytest.fixture
def demo(request, written):
    return written(request.param)


def shapes(*names):
    return pytest.mark.parametrize("demo", names or list(SHAPES), indirect=True)


@shapes()
def test_an_update_or_delete_starts_from_the_row_as_it_was(demo):
    for changes in demo[1]:
        rows = {}
        for change in once(changes):
            known = rows.pop((change.table, change.key), None)
            if change.op == INSERT:
                assert known is None
            else:
                assert {name: change.pre[name] for name in known} == known
            if change.post is not None:
                rows[change.table, change.key] = change.post


@shapes()
def test_replaying_the_rows_gives_the_state_the_generator_believes_in(demo):
    shop, logs = demo
    for upstream, changes in zip(shop.upstreams, logs, strict=True):
        rows = replay(changes)
        for share in upstream.shares:
            population = share.population
            present = np.flatnonzero(population.commit_ts[share.cluster])
            columns = (population.write, population.origin_ts, population.commit_ts, population.deleted_at)
            images = Images(
                population.key[present], *(c[share.cluster, present] for c in columns), salt=population._salt
            )
            believed = share.table.rows(images).to_pylist()
            key = share.table.info.handle_key[0]
            assert len(believed) > 0
            for row in believed:
                found = rows[share.table.name, row[key]]
                assert {name: row[name] for name in found} == found
            # Nothing left the window here, so that these are all rows.
            assert len(believed) == sum(table == share.table.name for table, _ in rows)


@shapes()
def test_commit_ts_column_is_the_commit_ts_of_the_last_write(demo):
    for changes in demo[1]:
        for change in changes:
            if change.post and "_tidb_commit_ts" in change.post:
                assert change.post["_tidb_commit_ts"] == change.commit_ts
            if change.pre and "_tidb_commit_ts" in change.pre:
                assert change.pre["_tidb_commit_ts"] < change.commit_ts


@shapes()
def test_plain_tables_of_different_upstreams_share_no_key(demo):
    keys = [
        {(change.table, change.key) for change in changes if change.table != "inventory"}
        for changes in demo[1]
    ]
    assert len(set().union(*keys)) == sum(map(len, keys))


@shapes()
def test_only_rows_that_were_soft_deleted_are_deleted_and_updates_bring_them_back(demo):
    seen = Counter()
    for changes in demo[1]:
        for change in changes:
            if change.table == "orders":
                continue
            before = change.pre and change.pre["_tidb_softdelete_time"]
            after = change.post and change.post["_tidb_softdelete_time"]
            if change.op == DELETE:
                assert before is not None
            elif change.op == UPDATE:
                seen[before is None, after is None] += 1
                is_replicated = change.post["_tidb_origin_ts"] is not None
                if after is not None and not is_replicated:
                    assert business(change.pre) == business(change.post)
    if sum(seen.values()) > 200:
        assert seen[True, False]
        assert seen[False, True]


def business(row: dict) -> dict:
    return {name: value for name, value in row.items() if name not in HIDDEN}


def inventory(changes):
    return [change for change in once(changes) if change.table == "inventory"]


@shapes(*SEVERAL_WITH_INVENTORY)
def test_a_replicated_row_is_a_write_of_another_upstream(demo):
    _, logs = demo
    local = {}
    for number, changes in enumerate(logs):
        for change in inventory(changes):
            if change.post and change.post["_tidb_origin_ts"] is None:
                local[change.commit_ts, change.key] = (number, change.post)
    replicated = 0
    for number, changes in enumerate(logs):
        for change in inventory(changes):
            if change.post and change.post["_tidb_origin_ts"] is not None:
                writer, row = local[change.post["_tidb_origin_ts"], change.key]
                assert writer != number
                assert business(row) == business(change.post)
                assert row["_tidb_softdelete_time"] == change.post["_tidb_softdelete_time"]
                assert change.commit_ts > change.post["_tidb_origin_ts"]
                replicated += 1
    assert replicated


@shapes("one upstream")
def test_a_single_upstream_has_rows_written_by_replication(demo):
    _, logs = demo
    rows = inventory(logs[0])
    origins = [change.post["_tidb_origin_ts"] is not None for change in rows if change.post]
    assert 0.2 < sum(origins) / len(origins) < 0.8


@shapes()
def test_an_arriving_write_never_replaces_a_later_one(demo):
    for changes in demo[1]:
        for change in inventory(changes):
            if change.op == UPDATE and change.post["_tidb_origin_ts"] is not None:
                written = change.pre["_tidb_origin_ts"] or change.pre["_tidb_commit_ts"]
                assert written <= change.post["_tidb_origin_ts"]


@shapes(*SEVERAL_WITH_INVENTORY)
def test_upstreams_agree_on_all_rows_but_the_latest(demo):
    shop, logs = demo
    ((population, _),) = shop._shared
    travelling = set(population.key[population._fresh.slot].tolist())
    states = [
        {
            key: row
            for (table, key), row in replay(changes).items()
            if table == "inventory" and key not in travelling
        }
        for changes in logs
    ]
    for state in states[1:]:
        assert state.keys() == states[0].keys()
        assert all(business(row) == business(states[0][key]) for key, row in state.items())


@shapes("three upstreams")
def test_upstreams_write_the_same_rows_at_the_same_time(demo):
    _, logs = demo
    overwritten = sum(
        change.op == UPDATE
        and change.post["_tidb_origin_ts"] is not None
        and change.pre["_tidb_origin_ts"] is None
        for changes in logs
        for change in inventory(changes)
    )
    assert overwritten > 20


@shapes("three upstreams")
def test_nullable_columns_have_nulls_and_values_differ(demo):
    _, logs = demo
    rows = [change.post for changes in logs for change in changes if change.post]
    names = {name for row in rows for name in row}
    for name in names - {"priority"}:
        values = {row[name] for row in rows if name in row}
        assert len(values) > 1, name
    for name in {"note", "weight_kg", "birthday", "preferences", "about", "counted_at"} & names:
        assert any(row[name] is None for row in rows if name in row), name
