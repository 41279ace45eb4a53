"""What a task does: decided rows, and the DDL statements between them, become messages in the order of the decisions.

Decisions (see sinks/logged_rows.py) have two more columns, `topic` and `partition`, and come sorted by them. One whose policy_op is `ddl` is a statement: its row_number
is the statement's number within the event at that place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.config import Settings
from tidemark.dispatch.changefeed_filter import ChangefeedFilter
from tidemark.dispatch.router import Router
from tidemark.dispatch.routing import Routing
from tidemark.encode.ddl import DdlStatement, statements
from tidemark.encode.parts import runs
from tidemark.encode.protocol import Encoder, encoder_for
from tidemark.encode.routed_ddl import routed_statement
from tidemark.log_schemas import LogSchemas
from tidemark.logs import open_log, read_exactly
from tidemark.sinks.kafka.sender import Sender, refuse_errors
from tidemark.sinks.logged_rows import LoggedRows, logged_rows
from tidemark.wire.header import HEADER_SIZE, read_header
from tidemark.wire.registry import decode

DDL = "ddl"


def send_decided(settings: Settings, decisions: Iterable[pa.RecordBatch], schemas: LogSchemas) -> int:
    """How many messages were sent; all are acknowledged."""
    encoder, routing, stream = encoder_for(settings), Routing.of(settings), _Stream(decisions)
    with Sender(settings) as sender:
        while True:
            for chunk in logged_rows(stream.rows(), schemas):
                _send_rows(sender, encoder, chunk)
            decision = stream.statement()
            if decision is None:
                break
            _send_statement(sender, encoder, routing, decision)
        sender.flush()
        return sender.sent


def send_watermark(settings: Settings, topics: Iterable[str], ts: int) -> None:
    """Tell all partitions of some topics that everything up to a ts is there, where the protocol has a message for that."""
    message = encoder_for(settings).encode_watermark(ts)
    if message is None:
        return
    with Sender(settings) as sender:
        for topic in topics:
            for partition in Router(settings).watermark_partitions():
                sender.event(topic, partition, message, f"the watermark {ts}")
        sender.flush()


@dataclass(frozen=True)
class StatementDecision:
    """A DDL statement on its way to a partition."""

    file: str
    offset: int
    # Within the event.
    number: int
    topic: str
    partition: int
    finished_ts: int


def decide_statements(settings: Settings, places: Iterable[tuple[str, int]]) -> list[StatementDecision]:
    """Where the DDL statements of the events at some places go. None where the protocol says nothing of DDL, or the changefeed leaves them out."""
    router, encoder, kept = Router(settings), encoder_for(settings), ChangefeedFilter(settings.changefeed)
    routing = Routing.of(settings)
    return [
        StatementDecision(
            file,
            offset,
            number,
            router.ddl_topic(ddl.schema, ddl.table, ddl.old_schema, ddl.old_table),
            partition,
            ddl.finished_ts,
        )
        for file, offset in places
        for number, ddl in enumerate(_statements_at(file, offset))
        if kept.takes_ddl(ddl) and encoder.encode_ddl(routed_statement(ddl, routing)) is not None
        for partition in router.ddl_partitions(settings.protocol)
    ]


class _Stream:
    """Decisions on rows, up to the next statement, again and again."""

    def __init__(self, batches: Iterable[pa.RecordBatch]):
        self._batches = iter(batches)
        self._rest: pa.RecordBatch | None = None

    def rows(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._next()) is not None:
            where = pc.index(batch.column("policy_op"), DDL).as_py()
            if where < 0:
                yield batch
                continue
            self._rest = batch.slice(where)
            if where:
                yield batch.slice(0, where)
            return

    def statement(self) -> dict | None:
        """The statement at which the rows ended; None at the end of all decisions."""
        if self._rest is None:
            return None
        decision = self._rest.slice(0, 1).to_pylist()[0]
        self._rest = self._rest.slice(1)
        return decision

    def _next(self) -> pa.RecordBatch | None:
        batch, self._rest = self._rest, None
        return batch if batch is not None else next(self._batches, None)


def _send_rows(sender: Sender, encoder: Encoder, chunk: list[LoggedRows]) -> None:
    """Rows of several tables may share a partition: all are encoded, then put in the order of the decisions."""
    keys, values, positions, topics, partitions = [], [], [], [], []
    for rows in chunk:
        messages = encoder.encode_rows(rows.batch)
        refuse_errors(rows.batch, messages)
        change = pa.array(messages.change)
        keys.append(messages.key)
        values.append(messages.value)
        positions.append(rows.position[messages.change])
        topics.append(rows.decisions.column("topic").take(change))
        partitions.append(rows.decisions.column("partition").take(change))
    order = pa.array(np.argsort(np.concatenate(positions), kind="stable"))
    key, value, topic, partition = (
        pa.concat_arrays(parts).take(order) for parts in (keys, values, topics, partitions)
    )
    names = sorted({f"{rows.batch.table.schema}.{rows.batch.table.table}" for rows in chunk})
    starts, _ = runs(topic.dictionary_encode().indices.to_numpy(), partition.to_numpy())
    for start, end in zip(starts.tolist(), [*starts.tolist()[1:], len(topic)], strict=True):
        packed_key, packed_value, _ = encoder.pack(key[start:end], value[start:end])
        sender.messages(
            topic[start].as_py(), partition[start].as_py(), packed_key, packed_value, ", ".join(names)
        )


def _send_statement(sender: Sender, encoder: Encoder, routing: Routing, decision: dict) -> None:
    ddl = _statements_at(decision["file"], decision["offset"])[decision["row_number"]]
    message = encoder.encode_ddl(routed_statement(ddl, routing))
    if message is not None:
        what = f"DDL of {ddl.schema}.{ddl.table} (finished ts {ddl.finished_ts})"
        sender.event(decision["topic"], decision["partition"], message, what)


def _statements_at(file: str, offset: int) -> list[DdlStatement]:
    with open_log(file) as log:
        length = read_header(read_exactly(log, offset, HEADER_SIZE)).payload_length
        return statements(decode(read_exactly(log, offset, HEADER_SIZE + length), offset=offset))
