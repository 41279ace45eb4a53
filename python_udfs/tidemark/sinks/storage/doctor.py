"""Looks for what is wrong with a storage tree, TiCDC's or ours.

| code | level | what |
|---|---|---|
| metadata-unreadable, record-unreadable | error | `metadata` is not {"checkpoint-ts":N}; the record of what Tidemark published is not its own (record.py) |
| metadata-missing | error | `metadata` is gone from a tree that Tidemark has written; a warning where there are data files and Tidemark wrote none of them |
| checkpoint-went-back | error | the checkpoint is lower than one that Tidemark has published |
| checkpoint-in-future | warning | the checkpoint is later than the clock of this machine |
| checkpoint-beyond-data | error | an index names a file that is not there: the checkpoint vouches for rows that are gone |
| gap-in-numbers | error | a number is missing between the first and the last file (numbers.py) |
| first-file-missing | error | the numbers of a folder do not begin at 1 |
| index-missing, index-unreadable, index-stale | warning | no index, one that names no data file, or one that names an earlier file than the last |
| schema-missing | error | a folder of data files without a schema file of its version |
| schema-mismatch | error | a schema file that is not what its name says, or cannot be read |
| file-unreadable | error | a data file that is torn or does not fit its schema file |
| commit-ts-decreases | error | inside a file |
| commit-ts-overlap | error | a later file takes a row (by primary key) back to an earlier commit ts |
| files-overlap | note | files overlap in time but no row goes back: partitions that share a folder do that |
| duplicate-rows | error | the same change of the same row, at the same commit ts, twice |
| rows-after-checkpoint | note | rows that the checkpoint does not vouch for yet |
| staging-left, publication-interrupted | warning | what a run left that did not end; the next run finishes it or cleans up |
| being-written | note | a writer is at work |
| unknown-file | warning | a file that is no part of a tree |

With missing-files=accept in the sink URI, files that are missing are notes: checkpoint-beyond-data, gap-in-numbers and first-file-missing.
Commit ts can be checked where the files have them: CSV with include-commit-ts, canal-json with enable-tidb-extension.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.config import Settings
from tidemark.encode import paths
from tidemark.encode.errors import EncodeError
from tidemark.errors import TidemarkError
from tidemark.sinks.storage import lease
from tidemark.sinks.storage.avro_rows import count_rows
from tidemark.sinks.storage.filesystem import PARTIAL, Store, open_store
from tidemark.sinks.storage.findings import (
    ERROR,
    NOTE,
    WARNING,
    Finding,
    last_file_missing,
    no_metadata,
    went_back,
)
from tidemark.sinks.storage.journal import NAME as JOURNAL
from tidemark.sinks.storage.journal import read_checkpoint
from tidemark.sinks.storage.numbers import numbers_of
from tidemark.sinks.storage.reader import read_file
from tidemark.sinks.storage.record import Record, read_record
from tidemark.sinks.storage.tree import READABLE, DataFile, Folder, Tree, load_schema_file, scan_tree
from tidemark.wire.rows import DELETE, RowBatch
from tidemark.wire.text import canonical_text
from tidemark.words import counted

_TS_LOGICAL_BITS = 18
_CLOCK_TOLERANCE_MS = 60 * 60 * 1000
# Between two values of a key, and in place of a NULL. Neither occurs in text that anybody would confuse with another key.
_BETWEEN, _NULL = "\x1f", "\x00NULL"


@dataclass
class Report:
    prefix: str
    checkpoint: int = 0
    tables: int = 0
    files: int = 0
    rows: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return all(finding.level == NOTE for finding in self.findings)


def examine(prefix: str | Store, settings: Settings | None = None, *, with_data: bool = True) -> Report:
    """`settings`: those that the tree was written with, if its CSV form is not the default. `with_data=False` looks at names only."""
    store = prefix if isinstance(prefix, Store) else open_store(prefix)
    report = Report(store.shown)
    # Before everything else: a run that ends meanwhile moves the checkpoint after the record.
    record = _record(store, report)
    tree = scan_tree(store, settings)
    report.findings += _metadata(tree, record, report)
    report.findings += _work(tree)
    report.findings += (
        Finding("unknown-file", WARNING, path, "is no part of a storage tree") for path in tree.strangers
    )
    report.findings += _schema_files(tree)
    report.tables = len({folder.table_path for folder in tree.folders.values()})
    for folder in sorted(tree.folders.values(), key=lambda folder: folder.path):
        report.files += len(folder.files)
        report.findings += _schema_of(tree, folder)
        for dispatcher in folder.dispatchers():
            report.findings += _numbers(tree, folder, dispatcher)
            if with_data and folder.table_path is not None:
                report.findings += _rows(tree, folder, folder.files_of(dispatcher), settings, report)
    return report


def _record(store: Store, report: Report) -> Record | None:
    try:
        return read_record(store)
    except TidemarkError as error:
        report.findings.append(
            Finding("record-unreadable", ERROR, paths.RECORD, _said(store, paths.RECORD, error))
        )
        return None


def _said(store: Store, path: str, error: TidemarkError) -> str:
    """The error without the path that it begins with, which a finding has already."""
    return str(error).removeprefix(f"{store.shown}/").removeprefix(path).removeprefix(":").strip()


def _metadata(tree: Tree, record: Record | None, report: Report) -> Iterator[Finding]:
    is_interrupted = any(entry.name == JOURNAL for entry in tree.work)
    if not tree.has_metadata:
        if not is_interrupted and (record or tree.folders):
            yield no_metadata(record.checkpoint if record else None)
        return
    try:
        report.checkpoint = read_checkpoint(tree.store)
    except TidemarkError as error:
        yield Finding("metadata-unreadable", ERROR, paths.METADATA, _said(tree.store, paths.METADATA, error))
        return
    if record is not None and report.checkpoint < record.checkpoint and not is_interrupted:
        yield went_back(report.checkpoint, record.checkpoint)
    if report.checkpoint >> _TS_LOGICAL_BITS > time.time() * 1000 + _CLOCK_TOLERANCE_MS:
        yield Finding(
            "checkpoint-in-future",
            WARNING,
            paths.METADATA,
            f"checkpoint {report.checkpoint} is later than now",
        )


def _work(tree: Tree) -> Iterator[Finding]:
    left: dict[str, int] = {}
    for entry in tree.work:
        if entry.path.startswith(f"{lease.FOLDER}/"):
            holder = lease.Holder.parse(tree.store.read_optional(entry.path))
            alive = holder is not None and holder.is_alive(lease.TTL)
            text = f"{holder} is writing" if alive else "a writer has died; the next one takes over"
            yield Finding(
                "being-written" if alive else "staging-left", NOTE if alive else WARNING, entry.path, text
            )
        elif entry.name == JOURNAL:
            yield Finding(
                "publication-interrupted",
                WARNING,
                entry.path,
                "run the sink again: it finishes this before anything else",
            )
        else:
            folder = PARTIAL if entry.path.startswith(f"{PARTIAL}/") else "/".join(entry.path.split("/")[:2])
            left[folder] = left.get(folder, 0) + 1
    for folder, count in left.items():
        yield Finding(
            "staging-left",
            WARNING,
            folder,
            f"{counted(count, 'staged file')}; the next run removes {'it' if count == 1 else 'them'}",
        )


def _schema_files(tree: Tree) -> Iterator[Finding]:
    for versions in tree.schema_files.values():
        for path in (path for version in versions.values() for path in version):
            try:
                load_schema_file(tree.store, path)
            except EncodeError as error:
                yield Finding("schema-mismatch", ERROR, path, _said(tree.store, path, error))


def _schema_of(tree: Tree, folder: Folder) -> Iterator[Finding]:
    if folder.files and folder.version not in tree.schema_files.get(folder.table_path or "", {}):
        yield Finding(
            "schema-missing", ERROR, folder.path, "has data files, but no schema file of its version"
        )


def _numbers(tree: Tree, folder: Folder, dispatcher: str) -> Iterator[Finding]:
    numbers = numbers_of(tree, folder, dispatcher)
    highest = numbers.highest
    missing = NOTE if tree.accepts_missing_files else ERROR
    if numbers.are_first_missing:
        yield Finding("first-file-missing", missing, folder.path, f"missing: {numbers.shown_front()}")
    if numbers.gaps():
        yield Finding("gap-in-numbers", missing, folder.path, f"missing: {numbers.shown_gaps()}")
    if len(set(numbers.found)) != len(numbers.found):
        yield Finding("duplicate-rows", ERROR, folder.path, "two files have the same number")
    path = numbers.index_path
    if path is None:
        yield Finding("index-missing", WARNING, folder.path, f"has files up to number {highest} and no index")
    elif numbers.last is None:
        yield Finding("index-unreadable", WARNING, path, f"holds {numbers.named!r:.80}")
    elif numbers.is_last_missing:
        yield last_file_missing(path, numbers.named, missing)
    elif numbers.last < highest:
        yield Finding(
            "index-stale", WARNING, path, f"names {numbers.named}, the last file is number {highest}"
        )


@dataclass(frozen=True)
class _Changes:
    """The row changes of the files of a folder, one after another."""

    file: np.ndarray
    commit_ts: np.ndarray
    op: np.ndarray
    # Primary key, or the whole row of a table without one.
    key: pa.Array


def _rows(
    tree: Tree, folder: Folder, files: list[DataFile], settings: Settings | None, report: Report
) -> Iterator[Finding]:
    found: list[_Changes] = []
    has_key, after = False, 0
    for place, file in enumerate(files):
        try:
            if file.extension not in READABLE:
                report.rows += count_rows(tree.store.read(file.path), file.extension)
                continue
            batch = read_file(tree, folder, file, settings)
        except TidemarkError as error:
            if not isinstance(error, EncodeError):
                yield Finding("file-unreadable", ERROR, file.path, _said(tree.store, file.path, error))
            continue
        ts = batch.changes.commit_ts
        report.rows += len(ts)
        if len(ts) == 0 or not ts.all():
            continue
        if (ts[1:] < ts[:-1]).any():
            yield Finding(
                "commit-ts-decreases", ERROR, file.path, f"at row {int(np.argmax(ts[1:] < ts[:-1])) + 2}"
            )
        after += int((ts > np.uint64(report.checkpoint)).sum()) if report.checkpoint else 0
        has_key = any(column.is_primary_key for column in batch.table.columns)
        found.append(_Changes(np.full(len(ts), place), ts, batch.changes.op, _keys(batch, has_key)))
    if after:
        yield Finding("rows-after-checkpoint", NOTE, folder.path, counted(after, "row"))
    if found:
        together = _Changes(
            *(
                np.concatenate([getattr(part, name) for part in found])
                for name in ("file", "commit_ts", "op")
            ),
            pa.chunked_array([part.key for part in found]).combine_chunks(),
        )
        yield from _order(folder, together, has_key)
        yield from _duplicates(folder, together, has_key)


def _keys(batch: RowBatch, has_key: bool) -> pa.Array:
    changes, table = batch.changes, batch.table
    rows = pa.array(np.where(changes.op == DELETE, changes.pre, changes.post))
    texts = [
        canonical_text(batch.columns.column(place).take(rows), column)
        for place, column in enumerate(table.columns)
        if column.is_primary_key or not has_key
    ]
    return pc.binary_join_element_wise(*texts, _BETWEEN, null_handling="replace", null_replacement=_NULL)


def _order(folder: Folder, changes: _Changes, has_key: bool) -> Iterator[Finding]:
    ts, file = changes.commit_ts, changes.file
    if not (np.maximum.accumulate(ts)[:-1] > ts[1:]).any():
        return
    codes = changes.key.dictionary_encode().indices.to_numpy()
    order = np.lexsort((np.arange(len(ts)), codes))
    same = (codes[order][1:] == codes[order][:-1]) & (file[order][1:] != file[order][:-1])
    back = same & (ts[order][1:] < ts[order][:-1])
    if has_key and back.any():
        yield Finding(
            "commit-ts-overlap",
            ERROR,
            folder.path,
            f"in a later file, {counted(int(back.sum()), 'row')} back in time",
        )
    elif (file[1:] != file[:-1])[ts[1:] < ts[:-1]].any():
        yield Finding("files-overlap", NOTE, folder.path, "files overlap in time, but no row goes back")


def _duplicates(folder: Folder, changes: _Changes, has_key: bool) -> Iterator[Finding]:
    codes = changes.key.dictionary_encode().indices.to_numpy()
    order = np.lexsort((changes.file, changes.op, changes.commit_ts, codes))
    same = np.ones(len(codes) - 1, bool)
    for values in (codes, changes.commit_ts, changes.op):
        same &= values[order][1:] == values[order][:-1]
    if not has_key:
        # Rows of such a table may be alike; but a transaction does not go on in a second file.
        same &= changes.file[order][1:] != changes.file[order][:-1]
    if same.any():
        yield Finding(
            "duplicate-rows", ERROR, folder.path, f"twice: {counted(int(same.sum()), 'row change')}"
        )
