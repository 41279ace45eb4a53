"""The same logs on every table format: the same rows, however the logs arrive and runs end, and tables that other engines read."""

import random
from pathlib import Path

import pytest
import yaml
from format_support import Warehouses, kept, note, rows_of, types_of
from histories import ACTIVE_ACTIVE, keyed_tables, write_history
from worlds import run_all_ways

from support import golden

ROOT = Path(__file__).parent.parent.parent
SEED, RUNS = 20250303, 3
TABLES = keyed_tables(ACTIVE_ACTIVE, "is_active_active", size=30)[1:]
SELECTED = ("--select", "+current_rows", "+quarantine", "+sequence_gaps")
# Tables whose rows are the same in every format. Of winners, parquet has one in each part.
TABLES_OF_MODELS = [
    *(
        "log_segments",
        "stg_frames",
        "stg_transactions",
        "stg_ddl_events",
        "stg_handshakes",
        "stg_resolved_events",
    ),
    *("int_epochs", "int_checkpoints", "int_transactions", "int_row_changes"),
    *("table_versions", "table_identities", "table_filter", "current_rows"),
]
BATCHED = [name for name in TABLES_OF_MODELS if name.startswith(("log_", "stg_", "int_"))] + ["int_winners"]
SENT = ("+sink_storage", "+progress", "+current_rows", "+sync_points")
with_transactions = pytest.mark.parametrize("table_format", ["delta", "iceberg"])


@pytest.fixture(scope="module")
def patches(all_settings, tmp_path_factory):
    """The project's folder, and a profile with the settings of the shared session."""
    if not all_settings:
        pytest.skip("Delta and Iceberg cannot be fetched")
    folder = tmp_path_factory.mktemp("profile")
    profile = yaml.safe_load((ROOT / "profiles" / "profiles.yml").read_text())
    profile["tidemark"]["outputs"]["embedded"]["spark_settings"] = all_settings
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile))
    with pytest.MonkeyPatch.context() as patches:
        patches.chdir(ROOT)
        patches.profiles = folder
        yield patches


@pytest.fixture(scope="module")
def warehouses(spark, patches, lake, tmp_path_factory):
    """Three runs on the logs of two clusters, which come at once, piece by piece, shuffled and twice."""
    from dbt.adapters.tidemark.impl import TidemarkAdapter

    settings, folder = TidemarkAdapter.changefeed_settings, tmp_path_factory.mktemp("formats")
    made = Warehouses(spark, patches, folder, lake)
    patches.setenv("DBT_PROFILES_DIR", str(patches.profiles))
    # Without the loop guard, writes that carry the ts of earlier ones meet others, and lose.
    patches.setattr(
        TidemarkAdapter, "changefeed_settings", lambda adapter: {**settings(adapter), "bdr_mode": False}
    )
    made.vars = {
        "changefeed": {"bdr-mode": True, "enable-active-active": True},
        "sink_uri": "tidb://root@127.0.0.1:4000/",
    }
    history = write_history(random.Random(SEED), TABLES, ["1", "2"], ticks=80)
    (folder / "logs").mkdir()
    run_all_ways(made, folder / "logs", SEED, TABLES, history, RUNS)
    yield made
    made.drop()


def rows(warehouse, name):
    return sorted(warehouse.rows(f"select * from {{schema}}.{name}"), key=repr)


def all_rows(warehouse):
    names = TABLES_OF_MODELS if "parquet" in warehouse.schema else [*TABLES_OF_MODELS, "int_winners"]
    return {name: rows(warehouse, name) for name in names}


@with_transactions
def test_the_rows_are_those_of_parquet(warehouses, table_format):
    wanted, found = all_rows(warehouses["parquet"]), all_rows(warehouses[table_format])
    for name in TABLES_OF_MODELS:
        assert found[name] == wanted[name], name
        assert wanted[name] or name == "stg_ddl_events", name
    assert {row["schema_name"] for row in found["current_rows"]} == {"once", "grown", "shuffled", "twice"}


def test_delta_and_iceberg_have_the_same_winners_one_of_each_key(warehouses):
    delta, iceberg = (rows(warehouses[name], "int_winners") for name in ("delta", "iceberg"))
    assert delta == iceberg
    columns = ("schema_name", "table_name", "key", "upstream_id", "physical_table_id")
    assert len({tuple(row[column] for column in columns) for row in delta}) == len(delta)


def test_each_run_after_the_first_is_one_transaction(warehouses):
    warehouse = warehouses["delta"]
    history = warehouse.rows("describe history {schema}_store.int_winners")
    merges = [row["operationMetrics"] for row in history if row["operation"] == "MERGE"]
    assert len(merges) == RUNS - 1 == len(history) - 1
    for metrics in merges:
        assert int(metrics["numTargetRowsInserted"]) > 0
        assert 0 < int(metrics["numTargetRowsUpdated"]) < int(metrics["numSourceRows"])
    snapshots = warehouses["iceberg"].rows("select operation from lake.{schema}.int_row_changes.snapshots")
    assert len(snapshots) == RUNS


@with_transactions
def test_names_are_views_of_tables_of_the_format(warehouses, table_format):
    warehouse = warehouses[table_format]
    store = {"delta": "{schema}_store", "iceberg": "lake.{schema}"}[table_format].format(
        schema=warehouse.schema
    )
    stored = {row["tableName"] for row in warehouse.rows(f"show tables in {store}") if not row["isTemporary"]}
    assert stored >= {*BATCHED, "table_versions", "table_identities", "table_filter"}
    assert not [name for name in stored if "__" in name], "there are no versions"
    for name in stored:
        described = warehouse.rows(f"describe table extended {store}.{name}")
        assert table_format in [row["data_type"] for row in described if row["col_name"] == "Provider"]


@with_transactions
@pytest.mark.parametrize("model", ["int_row_changes", "int_winners", "int_epochs", "table_versions"])
def test_other_engines_read_what_spark_reads(warehouses, table_format, model):
    warehouse = warehouses[table_format]
    in_spark = warehouse.spark.table(f"{warehouse.schema}.{model}").toArrow()
    elsewhere = warehouses.read_elsewhere(table_format, model)
    assert types_of(elsewhere) == types_of(in_spark)
    assert rows_of(elsewhere) == rows_of(in_spark)
    assert elsewhere.num_rows > 0


@with_transactions
def test_a_run_without_new_data_changes_nothing(warehouses, table_format):
    warehouse = warehouses[table_format]
    noted = {name: kept(warehouse, name) for name in BATCHED}
    outcome = warehouse.ok("run", *SELECTED)
    said = {node.node.name: node.message for node in outcome.result.results}
    assert {said[name] for name in BATCHED} == {"nothing new"}
    assert {said[name] for name in ("table_versions", "table_identities", "table_filter")} == {"unchanged"}
    assert {name: kept(warehouse, name) for name in BATCHED} == noted


@with_transactions
def test_a_run_that_died_before_it_noted_its_rows_is_made_good_by_the_next(warehouses, table_format):
    warehouse = warehouses[table_format]
    before = all_rows(warehouse)
    for name in BATCHED:
        noted = kept(warehouse, name)
        assert noted["batch"] == RUNS
        back = {
            "batch": RUNS - 1,
            "rows_of": min(noted["rows_of"], RUNS - 1),
            "changes": noted["changes"] - 1,
        }
        note(warehouse, name, {**noted, **back})
    warehouse.ok("run", *SELECTED)
    assert {kept(warehouse, name)["batch"] for name in BATCHED if name != "int_epochs"} == {RUNS}
    after = all_rows(warehouse)
    for name, wanted in before.items():
        assert after[name] == wanted, name


def test_another_format_is_refused_with_what_to_do(warehouses):
    warehouse = warehouses["parquet"]
    said = warehouse.fails("run", *SELECTED, table_format="delta")
    assert "is kept as parquet, and table_format is delta" in said
    assert "tidemark upgrade" in said


@with_transactions
def test_current_rows_can_be_a_table_that_other_engines_read(warehouses, table_format):
    warehouse = warehouses[table_format]
    wanted = rows(warehouse, "current_rows")
    for expected in ("OK", "unchanged"):
        outcome = warehouse.ok("run", "--select", "current_rows", current_rows_as="table")
        assert [node.message for node in outcome.result.results] == [expected]
        assert rows_of(warehouses.read_elsewhere(table_format, "current_rows")) == wanted
    warehouse.ok("run", "--select", "current_rows")
    assert rows(warehouse, "current_rows") == wanted
    store = {"delta": "{schema}_store", "iceberg": "lake.{schema}"}[table_format]
    left = [row["tableName"] for row in warehouse.rows(f"show tables in {store}")]
    assert "current_rows" not in left


@with_transactions
def test_a_rebuild_from_the_logs_gives_the_same_rows(warehouses, table_format):
    warehouse = warehouses[table_format]
    wanted = rows(warehouse, "current_rows")
    warehouse.ok("run", "--full-refresh", *SELECTED, rebuild_from_logs=True)
    assert rows(warehouse, "current_rows") == wanted
    assert kept(warehouse, "int_row_changes")["batch"] == 1


@pytest.fixture(scope="module")
def sinks(spark, patches, lake, tmp_path_factory):
    """Two runs that send to a storage tree, on each format."""
    folder = tmp_path_factory.mktemp("sinks")
    made = Warehouses(spark, patches, folder, lake)
    patches.setenv("DBT_PROFILES_DIR", str(patches.profiles))
    stream, log = golden("streams/orders.bin").read_bytes(), folder / "log"
    log.mkdir()
    (log / "a.bin").write_bytes(stream)
    made.vars = {"event_logs": [{"upstream_id": "1", "path": str(log)}]}
    for table_format in made:
        made.vars_of[table_format] = {"sink_uri": f"file://{folder}/{table_format}-tree?protocol=csv"}
        warehouse = made[table_format]
        warehouse.ok("run", "--select", *SENT, "--exclude", "sink_kafka", "sink_tidb")
        warehouse.ok("run", "--select", "sink_storage", "progress")
    yield made
    made.drop()


def told(warehouse, name):
    """Without the place and time of the run."""
    left_out = {"sink_uri", "written_at", "plan_id"}
    return [
        {column: value for column, value in row.items() if column not in left_out}
        for row in rows(warehouse, name)
    ]


@with_transactions
def test_sinks_note_the_same_as_on_parquet_and_other_engines_read_it(sinks, table_format):
    for name in ("sink_checkpoints", "progress"):
        wanted = told(sinks["parquet"], name)
        warehouse = sinks[table_format]
        assert told(warehouse, name) == wanted
        assert wanted
        in_spark = warehouse.spark.table(f"{warehouse.schema}.{name}").toArrow()
        elsewhere = sinks.read_elsewhere(table_format, name)
        assert types_of(elsewhere) == types_of(in_spark)
        assert rows_of(elsewhere) == rows_of(in_spark)


UPGRADES = ("iceberg", "delta", "parquet", "delta", "iceberg", "parquet")


def test_an_upgrade_leads_from_every_format_to_every_other(sinks):
    warehouse, folder = sinks["parquet"], sinks["parquet"].folder.parent
    names = [*TABLES_OF_MODELS, "int_winners", "sink_checkpoints"]
    before, tree = (
        {name: rows(warehouse, name) for name in names},
        sorted((folder / "parquet-tree").rglob("*")),
    )
    for table_format in UPGRADES:
        warehouse.ok("run-operation", "upgrade", table_format=table_format)
        assert {kept(warehouse, name)["format"] for name in [*BATCHED, "sink_checkpoints"]} == {table_format}
        for name in names:
            assert rows(warehouse, name) == before[name], (table_format, name)
        assert not warehouse.rows(f"show tables in lake.{warehouse.schema}") or table_format == "iceberg"
    outcome = warehouse.ok("run", "--select", *SENT, "--exclude", "sink_kafka", "sink_tidb")
    said = {node.node.name: node.message for node in outcome.result.results}
    assert {said[name] for name in BATCHED} == {"nothing new"}
    assert sorted((folder / "parquet-tree").rglob("*")) == tree


KEEP_NOTHING = {"keep_row_changes": "0s", "keep_events": "0s"}
CLEANED = [
    *("int_row_changes", "stg_frames", "stg_transactions", "stg_resolved_events", "stg_sync_points"),
    *("stg_handshakes", "int_transactions", "current_rows"),
]


@with_transactions
def test_clean_leaves_the_rows_that_it_leaves_on_parquet_also_if_it_dies_meanwhile(sinks, table_format):
    from dbt.adapters.tidemark.connections import TidemarkCursor

    sinks["parquet"].ok("run-operation", "clean", **KEEP_NOTHING)
    wanted = {name: rows(sinks["parquet"], name) for name in CLEANED}
    warehouse, execute = sinks[table_format], TidemarkCursor.execute
    row_count = len(rows(warehouse, "int_row_changes"))

    def dies_half_way(cursor, sql, *parameters):
        if "set batch_id = 0" in sql:
            raise RuntimeError("the end")
        return execute(cursor, sql, *parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TidemarkCursor, "execute", dies_half_way)
        warehouse.fails("run-operation", "clean", **KEEP_NOTHING)
    assert "the end" in warehouse.log()
    assert len(rows(warehouse, "int_row_changes")) < row_count
    elsewhere = f"file://{warehouse.folder}/elsewhere?protocol=csv"
    refused = warehouse.fails("run", "--select", "sink_storage", sink_uri=elsewhere)
    assert "were removed by `tidemark clean`" in refused

    warehouse.ok("run-operation", "clean", **KEEP_NOTHING)
    for name, expected in wanted.items():
        assert rows(warehouse, name) == expected, name
    assert {row["batch_id"] for row in wanted["int_row_changes"]} == {0}
    assert (
        kept(warehouse, "int_row_changes")["cleaned"] == kept(sinks["parquet"], "int_row_changes")["cleaned"]
    )


def test_the_targets_of_the_profile_have_the_settings_of_the_documentation():
    from conftest import shown_settings

    outputs = yaml.safe_load((ROOT / "profiles" / "profiles.yml").read_text())["tidemark"]["outputs"]
    for table_format in ("delta", "iceberg"):
        shown = shown_settings(table_format)
        placed = {key for key, value in shown.items() if "/data/" in str(value)}
        there = outputs[table_format]["spark_settings"]
        assert there.keys() == shown.keys()
        assert all(there[key] == shown[key] for key in shown.keys() - placed)
