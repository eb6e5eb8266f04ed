"""A table in parts that need not be in memory together."""

import os
import sys
from bisect import bisect_left, bisect_right
from functools import partial
from itertools import accumulate, chain, zip_longest
from threading import Lock, local

import numpy as np
from scipy.sparse import issparse

from skdp.utils import _sources
from skdp.utils._frames import NUMBERS, frame_columns, is_frame, names_of, objects
from skdp.utils._sources import (
    Parts,
    Source,
    folder_order_problem,
    opened,
    parts_of,
    path_parts,
    table_parts,
)

# So many are added by halves in the bound on the rounding of sums.
MAX_CHUNKS = 2**24
OPENING = Lock()


class ChunkedArray:
    """Rows of several 2-D arrays, of files or of a table of another library, read part by part.

    Estimators that say so fit and predict on it block by block: it is never loaded whole.
    Files are opened when their rows are needed, at most one at a time, and never written to.

    Parameters
    ----------
    chunks : sequence, or a table that is one already
        A sequence of arrays of shape (n_i, n_features), of paths of ``.npy`` files, and of what a
        whole table may be: the path of a Parquet file or of a folder of them (a chunk is a row
        group), a pyarrow dataset, a polars LazyFrame (a chunk is a row group of the file to which
        it is written), a dask array or DataFrame, a checkpointed Spark DataFrame (a chunk is a
        partition); in a sequence also frames in memory, of numbers. Numbers, and in tables whose
        schema declares types also strings and categories; all of the same width, and those with
        names of columns with the same ones in the same order. The rows of the first come first.

    Attributes
    ----------
    shape : tuple of (int, int)
        Numbers of rows and columns.
    dtype : numpy.dtype
        The common type of the chunks' values: of objects where the schema declares strings or
        categories. There numbers are Python floats, and what is missing is None or NaN.
    ndim : int
        2.
    borders : tuple of int
        Where chunks begin, and the number of rows. No block that an estimator reads lies across.

    Raises
    ------
    ValueError
        If there is no chunk, or one is not a table of the common width, of numbers or declared
        labels, or there are more than 2**24 of them.
    OSError
        If a file cannot be read.

    Notes
    -----
    Pickling keeps paths as paths and copies arrays. Slices of rows with step 1 return an array
    of these rows; converting the whole to an array loads it. Rows by their sorted numbers, and
    columns by theirs, are tables in parts again, whose rows are read when they are needed. Rows of
    files in several folders cannot be taken by number, as their places depend on values.

    polars writes the rows of a LazyFrame once, to a temporary Parquet file that only its owner can
    read. The file is removed by `close`, at the end of a ``with`` statement, and when nothing
    refers to the table, or to one that was made of it, any more.

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
    >>> X[[0, 2, 5]]
    ChunkedArray(shape=(3, 2), dtype=float64, n=2)
    """

    ndim = 2

    def __init__(self, chunks):
        paths = chunks if isinstance(chunks, list | tuple) else [chunks]
        if all(map(_is_path, paths)):
            parts = path_parts(chunks)
        else:
            whole = as_chunked(chunks)
            parts = None if whole is None else whole._parts
        if parts is None and (_is_path(chunks) or is_frame(chunks)):
            raise ValueError("chunks must be a sequence of arrays, frames and paths, got one")
        self._set(parts or _all_parts(chunks))

    def _set(self, parts):
        sources = parts.sources
        shapes = tuple(source.shape for source in parts.sources)
        if not sources:
            raise ValueError("chunks must hold at least one array or path")
        widths = sorted({shape[1] for shape in shapes})
        if len(widths) > 1:
            raise ValueError(f"chunks must have the same number of columns, got {widths}")
        if len(sources) > MAX_CHUNKS:
            raise ValueError(f"there must be at most 2**24 chunks, got {len(sources)}")
        self._parts, self._sources, self._opened = parts, sources, local()
        self.offsets = tuple(accumulate((shape[0] for shape in shapes), initial=0))
        self.shape = (self.offsets[-1], shapes[0][1])
        self.dtype = np.result_type(*(source.dtype for source in sources))
        # Whether each chunk is opened by what is sent in its stead, as a path.
        self.opens_itself = not any(source.in_memory for source in sources)
        # What calls functions where the chunks are; None where that is here.
        self.workers = parts.workers and parts.workers(self.offsets)
        return self

    @classmethod
    def _of(cls, parts):
        return cls.__new__(cls)._set(parts)

    def close(self):
        """Remove the temporary files that were written for the table, which cannot be read then.

        Files that were given by their paths stay, and so do those of another table of which this
        one was made, by rows or columns or by a transform.
        """
        self.forget()
        for source in self._sources:
            if isinstance(source.temporary, _sources.TemporaryTable):
                source.temporary.remove()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.close()

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        """Yield the chunks in order."""
        for number in range(len(self._sources)):
            yield self._open(number)

    def __getitem__(self, key):
        """Return the rows of a slice with step 1, as an array; or rows or columns by number."""
        rows, columns = key if isinstance(key, tuple) and len(key) == 2 else (key, slice(None))
        if not _is_all(columns):
            columns = np.arange(self.shape[1])[columns]
            if not _is_all(rows) or columns.ndim != 1:
                raise TypeError("take rows first, and several columns of these")
            form = self._parts.form
            dtype = self.dtype
            if form is not None:
                form, dtype = _sources.form_of_columns(form, columns)
            chosen = partial(_chosen, columns=columns, dtype=dtype)
            return self.mapped(chosen, len(columns), dtype, form)
        if not isinstance(rows, slice):
            return self._rows(rows)
        if rows.step not in (None, 1):
            raise TypeError(f"rows are read by slices with step 1, got {rows!r}")
        start, stop, _ = rows.indices(len(self))
        numbers = range(bisect_right(self.offsets, start) - 1, bisect_left(self.offsets, stop))
        offsets = ((number, self.offsets[number]) for number in numbers)
        parts = [self._open(i)[max(start - first, 0) : stop - first] for i, first in offsets]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty((0, self.shape[1]), self.dtype)

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("a chunked array cannot become one array without a copy")
        return np.concatenate(list(self)).astype(dtype or self.dtype, copy=False)

    def __array_function__(self, function, types, args, kwargs):
        """Put tables side by side without reading them, as scikit-learn's unions ask numpy to.

        Other functions get the table in memory.
        """
        side_by_side = {np.hstack: {}, np.concatenate: {"axis": 1}}.get(function) == kwargs
        tables = [as_chunked(table) for table in args[0]] if side_by_side else []
        if len({getattr(table, "offsets", None) for table in tables}) != 1:
            return function(*map(_in_memory, args), **kwargs)
        if all(table._parts.table is not None for table in tables):
            return self._of_dask(function([table._parts.table.array for table in tables], **kwargs))
        width = sum(table.shape[1] for table in tables)
        dtype = np.result_type(*(table.dtype for table in tables))
        return self._viewed(tables, _side_by_side, width, dtype)

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "_opened"}

    def __setstate__(self, state):
        vars(self).update(state, _opened=local())

    def __repr__(self):
        return f"ChunkedArray(shape={self.shape}, dtype={self.dtype}, n={len(self._sources)})"

    def partitions(self):
        """Return what opens the chunks.

        Returns
        -------
        list of callables
            Each returns a chunk, and raises if it has changed.
        """
        return [partial(opened, source) for source in self._sources]

    def forget(self):
        """Let go of the chunk that was opened last, and of what Arrow keeps of decoding others."""
        self._opened = local()
        # Another thread may be importing it.
        if pool := getattr(sys.modules.get("pyarrow"), "default_memory_pool", None):
            pool().release_unused()

    def mapped(self, function, n_columns, dtype, form=None):
        """Return the table that a function makes of blocks of rows, each row by itself.

        Parameters
        ----------
        function : callable
            It is called when rows are read, wherever that is, and maybe again.
        n_columns : int
            That it makes.
        dtype : numpy.dtype
            Of the numbers, or objects, that it makes.
        form : DataFrame, default=None
            Without rows: the names and types of the columns that it makes.

        Returns
        -------
        ChunkedArray, or dask array of numbers without names, of a table that dask computes
        """
        table = self._parts.table
        if table is None:
            workers = self.workers and self.workers.mapped(function)
            return self._viewed([self], partial(_mapped, function), n_columns, dtype, workers, form)
        lazy = table.array.rechunk({1: -1})
        made = {"chunks": (lazy.chunks[0], (n_columns,)), "meta": np.empty((0, 0), dtype)}
        return self._of_dask(lazy.map_blocks(function, dtype=dtype, **made), form)

    def _of_dask(self, array, form=None):
        # Of an array of dask's own, objects could be of any kind: they are refused.
        is_own = form is not None or array.dtype.kind == "O"
        return self._of(_sources.dask_parts(array, form)) if is_own else array

    def _viewed(self, tables, read, n_columns, dtype, workers=None, form=None):
        """Return what a function makes of the chunks of tables that are cut as this one is."""
        chunks = zip(*(table._sources for table in tables), strict=True)
        views = (Source.view(each, read, (each[0].shape[0], n_columns), dtype) for each in chunks)
        order_problem = "".join(table._parts.order_problem for table in tables)
        parts = Parts(sources=tuple(views), form=form, order_problem=order_problem, workers=workers)
        return self._of(parts)

    def _rows(self, rows):
        rows = np.asarray(rows)
        parts = self._parts
        if rows.dtype == bool and rows.shape == (len(self),):
            rows = np.flatnonzero(rows)
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise TypeError(f"rows are read by slices with step 1, or by numbers, got {rows!r}")
        folders = [source.folders for source in self._sources]
        order_problem = parts.order_problem or folder_order_problem(folders)
        if order_problem:
            raise ValueError(
                f"rows of this table cannot be taken by number: {order_problem}. One row's values "
                "then decide where others stand, so that folds would be of other rows. Take folds "
                "of a table whose rows stay in place: of all rows of a file, or of the files of "
                "one folder, given by its path or as a pyarrow dataset"
            )
        if np.any(np.diff(rows, prepend=-1, append=len(self)) <= 0):
            raise ValueError(
                "rows of a table in parts are taken by distinct numbers that ascend, from 0 on: "
                "sort them, and shuffle before a table is written"
            )
        cuts = enumerate(np.split(rows, np.searchsorted(rows, self.offsets[1:-1])))
        cuts = [(i, own - self.offsets[i]) for i, own in cuts if len(own) or not len(rows)]
        if parts.table is not None:
            return self._of(table_parts(parts.table.rows(cuts), parts.form))
        views = []
        for i, own in cuts:
            source = self._sources[i]
            shape = (len(own), self.shape[1])
            views.append(Source.view([source], partial(_taken, own), shape, source.dtype))
        return self._of(Parts(sources=tuple(views), form=parts.form))

    def _open(self, number):
        # What is opened remembers how far it is decoded, so that threads cannot share it.
        last = vars(self._opened).get("last")
        if last is None or last[0] != number:
            last = self._opened.last = number, opened(self._sources[number])
        return last[1]


def _is_all(key):
    return key is Ellipsis or (isinstance(key, slice) and key == slice(None))


def _in_memory(value):
    if isinstance(value, list | tuple):
        return [_in_memory(each) for each in value]
    return np.asarray(value) if isinstance(value, ChunkedArray) else value


def _mapped_file(path, written):
    if _written(path) != written:
        raise ValueError(f"{path} has changed since it was first opened")
    # Threads that parse a header at once may fail (CPython's issue 106905).
    with OPENING:
        return np.load(path, mmap_mode="r", allow_pickle=False)


def _written(path):
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def _is_path(chunk):
    return isinstance(chunk, str | bytes | os.PathLike)


def _chunk_parts(chunk):
    """Return the parts of a table, of a ``.npy`` file, an array in memory or one of its own."""
    if _is_path(chunk):
        if (parts := path_parts(chunk)) is not None:
            return parts
        name = os.path.abspath(os.fsdecode(chunk))
        opening = partial(_mapped_file, name, _written(name))
        folders = _sources.folders_of([name])
        array = opening()
    elif (table := as_chunked(chunk)) is not None:
        return table._parts
    else:
        name = "a chunk"
        array = _as_array(chunk)
        folders = frozenset()
        opening = partial(_itself, array)
    if getattr(array, "ndim", None) != 2 or array.dtype.kind not in "fiub":
        found = f"{getattr(array, 'dtype', array)} of shape {np.shape(array)}"
        raise ValueError(f"{name} must be a 2-D array of real numbers, got {found}")
    return Parts(sources=(Source(name, array.shape, array.dtype, opening, not folders, folders),))


def _as_array(chunk):
    if is_frame(chunk):
        # Dates have no common type with numbers: as objects they are refused.
        columns, _ = frame_columns(chunk)
        return np.column_stack([c if c.dtype.kind in NUMBERS else objects(c) for c in columns])
    if issparse(chunk):
        raise ValueError("chunks must be dense")
    if hasattr(chunk, "dtype") and hasattr(chunk, "shape"):
        return chunk
    # Left to itself numpy finds a type for all of a list in its values.
    return np.array(chunk, dtype=np.float64)


def _itself(array):
    return array


def _all_parts(chunks):
    """Return the parts of a sequence of chunks, of which some may be tables of several."""
    chunks = list(chunks)
    each = [_chunk_parts(chunk) for chunk in chunks]
    forms = [parts.form for parts in each]
    tables = [c if form is None else form for c, form in zip(chunks, forms, strict=True)]
    names = [names_of(table) for table in tables if is_frame(table)]
    names = [own for own in names if all(isinstance(name, str) for name in own)]
    for one, other in chain.from_iterable(zip_longest(names[0], own) for own in names[1:]):
        if one != other:
            found = f"{other!r} in the place of {one!r}"
            raise ValueError(f"chunks must have the same columns in the same order, got {found}")
    typed = [form is not None and _sources.typed_columns(form) for form in forms]
    form = forms[0] if any(typed) and typed.count(typed[0]) == len(typed) else None
    sources = chain.from_iterable(parts.sources for parts in each)
    order_problem = "".join(parts.order_problem for parts in each)
    return Parts(sources=tuple(sources), form=form, order_problem=order_problem)


def _chosen(block, columns, dtype):
    return np.take(block, columns, axis=1).astype(dtype, copy=False)


def _mapped(function, rows, array):
    return function(np.asarray(array[rows]))


def _side_by_side(rows, *arrays):
    return np.hstack([array[rows] for array in arrays])


def _taken(numbers, rows, array):
    """Return a slice of some rows of an array, by their ascending numbers."""
    numbers = numbers[rows]
    if isinstance(array, np.ndarray):
        return array[numbers]
    pieces = [array[0:0]]
    step = _sources.slice_rows(array.shape[1])
    # Nothing is read behind the last of them: it would be decoded again for those that follow.
    for own in np.split(numbers, np.flatnonzero(np.diff(numbers // step)) + 1):
        if len(own):
            pieces.append(array[own[0] : own[-1] + 1][own - own[0]])
    return pieces[1] if len(pieces) == 2 else np.concatenate(pieces)


def meta_of(X):
    """Return what has the names and types of a table's columns: an empty frame, or the table."""
    form = X._parts.form if isinstance(X, ChunkedArray) else None
    return X if form is None else form


def as_chunked(X):
    """Return a table that is read part by part as a `ChunkedArray`, and None of any other.

    It is one already, a dask array, a dask DataFrame, a pyarrow dataset, a polars LazyFrame, a
    checkpointed Spark DataFrame, or the path (of type `pathlib.Path`) of Parquet files. None of the
    libraries is imported for anything else. Sums over rows are computed where the blocks of a dask
    array, or the partitions of a frame of dask or Spark, are; what reads rows reads those of a
    part, and forgets them when the next one is read.

    Parameters
    ----------
    X : object

    Raises
    ------
    ValueError
        If X is a dask array of unknown shape, of other than numbers or not 2-D; if a column is not
        declared to be of numbers, truth values, strings or categories; or as
        `ChunkedArray` does.
    """
    if isinstance(X, ChunkedArray):
        return X
    parts = path_parts(X) if isinstance(X, os.PathLike) else parts_of(X)
    if parts is None and isinstance(X, os.PathLike):
        raise ValueError(f"{os.fspath(X)} is neither a Parquet file nor a folder of such files")
    return ChunkedArray._of(parts) if parts else None
