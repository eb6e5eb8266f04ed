"""Histograms of all columns of a table in one pass."""

import math

import numpy as np

from skdp._data._parts import Rows, map_over
from skdp._data._persons import count_over, counts_of
from skdp.utils._validation import check_integer

_BLOCK_VALUES = 1 << 15
_TILE_VALUES = 1 << 10
# Places are numbers of bins in fixed point with this many bits behind the point, the lowest bits
# of a float64 of _MAGIC and more.
_FRACTION_BITS = 20
_UNIT = 2.0**-_FRACTION_BITS
_MAGIC = 2.0 ** (52 - _FRACTION_BITS)
_MAGIC_WORD = int(np.float64(_MAGIC).view(np.int64))
# The bits of a fraction of four units or more.
_FAR = (1 << _FRACTION_BITS) - 4


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
    bins = _Bins(edges)
    rows = bins.rows(X, bins.n_slots)
    counts = count_over(rows, _add_slots, bins.n_slots, bins, shares=shares)
    columns = np.split(counts, bins.starts[1:])
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
    bins = _Bins(edges)
    shape = tuple(np.diff(bins.starts, append=bins.n_slots))
    size = math.prod(shape)
    counts = count_over(bins.rows(X, size), _add_cells, size, bins, shape, shares=shares)
    return counts.reshape(shape)[(slice(1, -1),) * len(shape)]


def _add_slots(counts, block, shares, bins):
    counts += counts_of(bins.slots(block), shares, len(counts))


def _add_cells(counts, block, shares, bins, shape):
    cells = np.ravel_multi_index(tuple((bins.slots(block) - bins.starts).T), shape)
    counts += counts_of(cells, shares, len(counts))


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
    bins = _Bins(edges)
    return map_over(bins.rows(X), _Bins.numbers, bins, shape=X.shape[1:], dtype=np.int64)


class _Bins:
    """The bins of columns, numbered on from column to column.

    Each column's are between two slots: for what is below them or NaN, and for what is above.
    """

    def __init__(self, edges):
        edges = [check_edges(each) for each in edges]
        sizes = [len(each) + 1 for each in edges]
        self.n_slots = sum(sizes)
        self.starts = np.cumsum([0, *sizes[:-1]])
        self._uneven = {}
        affine = np.zeros((4, len(edges)))
        lower = []
        for j, each in enumerate(edges):
            # The last bin holds its upper edge: what is above it starts at the next number.
            bounds = np.append(each[:-1], np.nextafter(each[-1], np.inf))
            lower += [-np.inf, *bounds]
            if _evenly_spaced(each):
                affine[:, j] = _affine_map(each, self.starts[j])
            else:
                affine[:, j] = 0.0, 0.0, 0.0, _MAGIC + 0.5
                self._uneven[j] = bounds
        self._map = affine
        self._tile = max(_TILE_VALUES // len(edges), 1)
        wide = {1, self._tile}
        self._wide = {times * len(edges): self._repeated(times) for times in wide}
        self._lower = np.array(lower)

    def rows(self, X, least_values=0):
        """Return the rows of a table, or these in other blocks, as `slots` takes them.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns), or Rows
        least_values : int, default=0
            How many values a block has at least, where there are as many.
        """
        d = X.shape[1]
        tiles = max(_BLOCK_VALUES, least_values) // (self._tile * d)
        return Rows.of(X).sized(max(tiles, 1) * self._tile)

    def slots(self, block):
        """Return the slots of a block's values, dtype int64."""
        d, values = block.shape[1], np.ascontiguousarray(block)
        # Numpy's loops run over one axis: a tile is several rows, with their columns' parameters.
        width = self._tile * d if len(values) % self._tile == 0 else d
        with np.errstate(all="ignore"):
            slots = self._slots(values.reshape(-1, width), *self._wide[width])
        slots = slots.reshape(block.shape)
        for j, bounds in self._uneven.items():
            found = np.searchsorted(bounds, values[:, j], side="right")
            slots[:, j] = np.where(np.isnan(values[:, j]), 0, found) + self.starts[j]
        return slots

    @staticmethod
    def numbers(block, bins):
        """Return the bin of each value of a block, within its column."""
        return bins.slots(block) - (bins.starts + 1)

    def _repeated(self, times):
        """The parameters of a number of rows; one number, which is faster, where all are equal."""
        return [each[0] if (each == each[0]).all() else np.tile(each, times) for each in self._map]

    def _slots(self, values, least, most, factor, shift):
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
            at = slots.ravel()[near]
            slots.reshape(-1)[near] = at - (values.ravel()[near] < self._lower[at])
        return slots


def _affine_map(edges, start):
    """Return what a value is clipped to, and (factor, shift) that make it a place.

    Places of edges are two units above whole numbers of bins, with an error below 1.5 units: half
    a unit for the rounding of each of the two sums to units, less for the rest.
    """
    n_bins, first = len(edges) - 1, edges[0]
    half = (edges[-1] - first) / (2 * n_bins)
    factor = 0.5 / half
    shift = _MAGIC + start + 1 + 2 * _UNIT - first * factor
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
