r"""The objective :math:`C \sum_i \ell(\langle w, x_i\rangle, y_i) + \frac q2 |w - v|^2 + b^T w`."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from skdp._data._parts import sum_over


def loss_gradient(loss, rows, y, weights):
    """Return the gradient of the summed loss, shaped as the weights.

    Parameters
    ----------
    loss : ClippableLoss
    rows : BoundedRows
    y : array of shape (n_rows,)
    weights : ndarray
    """
    total = np.zeros(weights.shape)
    return sum_over(rows, _add_gradient, total, loss, weights, along=(y,))


def _add_gradient(total, block, y, loss, weights):
    total += block.weighted_sum(loss.residual(block.scores(weights), y))


def _add_hessian(gram, block, y, loss, weights):
    block.add_weighted_gram(loss.curvature(block.scores(weights), y), gram)


@dataclass(frozen=True, eq=False)
class Point:
    """Where a minimiser stands.

    Parameters
    ----------
    weights : ndarray
    gradient : ndarray
        That of the objective, shaped as the weights.
    """

    weights: np.ndarray
    gradient: np.ndarray


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
        gradient = loss_gradient(self.loss, self.rows, self.y, weights)
        return Point(weights, self.C * gradient + self.quadratic * weights + self.linear)

    def hessian_solver(self, weights):
        """Return a function that solves a system with the Hessian of a one-output loss."""
        gram = np.zeros((self.rows.n_features,) * 2, order="F")
        sum_over(self.rows, _add_hessian, gram, self.loss, weights, along=(self.y,))
        gram *= self.C
        gram.flat[:: self.rows.n_features + 1] += self.quadratic
        factor = cho_factor(gram, lower=False, overwrite_a=True, check_finite=False)
        return lambda vector: cho_solve(factor, vector, check_finite=False)
