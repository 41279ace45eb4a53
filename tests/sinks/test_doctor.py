"""tidemark doctor: TiCDC's trees are clean, and every kind of damage is found and named."""

import json
import time
from dataclasses import replace

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from storage_support import TREES, TS, golden_tree, inserts, is_data, log_of, settings, table_named, unpack

from tidemark.cli import main
from tidemark.encode.paths import RECORD
from tidemark.sinks.storage.doctor import NOTE, examine
from tidemark.sinks.storage.filesystem import LocalStore
from tidemark.sinks.storage.layout import StorageLayout
from tidemark.sinks.storage.lease import Lease
from tidemark.sinks.storage.log_driver import stage, write_log_to_tree
from tidemark.sinks.storage.publish import open_tree, publish
from tidemark.sinks.storage.span import Span
from tidemark.wire.table_info import TableInfo

GIVEN = settings(file_index_digit=6)
FOLDER = f"db/t/{TS}"


def run(folder, *transactions, end, table=None):
    store, layout = LocalStore(str(folder)), StorageLayout(GIVEN)
    with open_tree(store) as tree:
        span = Span(tree.checkpoint, end)
        batch = inserts(table or table_named(), list(transactions))
        publish(store, tree.lease, layout, span, stage(store, span, layout, GIVEN, [(batch, TS)]), {})


@pytest.fixture
def tree(tmp_path):
    """Three files: (TS+1, TS+2), (TS+11), (TS+21), and a checkpoint at TS+30."""
    run(tmp_path, (TS + 1, [(1, "a")]), (TS + 2, [(2, "b")]), end=TS + 10)
    run(tmp_path, (TS + 11, [(1, "c")]), end=TS + 20)
    run(tmp_path, (TS + 21, [(3, "d")]), end=TS + 30)
    return tmp_path


def codes(folder, **more) -> list[str]:
    return [finding.code for finding in examine(str(folder), **more).findings]


def data(tree, number):
    return tree / FOLDER / f"CDC{number:06d}.csv"


@pytest.mark.parametrize(("scenario", "config"), TREES)
def test_trees_of_ticdc_are_clean(scenario, config, tmp_path):
    unpack(golden_tree(scenario, config), tmp_path)
    report = examine(str(tmp_path))
    assert [finding for finding in report.findings if finding.level != NOTE] == []
    assert report.rows > 40
    assert report.files == len(list(filter(is_data, golden_tree(scenario, config))))


@pytest.mark.parametrize("protocol", ["csv", "canal-json"])
def test_our_trees_are_clean(protocol, tmp_path):
    given = settings(protocol, "&enable-tidb-extension=true" if protocol == "canal-json" else "")
    write_log_to_tree([log_of("evolve")], given, str(tmp_path))
    assert codes(tmp_path) == []


def test_a_sound_tree_is_clean(tree):
    report = examine(str(tree))
    assert report.findings == []
    assert (report.tables, report.files, report.rows, report.checkpoint) == (1, 3, 4, TS + 30)


def test_gap_in_numbers(tree):
    data(tree, 2).unlink()
    assert codes(tree) == ["gap-in-numbers"]


def test_first_file_missing(tree):
    data(tree, 1).unlink()
    (finding,) = examine(str(tree)).findings
    assert (finding.code, finding.level, finding.text) == ("first-file-missing", "error", "missing: 1")
    data(tree, 2).unlink()
    assert [finding.text for finding in examine(str(tree)).findings] == ["missing: 1 to 2"]


@pytest.mark.parametrize("numbers", [[1], [2], [3], [1, 2, 3]])
def test_files_that_were_removed_on_purpose_are_noted(tree, numbers):
    for number in numbers:
        data(tree, number).unlink()
    accepting = settings(query="&missing-files=accept", file_index_digit=6)
    assert not examine(str(tree)).is_clean
    report = examine(str(tree), accepting)
    assert report.is_clean
    assert [finding.level for finding in report.findings] == [NOTE]


def test_index_missing(tree):
    (tree / FOLDER / "meta/CDC.index").unlink()
    assert codes(tree) == ["index-missing"]


def test_index_stale(tree):
    (tree / FOLDER / "meta/CDC.index").write_text("CDC000002.csv\n")
    assert codes(tree) == ["index-stale"]


def test_index_unreadable(tree):
    (tree / FOLDER / "meta/CDC.index").write_text("what?\n")
    assert codes(tree) == ["index-unreadable"]


def test_checkpoint_beyond_data(tree):
    data(tree, 3).unlink()
    assert codes(tree) == ["checkpoint-beyond-data"]


def test_checkpoint_in_the_future(tree):
    (tree / "metadata").write_text(f'{{"checkpoint-ts":{int((time.time() + 10**7) * 1000) << 18}}}')
    assert codes(tree) == ["checkpoint-in-future"]


def test_metadata_missing(tree):
    (tree / "metadata").unlink()
    (finding,) = examine(str(tree)).findings
    assert (finding.code, finding.level) == ("metadata-missing", "error")
    (tree / RECORD).unlink()
    (finding,) = examine(str(tree)).findings
    assert (finding.code, finding.level) == ("metadata-missing", "warning")


def test_metadata_that_went_back(tree):
    (tree / "metadata").write_text(f'{{"checkpoint-ts":{TS + 20}}}')
    report = examine(str(tree))
    assert [(finding.code, finding.level) for finding in report.findings] == [
        ("checkpoint-went-back", "error"),
        ("rows-after-checkpoint", "note"),
    ]
    assert f"says {TS + 20}, but Tidemark has published up to {TS + 30}" in report.findings[0].text


def test_a_run_between_record_and_metadata_has_not_gone_back(tree):
    (tree / RECORD).write_text(f'{{"format": 1, "checkpoint": {TS + 40}, "announced": []}}')
    (tree / ".tidemark-staging/30-40").mkdir(parents=True)
    (tree / ".tidemark-staging/30-40/journal.json").write_bytes(b"{}")
    assert codes(tree) == ["publication-interrupted"]


def test_record_unreadable(tree):
    (tree / RECORD).write_text("[]")
    assert codes(tree) == ["record-unreadable"]


def test_metadata_unreadable(tree):
    (tree / "metadata").write_text("{}")
    assert codes(tree) == ["metadata-unreadable"]


def test_schema_mismatch(tree):
    (schema,) = (tree / "db/t/meta").iterdir()
    schema.write_bytes(schema.read_bytes().replace(b'"id"', b'"ib"'))
    assert "schema-mismatch" in codes(tree)


def test_schema_missing(tree):
    (schema,) = (tree / "db/t/meta").iterdir()
    schema.unlink()
    assert codes(tree) == ["schema-missing"]


def test_schema_of_another_version_is_missing_too(tree):
    (schema,) = (tree / "db/t/meta").iterdir()
    content = schema.read_bytes().replace(str(TS).encode(), str(TS + 1).encode())
    schema.rename(schema.with_name(schema.name.replace(str(TS), str(TS + 1)))).write_bytes(content)
    assert codes(tree)[0] == "schema-missing"


def test_a_torn_file(tree):
    data(tree, 2).write_bytes(data(tree, 2).read_bytes()[:-4])
    assert codes(tree) == ["file-unreadable"]


def test_commit_ts_decreases(tree):
    lines = data(tree, 1).read_bytes().splitlines(keepends=True)
    data(tree, 1).write_bytes(b"".join(reversed(lines)))
    assert codes(tree) == ["commit-ts-decreases"]


def test_a_row_goes_back_in_time(tree):
    """Row 1 at TS+11 in the first file and at TS+1 in the second."""
    one, two = data(tree, 1).read_bytes(), data(tree, 2).read_bytes()
    data(tree, 1).write_bytes(two)
    data(tree, 2).write_bytes(one)
    assert codes(tree) == ["commit-ts-overlap"]


def test_files_that_overlap_without_a_row_going_back_are_noted(tree):
    """Row 3 at TS+21, then row 1 at TS+11: partitions that share a folder look like this."""
    two, three = data(tree, 2).read_bytes(), data(tree, 3).read_bytes()
    data(tree, 2).write_bytes(three)
    data(tree, 3).write_bytes(two)
    report = examine(str(tree))
    assert [finding.code for finding in report.findings] == ["files-overlap"]
    assert report.is_clean


def test_duplicates_in_two_files(tree):
    data(tree, 3).write_bytes(data(tree, 2).read_bytes())
    assert codes(tree) == ["duplicate-rows"]


def test_duplicates_in_one_file(tree):
    data(tree, 3).write_bytes(data(tree, 3).read_bytes() * 2)
    assert codes(tree) == ["duplicate-rows"]


def test_rows_that_are_alike_in_a_table_without_key_are_none(tmp_path):
    columns = [replace(column, flag=0) for column in table_named().columns]
    keyless = TableInfo.build("db", "t", 100, 1, columns=columns)
    run(tmp_path, (TS + 1, [(1, "a"), (1, "a")]), end=TS + 10, table=keyless)
    assert codes(tmp_path) == []
    # In another file the transaction has no business.
    data(tmp_path, 2).write_bytes(data(tmp_path, 1).read_bytes())
    (tmp_path / FOLDER / "meta/CDC.index").write_text("CDC000002.csv\n")
    assert codes(tmp_path) == ["duplicate-rows"]


def test_rows_after_the_checkpoint_are_noted(tree):
    """TiCDC writes rows first and its checkpoint later."""
    (tree / "metadata").write_text(f'{{"checkpoint-ts":{TS + 11}}}')
    (tree / RECORD).unlink()
    report = examine(str(tree))
    assert [finding.code for finding in report.findings] == ["rows-after-checkpoint"]
    assert report.is_clean


def test_leftovers_of_staging(tree):
    (tree / ".tidemark-staging/30-40/x").mkdir(parents=True)
    (tree / ".tidemark-staging/30-40/x/000000.csv").write_bytes(b"x")
    (tree / ".tidemark-staging/partial").mkdir()
    (tree / ".tidemark-staging/partial/y").write_bytes(b"y")
    assert codes(tree) == ["staging-left", "staging-left"]


def test_an_interrupted_publication(tree):
    (tree / ".tidemark-staging/30-40").mkdir(parents=True)
    (tree / ".tidemark-staging/30-40/journal.json").write_bytes(b"{}")
    assert codes(tree) == ["publication-interrupted"]


def test_a_writer_at_work_is_noted(tree):
    with Lease.acquire(LocalStore(str(tree))):
        report = examine(str(tree))
    assert [finding.code for finding in report.findings] == ["being-written"]
    assert report.is_clean


def test_a_file_that_does_not_belong_here(tree):
    (tree / FOLDER / "notes.txt").write_bytes(b"")
    assert codes(tree) == ["unknown-file"]


def test_names_only_opens_no_data_file(tree):
    data(tree, 2).write_bytes(b"torn")
    assert codes(tree, with_data=False) == []


# The command


def test_the_command_says_what_it_found(tree, capsys):
    assert main(["doctor", str(tree)]) == 0
    assert "1 table, 3 data files, 4 row changes" in capsys.readouterr().out
    data(tree, 2).unlink()
    assert main(["doctor", str(tree)]) == 1
    printed = capsys.readouterr().out
    assert f"error: {FOLDER}: missing: 2 [gap-in-numbers]" in printed
    assert printed.endswith("; 1 finding\n")


def test_the_command_prints_a_path_once(tree, capsys):
    (schema,) = (tree / "db/t/meta").iterdir()
    torn = data(tree, 2)
    torn.write_bytes(torn.read_bytes()[:-4])
    (tree / "metadata").write_text("{}")
    main(["doctor", str(tree)])
    schema.write_bytes(schema.read_bytes().replace(b'"id"', b'"ib"'))
    main(["doctor", str(tree)])
    schema.write_text("{")
    main(["doctor", str(tree)])
    found = [line for line in capsys.readouterr().out.splitlines() if line.startswith("error: ")]
    assert {line.rpartition("[")[2] for line in found} >= {
        "file-unreadable]",
        "metadata-unreadable]",
        "schema-mismatch]",
    }
    for line in found:
        assert line.partition(" [")[0].count(line.split(": ")[1]) == 1, line


def test_the_command_speaks_json(tree, capsysbinary):
    data(tree, 2).unlink()
    assert main(["doctor", str(tree), "--json"]) == 1
    report = json.loads(capsysbinary.readouterr().out)
    assert report["clean"] is False
    assert report["findings"] == [
        {"code": "gap-in-numbers", "level": "error", "path": FOLDER, "text": "missing: 2"}
    ]


def test_the_command_takes_the_settings_of_the_tree(tmp_path, capsys):
    given = settings(csv={"delimiter": "|", "quote": ""})
    write_log_to_tree([log_of("orders")], given, str(tmp_path / "tree"))
    (tmp_path / "feed.toml").write_text('[sink.csv]\ndelimiter = "|"\nquote = ""\ninclude-commit-ts = true\n')
    uri = f"file://{tmp_path}/tree?protocol=csv"
    assert main(["doctor", "--sink-uri", uri, "--changefeed", str(tmp_path / "feed.toml")]) == 0
    capsys.readouterr()
    assert main(["doctor", str(tmp_path / "tree")]) == 1
    assert "file-unreadable" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("prefix", "uri", "given"),
    [
        (
            "s3://other/tree",
            "s3://trees/x?protocol=csv&endpoint=http://here&access-key=k&force-path-style=false",
            {"key": "k", "endpoint_url": "http://here"},
        ),
        ("gs://other/tree", "gcs://trees/x?protocol=csv&credentials-file=k", {"token": "k"}),
        ("azblob://other/tree", "azure://trees/x?protocol=csv&account-key=k", {"account_key": "k"}),
        ("gs://other/tree", "s3://trees/x?protocol=csv&access-key=k", {}),
    ],
)
@pytest.mark.parametrize("command", [["doctor"], ["convert", "--out", "unused"]])
def test_a_prefix_is_opened_with_the_access_options_of_the_sink_uri(
    command, prefix, uri, given, monkeypatch, tmp_path, capsys
):
    opened = []

    def filesystem(protocol, *, use_listings_cache, skip_instance_cache, **options):
        opened.append(options)
        return MemoryFileSystem(skip_instance_cache=True)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fsspec, "filesystem", filesystem)
    assert main([*command, prefix, "--sink-uri", uri]) == 2
    assert prefix in capsys.readouterr().err
    assert opened == [given]


def test_a_prefix_that_is_not_there_is_status_2(tmp_path, capsys):
    assert main(["doctor", str(tmp_path / "nothing")]) == 2
    assert "is empty or does not exist" in capsys.readouterr().err
    assert main(["doctor"]) == 2
