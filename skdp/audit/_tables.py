"""Tables of any container that an audit takes: their rows, and one row more."""

from numbers import Real

import numpy as np
from scipy.sparse import csr_array, hstack, issparse, vstack


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
    return _floats(array) if is_numeric(array) else array


def take_rows(table, rows):
    """Return some rows of a table.

    Parameters
    ----------
    table : table, or array-like of labels
    rows : ndarray
        A mask or positions.
    """
    rows = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
    if hasattr(table, "iloc"):
        return table.iloc[rows].copy()
    if isinstance(table, list):
        return [table[row] for row in rows]
    if issparse(table):
        return table.tocsr()[rows]
    return table[rows] if hasattr(table, "columns") else np.asarray(table)[rows]


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
    import pandas as pd

    right = pd.DataFrame(numbers, columns=names)
    return pd.concat([table.reset_index(drop=True), right], axis=1)


def stack_rows(above, below):
    """Return two tables of one kind as one.

    Parameters
    ----------
    above, below : table, as `as_table` returns it
    """
    if issparse(above):
        return vstack([above, below], format="csr")
    if not hasattr(above, "columns"):
        return np.concatenate([above, below])
    if not hasattr(above, "iloc"):
        return above.vstack(below)
    import pandas as pd

    return pd.concat([above, below], ignore_index=True)


def null_rows(table, n_rows):
    """Return rows of zeros, with what the first row has in columns that hold no numbers.

    Parameters
    ----------
    table : table, as `as_table` returns it
    n_rows : int
    """
    rows = take_rows(table, np.zeros(n_rows, dtype=int))
    if issparse(rows):
        return 0.0 * rows
    for place in range(table.shape[1]):
        if not is_numeric(column_of(table, place)):
            continue
        if hasattr(rows, "iloc"):
            rows.isetitem(place, 0 * rows.iloc[:, place])
        elif not hasattr(rows, "columns"):
            rows[:, place] = 0.0
    return rows


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
        column = _floats(column)
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
    kinds = {type(value) for value in array}
    if any(issubclass(kind, str | bytes) for kind in kinds):
        return False
    try:
        _floats(array)
    except (TypeError, ValueError):
        return False
    return True


def _floats(values):
    """Return numbers as float64; None and what pandas has for missing values are NaN."""
    array = np.asarray(values)
    if array.dtype.kind in "mM":
        raise TypeError("dates are no numbers")
    if array.dtype == object:
        flat = [np.nan if v is None or type(v).__name__ == "NAType" else v for v in array.ravel()]
        array = np.array(flat, dtype=object).reshape(array.shape)
    return array.astype(np.float64)


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
