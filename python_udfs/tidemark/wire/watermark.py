"""The watermark of a stream: the smallest resolved ts of its running dispatchers.

A dispatcher runs from its Handshake until a DDL event drops its table (`need_dropped_tables`: by physical table id, by database, or all). The
physical id is that of the table, or of a partition, which only its rows tell.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.wire.events.base import Event
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.batch_resolved import BatchResolvedEvent
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.events.resolved import ResolvedEvent
from tidemark.wire.tracker import SchemaTracker

_ALL, _DATABASE = 0, 1


@dataclass
class _Running:
    resolved_ts: int
    schema: str
    # 0 as long as it is not known.
    physical_table_id: int


class Watermark:
    def __init__(self) -> None:
        self._running: dict[bytes, _Running] = {}
        self._last = 0

    def feed(self, event: Event, tracker: SchemaTracker) -> int | None:
        """The new watermark, if the event moves it."""
        if isinstance(event, HandshakeEvent):
            schema = tracker.in_force(event.dispatcher_id)
            if schema is not None:
                physical = 0 if schema.table.is_partition else schema.table.table_id
                self._running[event.dispatcher_id] = _Running(
                    event.resolved_ts, schema.table.schema, physical
                )
        elif isinstance(event, BatchDMLEvent) and event.transactions:
            running = self._running.get(event.dispatcher_id)
            if running is not None:
                running.physical_table_id = event.transactions[0].physical_table_id
        elif isinstance(event, DDLEvent):
            self._drop(event)
        elif isinstance(event, ResolvedEvent):
            return self._resolved((event,))
        elif isinstance(event, BatchResolvedEvent):
            return self._resolved(event.events)
        return None

    def _resolved(self, events: tuple[ResolvedEvent, ...]) -> int | None:
        for event in events:
            running = self._running.get(event.dispatcher_id)
            if running is not None:
                running.resolved_ts = max(running.resolved_ts, event.resolved_ts)
        ts = min((running.resolved_ts for running in self._running.values()), default=0)
        if ts <= self._last:
            return None
        self._last = ts
        return ts

    def _drop(self, ddl: DDLEvent) -> None:
        dropped = ddl.document.get("need_dropped_tables")
        if not dropped:
            return
        kind, ids = dropped.get("InfluenceType"), dropped.get("TableIDs") or ()
        for dispatcher, running in list(self._running.items()):
            if (
                kind == _ALL
                or (kind == _DATABASE and running.schema == ddl.schema_name)
                or running.physical_table_id in ids
            ):
                del self._running[dispatcher]
