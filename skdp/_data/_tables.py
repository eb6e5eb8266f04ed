"""Tables and targets as estimators read them: checked once, then block by block in doubles."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp._data import _containers
from skdp._data._errors import (
    check_finite,
    check_no_label_is_missing,
    column_name,
    non_numeric_error,
)
from skdp._data._parts import Rows, map_over, sum_over
from skdp.utils import _frames
from skdp.utils._chunked import as_chunked, meta_of
from skdp.utils._labels import INTEGERS_APART, is_missing, text_array
from skdp.utils._row_wise import row_products
from skdp.utils._values import FrozenValue


def read_table(estimator, X, *, reset=True, allow_nan=False, accept_sparse=False):
    """Read a table of numbers, each row by itself, and set or compare the features' number.

    Parameters
    ----------
    estimator : estimator
    X : array-like, DataFrame, ChunkedArray or what it reads, of shape (n_samples, n_features)
        A sparse matrix too, of any format, with `accept_sparse`.
    reset : bool, default=True
        Whether to set `n_features_in_` and `feature_names_in_`, or to compare with them.
    allow_nan : bool, default=False
        Whether values may be missing.
    accept_sparse : bool, default=False
        Whether X may be sparse.

    Returns
    -------
    ndarray, csr_array or ChunkedArray
        Of numbers of at most double precision. Not copied where no conversion is needed.

    Raises
    ------
    TypeError, ValueError
        If scikit-learn would raise it: a value is no number or not finite, the table is empty.
    """
    chunked = as_chunked(X)
    if chunked is not None:
        validate_meta(estimator, chunked, reset=reset)
        check_chunks(chunked, allow_nan=allow_nan)
        return chunked
    _frames.check_names_differ(X)
    given = X
    names = _frames.names_of(X) if _frames.is_frame(X) else None
    if not issparse(X):
        X = number_matrix(X)
    elif accept_sparse:
        X = _containers.as_csr(X)
    checks = {"accept_sparse": "csr" if accept_sparse else False, "ensure_all_finite": False}
    X = check_array(X, order=None, estimator=estimator, input_name="X", **checks)
    # A frame has the columns' names; its values were checked as an array.
    validate_data(estimator, X if names is None else given, reset=reset, skip_check_array=True)
    check_finite(X, "X", allow_nan=allow_nan, names=names)
    return csr_array(X) if issparse(X) else X


def validate_meta(estimator, chunked, *, reset=True):
    """Set or compare the features of a `ChunkedArray`; return what has their names and types."""
    # It raises as scikit-learn does where there is no row or no column.
    check_array(np.zeros([min(length, 1) for length in chunked.shape]))
    form = meta_of(chunked)
    validate_data(estimator, form, reset=reset, skip_check_array=True)
    return form


def read_array(estimator, X, *, reset=True, dtype=None):
    """Read a dense table of numbers into one array, each row by itself.

    Parameters
    ----------
    estimator : estimator
        Whose number and names of features are set or compared.
    X : array-like, DataFrame, ChunkedArray or what it reads, of shape (n_samples, n_features)
        Finite numbers.
    reset : bool, default=True
        Whether to set `n_features_in_` and `feature_names_in_`, or to compare with them.
    dtype : dtype, default=None
        What to convert the values to; None leaves them.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Not copied where no conversion is needed.

    Raises
    ------
    TypeError, ValueError
        If scikit-learn would raise it: a value is no number or not finite, the table is empty.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from skdp.base import read_array
    >>> read_array(BaseEstimator(), [[1, 2.5], [True, 3]], dtype=float)
    array([[1. , 2.5],
           [1. , 3. ]])
    """
    return np.asarray(read_table(estimator, X, reset=reset), dtype=dtype)


@dataclass(frozen=True, kw_only=True, eq=False)
class TableShape(FrozenValue):
    """What a plan may know of a table: what is public, and nothing else.

    Parameters
    ----------
    n_rows : int or None
        The number of rows; of persons, where the unit is a person. None if it is not known.
    n_columns : int or None
        The number of columns, None if it is not known.
    classes : ndarray of shape (n_classes,), default=None
        The label set of y, sorted; None without labels.
    names : ndarray of str of shape (n_columns,), default=None
        The columns' names, where the container has them.
    kinds : list of str of length n_columns, default=None
        What the container says of each column: "number", "date", "duration", "boolean", "label" or
        "object".

    Examples
    --------
    >>> from skdp.base import TableShape
    >>> TableShape(n_rows=1000, n_columns=3).n_columns
    3
    """

    n_rows: int | None
    n_columns: int | None
    classes: object = None
    names: object = None
    kinds: object = None


@dataclass(frozen=True, eq=False)
class RowsAndTarget(FrozenValue):
    """What the plan of a supervised fit runs on: a table as it was read, and a number a row.

    Parameters
    ----------
    X : array, CSR matrix, ChunkedArray or ColumnTable of shape (n_rows, n_columns)
    y : array of shape (n_rows,)
        Class codes or targets.
    """

    X: object
    y: object


def read_samples(estimator, X):
    """Return samples for a fitted transformer of numbers, in double precision."""
    check_is_fitted(estimator)
    return read_array(estimator, X, dtype=np.float64, reset=False)


def number_matrix(X):
    """Return a table as an array of numbers where it is of a kind that scikit-learn would convert.

    Parameters
    ----------
    X : array-like or DataFrame

    Returns
    -------
    array-like
        X itself where it is an array of numbers, or no table.
    """
    X = _frames.in_memory(X)
    if _frames.is_frame(X):
        dtypes = {str(dtype) for dtype in X.dtypes} if hasattr(X, "iloc") else ()
        one_type = len(dtypes) == 1 and isinstance(X.dtypes.iloc[0], np.dtype)
        if one_type and X.dtypes.iloc[0].kind in "biuf":
            return _containers.doubles_at_most(np.asarray(X))
        blocks = _frames.frame_blocks(X, without_zones=True)
        columns, _ = _frames.columns_in_blocks(blocks)
        matrix = np.empty((len(X), len(columns)))
        names = _frames.names_of(X)
        numbers = [block for block in blocks if block.values.dtype.kind in _frames.NUMBERS]
        for block in numbers:
            matrix[:, block.columns] = _containers.as_numbers(block.values)
        for j in sorted(set(range(len(columns))).difference(*(b.columns for b in numbers))):
            matrix[:, j] = _containers.as_numbers(columns[j], column_name(j, names))
        return matrix
    X = _containers.as_cells(X) if _containers.is_sequence(X) else np.asarray(X)
    if X.dtype.kind in "OmMSU" and X.ndim in (1, 2):
        if X.ndim == 1 or not X.shape[1]:
            return _containers.as_numbers(X)
        named = ((each, column_name(j)) for j, each in enumerate(X.T))
        return np.column_stack([_containers.as_numbers(*each) for each in named])
    return _containers.doubles_at_most(X)


def number_array(a):
    """Return a vector or a matrix of numbers out of any container, each value read by itself.

    Parameters
    ----------
    a : array-like, Series or DataFrame

    Returns
    -------
    array-like
        `a` itself where it is an array of numbers, or nothing that can be one.
    """
    return number_matrix(_frames.column_values(a, without_zones=True)[0] if _is_column(a) else a)


def indexable_table(X):
    """Return a table whose rows can be taken by number, for steps of any kind.

    A list becomes an array of floats where every cell is a number, and of objects otherwise. A
    sparse matrix becomes a canonical CSR one.

    Raises
    ------
    ValueError
        If a column of a list has numbers beside other things: one row would decide what the
        others are converted to.
    """
    if issparse(X):
        return _containers.canonical_rows(_containers.as_csr(X))
    chunked = as_chunked(X) if getattr(X, "ndim", 2) == 2 else None
    if chunked is not None:
        return chunked
    if hasattr(X, "shape"):
        return X
    if not _containers.is_sequence(X):
        return np.asarray(X)
    cells = _containers.as_cells(X)
    if cells.ndim != 2:
        raise ValueError("Expected a 2-dimensional table, got a list of rows of several lengths")
    return _containers.as_numbers(cells) if all(numeric_columns(cells)) else cells


def numeric_columns(cells):
    """Return whether each column of a list's cells is one of numbers; missing cells are either.

    Raises
    ------
    ValueError
        If a column has numbers beside other things, or missing cells beside a single other one
        or none: one row would decide of what kind the column is.
    """
    kinds = []
    for j, column in enumerate(cells.T):
        present = [_is_number(value) for value in column if not is_missing(value)]
        if len(set(present)) > 1 or len(present) < 2 <= len(column):
            what = "numbers beside other things" if present[1:] else "fewer than two known values"
            raise ValueError(
                f"column {j} of the list has {what}; give a DataFrame or an array of objects"
            )
        kinds.append(all(present))
    return kinds


def read_target(estimator, y, n_rows):
    """Read labels or targets, one a row.

    Parameters
    ----------
    estimator : estimator
    y : array-like of shape (n_rows,)
    n_rows : int

    Returns
    -------
    ndarray of shape (n_rows,)

    Raises
    ------
    ValueError
        If there are none, a value is missing, or a list has numbers beside strings.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    y = column_or_1d(target_array(y), warn=True)
    check_no_label_is_missing(y)
    check_finite(y, "y")
    check_consistent_length(y, np.empty(n_rows))
    return y


def read_numeric_target(estimator, y, n_rows):
    """Read targets, in double precision unless they are whole numbers; as `read_target`."""
    y = read_target(estimator, y, n_rows)
    if y.dtype.kind not in "fiubO":
        raise ValueError(
            f"y must hold numbers, got an array of {y.dtype}; a classifier takes labels"
        )
    if y.dtype.kind in "iub":
        return y
    numbers = _containers.as_numbers(y, "y")
    # Of objects scikit-learn looks for NaN before it converts them, when None is none yet.
    check_finite(numbers, "y")
    return numbers


def target_array(y):
    """Return labels or targets as an array, without converting one because of another.

    Of a list whose numbers are all whole the array is one of integers, whatever their types.

    Raises
    ------
    ValueError
        If a list has labels of several kinds.
    """
    y = _frames.in_memory(y)
    if _containers.is_sequence(y):
        cells = _containers.as_cells(y)
        if cells.ndim == 2 and cells.shape[1] == 1:
            return target_array([row[0] for row in cells])[:, np.newaxis]
        if cells.ndim != 1:
            return cells
        kinds = {_kind_of_label(value) for value in cells}
        if len(kinds) > 1:
            check_no_label_is_missing(cells)
            raise ValueError(f"y mixes labels of several kinds: {', '.join(sorted(kinds))}")
        if kinds - {"number", "truth value", "string"}:
            return cells
        plain = [v.item() if isinstance(v, np.generic) else v for v in cells]
        if kinds == {"number"} and all(-(2**63) <= v < 2**63 and v == int(v) for v in plain):
            return np.array([int(v) for v in plain])
        if kinds == {"string"}:
            # Of a member of an Enum numpy takes the name, cut to the longest value.
            return text_array([str.__str__(v) for v in cells])
        return _unless_rounded(cells)
    if _frames.is_frame(y):
        columns = _frames.columns_of(y)
        return target_array(columns[0])[:, np.newaxis] if len(columns) == 1 else y
    if not _is_column(y):
        return y
    values, numeric = _frames.column_values(y)
    is_array = values.dtype.kind != "O" or isinstance(getattr(y, "dtype", None), np.dtype)
    if is_array or not all(map(_is_number, values)):
        return values
    return _unless_rounded(values) if numeric else target_array(values.tolist())


def _is_column(a):
    """Return whether something is one column that has a type."""
    has_type = not _frames.is_frame(a) and (hasattr(a, "dtype") or hasattr(type(a), "to_pylist"))
    return has_type and np.ndim(a) == 1


def _unless_rounded(cells):
    """Return labels as an array, or as they are where a float beside them rounds an integer.

    Of targets each becomes a float by itself; as labels they stay apart.
    """
    array = np.array(cells.tolist())
    rounds = array.dtype.kind == "f" and any(
        isinstance(v, int | np.integer) and float(v) != int(v) for v in cells
    )
    return cells if rounds else array


def _is_number(value):
    return isinstance(value, int | float | np.number | np.bool_)


def _kind_of_label(value):
    if isinstance(value, bool | np.bool_):
        return "truth value"
    if _is_number(value):
        return "number"
    return "string" if isinstance(value, str) else type(value).__name__


def linear_scores(X, coef, intercept):
    """Return ``X @ coef.T + intercept`` of a table as `read_table` returned it, block by block.

    Parameters
    ----------
    X : array or csr_array of shape (n_rows, n_features)
    coef : ndarray of shape (n_outputs, n_features)
    intercept : ndarray of shape (n_outputs,)

    Returns
    -------
    ndarray of shape (n_rows, n_outputs)
        What overflows is the largest double; products of opposite signs that both do are 0.
    """
    with np.errstate(all="ignore"):
        scores = map_over(Rows(X), row_products, coef, shape=(len(coef),))
        return np.nan_to_num(scores + intercept, copy=False)


def check_chunks(chunked, name="X", *, allow_nan=False):
    """Raise `ValueError` unless a `ChunkedArray` holds finite numbers, or may miss some.

    Returns
    -------
    ndarray of shape (n_columns,), bool
        Whether a column holds a number too large to be found as a category.
    """
    if chunked.dtype.kind == "O":
        form = meta_of(chunked)
        labels = [_frames.kind_of(each) == "label" for each in _frames.types_of(form)]
        j = labels.index(True) if any(labels) else None
        raise non_numeric_error(name if j is None else column_name(j, _frames.names_of(form)))
    total = sum_over(Rows(chunked), _add_checks, np.zeros(2 + chunked.shape[1]))
    check_finite(total[:2][allow_nan:], name)
    return total[2:] > 0


def _add_checks(total, block):
    total[0] += block[np.isnan(block)].sum()
    total[1] += np.abs(block[np.isinf(block)]).sum()
    # The magnitude of the least integer is no integer of its type.
    is_large = (block >= INTEGERS_APART) | (block <= -INTEGERS_APART)
    total[2:] += is_large.sum(axis=0)
