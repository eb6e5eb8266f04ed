"""Linear models with differential privacy."""

from skdp.linear_model._logistic_regression import DPLogisticRegression

__all__ = ["DPLogisticRegression"]
