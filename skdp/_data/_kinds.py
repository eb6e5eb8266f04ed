"""What a table's container says that its columns are: the types alone, never the values."""

import numpy as np

from skdp._data._columns import read_columns
from skdp.utils._frames import is_frame

# How the names of types begin.
STARTS = {
    "number": ("int", "uint", "float", "double", "halffloat", "decimal"),
    "boolean": ("bool",),
    "label": ("str", "large_str", "cat", "enum", "dictionary", "utf8"),
    "date": ("date", "timestamp"),
    "duration": ("duration", "timedelta"),
}


def read_kinds(estimator, X, *, reset=True):
    """Return a table as a `ColumnTable` and the kind that its container gives each column."""
    table = read_columns(estimator, X, reset=reset, allow_nan=True)
    return table, container_kinds(X if is_frame(X) else table.matrix)


def container_kinds(X):
    """Return the kind of each column, by its type alone.

    Parameters
    ----------
    X : array, sparse matrix, ChunkedArray or DataFrame

    Returns
    -------
    list of {"number", "date", "duration", "boolean", "label", "object"}
    """
    kinds = [kind_of(dtype) for dtype in types_of(X)]
    return kinds if is_frame(X) else kinds * X.shape[1]


def types_of(X):
    """Return the types of a table's columns, that of an array once."""
    if is_frame(X):
        is_arrow = hasattr(X, "schema") and hasattr(X, "column_names")
        return X.schema.types if is_arrow else X.dtypes
    return [X.dtype] if hasattr(X, "dtype") else []


def kind_of(dtype):
    """Return the kind of a type of numpy, pandas, Arrow or polars, by its name."""
    dtype = getattr(dtype, "subtype", dtype)
    if hasattr(dtype, "categories"):
        return "label"
    name = dtype.name if isinstance(dtype, np.dtype) else str(dtype)
    found = (kind for kind, starts in STARTS.items() if name.lower().startswith(starts))
    return next(found, "object")
