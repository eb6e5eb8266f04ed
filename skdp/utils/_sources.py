"""Tables of other libraries as parts that are read one at a time, each column as its type says.

Arrow datasets and Parquet files, polars LazyFrames, dask arrays and frames. None of the libraries
is imported before one of its tables is here.
"""

import os
import re
from dataclasses import dataclass
from functools import partial

import numpy as np

from skdp.utils._frames import checked_part, columns_of, frame_columns, is_frame, kind_of

# So much is decoded at a time.
SLICE_BYTES = 1 << 24
READ_BYTES = 1 << 16
GUESSED = (
    "{} does not say of what types its columns are, and one value would decide for all: convert it "
    "to Parquet with types that are declared"
)
# Words of a polars plan, outside of names and of paths, that leave every row in its place.
SCANNED, SUFFIXES = r"SCAN \[([^]\n]*)\]", (".parquet", ".pq", ".arrow", ".ipc", ".feather")
IN_PLACE = set(
    "DF Parquet Ipc SCAN PROJECT COLUMNS ESTIMATED ROWS FROM SELECT SIMPLE WITH_COLUMNS SLICE "
    "offset len UNION HCONCAT PLAN END maintain_order true col alias cast strict_cast dyn int "
    "float lit negate not when then otherwise is_null is_not_null is_nan is_not_nan is_in "
    "is_between fill_null abs sign log log1p exp sqrt pow clip round floor ceil Float32 Float64 "
    "Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64 Boolean".split()
)
# Steps of a dask frame that do, and those whose rows are at least the same ones each time.
DASK_IN_PLACE = set(
    "FromPandas FromGraph FromDelayed FromMap DelayedsExpr FromArray ArrowStringConversion "
    "Projection Drop Assign AsType RenameFrame ColumnsSetter Concat Partitions Repartition RepartitionToFewer "
    "ResetIndex Fillna Clip Where Mask UFuncElemwise Elemwise Abs Neg Invert Add Sub Mul Div Pow "
    "Mod GT GE LT LE EQ NE And Or IsNa NotNull Isin Round".split()
)
DASK_STEADY = {"Filter", "Query", "DropnaFrame", "LocSlice", "MapPartitions", "ReadParquet"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """What a table is read from.

    Parameters
    ----------
    sources : tuple of objects with `shape`, `dtype` and ``open()``
        The last returns an array, or what is sliced like one.
    form : DataFrame, default=None
        Without rows: the columns' names and types.
    moved : str, default=""
        Why the place of a row could depend on values; empty where it does not.
    lazy : dask array, default=None
        The same table, where dask is to compute with it.
    """

    sources: tuple
    form: object = None
    moved: str = ""
    lazy: object = None


def parts_of(X):
    """Return the `Parts` of a table of another library, None of anything else."""
    kind = type(X)
    library = kind.__module__.partition(".")[0]
    if hasattr(kind, "get_fragments"):
        return _arrow_parts(X)
    if library == "polars" and hasattr(kind, "collect"):
        return _polars_parts(X)
    if library == "dask" and hasattr(kind, "blocks"):
        return dask_parts(X)
    return _dask_frame_parts(X) if library == "dask" and is_frame(X) else None


class Lazy:
    """An array that a function of slices of its rows gives."""

    ndim = 2

    def __init__(self, read, shape, dtype):
        self._read, self.shape, self.dtype = read, shape, dtype

    def __getitem__(self, rows):
        return self._read(slice(*rows.indices(self.shape[0])))

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self[:], dtype=dtype)


class View:
    """What a function makes of slices of the rows of other sources.

    Parameters
    ----------
    sources : tuple of sources
    read : callable
        Of a slice of rows and of the open sources. A function of a module.
    shape, dtype
        Of what it makes.
    """

    def __init__(self, sources, read, shape, dtype):
        self._sources, self._read, self.shape, self.dtype = sources, read, shape, dtype

    def open(self):
        opened = [source.open() for source in self._sources]
        return Lazy(partial(_read_view, self._read, opened), self.shape, self.dtype)


def _read_view(read, opened, rows):
    return read(rows, *opened)


def taken(numbers, rows, array):
    """Return a slice of some rows of an array, by their sorted numbers."""
    numbers = numbers[rows]
    if isinstance(array, np.ndarray) or not len(numbers):
        return array[numbers] if len(numbers) else array[0:0]
    step, pieces = slice_rows(array.shape[1]), []
    for first in range(numbers[0], numbers[-1] + 1, step):
        low, high = np.searchsorted(numbers, (first, first + step))
        if high > low:
            pieces.append(array[first : first + step][numbers[low:high] - first])
    return np.concatenate(pieces)


def slice_rows(n_columns):
    """Return how many rows are decoded at a time."""
    return max(1, SLICE_BYTES // (8 * max(n_columns, 1)))


def _dtype_of(names, types):
    """Return the type of the numbers that a table's columns hold, by their own types alone."""
    pairs = zip(names, types, strict=True)
    others = [f"{name!r} of {each}" for name, each in pairs if not is_number(each)]
    if others or len(set(names)) < len(names):
        raise ValueError(
            f"a table that is read in parts holds numbers under names of their own, got "
            f"{', '.join(others[:5]) or names}: leave such columns out, turn each of their cells "
            "into numbers by itself, or load the table into memory"
        )
    if len(set(types)) == 1 and isinstance(types[0], np.dtype):
        return types[0]
    # Of other types than numpy's a value may be missing.
    single = {str(each).lower() for each in types} <= {"float", "float32"}
    return np.dtype(np.float32 if single else np.float64)


def is_number(dtype):
    """Return whether a column's type is one of numbers, or of truth values."""
    return kind_of(dtype) in ("number", "boolean")


def _matrix(columns, n_rows, dtype):
    """Return columns as an array; what is missing is NaN."""
    matrix = np.empty((n_rows, len(columns)), dtype)
    with np.errstate(all="ignore"):
        for j, column in enumerate(columns):
            matrix[:, j] = np.asarray(column)
    return matrix


def path_parts(path):
    """Return the `Parts` of a Parquet file, or of the Parquet files of a folder; None of others."""
    if not (os.path.isdir(path) or path.endswith((".parquet", ".pq"))):
        return None
    from pyarrow.dataset import dataset

    return _arrow_parts(dataset(os.path.abspath(path), format="parquet"))


def _arrow_parts(dataset):
    schema = dataset.schema
    dtype = _dtype_of(schema.names, schema.types)
    declared = set(zip(schema.names, schema.types, strict=True))
    sources, paths = [], []
    for fragment in dataset.get_fragments():
        path = getattr(fragment, "path", "")
        kind = getattr(getattr(fragment, "format", None), "default_extname", "arrow")
        if kind not in ("parquet", "arrow", "feather"):
            raise ValueError(GUESSED.format(path))
        held = fragment.physical_schema
        if declared - set(zip(held.names, held.types, strict=True)):
            raise ValueError(
                f"{path} holds not every column of the dataset's schema in its type: write all "
                "files alike, and leave out of the schema what stands in the names of folders"
            )
        paths += [path] if path else []
        groups = [(None, fragment.count_rows())]
        if kind == "parquet":
            groups = [(group.id, group.num_rows) for group in fragment.row_groups]
        for group, n_rows in groups:
            shape = n_rows, len(schema.names)
            sources.append(_ArrowRows(fragment, group, schema.names, shape, dtype))
    return Parts(sources=tuple(sources), form=schema.empty_table(), moved=_moved_by(paths))


def _moved_by(paths):
    """Return why the place of a row in files could depend on values."""
    # Folders are how tables are divided by values, whether their names say so or not.
    if len(set(map(os.path.dirname, paths))) > 1:
        return "its files lie in several folders, as those of a table that is divided by values do"
    is_file = [path.endswith(SUFFIXES) and "*" not in path for path in paths]
    return "" if all(is_file) else "its files are not told by their names"


class _ArrowRows:
    """The rows of a row group of a Parquet file, or of another fragment of an Arrow dataset."""

    def __init__(self, fragment, group, names, shape, dtype):
        self._fragment, self._group, self._names = fragment, group, names
        self.shape, self.dtype = shape, dtype

    def open(self):
        return Lazy(_Decoded(self), self.shape, self.dtype)

    def batches(self):
        """Yield arrays of the rows one behind another."""
        size = slice_rows(self.shape[1])
        if self._group is None:
            batches = self._fragment.to_batches(
                batch_size=size, use_threads=False, batch_readahead=0, fragment_readahead=0
            )
        else:
            from pyarrow.parquet import ParquetFile

            # The dataset's own reader decodes all of a row group.
            file = ParquetFile(self._fragment.open(), pre_buffer=False, buffer_size=READ_BYTES)
            if file.metadata.row_group(self._group).num_rows != self.shape[0]:
                raise ValueError(f"{self} has changed since it was first opened")
            groups = {"row_groups": [self._group], "columns": self._names}
            batches = file.iter_batches(size, use_threads=False, **groups)
        for batch in batches:
            columns = [batch.column(name) for name in self._names]
            yield _matrix(columns, batch.num_rows, self.dtype)

    def __str__(self):
        return getattr(self._fragment, "path", "a fragment")


class _Decoded:
    """Rows that can be decoded from the first on only; those of the last batch are kept."""

    def __init__(self, source):
        self._source, self._batches, self._first = source, None, 0
        self._batch = np.empty((0, source.shape[1]), source.dtype)

    def __call__(self, rows):
        pieces, start = [self._batch[:0]], rows.start
        while start < rows.stop:
            if self._batches is None or start < self._first:
                self._batches, self._first = self._source.batches(), 0
                self._batch = self._batch[:0]
            end = self._first + len(self._batch)
            if start < end:
                pieces.append(self._batch[start - self._first : rows.stop - self._first])
                start += len(pieces[-1])
                continue
            self._first, self._batch = end, next(self._batches, None)
            if self._batch is None:
                raise ValueError(f"{self._source} has changed since it was first opened")
        return pieces[1] if len(pieces) == 2 else np.concatenate(pieces)


def _polars_parts(frame):
    from polars import len as n_rows_of

    form = frame.head(0).collect()
    dtype = _dtype_of(form.columns, form.dtypes)
    plan = frame.explain(optimized=False)
    # A scan names its files, the rest of the plan names columns in quotes.
    words = re.sub(rf'"[^"\n]*"|DF \[[^]\n]*\]|{SCANNED}', "", plan)
    words = set(re.findall(r"[^\W\d]\w*", words)) - IN_PLACE
    if words - {"FILTER"}:
        raise ValueError(
            f"the plan of this LazyFrame has {', '.join(sorted(words))}, and its rows, or their "
            "order, could be others each time they are read: write it to a file by sink_parquet, "
            "and give that"
        )
    files = [each for scan in re.findall(SCANNED, plan) for each in scan.split(", ")]
    moved = "its plan has FILTER" if words else _moved_by(files)
    n_rows, size = frame.select(n_rows_of()).collect().item(), slice_rows(len(form.columns))
    starts = range(0, n_rows, size) or [0]
    shapes = [(min(size, n_rows - start), len(form.columns)) for start in starts]
    pairs = zip(starts, shapes, strict=True)
    sources = tuple(_PolarsRows(frame, start, shape, dtype) for start, shape in pairs)
    return Parts(sources=sources, form=form, moved=moved)


class _PolarsRows:
    """A slice of the rows of a LazyFrame."""

    def __init__(self, frame, start, shape, dtype):
        self._frame, self._start, self.shape, self.dtype = frame, start, shape, dtype

    def open(self):
        rows = self._frame.slice(self._start, self.shape[0]).collect()
        return _matrix(columns_of(rows), len(rows), self.dtype)

    def __str__(self):
        return "a LazyFrame"


def dask_parts(X, form=None, moved=""):
    """Return the parts of a dask array.

    Raises
    ------
    ValueError
        If it is of unknown shape, of other than numbers or not 2-D.
    """
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(f"X must be a 2-D array of real numbers, got {X.dtype} of {X.ndim}-D")
    heights = X.chunks[0]
    if any(np.isnan(length) for axis in X.chunks for length in axis):
        raise ValueError("X must have known chunk sizes: call its compute_chunk_sizes() first")
    shapes = [(height, X.shape[1]) for height in heights]
    sources = tuple(_DaskRows(X, number, shape) for number, shape in enumerate(shapes))
    return Parts(sources=sources, form=form, moved=moved, lazy=X)


class _DaskRows:
    """The rows of a dask array that lie between two of its block borders."""

    def __init__(self, array, number, shape):
        self._array, self._number, self.shape, self.dtype = array, number, shape, array.dtype

    def open(self):
        block = np.asarray(self._array.blocks[self._number].compute())
        if block.dtype != self.dtype:
            raise ValueError(f"a block holds {block.dtype}, the dask array is one of {self.dtype}")
        return block


def _dask_frame_parts(frame):
    types = list(frame.dtypes)
    if not all(map(is_number, types)):
        return None
    from dask import delayed
    from dask.array import concatenate, from_delayed

    dtype = _dtype_of(list(frame.columns), types)
    steps = set(map(_step, frame.expr.walk())) if hasattr(frame, "expr") else {"a graph"}
    steps -= DASK_IN_PLACE
    if steps - DASK_STEADY:
        raise ValueError(
            f"the plan of this dask frame has {', '.join(sorted(steps))}, and its rows, or their "
            "order, could be others each time they are read: write it to files by to_parquet, and "
            "give what reads them"
        )
    heights = frame.map_partitions(len).compute()
    read = delayed(partial(_partition, types, dtype), pure=False)
    pairs = zip(frame.to_delayed(), heights, strict=True)
    blocks = [from_delayed(read(part), (int(n), len(types)), dtype) for part, n in pairs]
    moved = f"its plan has {', '.join(sorted(steps))}" if steps else ""
    return dask_parts(concatenate(blocks), frame._meta, moved)


def _step(expression):
    """Return what a step of a dask frame's plan is; reading whole files of one folder is none."""
    name = type(expression).__name__
    if not name.startswith("ReadParquet"):
        return name
    read = getattr(expression, "_dataset_info", {})
    files = read["ds"].files if "ds" in read else [each.path for each in read.get("all_files", [])]
    whole = files and not _moved_by(files) and expression.operand("filters") is None
    return "FromMap" if whole else "ReadParquet"


def _partition(types, dtype, part):
    columns, _ = frame_columns(checked_part(part, types))
    return _matrix(columns, len(part), dtype)
