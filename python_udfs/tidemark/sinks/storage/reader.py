"""A storage tree back into row changes: CSV and canal-json, ours or TiCDC's.

Order: by table folder, table version, partition and date, then by file number; inside a file as written. What is honoured:

- the schema file of the folder's version gives columns and types, and must be what its name says;
- files up to the one the index names are read; with a missing index all are, with a warning, since a file that no index names may still be on its way;
- none of these may be missing, except at the front (numbers.py);
- rows after the checkpoint of `metadata` are left out where their commit ts is known: not all of them need be there yet.

canal-json gives both images of an update. CSV has the new row only, unless output-old-value is on. Commit ts are 0 where the files have none, and so are start ts,
sequence numbers and epochs, which no file has. Which form CSV files have is not written in the tree: give the settings they were written with,
unless they are the defaults; whether there is a commit ts, an is-update field and a header line is seen from the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.config import Settings
from tidemark.errors import TidemarkError
from tidemark.sinks.storage import canal_text
from tidemark.sinks.storage.csv_text import CsvDialect, read_columns
from tidemark.sinks.storage.errors import InvalidTree
from tidemark.sinks.storage.filesystem import Store, open_store
from tidemark.sinks.storage.journal import read_checkpoint
from tidemark.sinks.storage.numbers import numbers_of
from tidemark.sinks.storage.rows import take
from tidemark.sinks.storage.tree import READABLE, DataFile, Folder, Tree, list_again, scan_tree
from tidemark.sinks.storage.values import check_names, csv_values
from tidemark.wire.rows import DELETE, INSERT, NO_ROW, UPDATE, Changes, RowBatch
from tidemark.wire.table_info import TableInfo

_OWN_FIELDS = "ticdc-meta$"
_HEADER = f"{_OWN_FIELDS}operation".encode()
_META_FIELDS = 3
_COMMIT_TS = re.compile(rb"\d{15,20}")
_FLAGS = (b"true", b"false")
# Twenty years, as a difference of two ts.
_LIFETIME = 20 * 366 * 24 * 60 * 60 * 1000 << 18


def read_tree(
    prefix: str | Store,
    settings: Settings | None = None,
    *,
    up_to_checkpoint: bool = True,
    warn: Callable[[str], None] | None = None,
) -> Iterator[RowBatch]:
    """The row changes of a tree, one batch per data file."""
    store = prefix if isinstance(prefix, Store) else open_store(prefix)
    # Before the files: what a checkpoint vouches for was there when it was written.
    checkpoint = read_checkpoint(store) if up_to_checkpoint else None
    tree = scan_tree(store, settings)
    if not tree.has_metadata:
        checkpoint = None
    for folder, file in readable_files(tree, warn):
        batch = read_file(tree, folder, file, settings)
        if checkpoint is not None:
            batch = take(batch, np.flatnonzero(batch.changes.commit_ts <= np.uint64(checkpoint)))
        yield batch


def readable_files(
    tree: Tree, warn: Callable[[str], None] | None = None
) -> Iterator[tuple[Folder, DataFile]]:
    """The data files that the indexes vouch for, in order."""
    warn = warn or (lambda text: None)
    folders = sorted(
        tree.folders.values(),
        key=lambda folder: (
            folder.table_path or folder.path,
            folder.version,
            folder.partition or 0,
            folder.date,
        ),
    )
    for folder in folders:
        for dispatcher in folder.dispatchers():
            last = _last_number(tree, folder, dispatcher, warn)
            for file in folder.files_of(dispatcher):
                if last is None or file.number <= last:
                    yield folder, file
                else:
                    warn(f"{file.path} is not in the index yet and is left out")


def _last_number(tree: Tree, folder: Folder, dispatcher: str, warn: Callable[[str], None]) -> int | None:
    """The number of the last file to read. InvalidTree when one up to it is missing."""
    numbers = numbers_of(tree, folder, dispatcher).up_to_index()
    if numbers.gaps() or numbers.is_last_missing:
        # Somebody may have written since the tree was listed.
        list_again(tree, folder)
        numbers = numbers_of(tree, folder, dispatcher).up_to_index()
    where = f"{tree.store.shown}/{folder.path}"
    what_to_do = (
        "put them back, or write the tree again to another prefix; `tidemark doctor` finds all such places. "
        "If they were removed on purpose, say so in the sink URI: missing-files=accept"
    )
    missing = []
    if numbers.gaps():
        missing.append(f"data files are missing, number {numbers.shown_gaps()}")
    if numbers.is_last_missing:
        missing.append(
            f"the index names {numbers.named}, which is missing, the last file is number {numbers.highest}"
        )
    for text in missing:
        if not tree.accepts_missing_files:
            raise InvalidTree(f"{where}: {text}; {what_to_do}")
        warn(f"{folder.path}: {text}; what they held is not read")
    if numbers.are_first_missing:
        warn(f"{folder.path} begins with number {numbers.found[0]}; what was before it is gone and not read")
    if numbers.index_path is None:
        warn(f"{folder.path} has no index; all of its files are read")
    elif numbers.last is None:
        raise InvalidTree(
            f"{tree.store.shown}/{numbers.index_path} holds {numbers.named!r:.80}, which is no data file"
        )
    return numbers.last


def read_file(tree: Tree, folder: Folder, file: DataFile, settings: Settings | None = None) -> RowBatch:
    """The row changes of one data file."""
    if file.extension not in READABLE:
        raise InvalidTree(
            f"{tree.store.shown}/{file.path}: Avro files are not read back; any Avro library reads them"
        )
    table = table_of(tree, folder)
    data = tree.store.read(file.path)
    try:
        is_csv = file.extension == ".csv"
        parts = _csv_rows(data, table, settings) if is_csv else _canal_rows(data, table, settings)
    except TidemarkError as error:
        raise InvalidTree(f"{tree.store.shown}/{file.path}: {error}") from None
    physical = folder.partition if folder.partition is not None else table.table_id
    return _row_batch(table, parts, physical)


def table_of(tree: Tree, folder: Folder) -> TableInfo:
    """The table of a folder, as far as its schema file tells. Its id is known with table-id paths only, else 0."""
    path = folder.table_path or ""
    return tree.schema_file(folder).table_info(int(path) if path.isascii() and path.isdigit() else 0)


@dataclass(frozen=True)
class _Rows:
    """Row changes before their physical rows are put next to each other."""

    op: np.ndarray
    commit_ts: np.ndarray
    # One row per row change.
    rows: list[pa.Array]
    # One row per update whose old values are known, in order.
    old_rows: list[pa.Array]


def _row_batch(table: TableInfo, parts: _Rows, physical_table_id: int) -> RowBatch:
    count = len(parts.op)
    has_old = (parts.op == UPDATE) & (len(parts.old_rows[0]) > 0)
    ends = np.cumsum(1 + has_old)
    source = np.empty(int(ends[-1]) if count else 0, np.int64)
    source[ends - 1] = np.arange(count)
    source[ends[has_old] - 2] = count + np.arange(int(has_old.sum()))
    arrays = [
        pa.concat_arrays([new, old]).take(pa.array(source)) if len(old) else new
        for new, old in zip(parts.rows, parts.old_rows, strict=True)
    ]
    last = ends - 1
    zeros = np.zeros(count, np.uint64)
    changes = Changes(
        op=parts.op,
        pre=np.where(parts.op == DELETE, last, np.where(has_old, last - 1, NO_ROW)),
        post=np.where(parts.op == DELETE, NO_ROW, last),
        start_ts=zeros,
        commit_ts=parts.commit_ts,
        seq=zeros,
        epoch=zeros,
        physical_table_id=np.full(count, physical_table_id, np.int64),
        row_key=pa.nulls(count, pa.binary()),
    )
    return RowBatch(table, pa.RecordBatch.from_arrays(arrays, schema=table.arrow_schema), changes, b"")


def _dialect(settings: Settings | None) -> CsvDialect:
    return CsvDialect.of(settings) if settings else CsvDialect()


def _canal_rows(data: bytes, table: TableInfo, settings: Settings | None) -> _Rows:
    found = canal_text.read_rows(data, table, _dialect(settings).terminator)
    return _Rows(found.op, found.commit_ts, found.rows, found.old_rows)


def _csv_rows(data: bytes, table: TableInfo, settings: Settings | None) -> _Rows:
    dialect = _dialect(settings)
    names: list[str] | None = None
    if data.startswith(_HEADER):
        header, _, data = data.partition(dialect.terminator.encode())
        names = _header_names(header.decode("utf-8", "surrogateescape"), dialect.delimiter, table)
    fields = read_columns(data, dialect)
    check_names(fields[1:_META_FIELDS], table)
    form = _csv_form(fields, table, names, settings)
    op = _operations(form.op)
    commit_ts = (
        np.zeros(len(op), np.uint64) if form.commit_ts is None else _numbers(form.commit_ts).to_numpy()
    )
    present = iter(form.values)
    rows = [
        csv_values(next(present), column, dialect.binary_encoding_method)
        if column.name in form.present
        else pa.nulls(len(op), field.type)
        for column, field in zip(table.columns, table.arrow_schema, strict=True)
    ]
    old_rows = [array.slice(0, 0) for array in rows]
    if form.is_update is None:
        return _Rows(op, commit_ts, rows, old_rows)
    return _joined_updates(_Rows(op, commit_ts, rows, old_rows), pc.equal(form.is_update, b"true"))


def _header_names(header: str, delimiter: str, table: TableInfo) -> list[str]:
    """A name may have the delimiter in it, which nothing escapes: mostly all columns are there, and then it does not matter."""
    names = [column.name for column in table.columns if not column.is_virtual_generated]
    columns = delimiter + delimiter.join(names)
    return (
        header.removesuffix(columns).split(delimiter) + names
        if header.endswith(columns)
        else header.split(delimiter)
    )


def _joined_updates(lines: _Rows, is_update: pa.BooleanArray) -> _Rows:
    """With output-old-value an update is a D line and, right after it, an I line."""
    flagged = is_update.to_numpy(zero_copy_only=False)
    old, new = flagged & (lines.op == DELETE), flagged & (lines.op == INSERT)
    if not np.array_equal(np.flatnonzero(old) + 1, np.flatnonzero(new)):
        raise InvalidTree("a line says it is half of an update, and its other half is not next to it")
    op = np.where(new, UPDATE, lines.op).astype(np.uint8)[~old]
    keep, gone = pa.array(~old), pa.array(old)
    return _Rows(
        op,
        lines.commit_ts[~old],
        [array.filter(keep) for array in lines.rows],
        [array.filter(gone) for array in lines.rows],
    )


@dataclass(frozen=True)
class _CsvForm:
    """The fields of CSV lines by what they are."""

    op: pa.BinaryArray
    commit_ts: pa.BinaryArray | None
    is_update: pa.BinaryArray | None
    values: list[pa.BinaryArray]
    # Names of the columns that `values` has.
    present: frozenset[str]


def _csv_form(
    fields: list[pa.BinaryArray], table: TableInfo, names: list[str] | None, settings: Settings | None
) -> _CsvForm:
    """`names`: the header line, where there is one."""
    if names is not None:
        return _named_form(fields, table, names)
    present = [column.name for column in table.columns if not column.is_virtual_generated]
    if not fields:
        empty = pa.array([], pa.binary())
        return _CsvForm(empty, None, None, [empty] * len(present), frozenset(present))
    extra = len(fields) - _META_FIELDS - len(present)
    fourth = fields[_META_FIELDS][0].as_py() if len(fields) > _META_FIELDS else None
    # A table's version is the ts at which it became what it is: its rows were committed later, and not decades later.
    has_ts = bool(
        fourth and _COMMIT_TS.fullmatch(fourth) and table.version <= int(fourth) < table.version + _LIFETIME
    )
    has_flag = extra == 2 or (extra == 1 and fourth in _FLAGS)
    if settings is not None:
        has_ts, has_flag = settings.sink.csv.include_commit_ts, settings.sink.csv.output_old_value
    if extra != has_ts + has_flag:
        raise InvalidTree(
            f"a line has {len(fields)} fields, the schema file of {table.schema}.{table.table} has {len(table.columns)} columns. Files "
            "without a header line (output-field-header) do not tell which columns virtual generation or column selectors left out"
        )
    rest = fields[_META_FIELDS:]
    commit_ts = rest.pop(0) if has_ts else None
    is_update = rest.pop(0) if has_flag else None
    return _CsvForm(fields[0], commit_ts, is_update, rest, frozenset(present))


def _named_form(fields: list[pa.BinaryArray], table: TableInfo, names: list[str]) -> _CsvForm:
    fields = fields or [pa.array([], pa.binary())] * len(names)
    if len(names) != len(fields):
        raise InvalidTree(f"the header has {len(names)} fields, the lines have {len(fields)}")
    # Columns come after the fields of the line itself, whatever they are called.
    start = sum(name.startswith(_OWN_FIELDS) for name in names[: _META_FIELDS + 2])
    own, by_name = (
        dict(zip(names[:start], fields, strict=False)),
        dict(zip(names[start:], fields[start:], strict=True)),
    )
    present = [column.name for column in table.columns if column.name in by_name]
    if len(present) != len(by_name):
        unknown = sorted(set(by_name) - set(present))
        raise InvalidTree(f"the header names {unknown[0]!r:.80}, which the schema file does not know")
    return _CsvForm(
        fields[0],
        own.get(f"{_OWN_FIELDS}commit-ts"),
        own.get(f"{_OWN_FIELDS}is-update"),
        [by_name[name] for name in present],
        frozenset(present),
    )


def _operations(letters: pa.BinaryArray) -> np.ndarray:
    op = pc.index_in(letters, pa.array([b"D", b"I", b"U"], pa.binary()))
    if op.null_count:
        raise InvalidTree(
            f"a line begins with {letters.filter(op.is_null())[0].as_py()!r:.40}, not with I, U or D"
        )
    return op.to_numpy().astype(np.uint8)


def _numbers(texts: pa.BinaryArray) -> pa.UInt64Array:
    try:
        return texts.cast(pa.string()).cast(pa.uint64())
    except pa.ArrowInvalid as error:
        raise InvalidTree(f"a commit ts is no number: {error}") from None
