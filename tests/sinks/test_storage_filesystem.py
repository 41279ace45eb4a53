"""Stores: local folders, and S3 as a real server process speaks it (moto). What goes wrong there is said clearly and loses nothing."""

import contextlib
import errno
import importlib.util
import os
import uuid

import pytest
from storage_support import files_below, log_of, settings

from servers import S3Server, free_port
from tidemark.config import load
from tidemark.encode.paths import WORK
from tidemark.sinks.storage.doctor import examine
from tidemark.sinks.storage.errors import FileExists, LeaseHeld, StorageError, StoreError
from tidemark.sinks.storage.filesystem import LocalStore, ObjectStore, _fsspec_options, open_store, store_of
from tidemark.sinks.storage.journal import read_checkpoint
from tidemark.sinks.storage.lease import Lease
from tidemark.sinks.storage.log_driver import write_log_to_tree
from tidemark.sinks.storage.reader import read_tree


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    server = S3Server(tmp_path_factory.mktemp("s3"))
    try:
        server.make_bucket()
        yield server
    finally:
        server.stop()


# Sink URIs of further stores, each of a bucket or container that is there: Azurite, fake-gcs-server, or real ones.
OTHERS = os.environ.get("TIDEMARK_TEST_STORE_URIS", "").split()


def shown(param):
    """A store without the options of its URI, which may hold secrets."""
    return param.partition("?")[0]


@pytest.fixture(params=["local", "memory", "s3", *OTHERS], ids=shown)
def store(request, tmp_path):
    return store_at(request, tmp_path)


def store_at(request, tmp_path):
    """A prefix of the test's own."""
    folder = f"{tmp_path.name}-{uuid.uuid4().hex[:8]}"
    if request.param == "local":
        return LocalStore(str(tmp_path / "tree"))
    if request.param == "memory":
        return open_store(f"memory://{folder}")
    if request.param == "s3":
        return store_of(load(None, request.getfixturevalue("s3").uri(folder)))
    place, _, options = request.param.partition("?")
    return store_of(load(None, f"{place.rstrip('/')}/{folder}?{options}"))


def test_what_is_written_is_read(store):
    store.write("a/b/file", b"content")
    assert store.read("a/b/file") == b"content"
    assert store.size("a/b/file") == 7
    store.write("a/b/file", b"other")
    assert store.read("a/b/file") == b"other"


def test_what_is_not_there(store):
    assert store.read_optional("nothing") is None
    assert store.size("nothing") is None
    assert store.list("nothing") == []
    assert store.walk("nothing") == []
    store.delete("nothing")
    with pytest.raises(StoreError, match="nothing does not exist"):
        store.read("nothing")


def test_a_folder_is_no_file(store):
    store.write("a/file", b"x")
    found = [(entry.path, entry.is_folder) for entry in store.list("") if entry.path != WORK]
    assert found == [("a", True)]
    assert not store.exists("a")
    assert [(entry.path, entry.size) for entry in store.list("a")] == [("a/file", 1)]


def test_walk_finds_all_files_by_path(store):
    for path in ("b/2", "a/x/1", "a.json", "a/0"):
        store.write(path, b"x")
    assert [entry.path for entry in store.walk()] == ["a.json", "a/0", "a/x/1", "b/2"]
    assert [entry.path for entry in store.walk("a")] == ["a/0", "a/x/1"]


def test_a_new_file_appears_complete(store):
    with store.new_file("a/file") as file:
        file.write(b"one")
        assert not store.exists("a/file")
        file.write(b"two")
    assert store.read("a/file") == b"onetwo"


def test_a_new_file_that_fails_does_not_appear(store):
    def fail(file):
        file.write(b"one")
        raise RuntimeError

    with pytest.raises(RuntimeError), store.new_file("a/file") as file:
        fail(file)
    assert store.walk() == []


def test_place_keeps_the_source_and_never_overwrites(store):
    store.write("staged", b"new")
    store.place("staged", "a/file")
    assert store.read("a/file") == store.read("staged") == b"new"
    store.write("staged", b"newer")
    with pytest.raises(FileExists, match="never overwritten"):
        store.place("staged", "a/file")
    assert store.read("a/file") == b"new"


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/x", "a//b", "a/./b", "x\0y", ".."])
def test_paths_never_leave_the_prefix(store, path):
    for attempt in (store.size, store.read_optional, store.delete, lambda path: store.write(path, b"")):
        with pytest.raises(StorageError, match="leave the prefix"):
            attempt(path)


def test_awkward_names_are_kept(store):
    for path in ("a b/ü", "a+b&c=d/e", "%2F/x", "日本/語", "a#b?c", "a*b[c]"):
        store.write(path, path.encode())
    assert [entry.path.encode() for entry in store.walk()] == sorted(
        store.read(entry.path) for entry in store.walk()
    )


def test_case_is_told_apart(store):
    assert store.is_case_sensitive("probe")
    assert store.walk() == []


def test_files_without_links_are_copied(tmp_path, monkeypatch):
    def no_links(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    store = LocalStore(str(tmp_path))
    store.write("staged", b"new")
    store.place("staged", "a/file")
    assert store.read("a/file") == b"new"
    with pytest.raises(FileExists):
        store.place("staged", "a/file")


# The whole sink on object stores.


@pytest.fixture(params=["s3", *OTHERS], ids=shown)
def object_store(request, tmp_path):
    return store_at(request, tmp_path)


@pytest.mark.parametrize("protocol", ["csv", "canal-json"])
def test_a_tree_in_an_object_store_is_the_tree_of_a_folder(object_store, tmp_path, protocol):
    given = settings(protocol, file_index_digit=6)
    write_log_to_tree([log_of("orders")], given, str(tmp_path))
    write_log_to_tree([log_of("orders")], given, object_store)
    found = {entry.path: object_store.read(entry.path) for entry in object_store.walk()}
    assert found == files_below(tmp_path)
    assert sum(len(batch.changes) for batch in read_tree(object_store, given)) == 54
    assert examine(object_store, given).findings == []


def test_a_second_writer_in_an_object_store_is_refused(object_store):
    with Lease.acquire(object_store, "the first"), pytest.raises(LeaseHeld, match="the first"):
        write_log_to_tree([log_of("orders")], settings(), object_store)
    assert object_store.walk() == []


@pytest.mark.parametrize(
    ("given", "secret"),
    [
        ("account-key=a2V5PT0%3D", "AccountKey=a2V5PT0="),
        ("sas-token=%3Fsig%3Dx", "SharedAccessSignature=sig=x"),
    ],
)
def test_an_endpoint_of_azure_is_applied(given, secret):
    uri = f"azblob://c/p?protocol=csv&endpoint=http://127.0.0.1:10000/a&account-name=a&{given}"
    assert _fsspec_options(load(None, uri)) == {
        "connection_string": f"BlobEndpoint=http://127.0.0.1:10000/a;AccountName=a;{secret}"
    }


def test_a_missing_bucket_is_a_clear_error(s3):
    store = store_of(load(None, s3.uri("x").replace("trees", "no-such-bucket")))
    with pytest.raises(StoreError, match="s3://no-such-bucket/x"):
        write_log_to_tree([log_of("orders")], settings(), store)


def test_wrong_credentials_are_a_clear_error(tmp_path):
    server = S3Server(tmp_path, checked=True)
    try:
        server.make_bucket()
        store = store_of(load(None, server.uri("x", key="wrong")))
        with pytest.raises(StoreError, match="credentials") as raised:
            write_log_to_tree([log_of("orders")], settings(), store)
        assert "secret" not in str(raised.value).replace("secret-access-key", "")
    finally:
        server.stop()


def test_an_endpoint_that_does_not_answer_is_a_clear_error():
    uri = f"s3://trees/x?protocol=csv&endpoint=http://127.0.0.1:{free_port()}&region=us-east-1&access-key=k&secret-access-key=s"
    store = store_of(load(None, uri))
    store._fs.config_kwargs = {
        **store._fs.config_kwargs,
        "retries": {"max_attempts": 0},
        "connect_timeout": 1,
    }
    store._fs.retries = 1
    with pytest.raises(StoreError, match="check endpoint"):
        store.write("file", b"")


# Local folders that somebody else changes.


def test_a_file_that_goes_away_or_leads_nowhere_hides_no_other(tmp_path, monkeypatch):
    for name in ("a", "gone", "z"):
        (tmp_path / name).write_bytes(b"xy")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")

    def scan_and_remove(folder, scandir=os.scandir):
        found = list(scandir(folder))
        (tmp_path / "gone").unlink()
        return contextlib.nullcontext(found)

    monkeypatch.setattr(os, "scandir", scan_and_remove)
    listed = LocalStore(str(tmp_path)).list("")
    assert [(entry.path, entry.size) for entry in listed] == [("a", 2), ("link", 0), ("z", 2)]


# Local folders that cannot be written to.


def test_a_prefix_below_a_file_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match=r"cannot write .*file/tree.*choose another"):
        write_log_to_tree([log_of("orders")], settings(), str(tmp_path / "file" / "tree"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_prefix_is_a_clear_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="check the permissions"):
        write_log_to_tree([log_of("orders")], settings(), str(tmp_path / "tree"))


def test_a_refused_write_is_a_clear_error(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "makedirs", refuse)
    with pytest.raises(StoreError, match="Permission denied; check the permissions"):
        write_log_to_tree([log_of("orders")], settings(), str(tmp_path / "tree"))


class FullDisk(LocalStore):
    """No space is left after so many files. `place` needs none: it makes links."""

    def __init__(self, root, files: int):
        super().__init__(root)
        self.files = files

    def new_file(self, path):
        self.files -= 1
        if self.files < 0:
            raise StoreError(f"cannot write {path}: No space left on device")
        return super().new_file(path)


def test_a_full_disk_says_so(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left on device; free some space and run again"):
        LocalStore(str(tmp_path)).write("a/file", b"x")
    assert files_below(tmp_path) == {}


@pytest.mark.parametrize("files", [1, 2, 5, 10, 15, 20, 25])
def test_a_full_disk_loses_nothing(tmp_path, files):
    """Wherever it happens: the checkpoint does not move past what is there, and a later run gives the whole tree."""
    given = settings(file_index_digit=6)
    write_log_to_tree([log_of("orders")], given, str(tmp_path / "whole"))
    whole = files_below(tmp_path / "whole")
    with pytest.raises(StoreError, match="No space"):
        write_log_to_tree([log_of("orders")], given, FullDisk(str(tmp_path / "tree"), files))
    assert read_checkpoint(LocalStore(str(tmp_path / "tree"))) == 0
    write_log_to_tree([log_of("orders")], given, str(tmp_path / "tree"))
    assert files_below(tmp_path / "tree") == whole


# URIs


def test_a_full_folder_of_temporary_files_is_named(tmp_path, monkeypatch):
    """Files for object stores are collected there."""

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    store = open_store(f"memory://{tmp_path.name}")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    with pytest.raises(StoreError) as raised, store.new_file("a/file") as file:
        full(file)
    assert f"a temporary file in {tmp_path} for memory://{tmp_path.name}/a/file" in str(raised.value)
    assert "TMPDIR" in str(raised.value)
    assert "free some space" in str(raised.value)
    assert not store.exists("a/file")
    monkeypatch.setattr("tempfile.NamedTemporaryFile", full)
    with pytest.raises(StoreError, match="No space left"), store.new_file("a/file"):
        pass


def test_the_sink_uri_names_the_store(tmp_path):
    store = store_of(load(None, f"file://{tmp_path}/a%20b?protocol=csv"))
    store.write("x", b"")
    assert (tmp_path / "a b" / "x").exists()


def test_a_scheme_without_files_is_refused():
    with pytest.raises(StoreError, match="known schemes"):
        open_store("noop://x")
    with pytest.raises(StoreError, match="not one of a storage sink"):
        store_of(load(None, "kafka://127.0.0.1:9092/t?protocol=canal-json"))


@pytest.mark.parametrize(("scheme", "package"), [("gcs", "gcsfs"), ("azblob", "adlfs")])
def test_a_missing_package_is_named(scheme, package):
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed")
    with pytest.raises(StoreError, match=f"needs the package {package}"):
        open_store(f"{scheme}://bucket/x")


def test_no_listing_is_cached():
    first, second = open_store("memory://shared"), open_store("memory://shared")
    assert isinstance(first, ObjectStore)
    assert second.walk() == []
    first.write("a", b"x")
    assert [entry.path for entry in second.walk()] == ["a"]
    first.delete("a")
