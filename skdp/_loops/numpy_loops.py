"""Loops over rows by NumPy and SciPy; see `skdp._loops`."""

from functools import lru_cache

import numpy as np
from scipy.sparse import csr_array


def add_code_sums(totals, codes, ends, values):
    """Add to each code's total the sum of the values of its rows. Exact.

    The values must be multiples of a grid on which their sums are exact, or the blocks of a sum
    must be short: the rows of a block are added one after another, starting with zero.

    Parameters
    ----------
    totals : ndarray of shape (n_codes, n_outputs)
        Changed in place.
    codes : ndarray of shape (n_rows, n_groups)
        Codes of each group of columns, of unsigned integers.
    ends : ndarray of shape (n_groups,)
        Index after the last code of each group, if codes are numbered one group after another.
    values : ndarray of shape (n_rows, n_outputs)
    """
    totals += one_hot_csr(codes, ends).T.dot(values)


def code_scores(codes, ends, code_values, constants):
    """Return the sum of the values of each row's codes, then each of the constants. Exact.

    Values are added in the order of the groups.

    Parameters
    ----------
    codes, ends
        As in `add_code_sums`.
    code_values : ndarray of shape (n_codes, n_outputs)
    constants : tuple of ndarray of shape (n_outputs,)

    Returns
    -------
    ndarray of shape (n_rows, n_outputs)
    """
    scores = one_hot_csr(codes, ends) @ code_values
    for constant in constants:
        scores += constant
    return scores


def one_hot_csr(cells, ends):
    """Return the one-hot encoding of cells; its products with vectors are sums over cells.

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
