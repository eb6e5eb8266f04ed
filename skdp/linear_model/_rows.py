"""Rows of bounded norm, read block by block: clipped without a copy, with a constant feature."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.sparse import csr_array, issparse
from sklearn.utils.extmath import row_norms

from skdp._data._tables import block_size, read_block, row_blocks

__all__ = [
    "BoundedRows",
    "RowsAndTarget",
    "block_size",
    "most_additions",
    "released_model",
]

SPARSE_BLOCK_ROWS = 4096
SPARSE_GRAM_DENSITY = 0.1


@dataclass(frozen=True, eq=False)
class RowsAndTarget:
    """What the plan of a supervised fit runs on: a table as it was read, and a number a row.

    Parameters
    ----------
    X : array, CSR matrix or ChunkedArray of shape (n_rows, n_columns)
    y : array of shape (n_rows,)
        Class codes or targets.
    """

    X: object
    y: object


def most_additions(n_rows, n_features):
    """Bound the additions in a row that a sum over `BoundedRows` takes, in blocks and of blocks."""
    size = block_size(n_features)
    return max(size, SPARSE_BLOCK_ROWS) + n_rows / size


class BoundedRows:
    r"""The rows :math:`(x_i \min(1, B / \|x_i\|), c)` of a table, for a norm bound B.

    The factor of a row is rounded down far enough that the exact norm of the row times its
    factor never exceeds B. A row whose norm overflows counts as zero. The scaled rows are never
    stored; blocks are converted to float64 as they are read. A sparse table stays sparse: its
    blocks are kept, as sorting a block's entries takes longer than a product with it.

    Parameters
    ----------
    X : array, CSR matrix or ChunkedArray of shape (n_rows, n_columns)
        Of numbers, validated; arrays may be memory-mapped.
    data_norm : float
        The bound B, between 1e-50 and 1e50, far from where squares under- or overflow.
    constant : float
        The value c of the constant feature that carries the intercept; 0 for none.
    unit : float, default=1.0
        What the rows are divided by before anything else.
    """

    def __init__(self, X, data_norm, constant, unit=1.0):
        self.X, self.data_norm, self.unit = X, data_norm, unit
        self.constant = float(constant)
        self.n_rows, self.n_columns = X.shape
        self.n_features = self.n_columns + (constant != 0)
        self.norm = math.hypot(data_norm, constant)
        self.block_size = block_size(self.n_features)
        if issparse(X):
            self.block_size = max(self.block_size, SPARSE_BLOCK_ROWS)
        self._factor = np.empty(self.n_rows)
        self._kept = {}
        # A sum of m squares is off by a relative m rounding errors at most; root, product and
        # quotient add three. Twice that covers both sides.
        margin = 1.0 - 2.0 * (self.n_columns + 4) * np.finfo(np.float64).eps
        for rows in self.blocks():
            with np.errstate(over="ignore", divide="ignore"):
                block = read_block(X, rows)
                norms = row_norms(block)
                self._factor[rows] = np.minimum(1.0 / unit, data_norm / norms * margin)
            if issparse(X):
                block = _without(block, self._factor[rows] == 0.0)
                self._kept[rows.start] = block, block.T

    def blocks(self):
        """Return slices that cover the rows in order."""
        return row_blocks(self.n_rows, self.block_size)

    def scores(self, rows, weights):
        """Return the products of a block's rows with weights of shape (..., n_features)."""
        block, factor = self._finite_block(rows), self._factor[rows]
        product = block @ weights[..., : self.n_columns].T
        product *= factor if weights.ndim == 1 else factor[:, None]
        if self.constant:
            product += self.constant * weights[..., self.n_columns]
        return product

    def weighted_sum(self, rows, coefficients):
        """Return the sum of a block's rows times coefficients of shape (n, ...)."""
        factor = self._factor[rows]
        scaled = coefficients * (factor if coefficients.ndim == 1 else factor[:, None])
        total = np.empty((*coefficients.shape[1:], self.n_features))
        if self._kept:
            sums = (self._kept[rows.start][1] @ scaled).T
        else:
            sums = scaled.T @ self._finite_block(rows)
        total[..., : self.n_columns] = sums
        if self.constant:
            total[..., self.n_columns] = self.constant * coefficients.sum(axis=0)
        return total

    def add_weighted_gram(self, rows, weights, gram):
        """Add the sum of weight times row times row' to a gram matrix's upper triangle.

        `gram` is in Fortran order and is changed in place.
        """
        block, root = self._finite_block(rows), np.sqrt(weights)
        if issparse(block):
            if block.nnz < SPARSE_GRAM_DENSITY * len(root) * self.n_columns:
                self._add_sparse_gram(block, root, self._factor[rows], gram)
                return
            block = block.toarray()
        scaled = np.empty((len(root), self.n_features))
        np.multiply(block, (root * self._factor[rows])[:, None], out=scaled[:, : self.n_columns])
        if self.constant:
            scaled[:, self.n_columns] = self.constant * root
        dsyrk(1.0, scaled.T, beta=1.0, c=gram, overwrite_c=1)

    def _add_sparse_gram(self, block, root, factor, gram):
        scale = np.repeat(root * factor, np.diff(block.indptr))
        block = csr_array((block.data * scale, block.indices, block.indptr), shape=block.shape)
        product = (block.T @ block).tocoo()
        gram[product.row, product.col] += product.data
        if self.constant:
            gram[: self.n_columns, self.n_columns] += self.constant * (block.T @ root)
            gram[self.n_columns, self.n_columns] += self.constant**2 * (root @ root)

    def _finite_block(self, rows):
        if self._kept:
            return self._kept[rows.start][0]
        block = read_block(self.X, rows)
        zeroed = self._factor[rows] == 0.0
        return np.where(zeroed[:, None], 0.0, block) if zeroed.any() else block


def released_model(rows, weights):
    """Return what released weights make public, in the units of the data.

    Parameters
    ----------
    rows : BoundedRows
        On which they were fitted.
    weights : ndarray of shape (n_features,) or (n_outputs, n_features)

    Returns
    -------
    dict
        `coef_` of shape (n_outputs, n_columns), `intercept_` and `data_norm_`.
    """
    weights = np.atleast_2d(weights)
    constant = rows.constant
    return {
        "coef_": weights[:, : rows.n_columns] / rows.unit,
        "intercept_": constant * weights[:, -1] if constant else np.zeros(len(weights)),
        "data_norm_": rows.unit * rows.data_norm,
    }


def _without(block, zeroed):
    """Return a sparse block with some rows set to zero, which may share its entries."""
    if not zeroed.any():
        return block
    data = np.where(np.repeat(zeroed, np.diff(block.indptr)), 0.0, block.data)
    return csr_array((data, block.indices, block.indptr), shape=block.shape)
