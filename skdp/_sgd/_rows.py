"""Reading the rows of a batch, tile by tile, into double precision."""

import numpy as np
from scipy.sparse import csr_array, issparse

from skdp._data._containers import canonical_rows
from skdp.utils import ChunkedArray
from skdp.utils._chunked import _DaskRows

__all__ = ["LARGEST_TILE", "open_rows", "tile_rows"]

# A tile's rows stay in a core's own cache.
TILE_BYTES = 1 << 19
FEWEST_ROWS = 256
LARGEST_TILE = 4096
LARGEST = np.finfo(np.float64).max


def tile_rows(n_columns):
    """Return how many dense rows are read at a time; of a sparse table it is `LARGEST_TILE`."""
    return min(max(FEWEST_ROWS, TILE_BYTES // (8 * n_columns)), LARGEST_TILE)


def open_rows(X):
    """Return an object whose ``read(rows)`` gives a slice, or sorted numbers, of the rows of X.

    It returns doubles, valid until the next call; dense ones are C-contiguous. All are finite:
    what is too large becomes the largest. `tile` is the largest number of rows in a call.

    Parameters
    ----------
    X : ndarray, CSR matrix or ChunkedArray of finite numbers
        Sparse entries that share a place are summed.
    """
    if issparse(X):
        return _SparseRows(X)
    return _ChunkedRows(X) if isinstance(X, ChunkedArray) else _DenseRows(X)


class _DenseRows:
    def __init__(self, X):
        self._X = np.asarray(X)
        self.tile = tile_rows(X.shape[1])
        self._block = np.empty((self.tile, X.shape[1]))
        self._gather = _gatherer(self._X, self.tile)

    def read(self, rows):
        if isinstance(rows, slice):
            part = self._X[rows]
            if self._X.flags.c_contiguous and part.dtype == np.float64:
                return part
            return _convert(part, self._block[: len(part)])
        block = self._block[: len(rows)]
        self._gather(rows, block)
        return block


class _ChunkedRows:
    def __init__(self, X):
        self._X = X
        self.tile = tile_rows(X.shape[1])
        self._block = np.empty((self.tile, X.shape[1]))
        # A chunk that is computed when it is read is not kept: together they could fill the memory.
        self._gather = [self._chunk_gatherer(number) for number in range(len(X._sources))]

    def _chunk_gatherer(self, number):
        if isinstance(self._X._sources[number], _DaskRows):
            return None
        chunk = self._X._open(number)
        return _gatherer(np.asarray(chunk), self.tile) if isinstance(chunk, np.ndarray) else None

    def read(self, rows):
        if isinstance(rows, slice):
            part = np.asarray(self._X[rows])
            return _convert(part, self._block[: len(part)])
        block, starts = self._block[: len(rows)], self._X._starts
        ends = np.searchsorted(rows, starts[1:])
        first = 0
        for number, end in enumerate(ends.tolist()):
            if end > first:
                inside = rows[first:end] - starts[number]
                self._read_chunk(number, inside, block[first:end])
            first = end
        return block

    def _read_chunk(self, number, rows, out):
        if self._gather[number] is not None:
            self._gather[number](rows, out)
            return
        chunk = self._X._open(number)
        for first in range(int(rows[0]), int(rows[-1]) + 1, self.tile):
            low, high = np.searchsorted(rows, (first, first + self.tile))
            if high > low:
                part = np.asarray(chunk[first : min(first + self.tile, len(chunk))])
                _convert(part[rows[low:high] - first], out[low:high])


class _SparseRows:
    tile = LARGEST_TILE

    def __init__(self, X):
        self._X = X

    def read(self, rows):
        block = canonical_rows(csr_array(self._X[rows]))
        np.clip(block.data, -LARGEST, LARGEST, out=block.data)
        return block


def _gatherer(X, tile):
    """Return a function that reads rows of an array into doubles."""
    if not X.flags.c_contiguous:
        return lambda rows, out: _convert(X[rows], out)
    if X.dtype == np.float64:
        return lambda rows, out: X.take(rows, 0, out, "clip")
    buffer = np.empty((tile, X.shape[1]), X.dtype)

    def gather(rows, out):
        part = buffer[: len(rows)]
        X.take(rows, 0, part, "clip")
        _convert(part, out)

    return gather


def _convert(values, out):
    if values.dtype.itemsize <= 8:
        np.copyto(out, values)
        return out
    with np.errstate(over="ignore"):
        np.copyto(out, values, casting="same_kind")
    return np.clip(out, -LARGEST, LARGEST, out=out)
