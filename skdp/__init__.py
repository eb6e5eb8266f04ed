"""Private estimators for scikit-learn."""

from skdp._privacy_statement import PrivacyStatement
from skdp._version import __version__
from skdp.accounting import PrivacyAccountant
from skdp.exceptions import BudgetExceededError, LedgerError, SeededNoiseWarning
from skdp.linear_model import (
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
)
from skdp.preprocessing import DPStandardScaler, RandomizedResponseTransformer
from skdp.svm import DPLinearSVC

__all__ = [
    "BudgetExceededError",
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "DPRidge",
    "DPSGDClassifier",
    "DPSGDRegressor",
    "DPStandardScaler",
    "LedgerError",
    "PrivacyAccountant",
    "PrivacyStatement",
    "RandomizedResponseTransformer",
    "SeededNoiseWarning",
    "__version__",
]
