"""Losses of the difference between a score and a number."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._losses._base import ClippableLoss


@dataclass(frozen=True)
class SquaredLoss(ClippableLoss):
    r"""The loss :math:`\tfrac12 (s - y)^2`; its slope has no bound, so rows must be clipped."""

    target_bounds = (-math.inf, math.inf)
    curvature_bound = 1.0

    def value(self, scores, y):
        return 0.5 * (scores - y) ** 2

    def residual(self, scores, y):
        return scores - y


@dataclass(frozen=True)
class HuberLoss(ClippableLoss):
    r"""The squared loss where :math:`|s - y| \le t` and its tangents beyond (Huber 1964).

    Parameters
    ----------
    threshold : float
        The bound t on the slope, positive.
    """

    threshold: float
    target_bounds = (-math.inf, math.inf)
    curvature_bound = trace_bound = 1.0

    def value_at_zero(self):
        """Bound the loss of a row whose score is 0, over targets up to the threshold."""
        return 0.5 * self.threshold**2

    def value(self, scores, y):
        inner = np.clip(scores - y, -self.threshold, self.threshold)
        return inner * (scores - y - 0.5 * inner)

    def residual(self, scores, y):
        return np.clip(scores - y, -self.threshold, self.threshold)
