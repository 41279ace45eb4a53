"""The files behind a path are listed once, also where several look at them."""

import os
from pathlib import Path
from typing import ClassVar

import fsspec
import pytest
from fsspec import AbstractFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from support import golden
from tidemark.log_check import check_logs
from tidemark.logs import LogFile, LogListing, LogNotFound, find_logs
from tidemark.spark.log_plan import plan_logs

FRAME = golden("wire/resolved_typical.bin").read_bytes()


class CountedFileSystem(MemoryFileSystem):
    """Counts the folders that it is asked to list, and the questions about single files."""

    protocol = "counted"
    store: ClassVar[dict] = {}
    pseudo_dirs: ClassVar[list] = [""]
    listed: ClassVar[list] = []
    asked: ClassVar[list] = []

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix("counted:/"))

    # By way of `ls`, as a store finds what it has to ask a server for.
    find = AbstractFileSystem.find

    def ls(self, path, **more):
        self.listed.append(path)
        return super().ls(path, **more)

    def info(self, path, **more):
        self.asked.append(path)
        return super().info(path, **more)


@pytest.fixture
def counted():
    fsspec.register_implementation("counted", CountedFileSystem, clobber=True)
    filesystem = fsspec.filesystem("counted")
    for place in ("a/1.bin", "a/2.bin", "a/b/3.bin"):
        filesystem.pipe(f"/log/{place}", FRAME)
    CountedFileSystem.listed.clear()
    CountedFileSystem.asked.clear()
    yield filesystem
    filesystem.rm("/log", recursive=True)


@pytest.mark.parametrize(
    ("url", "names", "folders"),
    [
        ("counted://log/a", ["a/1.bin", "a/2.bin", "a/b/3.bin"], 2),
        ("counted://log/a/*.bin", ["a/1.bin", "a/2.bin"], 1),
        ("counted://log/**/3.bin", ["a/b/3.bin"], 3),
    ],
)
def test_every_folder_of_an_object_store_is_listed_once_by_check_and_plan(counted, url, names, folders):
    logs = [{"upstream_id": "1", "path": url}]
    listing = LogListing()
    assert check_logs(logs, Path(), listing.find) == []
    plan = plan_logs(logs, {}, listing.find)
    assert plan["file"].to_pylist() == [f"counted:///log/{name}" for name in names]
    assert len(counted.listed) == len(set(counted.listed)) == folders
    # Sizes come with the listing; files that are read are asked for theirs once more.
    listing.forget()
    counted.asked.clear()
    assert {file.size for file in listing.find(url)} == {len(FRAME)}
    assert not set(counted.asked) & {f"/log/{name}" for name in names}
    assert len(counted.listed) == 2 * folders


def test_one_object_is_found_and_a_missing_one_is_named(counted):
    assert find_logs("counted://log/a/1.bin") == [LogFile("counted:///log/a/1.bin", len(FRAME))]
    with pytest.raises(LogNotFound, match="counted://log/c does not exist"):
        find_logs("counted://log/c")


def test_a_local_folder_is_listed_once_whatever_it_is_called(tmp_path, monkeypatch):
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "a.bin").write_bytes(FRAME)
    monkeypatch.chdir(tmp_path)
    scanned, scandir = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path=".": scanned.append(str(path)) or scandir(path))
    listing = LogListing()
    assert check_logs([{"upstream_id": "1", "path": "log"}], tmp_path, listing.find) == []
    plan = plan_logs([{"upstream_id": "1", "path": "log"}], {}, listing.find)
    assert plan.num_rows == 1
    assert scanned.count(str(tmp_path / "log")) <= 1


def test_a_glob_that_finds_a_folder_and_what_is_in_it_gives_every_file_once(tmp_path):
    (tmp_path / "log" / "b").mkdir(parents=True)
    for name in ("log/a.bin", "log/b/c.bin"):
        (tmp_path / name).write_bytes(FRAME)
    expected = [str(tmp_path / "log/a.bin"), str(tmp_path / "log/b/c.bin")]
    for pattern in ("log/**", "l*", "**/*.bin", "log/*"):
        assert [file.path for file in find_logs(str(tmp_path / pattern))] == expected
