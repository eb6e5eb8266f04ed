"""The number of rows of a table, and the check that the target and person ids have the same length.

Lazy tables and columns do not know how many rows they have until they are computed. A step that
does not read y would be charged before a later step finds that y has another length. Therefore, the
lengths are compared before the first charge, on values that are computed only once
(`computed_column`, `opened_table`). The error names both lengths even if the number of rows is
private (``unit="person"``): it is an error for the curator, and nothing is released.
"""

from collections.abc import Mapping

import numpy as np

from skdp._data._chunked import ChunkedArray, as_chunked
from skdp._data._frames import in_memory

# The arguments of a fit that have one entry per row of X.
ENTRIES = {"y": "label or target", "groups": "person id"}


def opened_table(X):
    """Return a table whose number of rows is known.

    Parameters
    ----------
    X : table of any container

    Returns
    -------
    table
        A `ChunkedArray` for a LazyFrame, a dask frame, a Parquet dataset or path, or a Spark frame.
        Opening such a table computes it, so open it once for all steps that read it. A lazy column
        becomes a column in memory. Other tables, including dask arrays, know their number of rows
        and are returned unchanged.
    """
    if hasattr(type(X), "map_blocks") or _n_rows_of_shape(X) is not None:
        return X
    chunked = as_chunked(X)
    if chunked is None:
        return in_memory(X)
    return chunked


def computed_column(values):
    """Return y or groups in memory: a lazy column is computed once, so that its length is known."""
    if isinstance(values, ChunkedArray):
        return values
    return in_memory(values)


def shape_of(X):
    """Return the shape of a table; it is empty for an object without rows and for ragged rows.

    A step refuses such objects when it reads them, which is before its charge.
    """
    if hasattr(X, "shape"):
        if isinstance(X.shape, tuple):
            return X.shape
        return ()
    try:
        return np.shape(X)
    except ValueError:
        return ()


def n_rows_of(values):
    """Return the number of rows of a table or column, or None for an object without rows.

    A lazy column is computed to count its rows.
    """
    n_rows = _n_rows_of_shape(values)
    if n_rows is not None:
        return n_rows
    values = computed_column(values)
    n_rows = _n_rows_of_shape(values)
    if n_rows is None and hasattr(type(values), "__len__"):
        # Strings and dicts have a length that is not a number of rows.
        # Neither have arrays of shape ().
        if isinstance(values, str | bytes | Mapping) or getattr(values, "shape", None) == ():
            n_rows = None
        else:
            n_rows = len(values)
    return n_rows


def check_lengths(n_rows, **columns):
    """Raise `ValueError` if a column does not have one entry per row of X.

    Parameters
    ----------
    n_rows : int
        Number of rows of X.
    **columns : array-like
        Arguments of the fit by name, `y` and `groups`. None and objects without rows are not
        checked here.
    """
    for name, values in columns.items():
        length = n_rows_of(values)
        if length is not None and length != n_rows:
            raise ValueError(
                f"{name} has {length} rows, but X has {n_rows}: pass one {ENTRIES[name]} for each "
                "row of X, in the same order"
            )


def _n_rows_of_shape(values):
    """Return the first entry of `shape`, or None if there is no shape or the entry is unknown."""
    shape = getattr(values, "shape", None)
    # Lazy collections contain NaN or a task in place of a number.
    is_known = isinstance(shape, tuple) and shape and isinstance(shape[0], int | np.integer)
    if is_known:
        return int(shape[0])
    return None
