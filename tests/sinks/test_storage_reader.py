"""Trees read back: TiCDC's own, and ours, give the row changes that were written."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, strategies
from hypothesis import settings as hypothesis_settings
from storage_support import (
    TREES,
    TS,
    golden_tree,
    inserts,
    log_of,
    row_forms,
    settings,
    table_named,
    unpack,
)

from support import jsonl
from tidemark.sinks.storage.csv_text import CsvDialect, _split, read_columns
from tidemark.sinks.storage.doctor import examine
from tidemark.sinks.storage.errors import InvalidTree, StorageError
from tidemark.sinks.storage.filesystem import LocalStore
from tidemark.sinks.storage.layout import StorageLayout
from tidemark.sinks.storage.log_driver import stage, write_log_to_tree
from tidemark.sinks.storage.publish import open_tree, publish
from tidemark.sinks.storage.reader import read_tree
from tidemark.sinks.storage.span import Span
from tidemark.sinks.storage.tree_log import write_tree_log
from tidemark.spark.storage_tree import StorageReader
from tidemark.wire.rows import UPDATE
from tidemark.wire.table_info import TableInfo


def rows_of(prefix, given=None, **more) -> list[dict]:
    return [row for batch in read_tree(str(prefix), given, **more) for row in row_forms(batch)]


def expected(
    scenario: str, *, with_ts: bool = True, old_values: bool = True, unencodable: bool = True
) -> list[dict]:
    """rows.jsonl, as far as a protocol holds it."""
    rows = []
    for row in jsonl(f"streams/{scenario}.rows.jsonl"):
        form = {key: row[key] for key in ("schema", "table", "op", "commit_ts", "pre", "post")}
        if not old_values and form["op"] == "update":
            form["pre"] = None
        if not with_ts:
            form["commit_ts"] = "0"
        if unencodable or not _has_enum_zero(form):
            rows.append(form)
    return rows


def _has_enum_zero(form: dict) -> bool:
    return any(
        isinstance(value, dict) and value.get("enum") == "0"
        for image in (form["pre"], form["post"])
        for value in (image or {}).values()
    )


def sorted_rows(rows: list[dict]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@pytest.mark.parametrize(("scenario", "config"), TREES)
def test_trees_of_ticdc_give_the_row_changes(scenario, config, tmp_path):
    unpack(golden_tree(scenario, config), tmp_path)
    is_json = config.startswith("json")
    with_ts = is_json or config not in ("csv_month", "csv_split_colid")
    want = expected(scenario, with_ts=with_ts, old_values=is_json, unencodable=is_json)
    assert sorted_rows(rows_of(tmp_path)) == sorted_rows(want)


@pytest.mark.parametrize("scenario", ["orders", "alltypes", "alltypes_shanghai", "evolve", "active_active"])
@pytest.mark.parametrize("compat", ["design", "ticdc"])
def test_canal_json_gives_back_both_images(scenario, compat, tmp_path):
    given = settings("canal-json", "&enable-tidb-extension=true", compat=compat)
    write_log_to_tree([log_of(scenario)], given, str(tmp_path), table_flags=False)
    assert sorted_rows(rows_of(tmp_path)) == sorted_rows(expected(scenario))


@pytest.mark.parametrize(
    "csv",
    [
        {},
        {"output-field-header": True},
        {"include-commit-ts": False},
        {"binary-encoding-method": "hex"},
        {"delimiter": "||", "quote": "'"},
        {"quote": ""},
        {"delimiter": "\t", "null": "NULL"},
    ],
)
@pytest.mark.parametrize("scenario", ["orders", "alltypes", "evolve"])
def test_csv_gives_back_what_it_holds(scenario, csv, tmp_path):
    """In these files, datetimes have six digits of fraction and their columns may have fewer."""
    given = settings(csv=csv)
    write_log_to_tree([log_of(scenario)], given, str(tmp_path), on_error=lambda batch, error: None)
    want = expected(scenario, with_ts=csv.get("include-commit-ts", True), old_values=False, unencodable=False)
    assert sorted_rows(rows_of(tmp_path, given)) == sorted_rows(want)


@pytest.mark.parametrize(
    "csv", [{}, {"quote": ""}, {"include-commit-ts": False}, {"output-field-header": True}]
)
@pytest.mark.parametrize("terminator", ["\r\n", "\n", ";\n"])
def test_csv_with_old_values_gives_back_both_images(csv, terminator, tmp_path):
    given = settings(csv={"output-old-value": True, **csv}, terminator=terminator)
    write_log_to_tree([log_of("orders")], given, str(tmp_path))
    want = expected("orders", with_ts=csv.get("include-commit-ts", True))
    assert sorted_rows(rows_of(tmp_path, given)) == sorted_rows(want)


def test_rows_of_a_table_come_in_commit_order(tmp_path):
    given = settings("canal-json", "&enable-tidb-extension=true&file-size=1024")
    write_log_to_tree([log_of("orders")], given, str(tmp_path))
    last: dict[str, int] = {}
    for batch in read_tree(str(tmp_path)):
        ts = batch.changes.commit_ts.astype(np.int64)
        assert (np.diff(ts) >= 0).all()
        assert ts[0] >= last.get(batch.table.table, 0)
        last[batch.table.table] = int(ts[-1])
    assert len(last) == 8


def test_columns_have_the_types_of_the_contract(tmp_path):
    write_log_to_tree([log_of("alltypes")], settings("canal-json"), str(tmp_path))
    for batch in read_tree(str(tmp_path)):
        assert batch.columns.schema == batch.table.arrow_schema


def test_only_updated_columns_are_completed(tmp_path):
    query = "&enable-tidb-extension=true&only-output-updated-columns=true"
    write_log_to_tree([log_of("alltypes")], settings("canal-json", query), str(tmp_path))
    want, got = expected("alltypes"), rows_of(tmp_path)
    assert sum(row["op"] == "update" for row in got) == 10
    assert sorted_rows(got) == sorted_rows(want)


def write_rows(folder, given, *batches, end=TS + 1000):
    store, layout = LocalStore(str(folder)), StorageLayout(given)
    with open_tree(store) as tree:
        span = Span(tree.checkpoint, end)
        publish(
            store,
            tree.lease,
            layout,
            span,
            stage(store, span, layout, given, [(batch, TS) for batch in batches]),
            {},
        )


def test_an_update_to_null_is_told_from_a_column_left_out(tmp_path):
    """Old value NULL is given as null, a column that did not change is not given at all."""
    given = settings("canal-json", "&enable-tidb-extension=true&only-output-updated-columns=true")
    batch = inserts(table_named(), [(TS + 1, [(1, None), (1, "new")])])
    changes = batch.changes
    update = type(changes)(
        **{
            **{name: getattr(changes, name)[:1] for name in changes.__dataclass_fields__},
            "op": np.array([UPDATE], np.uint8),
            "pre": np.array([0]),
            "post": np.array([1]),
        }
    )
    write_rows(tmp_path, given, type(batch)(batch.table, batch.columns, update, batch.dispatcher_id))
    (row,) = rows_of(tmp_path)
    assert row["pre"] == {"id": "1", "v": None}
    assert row["post"] == {"id": "1", "v": "new"}


def test_rows_after_the_checkpoint_are_left_out(tmp_path):
    write_rows(tmp_path, settings(), inserts(table_named(), [(TS + 1, [(1, "a")]), (TS + 5, [(2, "b")])]))
    (tmp_path / "metadata").write_text(f'{{"checkpoint-ts":{TS + 1}}}')
    assert [row["post"]["id"] for row in rows_of(tmp_path)] == ["1"]
    assert [row["post"]["id"] for row in rows_of(tmp_path, up_to_checkpoint=False)] == ["1", "2"]


def test_files_that_the_index_does_not_name_are_left_out(tmp_path):
    given, warnings = settings(), []
    write_rows(tmp_path, given, inserts(table_named(), [(TS + 1, [(1, "a")])]), end=TS + 1)
    write_rows(tmp_path, given, inserts(table_named(), [(TS + 5, [(2, "b")])]))
    index = tmp_path / f"db/t/{TS}/meta/CDC.index"
    index.write_text("CDC00000000000000000001.csv\n")
    assert len(rows_of(tmp_path, warn=warnings.append)) == 1
    assert "is not in the index yet" in warnings[0]
    index.unlink()
    assert len(rows_of(tmp_path, warn=warnings.append)) == 2
    assert "no index" in warnings[1]


def folder_of_files(tmp_path, count=4):
    for number in range(1, count + 1):
        batch = inserts(table_named(), [(TS + number, [(number, "a")])])
        write_rows(tmp_path, settings(file_index_digit=6), batch, end=TS + number)
    return tmp_path / f"db/t/{TS}"


def readers(folder, tmp_path):
    """All ways to read a tree."""
    return {
        "reader": lambda: rows_of(folder),
        "log": lambda: write_tree_log(LocalStore(str(folder)), None, tmp_path / "log"),
        "data source": lambda: StorageReader({"tree": str(folder)}).partitions(),
    }


@pytest.mark.parametrize("way", ["reader", "log", "data source"])
@pytest.mark.parametrize(
    ("gone", "message"), [((2, 3), "missing, number 2 to 3; put them back"), ((4,), "names CDC000004.csv")]
)
def test_a_missing_file_is_a_clear_error(tmp_path, way, gone, message):
    folder = folder_of_files(tmp_path / "tree")
    for number in gone:
        (folder / f"CDC{number:06d}.csv").unlink()
    with pytest.raises(InvalidTree, match=message) as raised:
        readers(tmp_path / "tree", tmp_path)[way]()
    assert str(folder) in str(raised.value)
    assert not list(tmp_path.glob("log/*.bin"))


@pytest.mark.parametrize(("gone", "said"), [((2, 3), "number 2 to 3"), ((4,), "names CDC000004.csv")])
def test_files_that_were_removed_on_purpose_are_warned_of(tmp_path, gone, said):
    folder = folder_of_files(tmp_path)
    for number in gone:
        (folder / f"CDC{number:06d}.csv").unlink()
    warnings = []
    accepting = settings(query="&missing-files=accept")
    batches = list(read_tree(str(tmp_path), accepting, warn=warnings.append))
    assert len(batches) == 4 - len(gone)
    (warning,) = warnings
    assert said in warning


def test_without_an_index_a_hole_is_an_error_too(tmp_path):
    folder = folder_of_files(tmp_path)
    (folder / "meta/CDC.index").unlink()
    (folder / "CDC000003.csv").unlink()
    with pytest.raises(InvalidTree, match="missing, number 3"):
        rows_of(tmp_path)


def test_an_index_without_any_file_is_an_error(tmp_path):
    folder = folder_of_files(tmp_path, 1)
    (folder / "CDC000001.csv").unlink()
    with pytest.raises(InvalidTree, match="the last file is number 0"):
        rows_of(tmp_path)


def test_files_that_expired_at_the_front_are_not_missed(tmp_path):
    folder, warnings = folder_of_files(tmp_path), []
    (folder / "CDC000001.csv").unlink()
    assert len(rows_of(tmp_path, warn=warnings.append)) == 3
    assert "begins with number 2" in warnings[0]


def test_files_after_the_index_come_in_any_order(tmp_path):
    """A writer places them at the same time."""
    folder, warnings = folder_of_files(tmp_path), []
    (folder / "meta/CDC.index").write_text("CDC000002.csv\n")
    (folder / "CDC000003.csv").unlink()
    assert len(rows_of(tmp_path, warn=warnings.append)) == 2
    assert "CDC000004.csv is not in the index yet" in warnings[0]


def test_files_that_appear_after_the_listing_are_not_missed(tmp_path):
    folder = folder_of_files(tmp_path, 2)
    store = LocalStore(str(tmp_path))
    whole = store.walk
    store.walk = lambda below="": [entry for entry in whole(below) if entry.name != "CDC000002.csv"]
    assert sum(len(batch.changes) for batch in read_tree(store)) == 2
    (folder / "CDC000002.csv").unlink()
    with pytest.raises(InvalidTree):
        list(read_tree(store))


def test_huge_numbers_cost_nothing(tmp_path):
    folder = folder_of_files(tmp_path, 1)
    (folder / f"CDC{10**19}.csv").write_bytes(b"")
    (folder / "meta/CDC.index").write_text(f"CDC{10**19}.csv\n")
    with pytest.raises(InvalidTree, match=f"number 2 to {10**19 - 1}"):
        rows_of(tmp_path)
    assert "gap-in-numbers" in {finding.code for finding in examine(str(tmp_path)).findings}


def test_a_partition_folder_is_the_physical_table_id(tmp_path):
    table = table_named(is_partition=True)
    given = settings(date_separator="day")
    write_rows(tmp_path, given, inserts(table, [(TS + 1, [(1, "a")])], table_id=77))
    (batch,) = read_tree(str(tmp_path))
    assert batch.changes.physical_table_id.tolist() == [77]


@pytest.mark.parametrize("partitions", [(2023, 2024), (2025, 3000), (77,)])
@pytest.mark.parametrize("is_told", [True, False])
def test_a_partition_that_looks_like_a_year_is_a_partition(tmp_path, partitions, is_told):
    table, given = table_named(is_partition=True), settings(date_separator="none")
    write_rows(
        tmp_path,
        given,
        *(inserts(table, [(TS + 1, [(number, "a")])], table_id=number) for number in partitions),
    )
    batches = list(read_tree(str(tmp_path), given if is_told else None))
    assert [batch.changes.physical_table_id.tolist() for batch in batches] == [[n] for n in partitions]


@pytest.mark.parametrize("separator", ["year", "month", "day"])
@pytest.mark.parametrize("told", ["year", "day", None])
def test_a_date_is_no_partition(tmp_path, separator, told):
    write_rows(tmp_path, settings(date_separator=separator), inserts(table_named(), [(TS + 1, [(1, "a")])]))
    (batch,) = read_tree(str(tmp_path), settings(date_separator=told) if told else None)
    assert batch.changes.physical_table_id.tolist() == [0]


def test_a_partition_is_no_date_where_only_the_sink_uri_is_known(tmp_path):
    write_rows(
        tmp_path, settings(), inserts(table_named(is_partition=True), [(TS + 1, [(1, "a")])], table_id=112)
    )
    (batch,) = read_tree(str(tmp_path), settings(date_separator="day"))
    assert batch.changes.physical_table_id.tolist() == [112]


def test_a_first_row_of_any_size_is_read(tmp_path):
    large = "x" * 200_000
    write_rows(tmp_path, settings(), inserts(table_named(), [(TS + 1, [(1, large), (2, "b")])]))
    assert [row["post"]["v"] for row in rows_of(tmp_path)] == [large, "b"]


@pytest.mark.parametrize("terminator", ["$$", "\r", "\n"])
def test_canal_json_with_another_end_of_line_is_read(tmp_path, terminator):
    given = settings(
        "canal-json", "&enable-tidb-extension=true&only-output-updated-columns=true", terminator=terminator
    )
    write_log_to_tree([log_of("alltypes")], given, str(tmp_path / "types"))
    assert sorted_rows(rows_of(tmp_path / "types", given)) == sorted_rows(expected("alltypes"))
    texts = ['}$${"', "$$", 'a}\r{"b']
    write_rows(tmp_path / "t", given, inserts(table_named(), [(TS + 1, list(enumerate(texts)))]))
    assert [row["post"]["v"] for row in rows_of(tmp_path / "t", given)] == texts
    (path,) = (tmp_path / "t").glob("db/t/*/CDC*.json")
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(InvalidTree):
        rows_of(tmp_path / "t", given)


def test_a_column_name_with_the_delimiter_in_it_is_read(tmp_path):
    table = table_named()
    columns = [replace(column, name=name) for column, name in zip(table.columns, ("a,b", "c"), strict=True)]
    table = TableInfo.build("db", "t", 100, 1, columns=columns)
    given = settings(csv={"output-field-header": True})
    write_rows(tmp_path, given, inserts(table, [(TS + 1, [(1, "x")])]))
    (row,) = rows_of(tmp_path, given)
    assert row["post"] == {"a,b": "1", "c": "x"}


def damage(tmp_path, given, old: bytes, new: bytes):
    write_rows(tmp_path, given, inserts(table_named(), [(TS + 1, [(1, "a"), (2, "b")])]))
    (path,) = tmp_path.glob("db/t/*/CDC*.*")
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new))


CSV, CANAL = settings(), settings("canal-json", "&enable-tidb-extension=true")


@pytest.mark.parametrize(
    ("given", "old", "new", "message"),
    [
        (CSV, b'"b"\r\n', b'"b', "torn"),
        (CSV, b'"I"', b'"Q"', "not with I, U or D"),
        (CSV, b',2,"b"', b',x,"b"', "column 'id'"),
        (CSV, b',2,"b"', b',2,"b",3', "fit together|fields"),
        (CSV, b',"db"', b"", "where the fields of db.t have 'db'"),
        (CANAL, b'"table":"t"', b'"table":"other"', "has 'other' where the fields of db.t have 't'"),
        (CANAL, b'"database":"db"', b'"database":"DB"', "has 'DB' where the fields of db.t have 'db'"),
        (CANAL, b'"id":"1"', b'"number":"1"', "no value of 'id'"),
        (CANAL, b'"commitTs":', b'"commitTs":-', "the commit ts -"),
    ],
)
def test_a_damaged_file_is_a_clear_error(tmp_path, given, old, new, message):
    damage(tmp_path, given, old, new)
    with pytest.raises(InvalidTree, match=message) as raised:
        rows_of(tmp_path, given)
    assert f"CDC{1:020d}." in str(raised.value)


@pytest.mark.parametrize("line", [b"{", b'{"type":"INSERT"}', b'{"type":"CREATE","data":null}', b"[]"])
def test_a_damaged_json_file_is_a_clear_error(tmp_path, line):
    write_rows(tmp_path, settings("canal-json"), inserts(table_named(), [(TS + 1, [(1, "a")])]))
    (path,) = tmp_path.glob("db/t/*/CDC*.json")
    path.write_bytes(line + b"\r\n")
    with pytest.raises(InvalidTree, match=r"CDC0+1\.json"):
        rows_of(tmp_path)


@pytest.mark.parametrize("checkpoint", ["-1", "18446744073709551616", "1e3"])
def test_a_checkpoint_that_is_no_ts_is_a_clear_error(tmp_path, checkpoint):
    write_rows(tmp_path, settings(), inserts(table_named(), [(TS + 1, [(1, "a")])]))
    (tmp_path / "metadata").write_text(f'{{"checkpoint-ts":{checkpoint}}}')
    with pytest.raises(StorageError, match="metadata should be"):
        rows_of(tmp_path)


def test_data_without_a_schema_file_is_a_clear_error(tmp_path):
    damage(tmp_path, CSV, b"", b"")
    (schema,) = tmp_path.glob("db/t/meta/schema_*.json")
    schema.unlink()
    with pytest.raises(InvalidTree, match="no schema file of that version"):
        rows_of(tmp_path)


def test_a_schema_file_that_is_not_what_its_name_says_is_refused(tmp_path):
    damage(tmp_path, CSV, b"", b"")
    (schema,) = tmp_path.glob("db/t/meta/schema_*.json")
    schema.write_bytes(schema.read_bytes().replace(b'"VARCHAR"', b'"CHAR"'))
    with pytest.raises(ValueError, match="the name says version"):
        rows_of(tmp_path)


def test_virtual_columns_of_a_tree_that_does_not_tell_them_are_refused(tmp_path):
    """TiCDC's schema files do not say which columns are virtual, and its CSV lines leave them out."""
    write_log_to_tree(
        [log_of("alltypes")], settings(compat="ticdc"), str(tmp_path), on_error=lambda batch, error: None
    )
    with pytest.raises(InvalidTree, match=r"typ\.gens.*virtual"):
        rows_of(tmp_path)


# The two ways to split lines agree with each other, and with the encoder.

AWKWARD = strategies.text(strategies.sampled_from("ab,\"'\\\r\n|;\0é€N "), max_size=8)


@given(strategies.lists(strategies.one_of(strategies.none(), AWKWARD), min_size=1, max_size=6))
@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.parametrize(
    "form",
    [
        {},
        {"quote": "'"},
        {"quote": ""},
        {"delimiter": "||"},
        {"delimiter": "ab,", "quote": "'"},
        {"terminator": ";\n"},
        {"quote": "", "terminator": ";;"},
    ],
)
def test_text_survives_every_csv_form(form, texts):
    from tidemark.encode.protocol import encoder_for

    terminator = form.get("terminator", "\r\n")
    if form.get("quote") == "" and any(text and set(text) & {";"} for text in texts):
        # Without a quote nothing protects a terminator that is no line break.
        return
    given_settings = settings(
        csv={key: value for key, value in form.items() if key != "terminator"}, terminator=terminator
    )
    batch = inserts(table_named(), [(TS + 1, [(number, text) for number, text in enumerate(texts)])])
    data = encoder_for(given_settings).encode_file(batch).data.to_pybytes()
    dialect = CsvDialect.of(given_settings)
    assert _texts(read_columns(data, dialect)[-1]) == texts
    assert _texts(_split(data, dialect)[-1]) == texts


def _texts(array: pa.Array) -> list:
    return [None if value is None else value.decode() for value in array.to_pylist()]
