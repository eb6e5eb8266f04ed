from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
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
from sklearn.random_projection import GaussianRandomProjection

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
        (FunctionTransformer(partial(np.clip, a_min=0, a_max=1)), "stateless"),
        (FunctionTransformer(StandardScaler().transform), "learns"),
        (FunctionTransformer(StandardScaler().fit_transform), "learns"),
        (FunctionTransformer(scale), "learns"),
        (FunctionTransformer(np.log1p, inverse_func=partial(scale, axis=0)), "learns"),
        (GaussianProcessRegressor(), "learns"),
        (FrozenEstimator(StandardScaler()), "frozen"),
        (FrozenEstimator(DPStandardScaler()), "frozen"),
        (OneHotEncoder(), "learns"),
        (OneHotEncoder(categories=CATEGORIES), "declared"),
        (OneHotEncoder(categories=CATEGORIES, min_frequency=5), "learns"),
        (OneHotEncoder(categories=CATEGORIES, max_categories=5), "learns"),
        (OneHotEncoderOfOurs(categories=CATEGORIES), "learns"),
        (OrdinalEncoder(), "learns"),
        (OrdinalEncoder(categories=CATEGORIES), "declared"),
        (SplineTransformer(), "learns"),
        (SplineTransformer(knots=np.array([[0.0], [1.0]])), "declared"),
        (SimpleImputer(), "learns"),
        (SimpleImputer(strategy="constant", fill_value=0), "learns"),
        (SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True), "declared"),
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
        (Unknown(), "learns"),
        (Declared(), "declared"),
        (object(), "learns"),
        (GridSearchCV(DPLogisticRegression(), {}), "cross_validates"),
        (LogisticRegressionCV(), "cross_validates"),
        (OneVsRestClassifier(DPLinearSVC()), "wrapper"),
        (SelectFromModel(DPLinearSVC()), "wrapper"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_kinds(estimator, kind):
    assert step_kind(estimator) == kind


def test_a_kind_that_there_is_not():
    with pytest.raises(ValueError, match="harmless"):
        step_kind(Wrong())
    with pytest.raises(ValueError, match="no epsilon"):
        step_kind(WithoutEpsilon())


LEARNS_NOTHING = [
    (OneHotEncoder(categories=[[0, 1, 2, 3]], handle_unknown="ignore"), "categories_"),
    (OrdinalEncoder(categories=[[0, 1, 2, 3]]), "categories_"),
    (SplineTransformer(knots=np.array([[0.0], [1.0], [4.0]])), "bsplines_"),
    (PolynomialFeatures(2), "n_output_features_"),
    (SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True), "statistics_"),
    (MissingIndicator(features="all"), "features_"),
    (RBFSampler(gamma=0.5, random_state=0), "random_weights_"),
    (GaussianRandomProjection(1, random_state=0), "components_"),
]


@pytest.mark.parametrize(("estimator", "attribute"), LEARNS_NOTHING, ids=lambda v: str(v)[:20])
def test_what_is_called_declared_is_the_same_after_any_table(estimator, attribute):
    assert step_kind(estimator) == "declared"
    outputs = []
    for table in ([[0.0], [0.0], [0.0]], [[3.0], [1.0], [2.0]]):
        fitted = estimator.fit(np.array(table))
        output = fitted.transform(np.array([[1.0], [2.0]]))
        outputs.append(np.asarray(output.todense() if hasattr(output, "todense") else output))
        assert hasattr(fitted, attribute)
    np.testing.assert_array_equal(*outputs)
