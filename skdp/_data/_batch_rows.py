"""Reading the rows of a batch in double precision, tile by tile."""

from bisect import bisect_right
from functools import partial

import numpy as np
from scipy.sparse import csr_array, issparse

from skdp._data._chunked import ChunkedArray
from skdp._data._clipping import finite_doubles
from skdp._data._containers import canonical_rows
from skdp._data._parts import Rows
from skdp._data._sources import rows_within

# Size of a dense tile in bytes: large enough that the arithmetic takes longer than the calls, and
# small enough that a tile stays in cache.
TILE_BYTES = 1 << 21
# Minimum number of rows in a dense tile, and maximum number of rows in any tile.
MIN_TILE_ROWS = 256
MAX_TILE_ROWS = 1 << 13


def tile_rows(n_columns):
    """Return the number of rows in a dense tile; a sparse tile has `MAX_TILE_ROWS`."""
    return min(rows_within(TILE_BYTES, n_columns, MIN_TILE_ROWS), MAX_TILE_ROWS)


def open_rows(X):
    """Return an object whose ``read(rows)`` returns rows of X as float64.

    `rows` is a slice or an array of sorted indices. It selects at most `tile_rows` rows
    (`MAX_TILE_ROWS` from a sparse table), all in one partition. The result is valid until the next
    call. Dense results are C-contiguous. All values are finite: larger values become the largest
    double.

    Parameters
    ----------
    X : ndarray, CSR matrix or ChunkedArray of finite numbers
        A table without workers. Sparse entries that share a row and column are added up.
    """
    if issparse(X):
        return _SparseRows(X)
    return _DenseRows(X)


class _DenseRows:
    """Rows of a dense array or partitioned table. See `open_rows`."""

    def __init__(self, X):
        # A subclass of ndarray may index differently.
        if isinstance(X, np.ndarray):
            X = np.asarray(X)
        self._X = X
        self._offsets = Rows(X).offsets
        self._tile = tile_rows(X.shape[1])
        self._block = np.empty((self._tile, X.shape[1]))
        # The functions must not refer to this object: a reference cycle would keep an opened
        # partition in memory.
        if isinstance(X, ChunkedArray):
            self._partitions = X.partitions()
        else:
            self._partitions = None
        self._number = self._gather = None

    def read(self, rows):
        """Return rows as `open_rows` describes. They may be a view of X or of a reused array."""
        if isinstance(rows, slice):
            values = np.asarray(self._X[rows])
            if values.flags.c_contiguous and values.dtype == np.float64:
                return values
            return _convert(values, self._block[: len(values)])
        block = self._block[: len(rows)]
        number = bisect_right(self._offsets, rows[0]) - 1
        if number != self._number:
            # Only one partition is open at a time, because the pages of an open file stay in
            # memory.
            if self._partitions is None:
                partition = self._X
            else:
                partition = self._partitions[number]()
            self._number, self._gather = number, _gatherer(partition)
        gather = self._gather or partial(self._read_partition, number)
        if number:
            rows = rows - self._offsets[number]
        gather(rows, block)
        return block

    def _read_partition(self, number, rows, out):
        """Copy rows, by their indices in a partition that can only be sliced, into `out`."""
        start, end = self._offsets[number : number + 2]
        for first in range(int(rows[0]), int(rows[-1]) + 1, self._tile):
            low, high = np.searchsorted(rows, (first, first + self._tile))
            if high > low:
                values = np.asarray(self._X[start + first : min(start + first + self._tile, end)])
                _convert(values[rows[low:high] - first], out[low:high])


class _SparseRows:
    """Rows of a sparse matrix. See `open_rows`."""

    def __init__(self, X):
        self._X = X

    def read(self, rows):
        """Return rows as a new CSR array, as `open_rows` describes."""
        block = canonical_rows(csr_array(self._X[rows]))
        finite_doubles(block.data)
        return block


def _gatherer(X):
    """Return a function that copies rows of an array into an array of doubles.

    The result is None for an object that can only be sliced.
    """
    if not isinstance(X, np.ndarray):
        return None
    X = np.asarray(X)
    if not X.flags.c_contiguous:
        return partial(_gather_indexed, X)
    # `take` of contiguous rows is faster than indexing; "clip" avoids a copy of `out`.
    if X.dtype == np.float64:
        return partial(_gather_doubles, X)
    return partial(_gather_contiguous, X)


def _gather_indexed(X, rows, out):
    return _convert(X[rows], out)


def _gather_doubles(X, rows, out):
    return X.take(rows, 0, out, "clip")


def _gather_contiguous(X, rows, out):
    return _convert(X.take(rows, 0, None, "clip"), out)


def _convert(values, out):
    """Copy values into an array of doubles; long doubles that overflow become the largest one."""
    if values.dtype.itemsize <= 8:
        np.copyto(out, values)
        return out
    with np.errstate(over="ignore"):
        np.copyto(out, values, casting="same_kind")
    return finite_doubles(out)
