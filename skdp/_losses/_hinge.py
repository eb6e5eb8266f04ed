"""Losses of a margin: the hinge with a rounded corner, for two classes and many; squared hinges."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._losses._base import BoundedLoss, ClippableLoss, LossOfClasses

RESIDUAL_ROUNDINGS = 8.0 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class BinaryHuberisedHingeLoss(BoundedLoss):
    r"""Huberised hinge of a margin z (Chaudhuri, Monteleoni and Sarwate 2011, section 3.4.2).

    It is 0 for :math:`z > 1 + h`, :math:`1 - z` for :math:`z < 1 - h` and
    :math:`(1 + h - z)^2 / (4h)` between them; z is the score s for y = 1 and -s for y = 0.
    Equally :math:`\max_{\alpha \in [0, 1]} \alpha (1 - z) + h \alpha (1 - \alpha)`.

    Parameters
    ----------
    h : float
        Half the width of the rounded corner, positive.
    """

    h: float
    slope_bound = 1.0

    @property
    def residual_error(self):
        """Bound what rounding of the margin does to a residual, which is steep by 1 / h."""
        return RESIDUAL_ROUNDINGS * (1.0 + 1.0 / self.h)

    curvature_bound = property(lambda self: 0.5 / self.h)

    def value(self, scores, y):
        z = np.where(y > 0.5, scores, -scores)
        alpha = self._alpha(z)
        return alpha * (1.0 - z + self.h * (1.0 - alpha))

    def residual(self, scores, y):
        sign = _sign(y)
        return -sign * self._alpha(sign * scores)

    def curvature(self, scores, y):
        z = np.where(y > 0.5, scores, -scores)
        return np.where(np.abs(1.0 - z) < self.h, self.curvature_bound, 0.0)

    def _alpha(self, z):
        return np.clip((1.0 + self.h - z) / (2.0 * self.h), 0.0, 1.0)


@dataclass(frozen=True)
class MulticlassHuberisedHingeLoss(LossOfClasses):
    r"""Huberised form of the multiclass hinge of Crammer and Singer (2001); y holds codes.

    With :math:`m_j = s_j + 1` for j other than y and :math:`m_y = s_y` it is
    :math:`\max_p \langle p, m \rangle - s_y + \tfrac h2 (1 - \|p\|^2)` over the probability
    vectors p, so between their hinge, :math:`\max_j m_j - s_y`, and that plus h / 2; for two
    classes it is the binary loss of :math:`z = s_y - s_j`. The maximiser p is the projection of
    m / h on the simplex, and the residual :math:`p - e_y` has norm at most :math:`\sqrt 2`. A
    projection moves no further than its argument: the curvature is at most 1 / h.

    Parameters
    ----------
    n_classes : int
    h : float
        Positive.
    """

    h: float
    slope_bound = math.sqrt(2.0)

    @property
    def residual_error(self):
        """Bound what rounding of the margins does to a residual, which is steep by 1 / h."""
        return RESIDUAL_ROUNDINGS * self.n_classes * (1.0 + 1.0 / self.h)

    curvature_bound = property(lambda self: 1.0 / self.h)

    def value(self, scores, y):
        m, rows = self._with_margin(scores, y), np.arange(len(y))
        p = _project_on_simplex(m / self.h)
        gap = np.einsum("ij,ij->i", p, m - scores[rows, y][:, None])
        return gap + 0.5 * self.h * (1.0 - np.einsum("ij,ij->i", p, p))

    def residual(self, scores, y):
        p = _project_on_simplex(self._with_margin(scores, y) / self.h)
        p[np.arange(len(y)), y] -= 1.0
        return p

    def curvature(self, scores, y):
        """Return which classes have a part in p, from which `curvature_product` follows."""
        return _project_on_simplex(self._with_margin(scores, y) / self.h) > 0.0

    def curvature_product(self, curvature, direction):
        """Apply a projection's derivative, centring over the classes that have a part in p."""
        mean = np.sum(direction * curvature, axis=1) / np.sum(curvature, axis=1)
        return curvature * (direction - mean[:, None]) / self.h

    def _with_margin(self, scores, y):
        m = scores + 1.0
        rows = np.arange(len(y))
        m[rows, y] = scores[rows, y]
        return m


def _project_on_simplex(v):
    """Return the nearest probability vector of each row (Held, Wolfe and Crowder 1974)."""
    v = v - v.max(axis=1, keepdims=True)
    descending = -np.sort(-v, axis=1)
    thresholds = (np.cumsum(descending, axis=1) - 1.0) / np.arange(1, v.shape[1] + 1)
    last = np.sum(descending > thresholds, axis=1) - 1
    return np.maximum(v - np.take_along_axis(thresholds, last[:, None], axis=1), 0.0)


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
