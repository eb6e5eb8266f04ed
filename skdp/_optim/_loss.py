"""Protocols of the losses of linear models, as functions of scores and targets.

The geometry of rows (their norms, the constant feature for the intercept) is not part of a loss. A
row x with norm at most R whose scores have the residual r and the curvature H has the gradient r
xᵀ, with norm at most R `loss_lipschitz`, and the Hessian H ⊗ x xᵀ, at most R² `curvature_bound`.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from skdp.utils._values import FrozenValue


def _required(self):
    """Declare an attribute that each subclass must define."""


# A class that does not define all required attributes cannot be instantiated.
REQUIRED = property(abstractmethod(_required))


@dataclass(frozen=True)
class ClippableLoss(FrozenValue, ABC):
    """A loss for clipped gradients (DP-SGD), for which no Lipschitz constant is needed.

    A subclass is a frozen dataclass of public parameters, floats or integers. `scores` have the
    shape (n_rows, *weights_shape) and y has the shape (n_rows,). The values returned for a row
    depend only on that row. Residuals of finite scores are finite, even for scores of 1e300.
    Residuals of infinite scores may be NaN; clipping turns NaN into a number.

    Attributes
    ----------
    weights_shape : tuple of int
        () for one score per row, (k,) for k scores per row.
    target_bounds : tuple of (float, float) or None
        Smallest and largest target. None if y contains class codes: 0 to k - 1, or 0 and 1 with one
        score. Regressors pass targets in units of half their range, (-1, 1), or counts, (0, high).
        A loss with a Lipschitz constant for such targets can be a `BoundedLoss`.
    curvature_bound : float
        Upper bound on the eigenvalues of a row's second derivative with respect to its scores.
        Clipped gradients need it only for step sizes, so some rows may exceed the bound of
        `PoissonLoss`.
    curvature_rank : int
        Upper bound on the rank of that matrix.
    trace_bound : float
        Upper bound on its trace.
    """

    weights_shape = ()
    target_bounds = REQUIRED
    curvature_bound = REQUIRED

    @property
    def curvature_rank(self):
        return math.prod(self.weights_shape)

    @property
    def trace_bound(self):
        return self.curvature_rank * self.curvature_bound

    @abstractmethod
    def value(self, scores, y):
        """Return the loss of each row."""

    @abstractmethod
    def residual(self, scores, y):
        """Return the derivative of each row's loss with respect to its scores, as a new array."""

    def relative_weights(self, y):
        """Return the weight of each row relative to the largest weight, a number of at most 1.

        A gradient is clipped at this fraction of the clip, as if it were clipped first and weighted
        afterward. With the same clip for all classes, only the class with the largest weight would
        be clipped, which shifts scores to the other classes.
        """
        return 1.0


@dataclass(frozen=True)
class LossOfLabels(ClippableLoss):
    """A loss whose targets y are class codes."""

    target_bounds = None


@dataclass(frozen=True)
class BoundedLoss(ClippableLoss):
    """A convex, non-negative, Lipschitz loss for output, gradient or objective perturbation.

    The bounds are nearly attained for all parameters, because the noise is proportional to them.

    Attributes
    ----------
    loss_lipschitz : float
        Lipschitz constant of the loss as a function of the scores: an upper bound on the Euclidean
        norm of a row's residual.
    residual_error : float
        Upper bound on the norm of the rounding error in a row's residual for exact scores: a few
        rounding errors of the residual and of the scores times the curvature.
    n_vertices : int
        Number of vectors of length `loss_lipschitz`, dependent only on the row's target, such that
        the row's residual is in the convex hull of 0 and these vectors. Only objective perturbation
        needs it.
    curvature_vanishes_at_vertices : bool
        True if there is one vertex and the trace at the fraction t of the way from 0 to it is at
        most 4 t (1 - t) `trace_bound`. Only objective perturbation needs it.
    """

    loss_lipschitz = REQUIRED
    residual_error = REQUIRED

    def value_at_zero(self):
        """Return an upper bound on the loss of a row with scores 0, over all targets.

        This method assumes that the loss is the same for all targets. Regression losses override
        it.
        """
        return float(self.value(np.zeros((1, *self.weights_shape)), np.zeros(1, dtype=int))[0])

    @abstractmethod
    def curvature(self, scores, y):
        """Return the second derivatives for one score, or the input of `curvature_product`."""

    def curvature_product(self, curvature, direction):
        """Return the product of each row's second derivative and a direction in score space."""
        return curvature * direction


@dataclass(frozen=True)
class LossOfClasses(LossOfLabels, BoundedLoss):
    """A loss with one score per class; adding a constant to all scores does not change it."""

    n_classes: int

    @property
    def weights_shape(self):
        return (self.n_classes,)

    @property
    def curvature_rank(self):
        return self.n_classes - 1
