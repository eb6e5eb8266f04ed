"""Rows clipped to a bounded norm as they are read, with a constant feature for the intercept."""

import math
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from skdp._data._parts import (
    Rows,
    as_dense,
    block_size,
    is_sent,
    map_over,
    max_additions,
    read_block,
    slice_row_args,
)
from skdp._data._persons import times_row_weights
from skdp._data._row_wise import row_norms

# Minimum number of rows in a block of a sparse table.
SPARSE_BLOCK_ROWS = 4096
# Density of a sparse block below which its Gram matrix is computed without making the block dense.
SPARSE_GRAM_DENSITY = 0.1


def max_bounded_additions(n_features):
    """Return `max_additions` for a sum over `BoundedRows`, dense or sparse."""
    return max_additions(max(block_size(n_features), SPARSE_BLOCK_ROWS))


class BoundedRows(Rows):
    r"""The rows :math:`(x_i \min(1, B / \|x_i\|), c)` of a table, for a norm bound B.

    The factor of a row is rounded down so that the exact norm of the row times its factor never
    exceeds B. A row whose norm overflows counts as zero. The scaled rows are never stored; blocks
    are converted to float64 as they are read. A sparse table stays sparse. Its blocks are cached,
    because sorting the entries of a block takes longer than a product with it.

    Parameters
    ----------
    X : array, CSR matrix or ChunkedArray of shape (n_rows, n_columns)
        Validated numbers; arrays may be memory-mapped.
    data_norm : float
        The bound B, between 1e-50 and 1e50, far from where squares under- or overflow.
    constant : float
        The value c of the constant feature that carries the intercept; 0 for none.
    unit : float, default=1.0
        Scale by which the rows are divided before they are clipped.
    persons : Persons, default=None
        Persons whose row weights are used in sums; None gives every row the weight 1.
    """

    local_attrs = Rows.local_attrs | {"persons", "_row_weights"}
    # Vector that `ClippedSums` subtracts from each row, in the units of X, the factors by which it
    # multiplies the columns, and the part of `unit` that is the size of the rows about the vector;
    # see `RowCenter`. The blocks of this class are of rows that are not centered.
    center = None
    column_factors = None
    # The `WhitenedRows` of which `ClippedSums` computes the gradients, instead of those of centered
    # rows.
    whitening = None
    centered_unit = 1.0
    # True if the constant feature of a clipped row is scaled like the row's values; see
    # `as_equations`.
    scales_constant = False
    # Vector that is subtracted from each row before it is clipped; see `as_equations`.
    equations_center = None

    def __init__(self, X, data_norm, constant, unit=1.0, persons=None):
        self.X = X
        self.data_norm = data_norm
        self.unit = unit
        self.persons = persons
        self.constant = float(constant)
        # With persons as the unit, the number of persons is public and the number of rows is not.
        self.n_units = X.shape[0]
        self._row_weights = None
        if persons is not None:
            self.n_units = persons.n_persons
            self._row_weights = persons.row_weights
        self.n_columns = X.shape[1]
        self.n_features = self.n_columns + (constant != 0)
        self.norm = math.hypot(data_norm, constant)
        self.block_size = max(block_size(self.n_features), SPARSE_BLOCK_ROWS * issparse(X))
        super().__init__(X, self.block_size)
        # Blocks of a sparse table and their transposes, keyed by the first row of the block.
        self._blocks = {}
        # The cached property below computes `row_args` at the first use. Fits by gradient descent
        # never need them. The attribute set by the base class would hide the property.
        del self.row_args

    @cached_property
    def row_args(self):
        """Factors and weights of the rows. Blocks of a sparse table are cached with them."""
        plain = Rows(self.X, self.block_size)
        if is_sent(plain):
            return None, self._row_weights
        factor = map_over(plain, _row_factors, self.data_norm, self.unit, persist=True)
        if not issparse(self.X):
            return factor, self._row_weights
        for rows in self.blocks():
            block = plain[rows]
            zeroed = factor[rows] == 0.0
            if zeroed.any():
                data = np.where(np.repeat(zeroed, np.diff(block.indptr)), 0.0, block.data)
                block = csr_array((data, block.indices, block.indptr), shape=block.shape)
            self._blocks[rows.start] = block, block.T
        return factor, self._row_weights

    def streaming(self):
        """Return the rows for a single pass in which each block computes its factors."""
        if issparse(self.X):
            return self._changed()
        return self._changed(row_args=(None, self._row_weights))

    def as_equations(self, center=None):
        r"""Return the rows for a single pass, as equations that are scaled as a whole.

        Least squares reads a row as the equation :math:`x^\top w + c\,v = y`. If the norm of x
        exceeds the bound, c is scaled by the same factor as x, and the target must be scaled by
        `_Block.equation_factors`. Weights that solve all equations still solve the scaled
        equations. If only x were scaled, a solution would need larger weights.

        With a `center`, in the units of X, the rows are those minus the center, which are then
        dense.
        """
        rows = self.streaming()
        if center is not None:
            rows = self._changed(row_args=(None, self._row_weights))
            rows.equations_center = center
        rows.scales_constant = True
        return rows

    def __getitem__(self, rows):
        return _Block(self, rows)


def _row_factors(block, data_norm, unit):
    """Return the factors by which the rows of a block are multiplied, rounded down.

    A row x is divided by `unit` and then clipped to the norm `data_norm`. Its factor is therefore
    1 / `unit`, or `data_norm` / norm(x) if that is smaller; it is 0 if the norm of x overflows.
    """
    # The relative error of a sum of m squares is at most m units of roundoff; the root, product
    # and quotient add three. The margin is more than twice that: once for the norm, which may be
    # computed too small, and once for the product of the factor and a row, which may be too large.
    margin = 1.0 - 2.0 * (block.shape[1] + 4) * np.finfo(np.float64).eps
    with np.errstate(over="ignore", divide="ignore"):
        return np.minimum(1.0 / unit, data_norm / row_norms(block) * margin)


class _Block:
    """A block of bounded rows."""

    def __init__(self, table, rows):
        self._table = table
        self._factor, self._row_weights = slice_row_args(table.row_args, rows)
        self._n_columns = table.n_columns
        self._constant = table.constant
        if table._blocks:
            self._values, self._transposed = table._blocks[rows.start]
            return
        block = read_block(table.X, rows)
        if table.equations_center is not None:
            block = as_dense(block) - table.equations_center
        if self._factor is None:
            self._factor = _row_factors(block, table.data_norm, table.unit)
        zeroed = self._factor == 0.0
        if zeroed.any():
            self._values = np.where(zeroed[:, None], 0.0, block)
        else:
            self._values = block

    @property
    def equation_factors(self):
        """Factors of the rows in [0, 1], relative to the unit of the table."""
        # The rounded product of a number and its reciprocal may exceed 1.
        return np.minimum(1.0, self._factor * self._table.unit)

    def _constants(self, coefficients):
        """Return the constant feature of each row times its coefficient."""
        if self._table.scales_constant:
            coefficients = coefficients * self.equation_factors
        return self._constant * coefficients

    def scores(self, weights):
        """Return the products of the rows with weights of shape (..., n_features)."""
        product = self._values @ weights[..., : self._n_columns].T
        factor = self._factor
        if product.ndim == 2:
            factor = factor[:, None]
        product *= factor
        if self._constant:
            product += self._constant * weights[..., self._n_columns]
        return product

    def weighted(self, values):
        """Return values of the rows times the row weights."""
        if self._row_weights is None:
            return values
        return times_row_weights(values, self._row_weights)

    def weighted_sum(self, coefficients):
        """Return the sum of the bounded rows times their coefficients and row weights.

        The gradient of a linear model is such a sum. Rows are in the table's unit and clipped to
        the bound on their norm; the constant feature, if there is one, follows their columns.

        Parameters
        ----------
        coefficients : ndarray of shape (n_rows, ...)
            Derivatives of the rows' losses, for example.

        Returns
        -------
        ndarray of shape (..., n_features)
        """
        coefficients = self.weighted(coefficients)
        if coefficients.ndim == 1:
            factor = self._factor
        else:
            factor = self._factor[:, None]
        scaled = coefficients * factor
        total = np.empty((*coefficients.shape[1:], self._table.n_features))
        if self._table._blocks:
            sums = self._transposed.dot(scaled).T
        else:
            sums = scaled.T.dot(self._values)
        total[..., : self._n_columns] = sums
        if self._constant:
            constants = coefficients
            if self._table.scales_constant:
                constants = self.equation_factors * coefficients
            total[..., self._n_columns] = self._constant * constants.sum(axis=0)
        return total

    def add_weighted_gram(self, weights, gram):
        """Add the weighted sum of weight times row times row' to a Gram matrix, in place."""
        block = self._values
        root = np.sqrt(self.weighted(weights))
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
        """Add the weighted sum of row times row' to a Gram matrix, in place, without a dense block.

        `block` has the rows before their factors, and `root` the square root of each row's weight.
        """
        scale = np.repeat(root * self._factor, np.diff(block.indptr))
        block = csr_array((block.data * scale, block.indices, block.indptr), shape=block.shape)
        if self._constant:
            constants = csr_array(self._constants(root)[:, None])
            block = hstack([block, constants], format="csr")
        product = block.T.dot(block).tocoo()
        gram[product.row, product.col] += product.data
