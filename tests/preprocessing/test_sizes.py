"""Sizes that do not fit into memory are refused before the charge; the error names the limit."""

import numpy as np
import pytest
from sklearn.base import clone

import skdp
from skdp import PrivacyAccountant
from skdp.stats import dp_histogram

X = np.random.default_rng(0).uniform(size=(50, 2))
ESTIMATORS = {
    "bins of quantiles": skdp.DPKBinsDiscretizer(bounds=(0, 1), strategy="quantile"),
    "found bounds": skdp.DPKBinsDiscretizer(),
    "histogram": skdp.DPHistogramTransformer(edges="uniform", bounds=(0, 1)),
    "histogram of quantiles": skdp.DPHistogramTransformer(edges="quantile", bounds=(0, 1)),
}


@pytest.mark.parametrize("n_bins", [2**20 + 1, 10**9, 2**53])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_number_of_bins_of_a_column_has_a_limit(name, n_bins):
    accountant = PrivacyAccountant(1.0, 1e-6)
    model = clone(ESTIMATORS[name]).set_params(n_bins=n_bins, accountant=accountant)
    with pytest.raises(ValueError, match="n_bins must be at most 1048576"):
        model.fit(X)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("kind", [skdp.DPKBinsDiscretizer, skdp.DPHistogramTransformer])
def test_the_number_of_bins_of_all_columns_has_a_limit(kind):
    accountant = PrivacyAccountant(1.0, 1e-6)
    model = kind(bounds=(0, 1), n_bins=2**20, accountant=accountant)
    with pytest.raises(ValueError, match="at most 16,777,216 bins in all"):
        model.fit(np.zeros((3, 17)))
    assert accountant.epsilon_spent == 0.0


def test_the_number_of_quantiles_has_a_limit():
    accountant = PrivacyAccountant(1.0, 1e-6)
    model = skdp.DPQuantileTransformer(bounds=(0, 1), n_quantiles=10**9, accountant=accountant)
    with pytest.raises(ValueError, match="n_quantiles must be at most 1048576"):
        model.fit(X)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("bins", [2**27 + 1, 10**9])
def test_the_number_of_bins_of_a_histogram_has_a_limit(bins):
    accountant = PrivacyAccountant(1.0, 1e-6)
    for bounds in ((0, 1), "auto"):
        with pytest.raises(ValueError, match="bins must be at most 134217728"):
            dp_histogram(X[:, 0], bins=bins, range=bounds, accountant=accountant)
    assert accountant.epsilon_spent == 0.0
