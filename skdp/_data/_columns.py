"""Tables of numeric and of categorical columns, read block by block."""

from collections.abc import Mapping
from functools import partial

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from skdp._data._containers import as_cells, as_numbers, is_sequence
from skdp._data._parts import Rows, block_size, cut, map_over, row_blocks
from skdp._data._persons import count_over, counts_of
from skdp._data._refusals import check_finite, column_name
from skdp._data._tables import read_table
from skdp.utils._chunked import ChunkedArray, as_chunked
from skdp.utils._frames import frame_columns, in_memory, is_frame, names_of
from skdp.utils._labels import UNDECLARED, category_codes, is_missing
from skdp.utils._validation import broadcast_bounds, check_bounds, is_auto


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
    numeric : list of bool, default=None
        Whether each column's declared type is one of numbers, where `matrix` is None.
    names : list, default=None
        Of the columns.
    """

    def __init__(self, shape, matrix=None, columns=None, numeric=None, names=None):
        self.shape, self.matrix, self._columns, self._names = shape, matrix, columns, names
        self.borders = getattr(matrix, "borders", (0, shape[0]))
        if numeric is None:
            numeric = [matrix is None or matrix.dtype.kind in "biuf"] * shape[1]
        self.numeric_types = numeric

    def name(self, j):
        """Return what a column is called in errors."""
        return column_name(j, self._names)

    def column(self, j):
        """Return the raw values of a column, as `Rows`."""
        return self.rows(partial(ColumnTable.values, column=j), 1)

    def numbers(self, columns=None):
        """Return some columns, or all, in double precision, as `Rows`."""
        columns = np.arange(self.shape[1]) if columns is None else columns
        return self.rows(partial(ColumnTable.numeric, columns=columns), len(columns))

    def rows(self, read, n_columns):
        """Return as `Rows` what a function of a module makes of such a table and a slice `rows`."""
        parts = self if self.matrix is None else self.matrix
        return Rows(parts, read=partial(_read_part, read), n_columns=n_columns)

    def codes(self, j, categories, other=UNDECLARED):
        """Return the code of each value of a column, as `category_codes` does."""
        return map_over(self.column(j), category_codes, categories, other, dtype=np.int64)

    def label_counts(self, j, categories, other=UNDECLARED, shares=None):
        """Return how often each category occurs in a column, by the rows' shares if there are."""
        small = categories, other
        return count_over(self.column(j), _add_labels, len(categories), *small, shares=shares)

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
                return np.column_stack([as_numbers(self._columns[j][rows]) for j in columns])
            block = self.matrix[rows]
            return as_numbers(block if len(columns) == self.shape[1] else block[:, columns])

    def values(self, column, rows):
        """Return the raw values of a column's slice of rows, an array of any type."""
        if self.matrix is None:
            return self._columns[column][rows]
        return self.matrix[rows][:, column]

    def hold(self, j, numbers):
        """Replace a column of objects by what a function makes of it.

        Asked for its number again, a cell could give another one, or raise after the charge.
        """
        if self.matrix is not None and self.matrix.dtype.kind == "O":
            self._columns, self.matrix = list(self.matrix.T), None
        if self.matrix is None and self._columns[j].dtype.kind == "O":
            self._columns[j] = numbers(self._columns[j], self.name(j))

    def check_numeric(self, columns):
        """Raise `ValueError` unless some columns hold finite numbers."""
        for j in columns:
            self.hold(j, as_numbers)
        for values, j in self.values_of(columns):
            check_finite(as_numbers(values, self.name(j)), self.name(j))

    def check_present(self, columns):
        """Raise `ValueError` if a value of some categorical columns is NaN, None or infinite."""
        self.check_not_infinite(columns, allow_nan=False)
        for values, j in self.values_of(columns):
            if values.dtype.kind in "OmM" and any(map(is_missing, values)):
                raise ValueError(
                    f"{self.name(j)} contains NaN or None; give missing values a category of their "
                    "own, by DPSimpleImputer(strategy='constant')"
                )

    def check_not_infinite(self, columns, *, allow_nan):
        """Raise `ValueError` if an array of floats holds an infinite value."""
        for values, j in self.values_of(columns):
            if values.dtype.kind == "f":
                check_finite(values, self.name(j), allow_nan=allow_nan)

    def values_of(self, columns):
        """Yield the raw values of columns in blocks, each with its position, to be checked."""
        # Chunks hold numbers, which were checked when the table was read.
        if isinstance(self.matrix, ChunkedArray):
            return
        for rows in row_blocks(self, block_size(1)):
            yield from ((self.values(j, rows), j) for j in columns)


def each_column(X):
    """Return an iterable of the columns of an array, or of a `ChunkedArray`: one at a time."""
    if not isinstance(X, ChunkedArray):
        return X.T
    table = ColumnTable(X.shape, X)
    return (as_numbers(table.column(j).whole()) for j in range(X.shape[1]))


def _read_part(read, X, rows):
    if isinstance(X, ColumnTable):
        return read(X, rows=rows)
    # Columns that are read one by one would be decoded as often.
    block = X[rows]
    return read(ColumnTable(block.shape, block), rows=slice(len(block)))


def _add_labels(counts, values, shares, categories, other):
    places = slice(None)
    if values.dtype.kind in "biuf":
        values, places = np.unique(values, return_inverse=True)
    codes = category_codes(values, categories, other)[places]
    known = codes >= 0
    counts += counts_of(codes[known], cut(shares, known), len(counts))


def split_by_column(values, columns):
    """Return the parts of values that stand one behind another, as many as each column has."""
    return np.split(values, np.cumsum([len(own) for own in columns])[:-1])


def read_columns(estimator, X, *, reset=True, allow_nan=False):
    """Read a table some of whose columns may be categorical, each cell by itself.

    Numeric columns are checked by `ColumnTable.check_numeric`.

    Parameters
    ----------
    estimator : estimator
    X : array-like, DataFrame, ChunkedArray or what it reads, of shape (n_samples, n_features)
    reset : bool, default=True
        Whether to set `n_features_in_` and `feature_names_in_`, or to compare with them.
    allow_nan : bool, default=False
        Whether values may be missing in a table that is read in parts; in others nothing is said.

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
    chunked = as_chunked(X)
    if chunked is not None:
        return read_numeric_columns(estimator, chunked, reset=reset, allow_nan=allow_nan)
    if is_frame(X):
        X = in_memory(X)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        columns, numeric = frame_columns(X)
        shape = (len(X), len(columns))
        # It raises as scikit-learn does where there is no row or no column.
        check_array(np.broadcast_to(0.0, shape), estimator=estimator)
        return ColumnTable(shape, columns=columns, numeric=numeric, names=names_of(X))
    if not hasattr(X, "dtype"):
        X = as_cells(X) if is_sequence(X) else np.asarray(X)
    X = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite=False)
    return ColumnTable(X.shape, X)


def read_numeric_columns(estimator, X, *, reset=True, allow_nan=False):
    """Read a table of numbers as `read_table` does, as a `ColumnTable`."""
    matrix = read_table(estimator, X, reset=reset, allow_nan=allow_nan)
    return ColumnTable(matrix.shape, matrix)


def declared_bounds(bounds, shape, columns=None):
    """Return (low, high) of some columns, or None for "auto".

    Parameters
    ----------
    bounds : "auto", tuple of (low, high) or dict of column to (low, high)
    shape : TableShape
        Whose names a dict may use.
    columns : ndarray of int, default=None
        The ones whose bounds are needed; others need no entry. None takes all.

    Returns
    -------
    tuple of ndarray of shape (n_columns,), float64

    Raises
    ------
    ValueError
        If they are not as described, or name no column of the table.
    """
    if is_auto(bounds):
        return None
    columns = np.arange(shape.n_columns) if columns is None else columns
    if not isinstance(bounds, Mapping):
        ends = broadcast_bounds(bounds, shape.n_columns)
        return check_bounds([end[columns] for end in ends], len(columns))
    entries = all_declared(bounds, shape, "bounds", columns)
    low, high = zip(*(check_bounds(entry, 1) for entry in entries), strict=True)
    return np.concatenate(low), np.concatenate(high)


def all_declared(value, shape, what, columns):
    """Return the entries of some columns in a dict, or raise `ValueError` where one has none."""
    entries = column_entries(value, shape.names, shape.n_columns, what)
    names = range(shape.n_columns) if shape.names is None else shape.names
    missing = [names[j] for j in columns if entries[j] is None]
    if missing:
        raise ValueError(f"{what}: columns {missing[:5]} have none")
    return [entries[j] for j in columns]


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
