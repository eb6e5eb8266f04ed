"""Tables of numeric and of categorical columns, read block by block."""

from collections.abc import Mapping

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import validate_data

from skdp.utils._chunked import as_chunked
from skdp.utils._tables import block_size, row_blocks, validate_table

__all__ = ["ColumnTable", "category_codes", "column_entries", "validate_columns"]

UNDECLARED = -1


class ColumnTable:
    """The columns of a table, converted when a block of them is read.

    Parameters
    ----------
    shape : tuple of (int, int)
    matrix : ndarray or ChunkedArray, default=None
        All columns.
        None where they have no common array.
    columns : list of ndarray of shape (n_rows,), default=None
        The columns one by one, where `matrix` is None.
    """

    def __init__(self, shape, matrix=None, columns=None):
        self.shape, self.matrix, self._columns = shape, matrix, columns

    def blocks(self, n_columns=None):
        """Yield slices of rows, of about a megabyte of `n_columns` (all) float64 columns."""
        yield from row_blocks(self.shape[0], block_size(n_columns or self.shape[1]))

    def numeric(self, columns, rows):
        """Return some columns of a slice of rows in double precision; it may be a view.

        Parameters
        ----------
        columns : ndarray of int
        rows : slice

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            What overflows is infinite.
        """
        with np.errstate(all="ignore"):
            if self.matrix is None:
                parts = [_as_float(self._columns[j][rows]) for j in columns]
                return np.column_stack(parts)
            block = self.matrix[rows]
            block = block if len(columns) == self.shape[1] else block[:, columns]
            return np.asarray(_as_float(block))

    def values(self, column, rows):
        """Return the raw values of a column's slice of rows, an array of any type."""
        if self.matrix is None:
            return self._columns[column][rows]
        return self.matrix[rows][:, column]

    def check_numeric(self, columns, allow_nan=False):
        """Raise `ValueError` unless some columns hold finite numbers.

        Parameters
        ----------
        columns : iterable of int
        allow_nan : bool, default=False
            Whether missing values may occur.
        """
        for j in columns:
            for rows in self.blocks(1):
                try:
                    values = _as_float(self.values(j, rows))
                except (TypeError, ValueError, OverflowError):
                    raise ValueError(
                        f"column {j} holds values that are not numbers; declare its categories "
                        "if it is categorical"
                    ) from None
                assert_all_finite(values, allow_nan=allow_nan, input_name=f"column {j}")

    def check_present(self, columns):
        """Raise `ValueError` if a value of some categorical columns is NaN, None or infinite."""
        for j in columns:
            for rows in self.blocks(1):
                values = self.values(j, rows)
                if values.dtype.kind == "f":
                    assert_all_finite(values, input_name=f"column {j}")
                elif values.dtype.kind == "O" and any(_is_missing(value) for value in values):
                    raise ValueError(
                        f"column {j} contains NaN or None; give missing values a category of "
                        "their own"
                    )


def validate_columns(estimator, X, *, categorical=False, reset=True, allow_nan=False):
    """Check a table as scikit-learn does, and set or compare the features' number and names.

    Parameters
    ----------
    estimator : estimator
    X : array-like, DataFrame, ChunkedArray or dask array of shape (n_samples, n_features)
    categorical : bool, default=False
        Whether some columns are categorical. If none is, all values must be numbers and are
        checked here. If some are, the caller has the others checked by
        `ColumnTable.check_numeric`.
    reset : bool, default=True
        Whether to set `n_features_in_` and `feature_names_in_`, or to compare with them.
    allow_nan : bool, default=False
        Whether numeric columns may hold NaN.

    Returns
    -------
    ColumnTable
        Nothing is copied where no conversion is needed, and what needs one is converted when
        it is read.

    Raises
    ------
    ValueError
        If scikit-learn would raise it.
    """
    finite = "allow-nan" if allow_nan else True
    if as_chunked(X) is not None:
        chunked = validate_table(estimator, X, reset=reset)
        return ColumnTable(chunked.shape, chunked)
    if not categorical:
        X = validate_data(
            estimator, X, reset=reset, dtype="numeric", order=None, ensure_all_finite=finite
        )
        return ColumnTable(X.shape, X)
    if _is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        columns = [_frame_column(X, j) for j in range(X.shape[1])]
        _check_shape(X.shape)
        return ColumnTable(X.shape, columns=columns)
    if not hasattr(X, "dtype"):
        plain = np.asarray(X)
        X = np.array(X, dtype=object) if plain.dtype.kind in "US" else plain
    X = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite=False)
    return ColumnTable(X.shape, X)


def column_entries(value, names, n_features, what):
    """Return a parameter's entry for each column, None where it has none.

    Parameters
    ----------
    value : dict of column to entry, sequence of n_features entries, or None
        Columns are named by their position or, where the table has names, by their name.
    names : ndarray of str or None
        The estimator's `feature_names_in_`, if it has them.
    n_features : int
    what : str
        The parameter's name, for errors.

    Returns
    -------
    list of length n_features

    Raises
    ------
    ValueError
        If a column does not exist, is named twice, or the length is another.
    """
    if value is None:
        return [None] * n_features
    if not isinstance(value, Mapping):
        if len(value) != n_features:
            raise ValueError(f"{what} has {len(value)} entries, X has {n_features} columns")
        return list(value)
    positions = {name: j for j, name in enumerate(names)} if names is not None else {}
    entries = [None] * n_features
    for key, entry in value.items():
        j = positions.get(key, key)
        is_position = isinstance(j, int | np.integer) and not isinstance(j, bool)
        if not is_position or not 0 <= j < n_features:
            raise ValueError(f"{what}: X has no column {key!r}")
        if entries[j] is not None:
            raise ValueError(f"{what} names column {j} twice")
        entries[j] = entry
    return entries


def category_codes(values, categories, other=UNDECLARED):
    """Return the position of each value among the categories.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Of any type; what cannot be compared is undeclared. It never raises.
    categories : ndarray of shape (n_categories,)
        As `skdp.mechanisms._randomized_response.categories_array` returns them.
    other : int, default=-1
        The code of a value that is not among them.

    Returns
    -------
    ndarray of shape (n_rows,), dtype int64
    """
    if values.dtype.kind in "biuf" and categories.dtype.kind in "biuf":
        order = np.argsort(categories, kind="stable")
        place = np.searchsorted(categories, values, sorter=order)
        codes = order[np.minimum(place, len(categories) - 1)]
        return np.where(categories[codes] == values, codes, other)
    index = {label: code for code, label in enumerate(categories.tolist())}
    listed = values.tolist()
    try:
        codes = [index.get(value, other) for value in listed]
    except TypeError:
        codes = [_code(value, index, other) for value in listed]
    return np.array(codes, dtype=np.int64)


def _code(value, index, other):
    try:
        return index.get(value, other)
    except TypeError:
        return other


def _as_float(values):
    """Return numbers in double precision; strings, also of digits, raise `ValueError`."""
    if values.dtype.kind in "USMm":
        raise ValueError("not numbers")
    if values.dtype.kind == "O" and any(isinstance(v, str | bytes) for v in values.ravel()):
        raise ValueError("not numbers")
    return values.astype(np.float64, copy=False)


def _is_missing(value):
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        # pandas.NA is no truth value.
        return type(value).__name__ == "NAType"


def _is_frame(X):
    return hasattr(X, "columns") and hasattr(X, "dtypes") and not hasattr(X, "dtype")


def _frame_column(frame, j):
    column = frame.iloc[:, j] if hasattr(frame, "iloc") else frame[:, j]
    return np.asarray(column)


def _check_shape(shape):
    for length, what in zip(shape, ("sample", "feature"), strict=True):
        if length < 1:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required."
            )
