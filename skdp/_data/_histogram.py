"""Histograms of all columns of a table in one pass."""

import math
from itertools import pairwise

import numpy as np

from skdp._data._parts import Rows, block_size, map_over
from skdp._data._persons import count_over, weighted_bincount
from skdp._data._sources import rows_within
from skdp.utils._validation import as_doubles, check_integer

# Positions among bins are fixed-point numbers with this many fractional bits. Adding _OFFSET to a
# float64 rounds it to such a number and leaves it in the lowest bits of the word.
_FRACTION_BITS = 20
_GRID_STEP = 2.0**-_FRACTION_BITS
_OFFSET = 2.0 ** (52 - _FRACTION_BITS)
_OFFSET_WORD = int(np.float64(_OFFSET).view(np.int64))
# Mask of the fractional bits that are not zero at a distance of four grid steps or more from an
# edge.
_FAR_MASK = (1 << _FRACTION_BITS) - 4

# Number of values that are processed together: more would exceed the cache, and fewer would be
# finished before another thread has started.
STEP_VALUES = 1 << 16
# Number of values in a line. A line joins several rows, so that NumPy's inner loops are long.
LINE_VALUES = 1 << 9
# Number of rows up to which values are compared with all edges instead of by bisection.
MAX_COMPARED_ROWS = 16


def uniform_edges(low, high, n_bins):
    """Return the edges of bins of equal width, as `numpy.histogram_bin_edges` does."""
    return np.linspace(low, high, check_integer(n_bins, "bins", 1) + 1)


def check_edges(edges, name="bins"):
    """Return bin edges as a float64 array.

    Raises
    ------
    ValueError
        If there are fewer than two edges, or they are not finite and increasing.
    """
    array = as_doubles(edges)
    if array.ndim == 0:
        raise ValueError(f"{name} must be an integer or bin edges, got {edges!r}")
    if array.ndim != 1 or array.size < 2 or not np.isfinite(array).all():
        raise ValueError(f"{name}: edges must be a flat list of at least two finite numbers")
    if not (np.diff(array) > 0).all():
        raise ValueError(f"{name}: edges must increase")
    return array


def count_bins(X, edges, *, outermost=False, row_weights=None):
    """Count the rows in each bin of each column.

    Bins are as in `numpy.histogram`: a bin contains its lower edge, the last one contains both
    edges, and values outside the edges are not counted. Values are compared with the edges in
    double precision. For bins of equal width, the bin is computed and then corrected at its edges;
    other bins are found by bisection.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
        Table that is read block by block; NaN is not counted.
    edges : sequence of n_columns arrays
        Finite and increasing edges; columns may have different numbers of bins.
    outermost : bool, default=False
        True to count values outside the edges in the outermost bins; NaN is then not allowed.
    row_weights : ndarray of shape (n_rows,), default=None
        Weights of the rows, multiples of 2**-26; None gives every row the weight 1.

    Returns
    -------
    list of ndarray of int64
        The counts of each column, as float64 with row weights.

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
    return [column_counts[1:-1] for column_counts in np.split(counts, bins.ends[:-1])]


def count_cells(X, edges, row_weights=None):
    """Count the rows in each combination of the columns' bins, as `numpy.histogramdd` does.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
    edges : sequence of n_columns arrays
    row_weights : ndarray of shape (n_rows,), default=None
        As in `count_bins`.

    Returns
    -------
    ndarray of shape (n_bins of the first, n_bins of the second, ...)
        Counts as int64, or as float64 with row weights.
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
    """Return the bin of each value: the outermost bin beyond the edges, and the first for NaN.

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
    """Return the bin of each value of a block, as `bin_numbers` does, for `Bins`."""
    return np.clip(bins.slots(block), bins.starts + 1, bins.ends - 2) - (bins.starts + 1)


def _blocks(X, n_counts):
    """Return the rows of a table in blocks of at least as many values as there are counts.

    Adding the counts of a block then takes no longer than reading the block.
    """
    return Rows.wrap(X).with_block_size(max(block_size(X.shape[1]), n_counts // X.shape[1]))


class Bins:
    """The bins of all columns, as slots of one vector.

    A column has one slot for NaN and values below its bins, one for each bin, and one for values
    above its bins.

    Parameters
    ----------
    edges : sequence of n_columns arrays

    Attributes
    ----------
    sizes, starts, ends : ndarray of shape (n_columns,)
        Number of slots of each column, and its first and last (exclusive) slot.
    """

    def __init__(self, edges):
        self._edges = edges = check_all_edges(edges)
        n_edges = np.array([len(column_edges) for column_edges in edges])
        self.sizes = n_edges + 1
        self.ends = np.cumsum(self.sizes)
        self.starts = self.ends - self.sizes
        # A slot begins at its lower edge, and the first slot of a column at -inf. The last bin
        # contains its upper edge, so the slot above begins at the next double.
        all_edges = np.concatenate(edges)
        self._lower = np.full(self.ends[-1], -np.inf)
        is_edge = np.ones(len(self._lower), dtype=bool)
        is_edge[self.starts] = False
        self._lower[is_edge] = all_edges
        self._lower[self.ends - 1] = np.nextafter(self._lower[self.ends - 1], np.inf)
        self._map, is_even = _affine_maps(all_edges, n_edges, self.starts)
        self._searched = np.flatnonzero(~is_even)
        # The edges of the columns whose bins are searched, one column after another.
        is_searched = is_edge & np.repeat(~is_even, self.sizes)
        self._searched_edges = self._lower[is_searched]
        self._searched_sizes = n_edges[self._searched]

    def __reduce__(self):
        # Only the edges are pickled, and only once if another object in the pickle holds them too.
        return Bins, (self._edges,)

    def slots(self, block):
        """Return the slot of each value of a block among the slots of all columns, as int64."""
        with np.errstate(all="ignore"):
            slots = self._even_slots(block)
            if len(self._searched):
                self._search(np.asarray(block), slots)
            return slots

    def _search(self, block, slots):
        """Set the slots of the columns whose bins have different widths, in place."""
        sizes = self._searched_sizes
        first_slots = self.starts[self._searched]
        starts = np.cumsum(sizes) - sizes
        if len(block) <= MAX_COMPARED_ROWS:
            # For few rows, comparison with all edges is faster than one call per column.
            values = np.repeat(block[:, self._searched], sizes, axis=1)
            is_above = self._searched_edges <= values
            n_below = np.add.reduceat(is_above, starts, axis=1, dtype=np.int64)
            slots[:, self._searched] = first_slots + n_below
            return
        for j, start, size, first_slot in zip(
            self._searched, starts, sizes, first_slots, strict=True
        ):
            edges = self._searched_edges[start : start + size]
            values = block[:, j]
            n_below = np.searchsorted(edges, values, side="right")
            slots[:, j] = first_slot + np.where(np.isnan(values), 0, n_below)

    def _even_slots(self, values):
        """Return the slots in columns whose bins have equal width; other slots are arbitrary."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        n_rows, n_columns = values.shape
        slots = np.empty(values.shape, np.int64)
        n_line_rows = rows_within(8 * LINE_VALUES, n_columns)
        n_step_rows = rows_within(8 * STEP_VALUES, n_columns)
        last = n_rows - n_rows % n_line_rows
        steps = sorted({*range(0, last, n_step_rows), last, n_rows})
        for start, stop in pairwise(steps):
            # The last rows may not fill a line, so their lines are shorter.
            shape = (-1, n_columns * math.gcd(n_line_rows, stop - start))
            self._set_slots(values[start:stop].reshape(shape), slots[start:stop].reshape(shape))
        return slots

    def _set_slots(self, values, slots):
        """Set the slots of values in place; each line of values consists of several rows."""
        low, high, factor, shift = np.tile(self._map, values.shape[1] // self._map.shape[1])
        # The same memory as doubles, whose lowest bits become the fixed-point positions.
        positions = slots.view(np.float64)
        np.fmax(values, low, out=positions)
        np.minimum(positions, high, out=positions)
        positions *= factor
        positions += shift
        slots -= _OFFSET_WORD
        # The high bits of the fractional part are 0 only within four grid steps above an integer,
        # and the positions of edges are two grid steps above one.
        far_bits = slots & _FAR_MASK
        slots >>= _FRACTION_BITS
        if far_bits.min() == 0:
            # These values are at an edge, up to rounding: compare them with the edge itself.
            is_near = far_bits == 0
            near_slots = slots[is_near]
            slots[is_near] = near_slots - (values[is_near] < self._lower[near_slots])


def check_all_edges(edges):
    """Return the edges of several columns as `check_edges` does, with only a few calls to NumPy."""
    arrays = list(map(as_doubles, edges))
    if all(array.ndim == 1 and array.size >= 2 for array in arrays):
        all_edges = np.concatenate(arrays)
        with np.errstate(all="ignore"):
            increases = np.diff(all_edges) > 0
        # The step from the last edge of a column to the first of the next need not increase.
        increases[np.cumsum([len(array) for array in arrays[:-1]], dtype=np.intp) - 1] = True
        if increases.all() and np.isfinite(all_edges).all():
            return arrays
    return [check_edges(column_edges) for column_edges in edges]


def _affine_maps(edges, n_edges, first_slots):
    """Return the affine map from values to slots, for each column whose bins have equal width.

    The position of an edge is two grid steps above an integer, with an error below 1.5 grid steps:
    half a grid step for the rounding of each of the two sums to the grid, and less than half a
    grid step for the other operations.

    Parameters
    ----------
    edges : ndarray of shape (n_all_edges,)
        Edges of all columns, one column after another.
    n_edges : ndarray of shape (n_columns,)
    first_slots : ndarray of shape (n_columns,)
        First slot of each column.

    Returns
    -------
    maps : ndarray of shape (4, n_columns)
        Lower and upper limits to which a value is clipped, factor, and shift. For the other
        columns, the map is constant, and its value is not near an edge.
    is_even : ndarray of bool, shape (n_columns,)
        False for columns whose edges differ too much from those of bins of equal width.
    """
    starts = np.cumsum(n_edges) - n_edges
    n_bins = n_edges - 1
    first = edges[starts]
    end = edges[starts + n_edges - 1]
    with np.errstate(all="ignore"):
        width = (end - first) / n_bins
        factor = 1.0 / width
        low = first - width / 2
        high = end + width / 2
        number = np.arange(len(edges)) - np.repeat(starts, n_edges)
        even = np.repeat(first, n_edges) + number * np.repeat(width, n_edges)
        even[starts + n_edges - 1] = end
        distance = np.maximum.reduceat(np.abs(edges - even), starts)
        is_close = distance <= 0.25 * _GRID_STEP * width
        # The rounding error of the product, in bins, must be far below a grid step.
        is_fine = (width > 2.0**-28 * np.maximum(np.abs(first), np.abs(end))) & (n_bins < 1e6)
        shift = _OFFSET + first_slots + 1 + 2 * _GRID_STEP - first * factor
        is_even = (0.0 < factor) & (factor < np.inf) & np.isfinite(low) & np.isfinite(high)
        is_even &= is_close & is_fine
    maps = np.array([low, high, factor, shift])
    maps[:, ~is_even] = np.array([0.0, 0.0, 0.0, _OFFSET + 0.5])[:, np.newaxis]
    return maps, is_even
