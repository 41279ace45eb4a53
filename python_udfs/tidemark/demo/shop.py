"""All clusters of the shop, round by round.

Each round writes its part of the rows into every cluster and ends with Resolved events. On the way there are two sync points, an ALTER TABLE on `orders`
half way, and one dispatcher per cluster that is dropped and re-created under a new epoch, which repeats some events. Heartbeats, their responses and
congestion control come several times, in both versions. So every event type occurs, in a log without rows too; a DML event (type 0) only inside of
batches, since alone it has no values.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tidemark.demo.clock import Clock
from tidemark.demo.dice import Dice, key_of
from tidemark.demo.files import LogFiles, folder_at_once
from tidemark.demo.population import Population
from tidemark.demo.tables import definitions
from tidemark.demo.upstream import Share, Upstream
from tidemark.errors import TidemarkError

BATCH_ROWS, FILE_BYTES = 1000, 64 << 20
MAX_BATCH_ROWS = 100_000
MIN_ROUNDS = 12
# Row changes of a table that are computed at once: enough to make numpy's cost per call small.
ROUND_ROWS = 8192
WINDOW_ROUNDS = 4
# Every cluster writes plain tables in a range of keys of its own.
KEY_RANGE = 10**10


class DemoLogError(TidemarkError, ValueError):
    """Numbers that no demo log can have."""


@dataclass(frozen=True)
class DemoLog:
    """What was written. `repeated_rows` are delivered twice and not counted in `rows`."""

    path: Path
    upstreams: int
    tables: int
    files: int
    bytes: int
    rows: int
    repeated_rows: int


def write_demo_logs(
    out: Path | str,
    *,
    tables: int,
    rows: int,
    upstreams: int,
    seed: int,
    batch_rows: int = BATCH_ROWS,
    file_bytes: int = FILE_BYTES,
) -> DemoLog:
    """Write `out`/upstream-1/000001.bin and so on: `rows` row changes over all upstreams. The same arguments give the same bytes."""
    for name, number, least, most in (
        ("tables", tables, 1, None),
        ("rows", rows, 0, None),
        ("upstreams", upstreams, 1, 1000),
        ("batch_rows", batch_rows, 1, MAX_BATCH_ROWS),
        ("file_bytes", file_bytes, 1, None),
    ):
        if number < least or (most is not None and number > most):
            raise DemoLogError(f"{name} = {number}: allowed are {least} to {most or 'any number'}")
    out = Path(out)
    with folder_at_once(out) as folder:
        files = [LogFiles(folder / f"upstream-{number + 1}", file_bytes) for number in range(upstreams)]
        try:
            shop = Shop(files, tables=tables, rows=rows, seed=seed, batch_rows=batch_rows)
            shop.run()
        finally:
            for log in files:
                log.close()
    return DemoLog(
        path=out,
        upstreams=upstreams,
        tables=tables,
        files=sum(log.files for log in files),
        bytes=sum(log.bytes for log in files),
        rows=sum(upstream.rows for upstream in shop.upstreams),
        repeated_rows=sum(upstream.repeated_rows for upstream in shop.upstreams),
    )


class Shop:
    def __init__(self, files: list[LogFiles], *, tables: int, rows: int, seed: int, batch_rows: int):
        self._seed = seed
        self._tables = tables
        self._batch_rows = batch_rows
        self._dice = Dice(seed, "shop")
        per_round = batch_rows * max(1, ROUND_ROWS // batch_rows)
        self._window = WINDOW_ROUNDS * per_round
        count = len(files)
        self._rows = [rows // count + (number < rows % count) for number in range(count)]
        self.rounds = max(MIN_ROUNDS, -(-self._rows[0] // (tables * per_round)))
        # A single cluster replicates with one that nobody looks at.
        clusters = max(2, count)
        self._clock = Clock(clusters)
        every = [
            Upstream(number, seed, self._clock, files[number] if number < count else None, batch_rows)
            for number in range(clusters)
        ]
        self.upstreams, self._unseen = every[:count], every[count:]
        self._shared: list[tuple[Population, list[Share]]] = []

    def run(self) -> None:
        self._open()
        sync_points = (self.rounds // 4, self.rounds * 3 // 4)
        for number in range(self.rounds):
            if number == self.rounds // 2:
                ts = self._clock.tick()
                for upstream in self.upstreams:
                    upstream.add_column(ts)
            self._round(number)
            ts = self._clock.tick()
            for upstream in self.upstreams:
                if number in sync_points:
                    upstream.sync_point(ts)
                upstream.resolve(ts, in_one=number % 2 == 1)
                if number % max(1, self.rounds // 6) == 0:
                    upstream.talk(version=2 if number else 1)
        ts = self._clock.tick()
        for upstream in self.upstreams:
            upstream.resolve(ts, in_one=False)

    def _open(self) -> None:
        ts = self._clock.tick()
        for upstream in self.upstreams:
            upstream.open(ts)
        for name, definition in definitions(self._tables):
            ts = self._clock.tick()
            clusters = [*self.upstreams, *self._unseen] if definition.is_active_active else self.upstreams
            populations = {}
            for cluster, upstream in enumerate(clusters):
                owner = "all" if definition.is_active_active else upstream.number
                if owner not in populations:
                    populations[owner] = Population(
                        Dice(self._seed, name, owner),
                        clusters=len(clusters) if owner == "all" else 1,
                        window=self._window,
                        first_key=1 if owner == "all" else KEY_RANGE * upstream.number + 1,
                        soft=definition.is_soft_delete,
                        salt=key_of(self._seed, name),
                    )
                upstream.add_table(name, definition, populations[owner], cluster if owner == "all" else 0, ts)
            if definition.is_active_active:
                self._shared.append((populations["all"], [upstream.shares[-1] for upstream in clusters]))

    def _round(self, number: int) -> None:
        """The tables share the rows of a round equally. Replication decides how many an active-active table gets; `orders` gets the rest."""
        quotas = [rows * (number + 1) // self.rounds - rows * number // self.rounds for rows in self._rows]
        equal = min(quotas) // self._tables
        for population, shares in self._shared:
            for share, work in zip(shares, population.next_round(equal), strict=True):
                share.take(work, self._batch_rows, self._dice)
        for upstream, quota in zip(self.upstreams, quotas, strict=True):
            orders, *others = upstream.shares
            for share in others:
                if share.population.clusters == 1:
                    share.take(share.population.next_round(equal)[0], self._batch_rows, self._dice)
            rest = quota - sum(len(share.work) for share in others)
            orders.take(orders.population.next_round(rest)[0], self._batch_rows, self._dice)
        recreated = number == self.rounds * 2 // 3
        for upstream in (*self.upstreams, *self._unseen):
            upstream.commit(upstream.shares[:2][-1] if recreated and upstream.shares else None)
        for upstream in self.upstreams:
            for share in upstream.shares:
                if share.population.clusters == 1:
                    share.population.settle()
        for population, _ in self._shared:
            population.settle()
