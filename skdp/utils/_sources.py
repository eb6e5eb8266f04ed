"""Tables of other libraries as parts that are read one at a time, each column as its type says.

Parquet files and Arrow datasets of them, polars LazyFrames, dask arrays and frames, and frames of
Spark, of which `skdp.utils._spark` makes parts. None of the libraries is imported before one of its
tables, or a path, is here.
"""

import os
import re
import shutil
import tempfile
import weakref
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from skdp.utils import _frames
from skdp.utils._dask import RUN, DaskTable, DaskWorkers
from skdp.utils._values import FrozenValue

# So much is decoded at a time; a row group of the file to which a LazyFrame is written has so many
# times as many rows.
SLICE_BYTES = 1 << 21
SLICES_OF_POLARS = 32
READ_BYTES = 1 << 16


@dataclass(frozen=True, eq=False)
class Source(FrozenValue):
    """A part of a table that is opened when its rows are needed.

    Parameters
    ----------
    name : str
        For errors.
    shape : tuple of (int, int)
    dtype : numpy.dtype
    open : callable
        Returns an array, or what is sliced like one. A function of a module, with what it needs.
    in_memory : bool, default=False
        Whether that holds rows, so that it is not to be sent.
    folders : frozenset of str
        Where its files lie.
    temporary : TemporaryTable, default=None
        The file that was written for it, which is removed when nothing refers to it any more.
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
        """Return what a function makes of a slice of rows, and of other sources of these rows.

        It is a function of a module too.
        """
        held = any(source.in_memory for source in sources)
        where = frozenset().union(*(source.folders for source in sources))
        return cls("a view", shape, dtype, partial(View, sources, read, shape, dtype), held, where)


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts(FrozenValue):
    """What a table is read from.

    Parameters
    ----------
    sources : tuple of Source
    form : DataFrame, default=None
        Without rows: the columns' names and types.
    order_problem : str, default=""
        Why the place of a row could depend on values; empty where it does not.
    table : DaskTable, default=None
        The same, where dask is to compute with it.
    workers : callable, default=None
        Of the borders of parts: what calls functions where these are.
    """

    sources: tuple
    form: object = None
    order_problem: str = ""
    table: object = None
    workers: object = None


def parts_of(X):
    """Return the `Parts` of a table of another library, None of anything else."""
    kind = type(X)
    library = kind.__module__.partition(".")[0]
    if hasattr(kind, "get_fragments"):
        return _dataset_parts(X)
    if library == "pyspark":
        from skdp.utils._spark import spark_parts

        return spark_parts(X) if hasattr(kind, "mapInArrow") else None
    if library == "polars" and hasattr(kind, "collect"):
        return _polars_parts(X)
    if library != "dask":
        return None
    return _array_parts(X) if hasattr(kind, "blocks") else _frames.is_frame(X) and _frame_parts(X)


def path_parts(paths):
    """Return the `Parts` of Parquet files, or of a folder of them; None of other paths.

    Parameters
    ----------
    paths : path, or sequence of paths
    """
    one = isinstance(paths, str | bytes | os.PathLike)
    paths = [os.path.abspath(os.fsdecode(path)) for path in ([paths] if one else paths)]
    are_files = paths and all(path.endswith((".parquet", ".pq")) for path in paths)
    if not are_files and not (one and os.path.isdir(paths[0])):
        return None
    from pyarrow.dataset import dataset

    # Files of a folder are read as dask reads what it writes: part.2 before part.10.
    return _dataset_parts(dataset(paths[0] if one else paths, format="parquet"), one and _numbered)


def _numbered(fragment):
    pieces = re.split(r"(\d+)", fragment.path)
    return [int(each) if k % 2 else each for k, each in enumerate(pieces)]


class Lazy:
    """An array of which `_read` gives a slice of rows."""

    ndim = 2

    def __init__(self, shape, dtype):
        self.shape = shape
        self.dtype = dtype

    def __getitem__(self, rows):
        return self._read(slice(*rows.indices(self.shape[0])))

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self[:], dtype=dtype)


class View(Lazy):
    """What a function makes of a slice of rows, and of opened sources of these rows."""

    def __init__(self, sources, read, shape, dtype):
        super().__init__(shape, dtype)
        self._opened = [opened(source) for source in sources]
        self._made = read

    def _read(self, rows):
        return self._made(rows, *self._opened)


def opened(source):
    """Return what a source opens, if it is still what it was."""
    chunk = source.open()
    if chunk.shape != source.shape or chunk.dtype != source.dtype:
        raise ValueError(f"{source.name} has changed since it was first opened")
    return chunk


def rows_within(n_bytes, n_columns, fewest=1):
    """Return how many rows of doubles to read at a time: a power of two, by the memory they take.

    So what is read in other such numbers is whole slices, or a part of one.
    """
    return max(fewest, 1 << max(n_bytes // (8 * max(n_columns, 1)), 1).bit_length() - 1)


def slice_rows(n_columns):
    """Return how many rows are decoded at a time."""
    return rows_within(SLICE_BYTES, n_columns)


def read_as(names, types):
    """Return as what each column of a table is read, by its type alone: numbers, or objects."""
    kinds = [_frames.kind_of(each) for each in types]
    named = zip(names, types, kinds, strict=True)
    others = [f"{n!r} of {t}" for n, t, kind in named if kind not in ("number", "boolean", "label")]
    # So pandas and dask write an index that has no name.
    index = r"__index_level_\d+__|__null_dask_index__"
    others += [f"{n!r}, a frame's index" for n in map(str, names) if re.fullmatch(index, n)]
    if others or len(set(names)) < len(names):
        raise ValueError(
            "a table that is read in parts holds numbers, truth values, strings and categories, "
            "whose types are declared, under names of their own, got "
            f"{', '.join(others[:5]) or list(names)}: leave such columns out, make numbers or "
            "strings of each of their cells by itself, or, if the table fits into memory, load it "
            "(by the compute() of dask, or the collect() of polars)"
        )
    numbers = {str(t).lower() for t, kind in zip(types, kinds, strict=True) if kind != "label"}
    # A value may be missing, which integers cannot say.
    number = np.float32 if numbers <= {"float", "float32"} else np.float64
    return [np.dtype(object if kind == "label" else number) for kind in kinds]


def typed_columns(form):
    """Return the names of a table's columns, each with the type as which it is read."""
    names = _frames.names_of(form)
    return list(zip(names, read_as(names, list(_frames.types_of(form))), strict=True))


def common_type(dtypes):
    """Return the type of an array of columns that are read as these."""
    return np.result_type(np.float32, *dtypes)


def form_of_columns(form, columns):
    """Return the form of some columns, by number, and the type of an array of these."""
    names = _frames.names_of(form)
    types = list(_frames.types_of(form))
    chosen = [names[j] for j in columns]
    dtype = common_type(read_as(chosen, [types[j] for j in columns]))
    return form.select(chosen) if hasattr(type(form), "select") else form[chosen], dtype


def _matrix(columns, n_rows, dtypes, out=None):
    """Return columns as an array; a number that is missing is NaN, a label None."""
    matrix = np.empty((n_rows, len(columns)), common_type(dtypes)) if out is None else out
    with np.errstate(all="ignore"):
        for j, (column, dtype) in enumerate(zip(columns, dtypes, strict=True)):
            values = _frames.column_values(column)[0] if dtype.kind == "O" else column
            matrix[:, j] = np.asarray(values, dtype)
    return matrix


def folders_of(paths):
    """Return where files lie."""
    return frozenset(os.path.dirname(os.path.abspath(path)) for path in paths)


def folder_order_problem(folders):
    """Return why the place of a row could depend on values, by where the parts of a table lie."""
    # Folders are how tables are divided by values, whether their names say so or not.
    several = "its files lie in several folders, as those of a table that is divided by values do"
    return several if len(set(folders) - {frozenset()}) > 1 else ""


def _dataset_parts(dataset, key=None, temporary=None):
    """Return the `Parts` of a dataset of Parquet files.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
    key : callable, default=None
        By which its files are sorted; None leaves them in the dataset's order.
    temporary : TemporaryTable, default=None
        The only file, where it was written for the table.
    """
    form = dataset.schema.empty_table()
    # pandas and dask write the index as columns, and read none of these as one.
    index = (form.schema.pandas_metadata or {}).get("index_columns", ())
    form = form.select([j for j, name in enumerate(form.column_names) if name not in index])
    names = form.column_names
    declared = _declared(form.schema)
    dtypes = read_as(names, form.schema.types)
    dtype = common_type(dtypes)
    sources = []
    order_problem = ""
    fragments = dataset.get_fragments()
    for fragment in sorted(fragments, key=key) if key else fragments:
        if not hasattr(fragment, "row_groups"):
            raise ValueError(
                "a dataset must be one of Parquet files: where files of another format do not say "
                "of what types their columns are, one value decides; write them as Parquet, with "
                "types that are declared"
            )
        if declared - _declared(fragment.physical_schema):
            raise ValueError(
                f"{fragment.path} has not every column of the dataset's schema in its type: write "
                "all files alike, and leave out of the schema what stands in names of folders"
            )
        if len(fragment.row_groups) < fragment.metadata.num_row_groups:
            order_problem = "of a file not all row groups are read: their values may say which"
        written = _written(fragment)
        # The directory of a temporary file does not mean that values divide the table.
        folders = frozenset() if temporary else folders_of([fragment.path])
        for group in fragment.row_groups:
            shape = group.num_rows, len(names)
            batches = partial(_batches, fragment, written, group.id, names)
            opening = partial(Decoded, fragment.path, batches, shape, dtypes, temporary)
            owned = {"folders": folders, "temporary": temporary}
            sources.append(Source(fragment.path, shape, dtype, opening, **owned))
    return Parts(sources=tuple(sources), form=form, order_problem=order_problem)


def _declared(schema):
    # How long the codes of labels are depends on how many a part lists.
    types = (getattr(each, "value_type", each) for each in schema.types)
    return set(zip(schema.names, types, strict=True))


def _written(fragment):
    """Return what tells that a file was written again."""
    found = fragment.filesystem.get_file_info(fragment.path)
    return found.size, found.mtime_ns


def _batches(fragment, written, group, names):
    """Yield the rows of a row group of a Parquet file, some at a time."""
    from pyarrow.parquet import ParquetFile

    if _written(fragment) == written:
        options = {"pre_buffer": False, "buffer_size": READ_BYTES, "metadata": fragment.metadata}
        # A dataset's own reader decodes all of a row group.
        file = ParquetFile(fragment.open(), **options)
        kept = {"row_groups": [group], "columns": names, "use_threads": False}
        for batch in file.iter_batches(slice_rows(len(names)), **kept):
            yield batch.select(names)


class Decoded(Lazy):
    """Rows that can be decoded from the first on only; the last of them are kept."""

    def __init__(self, name, frames, shape, dtypes, temporary=None):
        super().__init__(shape, common_type(dtypes))
        # A temporary file is there as long as something refers to it.
        self._temporary = temporary
        self._name = name
        self._open = frames
        self._dtypes = dtypes
        self._frame = self._frames = None

    def _read(self, rows):
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
                into = out[start - rows.start : last - rows.start]
                found = self._frame
                n = len(self._frame)
                if not isinstance(found, np.ndarray):
                    # What is asked for as a whole is put where it is asked for.
                    whole = into if len(into) == n else None
                    found = _matrix(_frames.columns_of(found), n, self._dtypes, whole)
                    if whole is None or n == n_rows:
                        # Of several frames it would keep all.
                        self._frame = found
                if found is not into:
                    into[:] = found[first : first + len(into)]
                start += len(into)
            else:
                self._first, self._frame = last, next(self._frames, None)
                if self._frame is None:
                    self._frames = None
                    raise ValueError(
                        f"{self._name} has changed, or was removed, since it was first opened"
                    )
                if last + len(self._frame) == self.shape[0]:
                    # What decodes takes more memory than what is decoded.
                    self._frames = iter(())
        return out


class TemporaryTable:
    """A Parquet file of raw rows that only its owner can read, in a directory of its own.

    It is removed by `remove`, with the last reference to this object, or when the process ends. A
    copy in another process, which a pickle makes, is the path alone and removes nothing.

    Attributes
    ----------
    path : str
    remove : callable
        Removes file and directory; may be called again.
    """

    def __init__(self):
        # mkdtemp makes a directory of mode 0700.
        directory = tempfile.mkdtemp(prefix="skdp-rows-")
        self.path = os.path.join(directory, "rows.parquet")
        self.remove = weakref.finalize(self, _remove_directory, directory, os.getpid())
        # polars writes into the file that is there, and would create one that others can read.
        os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    def __reduce__(self):
        return str, (self.path,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def _remove_directory(directory, process):
    # A forked process has a copy of the reference, and must not take the rows from its parent.
    if os.getpid() == process:
        shutil.rmtree(directory, ignore_errors=True)


def _polars_parts(frame):
    """Return the `Parts` of a LazyFrame, whose rows polars writes to a file once.

    A plan that shuffles, samples or sorts may yield other rows, or another order, each time it is
    computed. The rows of the file are the table.
    """
    from pyarrow.dataset import dataset

    schema = frame.collect_schema()
    # Columns of types that are not read are refused before anything is written.
    dtypes = read_as(schema.names(), schema.dtypes())
    width = len(dtypes)
    temporary = TemporaryTable()
    try:
        n_rows = SLICES_OF_POLARS * slice_rows(width)
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
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(f"X must be a 2-D array of real numbers, got {X.dtype} of {X.ndim}-D")
    if any(np.isnan(length) for axis in X.chunks for length in axis):
        raise ValueError("X must have known chunk sizes: call its compute_chunk_sizes() first")
    return dask_parts(X)


def dask_parts(array, form=None):
    """Return the `Parts` of a dask array of known chunks, of numbers or of objects."""
    return table_parts(DaskTable(_frames.checked_blocks(array)), form)


def table_parts(table, form):
    """Return the `Parts` of a `DaskTable`."""
    array = table.array
    sources = (
        Source("a block", (height, array.shape[1]), array.dtype, partial(_computed, table, i), True)
        for i, height in enumerate(array.chunks[0])
    )
    made = {"table": table, "workers": partial(DaskWorkers, table)}
    return Parts(sources=tuple(sources), form=form, **made)


def _computed(table, number):

    def make_delayed(run, array, client):
        return [array.blocks[number]]

    return table.compute(make_delayed)[0]


def _frame_parts(frame):
    types = list(frame.dtypes)
    dtypes = read_as(list(frame.columns), types)
    # What is missing has no place in the types that numpy would choose.
    read = partial(_partition, _frames.declared(frame), dtypes)
    array = frame.map_partitions(read, meta=np.empty((0, len(types)), common_type(dtypes)))
    return dask_parts(array.compute_chunk_sizes(), frame._meta)


def _partition(declared, dtypes, part):
    columns, _ = _frames.frame_columns(_frames.checked_part(part, declared))
    return _matrix(columns, len(part), dtypes)
