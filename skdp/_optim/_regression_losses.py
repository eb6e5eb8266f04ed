"""Regression losses: Huber's and squared losses, and Poisson losses for counts and amounts."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from skdp._optim._loss import BoundedLoss, ClippableLoss


@dataclass(frozen=True)
class HuberLoss(ClippableLoss):
    r"""The squared loss where :math:`|s - y| \le t`, and its tangents beyond (Huber 1964).

    Parameters
    ----------
    threshold : float, default=inf
        Upper bound t on the magnitude of the residual, positive. If infinite, the loss is the
        squared loss, which is not Lipschitz.
    """

    threshold: float = math.inf
    target_bounds = (-math.inf, math.inf)
    curvature_bound = 1.0
    trace_bound = 1.0

    def value_at_zero(self):
        """Return the largest loss of a row with score 0, over targets up to the threshold.

        It is used to compare the expected losses of mechanisms.
        """
        return 0.5 * self.threshold**2

    def value(self, scores, y):
        inner = np.clip(scores - y, -self.threshold, self.threshold)
        return inner * (scores - y - 0.5 * inner)

    def residual(self, scores, y):
        return np.clip(scores - y, -self.threshold, self.threshold)


# Curvature of the Poisson loss that step sizes assume, in units of the targets' mean.
POISSON_CURVATURE = 2.0
# Largest score whose exponential is computed; larger scores give the same finite residual.
MAX_LOG_MEAN = 700.0


@dataclass(frozen=True)
class PoissonLoss(ClippableLoss):
    r"""Half the Poisson deviance of the mean :math:`e^s`, up to a constant, for targets of mean 1.

    The curvature is unbounded. It exceeds the value assumed for step sizes if the predicted mean is
    larger; clipped residuals bound the effect of such rows on a step.
    """

    target_bounds = (0.0, math.inf)
    curvature_bound = POISSON_CURVATURE
    trace_bound = 1.0

    def value_at_zero(self):
        """Return the loss of a row with score 0."""
        return 1.0

    def value(self, scores, y):
        return np.exp(scores) - y * scores

    def residual(self, scores, y):
        return np.exp(np.minimum(scores, MAX_LOG_MEAN)) - y


@dataclass(frozen=True)
class ClippedPoissonLoss(BoundedLoss):
    r"""Half the Poisson deviance of the mean :math:`e^s`, with Lipschitz constant G in the score s.

    For targets y in [0, G], the derivative of :math:`e^s - y s` is at least -G. It is clipped to at
    most G. A clipped derivative still grows with s, so it is the derivative of a convex loss: the
    deviance where :math:`e^s \le y + G`, and its tangent beyond (Song, Thakkar and Thakurta 2021,
    on clipping in generalized linear models).

    Parameters
    ----------
    high : float
        Upper bound G on targets and on the magnitude of the derivative, positive.
    """

    high: float

    @property
    def residual_error(self):
        """Upper bound on the rounding error of a residual, from the error of the exponential."""
        return 8.0 * np.finfo(np.float64).eps * self.high

    @property
    def curvature_bound(self):
        r"""Upper bound on the curvature, which is :math:`e^s` up to :math:`y + G` and 0 beyond."""
        return 2.0 * self.high

    @property
    def loss_lipschitz(self):
        return self.high

    @property
    def target_bounds(self):
        return (0.0, self.high)

    def value_at_zero(self):
        return max(1.0, 1.0 - self.high + float(xlogy(self.high, self.high)))

    def value(self, scores, y):
        """Return half the deviance up to the score log(y + G), and its tangent beyond."""
        corner = np.log(y + self.high)
        s = np.minimum(scores, corner)
        deviance = np.exp(s) - y * s - y + xlogy(y, y)
        return deviance + self.high * (scores - s)

    def residual(self, scores, y):
        return np.minimum(np.exp(np.minimum(scores, math.log(2.0 * self.high))) - y, self.high)

    def curvature(self, scores, y):
        corner = np.log(y + self.high)
        return np.where(scores < corner, np.exp(np.minimum(scores, corner)), 0.0)
