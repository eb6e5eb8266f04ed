"""Histograms of all columns of a table in one pass."""

import numpy as np

from skdp.utils._validation import check_integer

__all__ = ["check_edges", "count_bins", "count_bins_2d", "uniform_edges"]

_BLOCK_VALUES = 1 << 16


def uniform_edges(low, high, n_bins):
    """Return the edges of equal bins for each column, as `numpy.histogram_bin_edges` has them.

    Parameters
    ----------
    low, high : array-like of shape (n_columns,)
    n_bins : int >= 1

    Returns
    -------
    list of ndarray of shape (n_bins + 1,)
    """
    n_bins = check_integer(n_bins, "bins", 1)
    return [np.linspace(a, b, n_bins + 1) for a, b in zip(low, high, strict=True)]


def check_edges(edges, name="bins"):
    """Return bin edges as a float64 array: at least two, finite and increasing.

    Raises
    ------
    ValueError
        If they are anything else.
    """
    try:
        edges = np.asarray(edges, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an integer or bin edges, got {edges!r}") from None
    if edges.ndim != 1 or edges.size < 2 or not np.isfinite(edges).all():
        raise ValueError(f"{name}: edges must be a flat list of at least two finite numbers")
    if not (np.diff(edges) > 0).all():
        raise ValueError(f"{name}: edges must increase")
    return edges


def count_bins(X, edges):
    """Count the rows in each bin of each column.

    Bins are as in `numpy.histogram`: they hold their lower edge, the last one holds both its
    edges, and values outside count nowhere. Values are compared with the edges in double
    precision. Bins of one width are found by arithmetic and then compared with the edges, others
    by bisection.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
        Read block by block; NaN counts nowhere.
    edges : sequence of n_columns arrays
        Finite and increasing; the columns may have different numbers of bins.

    Returns
    -------
    list of ndarray of int64
        The counts of each column.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.utils._histogram import count_bins
    >>> count_bins(np.array([[0.0], [1.0], [2.0], [9.0]]), [np.array([0.0, 1.0, 2.0])])
    [array([1, 2])]
    """
    slots = _Slots(edges)
    counts = np.zeros(slots.total, dtype=np.int64)
    for block in _blocks(X, slots.total):
        counts += np.bincount(slots.find(block).ravel(), minlength=slots.total)
    return slots.inside(counts)


def count_bins_2d(X, edges):
    """Count the rows in each cell of two columns' bins, as `numpy.histogram2d` does.

    Parameters
    ----------
    X : array-like of shape (n_rows, 2)
    edges : sequence of two arrays

    Returns
    -------
    ndarray of int64, shape (n_bins of the first, n_bins of the second)
    """
    slots = _Slots(edges)
    first, second = slots.sizes
    counts = np.zeros(first * second, dtype=np.int64)
    for block in _blocks(X, slots.total):
        found = slots.find(block) - slots.starts
        counts += np.bincount(found[:, 0] * second + found[:, 1], minlength=first * second)
    return counts.reshape(first, second)[1:-1, 1:-1]


def bin_numbers(X, edges):
    """Return the bin of each value: -1 below the first edge, the number of bins above the last.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
    edges : sequence of n_columns arrays

    Returns
    -------
    ndarray of shape (n_rows, n_columns), dtype int64
    """
    slots = _Slots(edges)
    numbers = np.empty(X.shape, dtype=np.int64)
    start = 0
    for block in _blocks(X, slots.total):
        numbers[start : start + len(block)] = slots.find(block) - (slots.starts + 1)
        start += len(block)
    return numbers


class _Slots:
    """Bins of several columns one behind the other, each column with a slot at either end.

    The slots of a column hold what is below its first edge, its bins, and what is above its last
    edge or NaN.
    """

    def __init__(self, edges):
        edges = [check_edges(each) for each in edges]
        self.sizes = np.array([len(each) + 1 for each in edges])
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        self.total = int(self.sizes.sum())
        # The least number that is above the last bin, which holds its upper edge.
        self._bounds = [np.append(each[:-1], np.nextafter(each[-1], np.inf)) for each in edges]
        self._uniform = all(_evenly_spaced(each) for each in edges)
        if self._uniform:
            self._first = np.array([each[0] for each in edges])
            last = np.array([each[-1] for each in edges])
            with np.errstate(over="ignore"):
                self._factor = (self.sizes - 2) / (last - self._first)
            self._last_slot = (self.sizes - 1).astype(np.float64)
            self._lower = np.concatenate([np.append(-np.inf, each) for each in self._bounds])
            self._upper = np.concatenate([np.append(each, np.nan) for each in self._bounds])

    def find(self, block):
        """Return the slot of each value."""
        if self._uniform:
            return self._find_by_arithmetic(block)
        found = np.empty(block.shape, dtype=np.int64)
        for j, bounds in enumerate(self._bounds):
            found[:, j] = np.searchsorted(bounds, block[:, j], side="right")
        return found + self.starts

    def inside(self, counts):
        """Return the counts of the bins alone, a list of arrays."""
        ends = self.starts + self.sizes
        return [counts[a + 1 : b - 1] for a, b in zip(self.starts, ends, strict=True)]

    def _find_by_arithmetic(self, block):
        with np.errstate(all="ignore"):
            place = block - self._first
            place *= self._factor
            place += 1.0
            np.fmax(place, 0.0, out=place)
            np.fmin(place, self._last_slot, out=place)
        found = place.astype(np.int64)
        found += self.starts
        # The product can be off by its rounding: compare with the edges themselves.
        found -= block < self._lower[found]
        found += block >= self._upper[found]
        return found


def _evenly_spaced(edges):
    """Whether arithmetic finds the bin or one next to it."""
    n_bins = len(edges) - 1
    with np.errstate(over="ignore"):
        width = edges[-1] - edges[0]
        even = np.linspace(edges[0], edges[-1], n_bins + 1)
        close = np.abs(edges - even).max() <= 0.25 * width / n_bins
    # The width of a bin must be well above the rounding of the values in it.
    largest = max(abs(edges[0]), abs(edges[-1]))
    return bool(np.isfinite(n_bins / width) and close and width / n_bins > 1e-12 * largest)


def _blocks(X, n_slots):
    """Yield the rows in double precision."""
    rows = max(1, max(_BLOCK_VALUES, n_slots) // max(X.shape[1], 1))
    for start in range(0, X.shape[0], rows):
        with np.errstate(all="ignore"):
            yield np.asarray(X[start : start + rows], dtype=np.float64)
