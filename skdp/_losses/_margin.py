"""Smooth losses of a margin z: the score s for y = 1 and -s for y = 0."""

from dataclasses import dataclass

import numpy as np

from skdp._losses._base import ClippableLoss


@dataclass(frozen=True)
class SquaredHingeLoss(ClippableLoss):
    r"""The loss :math:`\max(0, 1 - z)^2`; its slope has no bound, so rows must be clipped."""

    curvature_bound = 2.0

    def value(self, scores, y):
        return np.maximum(1.0 - _sign(y) * scores, 0.0) ** 2

    def residual(self, scores, y):
        sign = _sign(y)
        return -2.0 * sign * np.maximum(1.0 - sign * scores, 0.0)


@dataclass(frozen=True)
class ModifiedHuberLoss(ClippableLoss):
    r"""The squared hinge for :math:`z \ge -1` and its tangent :math:`-4z` below (Zhang 2004)."""

    curvature_bound = 2.0

    def value(self, scores, y):
        z = _sign(y) * scores
        return np.where(z < -1.0, -4.0 * z, np.maximum(1.0 - z, 0.0) ** 2)

    def residual(self, scores, y):
        sign = _sign(y)
        return -2.0 * sign * np.clip(1.0 - sign * scores, 0.0, 2.0)


def _sign(y):
    return np.where(y > 0.5, 1.0, -1.0)
