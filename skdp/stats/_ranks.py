"""Where the rows of given ranks are in columns, of rows in memory or by sums over a table's parts.

A value is known by its cell, the nearest point of a public grid between its column's bounds. A
number holds the column, the cell and the row's weight: a key, in whose order all values of a table
stand in one line, column by column. A weight from 0 on is a place in this line.
"""

from functools import partial

import numpy as np

from skdp._data._parts import gather_over, map_over, sum_over
from skdp.utils import ChunkedArray

# Values lie on a public grid of this many steps between the bounds.
CELLS = 1 << 24
# A person's rows weigh so much at most together.
WHOLE = 1 << 20
# All whole numbers that 2**20 / k can be rounded down to: those below 2**10, and of k up to 2**10.
_SMALL = 1 << 10
CODE_BITS = 11
WEIGHTS = np.append(np.arange(_SMALL), WHOLE // np.arange(1, _SMALL + 1))
# The code of the weight 1, which rows have where no person's are told apart; what is missing has
# no weight, in the last of all cells.
_ONE = 1
# Cells are told apart by so many bits in each of several rounds of counts.
_ROUND_BITS = 9
_ROUNDS = 3
COLUMN_SHIFT = CODE_BITS + _ROUND_BITS * _ROUNDS
_MISSING = (1 << COLUMN_SHIFT) - (1 << CODE_BITS)
# So many keys are in memory at a time, of one column or of several.
_MOST_KEYS = 1 << 23


def weight_codes(row_weights):
    """Return the place of each share, in whole steps, among `WEIGHTS`."""
    weights = np.floor(row_weights * WHOLE).astype(np.int64)
    codes = np.where(weights < _SMALL, weights, _SMALL - 1 + WHOLE // np.maximum(weights, 1))
    return codes.astype(np.int16)


def weights_of(keys):
    """Return what the rows of keys, or of other numbers that end in the codes, weigh."""
    return WEIGHTS[keys & ((1 << CODE_BITS) - 1)]


def ranked_columns(rows, low, high, row_weights=None):
    """Yield the columns of a table, one by one or several together, by the ranks of their rows.

    Parameters
    ----------
    rows : Rows
        Of numbers; NaN counts nowhere.
    low, high : ndarray of shape (n_columns,)
    row_weights : ndarray of shape (n_rows,), default=None
        What the rows of persons weigh; None where each row weighs 1.

    Yields
    ------
    SortedColumns or CountedColumns
        Both answer alike. A table in parts is counted where its parts are.
    """
    n_rows = rows.shape[0]
    in_parts = isinstance(rows.X, ChunkedArray)
    codes = None if row_weights is None else weight_codes(row_weights)
    size = len(low) if in_parts else max(1, _MOST_KEYS // n_rows)
    for first in range(0, len(low), size):
        own = slice(first, first + size)
        making = partial(_keys_of, columns=own, low=low[own], high=high[own])
        keys = rows.mapped(making, codes)
        shape = low[own].shape
        if not in_parts:
            # Held, that is column by column.
            keys = map_over(keys, np.asarray, shape=shape, dtype=np.int64, persist=True)
        yield CountedColumns(keys, *shape) if in_parts else SortedColumns(keys)


def _keys_of(block, codes, columns, low, high):
    """Return the keys of some columns of a block."""
    block = block[:, columns]
    with np.errstate(all="ignore"):
        scaled = np.clip(block, low, high, dtype=np.float64)
        # Halves, because high - low can overflow.
        scaled *= 0.5
        scaled -= 0.5 * low
        scaled /= 0.5 * high - 0.5 * low
        np.clip(scaled, 0.0, 1.0, out=scaled)
        scaled *= CELLS
        np.rint(scaled, out=scaled)
    missing = np.isnan(block)
    scaled[missing | ~(0.5 * high > 0.5 * low)] = 0.0
    keys = scaled.astype(np.int64)
    keys <<= CODE_BITS
    keys += _ONE if codes is None else codes[:, None]
    keys[missing] = _MISSING
    keys += np.arange(len(low)) << COLUMN_SHIFT
    return keys


class SortedColumns:
    """Columns whose keys are in memory.

    Parameters
    ----------
    keys : ndarray of shape (n_rows, n_columns), in the order of columns
        They are sorted in place.

    Attributes
    ----------
    starts : list of int
        The weights at which columns begin, and the weight of all.
    """

    def __init__(self, keys):
        keys.sort(axis=0)
        self._keys, self._below = keys.T.ravel(), np.zeros(keys.size + 1, dtype=np.int64)
        np.cumsum(weights_of(self._keys), out=self._below[1:])
        self.starts = self._below[:: len(keys)].tolist()

    def find(self, weights):
        """Return the cells in which weights lie, and the weight of all rows in cells before them.

        Parameters
        ----------
        weights : list of int
            From 0 on and below that of all: the cell holds the row that reaches beyond it, if rows
            are added up in the order of their keys.

        Returns
        -------
        list of (int, int)
            The first is the least key that a row of the cell could have.
        """
        keys = self._keys[np.searchsorted(self._below, weights, side="right") - 1]
        cells = keys >> CODE_BITS << CODE_BITS
        below = self._below[np.searchsorted(self._keys, cells)]
        return list(zip(cells.tolist(), below.tolist(), strict=True))

    def rows(self, runs):
        """Return the sorted keys of the rows in runs of keys.

        Parameters
        ----------
        runs : list of (int, int)
            The least key and the one after the last.

        Returns
        -------
        list of ndarray
        """
        return _cut(self._keys, runs)


class CountedColumns:
    """Columns whose rows stay where they are: what is asked takes passes of sums over them.

    `find` takes two, `rows` takes one; the methods are those of `SortedColumns`.

    Parameters
    ----------
    keys : Rows
    n_columns : int
    """

    def __init__(self, keys, n_columns):
        self._keys = keys
        self._first = self._counts(np.arange(n_columns), _ROUNDS - 1)
        self.starts = np.append(0, np.cumsum(self._first.sum(axis=1))).tolist()

    def find(self, weights):
        weights = np.array(weights, dtype=np.int64)
        prefixes = np.searchsorted(self.starts, weights, side="right") - 1
        below = np.array(self.starts)[prefixes]
        for round_ in reversed(range(_ROUNDS)):
            if round_ == _ROUNDS - 1:
                counts = self._first[prefixes]
            else:
                wanted, place = np.unique(prefixes, return_inverse=True)
                counts = self._counts(wanted, round_)[place]
            reached = below[:, None] + np.cumsum(counts, axis=1)
            child = np.sum(reached <= weights[:, None], axis=1)
            below = np.take_along_axis(reached - counts, child[:, None], axis=1)[:, 0]
            prefixes = (prefixes << _ROUND_BITS) | child
        return list(zip((prefixes << CODE_BITS).tolist(), below.tolist(), strict=True))

    def rows(self, runs):
        # Each row once, where runs have rows in common.
        first, end = np.array(sorted(runs), dtype=np.int64).reshape(-1, 2).T
        end = np.maximum.accumulate(end)
        apart = np.append(True, first[1:] > end[:-1])[: len(first)]
        first = first[apart]
        end = end[np.append(apart[1:], True)[: len(end)]]
        keys, counts = gather_over(self._keys, _keys_in_runs, _merged, first, end).T
        return _cut(np.repeat(keys, counts), runs)

    def _counts(self, prefixes, round_):
        """Return the weights of the rows whose keys begin with some prefixes, by the next bits."""
        total = np.zeros((len(prefixes), 1 << _ROUND_BITS), dtype=np.int64)
        return sum_over(self._keys, _add_weights, total, prefixes, round_)


def _cut(keys, runs):
    places = np.searchsorted(keys, np.array(runs, dtype=np.int64).reshape(-1, 2))
    return [keys[start:stop] for start, stop in places]


def _add_weights(total, keys, prefixes, round_):
    keys = keys.ravel()
    children = keys >> (CODE_BITS + round_ * _ROUND_BITS)
    place = np.searchsorted(prefixes, children >> _ROUND_BITS)
    place[place == len(prefixes)] = 0
    hit = prefixes[place] == children >> _ROUND_BITS
    index = (place[hit] << _ROUND_BITS) | (children[hit] & ((1 << _ROUND_BITS) - 1))
    # Sums of whole numbers that doubles hold.
    weights = np.bincount(index, weights_of(keys[hit]), minlength=total.size)
    total += weights.astype(np.int64).reshape(total.shape)


def _keys_in_runs(keys, first, end):
    """Return the keys of a block's rows in runs that are apart: key and number of rows."""
    keys = keys[keys < end[np.searchsorted(first, keys, side="right") - 1]]
    return np.column_stack(np.unique(keys[keys >= first[0]], return_counts=True))


def _merged(found):
    """Return tables of keys and numbers of rows as one, with each key once, sorted."""
    found = np.concatenate(found)
    found = found[np.argsort(found[:, 0], kind="stable")]
    starts = np.flatnonzero(np.diff(found[:, 0], prepend=-1))
    counts = np.add.reduceat(found[:, 1], starts) if len(found) else found[:, 1]
    return np.column_stack([found[starts, 0], counts])
