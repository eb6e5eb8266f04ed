"""Tables as estimators read them: checked once, then block by block in double precision."""

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from skdp.utils._chunked import as_chunked

__all__ = [
    "block_size",
    "linear_scores",
    "numeric_target",
    "read_block",
    "row_blocks",
    "validate_table",
]

BLOCK_BYTES = 1 << 20


def block_size(n_features):
    """Return how many float64 rows of `n_features` values are read at a time."""
    return max(64, BLOCK_BYTES // (8 * n_features))


def row_blocks(n_rows, size):
    """Yield slices of at most `size` rows that cover all rows in order."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def validate_table(estimator, X, y="no_validation", *, reset=True, y_numeric=False):
    """Check X, and y if given, as scikit-learn does, and set or compare the features' number.

    In addition to what scikit-learn takes, X may be a `skdp.utils.ChunkedArray` or a dask array;
    their values are checked block by block.

    Parameters
    ----------
    estimator : estimator
    X : array-like, sparse matrix, ChunkedArray or dask array of shape (n_samples, n_features)
    y : array-like of shape (n_samples,), default="no_validation"
    reset : bool, default=True
        Whether to set `n_features_in_` and `feature_names_in_`, or to compare with them.
    y_numeric : bool, default=False
        Whether y must hold numbers.

    Returns
    -------
    X : ndarray, CSR matrix or ChunkedArray
        Not copied where no conversion is needed.
    y : ndarray of shape (n_samples,)
        If y was given.

    Raises
    ------
    ValueError
        If scikit-learn would raise it.
    """
    has_y = not (isinstance(y, str) and y == "no_validation")
    chunked = as_chunked(X)
    if chunked is None:
        checks = {"y_numeric": y_numeric} if has_y else {}
        checked = validate_data(
            estimator, X, y, reset=reset, dtype="numeric", order=None, accept_sparse="csr", **checks
        )
        return (checked[0], numeric_target(checked[1])) if has_y and y_numeric else checked
    _check_values(chunked)
    validate_data(estimator, chunked, reset=reset, skip_check_array=True)
    if not has_y:
        return chunked
    y = _check_target(estimator, y, y_numeric)
    check_consistent_length(chunked, y)
    return chunked, y


def read_block(X, rows):
    """Return rows of a validated table in double precision: an array, or CSR if X is sparse.

    Entries of a CSR matrix that share a place are summed.
    """
    # What overflows makes its row count as zero; whether any did is nobody's business.
    with np.errstate(all="ignore"):
        return _csr_block(X, rows) if issparse(X) else np.asarray(X[rows], dtype=np.float64)


def linear_scores(X, coef, intercept):
    """Return ``X @ coef.T + intercept`` of a validated table, block by block.

    Parameters
    ----------
    X : array, CSR matrix or ChunkedArray of shape (n_rows, n_features)
    coef : ndarray of shape (n_outputs, n_features)
    intercept : ndarray of shape (n_outputs,)

    Returns
    -------
    ndarray of shape (n_rows, n_outputs)
    """
    scores = np.empty((X.shape[0], len(coef)))
    for rows in row_blocks(X.shape[0], block_size(X.shape[1])):
        scores[rows] = read_block(X, rows) @ coef.T
    return scores + intercept


def _check_values(chunked):
    for length, what in zip(chunked.shape, ("sample", "feature"), strict=True):
        if length < 1:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={chunked.shape}) while a minimum of 1 is "
                "required."
            )
    for rows in row_blocks(chunked.shape[0], block_size(chunked.shape[1])):
        assert_all_finite(chunked[rows], input_name="X")


def _check_target(estimator, y, y_numeric):
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    return numeric_target(y) if y_numeric else y


def numeric_target(y):
    """Return targets in double precision, or raise `ValueError`.

    Of objects scikit-learn looks for NaN before it converts them, when None is none yet.
    """
    if y.dtype.kind not in "fiubO":
        raise ValueError(f"y must hold numbers, got an array of {y.dtype}")
    with np.errstate(all="ignore"):
        numbers = y.astype(np.float64)
    if np.isnan(numbers).any():
        raise ValueError("Input y contains NaN.")
    return numbers


def _csr_block(X, rows):
    first, last = X.indptr[rows.start], X.indptr[rows.stop]
    block = csr_array(
        (
            X.data[first:last].astype(np.float64),
            X.indices[first:last],
            X.indptr[rows.start : rows.stop + 1] - first,
        ),
        shape=(rows.stop - rows.start, X.shape[1]),
    )
    # What X says of its format may be out of date; `block` is new and looks for itself.
    if not block.has_canonical_format:
        # Two transpositions are a copy whose rows are sorted, in linear time.
        block = block.tocsc().tocsr()
        block.sum_duplicates()
        # Of values beyond float64, which overflow in opposite directions.
        block.data[np.isnan(block.data)] = np.inf
    return block
