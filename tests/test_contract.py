"""Every estimator against scikit-learn's checks and skdp's own."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp import (
    DPPCA,
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPMeanTransformer,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPPoissonRegressor,
    DPQuantileTransformer,
    DPRidge,
    DPRobustScaler,
    DPSGDClassifier,
    DPSGDRegressor,
    DPSimpleImputer,
    DPStandardScaler,
    DPTargetEncoder,
    PrivacyAccountant,
    RandomizedResponseTransformer,
)
from skdp.accounting import PureDP
from skdp.utils.estimator_checks import dp_checks

ESTIMATORS = [
    DPLogisticRegression(),
    DPLogisticRegression(epsilon=2.0, delta=0.0, C=0.5, data_norm=3.0),
    DPLogisticRegression(mechanism="output"),
    DPLogisticRegression(mechanism="objective"),
    DPLogisticRegression(mechanism="objective", delta=0.0),
    DPLogisticRegression(mechanism="gradient"),
    DPLogisticRegression(standard_errors="total"),
    DPLogisticRegression(data_norm="auto"),
    DPLinearSVC(),
    DPLinearSVC(data_norm="auto"),
    DPLinearSVC(epsilon=2.0, delta=0.0, C=0.5, huber_threshold=0.1, data_norm=3.0),
    DPLinearRegression(target_bounds=(-10, 10)),
    DPRidge(target_bounds=(-10, 10), alpha=0.5, data_norm=3.0),
    DPRidge(target_bounds=(-10, 10), mechanism="gradient"),
    DPRidge(delta=0.0, target_bounds=(-10, 10), fit_intercept=False),
    DPPoissonRegressor(target_bounds=(0, 10)),
    DPPoissonRegressor(delta=0.0, target_bounds=(1, 10), alpha=0.1, data_norm=3.0),
    DPRidge(data_norm="auto", target_bounds=(-10, 10)),
    DPLinearRegression(data_norm="auto", target_bounds=(-10, 10)),
    DPPoissonRegressor(data_norm="auto", target_bounds=(0, 10)),
    DPStandardScaler(),
    DPSGDClassifier(),
    DPSGDClassifier(loss="hinge", data_norm=3.0),
    DPSGDClassifier(delta=0.0),
    DPSGDClassifier(sampling="poisson", max_iter=2, optimizer="adam"),
    DPSGDRegressor(target_bounds=(-10, 10)),
    DPSGDRegressor(target_bounds=(-10, 10), loss="huber", sampling="poisson", max_iter=2),
    DPStandardScaler(bounds=(-10, 10)),
    DPStandardScaler(delta=1e-6, bounds=(-10, 10), with_std=False),
    RandomizedResponseTransformer(categories=[0, 1, 2]),
    DPMeanTransformer(),
    DPMeanTransformer(bounds=(-10, 10)),
    DPMeanTransformer(delta=1e-6, bounds=(-10, 10), mechanism="gaussian"),
    DPHistogramTransformer(),
    DPHistogramTransformer(epsilon=2.0, bounds=(-10, 10), edges="uniform", encode="cumulative"),
    DPHistogramTransformer(edges=[-1.0, 0.0, 1.0], encode="density"),
    DPHistogramTransformer(categories=[0, 1, 2], other=2, encode="ordinal"),
    DPKBinsDiscretizer(),
    DPKBinsDiscretizer(delta=1e-6, bounds=(-10, 10), encode="ordinal"),
    DPKBinsDiscretizer(n_bins=3, encode="onehot-dense"),
    DPSimpleImputer(),
    DPSimpleImputer(strategy="median", bounds=(-10, 10), add_indicator=True),
    DPSimpleImputer(strategy="most_frequent", categories=[0, 1, 2]),
    DPTargetEncoder(categories=[0, 1, 2]),
    DPTargetEncoder(categories=[0, 1, 2], target_bounds=(0, 1), delta=1e-6),
    DPTargetEncoder(epsilon=6.0, delta=1e-6),
    DPMinMaxScaler(),
    DPMinMaxScaler(bounds=(-10, 10), delta=1e-6, quantile_range=(1, 98), clip=True),
    DPRobustScaler(),
    DPRobustScaler(bounds=(-10, 10), with_scaling=False),
    DPQuantileTransformer(),
    DPQuantileTransformer(bounds=(-10, 10), n_quantiles=9, output_distribution="normal"),
    DPPCA(),
    DPOneHotEncoder(epsilon=6.0, delta=1e-6),
    DPOneHotEncoder(categories=[0, 1, 2], min_frequency=0.2, sparse_output=False),
    DPOneHotEncoder(delta=1e-6, categories=[0, 1, 2], min_frequency=5, other=7),
    DPPCA(data_norm="auto", center=None),
    DPPCA(delta=0.0, n_components=2, data_norm=3.0, center=0.1),
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", dp_checks(), ids=lambda check: check.__name__)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_dp_contract(estimator, check):
    check(estimator)


def test_no_private_estimator_is_missing_here():
    import skdp

    names = {n for n in skdp.__all__ if hasattr(getattr(skdp, n), "fit")}
    assert names == {type(estimator).__name__ for estimator in ESTIMATORS}
    assert np.all([e.get_params()["accountant"] is None for e in ESTIMATORS])


def find(name):
    return next(check for check in dp_checks() if check.__name__ == name)


class PeekingScaler(DPStandardScaler):
    """Computes from the data before the charge."""

    def fit(self, X, y=None):
        peeked = np.array(X, dtype=float)
        super().fit(X)
        self.mean_ = self.mean_ + peeked.mean(axis=0)
        return self


class LateScaler(DPStandardScaler):
    """Charges after the fit."""

    def fit(self, X, y=None):
        accountant, self.accountant = self.accountant, None
        super().fit(X)
        self.accountant = accountant
        if accountant is not None:
            accountant.charge(PureDP(self.epsilon), epsilon=self.epsilon)
        return self


class HoardingScaler(DPStandardScaler):
    """Keeps the table."""

    def fit(self, X, y=None):
        super().fit(X)
        self._rows = np.array(X)
        return self


class RepeatingScaler(DPStandardScaler):
    """Draws the same noise in every fit, and says nothing of it."""

    def fit(self, X, y=None):
        self.random_state, given = 0, self.random_state
        super().fit(X)
        self.random_state = given
        return self


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        (PeekingScaler, "check_charge_before_touch"),
        (LateScaler, "check_refused_charge"),
        (LateScaler, "check_charge_before_touch"),
        (HoardingScaler, "check_nothing_raw"),
        (RepeatingScaler, "check_fresh_noise"),
    ],
)
def test_checks_find_broken_estimators(broken, name):
    with pytest.raises(AssertionError):
        find(name)(broken(bounds=(-10, 10)))


def test_checks_find_a_copied_accountant(monkeypatch):
    def copied(self, memo=None):
        return PrivacyAccountant(self.epsilon, self.delta, dataset="copy")

    monkeypatch.delattr(PrivacyAccountant, "__sklearn_clone__")
    monkeypatch.setattr(PrivacyAccountant, "__deepcopy__", copied)
    with pytest.raises(AssertionError):
        find("check_exact_spend")(DPStandardScaler(bounds=(-10, 10)))
