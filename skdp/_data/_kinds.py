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
    "duration": ("duration",),
}


def read_kinds(estimator, X, *, reset=True):
    """Return a table as a `ColumnTable` and the kind that its container gives each column."""
    table = read_columns(estimator, X, reset=reset)
    return table, container_kinds(X, table)


def container_kinds(X, table):
    """Return the kind of each column, by its type alone.

    Parameters
    ----------
    X : array-like or DataFrame
    table : ColumnTable
        The same.

    Returns
    -------
    list of {"number", "date", "duration", "boolean", "label", "object"}
    """
    if not is_frame(X):
        return [_kind_of_type(table.matrix.dtype)] * table.shape[1]
    if hasattr(X, "schema") and hasattr(X, "column_names"):
        return [_kind_of_words(str(each)) for each in X.schema.types]
    return [_kind_of_type(dtype) for dtype in X.dtypes]


def _kind_of_type(dtype):
    dtype = getattr(dtype, "subtype", dtype)
    if hasattr(dtype, "categories"):
        return "label"
    kind = getattr(dtype, "kind", None)
    if kind is None or (kind == "O" and not isinstance(dtype, np.dtype)):
        return _kind_of_words(str(dtype))
    known = dict.fromkeys("iuf", "number") | dict.fromkeys("UT", "label")
    known |= {"b": "boolean", "M": "date", "m": "duration"}
    return known.get(kind, "object")


def _kind_of_words(words):
    """The kind of a type of Arrow, polars or an extension, by its name."""
    found = (kind for kind, starts in STARTS.items() if words.lower().startswith(starts))
    return next(found, "object")
