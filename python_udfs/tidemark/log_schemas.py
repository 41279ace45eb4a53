"""Which schema is in force at a place of an event log, found without reading the log from its beginning.

Whoever reads rows is told where the Handshake and DDL frames of their dispatchers are; these are read when a row asks for them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from tidemark.dispatch.routing import Routing
from tidemark.logs import open_log, read_exactly
from tidemark.wire.errors import InvalidField
from tidemark.wire.registry import decode
from tidemark.wire.tracker import SchemaInForce, SchemaTracker


class LogSchemas:
    """The schema in force by epoch and seq of a dispatcher. With `routing`, its table knows under which name a sink writes it.

    `places`: [upstream_id, dispatcher_id, epoch, seq, file, offset, length] of Handshake and DDL frames, as macros/log/schema_places.sql lists them.
    """

    def __init__(self, places: list[list], routing: Routing | None = None):
        self._places: dict[tuple[str, bytes, int], list[tuple[int, str, int, int]]] = {}
        for upstream_id, dispatcher_id, epoch, *place in places:
            key = upstream_id, bytes.fromhex(dispatcher_id), int(epoch)
            self._places.setdefault(key, []).append(tuple(place))
        for found in self._places.values():
            found.sort()
        self._routing = routing
        self._open: tuple[str, BinaryIO] | None = None
        self._readers = 0
        self._known: dict[tuple[tuple[str, bytes, int], int], SchemaInForce] = {}

    def in_force(self, upstream_id: str, dispatcher_id: bytes, epoch: int, seq: int) -> SchemaInForce:
        key = upstream_id, dispatcher_id, epoch
        places = self._places.get(key, [])
        count = bisect_left(places, (seq,))
        if (key, count) not in self._known:
            self._known[key, count] = self._follow(dispatcher_id, epoch, places[:count])
        return self._known[key, count]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While rows are read, the log that was read last stays open: the Handshakes of many tables are mostly in one."""
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1
            if not self._readers:
                self._close()

    def _log(self, file: str) -> BinaryIO:
        if self._open is None or self._open[0] != file:
            self._close()
            self._open = file, open_log(file)
        return self._open[1]

    def _close(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _follow(
        self, dispatcher_id: bytes, epoch: int, places: list[tuple[int, str, int, int]]
    ) -> SchemaInForce:
        tracker = SchemaTracker()
        with self.reading():
            for _, file, offset, length in places:
                tracker.feed(decode(read_exactly(self._log(file), offset, length), offset=offset))
        schema = tracker.in_force(dispatcher_id)
        if schema is None:
            raise InvalidField(
                f"rows of dispatcher {dispatcher_id.hex()} in epoch {epoch}, before which no readable Handshake came",
                expected="a Handshake",
            )
        return schema._replace(table=self._routing.table(schema.table)) if self._routing else schema
