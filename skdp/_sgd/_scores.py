"""Scores of rows that depend on nothing but the row and the weights, to the last bit.

A matrix product rounds a row's score by where the row stands in the block and by how many rows
there are. In a sampled batch these depend on the other rows of the batch.
"""

from functools import partial

import numpy as np
from scipy.sparse import issparse

__all__ = ["row_scores_function"]

# Enough for every place that a row can have relative to cache lines.
COMPARED_ROWS = 67


def row_scores_function(n_columns, weights_shape):
    """Return a function of a block of rows and weights that gives the scores of the rows.

    The BLAS library multiplies one row at a time. A library that uses the addresses of arrays may
    give equal rows different scores. This is tried here on made-up numbers, and if so NumPy's own
    sums are used. SciPy multiplies sparse rows one at a time.

    Parameters
    ----------
    n_columns : int
    weights_shape : tuple
        () for one score, (k,) for k of them.

    Returns
    -------
    callable
        Of a C-contiguous block or CSR matrix of shape (n, n_columns) and weights of shape
        (*weights_shape, n_columns), of float64.
    """
    row = np.sin(np.arange(1.0, n_columns + 1.0))
    weights = np.resize(np.cos(row), (*weights_shape, n_columns))
    scores = _by_the_library(np.tile(row, (COMPARED_ROWS, 1)), weights)
    dense = _by_the_library if (scores == scores[0]).all() else _by_sums
    return partial(_scores, dense)


def _scores(dense, block, weights):
    return block @ weights.T if issparse(block) else dense(block, weights)


def _by_the_library(block, weights):
    return np.matmul(block[:, None, :], weights.T)[:, 0]


def _by_sums(block, weights):
    if weights.ndim == 1:
        return np.add.reduce(block * weights, axis=1)
    return np.column_stack([np.add.reduce(block * one, axis=1) for one in weights])
