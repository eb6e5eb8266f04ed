"""Every estimator against scikit-learn's checks and skdp's own."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp import DPLogisticRegression, DPStandardScaler
from skdp.utils.estimator_checks import dp_checks

ESTIMATORS = [
    DPLogisticRegression(),
    DPLogisticRegression(epsilon=2.0, delta=0.0, C=0.5, data_norm=3.0),
    DPStandardScaler(bounds=(-10, 10)),
    DPStandardScaler(delta=1e-6, bounds=(-10, 10), with_std=False),
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

    names = {n for n in skdp.__all__ if n.startswith("DP")}
    assert names == {type(estimator).__name__ for estimator in ESTIMATORS}
    assert np.all([e.get_params()["accountant"] is None for e in ESTIMATORS])
