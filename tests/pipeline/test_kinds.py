import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
    scale,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from skdp import DPLinearSVC, DPLogisticRegression, DPStandardScaler, RandomizedResponseTransformer
from skdp.pipeline import step_kind


class Unknown(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self


class Declared(Unknown):
    __skdp_kind__ = "declared"


class Wrong(Unknown):
    __skdp_kind__ = "harmless"


class OneHotEncoderOfOurs(OneHotEncoder):
    """A subclass may learn what its parent does not."""


class WithoutEpsilon(Unknown):
    __skdp_kind__ = "private"


CATEGORIES = [["no", "yes"]]
UNKNOWN = {"handle_unknown": "use_encoded_value", "unknown_value": -1}


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        (DPLogisticRegression(), "private"),
        (DPStandardScaler(), "private"),
        (RandomizedResponseTransformer(), "local"),
        ("passthrough", "stateless"),
        ("drop", "stateless"),
        (None, "stateless"),
        (Normalizer(), "stateless"),
        (Binarizer(), "stateless"),
        (FunctionTransformer(np.log1p), "stateless"),
        (FunctionTransformer(partial(np.clip, a_min=0, a_max=1)), "unknown"),
        (FunctionTransformer(StandardScaler().transform), "unknown"),
        (FunctionTransformer(StandardScaler().fit_transform), "unknown"),
        (FunctionTransformer(scale), "unknown"),
        (FunctionTransformer(np.log1p, inverse_func=partial(scale, axis=0)), "unknown"),
        (GaussianProcessRegressor(), "learns"),
        (FrozenEstimator(StandardScaler()), "opaque"),
        (FrozenEstimator(DPStandardScaler()), "frozen"),
        (FrozenEstimator(Normalizer()), "frozen"),
        (FrozenEstimator(OneHotEncoder(categories=CATEGORIES)), "frozen"),
        (FrozenEstimator(make_pipeline(DPStandardScaler())), "opaque"),
        (FrozenEstimator(make_pipeline(RandomizedResponseTransformer())), "local"),
        (FrozenEstimator("passthrough"), "opaque"),
        (OneHotEncoder(), "learns"),
        (OneHotEncoder(categories=CATEGORIES), "declared"),
        (OneHotEncoder(categories=CATEGORIES, min_frequency=5), "learns"),
        (OneHotEncoder(categories=CATEGORIES, max_categories=5), "learns"),
        (OneHotEncoderOfOurs(categories=CATEGORIES), "unknown"),
        (OrdinalEncoder(), "learns"),
        (OrdinalEncoder(categories=CATEGORIES), "declared"),
        (SplineTransformer(), "learns"),
        (SplineTransformer(knots=np.array([[0.0], [1.0]])), "declared"),
        (SimpleImputer(), "learns"),
        (SimpleImputer(strategy="constant", fill_value=0), "learns"),
        (SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True), "learns"),
        (SimpleImputer(strategy="constant", fill_value="?", keep_empty_features=True), "declared"),
        (MissingIndicator(), "learns"),
        (MissingIndicator(features="all"), "declared"),
        (RBFSampler(gamma="scale"), "learns"),
        (RBFSampler(gamma=0.5), "declared"),
        (PolynomialFeatures(), "declared"),
        (GaussianRandomProjection(3), "declared"),
        (StandardScaler(), "learns"),
        (MinMaxScaler(), "learns"),
        (KBinsDiscretizer(), "learns"),
        (LogisticRegression(), "learns"),
        (Unknown(), "unknown"),
        (Declared(), "declared"),
        (object(), "unknown"),
        (GridSearchCV(DPLogisticRegression(), {}), "cross_validates"),
        (LogisticRegressionCV(), "learns"),
        (OneVsRestClassifier(DPLinearSVC()), "wrapper"),
        (SelectFromModel(DPLinearSVC()), "wrapper"),
        (make_pipeline(StandardScaler()), "container"),
        (BaggingClassifier(DPLinearSVC()), "resamples"),
        (CalibratedClassifierCV(DPLinearSVC()), "calibrates"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_kinds(estimator, kind):
    assert step_kind(estimator) == kind


def test_a_kind_that_there_is_not():
    with pytest.raises(ValueError, match="harmless"):
        step_kind(Wrong())
    with pytest.raises(ValueError, match="no parameter epsilon"):
        step_kind(WithoutEpsilon())


WORDS = np.array([["no"], ["no"], ["no"]], dtype=object), np.array([["yes"], ["?"], [None]], object)
NUMBERS = np.array([[0], [0], [0]]), np.array([[3.0], [1.0], [2.5]])
FILL = {"strategy": "constant", "fill_value": "?", "keep_empty_features": True}
LEARNS_NOTHING = [
    (OneHotEncoder(categories=CATEGORIES, handle_unknown="ignore"), WORDS),
    (OrdinalEncoder(categories=CATEGORIES, **UNKNOWN), WORDS),
    (SimpleImputer(**FILL, missing_values=None), WORDS),
    (SplineTransformer(knots=np.array([[0.0], [1.0], [4.0]])), NUMBERS),
    (PolynomialFeatures(2), NUMBERS),
    (MissingIndicator(features="all"), NUMBERS),
    (RBFSampler(gamma=0.5, random_state=0), NUMBERS),
    (SkewedChi2Sampler(random_state=0), NUMBERS),
    (PolynomialCountSketch(random_state=0), NUMBERS),
    (TfidfTransformer(use_idf=False), NUMBERS),
    (GaussianRandomProjection(1, random_state=0), NUMBERS),
    (SparseRandomProjection(1, random_state=0), NUMBERS),
]


@pytest.mark.parametrize(("estimator", "tables"), LEARNS_NOTHING, ids=lambda v: str(v)[:20])
def test_what_is_called_declared_is_the_same_after_any_table(estimator, tables):
    """Also where one cell turns a column from integers to floats, or truth values to objects."""
    assert step_kind(estimator) == "declared"
    states = [pickle.dumps(clone(estimator).fit(table)) for table in tables]
    assert states[0] == states[1]


@pytest.mark.parametrize(
    "labels", [[0, 1], ["0", "1"], ["a"], ["2020", "2021"], [True, False], ["nan"], ["", "a"]]
)
def test_categories_that_a_column_of_another_dtype_could_hold_are_not_declared(labels):
    for encoder in (OneHotEncoder, OrdinalEncoder):
        assert step_kind(encoder(categories=[["no", "yes"], labels])) == "learns"
