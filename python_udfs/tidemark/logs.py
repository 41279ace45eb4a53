"""Event-log files: found by path, glob, folder or fsspec URL, and opened for reading."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from tidemark.errors import TidemarkError

_READ_AHEAD = 256 * 1024


class LogNotFound(TidemarkError):
    """A path that was given as an event log does not lead to one."""


@dataclass(frozen=True, slots=True)
class LogFile:
    path: str
    size: int


def find_logs(path: str) -> list[LogFile]:
    """The files behind `path`, by name: a file, a glob, or a folder (with its subfolders; hidden files are left out).

    A folder or glob without files is an empty log; a path that does not exist is an error.
    """
    found = _find_remote(path) if is_url(path) else _find_local(path)
    return sorted(found, key=lambda file: file.path)


def given_logs(paths: Iterable[str]) -> Iterator[LogFile]:
    """The files behind the paths that a command was given. A folder or glob without a file is an error there; a dbt run waits for its first file."""
    for path in paths:
        found = find_logs(path)
        if not found:
            is_glob = glob.has_magic(path) and not os.path.isdir(os.path.expanduser(path))
            problem = "does not exist, no file matches" if is_glob else "is a folder without files"
            raise LogNotFound(
                f"the event log {path} {problem}: give the path of a file of frames, a folder of such files, or a glob"
            )
        yield from found


def open_log(path: str) -> BinaryIO:
    """The file for reading, without a buffer that would read payloads nobody asked for."""
    if is_url(path):
        import fsspec

        with _explained(path):
            return fsspec.open(path, "rb").open()
    return open(path, "rb", buffering=0)


def open_frames(path: str) -> BinaryIO:
    """The file for reading frames with their payloads, in the order of the file: small ones come together."""
    log = open_log(path)
    # File systems behind URLs read ahead themselves.
    return log if is_url(path) else BufferedReader(log, _READ_AHEAD)


def read_exactly(log: BinaryIO, position: int, size: int) -> bytes:
    log.seek(position)
    data = log.read(size)
    while len(data) < size:
        more = log.read(size - len(data))
        if not more:
            raise OSError(
                f"{getattr(log, 'name', 'the log')} ends at byte {position + len(data)} while it is being read"
            )
        data += more
    return data


def is_url(path: str) -> bool:
    return "://" in path


def _find_local(path: str) -> list[LogFile]:
    path = os.path.abspath(os.path.expanduser(path))
    if os.path.isfile(path):
        return [LogFile(path, os.path.getsize(path))]
    if os.path.isdir(path):
        inside = (file for file in Path(path).rglob("*") if file.is_file())
        visible = (
            file for file in inside if not any(part.startswith(".") for part in file.relative_to(path).parts)
        )
        return [LogFile(str(file), file.stat().st_size) for file in visible]
    if glob.has_magic(path):
        return [file for match in glob.glob(path, recursive=True) for file in _find_local(match)]
    raise LogNotFound(
        f"the event log {path} does not exist: give the path of a file of frames, a folder of such files, or a glob "
        f"(`tidemark demo-log --out {path}` writes an example)"
    )


def _find_remote(url: str) -> list[LogFile]:
    import fsspec

    with _explained(url):
        filesystem, path = fsspec.core.url_to_fs(url)
        if glob.has_magic(path):
            paths = [match for match in filesystem.glob(path) if filesystem.isfile(match)]
        elif filesystem.isdir(path):
            paths = filesystem.find(path)
        elif filesystem.exists(path):
            paths = [path]
        else:
            raise LogNotFound(
                f"the event log {url} does not exist: give a file of frames, a folder of such files, or a glob"
            )
        return [LogFile(filesystem.unstrip_protocol(found), filesystem.size(found)) for found in paths]


@contextmanager
def _explained(url: str) -> Iterator[None]:
    """What an object store objects to, in one sentence. Clients of stores have error classes of their own."""
    try:
        yield
    except TidemarkError:
        raise
    except (ImportError, ValueError) as error:
        raise LogNotFound(f"the event log {url} cannot be opened: {error}") from None
    except Exception as error:
        raise LogNotFound(
            f"the event log {url} cannot be opened: {type(error).__name__}: {error}; check the endpoint, region and credentials "
            "that the environment gives (AWS_ENDPOINT_URL, AWS_DEFAULT_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3://)"
        ) from None
