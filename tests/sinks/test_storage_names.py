"""Tables with awkward or hostile names: one folder each, below the prefix, and the names come back."""

import pytest
from storage_support import files_below, inserts, is_data, settings, table_named

from tidemark.encode.errors import UnsafePath
from tidemark.sinks.storage.doctor import examine
from tidemark.sinks.storage.filesystem import LocalStore
from tidemark.sinks.storage.layout import StorageLayout
from tidemark.sinks.storage.log_driver import stage
from tidemark.sinks.storage.publish import open_tree, publish
from tidemark.sinks.storage.reader import read_tree
from tidemark.sinks.storage.span import Span

NAMES = [
    "../x",
    "..",
    ".",
    "...",
    "/",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "nul\0byte",
    "line\nbreak",
    "tab\t",
    "%2e%2e",
    "100%",
    " leading and trailing ",
    "日本語",
    "e\u0301",
    "😀",
    "meta",
    "metadata",
    "MetaData",
    ".tidemark-staging",
    "CDC000001.csv",
    "schema_1_0000000000.json",
    "12345",
    "2024-05-09",
    "con",
    "a:b*c?d",
    "x" * 64,
    "語" * 64,
]


def write(folder, given, *tables):
    store, layout, span = LocalStore(str(folder)), StorageLayout(given), Span(0, 30)
    with open_tree(store) as tree:
        staged = stage(
            store, span, layout, given, [(inserts(table, [(20, [(1, "x")])]), 10) for table in tables]
        )
        return publish(store, tree.lease, layout, span, staged, {})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("position", ["table", "schema"])
def test_a_name_is_one_folder_below_the_prefix_and_comes_back(name, position, tmp_path):
    prefix = tmp_path / "outer" / "prefix"
    table = table_named(**{position: name})
    write(prefix, settings(), table)
    assert all((tmp_path / path).is_relative_to(prefix) for path in files_below(tmp_path))
    (data,) = (path for path in files_below(prefix) if is_data(path))
    assert data.count("/") == 3
    (batch,) = read_tree(str(prefix), settings())
    assert (batch.table.schema, batch.table.table) == (table.schema, table.table)
    assert examine(str(prefix), settings()).is_clean


def test_all_at_once_and_none_in_anothers_place(tmp_path):
    tables = [table_named(table=name) for name in NAMES] + [table_named(schema=name) for name in NAMES]
    published = write(tmp_path, settings(), *tables)
    assert len(set(published.files)) == len(tables)
    found = {(batch.table.schema, batch.table.table) for batch in read_tree(str(tmp_path), settings())}
    assert found == {(table.schema, table.table) for table in tables}
    assert examine(str(tmp_path), settings()).is_clean


@pytest.mark.parametrize("name", ["../x", "..", ".", "/x", "a//b", "x\0y", ""])
def test_ticdc_names_that_would_leave_their_place_are_refused(name, tmp_path):
    with pytest.raises(UnsafePath):
        write(tmp_path / "tree", settings(compat="ticdc"), table_named(table=name))
    assert not [path for path in files_below(tmp_path) if not path.startswith("tree/.tidemark-staging")]


@pytest.mark.parametrize("name", ["metadata", ".tidemark-staging"])
def test_ticdc_schemas_called_like_a_part_of_the_tree_are_refused(name, tmp_path):
    with pytest.raises(UnsafePath, match="a part of the tree itself"):
        write(tmp_path, settings(compat="ticdc"), table_named(schema=name))


def test_ticdc_names_are_written_as_they_are(tmp_path):
    write(tmp_path, settings(compat="ticdc"), table_named(table="100%"), table_named(table="日本語"))
    folders = {path.split("/")[1] for path in files_below(tmp_path) if is_data(path)}
    assert folders == {"100%", "日本語"}


def test_a_name_that_no_file_system_takes_is_refused_unless_ids_are_folders(tmp_path):
    table = table_named(table="語" * 100)
    with pytest.raises(UnsafePath, match="table-id paths"):
        write(tmp_path, settings(), table)
    write(tmp_path / "ids", settings(query="&use-table-id-as-path=true"), table)
    (batch,) = read_tree(str(tmp_path / "ids"), settings())
    assert batch.table.table == "語" * 100
    assert batch.table.table_id == 100


def test_a_refused_name_moves_no_checkpoint(tmp_path):
    with pytest.raises(UnsafePath):
        write(tmp_path, settings(compat="ticdc"), table_named(), table_named(table=".."))
    assert "metadata" not in files_below(tmp_path)
