"""Hyperparameter search and cross-validation inside a privacy budget."""

from skdp.model_selection._cross_validate import dp_cross_validate
from skdp.model_selection._curves import (
    DPScores,
    dp_cross_val_score,
    dp_learning_curve,
    dp_validation_curve,
)
from skdp.model_selection._evaluation import dp_evaluate
from skdp.model_selection._evaluation_report import EvaluationReport
from skdp.model_selection._person_folds import PersonKFold, person_train_test_split
from skdp.model_selection._scorer import DPScorer, make_dp_scorer
from skdp.model_selection._scores import BoundedScore, bounded_score
from skdp.model_selection._search import DPGridSearchCV, DPRandomizedSearchCV
from skdp.model_selection._tuned_threshold import DPTunedThresholdClassifierCV

__all__ = [
    "BoundedScore",
    "DPGridSearchCV",
    "DPRandomizedSearchCV",
    "DPScorer",
    "DPScores",
    "DPTunedThresholdClassifierCV",
    "EvaluationReport",
    "PersonKFold",
    "bounded_score",
    "dp_cross_val_score",
    "dp_cross_validate",
    "dp_evaluate",
    "dp_learning_curve",
    "dp_validation_curve",
    "make_dp_scorer",
    "person_train_test_split",
]
