"""Rows of bounded norm, read block by block: clipped without a copy, with a constant feature."""

import math
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from skdp._data._parts import Rows, block_size, cut, is_sent, map_over, most_additions, read_block
from skdp._data._persons import n_units, row_weights_of, times_row_weights
from skdp.utils._row_wise import row_norms

SPARSE_BLOCK_ROWS = 4096
SPARSE_GRAM_DENSITY = 0.1


def bounded_additions(n_features):
    """Return `most_additions` of a sum over `BoundedRows`, which may be sparse."""
    return most_additions(max(block_size(n_features), SPARSE_BLOCK_ROWS))


class BoundedRows(Rows):
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
    persons : Persons, default=None
        By whose row weights rows count in sums; None counts each as one.
    """

    stays = Rows.stays | {"persons"}
    # Whether the constant feature of a long row is scaled as its values are, see `as_equations`.
    scales_constant = False

    def __init__(self, X, data_norm, constant, unit=1.0, persons=None):
        self.X = X
        self.data_norm = data_norm
        self.unit = unit
        self.persons = persons
        self.constant = float(constant)
        # By person the number of rows is not public.
        self.n_units = n_units(X, persons)
        self.n_columns = X.shape[1]
        self.n_features = self.n_columns + (constant != 0)
        self.norm = math.hypot(data_norm, constant)
        self.block_size = max(block_size(self.n_features), SPARSE_BLOCK_ROWS * issparse(X))
        super().__init__(X, self.block_size)
        self._kept = {}
        # Found when it is first asked for: fits by gradients do not.
        del self.along

    @cached_property
    def along(self):
        """The rows' factors and row weights; with them blocks of a sparse table are kept."""
        plain = Rows(self.X, self.block_size)
        if is_sent(plain):
            return None, row_weights_of(self.persons)
        factor = map_over(plain, _row_factors, self.data_norm, self.unit, held=True)
        for rows in self.blocks() if issparse(self.X) else ():
            block = plain[rows]
            zeroed = factor[rows] == 0.0
            if zeroed.any():
                data = np.where(np.repeat(zeroed, np.diff(block.indptr)), 0.0, block.data)
                block = csr_array((data, block.indices, block.indptr), shape=block.shape)
            self._kept[rows.start] = block, block.T
        return factor, row_weights_of(self.persons)

    def once(self):
        """Return the rows for a single sum: its blocks find their factors, which nothing holds."""
        along = {} if issparse(self.X) else {"along": (None, row_weights_of(self.persons))}
        return self._changed(**along)

    def as_equations(self):
        r"""Return the rows for a single sum, as equations that are scaled as a whole.

        Least squares reads a row as the equation :math:`x^\top w + c\,v = y`. Where x is longer
        than the bound, c is scaled by the same number as x, and `_Block.equation_factors` are the
        numbers for the targets. What solves all equations then still solves them. With x alone
        scaled down, the row would ask for longer weights than it had.
        """
        rows = self.once()
        rows.scales_constant = True
        return rows

    def __getitem__(self, rows):
        return _Block(self, rows)


def _row_factors(block, data_norm, unit):
    # A sum of m squares is off by a relative m rounding errors at most; root, product and
    # quotient add three. Twice that covers both sides.
    margin = 1.0 - 2.0 * (block.shape[1] + 4) * np.finfo(np.float64).eps
    with np.errstate(over="ignore", divide="ignore"):
        return np.minimum(1.0 / unit, data_norm / row_norms(block) * margin)


class _Block:
    """A block of bounded rows."""

    def __init__(self, table, rows):
        self._table = table
        self._factor, self._row_weights = cut(table.along, rows)
        self._n_columns = table.n_columns
        self._constant = table.constant
        if table._kept:
            self._values, self._transposed = table._kept[rows.start]
            return
        block = read_block(table.X, rows)
        if self._factor is None:
            self._factor = _row_factors(block, table.data_norm, table.unit)
        zeroed = self._factor == 0.0
        self._values = np.where(zeroed[:, None], 0.0, block) if zeroed.any() else block

    @property
    def equation_factors(self):
        """The numbers in [0, 1] that rows are scaled by, in the unit of the table."""
        # The product of a number and its reciprocal may be rounded to more than 1.
        return np.minimum(1.0, self._factor * self._table.unit)

    def _constants(self, root):
        """Return the constant feature of the rows, times one number for each."""
        if self._table.scales_constant:
            root = root * self.equation_factors
        return self._constant * root

    def scores(self, weights):
        """Return the products of the rows with weights of shape (..., n_features)."""
        product = self._values @ weights[..., : self._n_columns].T
        product *= self._factor if weights.ndim == 1 else self._factor[:, None]
        if self._constant:
            product += self._constant * weights[..., self._n_columns]
        return product

    def shared(self, values):
        """Return values of the rows times their row weights."""
        return times_row_weights(values, self._row_weights)

    def weighted_sum(self, coefficients):
        """Return the sum by row weights of the rows times coefficients of shape (n, ...)."""
        values, coefficients, one = self._values, self.shared(coefficients), coefficients.ndim == 1
        scaled = coefficients * (self._factor if one else self._factor[:, None])
        total = np.empty((*coefficients.shape[1:], self._table.n_features))
        sums = self._transposed.dot(scaled).T if self._table._kept else scaled.T.dot(values)
        total[..., : self._n_columns] = sums
        if self._constant:
            constants = coefficients
            if self._table.scales_constant:
                constants = self.equation_factors * coefficients
            total[..., self._n_columns] = self._constant * constants.sum(axis=0)
        return total

    def add_weighted_gram(self, weights, gram):
        """Add the sum by row weights of weight times row times row' to a gram, in place."""
        block = self._values
        root = np.sqrt(self.shared(weights))
        d = self._n_columns
        if issparse(block):
            if block.nnz < SPARSE_GRAM_DENSITY * len(root) * d:
                self._add_sparse_gram(block, root, gram)
                return
            block = block.toarray()
        scaled = np.empty((len(root), len(gram)))
        np.multiply(block, (root * self._factor)[:, None], out=scaled[:, :d])
        if self._constant:
            scaled[:, d] = self._constants(root)
        gram += scaled.T.dot(scaled)

    def _add_sparse_gram(self, block, root, gram):
        scale = np.repeat(root * self._factor, np.diff(block.indptr))
        block = csr_array((block.data * scale, block.indices, block.indptr), shape=block.shape)
        if self._constant:
            constants = csr_array(self._constants(root)[:, None])
            block = hstack([block, constants], format="csr")
        product = block.T.dot(block).tocoo()
        gram[product.row, product.col] += product.data
