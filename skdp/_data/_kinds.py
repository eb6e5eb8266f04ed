"""Kinds of a table's columns, from the types in its container and never from values."""

import numpy as np

from skdp._data import _frames
from skdp._data._chunked import meta_of
from skdp._data._columns import read_columns


def read_kinds(estimator, X, *, reset=True):
    """Return a table as a `ColumnTable`, and the kind of each column."""
    table = read_columns(estimator, X, reset=reset, allow_nan=True)
    if table.matrix is None:
        return table, container_kinds(X)
    return table, container_kinds(table.matrix)


def container_kinds(X):
    """Return the kind of each column, determined only by its type.

    Parameters
    ----------
    X : array, sparse matrix, ChunkedArray or DataFrame

    Returns
    -------
    list of {"number", "date", "duration", "boolean", "label", "object", "cells"}
        "object" is a column of objects in a frame, such as strings in pandas 2. "cells" are the
        columns of an array of objects or of a list of rows, in which numbers are objects too.
    """
    if type(X) is np.ndarray and X.dtype.kind in _frames.NUMBERS:
        kind = "number"
        if X.dtype.kind == "b":
            kind = "boolean"
        return [kind] * X.shape[1]
    meta = meta_of(X)
    kinds = _frames.map_types(_frames.kind_of, _frames.types_of(meta))
    if _frames.is_frame(meta):
        return kinds
    return ["cells" if kind == "object" else kind for kind in kinds] * X.shape[1]


def types_of(X):
    """Return the types of a table's columns; an array has a single type."""
    return _frames.types_of(meta_of(X))
