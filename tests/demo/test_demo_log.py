"""`tidemark demo-log`: files, reproducible bytes, bounded memory, messages."""

import resource
import subprocess
import sys
import tracemalloc

import pytest
from demo_log_reader import changes_of, events_of, upstream_folders

from support import jsonl
from tidemark.cli import main
from tidemark.demo import shop, upstream
from tidemark.demo.column_types import column
from tidemark.demo.files import DemoFolderInUse
from tidemark.demo.shop import DemoLogError, write_demo_logs
from tidemark.demo.tables import definitions
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.types import MYSQL_TYPES


def write(out, **changed):
    return write_demo_logs(out, **{"tables": 3, "rows": 3000, "upstreams": 2, "seed": 1, **changed})


def content(out):
    return {str(file.relative_to(out)): file.read_bytes() for file in sorted(out.rglob("*.bin"))}


def test_the_same_arguments_write_the_same_bytes(tmp_path):
    write(tmp_path / "a")
    write(tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_another_seed_writes_other_rows(tmp_path):
    write(tmp_path / "a")
    write(tmp_path / "b", seed=2)
    assert content(tmp_path / "a") != content(tmp_path / "b")


def test_files_are_numbered_per_upstream_and_cut_between_frames(tmp_path):
    written = write(tmp_path / "log", file_bytes=100_000)
    files = content(tmp_path / "log")
    assert list(files)[:2] == ["upstream-1/000001.bin", "upstream-1/000002.bin"]
    assert {name.split("/")[0] for name in files} == {"upstream-1", "upstream-2"}
    assert (written.files, written.bytes) == (len(files), sum(map(len, files.values())))
    assert all(len(data) <= 100_000 for data in files.values())
    whole = write(tmp_path / "whole")
    assert whole.files == 2
    for folder in ("upstream-1", "upstream-2"):
        joined = b"".join(data for name, data in files.items() if name.startswith(folder))
        assert joined == content(tmp_path / "whole")[f"{folder}/000001.bin"]


@pytest.mark.parametrize("batch_rows", [1, 7, 60, 5000])
def test_batches_have_at_most_the_rows_asked_for(batch_rows, tmp_path):
    written = write(
        tmp_path / "log", rows=20_000 if batch_rows == 5000 else 900, upstreams=1, batch_rows=batch_rows
    )
    sizes = [
        sum(part.row_count for part in event.transactions)
        for event in events_of(tmp_path / "log")
        if isinstance(event, BatchDMLEvent)
    ]
    assert max(sizes) <= batch_rows
    assert sum(sizes) == written.rows + written.repeated_rows


def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(shop, "ROUND_ROWS", 1000)

    def peak(rows):
        tracemalloc.start()
        try:
            write(tmp_path / str(rows), rows=rows, tables=1, upstreams=1, batch_rows=100)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    write(tmp_path / "warm", rows=1000)
    assert peak(90_000) < 1.2 * peak(30_000)


def test_a_log_that_could_not_be_finished_leaves_nothing(tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(upstream.Upstream, "sync_point", fail)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path / "log")
    assert list(tmp_path.iterdir()) == []


def test_a_log_appears_only_when_it_is_complete(tmp_path, monkeypatch):
    seen = []
    resolve = upstream.Upstream.resolve

    def look(self, *args, **kwargs):
        seen.append((tmp_path / "log").exists())
        resolve(self, *args, **kwargs)

    monkeypatch.setattr(upstream.Upstream, "resolve", look)
    write(tmp_path / "log")
    assert not any(seen)
    assert (tmp_path / "log").is_dir()


def test_a_folder_with_files_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(DemoFolderInUse, match="not empty"):
        write(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


def test_an_empty_folder_is_used(tmp_path):
    (tmp_path / "log").mkdir()
    write(tmp_path / "log")
    assert len(upstream_folders(tmp_path / "log")) == 2


@pytest.mark.parametrize(
    "wrong", [{"tables": 0}, {"rows": -1}, {"upstreams": 0}, {"batch_rows": 0}, {"batch_rows": 10**6}]
)
def test_numbers_that_cannot_be_are_refused(wrong, tmp_path):
    with pytest.raises(DemoLogError, match=next(iter(wrong))):
        write(tmp_path / "log", **wrong)
    assert list(tmp_path.iterdir()) == []


def test_more_tables_are_further_orders_tables():
    names = [name for name, _ in definitions(6)]
    assert names == ["orders", "customers", "inventory", "orders_2", "orders_3", "orders_4"]
    assert [name for name, _ in definitions(1)] == ["orders"]


def test_rows_that_left_the_window_stay_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(shop, "ROUND_ROWS", 60)
    write(tmp_path / "log", rows=4000, batch_rows=20)
    for folder in upstream_folders(tmp_path / "log"):
        rows = {}
        for change in changes_of(folder):
            if change.epoch == 1:
                known = rows.get((change.table, change.key))
                assert (
                    known is None or change.pre is None or {name: change.pre[name] for name in known} == known
                )
                rows[change.table, change.key] = change.post


def test_command_prints_what_it_wrote(tmp_path, capsys):
    out = tmp_path / "log"
    assert (
        main(["demo-log", "--out", str(out), "--rows", "500", "--tables", "2", "--file-bytes", "20KiB"]) == 0
    )
    text = capsys.readouterr().out
    files = content(out)
    assert f"{len(files):,} files, {sum(map(len, files.values())):,} bytes" in text
    assert "500 row changes of 2 tables in 2 upstreams" in text


def test_command_names_the_folder_that_is_in_use(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["demo-log", "--out", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err


@pytest.mark.parametrize(
    "argument", [("--rows", "-1"), ("--tables", "x"), ("--file-bytes", "9 parsecs"), ("--file-bytes", "0")]
)
def test_command_refuses_arguments_that_cannot_be(argument, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["demo-log", "--out", str(tmp_path / "log"), *argument])
    assert argument[0] in capsys.readouterr().err


def test_help_explains_the_log(capsys):
    with pytest.raises(SystemExit):
        main(["demo-log", "--help"])
    text = capsys.readouterr().out
    for word in ("--upstreams", "--seed", "shop.inventory", "active-active", "same bytes"):
        assert word in text


def sql_of(described):
    unsigned = " unsigned" if described["unsigned"] and described["type_name"] not in ("bit", "year") else ""
    default = f" default '{described['default']}'" if described["default"] is not None else ""
    null = " not null" if described["not_null"] else ""
    primary = " primary key" if described["pk"] else ""
    return f"{described['name']} {described['compact']}{unsigned}{null}{default}{primary}"


def test_columns_are_described_as_tidb_describes_them():
    checked = set()
    for scenario in ("orders", "alltypes"):
        for table in jsonl(f"streams/{scenario}.schemas.jsonl"):
            for place, described in enumerate(table["columns"]):
                kind = described["type_name"]
                supported = (
                    described["charset"] in ("utf8mb4", "binary")
                    and "blob" not in kind
                    and described["id"] == place + 1
                )
                plain = described["flag"] & ~(512 | 8 | 4 | 64) == described["flag"] or kind == "year"
                if not (supported and plain and described["collate"] in ("utf8mb4_bin", "binary")):
                    continue
                if kind in ("vector", "tinytext", "mediumtext", "longtext") or set(",'") & set(
                    "".join(described["elems"] or ())
                ):
                    continue
                if kind in ("float", "double") and described["decimal"] != -1:
                    continue
                made = column(sql_of(described), place)
                assert MYSQL_TYPES[made.mysql_type].kind
                for name in ("mysql_type", "flag", "flen", "decimal", "charset", "collate"):
                    assert getattr(made, name) == described[name], (described["name"], name)
                checked.add(kind)
    assert checked >= {
        "int",
        "bigint",
        "decimal",
        "datetime",
        "timestamp",
        "time",
        "date",
        "year",
        "varchar",
        "bit",
        "json",
        "double",
    }


def test_a_write_that_fails_is_told_with_its_folder(tmp_path):
    """A disk that is full, and a file that may not become larger, fail alike."""
    command = [sys.executable, "-m", "tidemark.cli", "demo-log", "--out", str(tmp_path / "log")]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)),
    )
    assert (done.returncode, done.stderr) == (2, f"tidemark demo-log: {tmp_path / 'log'}: File too large\n")
    assert list(tmp_path.iterdir()) == []


def test_one_of_anything_is_told_in_the_singular(tmp_path, capsys):
    assert (
        main(["demo-log", "--out", str(tmp_path / "log"), "--tables", "1", "--upstreams", "1", "--rows", "1"])
        == 0
    )
    out = capsys.readouterr().out
    assert f"{tmp_path / 'log'}: 1 file, " in out
    assert "1 row change of 1 table in 1 upstream; " in out
