"""What a table's container says that its columns are: the types alone, never the values."""

from skdp._data._columns import read_columns
from skdp.utils._chunked import form_of
from skdp.utils._frames import is_frame, kind_of


def read_kinds(estimator, X, *, reset=True):
    """Return a table as a `ColumnTable` and the kind that its container gives each column."""
    table = read_columns(estimator, X, reset=reset, allow_nan=True)
    return table, container_kinds(X if table.matrix is None else table.matrix)


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
    return kinds if is_frame(form_of(X)) else kinds * X.shape[1]


def types_of(X):
    """Return the types of a table's columns, that of an array once."""
    X = form_of(X)
    if is_frame(X):
        is_arrow = hasattr(X, "schema") and hasattr(X, "column_names")
        return X.schema.types if is_arrow else X.dtypes
    return [X.dtype] if hasattr(X, "dtype") else []
