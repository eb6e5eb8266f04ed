r"""The objective :math:`C \sum_i \ell(\langle w, x_i \rangle, y_i) + \tfrac q2 \|w\|^2 + b^T w`."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

__all__ = ["LinearObjective", "Point", "loss_gradient"]

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
    scores : list, default=None
        To which the scores of each block are added.
    """
    gradient = np.zeros(weights.shape)
    for block in rows.blocks():
        of_block = rows.scores(block, weights)
        if scores is not None:
            scores.append(of_block)
        gradient += rows.weighted_sum(block, loss.residual(of_block, y[block]))
    return gradient


@dataclass(frozen=True, eq=False)
class Point:
    """Where a minimiser stands.

    Parameters
    ----------
    weights : ndarray
    gradient : ndarray
        That of the objective, shaped as the weights.
    scores : list of ndarray, or None
        Those of each block, from which the value and the Hessian follow; None where they are many.
    """

    weights: np.ndarray
    gradient: np.ndarray
    scores: list | None


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
    linear : ndarray of the shape of the weights, default=None
        The vector b; None for zero.
    """

    def __init__(self, loss, rows, y, C, quadratic=1.0, linear=None):
        self.loss, self.rows, self.y, self.C = loss, rows, y, C
        self.shape = (*loss.weights_shape, rows.n_features)
        self.quadratic = quadratic
        self.linear = np.zeros(self.shape) if linear is None else linear
        self.smoothness = quadratic + C * rows.n_rows * loss.curvature_bound * rows.norm**2

    def at(self, weights):
        """Return the `Point` of some weights."""
        few = self.rows.n_rows * math.prod(self.loss.weights_shape) <= MOST_KEPT_SCORES
        scores = [] if few else None
        gradient = loss_gradient(self.loss, self.rows, self.y, weights, scores)
        gradient = self.C * gradient + self.quadratic * weights + self.linear
        return Point(weights, gradient, scores)

    def value(self, point):
        """Return J."""
        value = sum(self.loss.value(scores, self.y[rows]) for rows, scores in self._scores(point))
        slope = 0.5 * self.quadratic * point.weights + self.linear
        return self.C * value + float(np.vdot(point.weights, slope))

    def hessian_solver(self, point):
        """Return a function that solves a system with the Hessian of a one-output loss."""
        gram = np.zeros((self.rows.n_features,) * 2, order="F")
        for rows, curvature in zip(self.rows.blocks(), self._curvatures(point), strict=True):
            self.rows.add_weighted_gram(rows, curvature, gram)
        gram *= self.C
        gram.flat[:: self.rows.n_features + 1] += self.quadratic
        factor = cho_factor(gram, lower=False, overwrite_a=True, check_finite=False)
        return lambda vector: cho_solve(factor, vector, check_finite=False)

    def hessian_product(self, point):
        """Return a function that multiplies by the Hessian."""
        curvatures = list(self._curvatures(point))

        def product(direction):
            total = np.zeros(self.shape)
            for rows, curvature in zip(self.rows.blocks(), curvatures, strict=True):
                change = self.rows.scores(rows, direction)
                total += self.rows.weighted_sum(
                    rows, self.loss.curvature_product(curvature, change)
                )
            return self.C * total + self.quadratic * direction

        return product

    def _scores(self, point):
        if point.scores is not None:
            return zip(self.rows.blocks(), point.scores, strict=True)
        return ((rows, self.rows.scores(rows, point.weights)) for rows in self.rows.blocks())

    def _curvatures(self, point):
        for rows, scores in self._scores(point):
            yield self.loss.curvature(scores, self.y[rows])
