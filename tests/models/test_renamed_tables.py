"""Two clusters that rename active-active tables one after the other: from their logs to the models, by the commands that a user types."""

import pytest
from histories import ACTIVE_ACTIVE, ORIGIN_TS, START_TS, Change, Table, Transaction
from streams import END_TS, Sender

RENAME_TABLE, RENAME_TABLES = 14, 47
CHANGEFEED = "bdr-mode = true\nenable-active-active = true\n"


def info(name: str, table_id: int):
    return Table(name, {"id": "int"}, ACTIVE_ACTIVE, (), ("is_active_active",)).info("shop", table_id)


class Cluster:
    """A cluster and the log that it writes; times are counted from START_TS."""

    def __init__(self, upstream: str, folder):
        self.upstream, self.log = upstream, folder / upstream
        self.log.mkdir()
        self.senders, self.frames = [], []

    def begin(self, name: str, table_id: int, ts: int = 0) -> Sender:
        sender = Sender(info(name, table_id), table_id.to_bytes(16, "big"), frames=self.frames)
        sender.begin(START_TS + ts)
        self.senders.append(sender)
        return sender

    def write(self, sender: Sender, ts: int, number: int, value: str, origin: int | None = None) -> None:
        """A write of the cluster itself, or with `origin` one that came by replication."""
        row = {**dict.fromkeys(sender.info.arrow_schema.names), "id": number, "v": value}
        row[ORIGIN_TS] = None if origin is None else START_TS + origin
        commit_ts = START_TS + ts
        sender.send(
            [Transaction(self.upstream, None, commit_ts - 1, commit_ts, (Change("insert", None, row),))]
        )

    def rename(self, ts: int, names: dict[str, str]) -> None:
        """One statement, which the dispatchers of all its tables get."""
        renamed = [(sender, sender.info) for sender in self.senders if sender.info.table in names]
        infos = [info(names[old.table], old.table_id) for _, old in renamed]
        for (sender, old), new in zip(renamed, infos, strict=True):
            others = [other for other in infos if other is not new]
            former = {"extra_schema_name": "shop", "extra_table_name": old.table}
            sender.execute(RENAME_TABLES if others else RENAME_TABLE, START_TS + ts, new, *others, **former)

    def deliver(self, part: int) -> None:
        for sender in self.senders:
            sender.resolve(END_TS + part)
        (self.log / f"{part}.bin").write_bytes(b"".join(self.frames))
        self.frames.clear()


def exchanged(first, second, ts, number, value):
    """A write of each of two (cluster, sender) to one key; the second wins, and reaches the first."""
    (one, here), (other, there) = first, second
    one.write(here, ts, number, f"{value} 1")
    other.write(there, ts + 2, number, f"{value} 2")
    one.write(here, ts + 4, number, f"{value} 2", origin=ts + 2)


@pytest.fixture
def clusters(dbt, tmp_path):
    one, other = Cluster("1", tmp_path), Cluster("2", tmp_path)
    (tmp_path / "changefeed.toml").write_text(CHANGEFEED)
    dbt.vars = {
        "event_logs": [{"upstream_id": item.upstream, "path": str(item.log)} for item in (one, other)],
        "changefeed": str(tmp_path / "changefeed.toml"),
        "sink_uri": "tidb://root@127.0.0.1:4000/",
        "replication_lag_seconds": 0,
    }
    dbt.ok("seed")
    return one, other


def run(dbt, clusters, part):
    for cluster in clusters:
        cluster.deliver(part)
    dbt.ok("run", "--select", "+current_rows", "+conflict_ledger", "+reconciliation")


def conflicts(dbt):
    return {
        (row["table_name"], row["key"], row["commit_ts"] - START_TS, row["other_commit_ts"] - START_TS)
        for row in dbt.table("conflict_ledger")
    }


def current(dbt):
    rows = dbt.rows("select table_name, key, get_json_object(values, '$.v') as v from {schema}.current_rows")
    return {(row["table_name"], row["key"]): row["v"] for row in rows}


def typed(dbt, table, **variables):
    """The rows of `tidemark.table`, whose columns are those of all clusters that have the table."""
    select = f"select id, v from {{{{ tidemark.table('shop', '{table}') }}}}"
    compiled = dbt.ok("compile", "--inline", select, **variables).result.results[0].node.compiled_code
    return {row["id"]: row["v"] for row in dbt.rows(compiled.replace("{", "{{").replace("}", "}}"))}


def differences(dbt):
    return {
        (row["table_name"], row["key"], row["upstream_id"], row["difference"])
        for row in dbt.table("reconciliation")
    }


def test_a_renamed_table_is_one_table_while_one_cluster_has_renamed_it_and_after_both_have(dbt, clusters):
    one, other = clusters
    orders = (one, one.begin("orders", 7)), (other, other.begin("orders", 8))
    exchanged(*orders, 10, 1, "before")
    exchanged(*orders, 20, 2, "untouched")
    one.rename(100, {"orders": "orders_v2"})
    exchanged(*orders, 110, 1, "between")
    # It never reaches the other cluster.
    one.write(orders[0][1], 120, 3, "lost")
    renew_one = one, one.begin("orders", 9, 150)
    one.write(renew_one[1], 160, 1, "another table")
    run(dbt, clusters, 1)

    met = {("orders_v2", '["1"]', 12, 10), ("orders_v2", '["2"]', 22, 20), ("orders_v2", '["1"]', 112, 110)}
    # Cluster 1 overwrites what it has got from cluster 2.
    met |= {("orders_v2", '["1"]', 110, 12)}
    assert conflicts(dbt) == met
    assert differences(dbt) == {("orders_v2", '["3"]', "2", "lost_write")}
    assert current(dbt) == {
        ("orders_v2", '["1"]'): "between 2",
        ("orders_v2", '["2"]'): "untouched 2",
        ("orders_v2", '["3"]'): "lost",
        ("orders", '["1"]'): "another table",
    }
    assert typed(dbt, "orders_v2") == {1: "between 2", 2: "untouched 2", 3: "lost"}
    # Before the rename, under the name of then.
    dbt.ok("run", "--select", "current_rows", as_of_ts=str(START_TS + 99))
    assert current(dbt) == {("orders", '["1"]'): "before 2", ("orders", '["2"]'): "untouched 2"}
    assert typed(dbt, "orders", as_of_ts=str(START_TS + 99)) == {1: "before 2", 2: "untouched 2"}
    # After it, while the other cluster is behind.
    dbt.ok("run", "--select", "current_rows", as_of_ts=str(START_TS + 111))
    assert current(dbt) == {("orders_v2", '["1"]'): "between 1", ("orders_v2", '["2"]'): "untouched 2"}
    other.rename(200, {"orders": "orders_v2"})
    renew_other = other, other.begin("orders", 10, 210)
    other.write(renew_other[1], 211, 1, "another table", origin=160)
    exchanged(*orders, 220, 1, "after")
    exchanged(renew_one, renew_other, 230, 1, "another table")
    run(dbt, clusters, 2)
    met |= {("orders_v2", '["1"]', 220, 112), ("orders_v2", '["1"]', 222, 220)}
    assert conflicts(dbt) == met | {("orders", '["1"]', 232, 230)}
    assert differences(dbt) == {("orders_v2", '["3"]', "2", "lost_write")}
    # All clusters have the same names again.
    assert typed(dbt, "orders") == {1: "another table 2"}
    assert current(dbt) == {
        ("orders_v2", '["1"]'): "after 2",
        ("orders_v2", '["2"]'): "untouched 2",
        ("orders_v2", '["3"]'): "lost",
        ("orders", '["1"]'): "another table 2",
    }


def test_tables_that_swap_names_stay_apart_while_one_cluster_has_not_swapped_them(dbt, clusters):
    one, other = clusters
    day = (one, one.begin("day", 1)), (other, other.begin("day", 11))
    night = (one, one.begin("night", 2)), (other, other.begin("night", 12))
    exchanged(*day, 10, 1, "day")
    exchanged(*night, 20, 1, "night")
    one.rename(100, {"day": "night", "night": "day"})
    exchanged(*day, 110, 1, "day since")
    run(dbt, clusters, 1)
    met = {("night", '["1"]', *ts) for ts in ((12, 10), (110, 12), (112, 110))} | {("day", '["1"]', 22, 20)}
    assert conflicts(dbt) == met
    assert differences(dbt) == set()
    assert current(dbt) == {("night", '["1"]'): "day since 2", ("day", '["1"]'): "night 2"}

    other.rename(200, {"day": "night", "night": "day"})
    run(dbt, clusters, 2)
    assert conflicts(dbt) == met
    assert current(dbt) == {("night", '["1"]'): "day since 2", ("day", '["1"]'): "night 2"}
    assert differences(dbt) == set()
