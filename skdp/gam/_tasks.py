"""What is predicted: clipped residuals of two classes, of several, or of numbers; and back."""

import math
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from scipy.special import expit, softmax

from skdp._losses._classes import BinaryLogisticLoss, MultinomialLogisticLoss

# A clipped vector's norm may exceed the clip by the rounding of its computation.
SHRINK = 1.0 - 2.0**-40


class _OfClasses:
    """What tasks of classes take from their `loss`, a likelihood."""

    spread, unit = 2.0, 1.0
    main_share, has_pairs = 0.7, False
    n_outputs = property(lambda self: math.prod(self.loss.weights_shape))
    curvature = property(attrgetter("loss.curvature_bound"))
    curvature_trace = property(attrgetter("loss.trace_bound"))
    curvature_rank = property(attrgetter("loss.curvature_rank"))
    largest_loss = property(lambda self: self.loss.value_at_zero())


@dataclass(frozen=True, kw_only=True)
class BinaryTask(_OfClasses):
    """The logistic loss, with residuals clipped to 1/2.

    Parameters
    ----------
    weights : tuple of float
        Of the two classes, the largest 1.

    Attributes
    ----------
    clip, clip_l1 : float
        The largest L2 and L1 norm of a row's residuals.
    curvature, curvature_trace, curvature_rank : float
        Bounds on those of the loss: its largest eigenvalue, their sum, and how many there are.
    main_share : float
        What single columns have of the squares of the blocks' weights, beside pairs.
    has_pairs : bool
        Whether choosing pairs has been found to be worth its price.
    typical_curvature : float or None
        A usual one of a row, where the loss is that of a likelihood.
    spread : float
        The standard deviation that noise may give a score where data say nothing.
    unit : float
        What a loss of 1 is in the units of the targets.
    """

    weights: tuple = (1.0, 1.0)

    loss = BinaryLogisticLoss()
    clip = 0.5
    clip_l1 = 0.5
    typical_curvature = 0.15

    def residuals(self, scores, targets):
        """Return clipped residuals.

        Parameters
        ----------
        scores : ndarray of shape (n_rows, n_outputs)
        targets : ndarray of shape (n_rows,)
            Codes of classes.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs)
        """
        clipped = np.clip(self.loss.residual(scores[:, 0], targets), -self.clip, self.clip)
        return (clipped * np.asarray(self.weights)[targets])[:, None]

    def probabilities(self, scores):
        """Return the classes' probabilities, of shape (n_rows, 2).

        The scores solve ``E[clip(q - y)] = 0`` with q their logistic function, that is
        ``(1 - p) min(q, c) = p min(1 - q, c)``.
        """
        q = expit(scores[:, 0])
        one, other = np.minimum(q, self.clip), np.minimum(expit(-scores[:, 0]), self.clip)
        p = one / (one + other)
        return np.column_stack([1.0 - p, p])


@dataclass(frozen=True, kw_only=True)
class MultinomialTask(_OfClasses):
    """The softmax loss, with residual vectors clipped to an L2 norm of sqrt(1/2), or not.

    Parameters
    ----------
    weights : tuple of float
        Of the classes, the largest 1.
    clipped : bool, default=True
        A vector that is clipped is no gradient, as objective perturbation needs it.
    """

    weights: tuple
    clipped: bool = True

    clip_l1 = 2.0
    typical_curvature = 0.1

    @property
    def clip(self):
        return math.sqrt(0.5 if self.clipped else 2.0)

    @property
    def loss(self):
        return MultinomialLogisticLoss(len(self.weights))

    def residuals(self, scores, targets):
        """Return clipped residuals; as `BinaryTask.residuals`."""
        residuals = self.loss.residual(scores, targets)
        norms = np.linalg.norm(residuals, axis=1)
        factor = np.minimum(1.0, self.clip / np.maximum(norms, 1e-300)) * SHRINK
        return residuals * (factor * np.asarray(self.weights)[targets])[:, None]

    def probabilities(self, scores):
        """Return the classes' probabilities, of shape (n_rows, n_classes).

        With q the softmax of the scores and s_k the factor that clips a row of class k, the scores
        solve ``sum_k p_k s_k (q - e_k) = 0``: p_k is in proportion to q_k / s_k.
        """
        q = softmax(scores, axis=1)
        p = np.empty_like(q)
        for k in range(q.shape[1]):
            residual = q.copy()
            residual[:, k] -= 1.0
            norms = np.linalg.norm(residual, axis=1)
            p[:, k] = q[:, k] * np.maximum(1.0, norms / self.clip)
        return p / p.sum(axis=1, keepdims=True)


@dataclass(frozen=True, kw_only=True)
class NumberTask:
    """The squared loss on targets in [-1, 1], with residuals clipped to 1/4."""

    unit: float = 1.0

    n_outputs = 1
    clip = 0.25
    clip_l1 = 0.25
    curvature = curvature_trace = 1.0
    curvature_rank = 1
    typical_curvature = None
    spread = 0.5
    largest_loss = 0.5
    main_share, has_pairs = 0.5, True

    def residuals(self, scores, targets):
        """Return clipped residuals; as `BinaryTask.residuals`."""
        return np.clip(scores[:, 0] - targets, -self.clip, self.clip)[:, None]
