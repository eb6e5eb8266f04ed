"""What a table's container says that its columns are: the types alone, never the values."""

from skdp._data._columns import read_columns
from skdp.utils import _frames
from skdp.utils._chunked import form_of


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
    list of {"number", "date", "duration", "boolean", "label", "object", "cells"}
        "object" of a frame's column of objects, as strings are in pandas 2; "cells" of the columns
        of an array, or of a list of rows, in which numbers are objects, too.
    """
    kinds = _frames.of_each_type(_frames.kind_of, types_of(X))
    if _frames.is_frame(form_of(X)):
        return kinds
    return ["cells" if kind == "object" else kind for kind in kinds] * X.shape[1]


def types_of(X):
    """Return the types of a table's columns, that of an array once."""
    return _frames.types_of(form_of(X))
