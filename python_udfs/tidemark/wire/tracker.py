"""Which schema is in force for a dispatcher.

A Handshake gives the first TableInfo of a dispatcher, and each later DDL event of the same dispatcher replaces it. A dispatcher also receives statements
about other tables (to wait for them, or because one statement changes several tables): among the table infos of a DDL event only the one
with the dispatcher's logical table id counts. EXCHANGE PARTITION gives a physical table to another logical one: the two dispatchers concerned get it with the table info
that holds for their rows from there on, whatever its id.

`table_info_version` is the version that storage paths use: the ts of the dispatcher's start (the Handshake's resolved ts), then the finish ts of the last
DDL event it received, whatever table that was about.
"""

from __future__ import annotations

from typing import NamedTuple

from tidemark.wire.errors import WireError
from tidemark.wire.events.base import Event
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.table_info import TableInfo

EXCHANGE_PARTITION = 42


class SchemaInForce(NamedTuple):
    table: TableInfo
    table_info_version: int


class SchemaTracker:
    """Feed it the events of a stream in order; events other than Handshake and DDL change nothing."""

    def __init__(self) -> None:
        self._in_force: dict[bytes, SchemaInForce] = {}

    def feed(self, event: Event) -> None:
        if isinstance(event, HandshakeEvent):
            self._replace(event)
        elif isinstance(event, DDLEvent):
            self._follow(event)

    def in_force(self, dispatcher_id: bytes) -> SchemaInForce | None:
        """None before the dispatcher's Handshake, and after a schema that could not be read."""
        return self._in_force.get(dispatcher_id)

    def _replace(self, handshake: HandshakeEvent) -> None:
        # Should the new schema be unreadable, rows must not be decoded with the old one.
        self._in_force.pop(handshake.dispatcher_id, None)
        self._in_force[handshake.dispatcher_id] = SchemaInForce(handshake.table(), handshake.resolved_ts)

    def _follow(self, ddl: DDLEvent) -> None:
        current = self._in_force.get(ddl.dispatcher_id)
        if current is None:
            # The table trigger, which has no rows; or the log begins after the Handshake, and nobody says which table this is.
            return
        try:
            tables = [table for table in (ddl.table(), *ddl.extra_tables()) if table is not None]
        except WireError:
            del self._in_force[ddl.dispatcher_id]
            raise
        if ddl.ddl_type == EXCHANGE_PARTITION:
            mine = tables[:1] if ddl.table_info else []
        else:
            mine = [table for table in tables if table.table_id == current.table.table_id]
        self._in_force[ddl.dispatcher_id] = SchemaInForce(
            mine[-1] if mine else current.table, ddl.finished_ts
        )
