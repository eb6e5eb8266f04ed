"""Search for the rows with given ranks in columns, and the grid of values that quantiles can have.

A column is in memory, or its rows stay in partitions, over which counts are summed. Values are
rounded to cells, the nearest points of a public grid of `CELLS` steps between the column's bounds.
A quantile is chosen among the points of this grid (`skdp.stats._quantiles`).

A value is represented by a key, an integer that encodes the column, the cell and the row's weight.
Sorted keys put all values of a table in one sequence, column by column. A cumulative weight is a
position in this sequence.

Columns in memory store less than a key of each value: its cell, with the code of the weight only if
rows have weights.
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
# Bits of a cell, or of the number that represents a missing value in memory.
_CELL_BITS = 25
_MISSING_CELL = (1 << _CELL_BITS) - 1
# Columns in memory have at most 2**_BUCKET_BITS buckets. A bucket has about 2**_ROW_BITS rows, or
# more. There are at least four buckets, so that the last one contains only missing values.
_BUCKET_BITS = 14
_ROW_BITS = 6
# Fraction of the rows of a column in memory, from which on all of them are sorted at once.
_SORTED_FRACTION = 1 / 8
# Maximum size of the values in memory at a time, of one column or of several that are smaller.
_MAX_BYTES = 1 << 26


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
    StoredColumns or CountedColumns
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
        yield CountedColumns(rows.mapped(partial(_keys_of, low=low, high=high), codes), len(low))
        return
    dtype = np.dtype(np.int32)
    if codes is not None:
        dtype = np.dtype(np.int64)
    n_at_once = max(1, _MAX_BYTES // (dtype.itemsize * n_rows))
    for first in range(0, len(low), n_at_once):
        columns = slice(first, first + n_at_once)
        to_values = partial(_sortable, columns=columns, low=low[columns], high=high[columns])
        # The array is stored column by column.
        values = map_over(
            rows.mapped(to_values, codes),
            np.asarray,
            shape=low[columns].shape,
            dtype=dtype,
            order="F",
        )
        yield StoredColumns(values.T, codes is not None)


def _cells_of(block, low, high):
    """Return the cells of a block's columns, as an array with one row per column.

    Returns
    -------
    cells : ndarray of shape (n_columns, n_rows), dtype float64
    is_missing : ndarray of bool, of the same shape, or None
        None if no value is missing.
    """
    # Contiguous columns are faster: the bounds of a column are the same for all its values.
    scaled = np.array(block.T, dtype=np.float64, order="C")
    low = low[:, np.newaxis]
    high = high[:, np.newaxis]
    # Divided by 2, because high - low can overflow.
    width = 0.5 * high - 0.5 * low
    with np.errstate(all="ignore"):
        np.maximum(scaled, low, out=scaled)
        np.minimum(scaled, high, out=scaled)
        # Rounding is monotonic, so values between the bounds are scaled to [0, 1].
        scaled *= 0.5
        scaled -= 0.5 * low
        scaled /= width
    is_missing = np.isnan(scaled)
    is_empty = ~(width > 0.0)
    if is_empty.any():
        is_missing = np.isnan(block.T)
        scaled[np.broadcast_to(is_empty, scaled.shape)] = 0.0
    if is_missing.any():
        scaled[is_missing] = 0.0
    else:
        is_missing = None
    scaled *= CELLS
    np.rint(scaled, out=scaled)
    return scaled, is_missing


def _keys_of(block, codes, low, high):
    """Return the keys of the values of a block."""
    cells, is_missing = _cells_of(block, low, high)
    keys = cells.astype(np.int64)
    keys <<= CODE_BITS
    if codes is None:
        keys += _ONE
    else:
        keys += codes
    if is_missing is not None:
        keys[is_missing] = _MISSING
    keys += np.arange(len(low))[:, np.newaxis] << COLUMN_SHIFT
    return keys.T


def _sortable(block, codes, columns, low, high):
    """Return the cells of some columns of a block, with the weights' codes in the low bits."""
    cells, is_missing = _cells_of(block[:, columns], low, high)
    if codes is None:
        values = cells.astype(np.int32)
        if is_missing is not None:
            values[is_missing] = _MISSING_CELL
        return values.T
    values = cells.astype(np.int64)
    values <<= CODE_BITS
    values += codes
    if is_missing is not None:
        values[is_missing] = _MISSING_CELL << CODE_BITS
    return values.T


class StoredColumns:
    """Columns in memory, of which only the rows near the searched ranks are sorted.

    Parameters
    ----------
    values : ndarray of shape (n_columns, n_rows)
        Values of `_sortable`. They may be sorted in place.
    has_codes : bool
        True if values contain the codes of weights, False if each row has weight 1.

    Attributes
    ----------
    starts : list of int
        Cumulative weight before each column, and the total weight.
    """

    def __init__(self, values, has_codes):
        self._columns = [_StoredColumn(column, has_codes) for column in values]
        totals = [column.total for column in self._columns]
        self.starts = [0, *np.cumsum(totals).tolist()]

    def sort(self, spans):
        """Sort the rows of ranges of cumulative weights, all with one pass over their columns.

        Without this call, each search of these ranges would need a pass.

        Parameters
        ----------
        spans : list of (int, int)
            The first and the last weight of each range. Both are in one column.
        """
        weights = np.array(spans, dtype=np.int64).reshape(-1, 2)
        numbers = np.searchsorted(self.starts, weights[:, 0], side="right") - 1
        for j in np.unique(numbers).tolist():
            self._columns[j].sort(weights[numbers == j] - self.starts[j])

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
        weights = np.array(weights, dtype=np.int64)
        numbers = np.searchsorted(self.starts, weights, side="right") - 1
        keys = np.empty_like(weights)
        below = np.empty_like(weights)
        for j in np.unique(numbers).tolist():
            chosen = numbers == j
            cells, below[chosen] = self._columns[j].find(weights[chosen] - self.starts[j])
            below[chosen] += self.starts[j]
            keys[chosen] = (cells << CODE_BITS) + (j << COLUMN_SHIFT)
        return list(zip(keys.tolist(), below.tolist(), strict=True))

    def rows(self, runs):
        """Return the sorted keys of the rows whose keys are in the given ranges.

        Parameters
        ----------
        runs : list of (int, int)
            The smallest key of each range, and the one after the last. They are multiples of
            ``2**CODE_BITS``.

        Returns
        -------
        list of ndarray
        """
        keys = np.array(runs, dtype=np.int64).reshape(-1, 2)
        numbers = keys[:, 0] >> COLUMN_SHIFT
        cells = (keys - (numbers << COLUMN_SHIFT)[:, np.newaxis]) >> CODE_BITS
        rows = [None] * len(runs)
        for j in np.unique(numbers).tolist():
            indices = np.flatnonzero(numbers == j)
            column_rows = self._columns[j].rows(np.minimum(cells[indices], _MISSING_CELL))
            for i, values in zip(indices.tolist(), column_rows, strict=True):
                rows[i] = values + (j << COLUMN_SHIFT)
        return rows


class _StoredColumn:
    """One column of `StoredColumns`.

    The cells are divided into buckets of equal width. The counts of the buckets tell in which of
    them a rank is, and only the rows of these are sorted.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
    has_codes : bool

    Attributes
    ----------
    total : int
        Weight of all rows.
    """

    def __init__(self, values, has_codes):
        self._values = values
        self._code_bits = 0
        if has_codes:
            self._code_bits = CODE_BITS
        bits = min(max(len(values).bit_length() - _ROW_BITS, 2), _BUCKET_BITS)
        self._shift = self._code_bits + _CELL_BITS - bits
        buckets = values >> self._shift
        self._n_rows = np.bincount(buckets, minlength=1 << bits)
        bucket_weights = self._n_rows
        if has_codes:
            # The sums are integers below 2**53, so float64 is exact.
            bucket_weights = np.bincount(buckets, weights_of(values), 1 << bits).astype(np.int64)
        # The last bucket contains the missing values, which have weight 0.
        self._below = np.append(0, np.cumsum(bucket_weights[:-1]))
        self.total = int(self._below[-1])
        self._is_sorted = np.zeros(1 << bits, dtype=bool)
        self._sorted = values[:0]
        self._sums = np.zeros(1, dtype=np.int64)

    def sort(self, spans):
        """Sort the rows of ranges of cumulative weights."""
        buckets = self._buckets_at(spans)
        self._sort(buckets[:, 0], buckets[:, 1])

    def find(self, weights):
        """Return the cells at cumulative weights, and the weight before each of these cells."""
        buckets = self._buckets_at(weights)
        self._sort(buckets, buckets)
        offsets = self._offsets(buckets)
        index = np.searchsorted(self._sums, weights - offsets, side="right") - 1
        cells = self._sorted[index] >> self._code_bits
        below = self._sums[np.searchsorted(self._sorted, cells << self._code_bits)]
        return cells.astype(np.int64), below + offsets

    def rows(self, cells):
        """Return the sorted keys of the rows in ranges of cells, as if this were column 0."""
        bounds = (cells << self._code_bits).astype(self._values.dtype)
        self._sort(bounds[:, 0] >> self._shift, (bounds[:, 1] - 1) >> self._shift)
        indices = np.searchsorted(self._sorted, bounds).tolist()
        return [self._keys(self._sorted[i:j]) for i, j in indices]

    def _keys(self, values):
        """Return the keys of values."""
        keys = values.astype(np.int64)
        if not self._code_bits:
            keys <<= CODE_BITS
            keys += _ONE
        return keys

    def _buckets_at(self, weights):
        """Return the buckets at cumulative weights."""
        return np.searchsorted(self._below, weights, side="right") - 1

    def _offsets(self, buckets):
        """Return the weight of the rows before buckets that are not among the sorted ones."""
        first = buckets.astype(self._values.dtype) << self._shift
        return self._below[buckets] - self._sums[np.searchsorted(self._sorted, first)]

    def _sort(self, first, last):
        """Sort the rows of ranges of buckets together with those that are already sorted."""
        is_new = np.zeros_like(self._is_sorted)
        for i, j in zip(first.tolist(), last.tolist(), strict=True):
            is_new[i : j + 1] = True
        is_new &= ~self._is_sorted
        if not is_new.any():
            return
        n_sorted = len(self._sorted) + self._n_rows[is_new].sum()
        if n_sorted > _SORTED_FRACTION * len(self._values):
            self._is_sorted[:] = True
            self._sorted = self._values
        else:
            self._is_sorted |= is_new
            buckets = (self._values >> self._shift).astype(np.intp)
            new = self._values[is_new.take(buckets)]
            self._sorted = np.concatenate([self._sorted, new])
        self._sorted.sort()
        if self._code_bits:
            self._sums = np.append(0, np.cumsum(weights_of(self._sorted)))
        else:
            self._sums = np.arange(len(self._sorted) + 1)


class CountedColumns:
    """Columns whose rows stay in their partitions, where each pass of a search sums over them.

    It has the methods of `StoredColumns`. `find` needs two passes, `rows` one.

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

    def sort(self, spans):
        """Do nothing: rows are not sorted."""

    def find(self, weights):
        """Return the cells at cumulative weights, and the weight of all rows in earlier cells.

        See `StoredColumns.find`. Each round determines the next bits of all cells from one pass of
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
    # The order of the keys in memory, because the sums do not depend on the order.
    keys = keys.ravel(order="K")
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
