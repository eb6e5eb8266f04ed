"""Losses of classes: logistic ones, those of a margin, and those made of others."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, logsumexp

from skdp._losses._base import BoundedLoss, ClippableLoss, LossOfClasses, LossOfLabels
from skdp.utils._row_wise import row_softmax, row_sums
from skdp.utils._sums import project_on_simplex

RESIDUAL_ROUNDINGS = 8.0 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class BinaryLogisticLoss(LossOfLabels, BoundedLoss):
    r"""Logistic loss :math:`\ell(s, y) = \ln(1 + e^{s}) - y s` of a score s, y in {0, 1}.

    With p the logistic function of s, the residual :math:`p - y` is at most 1 and the curvature
    :math:`p (1 - p)` at most 1/4.
    """

    slope_bound = 1.0
    curvature_bound = 0.25
    residual_error = 8.0 * np.finfo(np.float64).eps
    n_vertices = 1
    # A residual of magnitude t comes with the curvature t (1 - t).
    curvature_vanishes_at_vertices = True

    def value(self, scores, y):
        return -log_expit(np.where(y > 0.5, scores, -scores))

    def residual(self, scores, y):
        return expit(scores) - y

    def curvature(self, scores, y):
        probability = expit(scores)
        return probability * (1.0 - probability)


@dataclass(frozen=True)
class MultinomialLogisticLoss(LossOfClasses):
    r"""Cross-entropy of the softmax of k scores; y holds class codes 0 to k - 1.

    The residual :math:`p - e_y` has norm at most :math:`\sqrt 2`, and
    :math:`\mathrm{diag}(p) - p p^\top \preceq \tfrac12 I` (Böhning 1992).

    Parameters
    ----------
    n_classes : int
    """

    slope_bound = math.sqrt(2.0)
    curvature_bound = 0.5
    residual_error = 16.0 * np.finfo(np.float64).eps
    # It does, but between two vertices that weigh the same nothing makes up for it.
    curvature_vanishes_at_vertices = False

    @property
    def n_vertices(self):
        r"""The gradient of a row is in the hull of 0 and the vectors :math:`(e_j - e_y) x^T`."""
        return self.n_classes - 1

    @property
    def trace_bound(self):
        r"""The largest :math:`1 - \|p\|^2`."""
        return 1.0 - 1.0 / self.n_classes

    def value(self, scores, y):
        return (
            logsumexp(np.ascontiguousarray(scores), axis=1)
            - np.take_along_axis(scores, y[:, None], axis=1)[:, 0]
        )

    def residual(self, scores, y):
        probabilities = row_softmax(scores)
        probabilities[np.arange(len(y)), y] -= 1.0
        return probabilities

    def curvature(self, scores, y):
        """Return the probabilities, from which `curvature_product` applies the curvature."""
        return row_softmax(scores)

    def curvature_product(self, curvature, direction):
        """Apply :math:`diag(p) - p p^T` of each row to a direction in score space."""
        product = curvature * direction
        return product - curvature * row_sums(product)[:, None]


@dataclass(frozen=True)
class BinaryHuberizedHingeLoss(LossOfLabels, BoundedLoss):
    r"""Huberized hinge of a margin z (Chaudhuri, Monteleoni and Sarwate 2011, section 3.4.2).

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

    @property
    def curvature_bound(self):
        return 0.5 / self.h

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
class MulticlassHuberizedHingeLoss(LossOfClasses):
    r"""Huberized form of the multiclass hinge of Crammer and Singer (2001); y holds codes.

    With :math:`m_j = s_j + 1` for j other than y and :math:`m_y = s_y` it is
    :math:`\max_p \langle p, m \rangle - s_y + \tfrac h2 (1 - \|p\|^2)` over the probability
    vectors p, so between their hinge, :math:`\max_j m_j - s_y`, and that plus h / 2; for two
    classes it is the binary loss of :math:`z = s_y - s_j`. The maximizer p is the projection of
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

    @property
    def curvature_bound(self):
        return 1.0 / self.h

    def value(self, scores, y):
        m = self._with_margin(scores, y)
        rows = np.arange(len(y))
        p = project_on_simplex(m / self.h)
        gap = row_sums(p * (m - scores[rows, y][:, None]))
        return gap + 0.5 * self.h * (1.0 - row_sums(p * p))

    def residual(self, scores, y):
        p = project_on_simplex(self._with_margin(scores, y) / self.h)
        p[np.arange(len(y)), y] -= 1.0
        return p

    def curvature(self, scores, y):
        """Return which classes have a part in p, from which `curvature_product` follows."""
        return project_on_simplex(self._with_margin(scores, y) / self.h) > 0.0

    def curvature_product(self, curvature, direction):
        """Apply a projection's derivative, centering over the classes that have a part in p."""
        mean = np.sum(direction * curvature, axis=1) / np.sum(curvature, axis=1)
        return curvature * (direction - mean[:, None]) / self.h

    def _with_margin(self, scores, y):
        m = scores + 1.0
        rows = np.arange(len(y))
        m[rows, y] = scores[rows, y]
        return m


@dataclass(frozen=True)
class SquaredHingeLoss(LossOfLabels):
    r"""The loss :math:`\max(0, 1 - z)^2`; its slope has no bound, so rows must be clipped."""

    curvature_bound = 2.0
    # Of 1 - z, from which on the loss goes along its tangent.
    largest_gap = math.inf

    def value(self, scores, y):
        gap = 1.0 - _sign(y) * scores
        inner = np.clip(gap, 0.0, self.largest_gap)
        return inner * (2.0 * gap - inner)

    def residual(self, scores, y):
        sign = _sign(y)
        return -2.0 * sign * np.clip(1.0 - sign * scores, 0.0, self.largest_gap)


@dataclass(frozen=True)
class ModifiedHuberLoss(SquaredHingeLoss):
    r"""The squared hinge for :math:`z \ge -1` and its tangent :math:`-4z` below (Zhang 2004)."""

    largest_gap = 2.0


def _sign(y):
    return np.where(y > 0.5, 1.0, -1.0)


def _same(name):
    return property(lambda self: getattr(self.loss, name))


def _weighted(name):
    return property(lambda self: max(self.weights) * getattr(self.loss, name))


@dataclass(frozen=True)
class ClassWeightedLoss(LossOfLabels, BoundedLoss):
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

    weights_shape = _same("weights_shape")
    curvature_rank = _same("curvature_rank")
    n_vertices = _same("n_vertices")
    curvature_vanishes_at_vertices = _same("curvature_vanishes_at_vertices")
    residual_error = _weighted("residual_error")
    slope_bound = _weighted("slope_bound")
    curvature_bound = _weighted("curvature_bound")
    trace_bound = _weighted("trace_bound")

    def value_at_zero(self):
        return max(self.weights) * self.loss.value_at_zero()

    def value(self, scores, y):
        return np.asarray(self.weights)[y] * self.loss.value(scores, y)

    def residual(self, scores, y):
        return self._of_rows(y, scores) * self.loss.residual(scores, y)

    def curvature(self, scores, y):
        curvature = self.loss.curvature(scores, y)
        weights = self._of_rows(y, scores)
        return weights * curvature if scores.ndim == 1 else (weights, curvature)

    def curvature_product(self, curvature, direction):
        if direction.ndim == 1:
            return self.loss.curvature_product(curvature, direction)
        weights, curvature = curvature
        return weights * self.loss.curvature_product(curvature, direction)

    def _of_rows(self, y, scores):
        weights = np.asarray(self.weights)[y]
        return weights if scores.ndim == 1 else weights[:, None]


@dataclass(frozen=True)
class OneVersusRestLoss(LossOfLabels):
    """The sum over classes of a two-class loss of the class against the rest; y holds codes.

    Parameters
    ----------
    loss : ClippableLoss
        For two classes.
    n_classes : int
    """

    loss: ClippableLoss
    n_classes: int

    @property
    def weights_shape(self):
        return (self.n_classes,)

    curvature_bound = _same("curvature_bound")

    def value(self, scores, y):
        return row_sums(self.loss.value(scores, self._targets(y)))

    def residual(self, scores, y):
        return self.loss.residual(scores, self._targets(y))

    def _targets(self, y):
        return (y[:, None] == np.arange(self.n_classes)).astype(np.float64)
