"""A tree becomes an event log, and the log becomes the same tree."""

import io

import pytest
from storage_support import files_below, golden_settings, golden_tree, is_data, log_of, unpack

from tidemark.config import load
from tidemark.sinks.storage.errors import InvalidTree
from tidemark.sinks.storage.filesystem import LocalStore
from tidemark.sinks.storage.log_driver import write_log_to_tree
from tidemark.sinks.storage.tree_log import write_tree_log
from tidemark.wire.framing import scan
from tidemark.wire.registry import decode

CSV = {"sink": {"csv": {"include-commit-ts": True, "output-old-value": True}}}
FORMS = {
    "csv": ("protocol=csv", CSV),
    "csv without old rows": ("protocol=csv", {"sink": {"csv": {"include-commit-ts": True}}}),
    "canal-json": ("protocol=canal-json&enable-tidb-extension=true", {"sink": {"date-separator": "none"}}),
    "table ids": ("protocol=csv&use-table-id-as-path=true", CSV),
    "small files": ("protocol=csv&file-size=1024", CSV),
}


def settings_of(form):
    query, changefeed = FORMS[form]
    return load(changefeed, f"file:///x?{query}")


@pytest.mark.parametrize("scenario", ["orders", "evolve"])
@pytest.mark.parametrize("form", FORMS)
def test_tree_to_log_to_tree_gives_the_same_files(tmp_path, scenario, form):
    settings = settings_of(form)
    write_log_to_tree([log_of(scenario)], settings, str(tmp_path / "tree"))
    done = write_tree_log(LocalStore(str(tmp_path / "tree")), settings, tmp_path / "log")
    write_log_to_tree([str(tmp_path / "log")], settings, str(tmp_path / "again"))
    tree, again = files_below(tmp_path / "tree"), files_below(tmp_path / "again")
    assert {path: again.get(path) for path in tree if is_data(path)} == {
        path: content for path, content in tree.items() if is_data(path)
    }
    assert again == tree
    assert done.rows > 0
    assert bool(done.warnings) == (form == "csv without old rows")


def test_another_protocol_is_what_the_original_log_gives(tmp_path):
    """canal-json has both rows of every update, so CSV made from it is CSV made from the log."""
    write_log_to_tree([log_of("orders")], settings_of("canal-json"), str(tmp_path / "json"))
    write_tree_log(LocalStore(str(tmp_path / "json")), None, tmp_path / "log")
    write_log_to_tree([str(tmp_path / "log")], settings_of("csv"), str(tmp_path / "csv"))
    write_log_to_tree([log_of("orders")], settings_of("csv"), str(tmp_path / "expected"))
    assert files_below(tmp_path / "csv") == files_below(tmp_path / "expected")


def test_a_tree_that_grows_gives_one_more_file_and_no_row_twice(tmp_path):
    settings, store = settings_of("csv"), LocalStore(str(tmp_path / "tree"))
    with open(log_of("orders"), "rb") as file:
        log = file.read()
    part = tmp_path / "part.bin"
    rows = 0
    for share in (0.95, 0.99, 1.0):
        part.write_bytes(log[: int(len(log) * share)])
        write_log_to_tree([str(part)], settings, str(tmp_path / "tree"))
        rows += write_tree_log(store, settings, tmp_path / "log").rows
        assert write_tree_log(store, settings, tmp_path / "log").file is None
    assert len(list((tmp_path / "log").glob("*.bin"))) == 3
    assert write_tree_log(store, settings, tmp_path / "once").rows == rows
    write_log_to_tree([str(tmp_path / "log")], settings, str(tmp_path / "again"))
    again, tree = files_below(tmp_path / "again"), files_below(tmp_path / "tree")
    folders = {path.rpartition("/")[0] for path in tree if is_data(path)}
    for folder in folders:
        assert content_of(again, folder) == content_of(tree, folder)


def content_of(tree, folder):
    return b"".join(
        tree[path] for path in sorted(tree) if is_data(path) and path.rpartition("/")[0] == folder
    )


def test_a_log_is_of_one_tree(tmp_path):
    for scenario in ("orders", "evolve"):
        write_log_to_tree([log_of(scenario)], settings_of("csv"), str(tmp_path / scenario))
    first, other = (LocalStore(str(tmp_path / scenario)) for scenario in ("orders", "evolve"))
    write_tree_log(first, settings_of("csv"), tmp_path / "log")
    with pytest.raises(InvalidTree, match=r"holds the log of the tree .*orders.*give another folder"):
        write_tree_log(other, settings_of("csv"), tmp_path / "log")


def test_partitions_that_share_a_folder_come_in_the_order_of_their_commits(tmp_path):
    tree = unpack(golden_tree("evolve", "csv_day_nopart"), tmp_path / "tree")
    done = write_tree_log(
        LocalStore(str(tree)), golden_settings("evolve", "csv_day_nopart"), tmp_path / "log"
    )
    transactions = [one for event in events_of(done.file) for one in getattr(event, "transactions", ())]
    assert sum(one.row_count for one in transactions) == done.rows > 0
    for epoch in {(one.dispatcher_id, one.epoch) for one in transactions}:
        times = [one.commit_ts for one in transactions if (one.dispatcher_id, one.epoch) == epoch]
        assert times == sorted(times)


def events_of(path):
    data = path.read_bytes()
    return [decode(data[frame.offset : frame.offset + frame.length]) for frame in scan(io.BytesIO(data))]


def test_a_tree_without_commit_ts_or_metadata_is_refused(tmp_path):
    write_log_to_tree([log_of("orders")], load(None, "file:///x?protocol=csv"), str(tmp_path / "tree"))
    store = LocalStore(str(tmp_path / "tree"))
    with pytest.raises(InvalidTree, match=r"shop\.\w+ have no commit ts.*include-commit-ts"):
        write_tree_log(store, None, tmp_path / "log")
    assert list((tmp_path / "log").glob("*.bin")) == []
    (tmp_path / "tree" / "metadata").unlink()
    with pytest.raises(InvalidTree, match="no `metadata`"):
        write_tree_log(store, None, tmp_path / "log")
