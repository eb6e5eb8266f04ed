"""Partitioned tables, whose partitions need not be in memory at the same time."""

import os
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import accumulate, chain, zip_longest
from threading import Lock, local

import numpy as np
from scipy.sparse import issparse

from skdp._data import _sources
from skdp._data._frames import NUMBERS, check_not_masked, frame_columns, is_frame, names_of, objects
from skdp._data._sources import (
    Parts,
    Source,
    folder_order_problem,
    open_source,
    parts_of,
    path_parts,
    table_parts,
)
from skdp.utils._types import TableLike

# Maximum number of chunks, on which the bound on rounding errors of sums relies.
MAX_CHUNKS = 2**24
# Held while the header of a file is parsed.
OPENING = Lock()


class ChunkedArray:
    """Rows from several 2-D arrays, from files or from another library's table, read in chunks.

    Estimators that document support for it fit and predict block by block, so the table is never
    loaded as a whole. Files are opened when their rows are needed, at most one at a time, and never
    written.

    Parameters
    ----------
    chunks : sequence or table
        A table is the path of a Parquet file or of a folder of Parquet files (a chunk is a row
        group), a pyarrow dataset, a polars LazyFrame (a chunk is a row group of the file to which
        it is written), a dask array or DataFrame, or a checkpointed Spark DataFrame (a chunk is a
        partition). A sequence may contain such tables, arrays of shape (n_i, n_features), paths of
        ``.npy`` files, and numeric frames in memory, in the order of their rows.

        Values are numbers or, in tables whose schema declares types, also strings, categories,
        dates and durations. All items must have the same number of columns, and those with column
        names must have the same names in the same order.

    Attributes
    ----------
    shape : tuple of (int, int)
        Numbers of rows and columns.
    dtype : numpy.dtype
        Common type of the chunks' values. It is object if the schema declares strings, categories,
        dates or durations. In this case, numbers are Python floats, times are NumPy's (dates with a
        time zone are Python's or pandas'), and missing values are None, NaN or NaT.
    ndim : int
        2.
    offsets : tuple of int
        First row of each chunk, and the number of rows. No block of rows spans several chunks.

    Raises
    ------
    ValueError
        If there is no chunk or more than 2**24 chunks, if the numbers of columns differ, or if a
        chunk does not consist of numbers or declared labels.
    OSError
        If a file cannot be read.

    Notes
    -----
    Pickles contain paths of files and copies of arrays. A slice of rows with step 1 returns an
    array of these rows, and conversion to an array loads all rows. Indexing with sorted row
    indices, or with column indices, returns a lazy `ChunkedArray`. Rows from files in several
    folders cannot be selected by index, because their order may depend on values.

    polars writes the rows of a LazyFrame once, to a temporary Parquet file that only its owner can
    read. The file is removed by `close`, at the end of a ``with`` statement, or with the last
    reference to the table or to a table computed from it.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import ChunkedArray
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

    def __init__(self, chunks: Sequence | TableLike):
        if isinstance(chunks, list | tuple):
            paths = chunks
        else:
            paths = [chunks]
        if all(map(_is_path, paths)):
            parts = path_parts(chunks)
        else:
            table = None
            if not isinstance(chunks, Iterator):
                table = as_chunked(chunks)
            if table is None:
                parts = None
            else:
                parts = table._parts
        if parts is None and (_is_path(chunks) or is_frame(chunks)):
            raise ValueError("chunks must be a sequence of arrays, frames and paths, got one")
        self._set(parts or _all_parts(chunks))

    def _set(self, parts):
        """Check the parts, set all attributes from them, and return the table.

        The constructor and `_of`, which has no `chunks` to convert, share it.
        """
        sources = parts.sources
        shapes = tuple(source.shape for source in sources)
        if not sources:
            raise ValueError("chunks must hold at least one array or path")
        widths = sorted({shape[1] for shape in shapes})
        if len(widths) > 1:
            raise ValueError(f"chunks must have the same number of columns, got {widths}")
        if len(sources) > MAX_CHUNKS:
            raise ValueError(f"there must be at most 2**24 chunks, got {len(sources)}")
        self._parts = parts
        self._sources = sources
        self._opened = local()
        self.offsets = tuple(accumulate((shape[0] for shape in shapes), initial=0))
        self.shape = (self.offsets[-1], shapes[0][1])
        self.dtype = np.result_type(*(source.dtype for source in sources))
        # True if each chunk can be opened from a pickle, as a path can.
        self.opens_itself = not any(source.in_memory for source in sources)
        # The workers that hold the chunks, or None if chunks are opened in this process.
        self.workers = parts.workers and parts.workers(self.offsets)
        return self

    @classmethod
    def _of(cls, parts):
        return cls.__new__(cls)._set(parts)

    def close(self):
        """Remove the temporary files that were written for the table, which is then unreadable.

        The user's files are not removed. If this table was computed from another one, by selecting
        rows or columns or by a transform, the other table's temporary files are not removed either.
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
        """Return an array for a slice with step 1; a lazy table for row or column indices."""
        rows = key
        columns = slice(None)
        if isinstance(key, tuple) and len(key) == 2:
            rows, columns = key
        if not _is_all(columns):
            columns = np.arange(self.shape[1])[columns]
            if not _is_all(rows) or columns.ndim != 1:
                raise TypeError(
                    "a ChunkedArray cannot be indexed by rows and columns at once, or by a single "
                    "column: index rows first, then a list of columns"
                )
            meta = self._parts.meta
            dtype = self.dtype
            if meta is not None:
                meta, dtype = _sources.meta_of_columns(meta, columns)
            take_columns = partial(_take_columns, columns=columns, dtype=dtype)
            return self.mapped(take_columns, len(columns), dtype, meta)
        if not isinstance(rows, slice):
            return self._rows(rows)
        if rows.step not in (None, 1):
            raise TypeError(f"slices of rows must have step 1, got {rows!r}")
        start, stop, _ = rows.indices(len(self))
        numbers = range(bisect_right(self.offsets, start) - 1, bisect_left(self.offsets, stop))
        arrays = []
        for number in numbers:
            first = self.offsets[number]
            arrays.append(self._open(number)[max(start - first, 0) : stop - first])
        if len(arrays) == 1:
            return arrays[0]
        if arrays:
            return np.concatenate(arrays)
        return np.empty((0, self.shape[1]), self.dtype)

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("a chunked array cannot be converted to a single array without a copy")
        return np.concatenate(list(self)).astype(dtype or self.dtype, copy=False)

    def __array_function__(self, function, types, args, kwargs):
        """Concatenate columns of tables lazily; scikit-learn's unions use NumPy for this.

        Other functions of NumPy receive the table in memory.
        """
        joins_columns = {np.hstack: {}, np.concatenate: {"axis": 1}}.get(function) == kwargs
        tables = []
        if joins_columns:
            tables = [as_chunked(table) for table in args[0]]
        if len({getattr(table, "offsets", None) for table in tables}) != 1:
            return function(*map(_in_memory, args), **kwargs)
        if all(table._parts.table is not None for table in tables):
            arrays = [table._parts.table.array for table in tables]
            return self._from_dask(function(arrays, **kwargs))
        width = sum(table.shape[1] for table in tables)
        dtype = np.result_type(*(table.dtype for table in tables))
        return self._viewed(tables, _join_columns, width, dtype)

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "_opened"}

    def __setstate__(self, state):
        vars(self).update(state, _opened=local())

    def __repr__(self):
        return f"ChunkedArray(shape={self.shape}, dtype={self.dtype}, n={len(self._sources)})"

    def partitions(self):
        """Return functions that open the chunks.

        Returns
        -------
        list of callables
            Each function returns a chunk, or raises `ValueError` if the chunk has changed.
        """
        return [partial(open_source, source) for source in self._sources]

    def forget(self):
        """Release the chunk that was opened last, and the memory that Arrow keeps for decoding."""
        self._opened = local()
        # The attribute may not exist yet if another thread is importing pyarrow.
        if pool := getattr(sys.modules.get("pyarrow"), "default_memory_pool", None):
            pool().release_unused()

    def mapped(self, function, n_columns, dtype, meta=None):
        """Return the lazy table that a row-wise function computes from blocks of rows.

        Parameters
        ----------
        function : callable
            Function of a block. It is called each time rows are read, possibly on another machine.
        n_columns : int
            Number of columns in its result.
        dtype : numpy.dtype
            Type of its result.
        meta : DataFrame, default=None
            Frame without rows that has the names and types of the columns.

        Returns
        -------
        ChunkedArray or dask array
            A dask array if dask computes the table and `meta` is None.
        """
        table = self._parts.table
        if table is None:
            workers = self.workers and self.workers.mapped(function)
            read = partial(_apply, function)
            return self._viewed([self], read, n_columns, dtype, workers, meta)
        lazy = table.array.rechunk({1: -1})
        chunks = (lazy.chunks[0], (n_columns,))
        array = lazy.map_blocks(function, dtype=dtype, chunks=chunks, meta=np.empty((0, 0), dtype))
        return self._from_dask(array, meta)

    def _from_dask(self, array, meta=None):
        """Return a dask array, as a `ChunkedArray` if it has column names or objects.

        A dask array of objects would be refused as input, since its objects could be anything.
        """
        is_wrapped = meta is not None or array.dtype.kind == "O"
        if is_wrapped:
            return self._of(_sources.dask_parts(array, meta))
        return array

    def _viewed(self, tables, read, n_columns, dtype, workers=None, meta=None):
        """Return the lazy table that a function computes from the chunks of aligned tables."""
        chunks = zip(*(table._sources for table in tables), strict=True)
        views = []
        for sources in chunks:
            views.append(Source.view(sources, read, (sources[0].shape[0], n_columns), dtype))
        order_problem = "".join(table._parts.order_problem for table in tables)
        parts = Parts(sources=tuple(views), meta=meta, order_problem=order_problem, workers=workers)
        return self._of(parts)

    def _rows(self, rows):
        """Return a lazy table of the rows that indices or a mask select."""
        rows = np.asarray(rows)
        parts = self._parts
        if rows.dtype == bool and rows.shape == (len(self),):
            rows = np.flatnonzero(rows)
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise TypeError(f"rows must be a slice with step 1, or indices, got {rows!r}")
        folders = [source.folders for source in self._sources]
        order_problem = parts.order_problem or folder_order_problem(folders)
        if order_problem:
            raise ValueError(
                f"rows of this table cannot be taken by number: {order_problem}. The values of a "
                "row could then change the positions of others, and with them the folds. Use "
                "folds of a table with a fixed order of rows: all rows of a file, or the files of "
                "one folder, given by its path or as a pyarrow dataset"
            )
        if np.any(np.diff(rows, prepend=-1, append=len(self)) <= 0):
            raise ValueError(
                "rows of a partitioned table must be selected by distinct, increasing indices: "
                "sort them, and shuffle before a table is written"
            )
        # The selected indices in each chunk, relative to its first row. A table without rows keeps
        # all chunks.
        selections = []
        for i, indices in enumerate(np.split(rows, np.searchsorted(rows, self.offsets[1:-1]))):
            if len(indices) or not len(rows):
                selections.append((i, indices - self.offsets[i]))
        if parts.table is not None:
            return self._of(table_parts(parts.table.rows(selections), parts.meta))
        views = []
        for i, indices in selections:
            source = self._sources[i]
            shape = (len(indices), self.shape[1])
            read = partial(_take_rows, indices)
            views.append(Source.view([source], read, shape, source.dtype))
        return self._of(Parts(sources=tuple(views), meta=parts.meta))

    def _open(self, number):
        """Return the opened source of a number, which stays open until the thread opens another."""
        # One chunk per thread, because an opened chunk stores its decoding position.
        last = vars(self._opened).get("last")
        if last is None or last[0] != number:
            last = self._opened.last = number, open_source(self._sources[number])
        return last[1]


def _is_all(key):
    return key is Ellipsis or (isinstance(key, slice) and key == slice(None))


def _in_memory(value):
    """Return a partitioned table as an array, within lists, too; other values unchanged."""
    if isinstance(value, list | tuple):
        return [_in_memory(item) for item in value]
    if isinstance(value, ChunkedArray):
        return np.asarray(value)
    return value


def _mapped_file(path, stamp):
    """Return the memory map of a ``.npy`` file.

    `ValueError` is raised if the file has changed since its `_file_stamp` was `stamp`: a fit reads
    it several times, and all of its sums must be over the same rows.
    """
    if _file_stamp(path) != stamp:
        raise ValueError(f"{path} has changed since it was first opened")
    # Threads that parse headers at the same time may fail (CPython's issue 106905).
    with OPENING:
        return np.load(path, mmap_mode="r", allow_pickle=False)


def _file_stamp(path):
    """Return the size and time of a file; they differ if the file was written again."""
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def _is_path(chunk):
    return isinstance(chunk, str | bytes | os.PathLike)


def _chunk_parts(chunk):
    """Return the `Parts` of an item of a sequence: a table, a ``.npy`` file or an array."""
    if _is_path(chunk):
        if (parts := path_parts(chunk)) is not None:
            return parts
        name = os.path.abspath(os.fsdecode(chunk))
        opening = partial(_mapped_file, name, _file_stamp(name))
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
        description = f"{getattr(array, 'dtype', array)} of shape {np.shape(array)}"
        raise ValueError(f"{name} must be a 2-D array of real numbers, got {description}")
    return Parts(sources=(Source(name, array.shape, array.dtype, opening, not folders, folders),))


def _as_array(chunk):
    """Return a chunk, a frame or array in memory, as an array; a list becomes an array of floats.

    The caller checks the number of dimensions and the type.
    """
    if is_frame(chunk):
        columns = []
        for column in frame_columns(chunk)[0]:
            if column.dtype.kind not in NUMBERS:
                # Dates that are joined with numbers become numbers; as objects, they are refused.
                column = objects(column)
            columns.append(column)
        return np.column_stack(columns)
    if issparse(chunk):
        raise ValueError("chunks must be dense")
    if hasattr(chunk, "dtype") and hasattr(chunk, "shape"):
        check_not_masked(chunk, "a chunk")
        return chunk
    # Without a dtype, NumPy would choose one from the values in the list.
    return np.array(chunk, dtype=np.float64)


def _itself(array):
    return array


def _all_parts(chunks):
    """Return the `Parts` of a sequence of chunks and tables."""
    chunks = list(chunks)
    all_parts = [_chunk_parts(chunk) for chunk in chunks]
    metas = [parts.meta for parts in all_parts]
    names = []
    for chunk, meta in zip(chunks, metas, strict=True):
        table = meta
        if meta is None:
            table = chunk
        if is_frame(table) and all(isinstance(name, str) for name in names_of(table)):
            names.append(names_of(table))
    for others in names[1:]:
        for name, other in zip_longest(names[0], others):
            if name != other:
                raise ValueError(
                    "chunks must have the same columns in the same order, got "
                    f"{other!r} instead of {name!r}"
                )
    # The table has column names and types if all items declare the same.
    typed = [meta is not None and _sources.typed_columns(meta) for meta in metas]
    meta = None
    if any(typed) and typed.count(typed[0]) == len(typed):
        meta = metas[0]
    sources = chain.from_iterable(parts.sources for parts in all_parts)
    order_problem = "".join(parts.order_problem for parts in all_parts)
    return Parts(sources=tuple(sources), meta=meta, order_problem=order_problem)


def _take_columns(block, columns, dtype):
    return np.take(block, columns, axis=1).astype(dtype, copy=False)


def _apply(function, rows, array):
    return function(np.asarray(array[rows]))


def _join_columns(rows, *arrays):
    return np.hstack([array[rows] for array in arrays])


def _take_rows(indices, rows, array):
    """Return a slice `rows` of the rows of an array that increasing indices select."""
    indices = indices[rows]
    if isinstance(array, np.ndarray):
        return array[indices]
    pieces = [array[0:0]]
    step = _sources.slice_rows(array.shape[1])
    # No rows after the last index are read, because they would have to be decoded again later.
    for group in np.split(indices, np.flatnonzero(np.diff(indices // step)) + 1):
        if len(group):
            pieces.append(array[group[0] : group[-1] + 1][group - group[0]])
    if len(pieces) == 2:
        return pieces[1]
    return np.concatenate(pieces)


def meta_of(X):
    """Return a frame without rows that has a table's column names and types, or the table."""
    meta = None
    if isinstance(X, ChunkedArray):
        meta = X._parts.meta
    if meta is None:
        return X
    return meta


def _check_is_table(X):
    """Raise `ValueError`, with the remedy, for tables that NumPy would read as something else.

    It would read a dict of columns as one cell and each record as one, for example.
    """
    kind = type(X)
    description = ""
    if isinstance(X, str):
        description = f"the string {X[:200]!r}"
        remedy = "pass the path of Parquet files as pathlib.Path(...)"
    elif isinstance(X, Mapping) and not issparse(X):
        description = f"a {kind.__name__}"
        remedy = "pass a data frame of its columns, such as pd.DataFrame(X)"
    elif isinstance(X, np.ndarray):
        if X.dtype.names is not None:
            description = "an array of records"
            remedy = "pass a data frame of its fields, such as pd.DataFrame(X)"
    elif isinstance(X, list | tuple):
        if X and isinstance(X[0], Mapping):
            description = f"a {kind.__name__} of dicts"
            remedy = "pass a data frame of them, such as pd.DataFrame(X)"
    elif hasattr(kind, "read_next_batch"):
        description = f"a {kind.__name__}, which can be read only once"
        remedy = "pass the table that X.read_all() returns"
    elif isinstance(X, Set | Iterator):
        description = f"a {kind.__name__}"
        remedy = "pass a list of rows, or a data frame"
    elif type(getattr(X, "dtype", None)).__name__ == "Struct":
        description = "a column of structs"
        remedy = "pass the data frame that X.struct.unnest() returns"
    if description:
        raise ValueError(f"Expected 2D array, got {description} instead: {remedy}")


def as_chunked(X):
    """Return a partitioned table as a `ChunkedArray`, or None for any other table.

    Partitioned tables are a `ChunkedArray`, a dask array or DataFrame, a pyarrow dataset, a polars
    LazyFrame, a checkpointed Spark DataFrame, or the path (of type `pathlib.Path`) of Parquet
    files. The libraries are not imported for other tables. Sums over rows are computed by the
    workers of dask or Spark. Rows that are read in this process are read one partition at a time.

    Parameters
    ----------
    X : object

    Raises
    ------
    ValueError
        If X is a string, or the path of neither a Parquet file nor a folder of such files; if X is
        a dask array that has an unknown shape, is not numeric or is not 2-D; if a column's type is
        not one of numbers, Booleans, strings, categories, durations or dates; or as in
        `ChunkedArray`.
    """
    if isinstance(X, ChunkedArray):
        return X
    _check_is_table(X)
    if isinstance(X, np.ndarray):
        return None
    if isinstance(X, os.PathLike):
        parts = path_parts(X)
    else:
        parts = parts_of(X)
    if parts is None and isinstance(X, os.PathLike):
        raise ValueError(f"{os.fspath(X)} is neither a Parquet file nor a folder of such files")
    if parts:
        return ChunkedArray._of(parts)
    return None
