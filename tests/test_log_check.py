"""Logs are looked at before Spark starts: what is not there or no log is an error, what is empty a warning."""

import pytest

from support import golden
from tidemark.log_check import NoFrames, check_logs
from tidemark.logs import LogNotFound

FRAME = golden("wire/resolved_typical.bin").read_bytes()


def logs(*paths):
    return [{"upstream_id": "1", "path": str(path)} for path in paths]


def test_logs_with_frames_pass_also_where_a_file_begins_with_damage(tmp_path):
    (tmp_path / "a.bin").write_bytes(FRAME)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "readme.txt").write_text("what this is about, at length")
    (tmp_path / "b" / "c.bin").write_bytes(b"x" * 1000 + FRAME)
    assert check_logs(logs("a.bin", "b", "*.bin", tmp_path / "b"), tmp_path) == []
    assert check_logs(logs((tmp_path / "a.bin").as_uri()), tmp_path) == []


def test_a_log_without_anything_yet_is_a_warning(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "torn.bin").write_bytes(FRAME[:7])
    assert check_logs(logs("empty", "*.log", "torn.bin"), tmp_path) == [
        "the event log empty holds no files yet: this run has nothing to read there",
        "the event log *.log holds no files yet: this run has nothing to read there",
        "the event log torn.bin holds no complete frame yet: this run has nothing to read there",
    ]


def test_files_without_frames_are_no_log(tmp_path):
    (tmp_path / "CDC1.csv").write_text("1,2,3\n" * 100_000)
    with pytest.raises(
        NoFrames, match=r"the event log CDC1.csv holds no frames: .* or a storage tree as `tree`"
    ):
        check_logs(logs("CDC1.csv"), tmp_path)


@pytest.mark.parametrize("path", ["nowhere", "file:///nowhere/at/all", "memory://nowhere"])
def test_a_path_that_does_not_exist_is_an_error(tmp_path, path):
    with pytest.raises(LogNotFound, match="does not exist"):
        check_logs(logs(path), tmp_path)


def test_trees_are_looked_at_when_they_are_read(tmp_path):
    assert check_logs([{"upstream_id": "1", "tree": "s3://nowhere"}], tmp_path) == []


def test_an_object_store_without_credentials_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with pytest.raises(LogNotFound) as problem:
        check_logs(logs("s3://bucket/log"), tmp_path)
    assert str(problem.value).startswith("the event log s3://bucket/log cannot be")
    assert "\n" not in str(problem.value)
