"""Tables in every container, and what one row of them may be replaced by."""

import datetime
import warnings
import weakref
from collections import UserList, deque
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import dask.array
import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp

from skdp import ChunkedArray

DAYS = [datetime.datetime(2020, 1, day) for day in (1, 2, 3)]


@dataclass(frozen=True)
class Container:
    """A way to hold rows of cells.

    Parameters
    ----------
    name : str
    make : callable
        Maps a list of rows, lists of Python values, to a table. It may raise if it cannot hold
        them.
    holds : {"numbers", "labels", "dates", "entries"}
        What its rows are made of: the last are lists of (column, value) of a sparse matrix.
    """

    name: str
    make: object
    holds: str = "numbers"

    def build(self, rows):
        """Make a table in silence: casts warn of what is odd about a row."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.make(rows)

    def __repr__(self):
        return self.name


class Raises:
    """A cell whose every method raises what nobody expects."""

    def __eq__(self, other):
        raise RuntimeError("compared")

    def __hash__(self):
        raise RuntimeError("hashed")

    def __float__(self):
        raise RuntimeError("converted")


# A cell that does not even tell its class.
GONE = weakref.proxy(Raises())


class Equal:
    """A cell that says that it is equal to everything."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("b")


def _frame(rows, dtype=None):
    columns = {f"c{j}": pd.Series(list(cells)) for j, cells in enumerate(zip(*rows, strict=True))}
    frame = pd.DataFrame(columns)
    return frame if dtype is None else frame.astype(dtype)


def _named_as_attributes(rows):
    """A frame whose columns are called as what other containers have."""
    frame = _categories(rows)
    return frame.set_axis(["dtype", "compute", "schema"][: frame.shape[1]], axis=1)


def _partitions(rows):
    """A frame of dask, whose partitions have the types that their own rows have."""
    cut = len(rows) // 3
    parts = [rows[:cut], rows[cut:]]
    frames = [_frame(own) for own in parts]
    return dask.dataframe.from_map(lambda i: frames[i], [0, 1], meta=frames[1].iloc[:0])


def _categories(rows):
    frame = _frame(rows, "category")
    # By the process's seed of hashes pandas may take what is equal to all for one of the others.
    for j, cells in enumerate(zip(*rows, strict=True)):
        held = frame.iloc[1:, j].tolist()
        if any(isinstance(value, Equal) for value in held) or held != list(cells[1:]):
            raise ValueError("pandas holds other rows than it was given")
    return frame


def _array_rows(rows):
    """A list of one array a row, of the type that the row's own values have."""
    return [np.array(row) for row in rows]


def _memmap(rows, folder):
    path = folder / f"{len(list(folder.iterdir()))}.npy"
    np.save(path, np.array(rows, dtype=float))
    return np.load(path, mmap_mode="r")


def _chunks(rows):
    cut = len(rows) // 3
    return ChunkedArray([np.array(rows[:cut], dtype=float), np.array(rows[cut:], dtype=np.float32)])


def _frames(build, rows):
    cut = len(rows) // 3
    return ChunkedArray([build(rows[:cut]), build(rows[cut:])])


def _object_array(rows):
    array = np.empty((len(rows), len(rows[0])), dtype=object)
    # numpy would ask a cell whether it is a sequence.
    for i, row in enumerate(rows):
        array[i] = [*row, None][: len(row)]
    return array


def _arrow(rows):
    import pyarrow as pa

    columns = map(list, zip(*rows, strict=True))
    # The type that the others have; what does not fit it raises.
    types = [pa.array(cells[1:]).type for cells in map(list, zip(*rows, strict=True))]
    pairs = zip(columns, types, strict=True)
    return pa.table({f"c{j}": pa.array(cells, type=t) for j, (cells, t) in enumerate(pairs)})


def _polars(rows):
    # The types are those of the other rows; what does not fit them raises.
    return _polars_inferred(rows, schema=pl.DataFrame(rows[1:], orient="row").schema, strict=True)


def _polars_inferred(rows, **options):
    if any(cell is GONE for cell in rows[0]):
        raise ValueError("polars prints what such a cell raises")
    frame = pl.DataFrame(rows, orient="row", **options)
    if frame.width != max(map(len, rows)):
        # Before polars 2 the first row decides.
        raise ValueError("polars leaves cells out")
    return frame


def _coordinates(rows):
    entries = [(i, j, value) for i, row in enumerate(rows) for j, value in row]
    places, columns, values = zip(*entries, strict=True)
    return np.array(values, dtype=float), (np.array(places), np.array(columns)), (len(rows), 3)


def _csr(rows):
    values, (_, columns), shape = _coordinates(rows)
    ends = np.cumsum([0, *map(len, rows)])
    return sp.csr_array((values, columns, ends), shape=shape)


def _csc(rows):
    values, (places, columns), shape = _coordinates(rows)
    order = np.argsort(columns, kind="stable")
    ends = np.searchsorted(columns[order], np.arange(4))
    return sp.csc_array((values[order], places[order], ends), shape=shape)


def _coo(rows):
    values, places, shape = _coordinates(rows)
    return sp.coo_array((values, places), shape=shape)


def _dense_format(name):
    def build(rows):
        dense = np.zeros((len(rows), 3))
        for i, row in enumerate(rows):
            for j, value in row:
                dense[i, j] += value
        return getattr(sp, f"{name}_array")(dense)

    return build


def _bsr(rows):
    """Blocks of two rows, as they stand in COO: unsorted, and repeated at one place."""
    rows = rows[: len(rows) // 2 * 2]
    blocks, columns, ends = [], [], [0]
    for first in range(0, len(rows), 2):
        for k in range(max(len(rows[first]), len(rows[first + 1]))):
            for i in (0, 1):
                if k < len(rows[first + i]):
                    j, value = rows[first + i][k]
                    block = np.zeros((2, 1))
                    block[i, 0] = value
                    blocks.append(block)
                    columns.append(j)
        ends.append(len(columns))
    return sp.bsr_array((np.array(blocks), columns, ends), shape=(len(rows), 3), blocksize=(2, 1))


NUMERIC = [
    Container("list of lists", list),
    Container("deque of deques", lambda rows: deque(map(deque, rows))),
    Container("UserList of tuples", lambda rows: UserList(map(tuple, rows))),
    Container("tuple of tuples", lambda rows: tuple(map(tuple, rows))),
    Container("list of row arrays", _array_rows),
    Container("array of objects", _object_array),
    *(
        Container(f"array of {np.dtype(kind)}", lambda rows, kind=kind: np.array(rows, dtype=kind))
        for kind in (
            np.float16,
            np.float32,
            np.float64,
            np.longdouble,
            np.int8,
            np.int64,
            np.uint64,
        )
    ),
    Container("array of bool", lambda rows: np.array(rows, dtype=bool)),
    Container("Fortran order", lambda rows: np.asfortranarray(np.array(rows, dtype=float))),
    Container("masked array", lambda rows: np.ma.array(np.array(rows, dtype=float))),
    Container("pandas inferred", _frame),
    Container("pandas object", lambda rows: _frame(rows, object)),
    Container("pandas float32", lambda rows: _frame(rows, np.float32)),
    Container("pandas category", _categories),
    Container("pandas Int64", lambda rows: _frame(rows, "Int64")),
    Container("pandas Float64", lambda rows: _frame(rows, "Float64")),
    Container("pandas boolean", lambda rows: _frame(rows).astype(bool).astype("boolean")),
    Container("pandas int64[pyarrow]", lambda rows: _frame(rows, "int64[pyarrow]")),
    Container("pandas Sparse", lambda rows: _frame(rows, "Sparse[float]")),
    Container("pandas Sparse[uint64]", lambda rows: _frame(rows, "Sparse[uint64]")),
    Container("pandas named as attributes", _named_as_attributes),
    Container("polars", _polars),
    Container("pyarrow", _arrow),
    Container("chunks", _chunks),
    Container("chunks of polars", lambda rows: _frames(_polars, rows)),
    Container("chunk of Sparse", lambda rows: ChunkedArray([_frame(rows, "Sparse[uint64]")])),
    Container("dask frame", _partitions),
    Container("dask", lambda rows: dask.array.from_array(np.array(rows, float), chunks=(7, -1))),
]
LABELS = [
    Container("list of lists", list, "labels"),
    Container("deque of lists", deque, "labels"),
    Container("list of row arrays", _array_rows, "labels"),
    Container("array of objects", _object_array, "labels"),
    Container("array of strings", lambda rows: np.array(rows).astype(str), "labels"),
    Container("pandas inferred", _frame, "labels"),
    Container("pandas object", lambda rows: _frame(rows, object), "labels"),
    Container("pandas category", _categories, "labels"),
    Container("pandas string", lambda rows: _frame(rows, "string"), "labels"),
    Container("pandas string[pyarrow]", lambda rows: _frame(rows, "string[pyarrow]"), "labels"),
    Container("polars", _polars, "labels"),
    Container("LazyFrames", lambda rows: _frames(lambda own: _polars(own).lazy(), rows), "labels"),
    Container(
        "polars Categorical", lambda rows: _polars_inferred(rows).cast(pl.Categorical), "labels"
    ),
    Container("pyarrow", _arrow, "labels"),
]
DATES = [
    *(
        Container(
            f"array of datetime64[{unit}]",
            lambda rows, unit=unit: np.array(rows, dtype=f"M8[{unit}]"),
            "dates",
        )
        for unit in ("D", "us", "ns")
    ),
    *(
        Container(
            f"list of row arrays of datetime64[{unit}]",
            lambda rows, unit=unit: [np.array(row, dtype=f"M8[{unit}]") for row in rows],
            "dates",
        )
        for unit in ("us", "ns")
    ),
    Container(
        "array of timedelta64[ns]",
        lambda rows: np.array(rows, dtype="M8[ns]") - np.datetime64(DAYS[0], "ns"),
        "dates",
    ),
    Container("list of lists", list, "dates"),
    Container("array of objects", _object_array, "dates"),
    Container("pandas inferred", _frame, "dates"),
    Container("pandas datetime64[ns]", lambda rows: _frame(rows, "M8[ns]"), "dates"),
    Container("pandas datetime64[us]", lambda rows: _frame(rows, "M8[us]"), "dates"),
    Container("pandas object", lambda rows: _frame(rows, object), "dates"),
    Container(
        "pandas timestamp[ns][pyarrow]",
        lambda rows: _frame(rows, "M8[ns]").astype("timestamp[ns][pyarrow]"),
        "dates",
    ),
    Container("pandas category", _categories, "dates"),
    Container("polars", _polars, "dates"),
    Container("pyarrow", _arrow, "dates"),
]
SPARSE = [
    Container("CSR", _csr, "entries"),
    Container("CSC", _csc, "entries"),
    Container("COO", _coo, "entries"),
    Container("BSR", _bsr, "entries"),
    *(Container(name.upper(), _dense_format(name), "entries") for name in ("dia", "lil", "dok")),
    Container("CSR matrix", lambda rows: sp.csr_matrix(_csr(rows)), "entries"),
    Container("COO matrix", lambda rows: sp.coo_matrix(_coo(rows)), "entries"),
]

# Equal to the row [1, 0, 1] of numbers, in other types.
SAME_NUMBERS = {
    "floats": [1.0, 0.0, 1.0],
    "negative zero": [1, -0.0, 1],
    "bools": [True, False, True],
    "numpy float16": [np.float16(1), np.float16(0), np.float16(1)],
    "numpy float32": [np.float32(1), np.float32(0), np.float32(1)],
    "longdouble": [np.longdouble(1), np.longdouble(0), np.longdouble(1)],
    "numpy int8": [np.int8(1), np.int8(0), np.int8(1)],
    "uint64": [np.uint64(1), np.uint64(0), np.uint64(1)],
    "fractions": [Fraction(1), Fraction(0), Fraction(1)],
    "decimals": [Decimal(1), Decimal(0), Decimal(1)],
    "mixed": [1, 0.0, True],
}
OTHER_NUMBERS = {
    "others": [2, 2, 0],
    "a fraction": [0.5, 0, 1],
    "a large integer": [2**60, 0, 1],
    "a huge float": [1e300, 0, 1],
    "a longdouble beyond all": [np.longdouble(10) ** 400, np.longdouble(0), np.longdouble(1)],
    "an integer beyond all": [10**400, 0, 1],
    "complex": [1j, 0, 1],
    "a string": ["?", 0, 1],
    "digits": ["1", "0", "1"],
    "bytes": [b"?", 0, 1],
    "missing": [None, 0, 1],
    "NaN": [float("nan"), 0, 1],
    "NA": [pd.NA, 0, 1],
    "NaT": [pd.NaT, 0, 1],
    "infinite": [float("inf"), 0, 1],
    "a date": [DAYS[0], 0, 1],
    "a list": [[1], 0, 1],
    "an object": [object(), 0, 1],
    "an object that raises": [Raises(), 0, 1],
    "an object that is gone": [GONE, 0, 1],
    "masked": [np.ma.masked, 0, 1],
    "a shorter row": [1, 0],
    "numpy NaT": [np.datetime64("NaT"), 0, 1],
    "a numpy date": [np.datetime64("2020-01-01", "D"), 0, 1],
}
# Rows that no category is equal to: null records.
NO_LABELS = {
    "a string": ["?", "?", "?"],
    "a longer string": ["?" * 40] * 3,
    "a number": [7, 7, 7],
    "a fraction": [0.25] * 3,
    "complex": [1j] * 3,
    "bytes": [b"?"] * 3,
    "missing": [None] * 3,
    "NaN": [float("nan")] * 3,
    "NA": [pd.NA] * 3,
    "NaT": [pd.NaT] * 3,
    "a date": [datetime.datetime(1999, 1, 1)] * 3,
    "a duration": [datetime.timedelta(days=1)] * 3,
    "a list": [["a"]] * 3,
    "an object": [object()] * 3,
    "an object that raises": [Raises()] * 3,
    "an object that is gone": [GONE] * 3,
    "masked": [np.ma.masked] * 3,
    "an object that is equal to all": [Equal()] * 3,
    "a date of a broken zone": [datetime.datetime(2020, 1, 1, tzinfo=datetime.tzinfo())] * 3,
    "numpy NaT": [np.datetime64("NaT")] * 3,
}
# The row of entries (0, 1), (1, 0), (2, 1), in other orders and with other zeros.
SAME_ENTRIES = {
    "without zeros": [(0, 1.0), (2, 1.0)],
    "unsorted": [(2, 1.0), (0, 1.0)],
    "stored zeros": [(1, 0.0), (0, 1.0), (2, 1.0), (1, 0.0)],
    "repeated": [(2, 0.5), (0, 1.0), (2, 0.5)],
}
OTHER_ENTRIES = {
    "empty": [],
    "others": [(1, 2.0)],
    "unsorted others": [(1, 2.0), (0, 1.0)],
    "many": [(0, 1.0), (1, -1e17), (1, 3.0), (1, 1e17)] * 6,
}


def number_rows(n_rows=40):
    rng = np.random.default_rng(0)
    return [[1, 0, 1], *rng.integers(0, 3, size=(n_rows - 1, 3)).tolist()]


def label_rows(n_rows=40):
    rng = np.random.default_rng(0)
    return [["a", "b", "a"], *rng.choice(["a", "b", "c"], size=(n_rows - 1, 3)).tolist()]


def date_rows(n_rows=40):
    rng = np.random.default_rng(0)
    others = [[DAYS[k] for k in row] for row in rng.integers(0, 3, size=(n_rows - 1, 3))]
    return [[DAYS[0], DAYS[1], DAYS[0]], *others]


def entry_rows(n_rows=40):
    """Rows of more than sixteen entries of one place, whose sum depends on their order."""
    places = [(0, 1e17), (0, 3.0), *[(0, 0.0)] * 17, (0, -1e17), (2, 0.5)]
    return [[(0, 1.0), (2, 1.0)], *([places] * (n_rows - 1))]


def counted(X, heights):
    """Return a dask array of blocks of some heights, and the list of those that were computed."""
    blocks, computed = np.split(X, np.cumsum(heights)[:-1]), []

    def compute(number):
        computed.append(number)
        return blocks[number]

    lazy = [
        dask.array.from_delayed(dask.delayed(compute)(number), block.shape, block.dtype)
        for number, block in enumerate(blocks)
    ]
    return dask.array.concatenate(lazy), computed
