"""Classification losses: logistic losses, hinge losses, and losses that combine others."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, logsumexp

from skdp._data._row_wise import row_softmax, row_sums
from skdp._data._sums import project_on_simplex
from skdp._optim._loss import BoundedLoss, ClippableLoss, LossOfClasses, LossOfLabels

# Rounding error of a residual, relative to the magnitude of the scores and the slope.
RESIDUAL_ROUNDINGS = 8.0 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class BinaryLogisticLoss(LossOfLabels, BoundedLoss):
    r"""Logistic loss :math:`\ell(s, y) = \ln(1 + e^{s}) - y s` of a score s, y in {0, 1}.

    With p the logistic function of s, the magnitude of the residual :math:`p - y` is at most 1 and
    the curvature :math:`p (1 - p)` is at most 1/4.
    """

    loss_lipschitz = 1.0
    curvature_bound = 0.25
    residual_error = 8.0 * np.finfo(np.float64).eps
    n_vertices = 1
    # At a residual of magnitude t, the curvature is t (1 - t).
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
    r"""Cross-entropy of the softmax of k scores; y contains class codes 0 to k - 1.

    The residual :math:`p - e_y` has norm at most :math:`\sqrt 2`, and
    :math:`\mathrm{diag}(p) - p p^\top \preceq \tfrac12 I` (Böhning 1992).

    Parameters
    ----------
    n_classes : int
    """

    loss_lipschitz = math.sqrt(2.0)
    curvature_bound = 0.5
    residual_error = 16.0 * np.finfo(np.float64).eps
    # The curvature vanishes at the vertices, but not on the edge between two vertices.
    curvature_vanishes_at_vertices = False

    @property
    def n_vertices(self):
        r"""The number of vectors :math:`(e_j - e_y) x^T`; the gradient is in their hull with 0."""
        return self.n_classes - 1

    @property
    def trace_bound(self):
        r"""The maximum of :math:`1 - \|p\|^2`."""
        return 1.0 - 1.0 / self.n_classes

    def value(self, scores, y):
        """Return minus the logarithm of the softmax probability of each row's class."""
        return (
            logsumexp(np.ascontiguousarray(scores), axis=1)
            - np.take_along_axis(scores, y[:, None], axis=1)[:, 0]
        )

    def residual(self, scores, y):
        """Return the softmax probabilities minus the one-hot encoded class."""
        probabilities = row_softmax(scores)
        probabilities[np.arange(len(y)), y] -= 1.0
        return probabilities

    def curvature(self, scores, y):
        """Return the probabilities, which `curvature_product` uses."""
        return row_softmax(scores)

    def curvature_product(self, curvature, direction):
        """Return the product of :math:`diag(p) - p p^T` and a direction in score space."""
        product = curvature * direction
        return product - curvature * row_sums(product)[:, None]


@dataclass(frozen=True)
class BinaryHuberizedHingeLoss(LossOfLabels, BoundedLoss):
    r"""Huberized hinge of a margin z (Chaudhuri, Monteleoni and Sarwate 2011, section 3.4.2).

    It is 0 for :math:`z > 1 + h`, :math:`1 - z` for :math:`z < 1 - h` and
    :math:`(1 + h - z)^2 / (4h)` between them; z is the score s for y = 1 and -s for y = 0.
    Equivalently, :math:`\max_{\alpha \in [0, 1]} \alpha (1 - z) + h \alpha (1 - \alpha)`.

    Parameters
    ----------
    h : float
        Half the width of the rounded corner, positive.
    """

    h: float
    loss_lipschitz = 1.0

    @property
    def residual_error(self):
        """Upper bound on the rounding error of a residual, whose slope in the margin is 1 / h."""
        return RESIDUAL_ROUNDINGS * (1.0 + 1.0 / self.h)

    @property
    def curvature_bound(self):
        return 0.5 / self.h

    def value(self, scores, y):
        """Return the maximum over alpha in [0, 1]; see `_alpha`."""
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
        """Return the maximizer alpha, which is minus the derivative with respect to the margin."""
        return np.clip((1.0 + self.h - z) / (2.0 * self.h), 0.0, 1.0)


@dataclass(frozen=True)
class MulticlassHuberizedHingeLoss(LossOfClasses):
    r"""Huberized form of the multiclass hinge of Crammer and Singer (2001); y holds codes.

    With :math:`m_j = s_j + 1` for j other than y and :math:`m_y = s_y` it is :math:`\max_p \langle
    p, m \rangle - s_y + \tfrac h2 (1 - \|p\|^2)` over the probability vectors p. It is between
    their hinge, :math:`\max_j m_j - s_y`, and this hinge plus h / 2; for two classes it is the
    binary loss of :math:`z = s_y - s_j`. The maximizer p is the projection of m / h onto the
    simplex, and the residual :math:`p - e_y` has norm at most :math:`\sqrt 2`. A projection is
    non-expansive, so the curvature is at most 1 / h.

    Parameters
    ----------
    n_classes : int
    h : float
        Half the width of the rounded corner, positive.
    """

    h: float
    loss_lipschitz = math.sqrt(2.0)

    @property
    def residual_error(self):
        """Upper bound on the rounding error of a residual, whose slope in a margin is 1 / h."""
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
        """Return a mask of the classes with p > 0, which `curvature_product` uses."""
        return project_on_simplex(self._with_margin(scores, y) / self.h) > 0.0

    def curvature_product(self, curvature, direction):
        """Return the product of the projection's derivative and a direction.

        The derivative centers the direction over the classes with p > 0.
        """
        mean = np.sum(direction * curvature, axis=1) / np.sum(curvature, axis=1)
        return curvature * (direction - mean[:, None]) / self.h

    def _with_margin(self, scores, y):
        """Return the scores plus 1, except the score of the row's class."""
        m = scores + 1.0
        rows = np.arange(len(y))
        m[rows, y] = scores[rows, y]
        return m


@dataclass(frozen=True)
class SquaredHingeLoss(LossOfLabels):
    r"""The loss :math:`\max(0, 1 - z)^2`; it is not Lipschitz, so gradients must be clipped."""

    curvature_bound = 2.0
    # If 1 - z is at least this, the loss is replaced by its tangent.
    max_gap = math.inf

    def value(self, scores, y):
        """Return the squared gap, continued linearly where the gap exceeds `max_gap`."""
        gap = 1.0 - _sign(y) * scores
        inner = np.clip(gap, 0.0, self.max_gap)
        return inner * (2.0 * gap - inner)

    def residual(self, scores, y):
        sign = _sign(y)
        return -2.0 * sign * np.clip(1.0 - sign * scores, 0.0, self.max_gap)


@dataclass(frozen=True)
class ModifiedHuberLoss(SquaredHingeLoss):
    r"""The squared hinge for :math:`z \ge -1` and its tangent :math:`-4z` below (Zhang 2004)."""

    max_gap = 2.0


def _sign(y):
    """Return 1 for the second class and -1 for the first."""
    return np.where(y > 0.5, 1.0, -1.0)


@dataclass(frozen=True)
class ClassWeightedLoss(LossOfLabels, BoundedLoss):
    """A loss times a public weight of the row's class; bounds hold for the largest weight.

    Parameters
    ----------
    loss : BoundedLoss
        A loss whose targets are class codes.
    weights : tuple of float
        Positive weight of each class.
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
    def max_weight(self):
        """The largest class weight. All bounds are proportional to it."""
        return max(self.weights)

    @property
    def residual_error(self):
        return self.max_weight * self.loss.residual_error

    @property
    def loss_lipschitz(self):
        return self.max_weight * self.loss.loss_lipschitz

    @property
    def curvature_bound(self):
        return self.max_weight * self.loss.curvature_bound

    @property
    def trace_bound(self):
        return self.max_weight * self.loss.trace_bound

    def value_at_zero(self):
        return self.max_weight * self.loss.value_at_zero()

    def value(self, scores, y):
        return np.asarray(self.weights)[y] * self.loss.value(scores, y)

    def residual(self, scores, y):
        return self._row_weights(y, scores) * self.loss.residual(scores, y)

    def relative_weights(self, y):
        return np.asarray(self.weights)[y] / self.max_weight

    def curvature(self, scores, y):
        """Return the input of `curvature_product`, with row weights for several scores."""
        curvature = self.loss.curvature(scores, y)
        weights = self._row_weights(y, scores)
        if scores.ndim == 1:
            return weights * curvature
        return weights, curvature

    def curvature_product(self, curvature, direction):
        """Return the product of the weighted loss's curvature and a direction."""
        if direction.ndim == 1:
            return self.loss.curvature_product(curvature, direction)
        weights, curvature = curvature
        return weights * self.loss.curvature_product(curvature, direction)

    def _row_weights(self, y, scores):
        """Return the weight of each row's class, in a shape that broadcasts with the scores."""
        weights = np.asarray(self.weights)[y]
        if scores.ndim > 1:
            weights = weights[:, None]
        return weights


@dataclass(frozen=True)
class OneVersusRestLoss(LossOfLabels):
    """The sum over classes of a binary loss for the class against the rest; y contains codes.

    Parameters
    ----------
    loss : ClippableLoss
        A loss for two classes.
    n_classes : int
    """

    loss: ClippableLoss
    n_classes: int

    @property
    def weights_shape(self):
        return (self.n_classes,)

    @property
    def curvature_bound(self):
        return self.loss.curvature_bound

    def value(self, scores, y):
        return row_sums(self.loss.value(scores, self._targets(y)))

    def residual(self, scores, y):
        return self.loss.residual(scores, self._targets(y))

    def _targets(self, y):
        """Return a 0/1 target for each row and class."""
        return (y[:, None] == np.arange(self.n_classes)).astype(np.float64)
