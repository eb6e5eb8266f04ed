"""Targets that are no numbers, or no ordinary ones, are found before anything is charged."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from skdp import (
    ChunkedArray,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSGDRegressor,
    PrivacyAccountant,
)

REGRESSORS = [DPLinearRegression, DPRidge, DPPoissonRegressor]
X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(40, 2))


@pytest.mark.parametrize("regressor", REGRESSORS)
@pytest.mark.parametrize("table", [X, ChunkedArray([X[:10], X[10:]])], ids=["array", "chunks"])
@pytest.mark.parametrize("dtype", ["U3", "S3", "M8[s]", "m8[s]"])
def test_targets_must_be_numbers(regressor, table, dtype):
    accountant = PrivacyAccountant(10.0, 1e-3)
    model = regressor(target_bounds=(0, 10), accountant=accountant)
    with pytest.raises(ValueError):
        model.fit(table, np.ones(40, dtype=int).astype(dtype))
    assert accountant.charges == []
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("regressor", REGRESSORS)
def test_no_warning_tells_that_a_target_is_extreme(regressor, recwarn):
    y = np.ones(40, dtype=np.longdouble)
    y[3] = np.finfo(np.longdouble).max
    model = regressor(target_bounds=(0, 10)).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert not recwarn.list


@pytest.mark.parametrize("alpha", [1e308, 1e-150])
def test_a_strength_that_overflows_is_refused(alpha):
    accountant = PrivacyAccountant(10.0, 1e-3)
    with pytest.raises(ValueError, match="alpha"):
        DPPoissonRegressor(target_bounds=(0, 10), alpha=alpha, accountant=accountant).fit(
            X, X[:, 0]
        )
    assert accountant.charges == []


HUGE = 1.7e308 * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [1, 0], [0, 0]])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("regressor", [*REGRESSORS, DPSGDRegressor])
@pytest.mark.parametrize("table", [HUGE, csr_array(HUGE)], ids=["array", "CSR"])
def test_predictions_stay_within_the_bounds(regressor, table):
    model = regressor(target_bounds=(2, 3)).fit(X, X[:, 0] + 2.5)
    # Both products overflow, with one sign or with two.
    model.coef_ = np.array([3.0, 3.0])
    predicted = model.predict(table)
    assert (predicted >= 2).all() and (predicted <= 3).all()
    assert predicted[0] == 3 and predicted[3] == 2


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_probabilities_of_huge_rows_are_numbers():
    model = DPLogisticRegression().fit(X, np.arange(40) % 3)
    model.coef_ = np.array([[3.0, 3.0], [3.0, -3.0], [-6.0, 0.0]])
    np.testing.assert_allclose(model.predict_proba(HUGE).sum(axis=1), 1.0)
