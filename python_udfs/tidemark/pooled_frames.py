"""BatchDML frames of many tables, decoded together: what `joined_frames` is for the frames of one table, this is for tables with a few rows each.

Nothing here says what is wrong with a frame. Where one is, the call fails, and the caller decodes the groups of frames one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidemark.joined_frames import FrameGroup
from tidemark.wire.cell_pools import CellPools, Layout, decode_together, layout_of
from tidemark.wire.errors import InvalidField
from tidemark.wire.rows import Changes, changes_of
from tidemark.wire.transactions import Transactions, read_transactions

# Groups that are larger gain nothing.
POOLED_BYTES = 128 * 1024


def can_be_pooled(group: FrameGroup) -> bool:
    """Whether a group is small; one of rows without any value goes its own way."""
    return group.size < POOLED_BYTES and not all(
        column.is_virtual_generated for column in group.schema.table.columns
    )


@dataclass(frozen=True)
class PooledFrames:
    """The row changes of some groups, group after group. `pre` and `post` of the changes are rows of all chunks together."""

    groups: Sequence[FrameGroup]
    layouts: list[Layout]
    # The layout of each group.
    layout: np.ndarray
    # The group of each frame, and its offset in its log.
    frame_group: np.ndarray
    frame_offset: np.ndarray
    cells: CellPools
    transactions: Transactions
    # The frame of each transaction.
    transaction_frame: np.ndarray
    changes: Changes
    # Of each row change: its transaction, its frame, and its number within the frame.
    transaction: np.ndarray
    frame: np.ndarray
    row_number: np.ndarray

    @property
    def first_row(self) -> np.ndarray:
        """Where the rows of each frame begin."""
        return np.cumsum(self.cells.rows) - self.cells.rows


def decode_groups(groups: Sequence[FrameGroup]) -> PooledFrames:
    frames = [frame for group in groups for frame in group.frames]
    frame_group = np.repeat(np.arange(len(groups)), [len(group.frames) for group in groups])
    transactions, chunks = read_transactions([payload for _, payload in frames])
    transaction_frame = np.repeat(np.arange(len(frames)), transactions.per_batch)
    _check_dispatchers(transactions, groups, frame_group[transaction_frame])
    layouts, layout = _layouts(groups)
    cells = decode_together(chunks, layouts, layout[frame_group], frame_group)
    changes = changes_of(transactions, cells.rows, _keyless(transactions, frame_group[transaction_frame]))
    if changes is None:
        raise InvalidField("row keys that cannot be read")
    per_transaction = transactions.column("row_count", np.int64)
    per_frame = np.bincount(transaction_frame, per_transaction, len(frames)).astype(np.int64)
    first_change = np.cumsum(per_frame) - per_frame
    return PooledFrames(
        groups=groups,
        layouts=layouts,
        layout=layout,
        frame_group=frame_group,
        frame_offset=np.array([offset for offset, _ in frames], np.int64),
        cells=cells,
        transactions=transactions,
        transaction_frame=transaction_frame,
        changes=changes,
        transaction=np.repeat(np.arange(len(per_transaction)), per_transaction),
        frame=np.repeat(np.arange(len(frames)), per_frame),
        row_number=np.arange(len(changes)) - np.repeat(first_change, per_frame),
    )


def _keyless(transactions: Transactions, group: np.ndarray) -> np.ndarray:
    """The transactions of groups in which no row has a key."""
    return (np.bincount(group, transactions.key_counts) == 0)[group]


def _layouts(groups: Sequence[FrameGroup]) -> tuple[list[Layout], np.ndarray]:
    """The different layouts, and which one each group has."""
    numbers: dict[int, int] = {}
    layouts: list[Layout] = []
    which = []
    for group in groups:
        columns = group.schema.table.columns
        number = numbers.get(id(columns))
        if number is None:
            number = numbers[id(columns)] = len(layouts)
            layouts.append(layout_of(columns))
        which.append(number)
    return layouts, np.array(which)


def _check_dispatchers(transactions: Transactions, groups: Sequence[FrameGroup], group: np.ndarray) -> None:
    expected = np.array([np.void(group.dispatcher_id) for group in groups])
    if (transactions.heads["dispatcher_id"] != expected[group]).any():
        raise InvalidField("the transactions of a batch belong to several dispatchers")
