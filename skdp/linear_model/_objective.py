r"""The objective :math:`C \sum_i \ell(\langle w, x_i\rangle, y_i) + \frac q2 |w - v|^2 + b^T w`."""

import math
from dataclasses import dataclass
from operator import methodcaller

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from skdp._data._parts import map_over, sum_over

# 32 MB; the rows are read again for what more scores would be kept for.
MOST_KEPT_SCORES = 2**22


def loss_gradient(loss, rows, y, weights, scores=None):
    """Return the gradient of the summed loss, shaped as the weights.

    Parameters
    ----------
    loss : ClippableLoss
    rows : BoundedRows
    y : array of shape (n_rows,)
    weights : ndarray
    scores : ndarray of shape (n_rows, *loss.weights_shape), default=None
        Where the rows' scores are put.
    """
    total = np.zeros(weights.shape)
    return sum_over(rows, _add_gradient, total, loss, weights, along=(y, scores))


def _add_gradient(total, block, y, scores, loss, weights):
    of_block = block.scores(weights)
    if scores is not None:
        scores[:] = of_block
    total += block.weighted_sum(loss.residual(of_block, y))


def _add_value(total, block, y, scores, loss, weights):
    scores = block.scores(weights) if scores is None else scores
    total += block.shared(loss.value(scores, y)).sum()


def _add_hessian(gram, block, y, scores, loss, weights):
    scores = block.scores(weights) if scores is None else scores
    block.add_weighted_gram(loss.curvature(scores, y), gram)


def _add_hessian_product(total, block, curvature, loss, direction):
    product = loss.curvature_product(curvature, block.scores(direction))
    total += block.weighted_sum(product)


@dataclass(frozen=True, eq=False)
class Point:
    """Where a minimiser stands.

    Parameters
    ----------
    weights : ndarray
    gradient : ndarray
        That of the objective, shaped as the weights.
    scores : ndarray of shape (n_rows, ...), or None
        From which the value and the Hessian follow; None where they are many.
    """

    weights: np.ndarray
    gradient: np.ndarray
    scores: np.ndarray | None


class LinearObjective:
    """The regularised sum of a loss over bounded rows, in scikit-learn's own scaling by C.

    It is q-strongly convex in all coordinates, the intercept's included.

    Parameters
    ----------
    loss : BoundedLoss
    rows : BoundedRows
    y : array of shape (n_rows,)
        Targets as the loss takes them.
    C : float
    quadratic : float, default=1.0
        The factor q of half the squared norm, at least 1.
    linear : ndarray of the shape of the weights, default=0.0
        The vector b.
    centre : ndarray of the shape of the weights, default=0.0
        The vector v, which no row moves.
    """

    def __init__(self, loss, rows, y, C, quadratic=1.0, linear=0.0, centre=0.0):
        self.loss, self.rows, self.y, self.C = loss, rows, y, C
        self.shape = (*loss.weights_shape, rows.n_features)
        self.quadratic = quadratic
        self.linear = np.zeros(self.shape) + linear - quadratic * centre
        self.smoothness = quadratic + C * rows.n_rows * loss.curvature_bound * rows.norm**2

    def at(self, weights):
        """Return the `Point` of some weights."""
        shape = (self.rows.n_rows, *self.loss.weights_shape)
        scores = np.empty(shape) if math.prod(shape) <= MOST_KEPT_SCORES else None
        gradient = loss_gradient(self.loss, self.rows, self.y, weights, scores)
        gradient = self.C * gradient + self.quadratic * weights + self.linear
        return Point(weights, gradient, scores)

    def value(self, point):
        """Return J."""
        value = float(self._sum_at(point, _add_value, np.zeros(())))
        slope = 0.5 * self.quadratic * point.weights + self.linear
        return self.C * value + float(np.vdot(point.weights, slope))

    def hessian_solver(self, point):
        """Return a function that solves a system with the Hessian of a one-output loss."""
        gram = np.zeros((self.rows.n_features,) * 2, order="F")
        self._sum_at(point, _add_hessian, gram)
        gram *= self.C
        gram.flat[:: self.rows.n_features + 1] += self.quadratic
        factor = cho_factor(gram, lower=False, overwrite_a=True, check_finite=False)
        return lambda vector: cho_solve(factor, vector, check_finite=False)

    def hessian_product(self, point):
        """Return a function that multiplies by the Hessian."""
        scores = point.scores
        if scores is None:
            scores = np.empty((self.rows.n_rows, *self.loss.weights_shape))
            map_over(self.rows, methodcaller("scores", point.weights), scores)
        curvature = self.loss.curvature(scores, self.y)

        def product(direction):
            total, small = np.zeros(self.shape), (self.loss, direction)
            sum_over(self.rows, _add_hessian_product, total, *small, along=(curvature,))
            return self.C * total + self.quadratic * direction

        return product

    def _sum_at(self, point, add, total):
        along = self.y, point.scores
        return sum_over(self.rows, add, total, self.loss, point.weights, along=along)
