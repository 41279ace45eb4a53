"""One small interface to the places a tree can be in: a local folder, or an object store through fsspec.

Paths are relative to the prefix, with `/`; one that would leave it is refused. A file appears complete or not at all: locally it is written
in the work folder, synced and renamed, in an object store a put is atomic. `place` never overwrites. Listings are taken as strongly consistent, which
local file systems, S3, GCS and Azure are.

Whatever the store objects to becomes a StoreError that names the place and what to look at.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, TypeVar

from tidemark.encode.paths import WORK
from tidemark.sinks.storage.errors import FileExists, StorageError, StoreError

if TYPE_CHECKING:
    from tidemark.config import Settings

# Where a local file is written before it gets its name.
PARTIAL = f"{WORK}/partial"

_FSSPEC_SCHEMES = {
    "s3": "s3",
    "gcs": "gcs",
    "gs": "gcs",
    "azblob": "abfs",
    "azure": "abfs",
    "memory": "memory",
}
_PACKAGES = {"s3": "s3fs", "gcs": "gcsfs", "abfs": "adlfs"}
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.EXDEV, errno.ENOSYS)


@dataclass(frozen=True)
class Entry:
    """A file, or a folder (without size), by its path below the prefix."""

    path: str
    size: int = 0
    is_folder: bool = False

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Store(ABC):
    """A prefix. `shown` is how it is named in messages."""

    shown: str
    # Requests at the same time. A local disk gains nothing from more than one; a store far away answers late but many at once.
    parallel: int = 1

    @abstractmethod
    def size(self, path: str) -> int | None:
        """Bytes of a file; None when there is none."""

    @abstractmethod
    def read_optional(self, path: str) -> bytes | None: ...

    @abstractmethod
    def write(self, path: str, data: bytes) -> None:
        """Make or replace a file."""

    @abstractmethod
    def new_file(self, path: str) -> contextlib.AbstractContextManager[IO[bytes]]:
        """A file that appears under its name when the block ends, and not at all when it fails."""

    @abstractmethod
    def place(self, source: str, target: str) -> None:
        """`target` with the content of `source`, which stays. FileExists when there is one."""

    @abstractmethod
    def list(self, folder: str) -> list[Entry]:
        """What is directly in a folder, by name; nothing when it does not exist."""

    @abstractmethod
    def walk(self, folder: str = "") -> list[Entry]:
        """Every file below a folder, by path."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """It does not matter whether the file is there."""

    @abstractmethod
    def remove_folder(self, folder: str) -> None:
        """Remove what is left of a folder without files."""

    def exists(self, path: str) -> bool:
        return self.size(path) is not None

    def for_each(self, step: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """The results of a step for each item, in order. After an error no further step is begun."""
        if self.parallel == 1:
            return [step(item) for item in items]
        with ThreadPoolExecutor(self.parallel) as pool:
            waiting = [pool.submit(step, item) for item in items]
            try:
                return [future.result() for future in waiting]
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def read(self, path: str) -> bytes:
        data = self.read_optional(path)
        if data is None:
            raise StoreError(f"{self.shown}/{path} does not exist")
        return data

    def is_case_sensitive(self, folder: str) -> bool:
        """Whether names that differ by case are two files, found out with a file in `folder`."""
        probe, other = f"{folder}/case-probe", f"{folder}/CASE-PROBE"
        self.write(probe, b"")
        try:
            return not self.exists(other)
        finally:
            self.delete(probe)


def check_path(path: str) -> str:
    """`path` if it stays below the prefix."""
    if "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
        raise StorageError(f"the path {path!r:.200} would leave the prefix")
    return path


@contextlib.contextmanager
def _explained(doing: str, where: str) -> Iterator[None]:
    try:
        yield
    except (StorageError, FileExistsError):
        raise
    except OSError as error:
        raise StoreError(f"cannot {doing} {where}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    text = error.strerror or str(error) or type(error).__name__
    hints = {
        errno.ENOSPC: "free some space and run again",
        errno.EDQUOT: "free some space and run again",
        errno.EACCES: "check the permissions of the prefix, or the credentials of the store",
        errno.EPERM: "check the permissions of the prefix, or the credentials of the store",
        errno.EROFS: "choose a prefix that can be written to",
        errno.ENOTDIR: "a part of the prefix is a file; choose another",
        errno.ENAMETOOLONG: "use table-id paths (use-table-id-as-path)",
    }
    code = (
        error.errno
        if error.errno is not None
        else errno.EACCES
        if isinstance(error, PermissionError)
        else None
    )
    return f"{text}; {hints[code]}" if code in hints else text


class LocalStore(Store):
    def __init__(self, root: str):
        self._root = os.path.abspath(os.path.expanduser(root))
        self.shown = self._root

    def _at(self, path: str) -> str:
        return os.path.join(self._root, check_path(path)) if path else self._root

    def size(self, path: str) -> int | None:
        with _explained("look at", self._at(path)):
            try:
                found = os.stat(self._at(path))
            except (FileNotFoundError, NotADirectoryError):
                return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def read_optional(self, path: str) -> bytes | None:
        with _explained("read", self._at(path)):
            try:
                with open(self._at(path), "rb") as file:
                    return file.read()
            except FileNotFoundError:
                return None

    def write(self, path: str, data: bytes) -> None:
        with self.new_file(path) as file:
            file.write(data)

    @contextlib.contextmanager
    def new_file(self, path: str) -> Iterator[IO[bytes]]:
        target, partial = self._at(path), self._at(f"{PARTIAL}/{uuid.uuid4().hex}")
        folder = os.path.dirname(target)
        with _explained("write", target):
            os.makedirs(os.path.dirname(partial), exist_ok=True)
            os.makedirs(folder, exist_ok=True)
            try:
                with open(partial, "xb") as file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(partial, target)
                _sync_folder(folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(partial)
                raise

    def place(self, source: str, target: str) -> None:
        where = self._at(target)
        with _explained("write", where):
            os.makedirs(os.path.dirname(where), exist_ok=True)
            try:
                os.link(self._at(source), where)
            except FileExistsError:
                raise FileExists(f"{where} is already there; data files are never overwritten") from None
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                self._copy(source, target)
            _sync_folder(os.path.dirname(where))

    def _copy(self, source: str, target: str) -> None:
        """For file systems without links. Between the look and the rename only the lease keeps others away."""
        if self.exists(target):
            raise FileExists(f"{self._at(target)} is already there; data files are never overwritten")
        with self.new_file(target) as file, open(self._at(source), "rb") as content:
            shutil.copyfileobj(content, file)

    def list(self, folder: str) -> list[Entry]:
        prefix = f"{folder}/" if folder else ""
        with _explained("list", self._at(folder)):
            try:
                with os.scandir(self._at(folder)) as found:
                    entries = [_local_entry(prefix, item) for item in found]
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted((entry for entry in entries if entry is not None), key=lambda entry: entry.path)

    def walk(self, folder: str = "") -> list[Entry]:
        found: list[Entry] = []
        for entry in self.list(folder):
            found += self.walk(entry.path) if entry.is_folder else [entry]
        return sorted(found, key=lambda entry: entry.path)

    def delete(self, path: str) -> None:
        with _explained("remove", self._at(path)), contextlib.suppress(FileNotFoundError):
            os.unlink(self._at(path))

    def is_case_sensitive(self, folder: str) -> bool:
        """Answered without a probe where the folder is there: under another spelling it is not."""
        other = folder.swapcase()
        if other != folder and os.path.isdir(self._at(folder)):
            return not os.path.isdir(self._at(other))
        return super().is_case_sensitive(folder)

    def remove_folder(self, folder: str) -> None:
        # A folder that is not empty after all stays.
        with contextlib.suppress(OSError):
            for entry in self.list(folder):
                if entry.is_folder:
                    self.remove_folder(entry.path)
            os.rmdir(self._at(folder))


def _local_entry(prefix: str, item: os.DirEntry) -> Entry | None:
    """None for a file that somebody removes meanwhile; a link to nowhere is a file, for somebody to look at."""
    if item.is_dir():
        return Entry(prefix + item.name, 0, True)
    try:
        return Entry(prefix + item.name, item.stat().st_size)
    except FileNotFoundError:
        return Entry(prefix + item.name, 0) if item.is_symlink() else None


def _sync_folder(folder: str) -> None:
    """Make a new name survive a power cut."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class ObjectStore(Store):
    """Any fsspec file system; `root` is bucket and prefix."""

    parallel = 16

    def __init__(self, filesystem: Any, root: str, shown: str):
        self._fs = filesystem
        self._root = root.strip("/")
        self.shown = shown.rstrip("/")

    def _at(self, path: str) -> str:
        return f"{self._root}/{check_path(path)}" if path else self._root

    @contextlib.contextmanager
    def _explained(self, doing: str, path: str) -> Iterator[None]:
        where = f"{self.shown}/{path}"
        try:
            with _explained(doing, where):
                yield
        except (StorageError, FileExistsError):
            raise
        except Exception as error:
            # Clients of object stores have error classes of their own, and which ones depends on the store.
            raise StoreError(
                f"cannot {doing} {where}: {type(error).__name__}: {error}; check endpoint, region and credentials of the sink URI"
            ) from error

    def size(self, path: str) -> int | None:
        with self._explained("look at", path):
            try:
                found = self._fs.info(self._at(path))
            except FileNotFoundError:
                return None
        return found["size"] if found["type"] == "file" else None

    def read_optional(self, path: str) -> bytes | None:
        with self._explained("read", path):
            try:
                return self._fs.cat_file(self._at(path))
            except FileNotFoundError:
                return None

    def write(self, path: str, data: bytes) -> None:
        with self._explained("write", path):
            self._make_parent(path)
            self._fs.pipe_file(self._at(path), data)

    @contextlib.contextmanager
    def new_file(self, path: str) -> Iterator[IO[bytes]]:
        # Collected here and sent at once: an upload that is given up must not leave half an object.
        with _explained("find a folder for the temporary file of", f"{self.shown}/{path}"):
            folder = tempfile.gettempdir()
        where = f"a temporary file in {folder} for {self.shown}/{path} (TMPDIR chooses another folder)"
        with _explained("write", where), tempfile.NamedTemporaryFile(prefix="tidemark-", dir=folder) as file:
            yield file
            file.flush()
            with self._explained("write", path):
                self._make_parent(path)
                self._fs.put_file(file.name, self._at(path))

    def place(self, source: str, target: str) -> None:
        if self.exists(target):
            raise FileExists(f"{self.shown}/{target} is already there; data files are never overwritten")
        with self._explained("write", target):
            self._make_parent(target)
            self._fs.cp_file(self._at(source), self._at(target))

    def _make_parent(self, path: str) -> None:
        """Some fsspec file systems have real folders."""
        if getattr(self._fs, "protocol", None) == "memory":
            self._fs.makedirs(self._at(path).rpartition("/")[0], exist_ok=True)

    def list(self, folder: str) -> list[Entry]:
        with self._explained("list", folder):
            try:
                found = self._fs.ls(self._at(folder), detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted((self._entry(item) for item in found), key=lambda entry: entry.path)

    def walk(self, folder: str = "") -> list[Entry]:
        with self._explained("list", folder):
            try:
                found = self._fs.find(self._at(folder), detail=True)
            except FileNotFoundError:
                return []
        entries = (self._entry(item) for item in found.values())
        return sorted((entry for entry in entries if entry.path), key=lambda entry: entry.path)

    def _entry(self, item: dict[str, Any]) -> Entry:
        path = item["name"].strip("/")[len(self._root) :].strip("/")
        return Entry(path, item["size"] or 0, item["type"] == "directory")

    def delete(self, path: str) -> None:
        with self._explained("remove", path), contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(self._at(path))

    def remove_folder(self, folder: str) -> None:
        """Object stores have no folders."""


def open_store(url: str, **options: Any) -> Store:
    """The prefix behind a path or URL; `options` go to fsspec."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return LocalStore(url)
    if scheme in ("file", "local"):
        return LocalStore(rest)
    if scheme not in _FSSPEC_SCHEMES:
        known = ", ".join(["file", *_FSSPEC_SCHEMES])
        raise StoreError(f"no tree can be kept at {scheme}://…; known schemes: {known}")
    import fsspec

    protocol = _FSSPEC_SCHEMES[scheme]
    try:
        filesystem = fsspec.filesystem(
            protocol, use_listings_cache=False, skip_instance_cache=True, **options
        )
    except ImportError as error:
        raise StoreError(
            f"{scheme}:// needs the package {_PACKAGES.get(protocol, protocol)}: {error}; install it with pip"
        ) from None
    return ObjectStore(filesystem, rest, f"{scheme}://{rest}")


def store_of(settings: Settings) -> Store:
    """The prefix of the sink URI, opened with its options."""
    uri = settings.uri
    if settings.sink_kind != "storage":
        raise StoreError(f"the sink URI {uri.shown} is not one of a storage sink")
    if uri.scheme == "file":
        return LocalStore(uri.path if not uri.host else f"{uri.host}{uri.path}")
    return open_store(
        f"{uri.scheme}://{uri.hosts[0] if uri.hosts else ''}{uri.path}", **_fsspec_options(settings)
    )


def _fsspec_options(settings: Settings) -> dict[str, Any]:
    options = settings.uri.options
    if settings.uri.scheme == "s3":
        found = {
            "key": options.access_key,
            "secret": options.secret_access_key,
            "token": options.session_token,
            "endpoint_url": options.endpoint,
            "profile": options.profile,
            "client_kwargs": {"region_name": options.region} if options.region else None,
            "config_kwargs": {"s3": {"addressing_style": "path"}} if options.force_path_style else None,
            "s3_additional_kwargs": _s3_put_options(settings),
        }
    elif settings.uri.scheme in ("gcs", "gs"):
        found = {"token": options.credentials_file, "endpoint_url": options.endpoint}
    elif options.endpoint:
        found = {"connection_string": _azure_connection(options)}
    else:
        found = {
            "account_name": options.account_name,
            "account_key": options.account_key,
            "sas_token": options.sas_token,
        }
    return {name: value for name, value in found.items() if value}


def _azure_connection(options: Any) -> str:
    """Only a connection string names an endpoint that is not the one of the account."""
    parts = {
        "BlobEndpoint": options.endpoint,
        "AccountName": options.account_name,
        "AccountKey": options.account_key,
        "SharedAccessSignature": options.sas_token.removeprefix("?"),
    }
    return ";".join(f"{name}={value}" for name, value in parts.items() if value)


def _s3_put_options(settings: Settings) -> dict[str, str]:
    options = settings.uri.options
    named = {
        "ServerSideEncryption": options.sse,
        "SSEKMSKeyId": options.sse_kms_key_id,
        "ACL": options.acl,
        "StorageClass": options.storage_class,
    }
    return {name: value for name, value in named.items() if value}
