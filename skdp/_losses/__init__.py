"""Losses of linear models as functions of scores, with the bounds that privacy needs.

A loss knows its value, its derivative by the scores (`residual`) and its curvature, and two
constants for rows of norm at most R: how long one row's gradient can be (`lipschitz`) and how
much one row can curve the objective (`smoothness`).
"""

from skdp._losses._hinge import BinaryHuberisedHingeLoss, MulticlassHuberisedHingeLoss
from skdp._losses._logistic import BinaryLogisticLoss, MultinomialLogisticLoss
from skdp._losses._poisson import ClippedPoissonLoss

__all__ = [
    "BinaryHuberisedHingeLoss",
    "BinaryLogisticLoss",
    "ClippedPoissonLoss",
    "MulticlassHuberisedHingeLoss",
    "MultinomialLogisticLoss",
]
