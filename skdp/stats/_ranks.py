"""Search for the rows with given ranks in columns, in memory or by sums over partitions.

Values are rounded to cells, the nearest points of a public grid between the column's bounds. A
value is represented by a key, an integer that encodes the column, the cell and the row's weight.
Sorted keys put all values of a table in one sequence, column by column. A cumulative weight is a
position in this sequence.
"""

from functools import partial

import numpy as np

from skdp._data._chunked import ChunkedArray
from skdp._data._parts import gather_over, map_over, sum_over

# Number of steps of the public grid between the bounds.
CELLS = 1 << 24
# Maximum total weight of the rows of a person. Each of a person's k rows has weight WHOLE // k.
WHOLE = 1 << 20
# All values of WHOLE // k: the integers below 2**10, and the quotients for k up to 2**10.
_SMALL = 1 << 10
CODE_BITS = 11
WEIGHTS = np.append(np.arange(_SMALL), WHOLE // np.arange(1, _SMALL + 1))
# Code of weight 1, which all rows have if there are no persons. A missing value has weight 0 and
# the last cell.
_ONE = 1
# A search by counts takes _ROUNDS rounds, each of which determines _ROUND_BITS bits of the cell.
_ROUND_BITS = 9
_ROUNDS = 3
COLUMN_SHIFT = CODE_BITS + _ROUND_BITS * _ROUNDS
_MISSING = (1 << COLUMN_SHIFT) - (1 << CODE_BITS)
# Maximum number of keys in memory at a time, from one column or several.
_MAX_KEYS = 1 << 23
# Number of keys whose weights are summed at a time.
_SUMMED_KEYS = 1 << 15


def weight_codes(row_weights):
    """Return the code of each row weight, its index among `WEIGHTS` after rounding down."""
    weights = np.floor(row_weights * WHOLE).astype(np.int64)
    codes = np.where(weights < _SMALL, weights, _SMALL - 1 + WHOLE // np.maximum(weights, 1))
    return codes.astype(np.int16)


def weights_of(keys):
    """Return the weights of rows from their keys, or from other integers that end in the codes."""
    codes = keys & ((1 << CODE_BITS) - 1)
    if codes.max(initial=0) <= _ONE:
        # The codes 0 and 1 are the weights 0 and 1.
        return codes
    return WEIGHTS[codes]


def ranked_columns(rows, low, high, row_weights=None):
    """Yield the columns of a table, prepared for searches by rank.

    Parameters
    ----------
    rows : Rows
        Numbers. NaN has no rank.
    low, high : ndarray of shape (n_columns,)
        Bounds of the columns.
    row_weights : ndarray of shape (n_rows,), default=None
        Weights of the rows of persons; None if each row has weight 1.

    Yields
    ------
    SortedColumns or CountedColumns
        One or several columns. Both classes have the same methods. A partitioned table is counted
        without moving its rows.
    """
    n_rows = rows.shape[0]
    has_partitions = isinstance(rows.X, ChunkedArray)
    if row_weights is None:
        codes = None
    else:
        codes = weight_codes(row_weights)
    if has_partitions:
        n_at_once = len(low)
    else:
        n_at_once = max(1, _MAX_KEYS // n_rows)
    for first in range(0, len(low), n_at_once):
        columns = slice(first, first + n_at_once)
        to_keys = partial(_keys_of, columns=columns, low=low[columns], high=high[columns])
        keys = rows.mapped(to_keys, codes)
        shape = low[columns].shape
        if has_partitions:
            yield CountedColumns(keys, *shape)
        else:
            # The array is stored column by column, and columns are sorted in place.
            column_keys = map_over(keys, np.asarray, shape=shape, dtype=np.int64, order="F")
            yield SortedColumns(column_keys)


def _keys_of(block, codes, columns, low, high):
    """Return the keys of the values of some columns of a block."""
    block = block[:, columns]
    with np.errstate(all="ignore"):
        scaled = np.clip(block, low, high, dtype=np.float64)
        # Divided by 2, because high - low can overflow.
        scaled *= 0.5
        scaled -= 0.5 * low
        scaled /= 0.5 * high - 0.5 * low
        np.clip(scaled, 0.0, 1.0, out=scaled)
        scaled *= CELLS
        np.rint(scaled, out=scaled)
    is_missing = np.isnan(block)
    scaled[is_missing | ~(0.5 * high > 0.5 * low)] = 0.0
    keys = scaled.astype(np.int64)
    keys <<= CODE_BITS
    if codes is None:
        keys += _ONE
    else:
        keys += codes[:, None]
    keys[is_missing] = _MISSING
    keys += np.arange(len(low)) << COLUMN_SHIFT
    return keys


class SortedColumns:
    """Columns whose keys are in memory, sorted.

    Parameters
    ----------
    keys : ndarray of shape (n_rows, n_columns), in Fortran order
        Sorted in place.

    Attributes
    ----------
    starts : list of int
        Cumulative weight before each column, and the total weight.
    """

    def __init__(self, keys):
        keys.sort(axis=0)
        self._keys = keys.T.ravel()
        self._below = np.zeros(keys.size + 1, dtype=np.int64)
        # Weights are summed in short runs, which stay in the processor's cache.
        for start in range(0, keys.size, _SUMMED_KEYS):
            weights = weights_of(self._keys[start : start + _SUMMED_KEYS])
            sums = self._below[start + 1 : start + 1 + len(weights)]
            np.cumsum(weights, out=sums)
            sums += self._below[start]
        self.starts = self._below[:: len(keys)].tolist()

    def find(self, weights):
        """Return the cells at cumulative weights, and the weight of all rows in earlier cells.

        Parameters
        ----------
        weights : list of int
            Weights from 0 to below the total weight. The cell at a weight contains the first of the
            sorted rows at which the cumulative weight exceeds it.

        Returns
        -------
        list of (int, int)
            The smallest possible key in the cell, and the weight before the cell.
        """
        keys = self._keys[np.searchsorted(self._below, weights, side="right") - 1]
        cells = keys >> CODE_BITS << CODE_BITS
        below = self._below[np.searchsorted(self._keys, cells)]
        return list(zip(cells.tolist(), below.tolist(), strict=True))

    def rows(self, runs):
        """Return the sorted keys of the rows whose keys are in the given ranges.

        Parameters
        ----------
        runs : list of (int, int)
            The smallest key of each range, and the one after the last.

        Returns
        -------
        list of ndarray
        """
        return _cut(self._keys, runs)


class CountedColumns:
    """Columns whose rows stay in their partitions, where each pass of a search sums over them.

    It has the methods of `SortedColumns`. `find` needs two passes, `rows` one.

    Parameters
    ----------
    keys : Rows
        Keys of the values.
    n_columns : int
    """

    def __init__(self, keys, n_columns):
        self._keys = keys
        self._first = self._counts(np.arange(n_columns), _ROUNDS - 1)
        self.starts = np.append(0, np.cumsum(self._first.sum(axis=1))).tolist()

    def find(self, weights):
        """Return the cells at cumulative weights, and the weight of all rows in earlier cells.

        See `SortedColumns.find`. Each round determines the next bits of all cells from one pass of
        sums; the first round's sums are computed once.
        """
        weights = np.array(weights, dtype=np.int64)
        prefixes = np.searchsorted(self.starts, weights, side="right") - 1
        below = np.array(self.starts)[prefixes]
        for round_ in reversed(range(_ROUNDS)):
            if round_ == _ROUNDS - 1:
                counts = self._first[prefixes]
            else:
                distinct, inverse = np.unique(prefixes, return_inverse=True)
                counts = self._counts(distinct, round_)[inverse]
            reached = below[:, None] + np.cumsum(counts, axis=1)
            child = np.sum(reached <= weights[:, None], axis=1)
            below = np.take_along_axis(reached - counts, child[:, None], axis=1)[:, 0]
            prefixes = (prefixes << _ROUND_BITS) | child
        return list(zip((prefixes << CODE_BITS).tolist(), below.tolist(), strict=True))

    def rows(self, runs):
        """Return the sorted keys of the rows whose keys are in the given ranges."""
        # Overlapping ranges are merged, so each row is returned once.
        first, end = np.array(sorted(runs), dtype=np.int64).reshape(-1, 2).T
        end = np.maximum.accumulate(end)
        is_separate = np.append(True, first[1:] > end[:-1])[: len(first)]
        first = first[is_separate]
        end = end[np.append(is_separate[1:], True)[: len(end)]]
        keys, counts = gather_over(self._keys, _keys_in_runs, _merged, first, end).T
        return _cut(np.repeat(keys, counts), runs)

    def _counts(self, prefixes, round_):
        """Return the weights of rows, grouped by the prefix of their key and by its next bits."""
        total = np.zeros((len(prefixes), 1 << _ROUND_BITS), dtype=np.int64)
        return sum_over(self._keys, _add_weights, total, prefixes, round_)


def _cut(keys, runs):
    """Return the sorted keys in each of the given ranges."""
    indices = np.searchsorted(keys, np.array(runs, dtype=np.int64).reshape(-1, 2))
    return [keys[start:stop] for start, stop in indices]


def _add_weights(total, keys, prefixes, round_):
    """Add the weights of a block's rows to `total`, by the prefix of their key and its next bits.

    Rows whose key has none of the prefixes, which are sorted, are left out.
    """
    keys = keys.ravel()
    children = keys >> (CODE_BITS + round_ * _ROUND_BITS)
    prefix_index = np.searchsorted(prefixes, children >> _ROUND_BITS)
    prefix_index[prefix_index == len(prefixes)] = 0
    has_prefix = prefixes[prefix_index] == children >> _ROUND_BITS
    next_bits = children[has_prefix] & ((1 << _ROUND_BITS) - 1)
    index = (prefix_index[has_prefix] << _ROUND_BITS) | next_bits
    # The sums are integers below 2**53, so float64 is exact.
    weights = np.bincount(index, weights_of(keys[has_prefix]), minlength=total.size)
    total += weights.astype(np.int64).reshape(total.shape)


def _keys_in_runs(keys, first, end):
    """Return the distinct keys of a block in disjoint ranges, each with its number of rows."""
    keys = keys[keys < end[np.searchsorted(first, keys, side="right") - 1]]
    return np.column_stack(np.unique(keys[keys >= first[0]], return_counts=True))


def _merged(tables):
    """Return tables of keys and numbers of rows merged into one, sorted, with each key once."""
    table = np.concatenate(tables)
    table = table[np.argsort(table[:, 0], kind="stable")]
    starts = np.flatnonzero(np.diff(table[:, 0], prepend=-1))
    if len(table):
        counts = np.add.reduceat(table[:, 1], starts)
    else:
        counts = table[:, 1]
    return np.column_stack([table[starts, 0], counts])
