"""Steps -> committed rows, over several connections.

A lane is a connection and a thread. A row belongs to the lane that its key's number gives, so that changes of one key are written in order; lanes do not wait
for each other. Each lane cuts its rows into multi-row statements and these into transactions of bounded rows and bytes, and does
each transaction until it is committed (`retrying`). Numbers of rows are powers of two, so that a few prepared statements do for any number.

`write` returns when everything is committed. When it raises, some transactions may be committed and others not: giving it the same
steps again ends in the state of a run without the error. What a caller derives from it (a checkpoint) it must write afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa

from tidemark.config import Settings
from tidemark.config.uri import DEFAULT_MAX_TXN_ROW
from tidemark.sinks.mysql.connection import Connection, Target
from tidemark.sinks.mysql.prepared import MOST_PARAMETERS, EncodedRows, encode_rows
from tidemark.sinks.mysql.retrying import Doing, Retry, Session
from tidemark.sinks.mysql.statements import Statement
from tidemark.sinks.mysql.steps import Step

# What a statement's packet has besides its rows, rounded up.
_HEAD_BYTES = 16


@dataclass(frozen=True)
class Limits:
    """How work is cut."""

    connections: int = 4
    statement_rows: int = 512
    transaction_rows: int = DEFAULT_MAX_TXN_ROW
    transaction_bytes: int = 8 * 1024 * 1024

    @classmethod
    def from_settings(cls, settings: Settings) -> Limits:
        options = settings.uri.options
        return cls(
            connections=options.worker_count or cls.connections,
            transaction_rows=options.max_txn_row,
        )


@dataclass(frozen=True)
class Written:
    """What a call of `write` did."""

    rows: int = 0
    statements: int = 0
    transactions: int = 0
    retries: int = 0

    def __add__(self, other: Written) -> Written:
        return Written(*(getattr(self, item.name) + getattr(other, item.name) for item in fields(Written)))


@dataclass(frozen=True)
class Part:
    """Rows of one statement: `rows` from `start` to `end`."""

    statement: Statement
    rows: EncodedRows
    start: int
    end: int
    repeatable: bool

    def __len__(self) -> int:
        return self.end - self.start


class Writer:
    """Use it in a `with`; one thread at a time may call `write`."""

    def __init__(
        self,
        target: Target,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        retry: Retry = Retry(),  # noqa: B008 - frozen
        connect: Callable[[Target], Connection] = Connection,
    ):
        self._limits = limits
        self._lanes = [_Lane(Session(target, retry, connect)) for _ in range(limits.connections)]
        self._threads = ThreadPoolExecutor(limits.connections, thread_name_prefix="tidemark-mysql")
        try:
            # A wrong address or password is told now, and only once.
            first = self._lanes[0].session.open()
        except BaseException:
            self.close()
            raise
        self.is_tidb, self._packet = first.is_tidb, first.max_packet

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def write(self, steps: Iterable[Step]) -> Written:
        """Writes the steps in order and returns when all of them are committed."""
        steps = [step for step in steps if len(step)]
        stop = threading.Event()
        running = [
            self._threads.submit(
                lane.write, lane_parts(steps, number, len(self._lanes)), self._limits, self._packet, stop
            )
            for number, lane in enumerate(self._lanes)
            if steps
        ]
        written, problem = Written(), None
        for future in running:
            try:
                written += future.result()
            except BaseException as error:
                stop.set()
                problem = problem or error
        if problem is not None:
            raise problem
        return written

    def close(self) -> None:
        self._threads.shutdown(wait=True)
        for lane in self._lanes:
            lane.session.close()


def lane_parts(steps: list[Step], lane: int, lanes: int) -> Iterator[tuple[Step, EncodedRows]]:
    """The rows of every step that belong to a lane, in order."""
    for step in steps:
        chosen = np.flatnonzero(step.lanes % np.uint64(lanes) == lane)
        if len(chosen):
            yield step, encode_rows(step.params.take(pa.array(chosen)))


def cut(parts: Iterable[tuple[Step, EncodedRows]], limits: Limits, packet: int) -> Iterator[list[Part]]:
    """Transactions, each a list of multi-row statements. A row that is larger than a limit is alone."""
    transaction: list[Part] = []
    rows_left, bytes_left = limits.transaction_rows, limits.transaction_bytes
    for step, rows in parts:
        ends = np.cumsum(rows.sizes)
        most = min(
            limits.statement_rows,
            step.statement.most_rows or limits.statement_rows,
            max(1, MOST_PARAMETERS // len(step.statement.columns)),
        )
        start = 0
        while start < len(rows):
            before = int(ends[start - 1]) if start else 0
            end = int(np.searchsorted(ends, before + min(bytes_left, packet - _HEAD_BYTES), side="right"))
            count = min(end - start, most, rows_left)
            if not count:
                if transaction:
                    yield transaction
                    transaction, rows_left, bytes_left = [], limits.transaction_rows, limits.transaction_bytes
                    continue
                count = 1
            end = start + (1 << (count.bit_length() - 1))
            transaction.append(Part(step.statement, rows, start, end, step.repeatable))
            rows_left -= end - start
            bytes_left -= int(ends[end - 1]) - before
            start = end
            if rows_left <= 0 or bytes_left <= 0:
                yield transaction
                transaction, rows_left, bytes_left = [], limits.transaction_rows, limits.transaction_bytes
    if transaction:
        yield transaction


class _Lane:
    def __init__(self, session: Session):
        self.session = session

    def write(
        self, parts: Iterable[tuple[Step, EncodedRows]], limits: Limits, packet: int, stop: threading.Event
    ) -> Written:
        written = Written()
        try:
            for transaction in cut(parts, limits, packet):
                if stop.is_set():
                    break
                written += self._write_transaction(transaction)
        except BaseException:
            stop.set()
            self.session.close()
            raise
        return written

    def _write_transaction(self, transaction: list[Part]) -> Written:
        def work(connection: Connection, doing: Doing) -> None:
            for part in transaction:
                doing.table, doing.statement = part.statement.table, part.statement.kind
                parameters = part.rows.parameters(part.start, part.end)
                connection.execute_prepared(part.statement.sql(len(part)), parameters)
            doing.is_last_chance = not all(part.repeatable for part in transaction)
            connection.commit()

        _, retries = self.session.run(work)
        return Written(sum(len(part) for part in transaction), len(transaction), 1, retries)
