"""A storage tree as an event log, so that a tree can be what a pipeline reads, and any protocol becomes any other.

    {folder}/{start}-{end}.bin      the frames for start < commit ts <= end, where `end` was the checkpoint of the tree

Each call writes one more file with what the tree has gained; calling it again without new rows writes nothing. A file appears complete or not at all, so the files
themselves say how far the log is. In a file

- every table (partition) of the tree is a dispatcher. Each of its versions opens an epoch with a Handshake, whose ts is the version of the folder (or `start`, where a version goes
  on), and a Resolved event at `end` closes it: also where there is nothing new, so that no table holds back the others;
- every schema file whose version lies in the range is a DDL event of the table trigger.

What a tree does not tell is made up, always the same way: ids of tables from their names (unless the folders are ids), the start ts of a transaction (its commit ts - 1),
row keys (so a table without a key has as many keys as row changes), and the old row of an update where a CSV tree has none: it is taken to be the new one.
A tree without commit ts cannot be put in order and is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from tidemark.config import Settings
from tidemark.config.ddl_kinds import DDL_KINDS
from tidemark.encode.schema_file import SchemaFile
from tidemark.sinks.row_batches import joined, take
from tidemark.sinks.storage.errors import InvalidTree
from tidemark.sinks.storage.filesystem import Store
from tidemark.sinks.storage.journal import read_checkpoint
from tidemark.sinks.storage.reader import read_file, readable_files, table_of
from tidemark.sinks.storage.tree import DataFile, Folder, Tree, load_schema_file, scan_tree
from tidemark.wire.chunk import encode_chunks
from tidemark.wire.events.base import Event
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.events.dml import DMLEvent
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.events.resolved import ResolvedEvent
from tidemark.wire.registry import encode
from tidemark.wire.rows import NO_ROW, UPDATE, RowBatch
from tidemark.wire.table_info import TableInfo

ROWS_PER_FRAME = 4096
_FILE = re.compile(r"(\d{20})-(\d{20})\.bin")
# Statements after which the rows of a table are gone.
_TAKES_ROWS_AWAY = [*DDL_KINDS["drop database"], *DDL_KINDS["drop table"], *DDL_KINDS["truncate table"]]
_SOME_TABLES = 2
# Says which tree a log is of.
_ORIGIN = ".tree"
# Commit ts and number of the row change: the same for both images of an update.
_ROW_KEY = np.dtype([("length", ">u4"), ("commit_ts", ">u8"), ("number", ">u4")])


@dataclass
class Converted:
    folder: Path
    start: int
    checkpoint: int
    # None: the tree has nothing new.
    file: Path | None = None
    rows: int = 0
    warnings: list[str] = field(default_factory=list)


def write_tree_log(store: Store, settings: Settings | None, folder: Path) -> Converted:
    """Write what the tree has gained since the last call. `settings`: those the tree was written with, if its CSV form is not the default one."""
    # Before the files: what a checkpoint vouches for was there when it was written.
    checkpoint = read_checkpoint(store)
    tree = scan_tree(store, settings)
    if not tree.has_metadata:
        raise InvalidTree(f"{store.shown} has no `metadata`, so nobody knows how far it is complete")
    _check_origin(folder, store.shown)
    done = Converted(folder, _last_end(folder), checkpoint)
    if done.checkpoint <= done.start:
        return done
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _ORIGIN).write_text(store.shown)
    target = folder / f"{done.start:020d}-{done.checkpoint:020d}.bin"
    # Readers of logs do not look at hidden files.
    partial = folder / f".{target.name}.partial"
    read = _files_read(folder, done.start)
    with open(partial, "wb", buffering=1 << 20) as file:
        _Writer(tree, settings, done, read, file).write()
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, target)
    _note_files_read(folder, done.checkpoint, read)
    done.file = target
    return done


def _check_origin(folder: Path, shown: str) -> None:
    """A log holds one tree: ranges that another one has covered would be taken for done. A folder of something else stays as it is."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise InvalidTree(f"{folder} is a file; give a folder for the event log") from None
    if _ORIGIN not in names:
        if names and not any(_FILE.fullmatch(name) for name in names):
            raise InvalidTree(
                f"{folder} is not empty and holds no log of a tree; give a new or an empty folder for the event log"
            )
        return
    origin = (folder / _ORIGIN).read_text()
    if origin != shown:
        raise InvalidTree(
            f"{folder} holds the log of the tree {origin}, not of {shown}; give another folder, "
            f"or, if it is the same tree at another place, remove {folder / _ORIGIN}"
        )


def _files_read(folder: Path, start: int) -> set[str]:
    """Data files all of whose rows are in the log. Where the note is missing all files are read again, and old rows are left out by their ts."""
    try:
        return set(json.loads((folder / f".read-{start}.json").read_text()))
    except (OSError, ValueError):
        return set()


def _note_files_read(folder: Path, checkpoint: int, read: set[str]) -> None:
    note = folder / f".read-{checkpoint}.json"
    note.write_text(json.dumps(sorted(read)))
    for other in folder.glob(".read-*.json"):
        if other != note:
            other.unlink()


def _last_end(folder: Path) -> int:
    names = [_FILE.fullmatch(path.name) for path in folder.glob("*.bin")] if folder.is_dir() else []
    return max((int(name[2]) for name in names if name), default=0)


class _Writer:
    def __init__(
        self, tree: Tree, settings: Settings | None, done: Converted, read: set[str], file: BinaryIO
    ):
        self._tree, self._settings, self._done, self._file = tree, settings, done, file
        self._read = read
        self._unread: dict[str, list[DataFile]] = {}
        # Later than all epochs of the file before.
        self._epoch = done.start + 1

    def write(self) -> None:
        self._statements()
        tables: dict[tuple[str, int | None], dict[int, dict[str, Folder]]] = {}
        for folder, file in readable_files(self._tree, self._warn):
            versions = tables.setdefault((folder.table_path or folder.path, folder.partition), {})
            versions.setdefault(folder.version, {})[folder.path] = folder
            if file.path not in self._read:
                self._unread.setdefault(folder.path, []).append(file)
        for (path, partition), versions in tables.items():
            dispatcher = _Dispatcher(_id(f"{path}/{partition or ''}"), self._done.checkpoint)
            for version, folders in sorted(versions.items()):
                if version == max(versions) or self._unread.keys() & folders.keys():
                    self._version(dispatcher, list(folders.values()))

    def _version(self, dispatcher: _Dispatcher, folders: list[Folder]) -> None:
        """The rows of a table version: its folders differ by date, which come in order."""
        table = _table(self._tree, folders[0])
        self._epoch += 1
        begins = max(folders[0].version, self._done.start)
        self._put(dispatcher.handshake(self._epoch, begins, table))
        for folder in folders:
            for batch in self._batches(folder, self._unread.get(folder.path, [])):
                self._done.rows += len(batch.changes)
                for event in dispatcher.batches(batch, table, folder.partition):
                    self._put(event)
        self._put(dispatcher.resolved())

    def _batches(self, folder: Folder, files: list[DataFile]) -> Iterator[RowBatch]:
        batches = (self._new_rows(folder, file) for file in files)
        if len({file.dispatcher for file in files}) <= 1:
            yield from _in_order(batches)
        else:
            # Dispatchers of one table wrote into one folder, each in its own order.
            yield _sorted(list(batches))

    def _new_rows(self, folder: Folder, file: DataFile) -> RowBatch:
        batch = read_file(self._tree, folder, file, self._settings)
        name, ts = f"{batch.table.schema}.{batch.table.table}", batch.changes.commit_ts
        if not ts.all():
            raise InvalidTree(
                f"{self._tree.store.shown}: files of {name} have no commit ts, so their rows cannot be put in order with others; "
                "write the tree with include-commit-ts (CSV) or enable-tidb-extension (canal-json)"
            )
        if ((batch.changes.op == UPDATE) & (batch.changes.pre == NO_ROW)).any():
            self._warn(f"{name}: updates have no old row, the new one is taken for it")
        start, end = np.uint64(self._done.start), np.uint64(self._done.checkpoint)
        if (ts <= end).all():
            self._read.add(file.path)
        return take(batch, np.flatnonzero((ts > start) & (ts <= end)))

    def _statements(self) -> None:
        """The statements behind schema files, in order; each table's file only once, also where partitions share it."""
        found: list[tuple[int, str, SchemaFile]] = []
        for versions in self._tree.schema_files.values():
            for version, paths in versions.items():
                if self._done.start < version <= self._done.checkpoint:
                    found += [(version, path, load_schema_file(self._tree.store, path)) for path in paths]
        self._epoch += 1
        # A schema file that no statement made has none.
        told = sorted((item for item in found if item[2].query), key=lambda item: item[:2])
        for number, (version, path, file) in enumerate(told):
            self._put(self._statement(path, file, version, number + 1))

    def _statement(self, path: str, file: SchemaFile, version: int, seq: int) -> DDLEvent:
        table = _table_after(path, file) if file.table else None
        document = {
            "version": 1,
            "type": file.type,
            "schema_name": file.schema,
            "table_name": file.table,
            "query": file.query,
            "start_ts": version - 1,
            "finished_ts": version,
            "seq": seq,
            "epoch": self._epoch,
            "need_dropped_tables": self._dropped(file),
        }
        return DDLEvent.build(document, _id("the table trigger"), table.to_bytes() if table else b"")

    def _dropped(self, file: SchemaFile) -> dict[str, object] | None:
        if file.type not in _TAKES_ROWS_AWAY:
            return None
        ids = set()
        for folder in self._tree.folders.values():
            if folder.table_path is None:
                continue
            table = _table(self._tree, folder)
            if table.schema == file.schema and file.table in ("", table.table):
                ids.add(table.table_id if folder.partition is None else folder.partition)
        return {"InfluenceType": _SOME_TABLES, "TableIDs": sorted(ids), "SchemaID": 0}

    def _put(self, event: Event) -> None:
        self._file.write(encode(event))

    def _warn(self, text: str) -> None:
        if text not in self._done.warnings:
            self._done.warnings.append(text)


def _in_order(batches: Iterator[RowBatch]) -> Iterator[RowBatch]:
    """Rows by commit ts. Partitions that share a folder are each in order, and a file may overlap with the one before it."""
    held: list[RowBatch] = []
    for batch in batches:
        if len(batch.changes) == 0:
            continue
        if held and batch.changes.commit_ts.min() >= max(one.changes.commit_ts.max() for one in held):
            yield _sorted(held)
            held = []
        held.append(batch)
    if held:
        yield _sorted(held)


def _sorted(batches: list[RowBatch]) -> RowBatch:
    batch = joined(batches) if len(batches) > 1 else batches[0]
    ts = batch.changes.commit_ts
    return take(batch, np.argsort(ts, kind="stable")) if (ts[1:] < ts[:-1]).any() else batch


class _Dispatcher:
    def __init__(self, dispatcher_id: bytes, checkpoint: int):
        self._id, self._checkpoint = dispatcher_id, checkpoint
        self._epoch = self._seq = 0

    def handshake(self, epoch: int, ts: int, table: TableInfo) -> HandshakeEvent:
        self._epoch, self._seq = epoch, 1
        return HandshakeEvent(ts, 1, epoch, self._id, table.to_bytes())

    def resolved(self) -> ResolvedEvent:
        return ResolvedEvent(self._checkpoint, self._epoch, self._seq, self._id)

    def batches(self, batch: RowBatch, table: TableInfo, partition: int | None) -> Iterator[BatchDMLEvent]:
        changes = batch.changes
        count = len(changes)
        if count == 0:
            return
        columns, row_types, change_of_row = _physical_rows(batch)
        keys = np.empty(len(row_types), _ROW_KEY)
        keys["length"] = _ROW_KEY.itemsize - 4
        keys["commit_ts"] = changes.commit_ts[change_of_row]
        keys["number"] = change_of_row
        # A transaction ends where the commit ts changes, and at the end of a frame.
        first = np.flatnonzero(np.append(True, changes.commit_ts[1:] != changes.commit_ts[:-1]))
        first = np.union1d(first, np.arange(0, count, ROWS_PER_FRAME))
        ends = np.append(first[1:], count)
        row_of_change = np.searchsorted(change_of_row, np.arange(count + 1))
        frames = [*np.searchsorted(first, np.arange(0, count, ROWS_PER_FRAME)).tolist(), len(first)]
        bounds = row_of_change[np.append(first, count)[frames]].tolist()
        chunks = encode_chunks(columns, table, bounds)
        rows = row_of_change[np.append(first, count)].tolist()
        counts = (ends - first).tolist()
        times = changes.commit_ts[first].tolist()
        for number, chunk in enumerate(chunks):
            transactions = []
            for index in range(frames[number], frames[number + 1]):
                low, high = rows[index], rows[index + 1]
                self._seq += 1
                transactions.append(
                    DMLEvent(
                        dispatcher_id=self._id,
                        physical_table_id=table.table_id if partition is None else partition,
                        start_ts=times[index] - 1,
                        commit_ts=times[index],
                        seq=self._seq,
                        epoch=self._epoch,
                        row_count=counts[index],
                        approximate_size=0,
                        previous_total_offset=low - bounds[number],
                        row_types=row_types[low:high].tobytes(),
                        key_count=high - low,
                        keys=keys[low:high].tobytes(),
                    )
                )
            yield BatchDMLEvent(tuple(transactions), chunk)


def _physical_rows(batch: RowBatch) -> tuple[pa.RecordBatch, np.ndarray, np.ndarray]:
    """Rows as a chunk has them: one per insert and delete, old and new per update; the type of each, and the number of its row change."""
    changes = batch.changes
    is_update = changes.op == UPDATE
    ends = np.cumsum(1 + is_update)
    source = np.empty(int(ends[-1]), np.int64)
    new = changes.last_images()
    source[ends - 1] = new
    source[ends[is_update] - 2] = np.where(changes.pre == NO_ROW, new, changes.pre)[is_update]
    change = np.repeat(np.arange(len(changes)), 1 + is_update)
    return batch.columns.take(pa.array(source)), changes.op[change].astype(np.uint8), change


def _table_after(path: str, file: SchemaFile) -> TableInfo:
    """The table that a statement left."""
    folder = path.split("/meta/")[0]
    table = file.table_info(
        int(folder) if folder.isascii() and folder.isdigit() else table_id(file.schema, file.table)
    )
    # The columns of a view have no types.
    return replace(table, is_view=any(column.mysql_type == 0 for column in table.columns))


def _table(tree: Tree, folder: Folder) -> TableInfo:
    table = table_of(tree, folder)
    return replace(
        table,
        table_id=table.table_id or table_id(table.schema, table.table),
        is_partition=folder.partition is not None,
    )


def table_id(schema: str, table: str) -> int:
    """An id for a table that is known by its name only."""
    digest = hashlib.sha256(f"{schema}\0{table}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> 2


def _id(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
