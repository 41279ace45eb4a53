"""What a task does: the decided rows of its folder streams become staged files.

Decisions come sorted by folder stream, so only the streams of one chunk have files open at the same time. The rest is finished as soon as a chunk has no rows of it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tidemark.config import Settings
from tidemark.encode.protocol import encoder_for
from tidemark.sinks.logged_rows import LoggedRows
from tidemark.sinks.row_batches import joined, take
from tidemark.sinks.storage.errors import StorageError
from tidemark.sinks.storage.filesystem import Store
from tidemark.sinks.storage.layout import FolderStream, StorageLayout
from tidemark.sinks.storage.span import Span
from tidemark.sinks.storage.writer import StagedStream, StreamWriter
from tidemark.wire.rows import RowBatch


def stage_decided(
    store: Store, span: Span, settings: Settings, chunks: Iterable[list[LoggedRows]]
) -> list[StagedStream]:
    """Stage the rows of a task, whose streams no other task has rows of."""
    writers = _Writers(store, span, settings)
    try:
        for chunk in chunks:
            writers.write(chunk)
        return writers.finish()
    except BaseException:
        writers.abort()
        raise


class _Writers:
    def __init__(self, store: Store, span: Span, settings: Settings):
        self._store, self._span, self._settings = store, span, settings
        self._layout, self._encoder = StorageLayout(settings), encoder_for(settings)
        self._open: dict[FolderStream, StreamWriter] = {}
        self._done: dict[FolderStream, StagedStream] = {}

    def write(self, chunk: list[LoggedRows]) -> None:
        rows = self._by_stream(chunk)
        for stream in [stream for stream in self._open if stream not in rows]:
            self._finish(stream)
        for stream, batch in rows.items():
            self._writer(stream, batch).add(batch)

    def _by_stream(self, chunk: list[LoggedRows]) -> dict[FolderStream, RowBatch]:
        found: dict[FolderStream, list[tuple[np.ndarray, RowBatch]]] = {}
        for rows in chunk:
            for stream, which in self._layout.split(rows.batch, rows.schema.table_info_version):
                found.setdefault(stream, []).append((rows.position[which], take(rows.batch, which)))
        return {stream: _in_order(parts) for stream, parts in found.items()}

    def _writer(self, stream: FolderStream, batch: RowBatch) -> StreamWriter:
        if stream in self._done:
            raise StorageError(
                f"rows of {stream.schema}.{stream.table} come back after those of another folder; sort the rows by folder"
            )
        if stream not in self._open:
            self._open[stream] = StreamWriter(
                self._store,
                self._span,
                stream,
                batch.table,
                self._layout,
                self._encoder,
                self._settings.uri.options.file_size,
            )
        return self._open[stream]

    def _finish(self, stream: FolderStream) -> None:
        self._done[stream] = self._open[stream].finish()
        del self._open[stream]

    def finish(self) -> list[StagedStream]:
        for stream in list(self._open):
            self._finish(stream)
        return list(self._done.values())

    def abort(self) -> None:
        for writer in self._open.values():
            writer.abort()


def _in_order(parts: list[tuple[np.ndarray, RowBatch]]) -> RowBatch:
    """Rows of several dispatchers in the order of the decisions."""
    batch = joined([part for _, part in parts])
    if len(parts) == 1:
        return batch
    return take(batch, np.argsort(np.concatenate([position for position, _ in parts]), kind="stable"))
