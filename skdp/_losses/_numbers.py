"""Losses of numbers: of the difference between a score and a number, and of counts."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from skdp._losses._base import BoundedLoss, ClippableLoss


@dataclass(frozen=True)
class HuberLoss(ClippableLoss):
    r"""The squared loss where :math:`|s - y| \le t` and its tangents beyond (Huber 1964).

    Parameters
    ----------
    threshold : float, default=inf
        The bound t on the slope, positive. Infinite: the squared loss, whose slope has no bound.
    """

    threshold: float = math.inf
    target_bounds = (-math.inf, math.inf)
    curvature_bound = trace_bound = 1.0

    def value_at_zero(self):
        """Bound the loss of a row whose score is 0, over targets up to the threshold.

        Noisy gradients that are compared with perturbation ask for it.
        """
        return 0.5 * self.threshold**2

    def value(self, scores, y):
        inner = np.clip(scores - y, -self.threshold, self.threshold)
        return inner * (scores - y - 0.5 * inner)

    def residual(self, scores, y):
        return np.clip(scores - y, -self.threshold, self.threshold)


@dataclass(frozen=True)
class ClippedPoissonLoss(BoundedLoss):
    r"""Half the Poisson deviance of the mean :math:`e^s`, of slope at most G in the score s.

    For targets y in [0, G] the slope of :math:`e^s - y s` is at least -G; it is clipped to G
    above. A clipped slope still grows with s, so it is the slope of a convex loss: the deviance
    where :math:`e^s \le y + G`, and its tangent beyond (Song, Thakkar and Thakurta 2021, on
    clipping in generalized linear models).

    Parameters
    ----------
    high : float
        The bound G on targets and slopes, positive.
    """

    high: float

    @property
    def residual_error(self):
        """Bound what rounding of the exponential does to a residual."""
        return 8.0 * np.finfo(np.float64).eps * self.high

    @property
    def curvature_bound(self):
        r"""Below the corner :math:`e^s \le y + G`."""
        return 2.0 * self.high

    @property
    def slope_bound(self):
        return self.high

    @property
    def target_bounds(self):
        return (0.0, self.high)

    def value_at_zero(self):
        return max(1.0, 1.0 - self.high + float(xlogy(self.high, self.high)))

    def value(self, scores, y):
        corner = np.log(y + self.high)
        s = np.minimum(scores, corner)
        deviance = np.exp(s) - y * s - y + xlogy(y, y)
        return deviance + self.high * (scores - s)

    def residual(self, scores, y):
        return np.minimum(np.exp(np.minimum(scores, math.log(2.0 * self.high))) - y, self.high)

    def curvature(self, scores, y):
        corner = np.log(y + self.high)
        return np.where(scores < corner, np.exp(np.minimum(scores, corner)), 0.0)
