"""Differentially private metrics with the names and meanings of scikit-learn's."""

from skdp.metrics._classification import (
    dp_accuracy_score,
    dp_average_precision_score,
    dp_balanced_accuracy_score,
    dp_brier_score,
    dp_calibration_curve,
    dp_confusion_matrix,
    dp_log_loss,
    dp_roc_auc_score,
    dp_roc_curve,
)
from skdp.metrics._regression import dp_mean_absolute_error, dp_mean_squared_error, dp_r2_score
from skdp.metrics._values import NoisyConfusionMatrix, NoisyCurve, NoisyScore

__all__ = [
    "NoisyConfusionMatrix",
    "NoisyCurve",
    "NoisyScore",
    "dp_accuracy_score",
    "dp_average_precision_score",
    "dp_balanced_accuracy_score",
    "dp_brier_score",
    "dp_calibration_curve",
    "dp_confusion_matrix",
    "dp_log_loss",
    "dp_mean_absolute_error",
    "dp_mean_squared_error",
    "dp_r2_score",
    "dp_roc_auc_score",
    "dp_roc_curve",
]
