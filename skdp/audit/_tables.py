"""Neighboring tables, and tables with canaries, in any container that an audit accepts."""

from contextlib import suppress
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.sparse import csr_array, hstack, issparse, vstack
from sklearn.base import is_classifier, is_regressor

from skdp._data._containers import as_numbers
from skdp._data._frames import columns_of, take_rows
from skdp.audit._outputs import parameter
from skdp.utils._values import FrozenValue


def as_table(X):
    """Return a table as a frame (unchanged), a CSR matrix, or an array of float64 or objects.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
    """
    if hasattr(X, "columns"):
        return X
    if issparse(X):
        return X.tocsr()
    if hasattr(X, "dtype"):
        array = np.asarray(X)
    else:
        # Mixed values keep their types.
        array = np.array(X, dtype=object)
    if array.dtype.kind in "biufO" and is_numeric(array):
        return as_numbers(array)
    return array


def append_row(table, row):
    """Return a table with a row appended, in the same container.

    Parameters
    ----------
    table : table, as `as_table` returns it
    row : sequence of shape (n_features,)
    """
    if issparse(table):
        return vstack([table, csr_array(np.asarray(row, dtype=float)[None, :])], format="csr")
    if not hasattr(table, "columns"):
        # Types other than float and object may be too narrow for the row.
        dtype = None
        if table.dtype.kind in "fO":
            dtype = table.dtype
        row = np.asarray(row, dtype=dtype)
        return np.concatenate([table, row[None, :]])
    row = list(row)
    names = list(table.columns)
    columns = [[*column_of(table, index), value] for index, value in enumerate(row)]
    for column in columns:
        # An integral float becomes an integer in a column of integers.
        kind = type(column[0])
        value = column[-1]
        is_whole = isinstance(value, float) and value.is_integer()
        if is_whole and issubclass(kind, int) and kind(value) == value:
            column[-1] = kind(value)
    if not hasattr(table, "iloc"):
        return type(table)(dict(zip(names, columns, strict=True)), schema=table.schema)
    frame = type(table)(dict(enumerate(columns)))
    kinds = {index: kind for index, kind in enumerate(table.dtypes) if _can_hold(kind, row[index])}
    cells = zip(names, table.dtypes, row, frame.iloc[-1].isna(), strict=True)
    for name, kind, value, missing in cells:
        if hasattr(kind, "categories") and not missing and value not in kind.categories:
            raise ValueError(
                f"canary has {value!r} in column {name!r}, which is not one of its categories"
            )
    frame = frame.astype(kinds)
    frame.columns = table.columns
    return frame


def append_columns(table, numbers):
    """Return a table with numeric columns appended, in the same container.

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


def coordinates(table):
    """Return a table as numbers; text becomes the fraction of rows that have a different text.

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
    columns = []
    for index, is_number in enumerate(numeric_columns(table)):
        column = column_of(table, index)
        if not is_number:
            codes = np.unique([repr(value) for value in column], return_inverse=True)[1]
            column = 1.0 - np.bincount(codes)[codes] / len(column)
        column = as_numbers(np.array(column, dtype=object))
        missing = np.isnan(column)
        mean = 0.0
        if not missing.all():
            mean = np.mean(column[~missing])
        column[missing] = mean
        columns.append(column)
    return np.column_stack(columns)


def numeric_columns(table):
    """Return a mask of the columns whose values are all numbers or missing."""
    if issparse(table):
        return np.full(table.shape[1], True)
    return np.array([is_numeric(column_of(table, j)) for j in range(table.shape[1])])


def null_row(table, rows):
    """Return a row with zeros in numeric columns.

    Any other column j has its value in row `rows[j]`.
    """
    row = []
    for j, is_number in enumerate(numeric_columns(table)):
        if is_number:
            row.append(0.0)
        else:
            row.append(column_of(table, j)[rows[j]])
    return row


def is_numeric(values):
    """Return True if all values are numbers or missing.

    Parameters
    ----------
    values : array-like
    """
    array = np.asarray(values, dtype=object).ravel()
    with suppress(TypeError, ValueError):
        as_numbers(array)
        return not any(isinstance(value, str | bytes) for value in array)
    return False


def column_of(table, index):
    """Return the column of a dense table or frame at a position."""
    if hasattr(table, "columns"):
        return columns_of(table)[index].to_list()
    return table[:, index]


def _can_hold(kind, value):
    """Return True if a column of a dtype can hold a value.

    If it cannot, the column is converted to another dtype in both tables: a fraction turns integers
    into floats.
    """
    if isinstance(kind, np.dtype) and kind.kind in "iu":
        return isinstance(value, Real) and float(value).is_integer()
    return not isinstance(kind, np.dtype) or kind.kind != "b" or isinstance(value, bool | np.bool_)


# Norm of the short rows of `worst_case_tables`, as a fraction of the largest allowed norm.
SHORT_NORM_FRACTION = 0.01
# Norm of a canary that must be clipped, as a multiple of the norm that the estimator declares.
FAR_FACTOR = 10.0


@dataclass(frozen=True, eq=False)
class NeighboringTables(FrozenValue):
    """Two neighboring tables, one with the canary as its last row and one without it.

    An audit repeats the canary's row for every row of its unit.
    """

    X_in: object
    y_in: np.ndarray
    X_out: object
    y_out: np.ndarray

    @property
    def is_removal(self):
        """True if the table without the canary is shorter."""
        return len(self.y_in) > len(self.y_out)


def canary_tables(X, y, canary, relation, replacement=None):
    """Return a table with a canary and the same table without it.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    canary : tuple of (row, label)
    relation : {"add_remove", "replace_one"}
        Under "replace_one", the other table contains the canary with another label.
    replacement : tuple of (row, label), or None
        Row that replaces the canary in the other table.

    Returns
    -------
    NeighboringTables
    """
    X, y = as_table(X), np.asarray(y)
    labels = np.unique(y)
    pool = append_row(X, canary[0])
    targets = np.append(y, canary[1])
    n = len(y)
    if replacement is None and relation == "replace_one":
        other_label = labels[-1]
        if other_label == canary[1]:
            other_label = labels[0]
        replacement = canary[0], other_label
    # Both tables are taken from one, so they have the same dtypes.
    inside = np.arange(n + 1)
    outside = np.arange(n)
    if replacement is not None:
        pool = append_row(pool, replacement[0])
        targets = np.append(targets, replacement[1])
        outside = np.append(outside, n + 1)
    tables = (take_rows(pool, inside), targets[inside], take_rows(pool, outside), targets[outside])
    return NeighboringTables(*tables)


def default_canaries(estimator, X, y):
    """Return the default canaries of an audit, as (row, label) pairs.

    Both have the rarest label and the direction in which the table varies least. One has the
    largest norm in the table. The other, which a private estimator must clip, has ten times that
    norm or ten times `data_norm`, whichever is larger.

    Parameters
    ----------
    estimator : estimator
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    """
    X = as_table(X)
    labels, counts = np.unique(y, return_counts=True)
    label = labels[np.argmin(counts)]
    row = max_norm_row(X)
    far_row = max_norm_row(X, declared_norm(estimator), FAR_FACTOR)
    if row == far_row:
        return [(row, label)]
    return [(far_row, label), (row, label)]


def max_norm_row(X, norm=None, factor=1.0):
    """Return a row with the largest norm in the direction in which a table varies least.

    A column without numbers gets its rarest value.

    Parameters
    ----------
    X : table, as `as_table` returns it
    norm : float, default=None
        Used if it is larger than the largest norm of a row.
    factor : float, default=1.0
        Factor by which the norm is multiplied.

    Returns
    -------
    list of length n_features
    """
    numbers = coordinates(X)
    numeric = numeric_columns(X)
    row = null_row(X, np.argmax(numbers, axis=0))
    if numeric.any():
        squares = np.einsum("ij,ij->i", numbers[:, numeric], numbers[:, numeric])
        spread = np.where(numeric, np.var(numbers, axis=0), np.inf)
        longest = float(np.sqrt(np.max(squares)))
        row[int(np.argmin(spread))] = factor * max(longest, norm or 0.0)
    return row


def declared_norm(estimator):
    """Return the `data_norm` that an estimator declares as a number, or None."""
    norm = parameter(estimator, "data_norm")
    if _is_number(norm):
        return float(norm)
    return None


def _is_number(value):
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _declared_pair(estimator, name):
    """Return a parameter that declares a range as two numbers, or None.

    None is also returned for "auto" and for a range per column. Canaries then have their default
    norm or targets. Nested estimators are searched, too; see `parameter`.
    """
    value = parameter(estimator, name)
    is_pair = isinstance(value, list | tuple | np.ndarray) and np.shape(value) == (2,)
    if is_pair and all(map(_is_number, value)):
        return tuple(map(float, value))
    return None


def _declared_max_value(estimator):
    """Return the largest unclipped value in the first column, or 1 if nothing is declared.

    Its sign is that of the bound with the larger absolute value.
    """
    norm = declared_norm(estimator)
    bounds = _declared_pair(estimator, "bounds")
    if norm is not None:
        return norm
    if bounds is None:
        return 1.0
    return max(bounds, key=abs)


def worst_case_tables(estimator, n_samples, relation):
    """Return neighboring tables that differ in the row with the largest effect on a linear model.

    Many short rows determine the sign of the first weight and hardly affect the curvature of the
    objective. In one pair, the canary has the other label and the largest allowed norm. In the
    other pairs, it has ten times that norm, or a target far outside the declared range, so that the
    effect on an estimator without clipping is ten times as large. The second feature has no effect
    on the canary. Under "replace_one", the other table contains the canary with the usual label, or
    the negated canary if the estimator has no target.

    Parameters
    ----------
    estimator : estimator
        Its `data_norm`, or its pair of `bounds`, determines the norm of the canary; without these,
        the norm is 1.
    n_samples : int
    relation : {"add_remove", "replace_one"}

    Returns
    -------
    list of NeighboringTables
        Tables for which an estimator might raise an error come first.
    """
    max_value = _declared_max_value(estimator)
    low, high, far_target = _target_ends(estimator)
    has_target = is_classifier(estimator) or is_regressor(estimator)

    def pair(value, label):
        """Return tables whose last row, the canary, has this first feature and this target."""
        # Each table has a short row with the canary's label, so both labels occur in each table.
        X = np.zeros((n_samples, 2))
        X[:-1, 0] = SHORT_NORM_FRACTION * max_value
        X[0] = 0.0, SHORT_NORM_FRACTION * max_value
        X[-1, 0] = value
        has_label = np.zeros(n_samples, dtype=int)
        has_label[0] = has_label[-1] = 1
        targets = np.array([high, label])
        y = targets[has_label]
        if relation == "add_remove":
            return NeighboringTables(X, y, X[:-1], y[:-1])
        X_out = X.copy()
        if has_target:
            has_label[-1] = 0
        else:
            X_out[-1, 0] = -value
        return NeighboringTables(X, y, X_out, targets[has_label])

    pairs = [pair(FAR_FACTOR * max_value, low)]
    if far_target is not None:
        pairs.append(pair(max_value, far_target))
    return [*pairs, pair(max_value, low)]


def _target_ends(estimator):
    """Return two labels or targets, and a target beyond the declared ones, or None."""
    if not is_regressor(estimator):
        classes = None
        if is_classifier(estimator):
            classes = parameter(estimator, "classes")
        if classes is None:
            classes = (0, 1)
        low, *_, high = classes
        return low, high, None
    ends = _declared_pair(estimator, "target_bounds")
    if ends is None:
        return 0.0, 1.0, None
    low, high = ends
    return low, high, high - FAR_FACTOR * (high - low)


def with_as_many_rows(tables):
    """Return tables of equal size: the second has a copy of the central row instead of the canary.

    Parameters
    ----------
    tables : NeighboringTables
        A table with a canary as its last row, and the same table without it.

    Returns
    -------
    NeighboringTables
        The two tables differ by a removal and an addition.
    """
    X, y = tables.X_out, tables.y_out
    rows = np.append(np.arange(len(y)), central_row(X))
    return NeighboringTables(tables.X_in, tables.y_in, take_rows(X, rows), y[rows])


def central_row(X):
    """Return the position of the row that is nearest to the mean.

    Parameters
    ----------
    X : table, as `as_table` returns it
    """
    numbers = coordinates(X)
    return int(np.argmin(np.linalg.norm(numbers - numbers.mean(axis=0), axis=1)))


def other_tables(tables):
    """Return other tables with the size of the larger one: two with a repeated row, and a neighbor.

    A number that is equal in all fits to these tables and to the larger table depends only on the
    number of rows.

    Parameters
    ----------
    tables : NeighboringTables

    Returns
    -------
    list of tuple of (X, y)
    """
    n = len(tables.y_in)
    neighbor = with_as_many_rows(tables)
    repeated = (np.full(n, n - 1), np.full(n, central_row(tables.X_out)))
    same = [(take_rows(tables.X_in, rows), _other_targets(tables.y_in)) for rows in repeated]
    return [*same, (neighbor.X_out, neighbor.y_out)]


def _other_targets(y):
    """Return targets with the dtype and the labels of y, but other statistics."""
    if y.dtype.kind == "f":
        return 0.5 * y[::-1]
    labels = np.unique(y)
    other = np.full(len(y), labels[0])
    other[: len(labels)] = labels
    return other


@dataclass(frozen=True, eq=False)
class Canaries(FrozenValue):
    """A table with canaries; a coin flip decides the presence or the label of each one.

    Parameters
    ----------
    X, y : table and ndarray
        The table and the targets to which the estimator is fitted.
    rows : table of n_canaries + 1 rows
        The canaries, followed by a row with zeros in their columns.
    labels : ndarray of shape (n_canaries,)
        Label of each canary if its coin is True.
    coins : ndarray of bool, shape (n_canaries,)
    """

    X: object
    y: np.ndarray
    rows: object
    labels: np.ndarray
    coins: np.ndarray


def orthogonal_canaries(X, y, n_canaries, norm, relation, random):
    """Return a table with orthogonal canaries, each of which is nonzero only in its own column.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    n_canaries : int
    norm : float
        Norm of a canary.
    relation : {"add_remove", "replace_one"}
        Under "add_remove", a coin decides whether a canary is present; otherwise, which of two
        labels it has.
    random : RandomState
        Source of coins and labels.

    Returns
    -------
    Canaries
    """
    X, y = as_table(X), np.asarray(y)
    coins = random.randint(0, 2, n_canaries).astype(bool)
    classes = np.unique(y)
    codes = random.randint(0, len(classes), n_canaries)
    labels = classes[codes]
    others = classes[(codes + len(classes) // 2) % len(classes)]
    targets = np.where(coins, labels, others)
    present = np.full(n_canaries, True)
    if relation == "add_remove":
        targets = labels[coins]
        present = coins
    n = len(y)
    indices = len(y) + np.arange(n_canaries + 1)
    # Columns without numbers get the values of the first row.
    longer = append_row(X, null_row(X, np.zeros(X.shape[1], dtype=int)))
    longer = take_rows(longer, np.minimum(np.arange(n + n_canaries + 1), n))
    pool = append_columns(longer, norm * np.eye(n + n_canaries + 1, n_canaries, k=-n))
    table = take_rows(pool, np.append(np.arange(n), indices[:-1][present]))
    return Canaries(table, np.append(y, targets), take_rows(pool, indices), labels, coins)
