r"""The objective :math:`C \sum_i \ell(\langle w, x_i\rangle, y_i) + \frac q2 |w - v|^2 + b^T w`.

The module defines the objective and the sums over rows that it and the standard errors use.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, helmert

from skdp._data._parts import sum_over
from skdp.utils._values import FrozenValue


def loss_gradient(loss, rows, y, weights):
    """Return the gradient of the summed loss, in the shape of the weights.

    Parameters
    ----------
    loss : ClippableLoss
    rows : BoundedRows
    y : array of shape (n_rows,)
    weights : ndarray
    """
    return sum_over(rows, _add_gradient, np.zeros(weights.shape), loss, weights, row_args=(y,))


def _add_gradient(total, block, y, loss, weights):
    total += block.weighted_sum(loss.residual(block.scores(weights), y))


def summed_hessian(loss, rows, y, weights):
    """Return the Hessian of the summed loss, in contrast coordinates.

    Adding the same vector to the weights of all classes does not change the loss. For k classes,
    the coordinates are therefore the k - 1 orthonormal Helmert contrasts.
    """
    n_outputs = math.prod(loss.weights_shape)
    p = rows.n_features
    grams = np.zeros((n_outputs * (n_outputs + 1) // 2, p, p))
    sum_over(rows, _add_hessians, grams, loss, weights, row_args=(y,))
    if n_outputs == 1:
        return grams[0]
    full = np.empty((n_outputs, p, n_outputs, p))
    for (a, b), gram in zip(_pairs(n_outputs), grams, strict=True):
        if a != b:
            gram = -gram
        full[a, :, b] = full[b, :, a] = gram
    contrasts = helmert(n_outputs)
    size = (n_outputs - 1) * p
    hessian = np.einsum("ia,apbq,jb->ipjq", contrasts, full, contrasts, optimize=True)
    return hessian.reshape(size, size)


def _pairs(n_outputs):
    """Return the pairs of outputs in the upper triangle."""
    return [(a, b) for b in range(n_outputs) for a in range(b + 1)]


def _add_hessians(grams, block, y, loss, weights):
    """Add a block's Hessians of the loss to the matrices of pairs of outputs, in place.

    The sign of the off-diagonal matrices is flipped, so that all weights are non-negative.
    """
    scores = block.scores(weights)
    curvature = loss.curvature(scores, y)
    if scores.ndim == 1:
        block.add_weighted_gram(curvature, grams[0])
        return
    for (a, b), gram in zip(_pairs(scores.shape[1]), grams, strict=True):
        unit = np.zeros_like(scores)
        unit[:, b] = 1.0
        # The entries are at least 0 on the diagonal and at most 0 elsewhere.
        column = loss.curvature_product(curvature, unit)
        block.add_weighted_gram(np.abs(column[:, a]), gram)


@dataclass(frozen=True, eq=False)
class Point(FrozenValue):
    """Weights and the objective's gradient at these weights.

    Parameters
    ----------
    weights : ndarray
    gradient : ndarray
        Gradient, in the shape of the weights.
    """

    weights: np.ndarray
    gradient: np.ndarray


class LinearObjective:
    """The regularized sum of a loss over bounded rows, scaled by C as in scikit-learn.

    It is q-strongly convex in all coordinates, including the intercept.

    Parameters
    ----------
    loss : BoundedLoss
    rows : BoundedRows
    y : array of shape (n_rows,)
        Targets in the form that the loss expects.
    C : float
    quadratic : float, default=1.0
        Factor q of half the squared norm, at least 1.
    linear : ndarray of the shape of the weights, default=0.0
        Vector b.
    baseline : ndarray of the shape of the weights, default=0.0
        Vector v toward which weights shrink. It does not depend on the rows, or was released.
    """

    def __init__(self, loss, rows, y, C, quadratic=1.0, linear=0.0, baseline=0.0):
        self.loss = loss
        self.rows = rows
        self.y = y
        self.C = C
        self.quadratic = quadratic
        self.shape = (*loss.weights_shape, rows.n_features)
        self.linear = np.zeros(self.shape) + linear - quadratic * baseline
        self.smoothness = quadratic + C * rows.n_units * loss.curvature_bound * rows.norm**2

    def at(self, weights):
        """Return the `Point` at these weights."""
        gradient = loss_gradient(self.loss, self.rows, self.y, weights)
        return Point(weights, self.C * gradient + self.quadratic * weights + self.linear)

    def hessian_solver(self, weights):
        """Return a function that solves linear systems with the Hessian for one output."""
        gram = self.C * summed_hessian(self.loss, self.rows, self.y, weights)
        gram.flat[:: self.rows.n_features + 1] += self.quadratic
        factor = cho_factor(gram, lower=False, overwrite_a=True, check_finite=False)

        def solve(vector):
            return cho_solve(factor, vector, check_finite=False)

        return solve
