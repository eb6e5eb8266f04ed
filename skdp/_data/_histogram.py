"""Histograms of all columns of a table in one pass."""

import math
from itertools import pairwise, starmap

import numpy as np

from skdp._data._parts import Rows, block_size, map_over
from skdp._data._persons import count_over, weighted_bincount
from skdp.utils._sources import rows_within
from skdp.utils._validation import check_integer

# Places are numbers of bins in fixed point with this many bits behind the point, the lowest bits
# of a float64 of _MAGIC and more.
_FRACTION_BITS = 20
_UNIT = 2.0**-_FRACTION_BITS
_MAGIC = 2.0 ** (52 - _FRACTION_BITS)
_MAGIC_WORD = int(np.float64(_MAGIC).view(np.int64))
# The bits of a fraction of four units or more.
_FAR = (1 << _FRACTION_BITS) - 4

# What is made of more values leaves the cache, and of fewer it is made before another thread has
# woken. Lines are rows side by side.
STEP_VALUES = 1 << 16
LINE_VALUES = 1 << 9
# Up to so many rows are compared with all edges of the columns that are searched.
FEW_ROWS = 16


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


def count_bins(X, edges, *, outermost=False, row_weights=None):
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
    row_weights : ndarray of shape (n_rows,), default=None
        What a row counts, a multiple of 2**-26; None for ones.

    Returns
    -------
    list of ndarray of int64
        The counts of each column; float64 with row weights.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp._data._histogram import count_bins
    >>> count_bins(np.array([[0.0], [1.0], [2.0], [9.0]]), [np.array([0.0, 1.0, 2.0])])
    [array([1, 2])]
    """
    bins = Bins(edges)
    size = bins.ends[-1]
    counts = count_over(_blocks(X, size), _add_slots, size, bins, row_weights=row_weights)
    if outermost:
        counts[bins.starts + 1] += counts[bins.starts]
        counts[bins.ends - 2] += counts[bins.ends - 1]
    return [each[1:-1] for each in np.split(counts, bins.ends[:-1])]


def count_cells(X, edges, row_weights=None):
    """Count the rows in each cell of all columns' bins, as `numpy.histogramdd` does.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
    edges : sequence of n_columns arrays
    row_weights : ndarray of shape (n_rows,), default=None
        As in `count_bins`.

    Returns
    -------
    ndarray of shape (n_bins of the first, n_bins of the second, ...)
        Of int64; of float64 with row weights.
    """
    bins = Bins(edges)
    shape = tuple(bins.sizes.tolist())
    size = math.prod(shape)
    counts = count_over(_blocks(X, size), _add_cells, size, bins, shape, row_weights=row_weights)
    return counts.reshape(shape)[(slice(1, -1),) * len(shape)]


def _add_slots(counts, block, row_weights, bins):
    counts += weighted_bincount(bins.slots(block), row_weights, len(counts))


def _add_cells(counts, block, row_weights, bins, shape):
    cells = np.ravel_multi_index(tuple((bins.slots(block) - bins.starts).T), shape)
    counts += weighted_bincount(cells, row_weights, len(counts))


def bin_numbers(X, edges):
    """Return the bin of each value, of those outside the outermost one; of NaN the first.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
    edges : sequence of n_columns arrays

    Returns
    -------
    ndarray of shape (n_rows, n_columns), dtype int64
    """
    return map_over(Rows.wrap(X), find_bins, Bins(edges), shape=X.shape[1:], dtype=np.int64)


def find_bins(block, bins):
    """Return the bin of each value of a block, as `bin_numbers` does; `bins` are its `Bins`."""
    return np.clip(bins.slots(block), bins.starts + 1, bins.ends - 2) - (bins.starts + 1)


def _blocks(X, least_values):
    """Return the rows of a table, or these in other blocks, of at least so many values.

    There are as many values as counts: adding the counts of a block takes as long.
    """
    return Rows.wrap(X).with_block_size(max(block_size(X.shape[1]), least_values // X.shape[1]))


class Bins:
    """The bins of all columns, those of each between two slots: of what is below or NaN, and above.

    Parameters
    ----------
    edges : sequence of n_columns arrays

    Attributes
    ----------
    sizes, starts, ends : of the columns' slots, in a vector of all
    """

    def __init__(self, edges):
        self._edges = edges = check_all_edges(edges)
        n_edges = np.array([len(each) for each in edges])
        self.sizes = n_edges + 1
        self.ends = np.cumsum(self.sizes)
        self.starts = self.ends - self.sizes
        # A slot begins at its lower edge, and the first one at -inf. The last bin holds its upper
        # edge: what is above it begins at the next number.
        joined = np.concatenate(edges)
        self._lower = np.full(self.ends[-1], -np.inf)
        is_edge = np.ones(len(self._lower), dtype=bool)
        is_edge[self.starts] = False
        self._lower[is_edge] = joined
        self._lower[self.ends - 1] = np.nextafter(self._lower[self.ends - 1], np.inf)
        self._map, is_even = _affine_maps(joined, n_edges, self.starts)
        self._searched = np.flatnonzero(~is_even)
        # The edges of all columns that are searched, one column after another.
        is_searched = is_edge & np.repeat(~is_even, self.sizes)
        self._searched_edges = self._lower[is_searched]
        self._searched_sizes = n_edges[self._searched]

    def __reduce__(self):
        # Edges are sent once, with what else holds them.
        return Bins, (self._edges,)

    def slots(self, block):
        """Return the places of a block's values among the slots of all columns, dtype int64."""
        with np.errstate(all="ignore"):
            slots = self._even_slots(block)
            if len(self._searched):
                self._search(np.asarray(block), slots)
            return slots

    def _search(self, block, slots):
        """Put the slots of the columns whose bins are not of one width."""
        sizes = self._searched_sizes
        first_slots = self.starts[self._searched]
        starts = np.cumsum(sizes) - sizes
        if len(block) <= FEW_ROWS:
            # Comparing with every edge takes less time than calling a function for each column.
            values = np.repeat(block[:, self._searched], sizes, axis=1)
            is_above = self._searched_edges <= values
            found = np.add.reduceat(is_above, starts, axis=1, dtype=np.int64)
            slots[:, self._searched] = first_slots + found
            return
        for j, start, size, first_slot in zip(
            self._searched, starts, sizes, first_slots, strict=True
        ):
            edges = self._searched_edges[start : start + size]
            values = block[:, j]
            found = np.searchsorted(edges, values, side="right")
            slots[:, j] = first_slot + np.where(np.isnan(values), 0, found)

    def _even_slots(self, values):
        values = np.ascontiguousarray(values, dtype=np.float64)
        slots, (n_rows, n_columns) = np.empty(values.shape, np.int64), values.shape
        n_times = rows_within(8 * LINE_VALUES, n_columns)
        size = rows_within(8 * STEP_VALUES, n_columns)
        last = n_rows - n_rows % n_times
        for rows in starmap(slice, pairwise(sorted({*range(0, last, size), last, n_rows}))):
            # Those that are left over may be lines of their own.
            shape = -1, n_columns * math.gcd(n_times, rows.stop - rows.start)
            self._put_slots(values[rows].reshape(shape), slots[rows].reshape(shape))
        return slots

    def _put_slots(self, values, slots):
        least, most, factor, shift = np.tile(self._map, values.shape[1] // self._map.shape[1])
        places = slots.view(np.float64)
        np.fmax(values, least, out=places)
        np.minimum(places, most, out=places)
        places *= factor
        places += shift
        slots -= _MAGIC_WORD
        fractions = slots & _FAR
        slots >>= _FRACTION_BITS
        if fractions.min() == 0:
            # At an edge, up to rounding: compare with the edge itself.
            near = fractions == 0
            found = slots[near]
            slots[near] = found - (values[near] < self._lower[found])


def check_all_edges(edges):
    """Return the edges of several columns as `check_edges` does, in a few calls of numpy."""
    try:
        arrays = [np.asarray(each, dtype=np.float64) for each in edges]
        are_vectors = all(each.ndim == 1 and each.size >= 2 for each in arrays)
    except (TypeError, ValueError, OverflowError):
        are_vectors = False
    if are_vectors:
        joined = np.concatenate(arrays)
        with np.errstate(all="ignore"):
            increases = np.diff(joined) > 0
        # From the last edge of a column to the first of the next.
        increases[np.cumsum([len(each) for each in arrays[:-1]], dtype=np.intp) - 1] = True
        if increases.all() and np.isfinite(joined).all():
            return arrays
    return [check_edges(each) for each in edges]


def _affine_maps(edges, n_edges, first_slots):
    """Return what makes values of each column places among slots, where its bins are of one width.

    Places of edges are two units above whole numbers of bins, with an error below 1.5 units: half a
    unit for the rounding of each of the two sums to units, less for the rest.

    Parameters
    ----------
    edges : ndarray of shape (n_all_edges,)
        Of all columns, one after another.
    n_edges : ndarray of shape (n_columns,)
    first_slots : ndarray of shape (n_columns,)
        Where the slots of each column begin.

    Returns
    -------
    maps : ndarray of shape (4, n_columns)
        What a value is clipped to (least and most), a factor and a shift. Of columns that are to
        be searched they find nothing, and nothing near an edge.
    is_even : ndarray of bool, shape (n_columns,)
        False where edges are not as far from each other as arithmetic would have them.
    """
    starts = np.cumsum(n_edges) - n_edges
    n_bins = n_edges - 1
    first = edges[starts]
    end = edges[starts + n_edges - 1]
    with np.errstate(all="ignore"):
        width = (end - first) / n_bins
        factor = 1.0 / width
        least = first - width / 2
        most = end + width / 2
        number = np.arange(len(edges)) - np.repeat(starts, n_edges)
        even = np.repeat(first, n_edges) + number * np.repeat(width, n_edges)
        even[starts + n_edges - 1] = end
        distance = np.maximum.reduceat(np.abs(edges - even), starts)
        is_close = distance <= 0.25 * _UNIT * width
        # The rounding of products, in bins, must be far below a unit.
        is_fine = (width > 2.0**-28 * np.maximum(np.abs(first), np.abs(end))) & (n_bins < 1e6)
        shift = _MAGIC + first_slots + 1 + 2 * _UNIT - first * factor
        is_even = (0.0 < factor) & (factor < np.inf) & np.isfinite(least) & np.isfinite(most)
        is_even &= is_close & is_fine
    maps = np.array([least, most, factor, shift])
    maps[:, ~is_even] = np.array([0.0, 0.0, 0.0, _MAGIC + 0.5])[:, np.newaxis]
    return maps, is_even
