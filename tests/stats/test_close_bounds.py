"""Bounds that are a few doubles apart: refused, or every row stands for itself."""

import numpy as np
import pytest

import skdp
from skdp import DPQuantileTransformer, PrivacyAccountant
from skdp.stats import dp_histogram, dp_mean, dp_quantile
from tests._estimators import BOUNDED_TRANSFORMERS

CLOSE = [
    (0.29999999999999993, 0.30000000000000004),
    (1.7e18, 1.7e18 + 2048),
    (2.0**53, 2.0**53 + 64),
    (-1.0, np.nextafter(-1.0, 0.0)),
]
# Just far enough.
RESOLVED = [(1e6, 1e6 + 1e-8), (2.0**53, 2.0**53 + 128), (1.0, 1.0 + 64 * 2.0**-52)]

ESTIMATORS = [
    *(kind.__name__ for kind in BOUNDED_TRANSFORMERS),
    "DPGaussianNB",
    "DPKMeans",
    "DPAdditiveClassifier",
    "DPHistogramNB",
    "DPRandomForestClassifier",
]


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("low, high", CLOSE)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_bounds_that_doubles_cannot_resolve_cost_nothing(name, low, high):
    accountant = PrivacyAccountant(10.0, 1e-4)
    X = np.linspace(low, high, 300)[:, None]
    for bounds in ((low, high), {0: (low, high)}):
        estimator = getattr(skdp, name)(1.0, bounds=bounds, accountant=accountant)
        with pytest.raises(ValueError, match="64 times the distance"):
            estimator.fit(X, np.arange(300) % 2)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("low, high", CLOSE)
def test_functions_and_targets_refuse_them_likewise(low, high):
    accountant, x = PrivacyAccountant(10.0, 1e-4), np.linspace(low, high, 300)
    terms = {"epsilon": 1.0, "accountant": accountant}
    with pytest.raises(ValueError, match="64 times"):
        dp_mean(x, bounds=(low, high), **terms)
    with pytest.raises(ValueError, match="64 times"):
        dp_quantile(x, 0.5, bounds=(low, high), **terms)
    with pytest.raises(ValueError, match="64 times"):
        dp_histogram(x, range=(low, high), **terms)
    with pytest.raises(ValueError, match="target_bounds"):
        skdp.DPRidge(target_bounds=(low, high), **terms).fit(x[:, None] / x[-1], x)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("low, high", RESOLVED)
def test_quantiles_are_in_order_and_rows_are_transformed_alone(low, high):
    x = np.linspace(low, high, 3000).reshape(-1, 1)
    for _ in range(5):
        fitted = DPQuantileTransformer(5.0, bounds=(low, high)).fit(x)
        assert (np.diff(fitted.quantiles_, axis=0) >= 0).all()
        together = fitted.transform(x)[::97, 0]
        assert np.array_equal(together, [fitted.transform(row[None])[0, 0] for row in x[::97]])


def test_edges_of_bins_may_be_closer():
    edges = np.array([0.0, 0.3, np.nextafter(0.3, 1), 1.0])
    X = np.random.default_rng(0).random((500, 1))
    skdp.DPHistogramTransformer(1.0, edges=edges).fit(X)
