"""Conversion of lists, arrays and sparse matrices; each cell or row is converted independently.

A list is converted cell by cell, a frame column by column by its declared types, and a sparse
matrix row by row. No cell may influence the conversion of another cell, because neighboring data
sets must differ in only one row. NumPy and scikit-learn break this rule: ``np.asarray`` of a list
turns all numbers into strings if one cell is a string, and conversions of sparse formats sort all
rows if one is unsorted. ``docs/theory/relations.md`` lists the public facts of a table.
"""

import datetime
from collections.abc import Mapping, Sized

import numpy as np
from scipy.sparse import csr_array

from skdp._data._errors import non_numeric_error, times_error
from skdp._data._frames import NUMBERS, TIMES
from skdp._data._labels import is_missing

MAX_DOUBLE = float(np.finfo(np.float64).max)
# Kinds of NumPy's date and duration types, as messages name them.
TIME_KIND_OF = {"M": "date", "m": "duration"}
# Attributes by which arrays of any library are recognized.
ARRAY_ATTRIBUTES = ("dtype", "shape", "__array__", "__array_interface__", "__array_struct__")


def as_cells(rows):
    """Return a sequence of rows, or of values, as an array of unchanged objects.

    Parameters
    ----------
    rows : sequence
        Rows, which may be arrays or other sequences, or values.

    Returns
    -------
    ndarray of objects
        It has one dimension if the rows have different lengths.
    """
    # NumPy converts arrays of dates to integers when it makes an array of objects.
    rows = [list(row) if is_sequence(row) or _holds_times(row) else row for row in rows]
    return np.array(rows, dtype=object)


def is_sequence(values):
    """Return True for a sequence of cells, such as a list, that is not an array or a string."""
    # Attributes are read from the type, because attributes of the object may raise any error.
    kind = type(values)
    if issubclass(kind, list | tuple):
        return True
    is_array = any(hasattr(kind, name) for name in ARRAY_ATTRIBUTES)
    # The class of an Enum has a length and items, but a member does not.
    has_cells = issubclass(kind, Sized) and hasattr(kind, "__getitem__")
    return has_cells and not is_array and not issubclass(kind, str | bytes | bytearray | Mapping)


def as_numbers(values, name="a column", after_fit=False):
    """Return values in double precision, each converted independently.

    Text is never read as a number, whether in an array of objects or of strings: the same text can
    have different types in different containers. Dates and durations are numbers only in some unit,
    and the units of their types differ.

    Parameters
    ----------
    values : ndarray
        Numbers, or objects that are numbers or missing.
    name : str, default="a column"
        Name of the values in error messages.
    after_fit : bool, default=False
        True for samples passed to a fitted estimator, which get other error messages.

    Returns
    -------
    ndarray of float64
        Missing values become NaN, and values beyond double precision the largest double.

    Raises
    ------
    TypeError, ValueError
        If a value is not a number.
    """
    if values.dtype.kind in TIMES:
        raise times_error(name, TIME_KIND_OF[values.dtype.kind], after_fit)
    if values.dtype.kind in NUMBERS:
        with np.errstate(over="ignore"):
            numbers = values.astype(np.float64, copy=False)
        if values.dtype.kind == "f" and values.dtype.itemsize > 8:
            np.clip(numbers, -MAX_DOUBLE, MAX_DOUBLE, out=numbers, where=np.isfinite(values))
        return numbers
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    if values.dtype.kind != "O":
        raise non_numeric_error(name, after_fit)
    if set(map(type, values.ravel())) <= {float, bool}:
        # This gives the same result as the code below in less time.
        return values.astype(np.float64)
    flat = [_as_number(value, name, after_fit) for value in values.ravel()]
    # The sign of zero is preserved. A column is an array of objects if a value is missing, else an
    # array of floats, and both must give the same numbers for the other rows.
    return np.array(flat, dtype=np.float64).reshape(values.shape)


def _as_number(value, name, after_fit):
    """Return a cell of an object array as a float, NaN if it is missing.

    Raise the error that `name` begins if the cell is not a number, also if it is the text of one.
    """
    if type(value) is float:
        return value
    if is_missing(value):
        return np.nan
    if isinstance(value, np.datetime64 | datetime.date):
        raise times_error(name, "date", after_fit)
    if isinstance(value, np.timedelta64 | datetime.timedelta):
        raise times_error(name, "duration", after_fit)
    if isinstance(value, complex | np.complexfloating):
        raise ValueError("Complex data not supported")
    if isinstance(value, str | bytes | bytearray | memoryview):
        # Python would read the text of a number, whereas arrays of strings and bytes are refused.
        raise non_numeric_error(name, after_fit)
    if getattr(value, "shape", ()) != ():
        # Old versions of NumPy read an array of one element as a number.
        raise non_numeric_error(name, after_fit)
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} contains a value too large for dtype('float64')") from None
    except TypeError as error:
        raise TypeError(f"{non_numeric_error(name, after_fit)} ({error})") from None
    except ValueError:
        raise non_numeric_error(name, after_fit) from None


def as_csr(X):
    """Return a sparse matrix of any format as CSR, without reordering the entries of a row.

    Entries that share a row and column are not added up; see `canonical_rows`.

    Parameters
    ----------
    X : sparse matrix or array of shape (n_rows, n_columns)

    Returns
    -------
    csr_array

    Raises
    ------
    ValueError
        If X does not have two dimensions, or an entry is outside its shape.
    """
    if X.ndim != 2:
        raise ValueError(f"Expected a 2-dimensional sparse container, got {X.ndim} dimensions")
    if X.format == "csr":
        data = X.data
        columns = X.indices
        indptr = X.indptr
    else:
        entries = X.tocoo()
        if hasattr(entries, "coords"):
            rows, columns = entries.coords
        else:
            rows = entries.row
            columns = entries.col
        order = np.argsort(rows, kind="stable")
        data = entries.data[order]
        columns = columns[order]
        indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=X.shape[0])))
    rows = csr_array((doubles_at_most(data), columns, indptr), shape=X.shape)
    # Without this check, an entry with an invalid column index would be read as part of another
    # row.
    rows.check_format()
    return rows


def canonical_rows(block):
    """Return a CSR block in double precision, with sorted columns and without duplicate entries.

    Entries that share a row and column are added in the order of their values, so that the sum does
    not depend on how they are stored.

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
    # A new matrix computes this flag from its entries; that of the user's matrix may be stale.
    if block.has_canonical_format:
        return block
    rows = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    order = np.lexsort((data, block.indices, rows))
    rows = rows[order]
    columns = block.indices[order]
    data = data[order]
    is_first = np.append(True, (np.diff(rows) != 0) | (np.diff(columns) != 0))[: len(data)]
    sums = data[is_first]
    sum_index = np.cumsum(is_first) - 1
    with np.errstate(over="ignore"):
        np.add.at(sums, sum_index[~is_first], data[~is_first])
    indptr = np.searchsorted(rows[is_first], np.arange(block.shape[0] + 1))
    return csr_array((sums, columns[is_first], indptr), shape=block.shape)


def doubles_at_most(values):
    """Return long doubles as doubles, and any other array unchanged."""
    is_longer = values.dtype.kind == "f" and values.dtype.itemsize > 8
    if is_longer:
        return as_numbers(values)
    return values


def _holds_times(row):
    return getattr(getattr(row, "dtype", None), "kind", "") in TIMES and np.ndim(row) > 0
