"""First phase: the rows of a folder stream become staged files. Tasks do this, on any machine.

    .tidemark-staging/{start}-{end}/{stream key}/{ordinal}{extension}

Names and contents follow from the rows, the settings and the range alone, so a task that is tried again, or runs twice at the same time, writes the
same files again. A file is closed when, after a whole transaction, its encoded rows (without the header line) reach file-size. This holds for both
values of transaction-atomicity: what `none` would allow to be split is kept whole too.

What is staged is described by a StagedStream, which goes to the driver.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa

from tidemark.encode.protocol import FileBody, FileEncoder
from tidemark.sinks.storage import faults
from tidemark.sinks.storage.errors import RowsOutOfOrder, StorageError, UnencodableRow
from tidemark.sinks.storage.filesystem import Store
from tidemark.sinks.storage.layout import FolderStream, StorageLayout
from tidemark.sinks.storage.span import Span
from tidemark.wire.rows import RowBatch
from tidemark.wire.table_info import TableInfo

# Called with the batch and, per row change, the reason why it cannot be encoded (NULL: it can).
OnError = Callable[[RowBatch, pa.StringArray], None]


@dataclass(frozen=True)
class StagedFile:
    path: str
    size: int
    rows: int
    first_commit_ts: int
    last_commit_ts: int
    checksum: int


@dataclass(frozen=True)
class StagedStream:
    """Everything the driver needs to publish the files of a stream."""

    stream: FolderStream
    extension: str
    # The schema file to write if there is none for this table version.
    schema_checksum: int
    schema_path: str
    schema_content: str
    files: tuple[StagedFile, ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> StagedStream:
        document: dict[str, Any] = json.loads(text)
        try:
            stream, files = document.pop("stream"), document.pop("files")
            return cls(
                stream=FolderStream(**stream), files=tuple(StagedFile(**file) for file in files), **document
            )
        except (KeyError, TypeError) as error:
            raise StorageError(f"this is no description of staged files: {error}") from None


class StreamWriter:
    """Give it the rows of one stream in order, in as many batches as you like, then `finish`."""

    def __init__(
        self,
        store: Store,
        span: Span,
        stream: FolderStream,
        table: TableInfo,
        layout: StorageLayout,
        encoder: FileEncoder,
        file_size: int,
        on_error: OnError | None = None,
    ):
        self._store, self._span, self._stream = store, span, stream
        self._encoder, self._file_size = encoder, file_size
        self._on_error = on_error or _refuse
        self._folder = f"{span.folder}/{stream.key()}"
        self._header = encoder.file_header(table)
        self._new_body = lambda: encoder.file_body(table)
        schema = layout.schema_file_of(table, stream.version)
        self._schema = (
            schema.checksum(),
            layout.schema_file_path(schema, stream.table_id),
            layout.schema_file_content(schema).decode(),
        )
        self._files: list[StagedFile] = []
        self._open: _OpenFile | None = None
        # (commit ts, start ts) of the last row.
        self._last: tuple[int, int] | None = None

    def add(self, batch: RowBatch) -> None:
        """Encode and write row changes."""
        encoded = self._encoder.encode_file(batch)
        if encoded.error is not None:
            self._on_error(batch, encoded.error)
        changes = batch.changes
        self.add_encoded(encoded.data, encoded.lengths, changes.commit_ts, changes.start_ts)

    def add_encoded(
        self,
        data: pa.Buffer | bytes | memoryview,
        lengths: np.ndarray,
        commit_ts: np.ndarray,
        start_ts: np.ndarray,
    ) -> None:
        """Write row changes that are encoded already: their bytes one after another, and the number of bytes of each.

        A length of 0 is a row that could not be encoded.
        """
        kept = lengths > 0
        if not kept.all():
            lengths, commit_ts, start_ts = lengths[kept], commit_ts[kept], start_ts[kept]
        if len(lengths) == 0:
            return
        self._check_order(commit_ts)
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        if offsets[-1] != len(memoryview(data)):
            raise StorageError(f"{offsets[-1]} bytes of rows announced, {len(memoryview(data))} given")
        first = np.ones(len(lengths), bool)
        first[1:] = (commit_ts[1:] != commit_ts[:-1]) | (start_ts[1:] != start_ts[:-1])
        first[0] = self._last != (int(commit_ts[0]), int(start_ts[0]))
        self._last = (int(commit_ts[-1]), int(start_ts[-1]))
        self._write(memoryview(data), offsets, np.flatnonzero(first), commit_ts)

    def _write(
        self, data: memoryview, offsets: np.ndarray, transactions: np.ndarray, commit_ts: np.ndarray
    ) -> None:
        """`transactions`: the rows that begin one, which is where a file that is full is closed."""
        ends = offsets[transactions]
        row, count = 0, len(offsets) - 1
        while row < count:
            written = self._open.size if self._open else 0
            cut = int(np.searchsorted(ends, offsets[row] + self._file_size - written))
            cut = max(cut, int(np.searchsorted(transactions, row)))
            end = int(transactions[cut]) if cut < len(transactions) else count
            if end > row:
                self._append(
                    data[offsets[row] : offsets[end]],
                    offsets[row : end + 1],
                    commit_ts[row],
                    commit_ts[end - 1],
                )
            if cut < len(transactions):
                self._close()
            row = end

    def _append(self, data: memoryview, offsets: np.ndarray, first_ts: np.uint64, last_ts: np.uint64) -> None:
        if self._open is None:
            path = f"{self._folder}/{len(self._files):06d}{self._encoder.extension}"
            self._open = _OpenFile(self._store, path, self._header, self._new_body(), int(first_ts))
        self._open.append(data, offsets, int(last_ts))

    def _close(self) -> None:
        if self._open is not None:
            self._files.append(self._open.close())
            self._open = None

    def _check_order(self, commit_ts: np.ndarray) -> None:
        name = f"{self._stream.schema}.{self._stream.table}"
        last = self._last[0] if self._last else 0
        if int(commit_ts[0]) < last or (len(commit_ts) > 1 and (commit_ts[1:] < commit_ts[:-1]).any()):
            raise RowsOutOfOrder(f"rows of {name} came with a decreasing commit ts: sort them before writing")
        for ts in (int(commit_ts[0]), int(commit_ts[-1])):
            if ts not in self._span:
                raise RowsOutOfOrder(
                    f"a row of {name} has commit ts {ts}, the run is for {self._span.start} < ts <= {self._span.end}"
                )

    def finish(self) -> StagedStream:
        self._close()
        checksum, path, content = self._schema
        return StagedStream(
            self._stream, self._encoder.extension, checksum, path, content, tuple(self._files)
        )

    def abort(self) -> None:
        """Give up: the file that is open does not appear."""
        if self._open is not None:
            self._open.abort()
            self._open = None


class _OpenFile:
    def __init__(self, store: Store, path: str, header: bytes, body: FileBody, first_ts: int):
        self._path, self._body = path, body
        self._first_ts = self._last_ts = first_ts
        self._rows = self._checksum = self._written = 0
        # Encoded rows, without what stands around them.
        self.size = 0
        self._stack = ExitStack()
        self._file: IO[bytes] = self._stack.enter_context(store.new_file(path))
        self._put(header)

    def _put(self, data: bytes | memoryview) -> None:
        self._guarded(self._file.write, data)
        self._checksum = zlib.crc32(data, self._checksum)
        self._written += len(data)

    def append(self, data: memoryview, offsets: np.ndarray, last_ts: int) -> None:
        for part in self._body.add(data, offsets):
            self._put(part)
        faults.point("staged-file-begun")
        self.size += len(data)
        self._rows += len(offsets) - 1
        self._last_ts = last_ts

    def close(self) -> StagedFile:
        for part in self._body.end():
            self._put(part)
        self._stack.close()
        faults.point("staged-file-written")
        return StagedFile(
            self._path, self._written, self._rows, self._first_ts, self._last_ts, self._checksum
        )

    def _guarded(self, step: Callable[..., object], *arguments: object) -> None:
        """Let the store see its own errors: it cleans up and explains them."""
        try:
            step(*arguments)
        except BaseException as error:
            if not self._stack.__exit__(type(error), error, error.__traceback__):
                raise

    def abort(self) -> None:
        error = StorageError("given up")
        try:
            self._stack.__exit__(type(error), error, None)
        except StorageError:
            return


def _refuse(batch: RowBatch, error: pa.StringArray) -> None:
    where = int(np.argmax(error.is_valid().to_numpy(zero_copy_only=False)))
    table, ts = batch.table, int(batch.changes.commit_ts[where])
    raise UnencodableRow(
        f"table {table.schema}.{table.table}: a row with commit ts {ts} cannot be written: {error[where].as_py()}"
    )
