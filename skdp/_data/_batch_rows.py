"""Reading the rows of a batch, tile by tile, into double precision."""

from bisect import bisect_right
from functools import partial

import numpy as np
from scipy.sparse import csr_array, issparse

from skdp._data._containers import canonical_rows
from skdp._data._parts import Rows
from skdp.utils import ChunkedArray
from skdp.utils._clipping import finite_doubles
from skdp.utils._sources import rows_within

# Enough for each step to take longer than what stands between steps; little beside a cache.
TILE_BYTES = 1 << 21
FEWEST_ROWS = 256
LARGEST_TILE = 1 << 13


def tile_rows(n_columns):
    """Return how many dense rows are read at a time; of a sparse table it is `LARGEST_TILE`."""
    return min(rows_within(TILE_BYTES, n_columns, FEWEST_ROWS), LARGEST_TILE)


def open_rows(X):
    """Return an object whose ``read(rows)`` gives a slice, or sorted numbers, of the rows of X.

    It returns doubles, valid until the next call; dense ones are C-contiguous. All are finite:
    what is too large becomes the largest. The rows of a call are of one part, dense ones
    `tile_rows` of them at most and sparse ones `LARGEST_TILE`.

    Parameters
    ----------
    X : ndarray, CSR matrix or ChunkedArray of finite numbers
        Of which nothing is on workers. Sparse entries that share a place are summed.
    """
    return _SparseRows(X) if issparse(X) else _DenseRows(X)


class _DenseRows:
    def __init__(self, X):
        X = np.asarray(X) if isinstance(X, np.ndarray) else X
        self._X, self._borders, self._tile = X, Rows(X).borders, tile_rows(X.shape[1])
        self._block = np.empty((self._tile, X.shape[1]))
        # None knows this object: a cycle would keep a part in memory.
        self._parts = X.parts() if isinstance(X, ChunkedArray) else [lambda: X]
        self._number = self._gather = None

    def read(self, rows):
        if isinstance(rows, slice):
            part = np.asarray(self._X[rows])
            if part.flags.c_contiguous and part.dtype == np.float64:
                return part
            return _convert(part, self._block[: len(part)])
        block = self._block[: len(rows)]
        number = bisect_right(self._borders, rows[0]) - 1
        if number != self._number:
            # One at a time: the pages of a file that is kept open stay in memory.
            self._number, self._gather = number, _gatherer(self._parts[number]())
        gather = self._gather or partial(self._read_part, number)
        gather(rows - self._borders[number] if number else rows, block)
        return block

    def _read_part(self, number, rows, out):
        start, end = self._borders[number : number + 2]
        for first in range(int(rows[0]), int(rows[-1]) + 1, self._tile):
            low, high = np.searchsorted(rows, (first, first + self._tile))
            if high > low:
                part = np.asarray(self._X[start + first : min(start + first + self._tile, end)])
                _convert(part[rows[low:high] - first], out[low:high])


class _SparseRows:
    def __init__(self, X):
        self._X = X

    def read(self, rows):
        block = canonical_rows(csr_array(self._X[rows]))
        finite_doubles(block.data)
        return block


def _gatherer(X):
    """Return a function that reads rows of an array into doubles, None for what takes slices."""
    if not isinstance(X, np.ndarray):
        return None
    X = np.asarray(X)
    if not X.flags.c_contiguous:
        return lambda rows, out: _convert(X[rows], out)
    if X.dtype == np.float64:
        return lambda rows, out: X.take(rows, 0, out, "clip")
    return lambda rows, out: _convert(X.take(rows, 0, None, "clip"), out)


def _convert(values, out):
    if values.dtype.itemsize <= 8:
        np.copyto(out, values)
        return out
    with np.errstate(over="ignore"):
        np.copyto(out, values, casting="same_kind")
    return finite_doubles(out)
