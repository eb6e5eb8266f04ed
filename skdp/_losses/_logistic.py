"""The logistic loss for two classes and its multinomial form."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, logsumexp, softmax

__all__ = ["BinaryLogisticLoss", "MultinomialLogisticLoss"]


@dataclass(frozen=True)
class BinaryLogisticLoss:
    r"""Logistic loss :math:`\ell(s, y) = \ln(1 + e^{s}) - y s` of a score s, y in {0, 1}."""

    weights_shape = ()
    curvature_bound = 0.25
    residual_error = 8.0 * np.finfo(np.float64).eps
    curvature_rank = 1
    n_vertices = 1
    # A residual of magnitude t comes with the curvature t (1 - t).
    curvature_vanishes_at_vertices = True

    def lipschitz(self, norm):
        r"""Bound a row's gradient: :math:`|\sigma(s) - y| \|x\| \le \|x\|`."""
        return norm

    def smoothness(self, norm):
        r"""Bound a row's curvature: :math:`\sigma(s)(1 - \sigma(s)) \|x\|^2 \le \|x\|^2 / 4`."""
        return self.curvature_bound * norm**2

    def curvature_trace(self, norm):
        """Bound the trace of a row's curvature, which has rank one."""
        return self.smoothness(norm)

    def value_at_zero(self):
        """Return the loss of a row at zero weights."""
        return math.log(2.0)

    def value(self, scores, y):
        """Return the summed loss; scores and y have shape (n_rows,)."""
        return -float(np.sum(log_expit(np.where(y > 0.5, scores, -scores))))

    def residual(self, scores, y):
        """Return the derivative by each score, shape (n_rows,)."""
        return expit(scores) - y

    def curvature(self, scores, y):
        """Return the second derivative by each score, shape (n_rows,)."""
        probability = expit(scores)
        return probability * (1.0 - probability)

    def curvature_product(self, curvature, direction):
        """Apply the curvature to a direction in score space."""
        return curvature * direction


@dataclass(frozen=True)
class MultinomialLogisticLoss:
    r"""Cross-entropy of the softmax of k scores; y holds class codes 0 to k - 1.

    The residual :math:`p - e_y` has norm at most :math:`\sqrt 2`, and
    :math:`\mathrm{diag}(p) - p p^\top \preceq \tfrac12 I` (Böhning 1992).

    Parameters
    ----------
    n_classes : int
    """

    n_classes: int
    curvature_bound = 0.5
    residual_error = 16.0 * np.finfo(np.float64).eps
    # It does, but between two vertices that weigh the same nothing makes up for it.
    curvature_vanishes_at_vertices = False

    @property
    def weights_shape(self):
        return (self.n_classes,)

    @property
    def curvature_rank(self):
        """The rank of a row's curvature."""
        return self.n_classes - 1

    @property
    def n_vertices(self):
        r"""The gradient of a row is in the hull of 0 and the vectors :math:`(e_j - e_y) x^T`."""
        return self.n_classes - 1

    def lipschitz(self, norm):
        r"""Bound a row's gradient: :math:`\|p - e_y\| \|x\| \le \sqrt 2 \|x\|`."""
        return math.sqrt(2.0) * norm

    def smoothness(self, norm):
        r"""Bound a row's curvature: :math:`\|x\|^2 / 2`."""
        return self.curvature_bound * norm**2

    def curvature_trace(self, norm):
        r"""Bound the trace of a row's curvature: :math:`(1 - \|p\|^2) \|x\|^2`."""
        return (1.0 - 1.0 / self.n_classes) * norm**2

    def value_at_zero(self):
        """Return the loss of a row at zero weights."""
        return math.log(self.n_classes)

    def value(self, scores, y):
        """Return the summed loss; scores have shape (n_rows, n_classes), y (n_rows,)."""
        chosen = np.take_along_axis(scores, y[:, None], axis=1)[:, 0]
        return float(np.sum(logsumexp(scores, axis=1) - chosen))

    def residual(self, scores, y):
        """Return the derivative by each score, shape (n_rows, n_classes)."""
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
