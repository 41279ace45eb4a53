"""Logs written as trees are those of TiCDC."""

import json
import re
from functools import cache

import pyarrow as pa
import pytest
from storage_support import (
    TREES,
    files_below,
    golden_settings,
    golden_tree,
    inserts,
    is_data,
    log_of,
    settings,
    table_named,
)

from routing_support import PLAIN, ROUTED, target
from support import golden, jsonl
from tidemark.config import load
from tidemark.dispatch.changefeed_filter import ChangefeedFilter
from tidemark.encode.paths import RECORD
from tidemark.errors import TidemarkError
from tidemark.sinks.storage.filesystem import LocalStore
from tidemark.sinks.storage.layout import StorageLayout
from tidemark.sinks.storage.log_driver import stage, write_log_to_tree
from tidemark.sinks.storage.publish import open_tree, publish
from tidemark.sinks.storage.reader import read_tree
from tidemark.sinks.storage.schema_versions import schema_files_of_ddl
from tidemark.sinks.storage.span import Span
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.framing import scan
from tidemark.wire.registry import decode
from tidemark.wire.rows import op_names

DATE = re.compile(r"/(?:\d{4}-\d\d-\d\d|\d{4}-\d\d|\d{4})(?=/CDC|/meta/CDC|$)")
HEADER = re.compile(rb"^ticdc-meta\$operation[^\n]*\n", re.M)
BUILD_TIME = re.compile(rb'"ts":\d+')


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """(scenario, configuration) -> the tree we write for it."""

    @cache
    def tree(scenario, config):
        folder = tmp_path_factory.mktemp("tree")
        # A row that CSV cannot express (ENUM value 0) was left out by the generator too.
        write_log_to_tree(
            [log_of(scenario)],
            golden_settings(scenario, config),
            str(folder),
            on_error=lambda batch, error: None,
        )
        files = files_below(folder)
        # Ours; consumers do not look at it.
        assert files.pop(RECORD)
        return files

    return tree


def folders(tree: dict[str, bytes]) -> dict[str, bytes]:
    """Rows of each folder. Which date it is and where a file ends depend on the generator's clock and flushes: both are left out."""
    found: dict[str, list[bytes]] = {}
    for path in sorted(filter(is_data, tree), key=lambda path: (DATE.sub("", path.rpartition("/")[0]), path)):
        folder = DATE.sub("", path.rpartition("/")[0])
        dispatcher = re.search(r"/CDC(_\d+_)?", path).group(1) or ""
        found.setdefault(folder + dispatcher, []).append(HEADER.sub(b"", tree[path]))
    return {folder: b"".join(parts) for folder, parts in found.items()}


def normal_json(rows: bytes) -> list:
    return [json.loads(BUILD_TIME.sub(b'"ts":0', line)) for line in rows.splitlines()]


@pytest.mark.parametrize(("scenario", "config"), TREES)
def test_rows_of_every_folder_are_those_of_ticdc(scenario, config, written):
    want, got = folders(golden_tree(scenario, config)), folders(written(scenario, config))
    assert got.keys() == want.keys()
    for folder, rows in want.items():
        if "json" in config:
            assert normal_json(got[folder]) == normal_json(rows), folder
        elif config == "csv_day_nopart":
            # Partitions that share a folder: TiCDC writes them one after another as they are flushed, here they are in commit order.
            assert sorted(got[folder].splitlines()) == sorted(rows.splitlines()), folder
        else:
            assert got[folder] == rows, folder


@pytest.mark.parametrize(("scenario", "config"), TREES)
def test_schema_files_are_those_of_ticdc(scenario, config, written):
    want, got = golden_tree(scenario, config), written(scenario, config)
    want, got = ({path: tree[path] for path in tree if "/meta/schema_" in path} for tree in (want, got))
    assert got == want


@pytest.mark.parametrize(("scenario", "config"), TREES)
def test_checkpoint_is_that_of_ticdc(scenario, config, written):
    assert written(scenario, config)["metadata"] == golden_tree(scenario, config)["metadata"]


@pytest.mark.parametrize("config", ["csv_none", "csv_tableid"])
def test_file_and_index_names_are_those_of_ticdc(config, written):
    # evolve has one file per folder in both, but for the one that TiCDC's flush interval cut.
    want, got = set(golden_tree("evolve", config)), set(written("evolve", config))
    assert {path for path in want if not path.endswith("CDC000002.csv")} == got


def test_splitting_is_that_of_ticdc(written):
    assert written("alltypes", "csv_split_colid") == golden_tree("alltypes", "csv_split_colid")


def test_across_nodes_names_carry_the_dispatcher(written):
    tree = written("orders", "csv_across_nodes")
    names = {DATE.sub("", path) for path in tree if is_data(path) or path.endswith(".index")}
    assert names <= {DATE.sub("", path) for path in golden_tree("orders", "csv_across_nodes")}
    assert len(names) == 16


@pytest.mark.parametrize(("config", "length"), [("json_year", 4), ("csv_month", 7), ("csv_day_nopart", 10)])
def test_date_folder_is_the_date_of_the_commit_ts(config, length, written):
    dates = {path.split("/")[3] for path in written("orders", config) if is_data(path)}
    # The generator's PD clock, which TiCDC takes the date from, was set to another year.
    assert dates == {date_of_rows("orders")[:length]}


def date_of_rows(scenario):
    from datetime import datetime, timezone

    row = jsonl(f"streams/{scenario}.rows.jsonl")[0]
    return datetime.fromtimestamp((int(row["commit_ts"]) >> 18) / 1000, timezone.utc).strftime("%Y-%m-%d")


@pytest.mark.parametrize("scenario", ["orders", "evolve"])
@pytest.mark.parametrize("protocol", ["csv", "canal-json"])
def test_writing_a_log_in_two_runs_gives_the_same_rows(scenario, protocol, tmp_path):
    """The log is cut in the middle; the second run sees all of it and goes on where the first one ended."""
    query = "&enable-tidb-extension=true" if protocol == "canal-json" else ""
    given = settings(protocol, query, compat="ticdc")
    events = jsonl(f"streams/{scenario}.events.jsonl")
    resolved = [event for event in events if event["kind"] == "resolved"]
    cut = int(resolved[len(resolved) // 2]["offset"]) + int(resolved[len(resolved) // 2]["length"])
    half = tmp_path / "half.bin"
    with open(log_of(scenario), "rb") as log:
        half.write_bytes(log.read(cut))
    whole, twice = tmp_path / "whole", tmp_path / "twice"
    write_log_to_tree([log_of(scenario)], given, str(whole))
    first = write_log_to_tree([str(half)], given, str(twice))
    second = write_log_to_tree([log_of(scenario)], given, str(twice))
    assert second.wrote
    assert first.checkpoint < second.checkpoint
    assert folders(files_below(twice)) == folders(files_below(whole))
    schema_files = [
        {path: content for path, content in files_below(folder).items() if "/schema_" in path}
        for folder in (twice, whole)
    ]
    assert schema_files[0] == schema_files[1]


def test_same_command_again_changes_nothing(tmp_path):
    given = settings()
    first = write_log_to_tree([log_of("orders")], given, str(tmp_path))
    before = files_below(tmp_path)
    again = write_log_to_tree([log_of("orders")], given, str(tmp_path))
    assert first.wrote
    assert not again.wrote
    assert files_below(tmp_path) == before


def test_rows_after_the_checkpoint_wait(tmp_path):
    """The last frames of the log are its last Resolved events: without them the checkpoint is lower, and what lies above is not written."""
    events = jsonl("streams/evolve.events.jsonl")
    with open(log_of("evolve"), "rb") as log:
        content = log.read(int(events[-1]["offset"]))
    (tmp_path / "cut.bin").write_bytes(content)
    out = tmp_path / "out"
    published = write_log_to_tree([str(tmp_path / "cut.bin")], settings(), str(out))
    ts = [
        int(line.split(b",")[3])
        for path, rows in files_below(out).items()
        if is_data(path)
        for line in rows.splitlines()
    ]
    assert published.checkpoint < int(events[-1]["resolved_ts"])
    assert all(row <= published.checkpoint for row in ts)


def publish_rows(folder, given, *batches, end, schema_files=None, store=None):
    """Publish batches (with their table_info_version) as one run."""
    store = store or LocalStore(str(folder))
    layout = StorageLayout(given)
    with open_tree(store) as tree:
        span = Span(tree.checkpoint, end)
        staged = stage(store, span, layout, given, batches)
        return publish(store, tree.lease, layout, span, staged, schema_files or {})


def test_a_table_without_ddl_gets_a_schema_file(tmp_path):
    publish_rows(tmp_path, settings(), (inserts(table_named(), [(20, [(1, "a")])]), 10), end=20)
    names = [path for path in files_below(tmp_path) if "/schema_" in path]
    assert len(names) == 1
    assert names[0].startswith("db/t/meta/schema_10_")


def test_an_unchanged_table_stays_in_the_newest_version_with_its_hash(tmp_path):
    given = settings()
    publish_rows(tmp_path, given, (inserts(table_named(), [(20, [(1, "a")])]), 10), end=20)
    # Version 25: the dispatcher began again, or saw a statement about another table.
    publish_rows(tmp_path, given, (inserts(table_named(), [(30, [(2, "b")])]), 25), end=30)
    data = [path for path in files_below(tmp_path) if is_data(path)]
    assert data == ["db/t/10/CDC00000000000000000001.csv", "db/t/10/CDC00000000000000000002.csv"]


def test_partitions_that_share_a_folder_are_merged_in_commit_order(tmp_path):
    table = table_named(is_partition=True)
    given = settings(enable_partition_separator=False)
    publish_rows(
        tmp_path,
        given,
        (inserts(table, [(20, [(1, "a")]), (22, [(2, "b")])], table_id=201), 10),
        (inserts(table, [(21, [(3, "c")]), (22, [(4, "d")])], table_id=202), 10),
        end=30,
    )
    lines = (tmp_path / "db/t/10/CDC00000000000000000001.csv").read_bytes().splitlines()
    assert [line.split(b",")[3:5] for line in lines] == [
        [b"20", b"1"],
        [b"21", b"3"],
        [b"22", b"2"],
        [b"22", b"4"],
    ]


def test_partitions_have_folders_of_their_own(tmp_path):
    table = table_named(is_partition=True)
    publish_rows(
        tmp_path,
        settings(),
        (inserts(table, [(20, [(1, "a")])], table_id=201), 10),
        (inserts(table, [(21, [(3, "c")])], table_id=202), 10),
        end=30,
    )
    data = [path for path in files_below(tmp_path) if is_data(path)]
    assert data == ["db/t/10/201/CDC00000000000000000001.csv", "db/t/10/202/CDC00000000000000000001.csv"]


def test_a_frame_that_is_not_complete_yet_waits(tmp_path):
    content = golden("streams/orders.bin").read_bytes()
    (tmp_path / "log.bin").write_bytes(content[:-10])
    first = write_log_to_tree([str(tmp_path / "log.bin")], settings(), str(tmp_path / "tree"))
    (tmp_path / "log.bin").write_bytes(content)
    second = write_log_to_tree([str(tmp_path / "log.bin")], settings(), str(tmp_path / "tree"))
    assert first.checkpoint < second.checkpoint


def test_a_damaged_log_writes_nothing(tmp_path):
    content = golden("streams/orders.bin").read_bytes()
    (tmp_path / "log.bin").write_bytes(content[:5000] + b"\0" * 100 + content[5100:])
    with pytest.raises(TidemarkError):
        write_log_to_tree([str(tmp_path / "log.bin")], settings(), str(tmp_path / "tree"))
    assert files_below(tmp_path / "tree") == {}


def test_a_dispatcher_that_begins_again_does_not_write_twice(tmp_path):
    """A second Handshake with a later epoch: everything after the ts that it begins at is sent again."""
    content = golden("streams/orders.bin").read_bytes()
    events = jsonl("streams/orders.events.jsonl")
    handshake = next(event for event in events if event["kind"] == "handshake")
    mine = [
        event
        for event in events
        if event["dispatcher"] == handshake["dispatcher"]
        and event["kind"] in ("handshake", "batch_dml", "resolved")
    ]
    again = b"".join(content[int(e["offset"]) : int(e["offset"]) + int(e["length"])] for e in mine)
    (tmp_path / "log.bin").write_bytes(content + again)
    write_log_to_tree([str(tmp_path / "log.bin")], settings(), str(tmp_path / "again"))
    write_log_to_tree([log_of("orders")], settings(), str(tmp_path / "once"))
    assert files_below(tmp_path / "again") == files_below(tmp_path / "once")


def test_tables_that_the_filter_leaves_out_are_not_written(tmp_path):
    given = load(
        {"filter": {"rules": ["shop.orders"]}, "sink": {"date-separator": "none"}}, "file:///x?protocol=csv"
    )
    write_log_to_tree([log_of("orders")], given, str(tmp_path))
    tables = {path.split("/")[1] for path in files_below(tmp_path) if path.count("/") > 2}
    assert tables == {"orders"}


def exchange():
    """The event has the partitioned table's name as its extra name, and the exchanged table as its second table."""
    partitioned, plain = table_named(table="parts", table_id=1), table_named(table="plain", table_id=2)
    event = DDLEvent.build(
        {
            "type": 42,
            "schema_name": "db",
            "table_name": "plain",
            "extra_schema_name": "db",
            "extra_table_name": "parts",
            "query": "alter table parts exchange partition p with table plain",
            "finished_ts": 50,
        },
        b"d" * 16,
        partitioned.to_bytes(),
        (partitioned.to_bytes(), plain.to_bytes()),
    )
    return event


def test_exchanging_a_partition_leaves_a_schema_file_for_both_tables():
    files = schema_files_of_ddl(exchange(), StorageLayout(settings()))
    by_table = {path.split("/")[1]: json.loads(content) for path, content in files.items()}
    assert by_table["parts"]["Query"].startswith("alter table")
    assert (by_table["plain"]["Query"], by_table["plain"]["Type"], by_table["plain"]["TableVersion"]) == (
        "",
        0,
        50,
    )


@pytest.mark.parametrize(
    ("rules", "kept"), [(["db.parts"], {"parts"}), (["db.plain"], {"plain"}), (["db.other"], set())]
)
def test_exchanging_a_partition_leaves_schema_files_of_tables_that_are_kept(rules, kept):
    taken = ChangefeedFilter(load({"filter": {"rules": rules}}).changefeed)
    files = schema_files_of_ddl(exchange(), StorageLayout(settings()), None, taken)
    assert {path.split("/")[1] for path in files} == kept


@pytest.mark.parametrize(
    "changefeed",
    [
        {"filter": {"rules": ["evo.*", "!evo.multi_a*"]}},
        {"filter": {"event-filters": [{"matcher": ["evo.multi_a"], "ignore-event": ["rename table"]}]}},
    ],
)
def test_of_a_statement_about_several_tables_only_those_are_written_that_the_changefeed_takes(
    changefeed, tmp_path
):
    """RENAME TABLE multi_a TO multi_a2, multi_b TO multi_b2"""
    given = load({**changefeed, "sink": {"date-separator": "none"}}, "file:///x?protocol=csv")
    write_log_to_tree([log_of("evolve")], given, str(tmp_path))
    renamed = [
        json.loads(content) for path, content in files_below(tmp_path).items() if "meta/schema_" in path
    ]
    renamed = {file["Table"] for file in renamed if file["Query"].startswith("RENAME")}
    assert renamed == {"multi_b2"}


def test_a_statement_without_columns_is_a_warning():
    event = DDLEvent.build(
        {"type": 4, "schema_name": "db", "table_name": "t", "query": "drop table t", "finished_ts": 50},
        b"d" * 16,
    )
    warnings: list[str] = []
    assert schema_files_of_ddl(event, StorageLayout(settings()), warnings) == {}
    assert "the DDL statement at 50" in warnings[0]


def test_what_the_changefeed_ignores_is_not_written(tmp_path):
    rows = jsonl("streams/orders.rows.jsonl")
    ignored = rows[3]["start_ts"]
    changefeed = {
        "filter": {
            "ignore-txn-start-ts": [int(ignored)],
            "event-filters": [{"matcher": ["shop.orders"], "ignore-event": ["delete"]}],
        }
    }
    kept = [
        (row["table"], row["op"], row["commit_ts"])
        for row in rows
        if row["start_ts"] != ignored and (row["table"], row["op"]) != ("orders", "delete")
    ]
    assert len(kept) < sum(row["start_ts"] != ignored for row in rows) < len(rows)
    given = load(changefeed, "file:///x?protocol=canal-json&enable-tidb-extension=true")
    write_log_to_tree([log_of("orders")], given, str(tmp_path))
    assert written_changes(tmp_path) == sorted(kept)


def test_a_statement_of_an_ignored_transaction_leaves_no_schema_file(tmp_path):
    events = [decode(frame) for frame in frames_of(golden("streams/evolve.bin"))]
    event = next(event for event in events if isinstance(event, DDLEvent) and "add column" in event.query)
    given = load({"filter": {"ignore-txn-start-ts": [event.start_ts]}})
    kept, layout = ChangefeedFilter(given.changefeed), StorageLayout(settings())
    assert schema_files_of_ddl(event, layout)
    assert not schema_files_of_ddl(event, layout, None, kept)


def test_soft_deletes_are_written_as_deletes_and_hard_deletes_are_not_written(tmp_path):
    given = load(
        {"filter": {"rules": ["aa.soft"]}}, "file:///x?protocol=canal-json&enable-tidb-extension=true"
    )
    write_log_to_tree([log_of("active_active")], given, str(tmp_path))
    rows = [row for row in jsonl("streams/active_active.rows.jsonl") if row["table"] == "soft"]
    sent = []
    for row in rows:
        times = [(row[image] or {}).get("_tidb_softdelete_time") for image in ("pre", "post")]
        if row["op"] != "delete":
            is_soft_delete = row["op"] == "update" and times[0] is None and times[1] is not None
            sent.append(("soft", "delete" if is_soft_delete else row["op"], row["commit_ts"]))
    assert {op for _, op, _ in sent} == {"insert", "update", "delete"}
    assert written_changes(tmp_path) == sorted(sent)


def written_changes(folder) -> list[tuple[str, str, str]]:
    """Table, op and commit ts of the row changes of a tree."""
    found = []
    for batch in read_tree(str(folder)):
        ops = op_names().take(pa.array(batch.changes.op)).to_pylist()
        found += zip(
            [batch.table.table] * len(ops), ops, map(str, batch.changes.commit_ts.tolist()), strict=True
        )
    return sorted(found)


def frames_of(log):
    with log.open("rb") as file:
        for frame in scan(file):
            file.seek(frame.offset)
            yield file.read(frame.length)


@pytest.mark.parametrize(
    "query", ["protocol=csv", "protocol=canal-json", "protocol=avro&avro-file-format=container"]
)
def test_a_tree_has_the_names_of_the_targets(tmp_path, query):
    trees = {}
    for name, text in {"plain": PLAIN, "routed": ROUTED}.items():
        (tmp_path / f"{name}.toml").write_text(text)
        given = load(str(tmp_path / f"{name}.toml"), f"file:///x?{query}")
        write_log_to_tree([log_of("evolve")], given, str(tmp_path / name))
        trees[name] = files_below(tmp_path / name)
    schemas = {}
    for name, tree in trees.items():
        files = [json.loads(content) for path, content in tree.items() if "/meta/schema_" in path]
        schemas[name] = {(file["Schema"], file["Table"], file["TableVersion"]): file for file in files}
    assert schemas["routed"].keys() == {(*target(*key[:2]), key[2]) for key in schemas["plain"]}
    queries = {file["Query"] for file in schemas["routed"].values()}
    assert "alter table `evo_x`.`p_y` drop partition p0" in queries
    assert "create database `moved`" in queries
    data = {name: {path: tree[path] for path in filter(is_data, tree)} for name, tree in trees.items()}
    assert data["routed"].keys() == {routed_path(path) for path in data["plain"]}
    if "csv" in query:
        for path, content in data["plain"].items():
            pairs = zip(content.splitlines(), data["routed"][routed_path(path)].splitlines(), strict=True)
            for before, after in pairs:
                op, _, _, values = before.decode().split(",", 3)
                schema, table = target(*path.split("/")[:2])
                assert after.decode() == f'{op},"{table}","{schema}",{values}'
    if "canal-json" in query:
        # The reader also verifies the schema files by their hashes.
        rows = {
            name: sorted(
                (batch.table.schema, batch.table.table, len(batch.changes))
                for batch in read_tree(str(tmp_path / name))
            )
            for name in trees
        }
        assert rows["routed"] == sorted((*target(*row[:2]), row[2]) for row in rows["plain"])


def routed_path(path: str) -> str:
    schema, table, *rest = path.split("/")
    return "/".join([*target(schema, table), *rest])
