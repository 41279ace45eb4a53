"""From event logs into a database, through the models: both modes, faults, and the progress table.

The tests follow each other on one warehouse and one server. With TIDEMARK_TEST_TIDB_URI they run on that TiDB, except for what needs a server that can be killed.
"""

import os
import threading
import uuid
from pathlib import Path
from urllib.parse import quote

import pytest

from dbt_support import Dbt
from servers import MariaDb
from tidemark.cli import main as tidemark
from tidemark.config import load
from tidemark.sinks.mysql.connection import Connection, ServerSaid, Target, driver
from tidemark.sinks.mysql.errors import DriverMissing

# Many dbt runs: `make test-long`.
pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent.parent
TIDB = os.environ.get("TIDEMARK_TEST_TIDB_URI", "")
USER = "tidemark_test"
CREATE_TABLE, ADD_COLUMN = 3, 5
ACTIVE_ACTIVE = {
    "enable-active-active": True,
    "bdr-mode": True,
    "filter": {"rules": ["shop.inventory"]},
}
# Columns whose text is the same in the warehouse and in the database.
COMPARED = {
    "orders": ("order_id", "status", "total", "note", "placed_at", "channel + 0"),
    "customers": ("id", "email", "full_name", "interests + 0", "birthday", "seen_at", "credit"),
    "inventory": ("sku", "label", "quantity", "unit_cost", "cutoff", "_tidb_softdelete_time"),
}


class Server:
    """The database, as an administrator sees it."""

    def __init__(self, uri, killable=None):
        self.target = Target.from_settings(load(None, uri))
        self.killable = killable
        self.place = f"{self.target.host}:{self.target.port}"

    def run(self, *statements):
        connection = Connection(self.target)
        try:
            for statement in statements:
                connection.execute(statement)
            connection.commit()
        finally:
            connection.close()

    def query(self, sql):
        connection = Connection(self.target)
        try:
            return connection.query(sql)
        finally:
            connection.close()

    def uri(self, scheme, options=""):
        return f"{scheme}://{USER}:${{TIDEMARK_TEST_PASSWORD}}@{self.place}/{options}"


@pytest.fixture(scope="module")
def server(spark, tmp_path_factory):
    """`spark`: the session has the password in its environment."""
    try:
        driver()
    except DriverMissing as missing:
        pytest.skip(str(missing))
    if TIDB:
        server, mariadb = Server(TIDB), None
    else:
        mariadb = MariaDb(tmp_path_factory.mktemp("mariadb"), "--innodb-flush-log-at-trx-commit=2")
        mariadb.start()
        server = Server(mariadb.uri, mariadb)
    server.run(
        f"drop user if exists {USER}", "drop database if exists shop", "drop database if exists tidb_cdc"
    )
    password = os.environ["TIDEMARK_TEST_PASSWORD"]
    server.run(f"create user {USER} identified by '{password}'", f"grant all on *.* to {USER}")
    yield server
    server.run(
        f"drop user if exists {USER}", "drop database if exists shop", "drop database if exists tidb_cdc"
    )
    if mariadb is not None:
        mariadb.stop()


@pytest.fixture(scope="module")
def patches():
    with pytest.MonkeyPatch.context() as context:
        yield context


@pytest.fixture(scope="module")
def shop(spark, server, patches, tmp_path_factory):
    """A warehouse that has read the first half of the demo's logs; in the database are the tables, without a row."""
    patches.chdir(ROOT)
    folder = tmp_path_factory.mktemp("tidb")
    tidemark(["demo-log", "--out", str(folder / "whole"), "--rows", "1200", "--batch-rows", "40"])
    runner = Dbt(spark, patches, folder, f"test_{uuid.uuid4().hex[:12]}")
    runner.logs = Logs(folder)
    runner.logs.deliver(0.6)
    runner.vars = {
        "event_logs": [{"upstream_id": name[-1], "path": str(folder / name)} for name in runner.logs.names],
        "changefeed": ACTIVE_ACTIVE,
        "changefeed_id": "default/shop",
        "sink_uri": server.uri("tidb", "?max-txn-row=8&worker-count=1&allow-non-tidb=true"),
    }
    runner.ok("run", "--select", "+sink_tidb", "+tables_at_checkpoint", "--exclude", "sink_tidb")
    server.run("create database shop", *statements(runner, CREATE_TABLE))
    yield runner
    runner.drop()


def statements(shop, ddl_type):
    """The statements of the first upstream, for the database downstream."""
    found = shop.rows(
        "select distinct finished_ts, query from {schema}.stg_ddl_events "
        f"where upstream_id = '1' and ddl_type = {ddl_type} order by finished_ts"
    )
    return [row["query"].replace(" table ", " table shop.", 1) for row in found]


class Logs:
    """The logs of both upstreams, delivered piece by piece."""

    names = ("upstream-1", "upstream-2")

    def __init__(self, folder):
        self.folder = folder

    def deliver(self, share):
        for name in self.names:
            [whole] = sorted((self.folder / "whole" / name).iterdir())
            (self.folder / name).mkdir(exist_ok=True)
            data = whole.read_bytes()
            (self.folder / name / whole.name).write_bytes(data[: int(len(data) * share)])


def checkpoints(shop, sink):
    return shop.rows(
        f"select * from {{schema}}.sink_checkpoints where sink = '{sink}' order by checkpoint_ts"
    )


def expected_rows(shop, table):
    """The last write of every key, as row_policy has it."""
    columns = [name.removesuffix(" + 0") for name in COMPARED[table]]
    values = ", ".join(f"write.row['{name}'] as {name}" for name in columns)
    rows = shop.rows(
        "with written as (select key, max_by(struct(policy_op, from_json(post, 'map<string, string>') as row), "
        "struct(version_ts, commit_ts, upstream_id, start_ts, seq, row_number)) as write "
        f"from {{schema}}.row_policy where policy_op is not null and table_name = '{table}' group by key) "
        f"select {values} from written where write.policy_op <> 'delete'"
    )
    assert rows
    return sorted(tuple(row.values()) for row in rows)


def written_rows(server, table, place=""):
    columns = ", ".join(f"cast({name} as char)" for name in COMPARED[table])
    return sorted(server.query(f"select {columns} from {place or f'shop.{table}'}"))


def test_a_missing_column_ends_the_run_with_a_sentence_and_without_a_checkpoint(shop, server):
    server.run("alter table shop.inventory drop column unit_cost")
    said = shop.fails("run", "--select", "sink_tidb+")
    server.run("alter table shop.inventory add column unit_cost decimal(20,6) not null after reserved")
    assert "upsert on shop.inventory: the downstream table lacks a column (MySQL 1054" in said
    assert "add the column downstream" in said
    assert "Traceback" not in said
    assert checkpoints(shop, "tidb") == []
    assert (
        server.query("select schema_name from information_schema.schemata where schema_name = 'tidb_cdc'")
        == []
    )


def test_a_value_that_is_too_long_ends_the_run_and_the_next_run_completes_it(shop, server):
    server.run("alter table shop.inventory modify label varchar(4)")
    said = shop.fails("run", "--select", "sink_tidb")
    server.run("alter table shop.inventory modify label varchar(64)")
    assert "a value is too long for its column (MySQL 1406" in said
    assert "as wide as the upstream one" in said
    assert checkpoints(shop, "tidb") == []


def test_a_server_that_is_killed_mid_run_and_comes_back_ends_with_the_right_rows(shop, server):
    killer = threading.Thread(target=_kill_when_rows_are_there, args=[server])
    if server.killable:
        killer.start()
    shop.ok("run", "--select", "sink_tidb+")
    if server.killable:
        killer.join()
    assert written_rows(server, "inventory") == expected_rows(shop, "inventory")
    [checkpoint] = checkpoints(shop, "tidb")
    assert checkpoint["previous_checkpoint_ts"] == 0
    assert checkpoint["sink_uri"] == f"tidb://{server.place}"
    assert server.query("select count(*) from shop.orders") == [(0,)]


def _kill_when_rows_are_there(server):
    while True:
        try:
            if server.query("select count(*) from shop.inventory")[0][0] >= 20:
                break
        except ServerSaid:
            pass
    server.killable.kill()
    server.killable.start()


def progress_table(server):
    return server.query("select * from tidb_cdc.ticdcProgressTable order by 1, 2, 3, 4")


def test_the_progress_table_is_written_downstream_and_in_the_warehouse(shop, server):
    [checkpoint] = checkpoints(shop, "tidb")
    expected = [
        ("default/shop", upstream, "shop", "inventory", checkpoint["checkpoint_ts"])
        for upstream in ("1", "2")
    ]
    assert progress_table(server) == expected
    assert [tuple(row.values()) for row in shop.table("progress", "upstream_id")] == expected
    [safety] = shop.table("hard_delete_safety")
    assert (safety["database_name"], safety["table_name"]) == ("shop", "inventory")
    assert (safety["safe_ts"], safety["writer_count"]) == (checkpoint["checkpoint_ts"], 2)


def test_new_rows_are_written_and_the_progress_table_waits_for_its_interval(shop, server):
    before = progress_table(server)
    shop.logs.deliver(1)
    shop.ok("run", "--select", "+sink_progress", "progress")
    first, second = checkpoints(shop, "tidb")
    assert first["checkpoint_ts"] == second["previous_checkpoint_ts"] < second["checkpoint_ts"]
    assert written_rows(server, "inventory") == expected_rows(shop, "inventory")
    assert {row["checkpoint_ts"] for row in shop.table("progress")} == {second["checkpoint_ts"]}
    assert progress_table(server) == before
    impatient = {**ACTIVE_ACTIVE, "active-active-progress-interval": "1s"}
    shop.ok("run", "--select", "sink_tidb", "sink_progress", changefeed=impatient)
    assert [row[4] for row in progress_table(server)] == [second["checkpoint_ts"]] * 2
    assert checkpoints(shop, "tidb") == [first, second]
    assert [row["checkpoint_ts"] for row in checkpoints(shop, "progress")] == [
        first["checkpoint_ts"],
        second["checkpoint_ts"],
    ]


def test_rows_and_progress_have_the_names_of_the_targets(shop, server):
    server.run(
        "drop database if exists archive",
        "create database archive",
        "create table archive.stock like shop.inventory",
    )
    rule = {"matcher": ["shop.inventory"], "target-schema": "archive", "target-table": "stock"}
    routed = {**ACTIVE_ACTIVE, "sink": {"dispatchers": [rule]}}
    shop.ok(
        *("run", "--select", "table_filter", "row_policy", "tables_at_checkpoint", "sink_tidb+"),
        **{"changefeed": routed, "changefeed_id": "default/routed"},
    )
    assert written_rows(server, "inventory", "archive.stock") == expected_rows(shop, "inventory")
    written = [row[1:4] for row in progress_table(server) if row[0] == "default/routed"]
    assert written == [("1", "archive", "stock"), ("2", "archive", "stock")]
    server.run(
        "drop database archive",
        "delete from tidb_cdc.ticdcProgressTable where changefeed_id = 'default/routed'",
    )


def test_normal_mode_applies_inserts_updates_and_deletes_and_a_replay_changes_nothing(shop, server):
    server.run("delete from shop.inventory", *statements(shop, ADD_COLUMN))
    normal = {"changefeed": None, "changefeed_id": "default/plain", "sink_uri": server.uri("mysql")}
    shop.ok("run", "--select", "table_filter", "row_policy", "sink_tidb", "sink_progress", **normal)
    for table in COMPARED:
        assert written_rows(server, table) == expected_rows(shop, table)
    # Another name of the same server is another sink, which begins at the beginning.
    again = {**normal, "sink_uri": server.uri("mysql").replace("127.0.0.1", "localhost")}
    shop.ok("run", "--select", "sink_tidb", **again)
    for table in COMPARED:
        assert written_rows(server, table) == expected_rows(shop, table)
    assert {row[0] for row in progress_table(server)} == {"default/shop"}


def test_the_password_is_in_no_log_and_no_artifact(shop, state_dir):
    password = os.environ["TIDEMARK_TEST_PASSWORD"]
    forms = [password.encode(), quote(password, safe="").encode()]
    folders = (shop.folder / "target", shop.folder / "logs")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    files += state_dir.glob("*.log")
    assert {"dbt.log", "manifest.json", "sink_tidb.sql"} <= {path.name for path in files}
    assert [path for path in files if any(form in path.read_bytes() for form in forms)] == []
