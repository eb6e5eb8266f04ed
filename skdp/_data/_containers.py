"""Tables out of their containers, each cell and each row by itself.

A list is read cell by cell, a frame column by column as its type declares, a sparse matrix row
by row. No cell influences how another one is converted: ``np.asarray`` of a list turns all its
numbers into strings where one is a string, and scikit-learn's conversions of sparse formats sort
all rows where one is unsorted. What of a table is public is written in ``docs/relations.md``.
"""

from collections.abc import Mapping

import numpy as np
from scipy.sparse import csr_array

from skdp.utils._labels import is_missing

__all__ = [
    "as_cells",
    "as_csr",
    "as_numbers",
    "canonical_rows",
    "doubles_at_most",
    "frame_columns",
    "is_frame",
    "is_sequence",
    "objects",
]

NUMBERS, TIMES = "biuf", "mM"
LARGEST = float(np.finfo(np.float64).max)
ARRAY_NAMES = ("dtype", "shape", "__array__", "__array_interface__", "__array_struct__")


def is_frame(X):
    """Return whether a table has columns of types of their own: pandas, polars, Arrow or like."""
    has_types = hasattr(X, "dtypes") or hasattr(X, "schema")
    return hasattr(X, "columns") and has_types and not hasattr(X, "dtype")


def frame_columns(frame, *, without_zones=False):
    """Return a frame's columns one by one.

    Parameters
    ----------
    frame : DataFrame
    without_zones : bool, default=False
        Whether dates of a time zone are dates of numpy, in UTC; otherwise they are objects.

    Returns
    -------
    columns : list of ndarray of shape (n_rows,)
        Of numbers, dates or durations where the column's declared type is one of numpy's and
        nothing is missing that it cannot hold; of objects otherwise, where what is missing is
        None, or was an object before.
    numeric : list of bool
        Whether the column's type is one of numbers.
    """
    if hasattr(frame, "schema") and hasattr(frame, "column_names"):
        read, columns = _arrow_values, frame.columns
    elif hasattr(frame, "iloc"):
        # Of dask a frame of pandas is computed.
        frame = frame.compute() if hasattr(frame, "compute") else frame
        read, columns = _pandas_values, (frame.iloc[:, j] for j in range(frame.shape[1]))
    else:
        read, columns = _polars_values, (frame[:, j] for j in range(frame.shape[1]))
    columns = [read(column, without_zones) for column in columns]
    return [values for values, _ in columns], [numeric for _, numeric in columns]


def as_cells(rows):
    """Return a sequence of rows, or of values, as an array of objects, each kept as it is.

    Parameters
    ----------
    rows : sequence
        Rows may be arrays, or sequences themselves.

    Returns
    -------
    ndarray of objects
        Of one dimension if the rows are not of one length.
    """
    # numpy turns arrays of dates into integers on the way to objects.
    rows = [list(row) if is_sequence(row) or _holds_times(row) else row for row in rows]
    return np.array(rows, dtype=object)


def is_sequence(values):
    """Return whether something has cells of its own, and is no array of any kind."""
    if isinstance(values, list | tuple):
        return True
    is_array = any(hasattr(values, name) for name in ARRAY_NAMES)
    has_cells = hasattr(values, "__len__") and hasattr(values, "__getitem__")
    return has_cells and not is_array and not isinstance(values, str | bytes | bytearray | Mapping)


def as_numbers(values):
    """Return values in double precision, each converted by itself.

    Dates and durations count the unit of their array's type, from 1970 on.

    Parameters
    ----------
    values : ndarray
        Of numbers, dates, durations or objects.

    Returns
    -------
    ndarray of float64
        NaN where a value is missing; the largest where one is beyond double precision.

    Raises
    ------
    TypeError, ValueError
        If a value is no number.
    """
    if values.dtype.kind in TIMES:
        numbers = values.astype(np.int64).astype(np.float64)
        numbers[np.isnat(values)] = np.nan
        return numbers
    if values.dtype.kind in NUMBERS:
        with np.errstate(over="ignore"):
            numbers = values.astype(np.float64, copy=False)
        if values.dtype.kind == "f" and values.dtype.itemsize > 8:
            np.clip(numbers, -LARGEST, LARGEST, out=numbers, where=np.isfinite(values))
        return numbers
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    if values.dtype.kind != "O":
        raise ValueError("dtype='numeric' is not compatible with arrays of bytes/strings")
    if set(map(type, values.ravel())) <= {float, bool}:
        # The same, faster.
        return values.astype(np.float64)
    flat = [_as_number(value) for value in values.ravel()]
    # A zero keeps its sign: what a null makes objects of is otherwise an array, where it does.
    return np.array(flat, dtype=np.float64).reshape(values.shape)


def _as_number(value):
    if type(value) is float:
        return value
    if is_missing(value):
        return np.nan
    if isinstance(value, np.datetime64 | np.timedelta64):
        return float(value.astype(np.int64))
    if isinstance(value, complex | np.complexfloating):
        raise ValueError("Complex data not supported")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("Input contains a value too large for dtype('float64')") from None


def as_csr(X):
    """Return a sparse matrix of any format as CSR, whose entries of a row keep their order.

    Entries that share a place are not added up, see `canonical_rows`.

    Parameters
    ----------
    X : sparse matrix or array of shape (n_rows, n_columns)

    Returns
    -------
    csr_array

    Raises
    ------
    ValueError
        If it is not of two dimensions, or an entry lies outside.
    """
    if X.ndim != 2:
        raise ValueError(f"Expected a 2-dimensional container, got a sparse one of {X.ndim}")
    if X.format == "csr":
        data, columns, indptr = X.data, X.indices, X.indptr
    else:
        entries = X.tocoo()
        rows, columns = entries.coords if hasattr(entries, "coords") else (entries.row, entries.col)
        order = np.argsort(rows, kind="stable")
        data, columns = entries.data[order], columns[order]
        indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=X.shape[0])))
    rows = csr_array((doubles_at_most(data), columns, indptr), shape=X.shape)
    # An entry of a column that does not exist would be one of another row.
    rows.check_format()
    return rows


def canonical_rows(block):
    """Return a CSR block in double precision, each row's entries sorted and added up by place.

    Entries of one place are added in the order of their values: the sum depends on the row's
    entries alone and not on how they are stored.

    Parameters
    ----------
    block : csr_array of numbers

    Returns
    -------
    csr_array of float64
    """
    with np.errstate(over="ignore"):
        data = block.data.astype(np.float64)
    block = csr_array((data, block.indices, block.indptr), shape=block.shape)
    # The flags of a new matrix are not out of date.
    if block.has_canonical_format:
        return block
    rows = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    order = np.lexsort((data, block.indices, rows))
    rows, columns, data = rows[order], block.indices[order], data[order]
    is_first = np.append(True, (np.diff(rows) != 0) | (np.diff(columns) != 0))[: len(data)]
    sums, place = data[is_first], np.cumsum(is_first) - 1
    with np.errstate(over="ignore"):
        np.add.at(sums, place[~is_first], data[~is_first])
    indptr = np.searchsorted(rows[is_first], np.arange(block.shape[0] + 1))
    return csr_array((sums, columns[is_first], indptr), shape=block.shape)


def doubles_at_most(values):
    """Return an array without numbers of more than double precision, others as they are."""
    is_longer = values.dtype.kind == "f" and values.dtype.itemsize > 8
    return as_numbers(values) if is_longer else values


def _holds_times(row):
    return getattr(getattr(row, "dtype", None), "kind", "") in TIMES and np.ndim(row) > 0


def objects(values):
    """Return values, which may be arrays, as an array of objects."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _pandas_values(column, without_zones=False):
    """Return a column's values, and whether its type is one of numbers."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        return np.asarray(column), dtype.kind in NUMBERS
    if hasattr(dtype, "categories"):
        labels, _ = _pandas_values(dtype.categories.to_series())
        # A column's zeros have the sign of the first of them; what is missing has the code -1,
        # which finds the end.
        labels = labels + 0.0 if labels.dtype.kind == "f" else labels
        # Which labels its list holds depends on rows, also those that no row has any more.
        return objects([*labels, None])[np.asarray(column.cat.codes)], False
    if hasattr(dtype, "fill_value") and hasattr(dtype, "subtype"):
        # Left to itself its type depends on whether every value is stored.
        return np.asarray(column, dtype=dtype.subtype), dtype.subtype.kind in NUMBERS
    zone = getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None)
    if dtype.kind in TIMES and zone is not None and without_zones:
        return _pandas_values(column.dt.tz_convert(None))
    if dtype.kind in TIMES and zone is None:
        return column.to_numpy(dtype=dtype.numpy_dtype, na_value=None), False
    return column.to_numpy(dtype=object, na_value=None), dtype.kind in NUMBERS


def _polars_values(column, without_zones=False):
    dtype = column.dtype
    numeric = dtype.is_numeric() or str(dtype) == "Boolean"
    is_plain = numeric and not column.null_count() and not dtype.is_decimal()
    is_time = dtype.is_temporal() and (without_zones or getattr(dtype, "time_zone", None) is None)
    return _plain_or_objects(column, is_plain or is_time, column.to_list), numeric


def _arrow_values(column, without_zones=False):
    kind = str(column.type)
    numeric = kind.startswith(("int", "uint", "float", "double", "halffloat", "bool"))
    is_time = kind.startswith(("timestamp", "duration", "date"))
    is_time &= without_zones or "tz=" not in kind
    is_plain = numeric and not column.null_count
    return _plain_or_objects(column, is_plain or is_time, column.to_pylist), numeric


def _plain_or_objects(column, is_plain, to_list):
    if is_plain:
        values = np.asarray(column)
        if values.dtype.kind in NUMBERS + TIMES:
            return values
    return objects(to_list())
