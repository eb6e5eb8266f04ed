"""Rows that are centered and multiplied by a matrix, so that their second moment is about equal in
all directions.
"""

from dataclasses import dataclass

import numpy as np

from skdp._data._parts import as_dense
from skdp._data._row_wise import row_norms
from skdp.utils._values import FrozenValue

EPS = float(np.finfo(np.float64).eps)
# Root of the mean squared norm of whitened rows, relative to the bound on rows, and the factor of
# the bound on their second moment in a direction.
WHITENED_NORM = 0.8
SAFETY = 1.2


@dataclass(frozen=True, kw_only=True, eq=False)
class WhitenedRows(FrozenValue):
    r"""The released numbers that whiten rows: gradients are those of :math:`P^\top (x_i - m)`.

    Parameters
    ----------
    center : ndarray of shape (n_columns,)
        The vector m.
    transform : ndarray of shape (n_columns, n_columns)
        The matrix P.
    weight_center : ndarray of shape (n_columns,)
    weight_distance : float
        Rows with a larger distance from `weight_center` get a weight of `weight_distance` squared
        over their squared distance.
    second_moment : float
        Bound on the weighted mean of the squared values in a direction, relative to the squared
        bound on rows. It holds with high probability, and only step sizes depend on it.
    """

    center: np.ndarray
    transform: np.ndarray
    weight_center: np.ndarray
    weight_distance: float
    second_moment: float

    def row_weights(self, block):
        """Return the weights of the rows of a block, each of which depends on its row alone."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            distances = row_norms(as_dense(block) - self.weight_center)
            return np.minimum(1.0, self.weight_distance / distances) ** 2

    def norms(self, block, row_products):
        """Return upper bounds on the norms of the whitened rows.

        Parameters
        ----------
        block : ndarray or CSR matrix of shape (n, n_columns)
        row_products : callable
            See `row_scores_function`; the function for as many scores as columns.

        Returns
        -------
        ndarray of shape (n,)
        """
        whitened = row_products(block, self.transform.T) - self.center @ self.transform
        # The error in a sum of products is at most that of the sum of their magnitudes.
        magnitudes = row_norms(block) + np.linalg.norm(self.center)
        rounding = 4.0 * (block.shape[1] + 8) * EPS * np.linalg.norm(self.transform)
        return row_norms(whitened) + rounding * magnitudes

    def weights_of_rows(self, weights, constant):
        """Return the weights of the rows as they are read, and the intercept, for some weights."""
        column_weights = self.transform @ weights[:-1]
        intercept = constant * weights[-1] - column_weights @ self.center
        return np.append(column_weights, intercept)

    def gradient(self, total, constant):
        """Return the gradient for the sums of residuals times rows and of residuals."""
        row_sum = total[:-1] - total[-1] * self.center
        return np.append(self.transform.T @ row_sum, constant * total[-1])
