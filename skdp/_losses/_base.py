"""What a loss of linear models is: two protocols, of functions of scores and targets alone.

The geometry of rows (their norms, the constant feature that carries an intercept) belongs to
whoever has the rows: a row x of norm at most R, with the residual r and the curvature H of its
scores, has the gradient r xᵀ, of norm at most R `slope_bound`, and the Hessian H ⊗ x xᵀ, at most
R² `curvature_bound`.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from skdp.utils._values import FrozenValue

# What a subclass must define; of one that does not, no instance is made.
REQUIRED = property(abstractmethod(lambda self: None))


@dataclass(frozen=True)
class ClippableLoss(FrozenValue, ABC):
    """A loss for clipped gradients (DP-SGD), whose guarantee needs no bound on its slope.

    A subclass is a frozen dataclass of public parameters, floats or integers. `scores` have the
    shape (n_rows, *weights_shape) and y has the shape (n_rows,); a row's part of everything that is
    returned depends on that row alone. Residuals of finite scores are finite, those of 1e300 too;
    where scores are infinite they may be NaN, of which clipping makes a number.

    Attributes
    ----------
    weights_shape : tuple of int
        () for one score a row, (k,) for k scores.
    target_bounds : tuple of (float, float) or None
        The least and the largest target; None where y holds codes: 0 to k - 1, or 0 and 1 for one
        score. Regressors hand over targets in units of half their range, (-1, 1), or for counts
        (0, high). A loss whose slope is bounded for such targets can be a `BoundedLoss`.
    curvature_bound : float
        No eigenvalue of a row's second derivative by its scores is larger.
    curvature_rank : int
        The largest rank of that matrix.
    trace_bound : float
        Bounds the sum of its eigenvalues.
    """

    weights_shape = ()
    target_bounds = curvature_bound = REQUIRED

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
        """Return the derivative of the summed loss by each score, a new array of their shape."""


@dataclass(frozen=True)
class LossOfLabels(ClippableLoss):
    """A loss whose y holds codes of labels."""

    target_bounds = None


@dataclass(frozen=True)
class BoundedLoss(ClippableLoss):
    """A convex loss, nowhere negative, for perturbation of output, gradients or objective.

    Bounds are nearly reached, whatever the parameters: noise is made for them.

    Attributes
    ----------
    slope_bound : float
        No row's residual has a larger Euclidean norm.
    residual_error : float
        Bounds the norm of the rounding error of a row's residual, for exact scores: a few
        roundings of the slope and of the scores, which the curvature passes on.
    n_vertices : int
        A row's residual stays in the convex hull of 0 and of so many vectors of length
        `slope_bound` that depend on its target alone. Only where the objective is perturbed.
    curvature_vanishes_at_vertices : bool
        Whether at a fraction t of the way from 0 to the only vertex the trace is at most
        4 t (1 - t) `trace_bound`. Only where the objective is perturbed.
    """

    slope_bound = residual_error = REQUIRED

    def value_at_zero(self):
        """Bound the loss of a row whose scores are 0, over all targets; here all are alike.

        A loss of numbers has one of its own.
        """
        return float(self.value(np.zeros((1, *self.weights_shape)), np.zeros(1, dtype=int))[0])

    @abstractmethod
    def curvature(self, scores, y):
        """Return what `curvature_product` needs; for one score a row the second derivatives."""

    def curvature_product(self, curvature, direction):
        """Multiply the second derivative of each row by a direction, shaped as the scores."""
        return curvature * direction


@dataclass(frozen=True)
class LossOfClasses(LossOfLabels, BoundedLoss):
    """A loss of one score for each class, whose curvature vanishes along their sum."""

    n_classes: int

    @property
    def weights_shape(self):
        return (self.n_classes,)

    @property
    def curvature_rank(self):
        return self.n_classes - 1
