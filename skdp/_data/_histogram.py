"""Histograms of all columns of a table in one pass."""

import math

import numpy as np

from skdp._data._parts import Rows, block_size, map_over
from skdp._data._persons import count_over, counts_of
from skdp.utils._validation import check_integer

# Places are numbers of bins in fixed point with this many bits behind the point, the lowest bits
# of a float64 of _MAGIC and more.
_FRACTION_BITS = 20
_UNIT = 2.0**-_FRACTION_BITS
_MAGIC = 2.0 ** (52 - _FRACTION_BITS)
_MAGIC_WORD = int(np.float64(_MAGIC).view(np.int64))
# The bits of a fraction of four units or more.
_FAR = (1 << _FRACTION_BITS) - 4

# Of columns that are longer, what is made is mapped into memory anew each time.
MOST_ROWS = 1 << 14


def uniform_edges(low, high, n_bins):
    """Return the edges of equal bins, as `numpy.histogram_bin_edges` has them."""
    return np.linspace(low, high, check_integer(n_bins, "bins", 1) + 1)


def check_edges(edges, name="bins"):
    """Return bin edges as a float64 array: at least two, finite and increasing.

    Raises
    ------
    ValueError
        If they are anything else.
    """
    try:
        edges = np.asarray(edges, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be an integer or bin edges, got {edges!r}") from None
    if edges.ndim != 1 or edges.size < 2 or not np.isfinite(edges).all():
        raise ValueError(f"{name}: edges must be a flat list of at least two finite numbers")
    if not (np.diff(edges) > 0).all():
        raise ValueError(f"{name}: edges must increase")
    return edges


def count_bins(X, edges, *, outermost=False, shares=None):
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
    outermost : bool, default=False
        Whether values outside count in the outermost bins; then there must be no NaN.
    shares : ndarray of shape (n_rows,), default=None
        What a row counts, a multiple of 2**-26; None for ones.

    Returns
    -------
    list of ndarray of int64
        The counts of each column; float64 with shares.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp._data._histogram import count_bins
    >>> count_bins(np.array([[0.0], [1.0], [2.0], [9.0]]), [np.array([0.0, 1.0, 2.0])])
    [array([1, 2])]
    """
    bins = [_Bins(each) for each in edges]
    ends = np.cumsum([own.n_slots for own in bins])
    rows, starts = _blocks(X, ends[-1]), ends[:-1]
    counts = count_over(rows, _add_slots, ends[-1], bins, starts, shares=shares)
    columns = np.split(counts, starts)
    if outermost:
        for each in columns:
            each[1] += each[0]
            each[-2] += each[-1]
    return [each[1:-1] for each in columns]


def count_cells(X, edges, shares=None):
    """Count the rows in each cell of all columns' bins, as `numpy.histogramdd` does.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
    edges : sequence of n_columns arrays
    shares : ndarray of shape (n_rows,), default=None
        As in `count_bins`.

    Returns
    -------
    ndarray of int64 (float64 with shares), shape (n_bins of the first, n_bins of the second, ...)
    """
    bins = [_Bins(each) for each in edges]
    shape = tuple(own.n_slots for own in bins)
    size = math.prod(shape)
    counts = count_over(_blocks(X, size), _add_cells, size, bins, shape, shares=shares)
    return counts.reshape(shape)[(slice(1, -1),) * len(shape)]


def _add_slots(counts, block, shares, bins, starts):
    for total, slots in zip(np.split(counts, starts), _slots(block, bins), strict=True):
        total += counts_of(slots, shares, len(total))


def _add_cells(counts, block, shares, bins, shape):
    counts += counts_of(np.ravel_multi_index(_slots(block, bins), shape), shares, len(counts))


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
    return map_over(_blocks(X, 0), _numbers, bins, shape=X.shape[1:], dtype=np.int64)


def _numbers(block, bins):
    return np.stack(_slots(block, bins), axis=1) - 1


def _slots(block, bins):
    with np.errstate(all="ignore"):
        return tuple(own.slots(values) for own, values in zip(bins, block.T, strict=True))


def _blocks(X, least_values):
    """Return the rows of a table, or these in other blocks, of at least so many values.

    There are as many values as counts: adding the counts of a block takes as long.
    """
    size = min(MOST_ROWS, block_size(X.shape[1]))
    return Rows.of(X).sized(max(size, least_values // X.shape[1]))


class _Bins:
    """The bins of a column, between two slots: of what is below or NaN, and of what is above."""

    def __init__(self, edges):
        edges = check_edges(edges)
        # The last bin holds its upper edge: what is above it starts at the next number.
        self._bounds = np.append(edges[:-1], np.nextafter(edges[-1], np.inf))
        self.n_slots = len(edges) + 1
        self._map = _affine_map(edges) if _evenly_spaced(edges) else None

    def slots(self, values):
        """Return the slots of values, dtype int64."""
        if self._map is None:
            found = np.searchsorted(self._bounds, values, side="right")
            return np.where(np.isnan(values), 0, found)
        least, most, factor, shift = self._map
        places = np.fmax(values, least, dtype=np.float64)
        np.minimum(places, most, out=places)
        places *= factor
        places += shift
        slots = places.view(np.int64)
        slots -= _MAGIC_WORD
        fractions = slots & _FAR
        slots >>= _FRACTION_BITS
        if fractions.min() == 0:
            # At an edge, up to rounding: compare with the edge itself.
            near = np.flatnonzero(fractions == 0)
            below = np.append(-np.inf, self._bounds)[slots[near]]
            slots[near] -= values[near] < below
        return slots


def _affine_map(edges):
    """Return what a value is clipped to, and (factor, shift) that make it a place.

    Places of edges are two units above whole numbers of bins, with an error below 1.5 units: half
    a unit for the rounding of each of the two sums to units, less for the rest.
    """
    n_bins, first = len(edges) - 1, edges[0]
    half = (edges[-1] - first) / (2 * n_bins)
    factor = 0.5 / half
    shift = _MAGIC + 1 + 2 * _UNIT - first * factor
    return first - half, edges[-1] + half, factor, shift


def _evenly_spaced(edges):
    """Whether arithmetic finds the bin of what is more than 1.5 units of a place from an edge."""
    n_bins = len(edges) - 1
    with np.errstate(all="ignore"):
        width = (edges[-1] - edges[0]) / n_bins
        even = np.linspace(edges[0], edges[-1], n_bins + 1)
        close = np.abs(edges - even).max() <= 0.25 * _UNIT * width
        finite = np.isfinite(width) and np.isfinite(1.0 / width)
    # The rounding of products, in bins, must be far below a unit.
    largest = max(abs(edges[0]), abs(edges[-1]))
    fine = width > 2.0**-28 * largest and n_bins < 1e6
    return bool(finite and close and fine)
