"""Event logs to a storage tree in one process, without Spark: for tests and small logs. What is read is kept in memory.

Checkpoint: the smallest resolved ts over the running dispatchers. Rows and DDL statements up to it are written, those after it wait for a later run.
A dispatcher that begins again (a second Handshake) sends again what came after the ts it begins at: what was read of that before is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from tidemark.config import Settings
from tidemark.dispatch.changefeed_filter import ChangefeedFilter
from tidemark.encode.protocol import encoder_for
from tidemark.logs import find_logs, open_log
from tidemark.sinks.sent_rows import SentRows
from tidemark.sinks.storage.errors import StorageError
from tidemark.sinks.storage.filesystem import Store, open_store
from tidemark.sinks.storage.layout import FolderStream, StorageLayout
from tidemark.sinks.storage.publish import Published, open_tree, publish
from tidemark.sinks.storage.rows import in_order, take
from tidemark.sinks.storage.schema_versions import schema_files_of_ddl
from tidemark.sinks.storage.span import Span
from tidemark.sinks.storage.writer import OnError, StagedStream, StreamWriter
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.framing import Frame, Skipped, scan
from tidemark.wire.registry import decode
from tidemark.wire.rows import RowBatch, decode_batch
from tidemark.wire.tracker import SchemaTracker
from tidemark.wire.watermark import Watermark


def write_log_to_tree(
    logs: Iterable[str],
    settings: Settings,
    out: str | Store,
    on_error: OnError | None = None,
    *,
    table_flags: bool = True,
) -> Published:
    """Write what the logs hold after the checkpoint of the tree. Calling it again with the same logs changes nothing.

    `table_flags=False`: rows of soft-delete and active-active tables as they came, to compare them.
    """
    store = out if isinstance(out, Store) else open_store(out)
    with open_tree(store, "tidemark write") as tree:
        read = _Read(settings, table_flags)
        for log in logs:
            read.log(log)
        if read.watermark <= tree.checkpoint:
            return Published(tree.checkpoint, False)
        span = Span(tree.checkpoint, read.watermark)
        layout, kept = StorageLayout(settings), ChangefeedFilter(settings.changefeed)
        warnings: list[str] = []
        schema_files = {}
        for event in read.ddl_events:
            if event.finished_ts in span:
                schema_files |= schema_files_of_ddl(event, layout, warnings, kept)
        staged = stage(store, span, layout, settings, read.batches(), on_error)
        published = publish(
            store,
            tree.lease,
            layout,
            span,
            staged,
            schema_files,
            accept_missing_files=settings.accepts_missing_files,
        )
        published.warnings[:0] = warnings
        return published


def stage(
    store: Store,
    span: Span,
    layout: StorageLayout,
    settings: Settings,
    batches: Iterable[tuple[RowBatch, int]],
    on_error: OnError | None = None,
) -> list[StagedStream]:
    """Stage the rows of a span. Batches come with their table_info_version, in any order."""
    streams: dict[FolderStream, list[RowBatch]] = {}
    for batch, version in batches:
        ts = batch.changes.commit_ts
        first = 0 if span.takes_late_rows else span.start + 1
        batch = take(batch, np.flatnonzero((ts >= np.uint64(first)) & (ts <= np.uint64(span.end))))
        for stream, which in layout.split(batch, version):
            streams.setdefault(stream, []).append(take(batch, which))
    encoder = encoder_for(settings)
    staged = []
    for stream in sorted(streams, key=FolderStream.key):
        batch = in_order(streams.pop(stream))
        writer = StreamWriter(
            store, span, stream, batch.table, layout, encoder, settings.uri.options.file_size, on_error
        )
        try:
            writer.add(batch)
        except BaseException:
            writer.abort()
            raise
        staged.append(writer.finish())
    return staged


@dataclass
class _Dispatcher:
    batches: list[tuple[RowBatch, int]] = field(default_factory=list)

    def restart(self, ts: int) -> None:
        kept = (
            (take(batch, np.flatnonzero(batch.changes.commit_ts <= np.uint64(ts))), version)
            for batch, version in self.batches
        )
        self.batches = [(batch, version) for batch, version in kept if len(batch.changes)]


class _Read:
    """What logs hold."""

    def __init__(self, settings: Settings, table_flags: bool):
        self._sent = SentRows(settings, table_flags=table_flags)
        self._tracker, self._watermark = SchemaTracker(), Watermark()
        self._dispatchers: dict[bytes, _Dispatcher] = {}
        self._ddl: dict[tuple[int, int, str], DDLEvent] = {}
        self.watermark = 0

    def log(self, path: str) -> None:
        for file in find_logs(path):
            with open_log(file.path) as log:
                for piece in scan(log):
                    if isinstance(piece, Skipped):
                        raise StorageError(f"{file.path}: offset {piece.offset}: {piece.error}")
                    # The last frame may still be on its way: a later run reads it.
                    if isinstance(piece, Frame):
                        log.seek(piece.offset)
                        self._event(decode(log.read(piece.length)))

    def _event(self, event) -> None:
        self._tracker.feed(event)
        self.watermark = self._watermark.feed(event, self._tracker) or self.watermark
        if isinstance(event, HandshakeEvent):
            self._dispatchers.setdefault(event.dispatcher_id, _Dispatcher()).restart(event.resolved_ts)
        elif isinstance(event, BatchDMLEvent) and event.transactions:
            self._rows(event)
        elif isinstance(event, DDLEvent) and not event.not_sync:
            # Every dispatcher of a table receives the event.
            self._ddl.setdefault((event.finished_ts, event.ddl_type, event.query), event)

    def _rows(self, event: BatchDMLEvent) -> None:
        schema = self._tracker.in_force(event.dispatcher_id)
        if schema is None:
            raise StorageError(
                f"rows of dispatcher {event.dispatcher_id.hex()}, before whose rows no Handshake came"
            )
        batch = self._sent.of(decode_batch(event, schema.table)) if self._sent.takes(schema.table) else None
        if batch is not None:
            self._dispatchers[event.dispatcher_id].batches.append((batch, schema.table_info_version))

    @property
    def ddl_events(self) -> list[DDLEvent]:
        return sorted(self._ddl.values(), key=lambda event: event.finished_ts)

    def batches(self) -> Iterable[tuple[RowBatch, int]]:
        for dispatcher in self._dispatchers.values():
            yield from dispatcher.batches
