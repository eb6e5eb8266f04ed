"""Linear models with differential privacy."""

from skdp.linear_model._dp_sgd_classifier import DPSGDClassifier as DPSGDClassifier
from skdp.linear_model._dp_sgd_regressor import DPSGDRegressor as DPSGDRegressor
from skdp.linear_model._logistic_regression import DPLogisticRegression as DPLogisticRegression
from skdp.linear_model._poisson_regressor import DPPoissonRegressor as DPPoissonRegressor
from skdp.linear_model._ridge import DPLinearRegression as DPLinearRegression
from skdp.linear_model._ridge import DPRidge as DPRidge
