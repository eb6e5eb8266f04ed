"""Tables of any container that an audit takes: their rows, and one row more."""

from numbers import Real

import numpy as np
from scipy.sparse import csr_array, hstack, issparse, vstack

from skdp._data._containers import as_numbers
from skdp.utils._frames import take_rows


def as_table(X):
    """Return a frame as it is, a sparse table as CSR, numbers as float64 and others as objects.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
    """
    if hasattr(X, "columns"):
        return X
    if issparse(X):
        return X.tocsr()
    array = np.asarray(X) if hasattr(X, "dtype") else np.array(X, dtype=object)
    if array.dtype.kind not in "biufO":
        return array
    return as_numbers(array) if is_numeric(array) else array


def append_row(table, row):
    """Return a table with a row below, in its container.

    Parameters
    ----------
    table : table, as `as_table` returns it
    row : sequence of shape (n_features,)
    """
    if issparse(table):
        return vstack([table, csr_array(np.asarray(row, dtype=float)[None, :])], format="csr")
    if not hasattr(table, "columns"):
        row = np.asarray(row, dtype=table.dtype if table.dtype.kind in "fO" else None)
        return np.concatenate([table, row[None, :]])
    row, names = list(row), list(table.columns)
    columns = [[*column_of(table, place), value] for place, value in enumerate(row)]
    for column in columns:
        # A whole number stays one where a column holds these alone.
        if isinstance(column[0], int) and isinstance(column[-1], float) and column[-1].is_integer():
            column[-1] = int(column[-1])
    if not hasattr(table, "iloc"):
        return type(table)(dict(zip(names, columns, strict=True)), schema=table.schema)
    frame = type(table)(dict(enumerate(columns)))
    kinds = {place: kind for place, kind in enumerate(table.dtypes) if _holds(kind, row[place])}
    for name, kind, value, missing in zip(
        names, table.dtypes, row, frame.iloc[-1].isna(), strict=True
    ):
        if hasattr(kind, "categories") and not missing and value not in kind.categories:
            raise ValueError(f"column {name!r} cannot hold the canary's value")
    frame = frame.astype(kinds)
    frame.columns = table.columns
    return frame


def append_columns(table, numbers):
    """Return a table with columns of numbers at its right, in its container.

    Parameters
    ----------
    table : table, as `as_table` returns it
    numbers : ndarray of shape (n_samples, n_columns)
    """
    if issparse(table):
        return hstack([table, csr_array(numbers)], format="csr")
    if not hasattr(table, "columns"):
        return np.hstack([table, numbers.astype(table.dtype)])
    names = [f"canary {i}" for i in range(numbers.shape[1])]
    if not hasattr(table, "iloc"):
        return table.hstack(type(table)(numbers, schema=names))
    return table.reset_index(drop=True).join(type(table)(numbers, columns=names))


def with_null_rows(table, n_rows):
    """Return a table with rows of zeros below, its first row's values where they are no numbers.

    Parameters
    ----------
    table : table, as `as_table` returns it
    n_rows : int
    """
    rows = np.append(np.arange(table.shape[0]), np.zeros(n_rows, dtype=int))
    longer, kept = take_rows(table, rows), np.arange(len(rows)) < table.shape[0]
    if issparse(longer):
        return longer.multiply(kept[:, None]).tocsr()
    for place in range(table.shape[1]):
        if not is_numeric(column_of(table, place)):
            continue
        if hasattr(longer, "iloc"):
            longer.isetitem(place, longer.iloc[:, place] * kept)
        elif not hasattr(longer, "columns"):
            longer[~kept, place] = 0.0
    return longer


def coordinates(table):
    """Return a table as numbers; a text becomes the share of rows with another text.

    A missing value becomes the column's mean.

    Parameters
    ----------
    table : table, as `as_table` returns it

    Returns
    -------
    ndarray of shape (n_samples, n_features)
    """
    if issparse(table):
        return table.toarray()
    found = []
    for place in range(table.shape[1]):
        column = column_of(table, place)
        if not is_numeric(column):
            _, codes, counts = np.unique(
                [repr(value) for value in column], return_inverse=True, return_counts=True
            )
            column = 1.0 - counts[codes] / len(column)
        column = as_numbers(np.array(column, dtype=object))
        missing = np.isnan(column)
        column[missing] = 0.0 if missing.all() else np.mean(column[~missing])
        found.append(column)
    return np.column_stack(found)


def is_numeric(values):
    """Say whether all values are numbers or missing.

    Parameters
    ----------
    values : array-like
    """
    array = np.asarray(values, dtype=object).ravel()
    if any(isinstance(value, str | bytes) for value in array):
        return False
    try:
        as_numbers(array)
    except (TypeError, ValueError):
        return False
    return True


def column_of(table, place):
    """Return one column of a table that is not sparse, by position."""
    if hasattr(table, "iloc"):
        return table.iloc[:, place].tolist()
    if hasattr(table, "columns"):
        return table[list(table.columns)[place]].to_list()
    return table[:, place]


def _holds(kind, value):
    """Say whether a column's type is kept where a value comes into it.

    A fraction turns whole numbers into floats, in both worlds.
    """
    if isinstance(kind, np.dtype) and kind.kind in "iu":
        return isinstance(value, Real) and float(value).is_integer()
    return not isinstance(kind, np.dtype) or kind.kind != "b" or isinstance(value, bool | np.bool_)
