"""Histograms of all columns of a table in one pass."""

import numpy as np

from skdp.utils._validation import check_integer

__all__ = ["check_edges", "count_bins", "count_bins_2d", "uniform_edges"]

_BLOCK_VALUES = 1 << 20
_BLOCK_ROWS = 1 << 14
# How near to an edge, in bins, a place is not trusted.
_DOUBT = 1e-6


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
    bins = [_Bins(each) for each in edges]
    counts = [np.zeros(each.n_slots, dtype=np.int64) for each in bins]
    for _, columns in _columns(X):
        for j, values in enumerate(columns):
            counts[j] += np.bincount(bins[j].find(values), minlength=bins[j].n_slots)
    return [each[1:-1] for each in counts]


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
    first, second = (_Bins(each) for each in edges)
    size = first.n_slots * second.n_slots
    counts = np.zeros(size, dtype=np.int64)
    for _, (one, other) in _columns(X, size):
        cells = first.find(one) * second.n_slots + second.find(other)
        counts += np.bincount(cells, minlength=size)
    return counts.reshape(first.n_slots, second.n_slots)[1:-1, 1:-1]


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
    bins = [_Bins(each) for each in edges]
    numbers = np.empty(X.shape, dtype=np.int64)
    for rows, columns in _columns(X):
        for j, values in enumerate(columns):
            numbers[rows, j] = bins[j].find(values) - 1
    return numbers


class _Bins:
    """The bins of a column between two slots: for what is below them, and above or NaN."""

    def __init__(self, edges):
        edges = check_edges(edges)
        self.n_slots = len(edges) + 1
        # The last bin holds its upper edge: what is above it starts at the next number.
        self._bounds = np.append(edges[:-1], np.nextafter(edges[-1], np.inf))
        self._even = _evenly_spaced(edges)
        if self._even:
            self._first = edges[0]
            self._factor = (self.n_slots - 2) / (edges[-1] - edges[0])
            self._lower = np.append(-np.inf, self._bounds)
            self._upper = np.append(self._bounds, np.nan)

    def find(self, values):
        """Return the slot of each value of a vector."""
        if not self._even:
            return np.searchsorted(self._bounds, values, side="right")
        with np.errstate(all="ignore"):
            place = values - self._first
            place *= self._factor
            place += 1.0
            np.fmax(place, 0.0, out=place)
            np.fmin(place, self.n_slots - 1.0, out=place)
        slots = place.astype(np.int64)
        # Near an edge the product's rounding can decide: compare with the edges themselves.
        place -= slots
        place -= 0.5
        near = np.flatnonzero(np.abs(place, out=place) > 0.5 - _DOUBT)
        if near.size:
            close, at = values[near], slots[near]
            slots[near] = at - (close < self._lower[at]) + (close >= self._upper[at])
        return slots


def _evenly_spaced(edges):
    """Whether arithmetic finds the bin, but next to an edge."""
    n_bins = len(edges) - 1
    with np.errstate(over="ignore"):
        width = (edges[-1] - edges[0]) / n_bins
        even = np.linspace(edges[0], edges[-1], n_bins + 1)
        close = np.abs(edges - even).max() <= 0.25 * _DOUBT * width
    # The rounding of places, in bins, must be far below the doubt.
    largest = max(abs(edges[0]), abs(edges[-1]))
    fine = width > 2.0**-30 * largest and n_bins < 1e6
    return bool(np.isfinite(width) and np.isfinite(1.0 / width) and close and fine)


def _columns(X, n_slots=0):
    """Yield slices of rows and their columns, contiguous and in double precision."""
    size = max(_BLOCK_VALUES // max(X.shape[1], 1), n_slots)
    size = max(min(size, max(_BLOCK_ROWS, n_slots)), 64)
    for start in range(0, X.shape[0], size):
        rows = slice(start, min(start + size, X.shape[0]))
        with np.errstate(all="ignore"):
            yield rows, np.ascontiguousarray(np.asarray(X[rows]).T, dtype=np.float64)
