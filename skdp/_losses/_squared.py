"""Half the squared error with a bounded slope."""

from dataclasses import dataclass

import numpy as np

__all__ = ["ClippedSquaredLoss"]


@dataclass(frozen=True)
class ClippedSquaredLoss:
    r"""Half the squared error :math:`(s - y)^2 / 2` of a score s, of slope at most 1, y in [-1, 1].

    A clipped slope grows with s, so it is the slope of a convex loss: that of Huber (1964).
    """

    weights_shape = ()
    curvature_bound = 1.0
    # Unclipped, a residual of a target in [-1, 1] has a score of at most 2.
    residual_error = 8.0 * np.finfo(np.float64).eps
    curvature_rank = 1

    def lipschitz(self, norm):
        r"""Bound a row's gradient: :math:`|s - y| \|x\| \le \|x\|`, clipped."""
        return norm

    def smoothness(self, norm):
        r"""Bound a row's curvature: :math:`\|x\|^2`."""
        return self.curvature_bound * norm**2

    def curvature_trace(self, norm):
        """Bound the trace of a row's curvature, which has rank one."""
        return self.smoothness(norm)

    def value_at_zero(self):
        """Bound the loss of a row at zero weights, over all targets."""
        return 0.5

    def value(self, scores, y):
        """Return the summed loss; scores and y have shape (n_rows,)."""
        error = np.abs(scores - y)
        return float(np.sum(np.where(error <= 1.0, 0.5 * error**2, error - 0.5)))

    def residual(self, scores, y):
        """Return the derivative by each score, shape (n_rows,)."""
        return np.clip(scores - y, -1.0, 1.0)

    def curvature(self, scores, y):
        """Return the second derivative by each score, shape (n_rows,)."""
        return (np.abs(scores - y) <= 1.0).astype(float)

    def curvature_product(self, curvature, direction):
        """Apply the curvature to a direction in score space."""
        return curvature * direction
