"""Second phase, in the driver: what tasks have staged becomes part of the tree.

    open_tree     take the lease, finish what an interrupted run has begun, remove leftovers
    publish       plan, write the plan down (journal.py), carry it out: schema files, data, index, and the checkpoint last

Both refuse a tree of ours from which something is gone (record.py).

A crash at any point, followed by the same command, gives the bytes of a run without the crash: before the journal nothing of the tree has changed, and from
then on the journal is carried out. A run whose checkpoint the tree has reached already does nothing.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tidemark.encode.paths import WORK
from tidemark.sinks.storage.errors import NameCollision, StaleRange, StorageError
from tidemark.sinks.storage.filesystem import Store
from tidemark.sinks.storage.index import Numbering
from tidemark.sinks.storage.journal import (
    DataStep,
    Journal,
    discard_leftovers,
    pending,
    read_checkpoint,
)
from tidemark.sinks.storage.layout import StorageLayout
from tidemark.sinks.storage.lease import Lease
from tidemark.sinks.storage.record import Position, Record, check_record, read_record, record_of
from tidemark.sinks.storage.schema_versions import SchemaVersions
from tidemark.sinks.storage.span import Span
from tidemark.sinks.storage.writer import StagedStream
from tidemark.words import counted


@dataclass(frozen=True)
class OpenTree:
    """A tree that this run alone may write to. A context manager: the lease ends with the block."""

    store: Store
    lease: Lease
    # Where the next run begins.
    checkpoint: int
    # Checkpoints of runs that were finished on the way.
    recovered: tuple[int, ...] = ()

    def __enter__(self) -> OpenTree:
        return self

    def __exit__(self, *_: object) -> None:
        self.lease.release()


@dataclass(frozen=True)
class Published:
    checkpoint: int
    # False: the tree had this checkpoint, or a later one, already.
    wrote: bool
    files: tuple[str, ...] = ()
    schema_files: tuple[str, ...] = ()
    rows: int = 0
    bytes: int = 0
    warnings: list[str] = field(default_factory=list)


def open_tree(store: Store, purpose: str = "a storage sink") -> OpenTree:
    """Call this first: it tells where the run begins."""
    lease = Lease.acquire(store, purpose)
    try:
        recovered = recover(store, lease)
        discard_leftovers(store)
        checkpoint = read_checkpoint(store)
        check_record(store, checkpoint)
        return OpenTree(store, lease, checkpoint, recovered)
    except BaseException:
        lease.release()
        raise


def planned_position(store: Store) -> tuple[int, Position | None]:
    """Checkpoint and position from which the next run begins, without changing anything: what was interrupted will have been finished by then."""
    interrupted = [Journal.load(store, path) for path in pending(store)]
    if interrupted:
        last = max(interrupted, key=lambda journal: journal.checkpoint)
        return last.checkpoint, Record.from_text(last.record).position if last.record else None
    checkpoint, record = read_checkpoint(store), read_record(store)
    return checkpoint, record.position if record and record.checkpoint == checkpoint else None


def recover(store: Store, lease: Lease) -> tuple[int, ...]:
    """Finish interrupted publications. Returns their checkpoints."""
    journals = [Journal.load(store, path) for path in pending(store)]
    for journal in journals:
        journal.carry_out(store, lease)
    return tuple(journal.checkpoint for journal in journals)


def publish(
    store: Store,
    lease: Lease,
    layout: StorageLayout,
    span: Span,
    staged: Iterable[StagedStream],
    schema_files: Mapping[str, bytes],
    *,
    accept_missing_files: bool = False,
    position: Position | None = None,
) -> Published:
    """Make staged files and the schema files of DDL statements (path -> content) visible, and move the checkpoint to the end of the span.

    accept_missing_files: data files may have been removed on purpose (the option missing-files of the sink URI).
    position: which rows of the logs the tree has then, where the run is one of the models'.
    """
    lease.check()
    recover(store, lease)
    checkpoint = read_checkpoint(store)
    check_record(store, checkpoint)
    if span.end <= checkpoint and (
        not span.takes_late_rows or planned_position(store) == (span.end, position)
    ):
        return Published(checkpoint, False)
    if span.start != checkpoint:
        raise StaleRange(
            f"the run is for {span.start} < ts <= {span.end}, but the checkpoint of {store.shown} is {checkpoint}; "
            "plan again from that checkpoint"
        )
    record = record_of(store, checkpoint)
    warnings = _of_takeover(record)
    streams = _checked(list(staged), span)
    numbering = Numbering(store, layout.digits, record.announced, accept_missing_files, warnings)
    journal = _plan(store, layout, span, streams, schema_files, record, numbering, position)
    journal.save(store)
    journal.carry_out(store, lease)
    files = [file for stream in streams for file in stream.files]
    return Published(
        span.end,
        True,
        tuple(step.path for step in journal.data),
        tuple(path for path, _ in journal.schema_files),
        sum(file.rows for file in files),
        sum(file.size for file in files),
        warnings,
    )


def _of_takeover(record: Record) -> list[str]:
    if not record.is_taken_over or not record.announced:
        return []
    some = ", ".join(sorted(record.announced)[:3]) + (", …" if len(record.announced) > 3 else "")
    return [
        f"the tree was written by somebody else until now, and {counted(len(record.announced), 'index', 'indexes')} of it ({some}) "
        "name a file that is not there; their numbers are used, as TiCDC does"
    ]


def _checked(streams: list[StagedStream], span: Span) -> list[StagedStream]:
    """By version, as SchemaVersions wants them. The same description twice is a task that was counted twice; two different ones of one stream are a mistake."""
    unique: dict[str, StagedStream] = {}
    for staged in streams:
        for file in staged.files:
            if file.first_commit_ts not in span or file.last_commit_ts not in span:
                raise StaleRange(f"{file.path} holds rows outside of {span.start} < ts <= {span.end}")
        key = staged.stream.key()
        if unique.setdefault(key, staged) != staged:
            raise StorageError(
                f"two tasks wrote rows of {staged.stream.schema}.{staged.stream.table} for one folder; "
                "rows of one folder stream must be in one task"
            )
    return sorted(unique.values(), key=lambda staged: (staged.stream.version, staged.stream.key()))


def _plan(
    store: Store,
    layout: StorageLayout,
    span: Span,
    streams: list[StagedStream],
    schema_files: Mapping[str, bytes],
    record: Record,
    numbering: Numbering,
    position: Position | None,
) -> Journal:
    streams = [staged for staged in streams if staged.files]
    versions = SchemaVersions(store, dict(schema_files))
    versions.look_up(streams)
    folders = {staged.stream: versions.folder_version(staged) for staged in streams}
    versions.verify()
    _refuse_collisions(store, [*versions.planned, *(staged.schema_path for staged in streams)])
    by_index = {layout.index_path(stream, version): (stream, version) for stream, version in folders.items()}
    counts = Counter[str]()
    for staged in streams:
        counts[layout.index_path(staged.stream, folders[staged.stream])] += len(staged.files)

    def first_number(index: str) -> int:
        stream, version = by_index[index]
        folder = layout.data_folder(stream.folder(version))
        return numbering.next(folder, index, extension, stream.dispatcher, counts[index])

    extension = streams[0].extension if streams else ""
    numbers = dict(zip(by_index, store.for_each(first_number, by_index), strict=True))
    data: list[DataStep] = []
    last_names: dict[str, str] = {}
    for staged in streams:
        stream, version = staged.stream, folders[staged.stream]
        folder, index = layout.data_folder(stream.folder(version)), layout.index_path(stream, version)
        for file in staged.files:
            name = layout.file_name(stream, numbers[index], extension)
            data.append(DataStep(file.path, f"{folder}/{name}", file.size, file.checksum))
            last_names[index] = name
            numbers[index] += 1
    return Journal(
        span.start,
        span.end,
        tuple((path, content.decode()) for path, content in versions.planned.items()),
        tuple(data),
        tuple((path, f"{name}\n") for path, name in last_names.items()),
        record.after(span.end, set(last_names), position).to_text(),
    )


def _refuse_collisions(store: Store, schema_files: list[str]) -> None:
    """Two tables (or databases) whose folders are one where case, or the way an accent is written, does not matter: of this run, or of the tree."""
    if store.is_case_sensitive(WORK):
        return
    spelled: dict[str, str] = {}
    for folder in sorted({path.rpartition("/meta/")[0] for path in schema_files}):
        parts = folder.split("/")
        for depth in range(len(parts)):
            parent = "/".join(parts[:depth])
            if _folded(f"{parent}/") not in spelled:
                spelled[_folded(f"{parent}/")] = parent
                spelled |= {
                    _folded(entry.path): entry.path for entry in store.list(parent) if entry.is_folder
                }
            path = "/".join(parts[: depth + 1])
            other = spelled.setdefault(_folded(path), path)
            if other != path:
                raise NameCollision(
                    f"{other} and {path} are one folder on {store.shown}, which does not tell upper from lower case; use table-id paths"
                )


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()
