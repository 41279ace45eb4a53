"""Publication: the index rule, never overwriting, one run per range, and crashes at every step."""

import json
import multiprocessing
import os
import signal

import pytest
from storage_support import files_below, inserts, is_data, log_of, settings, table_named

from support import golden, jsonl
from tidemark.encode.paths import RECORD, WORK
from tidemark.sinks.storage import faults
from tidemark.sinks.storage.doctor import examine
from tidemark.sinks.storage.errors import (
    DamagedTree,
    FileExists,
    InvalidTree,
    NameCollision,
    StaleRange,
    StorageError,
    StoreError,
)
from tidemark.sinks.storage.filesystem import LocalStore
from tidemark.sinks.storage.index import Numbering
from tidemark.sinks.storage.journal import read_checkpoint
from tidemark.sinks.storage.layout import StorageLayout
from tidemark.sinks.storage.log_driver import stage, write_log_to_tree
from tidemark.sinks.storage.publish import open_tree, planned_position, publish
from tidemark.sinks.storage.record import Position
from tidemark.sinks.storage.span import Span

DIGITS = 6
GIVEN = {"file_index_digit": DIGITS}
FOLDER, INDEX = "db/t/10", "db/t/10/meta/CDC.index"
# The steps of a publication that has no schema file to write.
PUBLISHING = {
    *("before-journal", "journal-written", "data-file-placed", "index-written", "before-metadata"),
    *("record-written", "metadata-written", "staged-file-removed", "journal-removed"),
}


def rows(*ids: int, ts: int = 20):
    return inserts(table_named(), [(ts + place, [(number, "x")]) for place, number in enumerate(ids)])


def visible_below(folder):
    return {path: data for path, data in files_below(folder).items() if not path.startswith(WORK)}


def run(store, *batches, end, given=None, schema_files=None, late=False, position=None):
    given = given or settings(**GIVEN)
    layout = StorageLayout(given)
    with open_tree(store) as tree:
        span = Span(tree.checkpoint, end, takes_late_rows=late)
        staged = stage(store, span, layout, given, [(batch, 10) for batch in batches])
        return publish(
            store,
            tree.lease,
            layout,
            span,
            staged,
            schema_files or {},
            accept_missing_files=given.accepts_missing_files,
            position=position,
        )


@pytest.fixture
def store(tmp_path):
    return LocalStore(str(tmp_path))


def numbers(store, index: str | None, *present: int, count: int = 1) -> tuple[int, list[str]]:
    for number in present:
        store.write(f"{FOLDER}/CDC{number:06d}.csv", b"x")
    if index is not None:
        store.write(INDEX, index.encode())
    numbering = Numbering(store, DIGITS, announced=[INDEX])
    return numbering.next(FOLDER, INDEX, ".csv", count=count), numbering.warnings


def test_a_new_folder_begins_with_one(store):
    assert numbers(store, None) == (1, [])


def test_the_file_of_the_index_is_there_so_the_next_is_taken(store):
    assert numbers(store, "CDC000005.csv\n", 1, 2, 3, 4, 5) == (6, [])


def test_the_file_of_the_index_is_not_there_so_it_is_taken(store):
    assert numbers(store, "CDC000005.csv\n", 1, 2, 3, 4) == (5, [])


def test_a_stale_index_is_reconciled_by_listing(store):
    number, warnings = numbers(store, "CDC000002.csv\n", 1, 2, 3, 7)
    assert number == 8
    assert "number 7 is there too" in warnings[0]


def test_every_number_of_a_run_is_free(store):
    """4 is free and 5 is not."""
    number, warnings = numbers(store, "CDC000004.csv\n", 1, 2, 3, 5, count=2)
    assert number == 6
    assert "number 5 is there too" in warnings[0]
    assert numbers(store, None, count=1) == (4, [])
    assert numbers(store, "CDC000005.csv\n", count=3) == (6, [])


def test_a_hole_near_the_index_does_not_stop_a_run_of_several_files(store):
    run(store, rows(1, 2, 3), end=30, given=settings(query="&file-size=1024", **GIVEN))
    for number in (2, 3, 5):
        store.write(f"{FOLDER}/CDC{number:06d}.csv", b"theirs")
    store.write(INDEX, b"CDC000004.csv\n")
    store.delete(RECORD)
    large = inserts(table_named(), [(31, [(4, "x" * 100)] * 20), (32, [(5, "x" * 100)] * 20)])
    published = run(store, large, end=40, given=settings(query="&file-size=1024", **GIVEN))
    assert published.files == (f"{FOLDER}/CDC000006.csv", f"{FOLDER}/CDC000007.csv")
    assert "number 5 is there too" in published.warnings[1]
    assert store.read(f"{FOLDER}/CDC000005.csv") == b"theirs"
    assert run(store, rows(9, ts=41), end=41).files == (f"{FOLDER}/CDC000008.csv",)


def test_a_missing_index_is_reconciled_by_listing(store):
    number, warnings = numbers(store, None, 1, 2, 3)
    assert number == 4
    assert "no index" in warnings[0]


@pytest.mark.parametrize("content", ["", "rubbish", "CDC1.csv", "CDC000003.json"])
def test_an_unreadable_index_is_reconciled_by_listing(store, content):
    number, warnings = numbers(store, content, 1, 2)
    assert number == 3
    assert warnings


@pytest.mark.parametrize("count", [1, 2])
def test_files_of_another_protocol_keep_their_numbers(store, count):
    for number in (1, 2, 3):
        store.write(f"{FOLDER}/CDC{number:06d}.json", b"x")
    number, warnings = numbers(store, "CDC000003.json\n", count=count)
    assert number == 4
    assert "files of another protocol, up to CDC000003.json" in warnings[0]
    store.delete(INDEX)
    assert numbers(store, None)[0] == 4


def test_reconciling_lists_the_folder_once(store):
    calls = []
    real = store.list
    store.list = lambda folder: calls.append(folder) or real(folder)
    numbers(store, "CDC000002.csv\n", *range(1, 60))
    assert calls == [FOLDER]


def test_more_digits_than_before_do_not_start_again(store):
    store.write(f"{FOLDER}/CDC000001.csv", b"x")
    store.write(INDEX, b"CDC000001.csv\n")
    assert Numbering(store, 20).next(FOLDER, INDEX, ".csv") == 2


def test_warnings_reach_the_caller(store):
    run(store, rows(1), end=20)
    store.delete(INDEX)
    published = run(store, rows(2, ts=21), end=21)
    assert "no index" in published.warnings[0]
    assert published.files == ("db/t/10/CDC000002.csv",)


def test_a_run_up_to_a_published_checkpoint_does_nothing(store, tmp_path):
    run(store, rows(1), end=20)
    before = files_below(tmp_path)
    given = settings(**GIVEN)
    with open_tree(store) as tree:
        published = publish(store, tree.lease, StorageLayout(given), Span(0, 20), [], {})
    assert not published.wrote
    assert files_below(tmp_path) == before


def test_a_run_that_begins_before_the_checkpoint_is_refused(store):
    run(store, rows(1), end=20)
    with open_tree(store) as tree, pytest.raises(StaleRange, match="plan again"):
        publish(store, tree.lease, StorageLayout(settings()), Span(0, 30), [], {})
    assert read_checkpoint(store) == 20


def test_a_run_without_rows_moves_the_checkpoint(store, tmp_path):
    run(store, end=50)
    assert files_below(tmp_path) == {
        "metadata": b'{"checkpoint-ts":50}',
        RECORD: b'{"format": 1, "checkpoint": 50, "announced": []}',
    }


def in_two_batches(store):
    """A tree whose second run has nothing but rows that came late for the first one."""
    first, second = Position(1, 2), Position(2, 3)
    if planned_position(store) == (0, None):
        run(store, rows(1, 2), end=100, position=first)
    if planned_position(store) == (100, first):
        run(store, rows(3, ts=15), end=100, late=True, position=second)
    open_tree(store).lease.release()
    assert planned_position(store) == (100, second)


def test_late_rows_become_further_files_and_the_checkpoint_stays(store, tmp_path):
    in_two_batches(store)
    assert read_checkpoint(store) == 100
    assert (tmp_path / FOLDER / "CDC000002.csv").read_text().startswith('"I","t","db",15,3')
    assert [finding.code for finding in examine(store, settings(**GIVEN)).findings] == ["files-overlap"]
    again = run(store, rows(3, ts=15), end=100, late=True, position=Position(2, 3))
    assert not again.wrote


@pytest.mark.parametrize("point", [point for point in faults.FAULT_POINTS if point in PUBLISHING])
def test_a_crash_while_late_rows_are_published_sends_them_once(tmp_path, monkeypatch, point):
    in_two_batches(LocalStore(str(tmp_path / "undisturbed")))
    store = LocalStore(str(tmp_path / "tree"))
    run(store, rows(1, 2), end=100, position=Position(1, 2))

    class Crash(BaseException):
        pass

    def crash(at):
        if at == point:
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr("tidemark.sinks.storage.journal.faults.point", crash)
        with pytest.raises(Crash):
            in_two_batches(store)
    in_two_batches(store)
    assert visible_below(tmp_path / "tree") == visible_below(tmp_path / "undisturbed")


def test_two_tasks_of_one_stream_are_refused(store):
    given = settings(**GIVEN)
    layout, span = StorageLayout(given), Span(0, 30)
    with open_tree(store) as tree:
        one = stage(store, span, layout, given, [(rows(1), 10)])
        two = stage(store, span, layout, given, [(rows(2), 10)])
        with pytest.raises(StorageError, match="must be in one task"):
            publish(store, tree.lease, layout, span, [*one, *two], {})
        # The same description twice is the same work.
        assert publish(store, tree.lease, layout, span, [*two, *two], {}).rows == 1


def test_the_order_of_tasks_does_not_matter(tmp_path):
    given = settings(**GIVEN)
    layout, span = StorageLayout(given), Span(0, 30)
    batches = [(inserts(table_named(table=name), [(20, [(1, "x")])]), 10) for name in ("a", "b", "c")]
    trees = []
    for name, order in (("one", batches), ("two", batches[::-1])):
        store = LocalStore(str(tmp_path / name))
        with open_tree(store) as tree:
            staged = [made for batch in order for made in stage(store, span, layout, given, [batch])]
            publish(store, tree.lease, layout, span, staged, {})
        trees.append(files_below(tmp_path / name))
    assert trees[0] == trees[1]


def test_files_beside_the_lease_are_never_overwritten(store, monkeypatch):
    """Somebody writes the file between plan and publication."""
    given = settings(**GIVEN)
    layout, span = StorageLayout(given), Span(0, 30)
    with open_tree(store) as tree:
        staged = stage(store, span, layout, given, [(rows(1), 10)])
        monkeypatch.setattr(
            "tidemark.sinks.storage.journal.faults.point",
            lambda name: (
                store.write(f"{FOLDER}/CDC000001.csv", b"theirs") if name == "journal-written" else None
            ),
        )
        with pytest.raises(FileExists, match="somebody else"):
            publish(store, tree.lease, layout, span, staged, {})
    assert store.read(f"{FOLDER}/CDC000001.csv") == b"theirs"
    assert read_checkpoint(store) == 0


def test_a_staged_file_that_is_gone_is_an_error(store, monkeypatch):
    given = settings(**GIVEN)
    layout, span = StorageLayout(given), Span(0, 30)
    with open_tree(store) as tree:
        staged = stage(store, span, layout, given, [(rows(1), 10)])
        store.delete(staged[0].files[0].path)
        with pytest.raises(StoreError, match="missing or was changed"):
            publish(store, tree.lease, layout, span, staged, {})
    assert read_checkpoint(store) == 0


def test_metadata_that_is_no_checkpoint_stops_the_writer(store):
    store.write("metadata", b"{}")
    with pytest.raises(StorageError, match="find out who changed it"):
        run(store, rows(1), end=30)


def test_a_journal_of_another_version_stops_the_writer(store):
    store.write(".tidemark-staging/0-30/journal.json", json.dumps({"format": 99}).encode())
    with pytest.raises(StorageError, match="another version"):
        run(store, rows(1), end=30)


def test_two_names_that_differ_by_case_are_two_folders(store, tmp_path):
    tables = [inserts(table_named(table=name), [(20, [(1, name)])]) for name in ("T", "t")]
    run(store, *tables, end=20)
    assert len([path for path in files_below(tmp_path) if is_data(path)]) == 2


def test_two_names_that_differ_by_case_are_refused_where_they_are_one_folder(store, tmp_path):
    store.is_case_sensitive = lambda folder: False
    tables = [inserts(table_named(table=name), [(20, [(1, name)])]) for name in ("T", "t")]
    with pytest.raises(NameCollision, match="table-id paths"):
        run(store, *tables, end=20)
    assert not [path for path in files_below(tmp_path) if is_data(path)]


@pytest.mark.parametrize("names", [("t", "T"), ("caf\u00e9", "cafe\u0301"), ("db", "DB")])
def test_a_name_is_refused_where_its_folder_is_that_of_an_earlier_run(store, tmp_path, names):
    position = "schema" if "db" in names else "table"
    first, second = (
        inserts(table_named(**{position: name}), [(20 + place, [(1, "x")])])
        for place, name in enumerate(names)
    )
    run(store, first, end=20)
    before = files_below(tmp_path)
    store.is_case_sensitive = lambda folder: False
    with pytest.raises(NameCollision, match="are one folder on"):
        run(store, second, end=21)
    assert visible_below(tmp_path) == before
    assert run(store, inserts(first.table, [(21, [(2, "y")])]), end=22).rows == 1


def test_names_of_a_tree_are_looked_up_only_where_case_does_not_matter(store):
    run(store, rows(1), end=20)
    listed = []
    real = store.list
    store.list = lambda folder: listed.append(folder) or real(folder)
    run(store, rows(2, ts=21), end=21)
    assert not {"", "db"} & set(listed)
    store.is_case_sensitive = lambda folder: False
    run(store, rows(3, ts=22), end=22)
    assert (listed.count(""), listed.count("db")) == (1, 1)


# Schema files that are there already


@pytest.mark.parametrize(("old", "new"), [(b'"VARCHAR"', b'"CHAR"'), (b": 10,", b": 11,"), (b"{", b"")])
@pytest.mark.parametrize("version", [10, 15])
def test_a_schema_file_that_is_not_what_its_name_says_stops_the_run(store, tmp_path, old, new, version):
    """Version 15 goes on in the folder of version 10."""
    run(store, rows(1), end=20)
    (schema,) = tmp_path.glob("db/t/meta/schema_*.json")
    content = schema.read_bytes()
    schema.write_bytes(content.replace(old, new))
    before = files_below(tmp_path)
    given = settings(**GIVEN)
    layout, span = StorageLayout(given), Span(20, 30)
    with open_tree(store) as tree:
        staged = stage(store, span, layout, given, [(rows(2, ts=21), version)])
        with pytest.raises(InvalidTree, match="not what its name says") as raised:
            publish(store, tree.lease, layout, span, staged, {})
    assert str(schema) in str(raised.value)
    assert "the checkpoint has not moved" in str(raised.value)
    assert visible_below(tmp_path) == before
    schema.write_bytes(content)
    assert run(store, rows(2, ts=21), end=30).files == (f"{FOLDER}/CDC000002.csv",)
    assert examine(store, with_data=False).findings == []


def test_a_schema_file_is_read_once_for_each_version_in_use(store, tmp_path):
    run(store, rows(1), inserts(table_named(table="other"), [(20, [(1, "x")])]), end=20)
    read = []
    real = store.read_optional
    store.read_optional = lambda path: read.append(path) or real(path)
    days = inserts(table_named(), [(21, [(2, "x")]), (22 + (86_400_000 << 18), [(3, "x")])])
    run(store, days, end=1 << 60, given=settings(date_separator="day", **GIVEN))
    assert [path.split("/")[1] for path in read if "/schema_" in path] == ["t"]


# Trees that were damaged since the last run


def damaged(store, tmp_path, *more, end=40, **options) -> str:
    """The refusal of a run, which must have published nothing."""
    before = visible_below(tmp_path)
    with pytest.raises(DamagedTree) as raised:
        run(store, *(more or [rows(9, ts=31)]), end=end, **options)
    assert visible_below(tmp_path) == before
    return str(raised.value)


@pytest.fixture
def two_files(store):
    run(store, rows(1), end=20)
    run(store, rows(2, ts=21), end=30)
    return store


def test_a_published_file_that_is_gone_stops_the_run(two_files, tmp_path):
    store = two_files
    content = store.read(f"{FOLDER}/CDC000002.csv")
    store.delete(f"{FOLDER}/CDC000002.csv")
    message = damaged(store, tmp_path)
    finding, _left_by_the_run = sorted(
        examine(store, with_data=False).findings, key=lambda found: found.level
    )
    assert f"{store.shown}/{finding.path} {finding.text} [{finding.code}]" in message
    assert finding.code == "checkpoint-beyond-data"
    assert "missing-files=accept" in message
    # Rows of other folders are not kept waiting.
    assert run(store, inserts(table_named(table="other"), [(31, [(1, "x")])]), end=31).rows == 1
    store.write(f"{FOLDER}/CDC000002.csv", content)
    assert run(store, rows(9, ts=32), end=40).files == (f"{FOLDER}/CDC000003.csv",)


@pytest.mark.parametrize("count", [1, 2])
def test_the_number_of_a_file_that_was_removed_on_purpose_is_not_used_again(two_files, tmp_path, count):
    store = two_files
    store.delete(f"{FOLDER}/CDC000002.csv")
    store.delete(f"{FOLDER}/CDC000001.csv")
    accepting = settings(query="&missing-files=accept&file-size=1024", **GIVEN)
    large = inserts(table_named(), [(31 + place, [(4, "x" * 100)] * 20) for place in range(count)])
    published = run(store, large, end=40, given=accepting)
    assert published.files == tuple(f"{FOLDER}/CDC{3 + place:06d}.csv" for place in range(count))
    assert "names CDC000002.csv, which is not there; going on after it" in published.warnings[0]
    assert examine(store, accepting, with_data=False).is_clean
    assert not examine(store, with_data=False).is_clean


def test_metadata_that_is_gone_stops_the_run(two_files, tmp_path):
    two_files.delete("metadata")
    message = damaged(two_files, tmp_path)
    assert "metadata is missing: Tidemark has published up to 30 [metadata-missing]" in message
    assert 'write {"checkpoint-ts":30} into `metadata`' in message
    two_files.write("metadata", b'{"checkpoint-ts":30}')
    assert run(two_files, rows(9, ts=31), end=40).files == (f"{FOLDER}/CDC000003.csv",)


def test_metadata_that_went_back_stops_the_run(two_files, tmp_path):
    two_files.write("metadata", b'{"checkpoint-ts":20}')
    message = damaged(two_files, tmp_path)
    assert "metadata says 20, but Tidemark has published up to 30 [checkpoint-went-back]" in message


def test_data_files_without_metadata_stop_the_run_whoever_wrote_them(two_files, tmp_path):
    two_files.delete("metadata")
    two_files.delete(RECORD)
    message = damaged(two_files, tmp_path)
    assert "there are data files, but no checkpoint [metadata-missing]" in message
    two_files.write("metadata", b'{"checkpoint-ts":0}')
    assert run(two_files, rows(1, 2), end=40).files == (f"{FOLDER}/CDC000003.csv",)


def test_damage_between_opening_and_publishing_is_noticed(two_files):
    given = settings(**GIVEN)
    layout, span = StorageLayout(given), Span(30, 40)
    with open_tree(two_files) as tree:
        staged = stage(two_files, span, layout, given, [(rows(9, ts=31), 10)])
        two_files.delete("metadata")
        with pytest.raises(DamagedTree, match="metadata is missing"):
            publish(two_files, tree.lease, layout, span, staged, {})


def test_a_tree_that_is_taken_over_follows_the_index_rule_once(two_files, tmp_path):
    """As TiCDC leaves it: the index of t names a file that was never written, that of `other` one that is there."""
    store, other = two_files, "db/other/10"
    run(store, inserts(table_named(table="other"), [(31, [(1, "x")])]), end=32)
    store.delete(RECORD)
    store.write(INDEX, b"CDC000003.csv\n")
    published = run(store, end=40)
    assert "somebody else until now, and 1 index of it (db/t/10/meta/CDC.index) name" in published.warnings[0]
    # Not touched by that run, and still free in the next one.
    published = run(store, rows(9, ts=41), end=50)
    assert (published.files, published.warnings) == ((f"{FOLDER}/CDC000003.csv",), [])
    # From now on the file is ours, and so is what was there when the tree was taken over.
    store.delete(f"{FOLDER}/CDC000003.csv")
    assert "CDC000003.csv, which is not there" in damaged(store, tmp_path, rows(9, ts=51), end=60)
    store.delete(f"{other}/CDC000001.csv")
    late = inserts(table_named(table="other"), [(51, [(2, "x")])])
    assert "CDC000001.csv, which is not there" in damaged(store, tmp_path, late, end=60)


def test_a_tree_that_somebody_else_moved_on_is_taken_over_again(two_files):
    two_files.write(INDEX, b"CDC000003.csv\n")
    two_files.write("metadata", b'{"checkpoint-ts":35}')
    assert run(two_files, rows(9, ts=36), end=40).files == (f"{FOLDER}/CDC000003.csv",)


def test_the_price_of_the_record_does_not_grow_with_the_tree(two_files):
    for table in ("a", "b", "c"):
        run(
            two_files,
            inserts(table_named(table=table), [(31 + ord(table), [(1, "x")])]),
            end=31 + ord(table),
        )
    touched = []
    for name in ("list", "walk", "read_optional", "size"):
        real = getattr(two_files, name)
        setattr(two_files, name, lambda path="", real=real: touched.append(path) or real(path))
    run(two_files, rows(9, ts=200), end=210)
    assert not [path for path in touched if path in ("", "db") or path.startswith(("db/a", "db/b", "db/c"))]


def test_a_record_that_cannot_be_understood_stops_the_run(two_files):
    two_files.write(RECORD, b'{"format": 2}')
    with pytest.raises(StorageError, match=r"tidemark-published cannot be understood .*taken over as it is"):
        run(two_files, rows(9, ts=31), end=40)


def test_a_journal_of_an_earlier_version_is_finished(two_files):
    """It has no record: the tree is taken over by the run after it."""
    journal = {"format": 1, "start": 30, "checkpoint": 40, "schema_files": [], "data": [], "index": []}
    two_files.write(".tidemark-staging/30-40/journal.json", json.dumps(journal).encode())
    assert run(two_files, rows(9, ts=41), end=50).files == (f"{FOLDER}/CDC000003.csv",)
    assert examine(two_files, with_data=False).findings == []


# Crashes: the process is killed at a point, the same command is given again, and the tree must be that of a run without the crash.

SCENARIO = "orders"


def _write(folder: str, fault: str) -> None:
    os.environ[faults.VARIABLE] = fault
    write_log_to_tree([log_of(SCENARIO)], settings(query="&file-size=1024", **GIVEN), folder)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    write_log_to_tree([log_of(SCENARIO)], settings(query="&file-size=1024", **GIVEN), str(folder))
    return files_below(folder)


@pytest.fixture(scope="module")
def processes():
    """New processes without the price of importing everything again."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tidemark.sinks.storage.log_driver", "storage_support"])
    return context


def _crash(processes, folder, fault: str) -> None:
    process = processes.Process(target=_write, args=(str(folder), fault))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, f"{fault} was not reached"


def _vouched_for(tree: dict[str, bytes], whole: dict[str, bytes]) -> bool:
    """Whether everything up to the checkpoint is there: in one run, that is all or nothing."""
    return "metadata" not in tree or {path: tree.get(path) for path in whole} == whole


# The points inside of loops are tried again further on.
LATER = ("staged-file-begun:5", "staged-file-written:6", "schema-file-written:7", "data-file-placed:2")
LATER += ("data-file-placed:7", "index-written:6", "staged-file-removed:5")


@pytest.mark.parametrize("fault", [*faults.FAULT_POINTS, *LATER])
def test_a_crash_and_the_same_command_give_the_tree_of_an_undisturbed_run(
    fault, undisturbed, processes, tmp_path
):
    _crash(processes, tmp_path, fault)
    crashed = files_below(tmp_path)
    assert _vouched_for(crashed, undisturbed)
    visible = {
        path: content for path, content in crashed.items() if not path.startswith(".tidemark-staging/")
    }
    assert visible.items() <= undisturbed.items()
    _finish(tmp_path)
    assert files_below(tmp_path) == undisturbed


def test_a_fault_may_stand_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv(faults.VARIABLE, f"@{tmp_path}/fault")
    faults.point("before-journal")
    (tmp_path / "fault").write_text("nowhere\n")
    with pytest.raises(ValueError, match="TIDEMARK_FAULT=nowhere: there is no such point"):
        faults.point("before-journal")


def _finish(folder) -> None:
    write_log_to_tree([log_of(SCENARIO)], settings(query="&file-size=1024", **GIVEN), str(folder))


@pytest.mark.parametrize("second", ["data-file-placed:3", "index-written:3", "staged-file-removed"])
def test_a_crash_while_recovering_from_a_crash(second, undisturbed, processes, tmp_path):
    _crash(processes, tmp_path, "data-file-placed:5")
    _crash(processes, tmp_path, second)
    _finish(tmp_path)
    assert files_below(tmp_path) == undisturbed


@pytest.mark.parametrize(
    "fault",
    ["staged-file-written", "data-file-placed", "index-written", "record-written", "metadata-written"],
)
def test_a_crash_in_a_later_run(fault, processes, tmp_path):
    """The first run saw half of the log. Whatever happens to the second one, the checkpoint does not go back and files stay as they are."""
    half = tmp_path / "half.bin"
    half.write_bytes(golden(f"streams/{SCENARIO}.bin").read_bytes()[: _middle()])
    given = settings(query="&file-size=1024", **GIVEN)
    first = write_log_to_tree([str(half)], given, str(tmp_path / "tree"))
    write_log_to_tree([str(half)], given, str(tmp_path / "undisturbed"))
    _finish(tmp_path / "undisturbed")
    published = files_below(tmp_path / "tree")
    _crash(processes, tmp_path / "tree", fault)
    crashed = files_below(tmp_path / "tree")
    assert read_checkpoint(LocalStore(str(tmp_path / "tree"))) >= first.checkpoint
    data = {path: content for path, content in published.items() if is_data(path)}
    assert data.items() <= crashed.items()
    _finish(tmp_path / "tree")
    assert files_below(tmp_path / "tree") == files_below(tmp_path / "undisturbed")


def _middle() -> int:
    """Behind a Resolved event in the middle of the log, with rows on both sides."""
    resolved = [event for event in jsonl(f"streams/{SCENARIO}.events.jsonl") if event["kind"] == "resolved"]
    event = resolved[len(resolved) // 2]
    return int(event["offset"]) + int(event["length"])


def test_recovery_does_not_need_the_logs(processes, undisturbed, tmp_path):
    """What the journal holds is enough: opening the tree finishes it."""
    _crash(processes, tmp_path, "data-file-placed:5")
    with open_tree(LocalStore(str(tmp_path))) as tree:
        assert len(tree.recovered) == 1
    assert files_below(tmp_path) == undisturbed


def test_an_unknown_fault_point_is_refused(monkeypatch):
    monkeypatch.setenv(faults.VARIABLE, "no-such-point")
    with pytest.raises(ValueError, match="no such point"):
        faults.point("lease-taken")
