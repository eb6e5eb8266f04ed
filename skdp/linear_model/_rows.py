"""Rows of bounded norm, read block by block: clipped without a copy, with a constant feature."""

import math

import numpy as np
from scipy.linalg.blas import dsyrk

__all__ = ["BoundedRows", "block_size"]

BLOCK_BYTES = 1 << 20


def block_size(n_features):
    """Return how many float64 rows of `n_features` values are read at a time."""
    return max(64, BLOCK_BYTES // (8 * n_features))


class BoundedRows:
    r"""The rows :math:`(x_i \min(1, B / \|x_i\|), c)` of a table, for a norm bound B.

    The factor of a row is rounded down far enough that the exact norm of the row times its
    factor never exceeds B. A row whose norm overflows counts as zero. The scaled rows are never
    stored; blocks are converted to float64 as they are read.

    Parameters
    ----------
    X : array of shape (n_rows, n_columns), float32 or float64
    data_norm : float
        The bound B, between 1e-50 and 1e50, far from where squares under- or overflow.
    constant : float
        The value c of the constant feature that carries the intercept; 0 for none.
    """

    def __init__(self, X, data_norm, constant):
        self.X = X
        self.constant = float(constant)
        self.n_rows, self.n_columns = X.shape
        self.n_features = self.n_columns + (constant != 0)
        self.norm = math.hypot(data_norm, constant)
        self.block_size = block_size(self.n_features)
        self._factor = np.empty(self.n_rows)
        # A sum of m squares is off by a relative m rounding errors at most; root, product and
        # quotient add three. Twice that covers both sides.
        margin = 1.0 - 2.0 * (self.n_columns + 4) * np.finfo(np.float64).eps
        for rows in self.blocks():
            with np.errstate(over="ignore", divide="ignore"):
                block = self._block(rows)
                norms = np.sqrt(np.einsum("ij,ij->i", block, block))
                self._factor[rows] = np.minimum(1.0, data_norm / norms * margin)

    def blocks(self):
        """Yield slices that cover the rows in order."""
        for start in range(0, self.n_rows, self.block_size):
            yield slice(start, min(start + self.block_size, self.n_rows))

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
        block, factor = self._finite_block(rows), self._factor[rows]
        scaled = coefficients * (factor if coefficients.ndim == 1 else factor[:, None])
        total = np.empty((*coefficients.shape[1:], self.n_features))
        total[..., : self.n_columns] = scaled.T @ block
        if self.constant:
            total[..., self.n_columns] = self.constant * coefficients.sum(axis=0)
        return total

    def add_weighted_gram(self, rows, weights, gram):
        """Add the sum of weight times row times row' to a gram matrix's upper triangle.

        `gram` is in Fortran order and is changed in place.
        """
        block, root = self._finite_block(rows), np.sqrt(weights)
        scaled = np.empty((len(root), self.n_features))
        np.multiply(block, (root * self._factor[rows])[:, None], out=scaled[:, : self.n_columns])
        if self.constant:
            scaled[:, self.n_columns] = self.constant * root
        dsyrk(1.0, scaled.T, beta=1.0, c=gram, overwrite_c=1)

    def _block(self, rows):
        # What overflows makes its row count as zero; whether any did is nobody's business.
        with np.errstate(all="ignore"):
            return np.asarray(self.X[rows], dtype=np.float64)

    def _finite_block(self, rows):
        block = self._block(rows)
        zeroed = self._factor[rows] == 0.0
        return np.where(zeroed[:, None], 0.0, block) if zeroed.any() else block
