r"""The objective :math:`C \sum_i \ell(\langle w, x_i \rangle, y_i) + \tfrac q2 \|w\|^2 + b^T w`."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

__all__ = ["LinearObjective", "loss_gradient"]


def loss_gradient(loss, rows, y, weights):
    """Return the gradient of the summed loss, shaped as the weights."""
    gradient = np.zeros(weights.shape)
    for block in rows.blocks():
        residual = loss.residual(rows.scores(block, weights), y[block])
        gradient += rows.weighted_sum(block, residual)
    return gradient


class LinearObjective:
    """The regularised sum of a loss over bounded rows, in scikit-learn's own scaling by C.

    It is q-strongly convex in all coordinates, the intercept's included.

    Parameters
    ----------
    loss : loss
        From `skdp._losses`.
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
        self.smoothness = quadratic + C * rows.n_rows * loss.smoothness(rows.norm)

    def value(self, weights):
        """Return J."""
        value = sum(
            self.loss.value(self.rows.scores(rows, weights), self.y[rows])
            for rows in self.rows.blocks()
        )
        slope = 0.5 * self.quadratic * weights + self.linear
        return self.C * value + float(np.vdot(weights, slope))

    def gradient(self, weights):
        """Return the gradient of J, shaped as the weights."""
        gradient = loss_gradient(self.loss, self.rows, self.y, weights)
        return self.C * gradient + self.quadratic * weights + self.linear

    def hessian_solver(self, weights):
        """Return a function that solves a system with the Hessian of a one-output loss."""
        gram = np.zeros((self.rows.n_features,) * 2, order="F")
        for rows in self.rows.blocks():
            curvature = self.loss.curvature(self.rows.scores(rows, weights), self.y[rows])
            self.rows.add_weighted_gram(rows, curvature, gram)
        gram *= self.C
        gram.flat[:: self.rows.n_features + 1] += self.quadratic
        factor = cho_factor(gram, lower=False, overwrite_a=True, check_finite=False)
        return lambda vector: cho_solve(factor, vector, check_finite=False)

    def hessian_product(self, weights):
        """Return a function that multiplies by the Hessian."""
        curvatures = [
            self.loss.curvature(self.rows.scores(rows, weights), self.y[rows])
            for rows in self.rows.blocks()
        ]

        def product(direction):
            total = np.zeros(self.shape)
            for rows, curvature in zip(self.rows.blocks(), curvatures, strict=True):
                change = self.rows.scores(rows, direction)
                total += self.rows.weighted_sum(
                    rows, self.loss.curvature_product(curvature, change)
                )
            return self.C * total + self.quadratic * direction

        return product
