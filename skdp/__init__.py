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
)
from skdp.model_selection import DPGridSearchCV, DPRandomizedSearchCV
from skdp.preprocessing import DPStandardScaler, RandomizedResponseTransformer
from skdp.svm import DPLinearSVC

__all__ = [
    "BudgetExceededError",
    "DPGridSearchCV",
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "DPRandomizedSearchCV",
    "DPRidge",
    "DPStandardScaler",
    "LedgerError",
    "PrivacyAccountant",
    "PrivacyStatement",
    "RandomizedResponseTransformer",
    "SeededNoiseWarning",
    "__version__",
]
