"""Private estimators for scikit-learn.

Names and packages are imported when they are first used, so that a program loads only the models
that it uses.
"""

import importlib
import threading
import typing

from skdp._version import __version__

# Type checkers and editors read these imports.
if typing.TYPE_CHECKING:
    from skdp._data._chunked import ChunkedArray
    from skdp._data._limit_rows import limit_rows
    from skdp._data._schema import Schema, schema_from
    from skdp._privacy_statement import PrivacyStatement
    from skdp._reports._document import PrivacyReport
    from skdp._reports._report import privacy_report
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

# Modules of the public names, as above.
_MODULES = {
    "ChunkedArray": "skdp._data._chunked",
    "limit_rows": "skdp._data._limit_rows",
    "Schema": "skdp._data._schema",
    "schema_from": "skdp._data._schema",
    "PrivacyStatement": "skdp._privacy_statement",
    "PrivacyReport": "skdp._reports._document",
    "privacy_report": "skdp._reports._report",
    "DPCalibratedClassifierCV": "skdp.calibration",
    "DPKMeans": "skdp.cluster",
    "DPPCA": "skdp.decomposition",
    "DPRandomForestClassifier": "skdp.ensemble",
    "DPRandomForestRegressor": "skdp.ensemble",
    "BudgetExceededError": "skdp.exceptions",
    "LedgerError": "skdp.exceptions",
    "RawDataWarning": "skdp.exceptions",
    "SeededNoiseWarning": "skdp.exceptions",
    "DPAdditiveClassifier": "skdp.gam",
    "DPAdditiveRegressor": "skdp.gam",
    "DPSimpleImputer": "skdp.impute",
    "PrivacyAccountant": "skdp.ledger",
    "DPLinearRegression": "skdp.linear_model",
    "DPLogisticRegression": "skdp.linear_model",
    "DPPoissonRegressor": "skdp.linear_model",
    "DPRidge": "skdp.linear_model",
    "DPSGDClassifier": "skdp.linear_model",
    "DPSGDRegressor": "skdp.linear_model",
    "DPGridSearchCV": "skdp.model_selection",
    "DPRandomizedSearchCV": "skdp.model_selection",
    "DPTunedThresholdClassifierCV": "skdp.model_selection",
    "dp_cross_validate": "skdp.model_selection",
    "dp_evaluate": "skdp.model_selection",
    "DPGaussianNB": "skdp.naive_bayes",
    "DPHistogramNB": "skdp.naive_bayes",
    "DPTableVectorizer": "skdp.pipeline",
    "tabular_pipeline": "skdp.pipeline",
    "DPHistogramTransformer": "skdp.preprocessing",
    "DPKBinsDiscretizer": "skdp.preprocessing",
    "DPMaxAbsScaler": "skdp.preprocessing",
    "DPMeanTransformer": "skdp.preprocessing",
    "DPMinMaxScaler": "skdp.preprocessing",
    "DPOneHotEncoder": "skdp.preprocessing",
    "DPQuantileTransformer": "skdp.preprocessing",
    "DPRobustScaler": "skdp.preprocessing",
    "DPStandardScaler": "skdp.preprocessing",
    "DPTargetEncoder": "skdp.preprocessing",
    "RandomizedResponseTransformer": "skdp.preprocessing",
    "DPLinearSVC": "skdp.svm",
    "DPTableSynthesizer": "skdp.synthesis",
    "DPDecisionTreeClassifier": "skdp.tree",
}
# Public packages and modules, which are attributes after `import skdp`, too.
_PACKAGES = (
    "accounting",
    "audit",
    "base",
    "calibration",
    "cluster",
    "datasets",
    "decomposition",
    "display",
    "ensemble",
    "exceptions",
    "export",
    "gam",
    "impute",
    "ledger",
    "linear_model",
    "mechanisms",
    "metrics",
    "model_selection",
    "naive_bayes",
    "noise",
    "pipeline",
    "planning",
    "preprocessing",
    "stats",
    "svm",
    "synthesis",
    "testing",
    "tree",
    "utils",
)

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


# Two threads cannot import modules at once that import each other, such as those of scikit-learn.
# No module of skdp imports names from here, so no thread that waits for this lock holds one that
# another thread needs.
_lock = threading.RLock()

# Type checkers would accept any attribute of a module that defines this function.
if not typing.TYPE_CHECKING:

    def __getattr__(name):
        """Return a public name or package, which is imported now."""
        with _lock:
            if name in _MODULES:
                value = getattr(importlib.import_module(_MODULES[name]), name)
            elif name in _PACKAGES:
                value = importlib.import_module(f"skdp.{name}")
            else:
                raise AttributeError(f"module 'skdp' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__():
    """Return the public names and packages, whether they have been imported or not."""
    special = {name for name in globals() if name.startswith("__")}
    return sorted({*__all__, *_PACKAGES, *special})
