r"""Blocks with a smooth prior: neighboring cells of a numeric column have similar values.

The values of the cells of a term are :math:`\Phi w` with a penalty on :math:`\|w\|^2`. This is a
Gaussian prior with covariance :math:`K = \Phi \Phi^\top`. A bin of a numeric column has

.. math:: K_{uv} = \kappa [u = v] + (1 - \kappa) e^{-|u - v| / \ell} ,

where u and v are the positions of bins, from 0 to 1. Missing values and the cells of a categorical
column are not related to other cells. The covariance of a table is the Kronecker product of those
of its axes. The diagonal of K is 1, so each row of :math:`\Phi` has norm 1.

The constant is part of the model, so a column need not represent it. Centered loadings have the
covariance :math:`(K - s) / (1 - s)`, where s is the largest constant with which :math:`K - s` is
positive semidefinite.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce

import numpy as np

from skdp.utils._values import FrozenValue

# Features are multiples of this number, so the product of a feature and a sum is exact.
WEIGHT_STEP = 2.0**-12
# The independent part kappa of a bin's variance, and the correlation length in units of the number
# of bins. Tuned on training rows of Adult, bank_marketing, credit_default and california_housing,
# over parts from .1 to .5 and lengths from .15 to 1.
INDEPENDENT_PART = 0.3
CORRELATION_LENGTH = 0.3
# A numeric column with fewer bins has independent cells.
MIN_SMOOTH_BINS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class SmoothBlock(FrozenValue):
    """Features of one term with a smooth prior; see `skdp.gam._blocks.Block` for the interface.

    Parameters
    ----------
    term : int
        Index of the term.
    weight : float
        Norm of a row's features.
    loadings : ndarray of shape (n_cells, size)
        Features of the term's cells, of norm at most 1.
    cell_counts : ndarray of shape (n_cells,)
        Noisy counts of the term's cells.
    most_counts : ndarray of shape (n_cells,), default=None
        Upper bounds on the counts, for the step size. None if they are the counts.
    table : Table, default=None
        The table of the term, if it has several columns. It keeps its eigenvectors, which its
        blocks in the designs of all stages share.
    """

    term: int
    weight: float
    loadings: np.ndarray
    cell_counts: np.ndarray
    most_counts: np.ndarray | None = None
    table: object = None

    ordered = False
    is_indicator = False
    is_trend = False

    @property
    def key(self):
        """Value that is equal for blocks with equal features and counts."""
        return self.weight, self.cell_counts.tobytes(), self.loadings.tobytes()

    @property
    def size(self):
        return self.loadings.shape[1]

    @cached_property
    def matrix(self):
        """Features of each cell of the term, multiples of `WEIGHT_STEP`.

        They are rounded towards zero, which does not increase the norm of a row.
        """
        return np.trunc(self.weight * self.loadings / WEIGHT_STEP) * WEIGHT_STEP

    @property
    def squared_norms(self):
        """Squared norm of a row's features in each cell of the term; exact."""
        return (self.matrix**2).sum(axis=1)

    @property
    def squared_norm(self):
        """Largest squared norm of a row's features."""
        return float(self.squared_norms.max())

    @cached_property
    def moments(self):
        """Second moments of the features, summed over the rows, from noisy counts."""
        return np.maximum(self.cell_counts, 0.0) @ self.matrix**2

    @cached_property
    def max_moment(self):
        """Upper bound on the second moment in each direction, summed over the rows."""
        if self.table is not None:
            return self.weight**2 * self.table.max_moment
        counts = self.cell_counts if self.most_counts is None else self.most_counts
        moment = self.matrix.T @ (np.maximum(counts, 0.0)[:, np.newaxis] * self.matrix)
        return float(np.linalg.eigvalsh(moment)[-1])

    def values(self, weights):
        """Return the values of the term's cells."""
        return self.matrix @ weights

    def gradient(self, sums):
        """Return the exact product of the transposed features and sums over rows."""
        return self.matrix.T @ sums


@lru_cache(maxsize=256)
def smooth_loadings(n_bins, is_smooth):
    """Return the loadings for the bins of one axis and for one more cell without neighbors.

    Columns are in decreasing order of their eigenvalues.

    Parameters
    ----------
    n_bins : int
        Number of cells besides the last one.
    is_smooth : bool
        True if neighboring cells have similar values.
    """
    return _loadings_of(_covariance(n_bins, is_smooth))


@lru_cache(maxsize=256)
def centered_loadings(n_bins, has_missing):
    """Return the loadings of the bins of a number and of missing values, without their constant.

    The features of a column may be moved by any vector, because the constant absorbs the change.
    They are moved by the center of the smallest ball that contains them, and scaled to norm 1
    again, so the differences between cells become larger while no row's norm grows.

    Parameters
    ----------
    n_bins : int
    has_missing : bool
        False if hardly any value is missing. The features of missing values are then 0, the
        center of the ball.
    """
    covariance = _covariance(n_bins, True)
    n_cells = n_bins + 1 if has_missing else n_bins
    if n_cells < 2:
        return smooth_loadings(n_bins, True)
    covariance = covariance[:n_cells, :n_cells]
    # K - s is positive semidefinite if and only if s is at most 1 / (1' K^-1 1).
    constant = 1.0 / float(np.linalg.solve(covariance, np.ones(n_cells)).sum())
    centered = _loadings_of((covariance - constant) / (1.0 - constant))
    # The last eigenvalue is 0.
    loadings = np.zeros((n_bins + 1, n_cells - 1))
    loadings[:n_cells] = centered[:, :-1]
    loadings.setflags(write=False)
    return loadings


def _covariance(n_bins, is_smooth):
    """Return the covariance of the bins of one axis and of one more cell without neighbors."""
    covariance = np.eye(n_bins + 1)
    if is_smooth and n_bins >= MIN_SMOOTH_BINS:
        positions = (np.arange(n_bins) + 0.5) / n_bins
        distances = np.abs(positions[:, np.newaxis] - positions)
        smooth = np.exp(-distances / CORRELATION_LENGTH)
        covariance[:-1, :-1] *= INDEPENDENT_PART
        covariance[:-1, :-1] += (1.0 - INDEPENDENT_PART) * smooth
    return covariance


def _loadings_of(covariance):
    """Return a square root of a covariance, with columns in decreasing order of eigenvalues."""
    values, vectors = np.linalg.eigh(covariance)
    loadings = vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0))
    # Rounding errors in the eigenvectors must not increase a norm.
    loadings /= np.maximum(np.linalg.norm(loadings, axis=1, keepdims=True), 1.0)
    loadings.setflags(write=False)
    return loadings


def table_loadings(shape, kinds):
    """Return the loadings of the cells of a table: products of those of its axes."""
    return reduce(np.kron, map(axis_loadings, shape, kinds))


def axis_loadings(n_cells, kind):
    """Return the loadings of the cells of one axis of a table, for a column of this kind."""
    return smooth_loadings(n_cells - 1, kind != "label")
