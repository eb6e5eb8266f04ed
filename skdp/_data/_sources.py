"""Partitioned tables of other libraries, whose columns are read by their declared types.

Tables are Parquet files and Arrow datasets of them, polars LazyFrames, dask arrays and frames, and
frames of Spark (`skdp._data._spark`). A library is imported only if one of its tables, or a path,
is passed.
"""

import os
import re
import shutil
import tempfile
import weakref
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from skdp._data import _frames
from skdp._data._dask import RUN, DaskTable, DaskWorkers
from skdp.utils._values import FrozenValue

# Size of the rows that are decoded at a time, in bytes.
SLICE_BYTES = 1 << 21
# Number of such slices in a row group of the file to which a LazyFrame is written.
SLICES_PER_ROW_GROUP = 32
# Size of a file reader's buffer, in bytes.
READ_BYTES = 1 << 16


@dataclass(frozen=True, eq=False)
class Source(FrozenValue):
    """A partition of a table, which is opened when its rows are needed.

    Parameters
    ----------
    name : str
        Name for messages.
    shape : tuple of (int, int)
    dtype : numpy.dtype
    open : callable
        Function without arguments that returns an array, or an object that can be sliced like one.
        It can be pickled.
    in_memory : bool, default=False
        True if `open` refers to rows in memory, so it must not be sent to other processes.
    folders : frozenset of str
        Folders of its files.
    temporary : TemporaryTable, default=None
        Temporary file of the rows, which is removed with the last reference to it.
    """

    name: str
    shape: tuple
    dtype: object
    open: object
    in_memory: bool = False
    folders: frozenset = frozenset()
    temporary: object = None

    @classmethod
    def view(cls, sources, read, shape, dtype):
        """Return the source of a function of a slice of rows and the opened sources of these rows.

        The function must be defined in a module.
        """
        return cls(
            name="a view",
            shape=shape,
            dtype=dtype,
            open=partial(View, sources, read, shape, dtype),
            in_memory=any(source.in_memory for source in sources),
            folders=frozenset().union(*(source.folders for source in sources)),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts(FrozenValue):
    """The partitions of a table, with its public facts.

    Parameters
    ----------
    sources : tuple of Source
        One per partition.
    meta : DataFrame, default=None
        Frame without rows that has the columns' names and types.
    order_problem : str, default=""
        Reason why the order of rows may depend on values; empty if there is none.
    table : DaskTable, default=None
        The table, if dask computes with it.
    workers : callable, default=None
        Function of `ChunkedArray.offsets` that returns the workers holding the partitions.
    """

    sources: tuple
    meta: object = None
    order_problem: str = ""
    table: object = None
    workers: object = None


def parts_of(X):
    """Return the `Parts` of another library's table, or None for other objects."""
    kind = type(X)
    library = kind.__module__.partition(".")[0]
    if hasattr(kind, "get_fragments"):
        return _dataset_parts(X)
    if library == "pyspark":
        from skdp._data._spark import spark_parts

        if hasattr(kind, "mapInArrow"):
            return spark_parts(X)
        return None
    if library == "polars" and hasattr(kind, "collect"):
        return _polars_parts(X)
    if library != "dask":
        return None
    if hasattr(kind, "blocks"):
        return _array_parts(X)
    if _frames.is_frame(X):
        return _frame_parts(X)
    return None


def path_parts(paths):
    """Return the `Parts` of Parquet files or of a folder of them, or None for other paths.

    Parameters
    ----------
    paths : path, or sequence of paths
    """
    is_one_path = isinstance(paths, str | bytes | os.PathLike)
    if is_one_path:
        paths = [paths]
    paths = [os.path.abspath(os.fsdecode(path)) for path in paths]
    are_files = paths and all(path.endswith((".parquet", ".pq")) for path in paths)
    if not are_files and not (is_one_path and os.path.isdir(paths[0])):
        return None
    from pyarrow.dataset import dataset

    if is_one_path:
        # Files in a folder are read in the order in which dask writes them: part.2 before part.10.
        return _dataset_parts(dataset(paths[0], format="parquet"), _numeric_sort_key)
    return _dataset_parts(dataset(paths, format="parquet"))


def _numeric_sort_key(fragment):
    """Return a sort key that orders numbers in file names as numbers."""
    pieces = re.split(r"(\d+)", fragment.path)
    return [int(piece) if k % 2 else piece for k, piece in enumerate(pieces)]


class LazyArray:
    """An array whose rows are read with `_read(slice)`."""

    ndim = 2

    def __init__(self, shape, dtype):
        self.shape = shape
        self.dtype = dtype

    def __getitem__(self, rows):
        return self._read(slice(*rows.indices(self.shape[0])))

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self[:], dtype=dtype)


class View(LazyArray):
    """The values of a function of a slice of rows and the opened sources of these rows."""

    def __init__(self, sources, read, shape, dtype):
        super().__init__(shape, dtype)
        self._opened = [open_source(source) for source in sources]
        self._function = read

    def _read(self, rows):
        return self._function(rows, *self._opened)


def open_source(source):
    """Return the opened partition, or raise `ValueError` if its shape or type has changed."""
    chunk = source.open()
    if chunk.shape != source.shape or chunk.dtype != source.dtype:
        raise ValueError(f"{source.name} has changed since it was first opened")
    return chunk


def rows_within(n_bytes, n_columns, min_rows=1):
    """Return the number of rows of doubles that take at most `n_bytes`, as a power of two.

    Since all such numbers are powers of two, one divides the other.
    """
    return max(min_rows, 1 << max(n_bytes // (8 * max(n_columns, 1)), 1).bit_length() - 1)


def slice_rows(n_columns):
    """Return the number of rows that are decoded at a time."""
    return rows_within(SLICE_BYTES, n_columns)


def read_as(names, types):
    """Return the NumPy type of each column after reading, determined only by its declared type."""
    kinds = [_frames.kind_of(dtype) for dtype in types]
    unsupported = []
    for name, dtype, kind in zip(names, types, kinds, strict=True):
        # Arrow has no 128-bit integers, and polars files that contain them cannot be read.
        has_128_bits = kind == "number" and str(dtype).lower().startswith(("int128", "uint128"))
        # polars and Arrow have a type for columns without a value in any row.
        is_null = str(dtype).lower().startswith("null")
        is_read = is_null or kind in ("number", "boolean", "label", "date", "duration")
        if has_128_bits or not is_read:
            unsupported.append(f"{name!r} of {dtype}")
    # pandas and dask write an index without a name under these names.
    index = r"__index_level_\d+__|__null_dask_index__"
    for name in map(str, names):
        if re.fullmatch(index, name):
            unsupported.append(f"{name!r}, a frame's index")
    if unsupported or len(set(names)) < len(names):
        raise ValueError(
            "columns of a table that is read in parts must be declared as numbers, booleans, "
            "strings, categories, dates or durations, and have distinct names, "
            f"got {', '.join(unsupported[:5]) or list(names)}: leave such columns out, convert "
            "each of their cells to one of these, or, if the table fits into memory, load it (by "
            "the compute() of dask, or the collect() of polars)"
        )
    number_types = set()
    for dtype, kind in zip(types, kinds, strict=True):
        if kind in ("number", "boolean"):
            number_types.add(str(dtype).lower())
    # Integers become floats, as values may be missing.
    if number_types <= {"float", "float32"}:
        number_dtype = np.float32
    else:
        number_dtype = np.float64
    dtypes = []
    for dtype, kind in zip(types, kinds, strict=True):
        if kind in ("number", "boolean"):
            dtypes.append(np.dtype(number_dtype))
        else:
            # Dates with a time zone, which NumPy does not have, are objects as in frames in memory.
            dtypes.append(_frames.time_type_of(dtype) or np.dtype(object))
    return dtypes


def typed_columns(meta):
    """Return pairs of a column's name and its NumPy type after reading."""
    names = _frames.names_of(meta)
    return list(zip(names, read_as(names, list(_frames.types_of(meta))), strict=True))


def common_type(dtypes):
    """Return the type of an array of columns with these types."""
    # Dates are objects. As numbers, they would lose nanoseconds, and the fact that they are dates.
    are_numbers = all(dtype.kind in _frames.NUMBERS for dtype in dtypes)
    if are_numbers:
        return np.result_type(np.float32, *dtypes)
    return np.dtype(object)


def meta_of_columns(meta, columns):
    """Return the meta of the columns at some indices, and the type of an array of these columns."""
    names = _frames.names_of(meta)
    types = list(_frames.types_of(meta))
    selected = [names[j] for j in columns]
    dtype = common_type(read_as(selected, [types[j] for j in columns]))
    if hasattr(type(meta), "select"):
        return meta.select(selected), dtype
    return meta[selected], dtype


def matrix_of_columns(columns, n_rows, dtypes, out=None):
    """Return the columns of a batch or partition of any source as one array.

    Parameters
    ----------
    columns : list of columns of Arrow, polars or pandas, or of ndarray
    n_rows : int
    dtypes : list of numpy.dtype
        Types that `read_as` derived from the declared types. Values never determine them.
    out : ndarray of shape (n_rows, n_columns), default=None
        Array to write to; None creates one.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        Of the `common_type`. Missing numbers are NaN, labels None, and dates NaT.
    """
    matrix = out
    if out is None:
        matrix = np.empty((n_rows, len(columns)), common_type(dtypes))
    # A warning about a value that overflows in a smaller type would reveal that it exists.
    with np.errstate(all="ignore"):
        for j, (column, dtype) in enumerate(zip(columns, dtypes, strict=True)):
            if dtype.kind not in _frames.NUMBERS:
                column, _ = _frames.column_values(column)
            values = np.asarray(column, dtype)
            if dtype.kind in _frames.TIMES:
                # Dates are converted one by one, because NumPy would turn an array of nanoseconds
                # into integers.
                for i, value in enumerate(values):
                    matrix[i, j] = value
            else:
                matrix[:, j] = values
    return matrix


def folders_of(paths):
    """Return the folders of files."""
    return frozenset(os.path.dirname(os.path.abspath(path)) for path in paths)


def folder_order_problem(folders):
    """Return the reason why the order of rows may depend on values, from the files' folders."""
    # Tables are partitioned by values into folders, whether or not the folders' names show it.
    if len(set(folders) - {frozenset()}) > 1:
        return "its files lie in several folders, as those of a table that is divided by values do"
    return ""


def _dataset_parts(dataset, key=None, temporary=None):
    """Return the `Parts` of a dataset of Parquet files.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
    key : callable, default=None
        Key by which files are sorted; None keeps the dataset's order.
    temporary : TemporaryTable, default=None
        The only file, if it was written for the table.
    """
    meta = dataset.schema.empty_table()
    # pandas and dask write the index as columns, which do not belong to the table.
    index = (meta.schema.pandas_metadata or {}).get("index_columns", ())
    meta = meta.select([j for j, name in enumerate(meta.column_names) if name not in index])
    names = meta.column_names
    declared = _declared(meta.schema)
    dtypes = read_as(names, meta.schema.types)
    dtype = common_type(dtypes)
    sources = []
    order_problem = ""
    fragments = dataset.get_fragments()
    if key is not None:
        fragments = sorted(fragments, key=key)
    for fragment in fragments:
        if not hasattr(fragment, "row_groups"):
            raise ValueError(
                "a dataset must consist of Parquet files: in formats that declare no types, one "
                "value determines the type of its column; write the files as Parquet, with "
                "declared types"
            )
        if declared - _declared(fragment.physical_schema):
            raise ValueError(
                f"{fragment.path} does not have all columns of the dataset's schema with their "
                "types: write all files with the same schema, and omit columns that are encoded "
                "in folder names"
            )
        if len(fragment.row_groups) < fragment.metadata.num_row_groups:
            order_problem = "some row groups of a file are left out, maybe by their values"
        stamp = _file_stamp(fragment)
        # The folder of a temporary file says nothing about whether the table is partitioned by
        # values.
        if temporary:
            folders = frozenset()
        else:
            folders = folders_of([fragment.path])
        for group in fragment.row_groups:
            shape = group.num_rows, len(names)
            batches = partial(_batches, fragment, stamp, group.id, names)
            source = Source(
                name=fragment.path,
                shape=shape,
                dtype=dtype,
                open=partial(Decoded, fragment.path, batches, shape, dtypes, temporary),
                folders=folders,
                temporary=temporary,
            )
            sources.append(source)
    return Parts(sources=tuple(sources), meta=meta, order_problem=order_problem)


def _declared(schema):
    """Return pairs of a name and a type; a categorical column has its labels' type."""
    # The type of a dictionary's codes depends on the number of labels in a partition.
    types = (getattr(dtype, "value_type", dtype) for dtype in schema.types)
    return set(zip(schema.names, types, strict=True))


def _file_stamp(fragment):
    """Return the size and time of a file, which differ if it was written again."""
    info = fragment.filesystem.get_file_info(fragment.path)
    return info.size, info.mtime_ns


def _batches(fragment, stamp, group, names):
    """Yield the rows of a Parquet row group in batches, or nothing if the file's stamp differs."""
    from pyarrow.parquet import ParquetFile

    if _file_stamp(fragment) == stamp:
        # The reader of a dataset would decode a whole row group at once.
        file = ParquetFile(
            fragment.open(), pre_buffer=False, buffer_size=READ_BYTES, metadata=fragment.metadata
        )
        batches = file.iter_batches(
            slice_rows(len(names)), row_groups=[group], columns=names, use_threads=False
        )
        for batch in batches:
            yield batch.select(names)


class Decoded(LazyArray):
    """Rows that can only be decoded in order, starting at the first; the last batch is cached."""

    def __init__(self, name, frames, shape, dtypes, temporary=None):
        super().__init__(shape, common_type(dtypes))
        # This reference prevents the removal of a temporary file.
        self._temporary = temporary
        self._name = name
        self._open = frames
        self._dtypes = dtypes
        self._frame = self._frames = None

    def _read(self, rows):
        """Return the rows of a slice as an array, which may be a view of the cached batch.

        Rows before the cached batch are decoded again from the start of the source.
        """
        start = rows.start
        n_rows = len(range(rows.start, rows.stop))
        if n_rows and (self._frames is None or start < self._first):
            self._first, self._frame, self._frames = 0, (), self._open()
        if isinstance(self._frame, np.ndarray) and rows.stop <= self._first + len(self._frame):
            return self._frame[start - self._first :][:n_rows]
        out = np.empty((n_rows, self.shape[1]), self.dtype)
        while start < rows.stop:
            last = self._first + len(self._frame)
            if start < last:
                first = start - self._first
                target = out[start - rows.start : last - rows.start]
                batch = self._frame
                n = len(self._frame)
                if not isinstance(batch, np.ndarray):
                    # A batch that is completely read is converted in place.
                    in_place = None
                    if len(target) == n:
                        in_place = target
                    columns = _frames.columns_of(batch)
                    batch = matrix_of_columns(columns, n, self._dtypes, in_place)
                    if in_place is None or n == n_rows:
                        # The batch is cached unless it is a slice of `out`, which also holds rows
                        # of other batches.
                        self._frame = batch
                if batch is not target:
                    target[:] = batch[first : first + len(target)]
                start += len(target)
            else:
                self._first, self._frame = last, next(self._frames, None)
                if self._frame is None:
                    self._frames = None
                    raise ValueError(
                        f"{self._name} has changed, or was removed, since it was first opened"
                    )
                if last + len(self._frame) == self.shape[0]:
                    # Release the decoder, which takes more memory than the rows.
                    self._frames = iter(())
        return out


class TemporaryTable:
    """A Parquet file of raw rows in a new directory that only its owner can read.

    It is removed by `remove`, with the last reference to this object, or when the process ends. A
    pickle contains only the path, so that no other process removes the file.

    Attributes
    ----------
    path : str
    remove : callable
        Function that removes the file and its directory; it may be called again.
    """

    def __init__(self):
        # mkdtemp creates a directory with mode 0700.
        directory = tempfile.mkdtemp(prefix="skdp-rows-")
        self.path = os.path.join(directory, "rows.parquet")
        self.remove = weakref.finalize(self, _remove_directory, directory, os.getpid())
        # polars writes into an existing file; a file that it creates could be read by others.
        os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    def __reduce__(self):
        return str, (self.path,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def _remove_directory(directory, process):
    """Remove a temporary directory if this is the process that created it."""
    # A forked process has a copy of the reference, but must not remove its parent's file.
    if os.getpid() == process:
        shutil.rmtree(directory, ignore_errors=True)


def _polars_parts(frame):
    """Return the `Parts` of a LazyFrame, whose rows polars writes to a file once.

    A plan that shuffles, samples or sorts may yield different rows, or a different order, each time
    it is computed. The table therefore consists of the rows in the file.
    """
    from pyarrow.dataset import dataset

    schema = frame.collect_schema()
    # Unsupported types are refused before anything is written.
    dtypes = read_as(schema.names(), schema.dtypes())
    width = len(dtypes)
    temporary = TemporaryTable()
    try:
        n_rows = SLICES_PER_ROW_GROUP * slice_rows(width)
        frame.sink_parquet(temporary.path, row_group_size=n_rows, maintain_order=True)
        parts = _dataset_parts(dataset(temporary.path, format="parquet"), temporary=temporary)
    except BaseException:
        temporary.remove()
        raise
    if (run := RUN.get()) is not None:
        run.remove_at_exit(temporary)
    if not parts.sources:
        # A file without rows has no row group.
        shape = (0, width)
        dtype = common_type(dtypes)
        empty = Source("a LazyFrame", shape, dtype, partial(np.empty, shape, dtype))
        parts = replace(parts, sources=(empty,))
    return parts


def _array_parts(X):
    """Return the `Parts` of a dask array that a user passed, or raise `ValueError`."""
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(f"X must be a 2-D array of real numbers, got {X.dtype} of {X.ndim}-D")
    if any(np.isnan(length) for axis in X.chunks for length in axis):
        raise ValueError("X must have known chunk sizes: call its compute_chunk_sizes() first")
    return dask_parts(X)


def dask_parts(array, meta=None):
    """Return the `Parts` of a dask array of numbers or objects whose chunk sizes are known."""
    return table_parts(DaskTable(_frames.checked_blocks(array)), meta)


def table_parts(table, meta):
    """Return the `Parts` of a `DaskTable`: one source per chunk, and the workers for sums."""
    array = table.array
    sources = []
    for number, n_rows in enumerate(array.chunks[0]):
        source = Source(
            name="a block",
            shape=(n_rows, array.shape[1]),
            dtype=array.dtype,
            open=partial(_compute_block, table, number),
            in_memory=True,
        )
        sources.append(source)
    workers = partial(DaskWorkers, table)
    return Parts(sources=tuple(sources), meta=meta, table=table, workers=workers)


def _compute_block(table, number):
    """Return a chunk of a dask array."""

    def make_delayed(run, array, client):
        return [array.blocks[number]]

    return table.compute(make_delayed)[0]


def _frame_parts(frame):
    """Return the `Parts` of a dask frame, which is converted to a dask array first."""
    types = list(frame.dtypes)
    dtypes = read_as(list(frame.columns), types)
    # `read_as` chooses the types, because NumPy would choose types that cannot hold missing values.
    read = partial(_partition, _frames.declared(frame), dtypes)
    array = frame.map_partitions(read, meta=np.empty((0, len(types)), common_type(dtypes)))
    return dask_parts(array.compute_chunk_sizes(), frame._meta)


def _partition(declared, dtypes, partition):
    """Return a partition of a dask frame as an array, after a check of its types."""
    columns, _ = _frames.frame_columns(_frames.checked_partition(partition, declared))
    return matrix_of_columns(columns, len(partition), dtypes)
