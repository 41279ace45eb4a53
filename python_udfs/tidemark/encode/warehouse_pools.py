"""Rows of many tables as they stand in the warehouse: the texts of `warehouse`, for cells that were decoded together (`wire.cell_pools`).

A pool's values are printed at once. Rows are then put together from words as in `parts`, each from as many words as its table has columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.encode.canal_json import data_value
from tidemark.encode.collation import folded, is_collated
from tidemark.encode.parts import joined
from tidemark.encode.strings import json_string, offsets_of
from tidemark.wire.cell_pools import NO_COLUMN, CellPools, Layout, counted_up, padded, pool_column
from tidemark.wire.table_info import Column

_NULL = "null"
# Words that are picked at once: what stays in the processor's caches.
_BLOCK = 128 * 1024


class PooledRows:
    """The rows of all chunks, chunk after chunk.

    `values`: the values of each pool; `layout`: the layout of each chunk; `handle_keys`: for each chunk a row of `handle_columns`, the places of the columns of its table's handle key.
    """

    def __init__(
        self,
        cells: CellPools,
        values: dict[int, pa.Array],
        layouts: Sequence[Layout],
        layout: np.ndarray,
        handle_columns: Sequence[Sequence[int]],
        handle_keys: np.ndarray,
    ):
        self._cells, self._values = cells, values
        self._layouts, self._layout = layouts, layout
        self._first_row = np.cumsum(cells.rows) - cells.rows
        self._chunk = np.repeat(np.arange(len(cells.rows)), cells.rows)
        self._handle_columns = padded([np.array(columns, np.int64) for columns in handle_columns])
        self._handle_counts = np.array([len(columns) for columns in handle_columns])
        self._handle_keys = handle_keys

    @cached_property
    def _pools(self) -> np.ndarray:
        """[layout, column]"""
        return padded([layout.pools for layout in self._layouts])

    @cached_property
    def _key_forms(self) -> tuple[np.ndarray, list[Column]]:
        """[layout, column]: how its values are printed in a key, and a column of each such form. Texts also depend on their collation there."""
        numbers: dict[tuple, int] = {}
        columns: list[Column] = []
        forms = []
        for layout in self._layouts:
            of_layout = []
            for column, pool in zip(layout.columns, layout.pools.tolist(), strict=True):
                form = pool, *_collation(column, self._values.get(pool))
                if form not in numbers:
                    numbers[form] = len(columns)
                    columns.append(column)
                of_layout.append(numbers[form])
            forms.append(np.array(of_layout, np.int64))
        return padded(forms), columns

    def column(self, name: str, rows: np.ndarray, kind: pa.DataType) -> pa.Array:
        """The column of this name in each of these rows (-1: none), as this type; null for tables that do not have it."""
        places = np.array(
            [
                next((place for place, column in enumerate(layout.columns) if column.name == name), NO_COLUMN)
                for layout in self._layouts
            ]
        )
        found = np.flatnonzero(rows >= 0)
        column = places[self._layout[self._chunk[rows[found]]]]
        found, column = found[column != NO_COLUMN], column[column != NO_COLUMN]
        if not len(found):
            return pa.nulls(len(rows), kind)
        pool, cell = self._cell(rows[found], column)
        parts, index, base = [], np.full(len(rows), -1), 0
        for number in np.unique(pool).tolist():
            here = np.flatnonzero(pool == number)
            parts.append(self._values[number].take(pa.array(cell[here])).cast(kind))
            index[found[here]] = np.arange(base, base + len(here))
            base += len(here)
        return pa.concat_arrays(parts).take(pa.array(index, mask=index < 0))

    def value_texts(self) -> pa.StringArray:
        """The object of each row."""
        labels: list[str] = ["}"]
        ranks, firsts, sizes = [], [], []
        for layout in self._layouts:
            kept = np.array([not column.is_virtual_generated for column in layout.columns], bool)
            ranks.append(np.where(kept, np.cumsum(kept) - 1, NO_COLUMN))
            firsts.append(len(labels))
            names = [
                json_string(column.name) + ":" for column in layout.columns if not column.is_virtual_generated
            ]
            labels += ["{" + name if not place else "," + name for place, name in enumerate(names)]
            sizes.append(2 * len(names) + 1)
        rank, first_label = padded(ranks), np.array(firsts)
        size = np.array(sizes)[self._layout]
        bounds = np.append(0, np.cumsum(np.repeat(size, self._cells.rows)))
        places = np.empty(int(bounds[-1]), np.int32)
        places[bounds[1:] - 1] = 0
        words, base = [pa.array(labels)], len(labels)
        for number, pool in self._cells.pools.items():
            words.append(_texts(self._values[number], pool_column(number)))
            layout = self._layout[pool.chunk]
            of_piece = rank[layout, pool.column]
            at = np.repeat(bounds[self._first_row[pool.chunk]] + 2 * of_piece, pool.count)
            at += np.repeat(size[pool.chunk], pool.count) * counted_up(np.zeros_like(pool.count), pool.count)
            label = np.repeat(first_label[layout] + of_piece, pool.count)
            word = np.arange(base, base + len(at), dtype=np.int32)
            if (of_piece == NO_COLUMN).any():
                sent = np.repeat(of_piece != NO_COLUMN, pool.count)
                at, label, word = at[sent], label[sent], word[sent]
            places[at], places[at + 1] = label, word
            base += len(words[-1])
        return _picked(pa.concat_arrays(words), places, bounds)

    def key_texts(self, rows: np.ndarray) -> pa.StringArray:
        """The handle key of each of these rows; null for tables that have none."""
        keyed, row, number, column = self._key_cells(rows)
        bounds = np.append(0, np.cumsum(2 * self._handle_count(rows[keyed]) + 1))
        places = np.empty(int(bounds[-1]), np.int32)
        at = bounds[row] + 2 * number
        places[at] = number > 0
        places[bounds[1:] - 1] = 2
        words, base = [pa.array(["[", ",", "]"])], 3
        pool, cell = self._cell(rows[keyed][row], column)
        forms, columns = self._key_forms
        form = forms[self._layout[self._chunk[rows[keyed]]][row], column]
        for code in np.unique(form).tolist():
            here = np.flatnonzero(form == code)
            values = self._values[int(pool[here[0]])].take(pa.array(cell[here]))
            words.append(_texts(folded(values, columns[code]), columns[code]))
            places[at[here] + 1] = np.arange(base, base + len(here))
            base += len(here)
        texts = _picked(pa.concat_arrays(words), places, bounds)
        if len(keyed) == len(rows):
            return texts
        index = np.full(len(rows), -1)
        index[keyed] = np.arange(len(keyed))
        return texts.take(pa.array(index, mask=index < 0))

    def differ_in_key(self, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Whether two rows of a table, or more such pairs, have another value in a column of the handle key. NULL is like nothing."""
        keyed, row, _, column = self._key_cells(old)
        pool, before = self._cell(old[keyed][row], column)
        _, after = self._cell(new[keyed][row], column)
        differs = np.zeros(len(old), bool)
        for number in np.unique(pool).tolist():
            here = np.flatnonzero(pool == number)
            values = self._values[number]
            same = pc.equal(values.take(pa.array(before[here])), values.take(pa.array(after[here])))
            is_same = pc.fill_null(same, False).to_numpy(zero_copy_only=False)
            differs[keyed[row[here[~is_same]]]] = True
        return differs

    def _handle_count(self, rows: np.ndarray) -> np.ndarray:
        return self._handle_counts[self._handle_keys[self._chunk[rows]]]

    def _key_cells(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Which of the rows have a key; and for each value of these keys: the number of its row among them, its own number within the key, and its column."""
        count = self._handle_count(rows)
        keyed = np.flatnonzero(count)
        row = np.repeat(np.arange(len(keyed)), count[keyed])
        number = counted_up(np.zeros(len(keyed), np.int64), count[keyed])
        column = self._handle_columns[self._handle_keys[self._chunk[rows[keyed]]][row], number]
        return keyed, row, number, column

    def _cell(self, rows: np.ndarray, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The pool, and the place in it, of one column of each of these rows."""
        chunk = self._chunk[rows]
        pool = self._pools[self._layout[chunk], column]
        return pool, self._cells.first_cell[chunk, column] + rows - self._first_row[chunk]


def _collation(column: Column, values: pa.Array | None) -> tuple:
    if values is None or not is_collated(values, column):
        return ()
    return column.collate.endswith("_ci"), "_0900_" in column.collate


def _texts(values: pa.Array, column: Column) -> pa.StringArray:
    """The values between quotes, and the word for NULL."""
    return joined(data_value(values, column), _NULL)


def _picked(words: pa.StringArray, places: np.ndarray, bounds: np.ndarray) -> pa.StringArray:
    """Rows put together from words: row i has those at places[bounds[i]:bounds[i + 1]]."""
    blocks = []
    first, count = 0, len(bounds) - 1
    while first < count:
        last = max(int(np.searchsorted(bounds, bounds[first] + _BLOCK, "right")) - 1, first + 1)
        low, high = int(bounds[first]), int(bounds[last])
        text = pc.take(words, pa.array(places[low:high]), boundscheck=False)
        edges = np.ascontiguousarray(offsets_of(text)[bounds[first : last + 1] - low])
        buffers = [None, pa.py_buffer(edges), text.buffers()[2]]
        blocks.append(pa.Array.from_buffers(pa.string(), last - first, buffers))
        first = last
    return pa.concat_arrays(blocks) if blocks else pa.array([], pa.string())
