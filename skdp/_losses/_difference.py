"""Losses of the difference between a score and a number."""

from dataclasses import dataclass

import numpy as np

__all__ = ["HuberLoss", "SquaredLoss"]


@dataclass(frozen=True)
class SquaredLoss:
    r"""The loss :math:`\tfrac12 (s - y)^2`; its slope has no bound, so rows must be clipped."""

    weights_shape = ()
    curvature_bound = 1.0

    def value(self, scores, y):
        """Return the summed loss; scores and y have shape (n_rows,)."""
        return 0.5 * float(np.sum((scores - y) ** 2))

    def residual(self, scores, y):
        """Return the derivative by each score, shape (n_rows,)."""
        return scores - y


@dataclass(frozen=True)
class HuberLoss:
    r"""The squared loss where :math:`|s - y| \le t` and its tangents beyond (Huber 1964).

    Parameters
    ----------
    threshold : float
        The bound t on the slope, positive.
    """

    threshold: float
    weights_shape = ()
    curvature_bound = 1.0

    def value(self, scores, y):
        """Return the summed loss; scores and y have shape (n_rows,)."""
        inner = np.clip(scores - y, -self.threshold, self.threshold)
        return float(np.sum(inner * (scores - y - 0.5 * inner)))

    def residual(self, scores, y):
        """Return the derivative by each score, shape (n_rows,)."""
        return np.clip(scores - y, -self.threshold, self.threshold)
