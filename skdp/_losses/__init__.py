"""Losses of linear models as functions of scores, with the bounds that privacy needs."""

from skdp._losses._base import BoundedLoss, ClippableLoss
from skdp._losses._class_weighted import ClassWeightedLoss, OneVersusRestLoss
from skdp._losses._difference import HuberLoss, SquaredLoss
from skdp._losses._hinge import (
    BinaryHuberisedHingeLoss,
    ModifiedHuberLoss,
    MulticlassHuberisedHingeLoss,
    SquaredHingeLoss,
)
from skdp._losses._logistic import BinaryLogisticLoss, MultinomialLogisticLoss
from skdp._losses._poisson import ClippedPoissonLoss

__all__ = [
    "BinaryHuberisedHingeLoss",
    "BinaryLogisticLoss",
    "BoundedLoss",
    "ClassWeightedLoss",
    "ClippableLoss",
    "ClippedPoissonLoss",
    "HuberLoss",
    "ModifiedHuberLoss",
    "MulticlassHuberisedHingeLoss",
    "MultinomialLogisticLoss",
    "OneVersusRestLoss",
    "SquaredHingeLoss",
    "SquaredLoss",
]
