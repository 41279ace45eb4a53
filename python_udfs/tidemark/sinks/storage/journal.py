"""The plan of a publication, complete before its first visible step.

    .tidemark-staging/{start}-{end}/journal.json
    {"format": 1, "start", "checkpoint", "schema_files": [[path, content]], "data": [[staged, path, size, checksum]], "index": [[path, content]],
     "record": content}

Whoever finds a journal carries it out before doing anything else. Every step can be repeated: a schema, index, record or metadata file is written again with the
same bytes, and a data file that is already there with the right bytes is done.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass

from tidemark.encode import paths
from tidemark.encode.paths import WORK
from tidemark.sinks.storage import faults
from tidemark.sinks.storage.errors import FileExists, StorageError, StoreError
from tidemark.sinks.storage.filesystem import Store
from tidemark.sinks.storage.lease import FOLDER as LEASES
from tidemark.sinks.storage.lease import Lease
from tidemark.sinks.storage.span import Span

FORMAT = 1
NAME = "journal.json"


@dataclass(frozen=True)
class DataStep:
    staged: str
    path: str
    size: int
    checksum: int


@dataclass(frozen=True)
class Journal:
    start: int
    checkpoint: int
    schema_files: tuple[tuple[str, str], ...]
    data: tuple[DataStep, ...]
    index: tuple[tuple[str, str], ...]
    # What the run leaves in record.py's file; "" in a journal of an earlier version of Tidemark.
    record: str = ""

    @property
    def span(self) -> Span:
        return Span(self.start, self.checkpoint, takes_late_rows=self.start == self.checkpoint)

    def save(self, store: Store) -> None:
        faults.point("before-journal")
        store.write(f"{self.span.folder}/{NAME}", json.dumps({"format": FORMAT, **asdict(self)}).encode())
        faults.point("journal-written")

    @classmethod
    def load(cls, store: Store, path: str) -> Journal:
        try:
            document = json.loads(store.read(path))
            if document["format"] != FORMAT:
                raise ValueError(f"format {document['format']!r}")
            return cls(
                int(document["start"]),
                int(document["checkpoint"]),
                tuple((str(name), str(content)) for name, content in document["schema_files"]),
                tuple(DataStep(**step) for step in document["data"]),
                tuple((str(name), str(content)) for name, content in document["index"]),
                str(document.get("record", "")),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise StorageError(
                f"{store.shown}/{path} cannot be understood ({type(error).__name__}: {error}); was it written by another version? "
                "Let that version finish, or remove the folder if the tree is known to be complete"
            ) from None

    def carry_out(self, store: Store, lease: Lease) -> None:
        """Schema files, data, index, record, metadata; then the work folder goes."""

        def write_schema_file(file: tuple[str, str]) -> None:
            lease.check()
            store.write(file[0], file[1].encode())
            faults.point("schema-file-written")

        def place(step: DataStep) -> None:
            lease.check()
            _place(store, step)
            faults.point("data-file-placed")

        def write_index(file: tuple[str, str]) -> None:
            lease.check()
            store.write(file[0], file[1].encode())
            faults.point("index-written")

        store.for_each(write_schema_file, self.schema_files)
        store.for_each(place, self.data)
        store.for_each(write_index, self.index)
        faults.point("before-metadata")
        lease.check()
        if self.record:
            store.write(paths.RECORD, self.record.encode())
        faults.point("record-written")
        write_checkpoint(store, self.checkpoint)
        faults.point("metadata-written")
        self._clean(store)

    def _clean(self, store: Store) -> None:
        """The journal goes last: until then the next writer knows what this folder is."""
        journal = f"{self.span.folder}/{NAME}"

        def remove(path: str) -> None:
            store.delete(path)
            faults.point("staged-file-removed")

        store.for_each(
            remove, [entry.path for entry in store.walk(self.span.folder) if entry.path != journal]
        )
        store.delete(journal)
        faults.point("journal-removed")
        store.remove_folder(self.span.folder)


def _place(store: Store, step: DataStep) -> None:
    """A staged file that is gone was placed before a crash, and then the data file is there."""
    if store.size(step.staged) == step.size:
        try:
            store.place(step.staged, step.path)
            return
        except FileExists:
            pass
    there = store.size(step.path)
    if there is None:
        raise StoreError(
            f"{store.shown}/{step.staged}, which {step.path} is made of, is missing or was changed; "
            "the checkpoint has not moved: remove the staging folder and run again"
        )
    if there != step.size or zlib.crc32(store.read(step.path)) != step.checksum:
        raise FileExists(
            f"{store.shown}/{step.path} was written by somebody else in the meantime; data files are never overwritten"
        )


def pending(store: Store) -> list[str]:
    """The journals of publications that were interrupted."""
    folders = [entry.path for entry in store.list(WORK) if entry.is_folder]
    return [path for path in (f"{folder}/{NAME}" for folder in folders) if store.exists(path)]


def discard_leftovers(store: Store) -> None:
    """Remove staged files that no journal speaks of. Only for the holder of the lease, between runs."""
    for entry in store.list(WORK):
        if entry.path == LEASES:
            continue
        files = store.walk(entry.path) if entry.is_folder else [entry]
        store.for_each(store.delete, [file.path for file in files])
        store.remove_folder(entry.path)


def read_checkpoint(store: Store) -> int:
    """The checkpoint of the tree; 0 for a tree that has none."""
    content = store.read_optional(paths.METADATA)
    if content is None:
        return 0
    try:
        checkpoint = json.loads(content)["checkpoint-ts"]
        if type(checkpoint) is not int or not 0 <= checkpoint < 1 << 64:
            raise ValueError(checkpoint)
    except (ValueError, KeyError, TypeError):
        raise StorageError(
            f'{store.shown}/{paths.METADATA} should be {{"checkpoint-ts":N}}, it is {content!r:.100}; '
            "find out who changed it before writing on"
        ) from None
    return checkpoint


def write_checkpoint(store: Store, checkpoint: int) -> None:
    if checkpoint < read_checkpoint(store):
        raise StorageError(f"the checkpoint of {store.shown} is beyond {checkpoint}; it never goes back")
    store.write(paths.METADATA, f'{{"checkpoint-ts":{checkpoint}}}'.encode())
