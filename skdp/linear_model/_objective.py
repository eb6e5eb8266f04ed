r"""The objective :math:`C \sum_i \ell(\langle w, x_i\rangle, y_i) + \frac q2 |w - v|^2 + b^T w`.

And the sums over rows that it, and what is said of its minimizer, are made of.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, helmert

from skdp._data._parts import sum_over
from skdp.utils._values import FrozenValue


def loss_gradient(loss, rows, y, weights):
    """Return the gradient of the summed loss, shaped as the weights.

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
    """Return the summed loss's Hessian, in coordinates of contrasts.

    Those of k classes are the k - 1 orthonormal contrasts of Helmert: adding the same to the
    weights of all classes changes no loss.
    """
    n_outputs = math.prod(loss.weights_shape)
    p = rows.n_features
    grams = np.zeros((n_outputs * (n_outputs + 1) // 2, p, p))
    sum_over(rows, _add_hessians, grams, loss, weights, row_args=(y,))
    if n_outputs == 1:
        return grams[0]
    full = np.empty((n_outputs, p, n_outputs, p))
    for (a, b), gram in zip(_pairs(n_outputs), grams, strict=True):
        full[a, :, b] = full[b, :, a] = gram if a == b else -gram
    contrasts = helmert(n_outputs)
    size = (n_outputs - 1) * p
    terms = (contrasts, full, contrasts)
    return np.einsum("ia,apbq,jb->ipjq", *terms, optimize=True).reshape(size, size)


def _pairs(n_outputs):
    return [(a, b) for b in range(n_outputs) for a in range(b + 1)]


def _add_hessians(grams, block, y, loss, weights):
    """Add to the matrices of pairs of outputs, with the sign changed beside the diagonal."""
    scores = block.scores(weights)
    curvature = loss.curvature(scores, y)
    if scores.ndim == 1:
        block.add_weighted_gram(curvature, grams[0])
        return
    for (a, b), gram in zip(_pairs(scores.shape[1]), grams, strict=True):
        unit = np.zeros_like(scores)
        unit[:, b] = 1.0
        # At least 0 on the diagonal, at most 0 elsewhere.
        column = loss.curvature_product(curvature, unit)
        block.add_weighted_gram(np.abs(column[:, a]), gram)


@dataclass(frozen=True, eq=False)
class Point(FrozenValue):
    """Where a minimizer stands.

    Parameters
    ----------
    weights : ndarray
    gradient : ndarray
        That of the objective, shaped as the weights.
    """

    weights: np.ndarray
    gradient: np.ndarray


class LinearObjective:
    """The regularized sum of a loss over bounded rows, in scikit-learn's own scaling by C.

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
    center : ndarray of the shape of the weights, default=0.0
        The vector v, which no row moves.
    """

    def __init__(self, loss, rows, y, C, quadratic=1.0, linear=0.0, center=0.0):
        self.loss = loss
        self.rows = rows
        self.y = y
        self.C = C
        self.quadratic = quadratic
        self.shape = (*loss.weights_shape, rows.n_features)
        self.linear = np.zeros(self.shape) + linear - quadratic * center
        self.smoothness = quadratic + C * rows.n_units * loss.curvature_bound * rows.norm**2

    def at(self, weights):
        """Return the `Point` of some weights."""
        gradient = loss_gradient(self.loss, self.rows, self.y, weights)
        return Point(weights, self.C * gradient + self.quadratic * weights + self.linear)

    def hessian_solver(self, weights):
        """Return a function that solves a system with the Hessian of a one-output loss."""
        gram = self.C * summed_hessian(self.loss, self.rows, self.y, weights)
        gram.flat[:: self.rows.n_features + 1] += self.quadratic
        factor = cho_factor(gram, lower=False, overwrite_a=True, check_finite=False)
        return lambda vector: cho_solve(factor, vector, check_finite=False)
