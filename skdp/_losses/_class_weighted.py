"""Losses made of others: with weights of classes, and of each class against the rest."""

from dataclasses import dataclass

import numpy as np

from skdp._losses._base import BoundedLoss, ClippableLoss


def _same(name):
    return property(lambda self: getattr(self.loss, name))


def _weighted(name):
    return property(lambda self: max(self.weights) * getattr(self.loss, name))


@dataclass(frozen=True)
class ClassWeightedLoss(BoundedLoss):
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
        curvature, weights = self.loss.curvature(scores, y), self._of_rows(y, scores)
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
class OneVersusRestLoss(ClippableLoss):
    """The sum over classes of a two-class loss of the class against the rest; y holds codes.

    Parameters
    ----------
    loss : ClippableLoss
        For two classes.
    n_classes : int
    """

    loss: ClippableLoss
    n_classes: int

    weights_shape = property(lambda self: (self.n_classes,))
    curvature_bound = _same("curvature_bound")

    def value(self, scores, y):
        return self.loss.value(scores, self._targets(y)).sum(axis=1)

    def residual(self, scores, y):
        return self.loss.residual(scores, self._targets(y))

    def _targets(self, y):
        return (y[:, None] == np.arange(self.n_classes)).astype(np.float64)
