"""The event stream of one cluster.

It opens with the table trigger (Ready, then the statements that create the database and its tables) and a dispatcher per table (Ready, Handshake). Then the
rounds follow: batches of row changes, and at the end of each round how far every dispatcher is resolved. What else a stream can hold happens on the
way: see `shop`.
"""

from __future__ import annotations

import numpy as np

from tidemark.demo import statements
from tidemark.demo.batches import Transactions, arrange, make_batches
from tidemark.demo.clock import Clock
from tidemark.demo.dice import Dice, key_of
from tidemark.demo.dispatchers import Dispatcher
from tidemark.demo.files import LogFiles
from tidemark.demo.population import Population, Work
from tidemark.demo.tables import Definition, Table
from tidemark.wire.events.base import Event
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.batch_resolved import BatchResolvedEvent
from tidemark.wire.events.congestion_control import (
    ChangefeedMemory,
    CongestionControl,
    DispatcherMemory,
    MemoryRelease,
)
from tidemark.wire.events.heartbeat import DispatcherHeartbeat
from tidemark.wire.events.heartbeat_response import DispatcherHeartbeatResponse, DispatcherState
from tidemark.wire.events.heartbeat_v2 import ProgressV2
from tidemark.wire.events.not_reusable import NotReusableEvent
from tidemark.wire.events.ready import ReadyEvent
from tidemark.wire.ids import make_id
from tidemark.wire.registry import encode

MEMORY = 1 << 30
NORMAL_STATE = 0


class Share:
    """The part of a table that one cluster has: its rows, its dispatcher, and what it does in the current round."""

    def __init__(self, table: Table, dispatcher: Dispatcher, population: Population, cluster: int):
        self.table = table
        self.dispatcher = dispatcher
        self.population = population
        self.cluster = cluster
        self.work: Work | None = None
        self.transactions: Transactions | None = None

    def take(self, work: Work, largest_transaction: int, dice: Dice) -> None:
        key = self.population.key[work.slot]
        self.transactions = arrange(work.op, key, largest_transaction, dice)
        self.work = work.reorder(self.transactions.order)


class Upstream:
    """`number` counts from 0. Without files the cluster is only simulated: others replicate from it."""

    def __init__(self, number: int, seed: int, clock: Clock, files: LogFiles | None, batch_rows: int):
        self.number = number
        self._dice = Dice(seed, "upstream", number)
        self._seed = seed
        self._clock = clock
        self._files = files
        self._batch_rows = batch_rows
        self._schema_id = 110 + number
        self._gid = self._id("changefeed")
        self.trigger = Dispatcher(self._id("table trigger"))
        self.shares: list[Share] = []
        self.rows = 0
        self.repeated_rows = 0

    def _id(self, *name: int | str) -> bytes:
        return make_id(
            key_of(self._seed, self.number, *name, "low"), key_of(self._seed, self.number, *name, "high")
        )

    def _send(self, event: Event, version: int | None = None) -> None:
        if self._files is not None:
            self._files.write(encode(event, version))

    def open(self, created_ts: int) -> None:
        self._send(ReadyEvent(self.trigger.id))
        self._send(statements.create_database(self._schema_id, created_ts, self.trigger))

    def add_table(
        self, name: str, definition: Definition, population: Population, cluster: int, ts: int
    ) -> None:
        table = Table(definition, name, 120 + self.number + 2 * len(self.shares), ts)
        dispatcher = Dispatcher(self._id(name))
        self._send(statements.create_table(self._schema_id, table, self.trigger))
        if not self.shares:
            # The first dispatcher asked another node for its table before, which had nothing to offer.
            self._send(NotReusableEvent(dispatcher.id))
        self._send(ReadyEvent(dispatcher.id))
        self._send(dispatcher.handshake(ts, table.info.to_bytes()))
        self.shares.append(Share(table, dispatcher, population, cluster))

    def commit(self, recreated: Share | None = None) -> None:
        """Carry out the work of the round: the transactions of all tables take turns, and each dispatcher sends its own in order.

        The dispatcher of `recreated` loses its connection half way and sends everything of the round again, in a new epoch.
        """
        owner = np.repeat(np.arange(len(self.shares)), [len(share.transactions) for share in self.shares])
        owner = owner[self._dice.shuffled(len(owner))]
        commit_ts = self._clock.commits(self.number, len(owner), self._dice)
        for place, share in enumerate(self.shares):
            batches = self._changes(share, commit_ts[owner == place])
            if share is recreated:
                self._send_twice(share, batches)
            else:
                for batch in batches:
                    self._send(share.dispatcher.numbered(batch))
            self.rows += len(share.work)

    def _changes(self, share: Share, commit_ts: np.ndarray) -> list[BatchDMLEvent]:
        work, transactions = share.work, share.transactions
        before, after = share.population.apply(share.cluster, work, transactions.spread(commit_ts))
        if self._files is None or not len(work):
            return []
        return make_batches(
            share.table,
            share.dispatcher.id,
            transactions,
            commit_ts,
            work.op,
            before,
            after,
            self._batch_rows,
            self._dice,
        )

    def _send_twice(self, share: Share, batches: list[BatchDMLEvent]) -> None:
        dispatcher = share.dispatcher
        sent = batches[: (len(batches) + 1) // 2]
        for batch in sent:
            self._send(dispatcher.numbered(batch))
        self.repeated_rows += sum(part.row_count for batch in sent for part in batch.transactions)
        latest = batches[-1].transactions[-1].commit_ts if batches else dispatcher.resolved_ts
        lost = batches[len(sent)].transactions[0].commit_ts if len(sent) < len(batches) else latest + 1
        # Every other cluster runs a release that gives the reason.
        self._send(dispatcher.drop(lost, reason="memory quota exceeded" if self.number % 2 else ""))
        self._send(ReadyEvent(dispatcher.id))
        self._send(dispatcher.handshake(dispatcher.resolved_ts, share.table.info.to_bytes()))
        for batch in batches:
            self._send(dispatcher.numbered(batch))

    def add_column(self, ts: int) -> None:
        """ALTER TABLE on the first table."""
        share = self.shares[0]
        share.table.add_column(ts)
        for dispatcher in (self.trigger, share.dispatcher):
            self._send(statements.add_column(self._schema_id, share.table, dispatcher))

    def sync_point(self, ts: int) -> None:
        for share in self.shares:
            self._send(share.dispatcher.sync_point(ts))

    def resolve(self, ts: int, *, in_one: bool) -> None:
        """All dispatchers are complete up to `ts`, said in one event or in one each."""
        events = [dispatcher.resolved(ts) for dispatcher in self._dispatchers()]
        for event in [BatchResolvedEvent(tuple(events))] if in_one else events:
            self._send(event)

    def talk(self, version: int) -> None:
        """What receiver and sender tell each other besides the data: progress and its answer, and memory left."""
        dispatchers, cluster_id = self._dispatchers(), self.number + 1
        progress = [ProgressV2(each.id, each.resolved_ts, each.epoch) for each in dispatchers]
        self._send(DispatcherHeartbeat(cluster_id, tuple(progress)), version)
        states = [DispatcherState(each.id, NORMAL_STATE) for each in dispatchers]
        self._send(DispatcherHeartbeatResponse(cluster_id, tuple(states)))
        memory = tuple(DispatcherMemory(each.id, MEMORY // len(dispatchers)) for each in dispatchers)
        releases = (MemoryRelease(self._gid, 1),)
        self._send(
            CongestionControl(cluster_id, (ChangefeedMemory(self._gid, MEMORY, memory, 0.25),), releases),
            version,
        )

    def _dispatchers(self) -> list[Dispatcher]:
        return [self.trigger, *(share.dispatcher for share in self.shares)]
