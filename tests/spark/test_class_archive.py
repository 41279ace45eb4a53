"""The archive of Java's classes: used where it is, missed nowhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidemark.spark.fast_start import class_archive
from tidemark.spark.java import provide_java
from tidemark.spark.session import defaults


@pytest.fixture
def archive(tmp_path, monkeypatch) -> Path:
    path = tmp_path / "java-classes.jsa"
    monkeypatch.setattr(class_archive, "archive_path", lambda: path)
    return path


def java(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    command = provide_java(folder / "java") / "bin" / "java"
    return subprocess.run([str(command), *arguments, "-version"], capture_output=True, text=True)


def test_without_an_archive_java_gets_no_option_for_it(archive, tmp_path):
    assert "SharedArchiveFile" not in defaults(tmp_path)["spark.driver.defaultJavaOptions"]


def test_an_archive_that_is_there_is_given_to_java(archive, tmp_path):
    archive.write_bytes(b"")
    assert f"-XX:SharedArchiveFile={archive}" in defaults(tmp_path)["spark.driver.defaultJavaOptions"]


def test_java_starts_without_a_word_when_the_archive_is_damaged(archive, tmp_path):
    archive.write_bytes(os.urandom(4096))
    plain, with_archive = java(tmp_path), java(tmp_path, *class_archive.java_options())
    assert with_archive.returncode == 0
    assert len(with_archive.stderr.splitlines()) == len(plain.stderr.splitlines())


@pytest.mark.long
def test_what_the_setup_writes_is_an_archive_that_java_takes(tmp_path):
    # A process of its own: this one may have a session already.
    code = "import sys; from pathlib import Path; from tidemark.spark.fast_start.class_archive import write_archive; write_archive(Path(sys.argv[1]))"
    path = tmp_path / "java-classes.jsa"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True)
    assert java(
        tmp_path, "-Xshare:auto", f"-XX:SharedArchiveFile={path}", "-Xlog:cds*=error"
    ).stderr.endswith("sharing)\n")
