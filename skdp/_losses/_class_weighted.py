"""A loss whose rows count by the weights of their classes."""

from dataclasses import dataclass

import numpy as np

__all__ = ["ClassWeightedLoss"]


@dataclass(frozen=True)
class ClassWeightedLoss:
    """A loss times a public weight of the row's class; all bounds are those of the largest.

    Parameters
    ----------
    loss : loss
        Whose targets are class codes.
    weights : tuple of float
        The weight of each code, positive.
    """

    loss: object
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

    def lipschitz(self, norm):
        """Bound a row's gradient."""
        return max(self.weights) * self.loss.lipschitz(norm)

    def smoothness(self, norm):
        """Bound a row's curvature."""
        return max(self.weights) * self.loss.smoothness(norm)

    def curvature_trace(self, norm):
        """Bound the trace of a row's curvature."""
        return max(self.weights) * self.loss.curvature_trace(norm)

    def value_at_zero(self):
        """Bound the loss of a row at zero weights."""
        return max(self.weights) * self.loss.value_at_zero()

    def value(self, scores, y):
        """Return the summed weighted loss."""
        total = 0.0
        for code, weight in enumerate(self.weights):
            rows = y == code
            total += weight * self.loss.value(scores[rows], y[rows])
        return total

    def residual(self, scores, y):
        """Return the derivative by each score, shaped as the scores."""
        return self._of_rows(y, scores) * self.loss.residual(scores, y)

    def curvature(self, scores, y):
        """Return what `curvature_product` needs; for one output the second derivatives."""
        curvature, weights = self.loss.curvature(scores, y), self._of_rows(y, scores)
        return weights * curvature if scores.ndim == 1 else (weights, curvature)

    def curvature_product(self, curvature, direction):
        """Apply the weighted curvature to a direction in score space."""
        if direction.ndim == 1:
            return self.loss.curvature_product(curvature, direction)
        weights, curvature = curvature
        return weights * self.loss.curvature_product(curvature, direction)

    def _of_rows(self, y, scores):
        weights = np.asarray(self.weights)[y]
        return weights if scores.ndim == 1 else weights[:, None]
