"""RowBatch: the row changes of one or several BatchDML payloads of one table version, columnar.

The values of all rows are in the chunk (`chunk.py`), one *physical* row after the other. The transactions in front of it say what happened: a
row type per physical row (0 delete, 1 insert, 2 update), where an update takes two rows in a row, its pre-image and its post-image. Here the two are put
together into one entry per row change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

import numpy as np
import pyarrow as pa

from tidemark.errors import TidemarkError
from tidemark.wire.chunk import WireCells, decode_chunks
from tidemark.wire.columns.cells import Cells
from tidemark.wire.errors import InvalidField, WireError
from tidemark.wire.events.batch_dml import BatchDMLEvent, write
from tidemark.wire.events.dml import DELETE, INSERT, UPDATE
from tidemark.wire.row_keys import row_key_array
from tidemark.wire.table_info import TableInfo
from tidemark.wire.transactions import Transactions, explain, read_transactions

OP_NAMES = {DELETE: "delete", INSERT: "insert", UPDATE: "update"}
NO_ROW = -1

# Columns that `to_arrow` adds to those of the table.
META_PREFIX = "_tidemark_"

Batch = bytes | memoryview | BatchDMLEvent
_Key = TypeVar("_Key")


@cache
def op_names() -> pa.StringArray:
    """The name of each op at its number. Made when it is asked for: Arrow loads pandas for its first array, which many processes never need."""
    return pa.array([OP_NAMES[op] for op in sorted(OP_NAMES)])


@dataclass(frozen=True)
class Changes:
    """One entry per row change; numpy arrays of equal length. `pre` and `post` are physical rows (-1: none), the new image behind the old one."""

    op: np.ndarray
    pre: np.ndarray
    post: np.ndarray
    start_ts: np.ndarray
    commit_ts: np.ndarray
    seq: np.ndarray
    epoch: np.ndarray
    physical_table_id: np.ndarray
    row_key: pa.BinaryArray

    def __len__(self) -> int:
        return len(self.op)

    def last_images(self) -> np.ndarray:
        """The new row of each row change, of a delete the old one."""
        return np.maximum(self.pre, self.post)


@dataclass(frozen=True)
class RowBatch:
    table: TableInfo
    columns: pa.RecordBatch
    changes: Changes
    dispatcher_id: bytes
    # Where rows come from elsewhere than the wire there are none.
    cells: WireCells | None = field(default=None, compare=False, repr=False)

    def wire_cells(self, position: int) -> Cells | None:
        """The cells of a column of one of KEPT_KINDS, where they are still at hand."""
        # A batch made from this one may have other rows.
        if self.cells is None or self.cells.columns is not self.columns:
            return None
        return self.cells.by_position[position]

    def to_arrow(self) -> pa.RecordBatch:
        """One row per physical row: the table's columns, then what happened to the row.

        `op` (0 delete, 1 insert, 2 update), `image` (pre or post), `row` (number of the row change in this batch: the two images of an
        update share it), `commit_ts`, `start_ts`, `seq`, `epoch`, `physical_table_id` and `row_key`, all prefixed with `_tidemark_`.
        """
        reserved = [name for name in self.columns.schema.names if name.startswith(META_PREFIX)]
        if reserved:
            raise TidemarkError(
                f"{self.table.schema}.{self.table.table} has columns {reserved}: names that start with {META_PREFIX!r} are reserved; "
                "rename the columns or leave the table out with a table filter"
            )
        changes = self.changes
        row = np.empty(self.columns.num_rows, dtype=np.int64)
        is_post = np.zeros(self.columns.num_rows, dtype=np.int8)
        for images, which in ((changes.pre, 0), (changes.post, 1)):
            there = np.flatnonzero(images != NO_ROW)
            row[images[there]] = there
            is_post[images[there]] = which
        meta = {
            "op": pa.array(changes.op[row]),
            "image": pa.array(["pre", "post"]).take(pa.array(is_post)),
            "row": pa.array(row),
            "commit_ts": pa.array(changes.commit_ts[row]),
            "start_ts": pa.array(changes.start_ts[row]),
            "seq": pa.array(changes.seq[row]),
            "epoch": pa.array(changes.epoch[row]),
            "physical_table_id": pa.array(changes.physical_table_id[row]),
            "row_key": changes.row_key.take(pa.array(row)),
        }
        names = [*self.columns.schema.names, *(META_PREFIX + name for name in meta)]
        return pa.RecordBatch.from_arrays([*self.columns.columns, *meta.values()], names=names)


def decode_batch(batches: Batch | Sequence[Batch], table: TableInfo) -> RowBatch:
    """The rows of one or many BatchDML payloads (or decoded events) of one dispatcher and one table version.

    Many are joined before anything is decoded. A few megabytes at once (10,000 rows or so) are several times faster than batches one by
    one; much more than that no longer fits into the processor's caches.
    """
    if isinstance(batches, bytes | bytearray | memoryview | BatchDMLEvent):
        batches = [batches]
    payloads = [memoryview(write(batch) if isinstance(batch, BatchDMLEvent) else batch) for batch in batches]
    transactions, chunks = read_transactions(payloads)
    try:
        columns, rows, cells = decode_chunks(chunks, table)
    except WireError as error:
        raise error.at(len(payloads[0]) - len(chunks[0]) if len(payloads) == 1 else 0) from None
    dispatchers = set(transactions.heads["dispatcher_id"].tolist())
    if len(dispatchers) > 1:
        raise InvalidField(
            "the transactions of a batch belong to several dispatchers",
            expected="one dispatcher",
            actual=sorted(dispatcher.hex() for dispatcher in dispatchers),
        )
    changes = changes_of(transactions, rows)
    if changes is None:
        raise explain(payloads)
    return RowBatch(table, columns, changes, next(iter(dispatchers), b""), cells)


def decode_batches(
    batches: Iterable[tuple[_Key, Batch]], table: TableInfo
) -> tuple[RowBatch | None, list[tuple[_Key, WireError]]]:
    """As `decode_batch`, but batches that cannot be decoded are left out and returned with their key and error."""
    batches = list(batches)
    try:
        return (decode_batch([batch for _, batch in batches], table) if batches else None), []
    except WireError as error:
        if len(batches) == 1:
            return None, [(batches[0][0], error)]
    good, bad = [], []
    for key, batch in batches:
        try:
            decode_batch(batch, table)
            good.append(batch)
        except WireError as error:
            bad.append((key, error))
    return (decode_batch(good, table) if good else None), bad


def changes_of(
    transactions: Transactions, rows: Sequence[int], keyless: np.ndarray | None = None
) -> Changes | None:
    """The row changes of transactions whose chunks have so many rows; None where row keys are not what they promise. `keyless`: see `row_key_array`."""
    types, counts = transactions.row_types, transactions.type_counts
    ends = np.cumsum(counts)
    physical = _physical_rows(transactions, rows, ends)

    updates = np.flatnonzero(types == UPDATE)
    first, second = updates[0::2], updates[1::2]
    opens_transaction = np.zeros(len(types) + 1, dtype=bool)
    opens_transaction[ends] = True
    if len(first) != len(second) or (second != first + 1).any() or opens_transaction[second].any():
        raise InvalidField(
            "an update without its partner: pre- and post-image must follow each other in one transaction",
            expected="two rows per update",
            actual=len(updates),
        )
    kept = np.ones(len(types), dtype=bool)
    kept[second] = False
    entries = np.flatnonzero(kept)
    op = types[entries]
    per_transaction = counts - np.diff(np.searchsorted(second, ends), prepend=0)
    announced = transactions.column("row_count", np.int64)
    if (per_transaction != announced).any():
        bad = int(np.argmax(per_transaction != announced))
        raise InvalidField(
            f"transaction {bad} announces {announced[bad]} row changes and lists {per_transaction[bad]}",
            expected=int(announced[bad]),
            actual=int(per_transaction[bad]),
        )
    row_key = row_key_array(transactions, entries, keyless)
    if row_key is None:
        return None
    where = entries if physical is None else physical[entries]

    def spread(name: str, dtype: type = np.uint64) -> np.ndarray:
        return np.repeat(transactions.column(name, dtype), per_transaction)

    return Changes(
        op=op,
        pre=np.where(op == INSERT, NO_ROW, where),
        post=np.where(op == DELETE, NO_ROW, where + (op == UPDATE)),
        start_ts=spread("start_ts"),
        commit_ts=spread("commit_ts"),
        seq=spread("seq"),
        epoch=spread("epoch"),
        physical_table_id=spread("physical_table_id", np.int64),
        row_key=row_key,
    )


def _physical_rows(transactions: Transactions, rows: Sequence[int], ends: np.ndarray) -> np.ndarray | None:
    """The physical row of every listed row; None where they simply follow each other, as they do unless a sender reorders."""
    counts = transactions.type_counts
    starts = ends - counts
    batch_starts = np.cumsum([0, *rows])
    firsts = np.repeat(batch_starts[:-1], transactions.per_batch)
    firsts += transactions.column("previous_total_offset", np.int64)
    limits = np.repeat(batch_starts[1:], transactions.per_batch)
    total = int(ends[-1]) if len(ends) else 0
    if total != batch_starts[-1] or (firsts + counts > limits).any():
        raise InvalidField(
            f"the transactions list {total} rows, the chunk has {batch_starts[-1]}",
            expected=total,
            actual=int(batch_starts[-1]),
        )
    if (firsts == starts).all():
        return None
    physical = np.arange(total) + np.repeat(firsts - starts, counts)
    if (np.sort(physical) != np.arange(total)).any():
        raise InvalidField("two transactions claim the same rows of the chunk")
    return physical
