"""Hyperparameter search and cross-validation inside a privacy budget."""

from skdp.model_selection._curves import (
    DPScores,
    dp_cross_val_score,
    dp_learning_curve,
    dp_validation_curve,
)
from skdp.model_selection._scorer import DPScorer, make_dp_scorer
from skdp.model_selection._scores import BoundedScore, bounded_score
from skdp.model_selection._search import DPGridSearchCV, DPRandomizedSearchCV

__all__ = [
    "BoundedScore",
    "DPGridSearchCV",
    "DPRandomizedSearchCV",
    "DPScorer",
    "DPScores",
    "bounded_score",
    "dp_cross_val_score",
    "dp_learning_curve",
    "dp_validation_curve",
    "make_dp_scorer",
]
