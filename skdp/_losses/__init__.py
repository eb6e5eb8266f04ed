"""Losses of linear models as functions of scores, with the bounds that privacy needs.

A loss knows its value, its derivative by the scores (`residual`) and its curvature, and, for rows
of norm at most R: how long one row's gradient can be (`lipschitz`), how much one row can curve the
objective (`smoothness`, and `curvature_trace` and `curvature_rank` of the row's Hessian), and that
a row's gradient stays in the convex hull of 0 and of `n_vertices` vectors of length `lipschitz`
that depend on the row alone. `curvature_vanishes_at_vertices` says that at a fraction t of the way
from 0 to the only vertex the trace is at most 4 t (1 - t) `curvature_trace`. `residual_error`
bounds the rounding error of a computed residual, for exact scores. Losses for clipped gradients
alone, whose guarantee needs no bound, know their value, residual and curvature's bound only.
"""

from skdp._losses._class_weighted import ClassWeightedLoss
from skdp._losses._difference import HuberLoss, SquaredLoss
from skdp._losses._hinge import BinaryHuberisedHingeLoss, MulticlassHuberisedHingeLoss
from skdp._losses._logistic import BinaryLogisticLoss, MultinomialLogisticLoss
from skdp._losses._margin import ModifiedHuberLoss, SquaredHingeLoss
from skdp._losses._one_versus_rest import OneVersusRestLoss
from skdp._losses._poisson import ClippedPoissonLoss
from skdp._losses._squared import ClippedSquaredLoss

__all__ = [
    "BinaryHuberisedHingeLoss",
    "BinaryLogisticLoss",
    "ClassWeightedLoss",
    "ClippedPoissonLoss",
    "ClippedSquaredLoss",
    "HuberLoss",
    "ModifiedHuberLoss",
    "MulticlassHuberisedHingeLoss",
    "MultinomialLogisticLoss",
    "OneVersusRestLoss",
    "SquaredHingeLoss",
    "SquaredLoss",
]
