"""Reading and checking tables of numbers, and targets."""

from collections.abc import Iterator, Mapping, Set, Sized
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp._data import _containers, _frames
from skdp._data._chunked import as_chunked, meta_of
from skdp._data._errors import (
    NotNumericError,
    check_finite,
    check_no_label_is_missing,
    column_name,
    join_not_numeric,
    non_numeric_error,
    times_error,
)
from skdp._data._labels import MAX_EXACT_INTEGER, is_missing, text_array
from skdp._data._lengths import check_lengths
from skdp._data._parts import Rows, map_over, sum_over
from skdp._data._row_wise import row_products
from skdp.utils._values import FrozenValue


def read_table(estimator, X, *, reset=True, allow_nan=False, accept_sparse=False):
    """Read a table of numbers, each row independently, and set or compare the features.

    Parameters
    ----------
    estimator : estimator
    X : array-like, DataFrame, ChunkedArray or its source, of shape (n_samples, n_features)
        A sparse matrix of any format is allowed with `accept_sparse`.
    reset : bool, default=True
        True to set `n_features_in_` and `feature_names_in_`, False to compare with them.
    allow_nan : bool, default=False
        True if values may be missing.
    accept_sparse : bool, default=False
        True if X may be sparse.

    Returns
    -------
    ndarray, csr_array or ChunkedArray
        Numbers of at most double precision. They are copied only if they must be converted.

    Raises
    ------
    TypeError, ValueError
        If a value is not a finite number, or the table is empty. The errors are those of
        scikit-learn, except for columns of dates, text and other objects, whose errors name the
        column and say how to convert it (`times_error`, `non_numeric_error`), and except for a hint
        about missing values.
    """
    if is_number_array(X):
        # This is the most frequent case: an array has no column names, no column types and no cells
        # to convert.
        if not _has_valid_features(estimator, X, reset):
            validate_data(
                estimator, X, reset=reset, order=None, dtype=None, ensure_all_finite=False
            )
        check_finite(X, "X", allow_nan=allow_nan)
        return X
    chunked = as_chunked(X)
    if chunked is not None:
        return read_chunks(estimator, chunked, reset=reset, allow_nan=allow_nan)[0]
    _frames.check_names_differ(X)
    X = _frames.in_memory(X)
    frame = X
    names = None
    if _frames.is_frame(X):
        names = _frames.names_of(X)
    if not reset:
        _frames.check_labels_match(estimator, X)
    if not issparse(X):
        check_types_of_numbers(X, after_fit=not reset)
        X = number_matrix(X, after_fit=not reset)
    elif accept_sparse:
        X = _containers.as_csr(X)
    X = check_array(
        X,
        order=None,
        estimator=estimator,
        input_name="X",
        accept_sparse="csr" if accept_sparse else False,
        ensure_all_finite=False,
    )
    named = X
    if names is not None:
        # Names are read from the frame. Its values were checked as an array above.
        named = frame
    named = _frames.with_plain_names(named)
    validate_data(estimator, named, reset=reset, skip_check_array=True)
    check_finite(X, "X", allow_nan=allow_nan, names=names)
    if issparse(X):
        return csr_array(X)
    return X


def _has_valid_features(estimator, X, reset):
    """Return True if `validate_data` would accept an array of numbers without an error or warning.

    With `reset`, the number of features is then set, as `validate_data` does. Its search for column
    names takes longer than a sum over a small array, which has none.
    """
    if X.ndim != 2 or 0 in X.shape or hasattr(estimator, "feature_names_in_"):
        return False
    n_features = X.shape[1]
    if reset:
        estimator.n_features_in_ = n_features
    return getattr(estimator, "n_features_in_", n_features) == n_features


def is_number_array(X):
    """Return True for a NumPy array of numbers of at most double precision."""
    return type(X) is np.ndarray and X.dtype.kind in _frames.NUMBERS and X.dtype.itemsize <= 8


def validate_meta(estimator, chunked, *, reset=True):
    """Set or compare the features of a `ChunkedArray`; return its `meta_of`."""
    # Raises scikit-learn's error for a table without rows or columns.
    check_array(np.zeros([min(length, 1) for length in chunked.shape]))
    meta = meta_of(chunked)
    named = _frames.with_plain_names(meta)
    validate_data(estimator, named, reset=reset, skip_check_array=True)
    if not reset:
        _frames.check_labels_match(estimator, meta)
    return meta


def check_types_of_numbers(X, name="X", *, after_fit=False):
    """Raise `ValueError` if a column has dates, durations, text, or categories that are text.

    The type determines this, so that a table is refused in every container or in none. A column of
    objects, or of numeric categories, has no such type; its cells are read one by one.

    Parameters
    ----------
    X : array, Series, DataFrame, ChunkedArray, or object without types
    name : str, default="X"
        Name in messages for an array or a vector, which has no column names.
    after_fit : bool, default=False
        True for samples of a fitted estimator, which get other error messages.
    """
    meta = meta_of(X)
    names = None
    if _frames.is_frame(meta):
        names = _frames.names_of(meta)
    # An Arrow column has an attribute `type` instead of `dtype`.
    types = _frames.types_of(meta)
    if len(types) == 0 and hasattr(type(meta), "to_pylist"):
        types = [meta.type]
    errors = []
    for j, kind in enumerate(_frames.map_types(_non_numeric_kind, types)):
        if names is None:
            described = name
        else:
            described = column_name(j, names)
        if kind in _frames.TIME_KINDS:
            errors.append(times_error(described, kind, after_fit))
        elif kind is not None:
            errors.append(non_numeric_error(described, after_fit))
    if errors:
        raise join_not_numeric(errors)


def _non_numeric_kind(dtype):
    """Return the kind of a type that has no numbers, or None if the type may have numbers."""
    kind = _frames.kind_of(dtype)
    if kind in _frames.TIME_KINDS or (kind == "label" and _frames.label_kind_of(dtype) == "text"):
        return kind
    return None


def read_chunks(estimator, chunked, *, reset=True, allow_nan=False):
    """Read a partitioned table of numbers, in one pass that checks them.

    Returns
    -------
    chunked : ChunkedArray
        A table with a numeric type.
    has_large_numbers : ndarray of shape (n_columns,), bool
        As in `check_chunks`.
    """
    validate_meta(estimator, chunked, reset=reset)
    check_types_of_numbers(chunked, after_fit=not reset)
    return chunked, check_chunks(chunked, allow_nan=allow_nan)


def read_array(estimator, X, *, reset=True, dtype=None):
    """Read a dense table of numbers into one array, each row independently.

    Parameters
    ----------
    estimator : estimator
        Estimator whose number and names of features are set or compared.
    X : array-like, DataFrame, ChunkedArray or its source, of shape (n_samples, n_features)
        Finite numbers.
    reset : bool, default=True
        True to set `n_features_in_` and `feature_names_in_`, False to compare with them.
    dtype : dtype, default=None
        Type of the result; None keeps the type of X.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        It is a copy only if X must be converted.

    Raises
    ------
    TypeError, ValueError
        If a value is not a finite number, or the table is empty, as for `read_table`.

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
    """Public facts of a table, from which the plan of a fit is computed.

    Parameters
    ----------
    n_rows : int or None
        Number of rows, or of persons if the unit is a person; None if unknown.
    n_columns : int or None
        Number of columns; None if unknown.
    classes : ndarray of shape (n_classes,), default=None
        The label set of y, sorted; None without labels.
    names : ndarray of str of shape (n_columns,), default=None
        Names of the columns, if the container has them.
    kinds : list of str of length n_columns, default=None
        Kind of each column by its container: "number", "date", "duration", "boolean", "label" or
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


def names_for_keys(estimator):
    """Return the column names that dicts in parameters may use as keys, or None."""
    names = getattr(estimator, "feature_names_in_", None)
    return getattr(estimator, "_labels_in", None) if names is None else names


@dataclass(frozen=True, eq=False)
class RowsAndTarget(FrozenValue):
    """The data of a supervised fit: a table that was read, and a code or target for each row.

    Parameters
    ----------
    X : array, CSR matrix, ChunkedArray or ColumnTable of shape (n_rows, n_columns)
    y : array of shape (n_rows,)
        Class codes or targets.
    """

    X: object
    y: object


def read_samples(estimator, X):
    """Return the samples of a fitted transformer of numbers, in double precision."""
    check_is_fitted(estimator)
    return read_array(estimator, X, dtype=np.float64, reset=False)


def _columns_as_numbers(columns, names, after_fit):
    """Return columns as numbers; the error about cells that are none names all such columns.

    Parameters
    ----------
    columns : dict of int to ndarray
        The cells of each column, by its position.
    names : sequence or None
        Names of the table's columns.
    after_fit : bool
        As in `number_matrix`.

    Returns
    -------
    dict of int to ndarray of float64
    """
    numbers = {}
    errors = []
    for j, values in columns.items():
        try:
            numbers[j] = _containers.as_numbers(values, column_name(j, names), after_fit)
        except NotNumericError as error:
            errors.append(error)
    if errors:
        raise join_not_numeric(errors)
    return numbers


def number_matrix(X, after_fit=False):
    """Return a table in any container as an array of numbers, each value converted independently.

    Parameters
    ----------
    X : array-like or DataFrame
    after_fit : bool, default=False
        True for samples of a fitted estimator, which get other error messages.

    Returns
    -------
    array-like
        X itself if it is an array of numbers, or not a table that scikit-learn would convert.
    """
    X = _frames.in_memory(X)
    if _frames.is_frame(X):
        dtypes = ()
        if hasattr(X, "iloc"):
            dtypes = {str(dtype) for dtype in X.dtypes}
        one_type = len(dtypes) == 1 and isinstance(X.dtypes.iloc[0], np.dtype)
        if one_type and X.dtypes.iloc[0].kind in "biuf":
            return _containers.doubles_at_most(np.asarray(X))
        blocks = _frames.frame_blocks(X)
        columns, _ = _frames.columns_in_blocks(blocks)
        matrix = np.empty((len(X), len(columns)))
        names = _frames.names_of(X)
        numbers = [block for block in blocks if block.values.dtype.kind in _frames.NUMBERS]
        for block in numbers:
            matrix[:, block.columns] = _containers.as_numbers(block.values)
        is_read = np.zeros(len(columns), dtype=bool)
        for block in numbers:
            is_read[block.columns] = True
        cells = {j: columns[j] for j in np.flatnonzero(~is_read).tolist()}
        for j, values in _columns_as_numbers(cells, names, after_fit).items():
            matrix[:, j] = values
        return matrix
    if _containers.is_sequence(X):
        X = _containers.as_cells(X)
    else:
        X = np.asarray(X)
    if X.dtype.kind in "OmMSUT" and X.ndim in (1, 2):
        if X.ndim == 1 or not X.shape[1]:
            return _containers.as_numbers(X, after_fit=after_fit)
        columns = _columns_as_numbers(dict(enumerate(X.T)), None, after_fit)
        return np.column_stack(list(columns.values()))
    return _containers.doubles_at_most(X)


def number_array(a):
    """Return numbers in any container as a vector or matrix, each value converted independently.

    Parameters
    ----------
    a : array-like, Series or DataFrame

    Returns
    -------
    array-like
        `a` itself if it is an array of numbers, or cannot be converted to one.
    """
    if _is_column(a):
        a, _ = _frames.column_values(a)
    return number_matrix(a)


def indexable_table(X):
    """Return a table whose rows can be selected by index, for steps of any kind.

    Searches and evaluations select the rows of folds before they know which estimators read them.

    A list becomes an array of floats if every cell is a number, and of objects otherwise. A
    sparse matrix becomes a canonical CSR matrix, and a lazy column a column in memory.

    Raises
    ------
    ValueError
        If X has no rows or columns, if two columns have the same name, or if a column of a list
        mixes numbers and other values, so that one row would determine how the others are
        converted.
    """
    _frames.check_names_differ(X)
    table = _indexable(X)
    check_not_empty(table.shape, X)
    return table


def check_not_empty(shape, X):
    """Raise scikit-learn's `ValueError` for a table without rows or columns.

    Parameters
    ----------
    shape : tuple of int
        Shape of the table that was read from X; empty if X is not a table.
    X : object
        The object that the user passed, for the message.
    """
    if not shape:
        raise ValueError(
            f"Expected 2D array, got a {type(X).__name__} instead: X must be a table of rows and "
            "columns, such as a data frame, an array or a list of rows"
        )
    # A one-dimensional array, such as one of texts, has only rows; others may have more than two
    # dimensions.
    for length, name in zip(shape, ("sample", "feature"), strict=False):
        if length == 0:
            raise ValueError(
                f"Found array with 0 {name}(s) (shape={shape}) while a minimum of 1 is required."
            )


def _indexable(X):
    """Return X in a container whose rows can be selected by index.

    The shape of the result is (), or that of an empty table, if X is no table or has no rows or
    columns; `indexable_table` then raises the error.
    """
    if issparse(X):
        return _containers.canonical_rows(_containers.as_csr(X))
    n_dimensions = getattr(X, "ndim", 2)
    is_column = isinstance(n_dimensions, int) and n_dimensions == 1
    if is_column:
        chunked = None
    else:
        chunked = as_chunked(X)
    if chunked is not None:
        return chunked
    X = _frames.in_memory(X)
    if hasattr(X, "shape"):
        return X
    if not _containers.is_sequence(X):
        return np.asarray(X)
    cells = _containers.as_cells(X)
    if cells.ndim != 2:
        description = "a list of rows of different lengths"
        if not any(isinstance(row, Sized) and not isinstance(row, str | bytes) for row in X):
            description = "a list of values: write [[value], ...] for a table with one column"
        raise ValueError(f"Expected a 2-dimensional table, got {description}")
    if all(numeric_columns(cells)):
        return _containers.as_numbers(cells)
    return cells


def numeric_columns(cells):
    """Return, for each column of a list, True if all of its present cells are numbers.

    Raises
    ------
    ValueError
        If a column mixes numbers and other values, or has missing cells and at most one other
        cell. One row would then determine the kind of the column.
    """
    flags = []
    for j, column in enumerate(cells.T):
        present = [_is_number(value) for value in column if not is_missing(value)]
        if len(set(present)) > 1 or len(present) < 2 <= len(column):
            if len(present) > 1:
                problem = "numbers and other values"
            else:
                problem = "fewer than two known values"
            raise ValueError(
                f"column {j} of the list has {problem}: pass a DataFrame or an array of objects"
            )
        flags.append(all(present))
    return flags


def read_target(estimator, y, n_rows):
    """Read labels or targets, one per row.

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
        If y is None, if a value is missing, or if a list mixes numbers and strings.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    if is_number_array(y):
        # A vector of numbers is returned unchanged.
        if y.ndim != 1:
            y = column_or_1d(y, warn=True)
    else:
        y = column_or_1d(target_array(y), warn=True)
        check_no_label_is_missing(y)
    check_finite(y, "y")
    if len(y) != n_rows:
        check_lengths(n_rows, y=y)
    return y


def read_numeric_target(estimator, y, n_rows):
    """Read targets as `read_target` does, as float64 unless they are integers or Booleans.

    Integers and Booleans are returned without a copy, since callers convert them exactly. Floats of
    lower precision are converted here, so that no sum is computed in it. A target of None, or a
    None among objects, is refused.

    Raises
    ------
    ValueError
        As for `read_target`, or if y does not contain real numbers.
    """
    y = read_target(estimator, y, n_rows)
    if y.dtype.kind not in "fiubO":
        raise ValueError(
            f"y must contain numbers, got an array of {y.dtype}: use a classifier for labels"
        )
    if y.dtype.kind in "iub":
        return y
    numbers = _containers.as_numbers(y, "y")
    # `read_target` checked objects before this conversion, which turns None into NaN.
    check_finite(numbers, "y")
    return numbers


def target_array(y):
    """Return labels or targets as an array, each converted independently of the others.

    A list of whole numbers becomes an array of integers, regardless of their types.

    Raises
    ------
    TypeError
        If y is sparse.
    ValueError
        If a list contains labels of several kinds, or if y is not a list, an array or a column.
    """
    y = _frames.in_memory(y)
    if issparse(y):
        raise TypeError(
            "Sparse data was passed for y, but dense data is required. Use '.toarray()' to convert "
            "to a dense numpy array."
        )
    if isinstance(y, Iterator | Set | Mapping):
        raise ValueError(
            f"y must be a list, an array or a column, got a {type(y).__name__}: pass list(y) with "
            "one label or target per row"
        )
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
        values = [v.item() if isinstance(v, np.generic) else v for v in cells]
        if kinds == {"number"} and all(-(2**63) <= v < 2**63 and v == int(v) for v in values):
            return np.array([int(v) for v in values])
        if kinds == {"string"}:
            # NumPy would convert a member of a string Enum to its name, cut to the length of the
            # longest value.
            return text_array([str.__str__(v) for v in cells])
        return _unless_rounded(cells)
    if _frames.is_frame(y):
        columns = _frames.columns_of(y)
        if len(columns) == 1:
            return target_array(columns[0])[:, np.newaxis]
        return y
    if not _is_column(y):
        return y
    values, numeric = _frames.column_values(y)
    is_array = values.dtype.kind != "O" or isinstance(getattr(y, "dtype", None), np.dtype)
    if is_array or not all(map(_is_number, values)):
        return values
    if numeric:
        return _unless_rounded(values)
    return target_array(values.tolist())


def _is_column(a):
    """Return True for a single column that has a type, such as a Series."""
    has_type = not _frames.is_frame(a) and (hasattr(a, "dtype") or hasattr(type(a), "to_pylist"))
    return has_type and np.ndim(a) == 1


def _unless_rounded(cells):
    """Return cells as an array, or unchanged if an integer would be rounded to a float.

    Rounding would merge different labels. Targets are converted to floats later.
    """
    array = np.array(cells.tolist())
    rounds = array.dtype.kind == "f" and any(
        isinstance(v, int | np.integer) and float(v) != int(v) for v in cells
    )
    if rounds:
        return cells
    return array


def _is_number(value):
    return isinstance(value, int | float | np.number | np.bool_)


def _kind_of_label(value):
    """Return the name of a label's kind. An error message lists the kinds if a list mixes them."""
    if isinstance(value, bool | np.bool_):
        return "truth value"
    if _is_number(value):
        return "number"
    if isinstance(value, str):
        return "string"
    return type(value).__name__


def linear_scores(X, coef, intercept):
    """Return ``X @ coef.T + intercept`` of a table that `read_table` returned, block by block.

    Parameters
    ----------
    X : array or csr_array of shape (n_rows, n_features)
    coef : ndarray of shape (n_outputs, n_features)
    intercept : ndarray of shape (n_outputs,)

    Returns
    -------
    ndarray of shape (n_rows, n_outputs)
        A score that overflows is the largest double. The sum of products that overflow with
        opposite signs is 0.
    """
    with np.errstate(all="ignore"):
        scores = map_over(Rows(X), row_products, coef, shape=(len(coef),))
        return np.nan_to_num(scores + intercept, copy=False)


def check_chunks(chunked, name="X", *, allow_nan=False):
    """Raise `ValueError` unless all values of a `ChunkedArray` are finite, or NaN if allowed.

    Returns
    -------
    ndarray of shape (n_columns,), bool
        True for a column with a number that is too large to be found as a category.
    """
    if chunked.dtype.kind == "O":
        meta = meta_of(chunked)
        for j, dtype in enumerate(_frames.types_of(meta)):
            if _frames.kind_of(dtype) == "label":
                raise non_numeric_error(column_name(j, _frames.names_of(meta)))
        raise non_numeric_error(name)
    total = sum_over(Rows(chunked), _add_checks, np.zeros(2 + chunked.shape[1]))
    check_finite(total[:2][allow_nan:], name)
    return total[2:] > 0


def _add_checks(total, block):
    """Add the sums of NaN and of infinite values, and a count of large numbers per column."""
    total[0] += block[np.isnan(block)].sum()
    total[1] += np.abs(block[np.isinf(block)]).sum()
    # Magnitudes are not compared, because the magnitude of the smallest integer overflows.
    is_large = (block >= MAX_EXACT_INTEGER) | (block <= -MAX_EXACT_INTEGER)
    total[2:] += is_large.sum(axis=0)
