"""Event-log files: found by path, glob, folder or fsspec URL, and opened for reading."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tidemark.errors import TidemarkError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

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


class LogListing:
    """What one command knows of the files behind its paths: a folder or a prefix of an object store is listed once, however many look at it."""

    def __init__(self) -> None:
        self._found: dict[str, list[LogFile]] = {}

    def find(self, path: str) -> list[LogFile]:
        name = _one_name(path)
        if name not in self._found:
            self._found[name] = find_logs(path)
        return self._found[name]

    def forget(self) -> None:
        """Whoever plans a second time wants to see what has come meanwhile."""
        self._found = {}


def _one_name(path: str) -> str:
    return path if is_url(path) else os.path.abspath(os.path.expanduser(path))


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
    path = _one_name(path)
    if os.path.isfile(path):
        return [LogFile(path, os.path.getsize(path))]
    if os.path.isdir(path):
        return list(_files_below(path))
    if glob.has_magic(path):
        return [file for match in _outermost(glob.glob(path, recursive=True)) for file in _find_local(match)]
    raise LogNotFound(
        f"the event log {path} does not exist: give the path of a file of frames, a folder of such files, or a glob "
        f"(`tidemark demo-log --out {path}` writes an example)"
    )


def _files_below(folder: str) -> Iterator[LogFile]:
    folders = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif entry.is_file():
                yield LogFile(entry.path, entry.stat().st_size)
    for inner in folders:
        yield from _files_below(inner)


def _outermost(matches: list[str]) -> list[str]:
    """Without what is in a folder that is among them: `**` finds a folder, and everything in it again."""
    folders = {match.rstrip(os.sep) for match in matches if os.path.isdir(match)}
    return [match for match in matches if folders.isdisjoint(map(str, Path(match).parents))]


def _find_remote(url: str) -> list[LogFile]:
    import fsspec

    with _explained(url):
        filesystem, path = fsspec.core.url_to_fs(url)
        # Some clients remember listings for as long as the process lives.
        filesystem.invalidate_cache(path)
        if glob.has_magic(path):
            found = filesystem.glob(path, detail=True)
        else:
            found = filesystem.find(path, detail=True)
        # Asked only where nothing was found: every question may be a listing of its own.
        if not found and not glob.has_magic(path) and not filesystem.exists(path):
            raise LogNotFound(
                f"the event log {url} does not exist: give a file of frames, a folder of such files, or a glob"
            )
        return [
            LogFile(filesystem.unstrip_protocol(name), _size(filesystem, name, info))
            for name, info in found.items()
            if info.get("type") != "directory"
        ]


def _size(filesystem: AbstractFileSystem, name: str, info: Mapping[str, Any]) -> int:
    size = info.get("size")
    return filesystem.size(name) if size is None else size


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
