"""A table in parts that need not be in memory together."""

import os
from bisect import bisect_left, bisect_right
from functools import partial
from itertools import accumulate
from threading import Lock

import numpy as np
from scipy.sparse import issparse

from skdp.utils._frames import NUMBERS, frame_columns, is_frame, objects
from skdp.utils._workers import DaskWorkers

# So many are added by halves in the bound on the rounding of sums.
MOST_CHUNKS = 2**24
OPENING = Lock()


class ChunkedArray:
    """Rows of several 2-D arrays, read part by part.

    Estimators that say so fit and predict on it block by block: it is never loaded whole.
    Files are opened when their rows are needed, at most one at a time, and never written to.

    Parameters
    ----------
    chunks : sequence of (array-like of shape (n_i, n_features) or path of a ``.npy`` file)
        Numbers; all of the same width. The rows of the first come first.

    Attributes
    ----------
    shape : tuple of (int, int)
        Numbers of rows and columns.
    dtype : numpy.dtype
        The common type of the chunks' values.
    ndim : int
        2.
    borders : tuple of int
        Where chunks begin, and the number of rows. No block that an estimator reads lies across.

    Raises
    ------
    ValueError
        If there is no chunk, or one is not a table of numbers of the common width, or there are
        more than 2**24 of them.
    OSError
        If a file cannot be read.

    Notes
    -----
    Pickling keeps paths as paths and copies arrays. Slices of rows with step 1 return an array
    of these rows; converting the whole to an array loads it.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.utils import ChunkedArray
    >>> X = ChunkedArray([np.zeros((3, 2)), np.ones((4, 2))])
    >>> X.shape
    (7, 2)
    >>> X[2:4]
    array([[0., 0.],
           [1., 1.]])
    """

    ndim = 2
    # What calls functions where the chunks are; None where that is here.
    workers = None

    def __init__(self, chunks):
        if isinstance(chunks, str | bytes | os.PathLike):
            raise ValueError("chunks must be a sequence of arrays and paths, got one path")
        sources = tuple(_source(chunk) for chunk in chunks)
        if not sources:
            raise ValueError("chunks must hold at least one array or path")
        shapes = tuple(_checked(source.open(), source).shape for source in sources)
        widths = sorted({shape[1] for shape in shapes})
        if len(widths) > 1:
            raise ValueError(f"chunks must have the same number of columns, got {widths}")
        self._set(sources, shapes)

    def _set(self, sources, shapes):
        if len(sources) > MOST_CHUNKS:
            raise ValueError(f"there must be at most 2**24 chunks, got {len(sources)}")
        self._sources, self._shapes, self._opened = sources, shapes, None
        self.borders = tuple(accumulate((shape[0] for shape in shapes), initial=0))
        self.shape = (self.borders[-1], shapes[0][1])
        self.dtype = np.result_type(*(source.dtype for source in sources))
        return self

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        """Yield the chunks in order."""
        for number in range(len(self._sources)):
            yield self._open(number)

    def __getitem__(self, rows):
        """Return the rows of a slice with step 1, as an array."""
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            raise TypeError(f"rows are read by slices with step 1, got {rows!r}")
        start, stop, _ = rows.indices(len(self))
        numbers = range(bisect_right(self.borders, start) - 1, bisect_left(self.borders, stop))
        offsets = ((number, self.borders[number]) for number in numbers)
        parts = [self._open(i)[max(start - first, 0) : stop - first] for i, first in offsets]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty((0, self.shape[1]), self.dtype)

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("a chunked array cannot become one array without a copy")
        return np.concatenate(list(self)).astype(dtype or self.dtype, copy=False)

    def __getstate__(self):
        return self.__dict__ | {"_opened": None}

    def __repr__(self):
        return f"ChunkedArray(shape={self.shape}, dtype={self.dtype}, n={len(self._sources)})"

    def parts(self):
        """Return what opens each chunk, and refuses one that has changed."""
        return [partial(_opened, *each) for each in zip(self._sources, self._shapes, strict=True)]

    @property
    def opens_itself(self):
        """Whether each chunk is opened by what is sent in its stead, as a path."""
        return not any(isinstance(source, _Held) for source in self._sources)

    def _open(self, number):
        opened = self._opened
        if opened is None or opened[0] != number:
            opened = self._opened = (number, _opened(self._sources[number], self._shapes[number]))
        return opened[1]


def _opened(source, shape):
    chunk = source.open()
    if chunk.shape != shape or chunk.dtype != source.dtype:
        raise ValueError(f"{source} has changed since it was first opened")
    return chunk


class _Held:
    """A chunk in memory, or an array that reads itself."""

    def __init__(self, array):
        if is_frame(array):
            # Dates have no common type with numbers: as objects they are refused.
            columns, _ = frame_columns(array)
            array = np.column_stack([c if c.dtype.kind in NUMBERS else objects(c) for c in columns])
        elif not hasattr(array, "dtype") or not hasattr(array, "shape"):
            array = np.asarray(array)
            # One fraction, or one null, would make all integers doubles.
            array = array.astype(np.float64) if array.dtype.kind in "iu" else array
        if issparse(array):
            raise ValueError("chunks must be dense")
        self._array, self.dtype = array, array.dtype

    def open(self):
        return self._array

    def __str__(self):
        return "a chunk"


class _File:
    """A chunk in a ``.npy`` file."""

    def __init__(self, path):
        self._path = os.path.abspath(os.fsdecode(path))
        self.dtype = self.open().dtype

    def open(self):
        # Threads that parse a header at once may fail (CPython's issue 106905).
        with OPENING:
            return np.load(self._path, mmap_mode="r", allow_pickle=False)

    def __str__(self):
        return self._path


class _DaskRows:
    """The rows of a dask array that lie between two of its block borders."""

    def __init__(self, array, number):
        self._array, self._number = array, number
        self.dtype = array.dtype

    def open(self):
        block = np.asarray(self._array.blocks[self._number].compute())
        if block.dtype != self.dtype:
            raise ValueError(f"a block holds {block.dtype}, the dask array is one of {self.dtype}")
        return block


def _source(chunk):
    return _File(chunk) if isinstance(chunk, str | bytes | os.PathLike) else _Held(chunk)


def _checked(chunk, source):
    if getattr(chunk, "ndim", None) != 2 or chunk.dtype.kind not in "fiub":
        raise ValueError(
            f"{source} must be a 2-D array of real numbers, got {chunk.dtype} of shape "
            f"{chunk.shape}"
        )
    return chunk


def as_chunked(X):
    """Return X as a `ChunkedArray` if it is one or a dask array, and None otherwise.

    Dask itself is not imported. Sums over rows are computed where the blocks of a dask array are;
    what reads its rows computes a block, and forgets it when the next one is read.

    Parameters
    ----------
    X : object

    Raises
    ------
    ValueError
        If X is a dask array of unknown shape, of other than numbers or not 2-D.
    """
    if isinstance(X, ChunkedArray):
        return X
    if type(X).__module__.partition(".")[0] != "dask" or not hasattr(type(X), "blocks"):
        return None
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(f"X must be a 2-D array of real numbers, got {X.dtype} of {X.ndim}-D")
    heights = X.chunks[0]
    if any(np.isnan(length) for axis in X.chunks for length in axis):
        raise ValueError("X must have known chunk sizes: call its compute_chunk_sizes() first")
    sources = tuple(_DaskRows(X, number) for number in range(len(heights)))
    shapes = tuple((height, X.shape[1]) for height in heights)
    chunked = ChunkedArray.__new__(ChunkedArray)._set(sources, shapes)
    chunked.workers = DaskWorkers(X, chunked.borders)
    return chunked
