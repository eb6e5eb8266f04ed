"""Private estimators for scikit-learn."""

from skdp._privacy_statement import PrivacyStatement
from skdp._version import __version__
from skdp.accounting import PrivacyAccountant
from skdp.exceptions import BudgetExceededError, LedgerError, SeededNoiseWarning
from skdp.linear_model import DPLogisticRegression
from skdp.preprocessing import DPStandardScaler, RandomizedResponseTransformer

__all__ = [
    "BudgetExceededError",
    "DPLogisticRegression",
    "DPStandardScaler",
    "LedgerError",
    "PrivacyAccountant",
    "PrivacyStatement",
    "RandomizedResponseTransformer",
    "SeededNoiseWarning",
    "__version__",
]
