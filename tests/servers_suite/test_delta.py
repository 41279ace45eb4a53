"""Current rows on Delta: MERGE leaves what the default format does, however the logs arrive."""

import random
import uuid
from pathlib import Path

import pytest
import yaml
from histories import ACTIVE_ACTIVE, keyed_tables, write_history
from worlds import run_all_ways

from dbt_support import Dbt

ROOT = Path(__file__).parent.parent.parent
SEED, RUNS = 20250303, 3
TABLES = keyed_tables(ACTIVE_ACTIVE, "is_active_active", size=30)[1:]
WINNERS = ("--select", "int_winners", "current_rows")


class Warehouses:
    """A warehouse of each format; all commands go to both."""

    def __init__(self, spark, patches, folder):
        self._patches, self.vars = patches, {}
        self._runners = {
            name: Dbt(spark, patches, folder / name, f"{name}_{uuid.uuid4().hex[:12]}")
            for name in ("parquet", "delta")
        }

    def __getitem__(self, name):
        """The one that was made with this format, for the next commands."""
        runner = self._runners[name]
        self._patches.setenv("TIDEMARK_SCHEMA", runner.schema)
        runner.vars = {**self.vars, "table_format": name}
        return runner

    def ok(self, *arguments):
        for name in self._runners:
            self[name].ok(*arguments)

    def drop(self):
        for runner in self._runners.values():
            runner.drop()


@pytest.fixture(scope="module")
def warehouses(spark, delta_settings, tmp_path_factory):
    """Three runs on the logs of two clusters, which come at once, piece by piece, shuffled and twice."""
    from dbt.adapters.tidemark.impl import TidemarkAdapter

    if not delta_settings:
        pytest.skip("Delta cannot be fetched")
    settings, folder = TidemarkAdapter.changefeed_settings, tmp_path_factory.mktemp("delta")
    profile = yaml.safe_load((ROOT / "profiles" / "profiles.yml").read_text())
    profile["tidemark"]["outputs"]["embedded"]["spark_settings"] = delta_settings
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile))
    with pytest.MonkeyPatch.context() as patches:
        patches.chdir(ROOT)
        made = Warehouses(spark, patches, folder)
        patches.setenv("DBT_PROFILES_DIR", str(folder))
        # Without the loop guard, writes that carry the ts of earlier ones meet others, and lose.
        patches.setattr(
            TidemarkAdapter, "changefeed_settings", lambda adapter: {**settings(adapter), "bdr_mode": False}
        )
        made.vars = {
            "changefeed": {"bdr-mode": True, "enable-active-active": True},
            "sink_uri": "tidb://root@127.0.0.1:4000/",
        }
        history = write_history(random.Random(SEED), TABLES, ["1", "2"], ticks=150)
        (folder / "logs").mkdir()
        run_all_ways(made, folder / "logs", SEED, TABLES, history, RUNS)
        yield made
        made.drop()


def current_rows(warehouse):
    return warehouse.table("current_rows", "schema_name, table_name, key")


def winners_table(warehouse):
    """The table behind the view."""
    properties = warehouse.rows("show tblproperties {schema}.int_winners")
    version = next(row["value"] for row in properties if row["key"] == "tidemark.version")
    return f"{warehouse.schema}_store.{version}"


def merges(warehouse):
    """What each MERGE did, in order."""
    history = warehouse.rows(f"describe history {winners_table(warehouse)}")
    return [row["operationMetrics"] for row in reversed(history) if row["operation"] == "MERGE"]


def test_the_rows_are_those_of_the_default_format(warehouses):
    rows = current_rows(warehouses["delta"])
    assert rows == current_rows(warehouses["parquet"])
    assert {row["schema_name"] for row in rows} == {"once", "grown", "shuffled", "twice"}


def test_each_run_after_the_first_is_one_merge_that_keeps_one_row_per_key(warehouses):
    warehouse = warehouses["delta"]
    done = merges(warehouse)
    assert len(done) == RUNS - 1
    for metrics in done:
        assert int(metrics["numTargetRowsInserted"]) > 0
        assert 0 < int(metrics["numTargetRowsUpdated"]) < int(metrics["numSourceRows"])
    (counts,) = warehouse.rows(
        "select count(*) as n, count(distinct schema_name, table_name, key, upstream_id, physical_table_id) as keys"
        " from {schema}.int_winners"
    )
    assert counts["n"] == counts["keys"]
    assert len(warehouse.rows("select distinct batch_id from {schema}.log_segments")) == RUNS


def test_a_run_that_died_after_the_merge_is_made_good_by_the_next(warehouses):
    """What it did not come to is to note the batches that it had merged."""
    warehouse = warehouses["delta"]
    before, done = current_rows(warehouse), len(merges(warehouse))
    warehouse.rows(f"alter table {winners_table(warehouse)} set tblproperties ('tidemark.last_batch' = '1')")
    warehouse.ok("run", *WINNERS)
    *_, again = merges(warehouse)[done:]
    assert int(again["numSourceRows"]) > 0
    assert (int(again["numTargetRowsInserted"]), int(again["numTargetRowsUpdated"])) == (0, 0)
    assert current_rows(warehouse) == before
    noted = warehouse.rows(f"show tblproperties {winners_table(warehouse)} ('tidemark.last_batch')")
    assert noted[0]["value"] == str(RUNS)


def test_a_run_without_new_data_changes_nothing(warehouses):
    warehouse = warehouses["delta"]
    before = warehouse.table("int_winners", "schema_name, table_name, key, upstream_id")
    warehouse.ok("run", *WINNERS)
    assert warehouse.table("int_winners", "schema_name, table_name, key, upstream_id") == before


def test_a_full_refresh_builds_the_table_again_and_changes_its_format(warehouses):
    wanted = current_rows(warehouses["delta"])
    warehouse = warehouses["parquet"]
    assert "--full-refresh" in warehouse.fails("run", *WINNERS, table_format="delta")
    for table_format in ("delta", "delta", "parquet"):
        warehouse.ok("run", "--full-refresh", *WINNERS, table_format=table_format, rebuild_from_logs=True)
        warehouse.ok("run", *WINNERS, table_format=table_format)
        assert current_rows(warehouse) == wanted
        described = warehouse.rows(f"describe table extended {winners_table(warehouse)}")
        assert table_format in [row["data_type"] for row in described if row["col_name"] == "Provider"]
