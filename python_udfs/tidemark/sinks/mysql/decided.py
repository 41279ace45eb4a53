"""Decided rows (`sinks.logged_rows`), chunk by chunk, into the database.

Active-active: the statement itself decides which write of a key wins, so all rows of a chunk are written at once.

Normal mode: what a key looks like after a chunk is written. The rows of one table come from several dispatchers (partitions, upstreams) and, around a DDL
statement, in several versions. They are put in the order of the decisions and cut where the version changes: each such run is written before the
next one begins. All rows of a table have to come through one task.

Rows of a table whose only keys are unique and may be NULL are found by all their values. When such rows exchange their keys in a transaction, the new row of one may equal the old
row of another, so the deletes of the whole transaction have to come first. If a chunk ends within such a transaction, its rows wait for the next chunk, and memory holds all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest

import numpy as np
import pyarrow as pa

from tidemark.config import Settings
from tidemark.sinks.logged_rows import LoggedRows
from tidemark.sinks.mysql.connection import Target
from tidemark.sinks.mysql.statements import unique_keys
from tidemark.sinks.mysql.steps import Step, lww_steps, normal_steps
from tidemark.sinks.mysql.writer import Limits, Writer, Written
from tidemark.sinks.row_batches import compacted, joined, take
from tidemark.wire.rows import RowBatch


def write_decided(settings: Settings, chunks: Iterable[list[LoggedRows]]) -> Written:
    """Returns when all rows are committed. Connects when there is a row to write."""
    written, writer = Written(), None
    try:
        is_normal = not settings.changefeed.enable_active_active
        for chunk in whole_transactions(chunks) if is_normal else chunks:
            writer = writer or Writer(Target.from_settings(settings), Limits.from_settings(settings))
            for steps in stages(settings, chunk):
                written += writer.write(steps)
    finally:
        if writer is not None:
            writer.close()
    return written


def stages(settings: Settings, chunk: list[LoggedRows]) -> Iterator[list[Step]]:
    """The steps of a chunk; each list is to be committed before the next."""
    if settings.changefeed.enable_active_active:
        # Rows that came from another cluster are not among the decisions.
        batches = (rows.batch for rows in chunk)
        column = settings.uri.options.commit_ts_column
        yield [
            step
            for batch in batches
            for step in lww_steps(batch, settings.compat, skip_replicated=False, commit_ts_column=column)
        ]
        return
    tables: dict[tuple[str, str], list[LoggedRows]] = {}
    for rows in chunk:
        tables.setdefault((rows.batch.table.target_schema, rows.batch.table.target_table), []).append(rows)
    for stage in zip_longest(*map(runs, tables.values())):
        yield [step for batch in stage if batch is not None for step in normal_steps(batch)]


def whole_transactions(chunks: Iterable[list[LoggedRows]]) -> Iterator[list[LoggedRows]]:
    """The chunks, none of which ends within a transaction of a table whose only keys may be NULL."""
    held: list[LoggedRows] = []
    for chunk in chunks:
        ready, held = _without_last_transaction([*held, *chunk])
        if ready:
            yield ready
    if held:
        yield held


def _without_last_transaction(chunk: list[LoggedRows]) -> tuple[list[LoggedRows], list[LoggedRows]]:
    """(what can be written, the rows that the next chunk may go on with). Positions of the latter are below those of the next chunk."""
    last = max(chunk, key=lambda rows: rows.position[-1])
    if last.batch.table.handle_key or not unique_keys(last.batch.table):
        return chunk, []
    ready, held = [], []
    for rows in chunk:
        is_held = _of_last_transaction(rows, last)
        for parts, chosen, moved in ((ready, ~is_held, 0), (held, is_held, int(last.position[-1]) + 1)):
            if chosen.any():
                which = np.flatnonzero(chosen)
                parts.append(
                    replace(
                        rows,
                        batch=compacted(take(rows.batch, which)),
                        decisions=rows.decisions.take(pa.array(which)),
                        position=rows.position[which] - moved,
                    )
                )
    return ready, held


def _of_last_transaction(rows: LoggedRows, last: LoggedRows) -> np.ndarray:
    """Which of the rows belong to the table and the transaction of the last one of `last`."""
    changes, end = rows.batch.changes, last.batch.changes
    table, other = rows.batch.table, last.batch.table
    place = (rows.upstream_id, table.target_schema, table.target_table)
    is_same = place == (last.upstream_id, other.target_schema, other.target_table)
    return is_same & (changes.commit_ts == end.commit_ts[-1]) & (changes.start_ts == end.start_ts[-1])


def runs(parts: list[LoggedRows]) -> Iterator[RowBatch]:
    """The rows of one table in the order of the decisions, cut where another version of the table begins."""
    versions: dict[tuple[str, int], list[LoggedRows]] = {}
    for part in parts:
        versions.setdefault((part.upstream_id, part.batch.table.version), []).append(part)
    batches = [joined([part.batch for part in same]) for same in versions.values()]
    positions = [np.concatenate([part.position for part in same]) for same in versions.values()]
    version = np.repeat(np.arange(len(batches)), [len(each) for each in positions])
    change = np.concatenate([np.arange(len(each)) for each in positions])
    order = np.argsort(np.concatenate(positions), kind="stable")
    for run in np.split(order, np.flatnonzero(np.diff(version[order])) + 1):
        yield take(batches[version[run[0]]], change[run])
