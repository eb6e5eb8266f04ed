"""Private estimators for scikit-learn."""

from skdp._data._chunked import ChunkedArray
from skdp._data._limit_rows import limit_rows
from skdp._data._schema import Schema, schema_from
from skdp._privacy_statement import PrivacyStatement
from skdp._reports._document import PrivacyReport
from skdp._reports._report import privacy_report
from skdp._version import __version__
from skdp.calibration import DPCalibratedClassifierCV
from skdp.cluster import DPKMeans
from skdp.decomposition import DPPCA
from skdp.ensemble import DPRandomForestClassifier, DPRandomForestRegressor
from skdp.exceptions import BudgetExceededError, LedgerError, RawDataWarning, SeededNoiseWarning
from skdp.gam import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.impute import DPSimpleImputer
from skdp.ledger import PrivacyAccountant
from skdp.linear_model import (
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
)
from skdp.model_selection import (
    DPGridSearchCV,
    DPRandomizedSearchCV,
    DPTunedThresholdClassifierCV,
    dp_cross_validate,
    dp_evaluate,
)
from skdp.naive_bayes import DPGaussianNB, DPHistogramNB
from skdp.pipeline import DPTableVectorizer, tabular_pipeline
from skdp.preprocessing import (
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPMaxAbsScaler,
    DPMeanTransformer,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPQuantileTransformer,
    DPRobustScaler,
    DPStandardScaler,
    DPTargetEncoder,
    RandomizedResponseTransformer,
)
from skdp.svm import DPLinearSVC
from skdp.synthesis import DPTableSynthesizer
from skdp.tree import DPDecisionTreeClassifier

__all__ = [
    "DPPCA",
    "BudgetExceededError",
    "ChunkedArray",
    "DPAdditiveClassifier",
    "DPAdditiveRegressor",
    "DPCalibratedClassifierCV",
    "DPDecisionTreeClassifier",
    "DPGaussianNB",
    "DPGridSearchCV",
    "DPHistogramNB",
    "DPHistogramTransformer",
    "DPKBinsDiscretizer",
    "DPKMeans",
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPMaxAbsScaler",
    "DPMeanTransformer",
    "DPMinMaxScaler",
    "DPOneHotEncoder",
    "DPPoissonRegressor",
    "DPQuantileTransformer",
    "DPRandomForestClassifier",
    "DPRandomForestRegressor",
    "DPRandomizedSearchCV",
    "DPRidge",
    "DPRobustScaler",
    "DPSGDClassifier",
    "DPSGDRegressor",
    "DPSimpleImputer",
    "DPStandardScaler",
    "DPTableSynthesizer",
    "DPTableVectorizer",
    "DPTargetEncoder",
    "DPTunedThresholdClassifierCV",
    "LedgerError",
    "PrivacyAccountant",
    "PrivacyReport",
    "PrivacyStatement",
    "RandomizedResponseTransformer",
    "RawDataWarning",
    "Schema",
    "SeededNoiseWarning",
    "__version__",
    "dp_cross_validate",
    "dp_evaluate",
    "limit_rows",
    "privacy_report",
    "schema_from",
    "tabular_pipeline",
]
