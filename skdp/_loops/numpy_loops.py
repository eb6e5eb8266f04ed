"""Loops over rows by NumPy and SciPy; see `skdp._loops`."""

from functools import lru_cache

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

# Maximum number of codes of a block that are counted without a sparse matrix, which is faster from
# about here on; besides, threads can compute its products in parallel.
MAX_COUNTED_CODES = 1 << 15


def code_scores(codes, ends, code_values, constants):
    """Return the sum of the values of each row's codes, and of the constants. Exact.

    Values are added to zero in the order of the groups, then the constants in their order.

    Parameters
    ----------
    codes : ndarray of shape (n_rows, n_groups)
        Codes of groups of columns, unsigned integers.
    ends : ndarray of shape (n_groups,)
        Index after the last code of each group, with codes numbered group by group.
    code_values : ndarray of shape (n_codes, n_outputs)
    constants : ndarray of shape (n_constants, n_outputs)

    Returns
    -------
    ndarray of shape (n_rows, n_outputs)
    """
    return _add_constants(one_hot_csr(codes, ends).dot(code_values), constants)


def _add_constants(scores, constants):
    """Return scores plus each of the constants, one after another; the scores are changed."""
    for constant in constants:
        scores += constant
    return scores


def add_code_sums(sums, codes, ends, values):
    """Add to each code's sum the values of its rows. Exact.

    Parameters
    ----------
    sums : ndarray of shape (n_codes, n_outputs)
        Changed in place.
    codes, ends
        As in `code_scores`.
    values : ndarray of shape (n_rows, n_outputs)
        Multiples of a grid on which their sums are exact.
    """
    sums += one_hot_csr(codes, ends).T.dot(values)


def add_residual_sums(sums, codes, ends, code_values, constants, residuals, row_args):
    """Add to each code's sum the residuals of its rows, computed from their scores. Exact.

    Both versions add the rows of the block one after another, starting from zero. They therefore
    return the same bits even if the residuals are not rounded to a grid.

    Parameters
    ----------
    sums : ndarray of shape (n_codes, n_outputs)
        Changed in place.
    codes, ends, code_values, constants
        As in `code_scores`.
    residuals : callable
        Function of scores of shape (n_rows, n_outputs) and of `row_args` that returns an array with
        the shape of the scores; each row is computed independently.
    row_args : tuple of (ndarray of shape (n_rows, ...) or None)
    """
    if sums.shape[1] == 1 and codes.size <= MAX_COUNTED_CODES:
        _add_few_residual_sums(sums, codes, ends, code_values, constants, residuals, row_args)
        return
    one_hot = one_hot_csr(codes, ends)
    scores = _add_constants(one_hot.dot(code_values), constants)
    sums += one_hot.T.dot(residuals(scores, *row_args))


def _add_few_residual_sums(sums, codes, ends, code_values, constants, residuals, row_args):
    """Add to `sums` as `add_residual_sums` does, with the same bits, but for one output.

    For few rows, this takes less time than constructing a sparse matrix.
    """
    indices = np.add(codes, np.array((0, *ends[:-1])), dtype=np.intp)
    scores = np.zeros(len(codes))
    for values in code_values[:, 0].take(indices).T:
        scores += values
    scores = _add_constants(scores[:, np.newaxis], constants)
    weights = np.repeat(residuals(scores, *row_args)[:, 0], codes.shape[1])
    sums[:, 0] += np.bincount(indices.ravel(), weights, len(sums))


def class_residual_steps(scores, targets, weights, clip, step):
    """Return the clipped residuals of two classes, weighted, in multiples of `step`. Exact.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, 1)
    targets : ndarray of shape (n_rows,)
        0 or 1.
    weights : tuple of (float, float)
        Weights of the classes.
    clip : float
        Largest magnitude of a residual before it is weighted.
    step : float
        Grid step of the residuals, a power of two. They are rounded toward zero.

    Returns
    -------
    ndarray of shape (n_rows, 1)
    """
    residuals = expit(scores[:, 0]) - targets
    np.clip(residuals, -clip, clip, out=residuals)
    return np.trunc(residuals * np.take(weights, targets) / step)[:, np.newaxis]


def one_hot_csr(cells, ends):
    """Return the one-hot encoding of cells, whose products with vectors are sums over cells.

    Threads can compute these products in parallel, which is not true of `numpy.bincount`.

    Parameters
    ----------
    cells : ndarray of shape (n_rows, n_tables)
    ends : ndarray of shape (n_tables,)
        Index after the last cell of each table, if cells are numbered one table after another.

    Returns
    -------
    csr_array of shape (n_rows, n_cells)
    """
    n, k = cells.shape
    ones, offsets, indptr = _one_hot_arrays(1 << (n - 1).bit_length(), (0, *ends[:-1]))
    indices = np.add(cells.ravel(), offsets[: n * k], dtype=np.int32, casting="same_kind")
    return csr_array((ones[: n * k], indices, indptr[: n + 1]), shape=(n, ends[-1]))


@lru_cache(maxsize=2)
def _one_hot_arrays(n_rows, starts):
    """Return the arrays that all one-hot matrices of at most `n_rows` rows have in common."""
    size = n_rows * len(starts)
    ones = np.ones(size)
    offsets = np.tile(np.array(starts, dtype=np.int32), n_rows)
    indptr = np.arange(0, size + 1, len(starts), dtype=np.int32)
    for array in (ones, offsets, indptr):
        array.setflags(write=False)
    return ones, offsets, indptr
