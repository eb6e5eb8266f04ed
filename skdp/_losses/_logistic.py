"""The logistic loss for two classes and its multinomial form."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, logsumexp, softmax

from skdp._losses._base import BoundedLoss, LossOfClasses


@dataclass(frozen=True)
class BinaryLogisticLoss(BoundedLoss):
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
        chosen = np.take_along_axis(scores, y[:, None], axis=1)[:, 0]
        return logsumexp(scores, axis=1) - chosen

    def residual(self, scores, y):
        probabilities = softmax(scores, axis=1)
        probabilities[np.arange(len(y)), y] -= 1.0
        return probabilities

    def curvature(self, scores, y):
        """Return the probabilities, from which `curvature_product` applies the curvature."""
        return softmax(scores, axis=1)

    def curvature_product(self, curvature, direction):
        """Apply :math:`diag(p) - p p^T` of each row to a direction in score space."""
        product = curvature * direction
        return product - curvature * product.sum(axis=1, keepdims=True)
