"""Linear models with differential privacy."""

from skdp.linear_model._dp_sgd_classifier import DPSGDClassifier
from skdp.linear_model._dp_sgd_regressor import DPSGDRegressor
from skdp.linear_model._logistic_regression import DPLogisticRegression
from skdp.linear_model._poisson_regressor import DPPoissonRegressor
from skdp.linear_model._ridge import DPLinearRegression, DPRidge

__all__ = [
    "DPLinearRegression",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "DPRidge",
    "DPSGDClassifier",
    "DPSGDRegressor",
]
