"""A loss whose rows count by the weights of their classes."""

from dataclasses import dataclass

import numpy as np

from skdp._losses._base import BoundedLoss

__all__ = ["ClassWeightedLoss"]


@dataclass(frozen=True)
class ClassWeightedLoss(BoundedLoss):
    """A loss times a public weight of the row's class; all bounds are those of the largest.

    Parameters
    ----------
    loss : BoundedLoss
        Whose targets are class codes.
    weights : tuple of float
        The weight of each code, positive.
    """

    loss: BoundedLoss
    weights: tuple

    @property
    def weights_shape(self):
        return self.loss.weights_shape

    @property
    def curvature_rank(self):
        return self.loss.curvature_rank

    @property
    def n_vertices(self):
        return self.loss.n_vertices

    @property
    def curvature_vanishes_at_vertices(self):
        return self.loss.curvature_vanishes_at_vertices

    @property
    def residual_error(self):
        return max(self.weights) * self.loss.residual_error

    @property
    def slope_bound(self):
        return max(self.weights) * self.loss.slope_bound

    @property
    def curvature_bound(self):
        return max(self.weights) * self.loss.curvature_bound

    @property
    def trace_bound(self):
        return max(self.weights) * self.loss.trace_bound

    def value_at_zero(self):
        return max(self.weights) * self.loss.value_at_zero()

    def value(self, scores, y):
        total = 0.0
        for code, weight in enumerate(self.weights):
            rows = y == code
            total += weight * self.loss.value(scores[rows], y[rows])
        return total

    def residual(self, scores, y):
        return self._of_rows(y, scores) * self.loss.residual(scores, y)

    def curvature(self, scores, y):
        curvature, weights = self.loss.curvature(scores, y), self._of_rows(y, scores)
        return weights * curvature if scores.ndim == 1 else (weights, curvature)

    def curvature_product(self, curvature, direction):
        if direction.ndim == 1:
            return self.loss.curvature_product(curvature, direction)
        weights, curvature = curvature
        return weights * self.loss.curvature_product(curvature, direction)

    def _of_rows(self, y, scores):
        weights = np.asarray(self.weights)[y]
        return weights if scores.ndim == 1 else weights[:, None]
