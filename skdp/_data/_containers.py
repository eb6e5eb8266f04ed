"""Tables out of their containers, each cell and each row by itself.

A list is read cell by cell, a frame column by column as its type declares, a sparse matrix row
by row. No cell influences how another one is converted: ``np.asarray`` of a list turns all its
numbers into strings where one is a string, and scikit-learn's conversions of sparse formats sort
all rows where one is unsorted. What of a table is public is written in ``docs/relations.md``.
"""

import datetime
from collections.abc import Mapping, Sized

import numpy as np
from scipy.sparse import csr_array

from skdp._data._refusals import TYPED_DATES, TYPED_DURATIONS, no_numbers
from skdp.utils._frames import NUMBERS, TIMES
from skdp.utils._labels import is_missing

LARGEST = float(np.finfo(np.float64).max)
ARRAY_NAMES = ("dtype", "shape", "__array__", "__array_interface__", "__array_struct__")


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
    # A cell may raise whatever it is asked for; its type does not.
    kind = type(values)
    if issubclass(kind, list | tuple):
        return True
    is_array = any(hasattr(kind, name) for name in ARRAY_NAMES)
    # An Enum has a length and items; its members have none.
    has_cells = issubclass(kind, Sized) and hasattr(kind, "__getitem__")
    return has_cells and not is_array and not issubclass(kind, str | bytes | bytearray | Mapping)


def as_numbers(values, name="a column"):
    """Return values in double precision, each converted by itself.

    Dates and durations count the unit of their array's type, from 1970 on.

    Parameters
    ----------
    values : ndarray
        Of numbers, dates, durations or objects.
    name : str, default="a column"
        What they are, for errors.

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
        raise no_numbers(name)
    if set(map(type, values.ravel())) <= {float, bool}:
        # The same, faster.
        return values.astype(np.float64)
    flat = [_as_number(value, name) for value in values.ravel()]
    # A zero keeps its sign: what a null makes objects of is otherwise an array, where it does.
    return np.array(flat, dtype=np.float64).reshape(values.shape)


def _as_number(value, name):
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
        raise ValueError(f"{name} contains a value too large for dtype('float64')") from None
    except TypeError as error:
        typed = ""
        if isinstance(value, datetime.date | datetime.timedelta):
            typed = f"; {TYPED_DURATIONS if isinstance(value, datetime.timedelta) else TYPED_DATES}"
        raise TypeError(f"{no_numbers(name)}{typed} ({error})") from None
    except ValueError:
        raise no_numbers(name) from None


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
        data = X.data
        columns = X.indices
        indptr = X.indptr
    else:
        entries = X.tocoo()
        rows, columns = entries.coords if hasattr(entries, "coords") else (entries.row, entries.col)
        order = np.argsort(rows, kind="stable")
        data = entries.data[order]
        columns = columns[order]
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
    rows = rows[order]
    columns = block.indices[order]
    data = data[order]
    is_first = np.append(True, (np.diff(rows) != 0) | (np.diff(columns) != 0))[: len(data)]
    sums = data[is_first]
    place = np.cumsum(is_first) - 1
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
