"""DPSGDRegressor: its limits, its units, its bad input."""

import numpy as np
import pytest
from sklearn.linear_model import HuberRegressor, Ridge

from skdp import DPSGDRegressor, PrivacyAccountant

LOSSES = ("squared_error", "huber")


def make_table(n=2000, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = X @ [3.0, -2.0, 0.5, 0.0] + 5.0 + 0.3 * rng.normal(size=n)
    return X, y


def unscaled_huber(X, y, alpha, threshold):
    """Return the minimizer of the mean Huber loss plus the penalty, by iterated weights."""
    rows, weights = np.column_stack([X, np.ones(len(y))]), np.zeros(X.shape[1] + 1)
    ridge = np.diag([alpha * len(y)] * X.shape[1] + [0.0])
    for _ in range(500):
        residual = np.abs(rows @ weights - y)
        share = np.minimum(1.0, threshold / np.maximum(residual, 1e-12))
        weights = np.linalg.solve((rows.T * share) @ rows + ridge, (rows.T * share) @ y)
    return weights


@pytest.mark.parametrize("alpha", [1e-2, 1e-3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_the_answer_of_ridge(alpha, fit_intercept):
    X, y = make_table()
    model = DPSGDRegressor(
        1e10, alpha=alpha, target_bounds=(-5, 15), max_grad_norm=20.0, fit_intercept=fit_intercept
    ).fit(X, y)
    ridge = Ridge(alpha=alpha * len(y), fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-3)
    assert model.intercept_ == pytest.approx(ridge.intercept_, abs=1e-3)


def test_without_noise_the_minimum_of_huber_loss():
    X, y = make_table()
    y[:100] += 8.0
    settings = {"loss": "huber", "huber_threshold": 0.5, "max_grad_norm": 20.0}
    model = DPSGDRegressor(1e10, alpha=1e-3, target_bounds=(-5, 20), **settings).fit(X, y)
    expected = unscaled_huber(X, y, 1e-3, 0.5)
    np.testing.assert_allclose(model.coef_, expected[:-1], atol=2e-3)
    assert model.intercept_ == pytest.approx(expected[-1], abs=2e-3)
    robust = HuberRegressor(epsilon=1.35, alpha=1e-4).fit(X, y)
    assert np.abs(model.coef_ - robust.coef_).max() < 0.2


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("loss", LOSSES)
def test_units_of_targets_do_not_matter(loss):
    X, y = make_table()
    one = DPSGDRegressor(2.0, loss=loss, target_bounds=(0, 10), random_state=0).fit(X, y)
    far = DPSGDRegressor(2.0, loss=loss, target_bounds=(1000, 2000), random_state=0)
    far.fit(X, 1000 + 100 * y)
    np.testing.assert_allclose(far.coef_, 100 * one.coef_, atol=0.5)
    assert far.intercept_ == pytest.approx(1000 + 100 * one.intercept_, abs=0.5)
    assert far.score(X, 1000 + 100 * y) > 0.9


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_it_learns(loss, delta):
    X, y = make_table(20_000)
    model = DPSGDRegressor(2.0, delta=delta, loss=loss, target_bounds=(0, 10)).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.privacy_.delta == delta


def test_partial_fit_goes_on_from_what_was_released():
    X, y = make_table()
    settings = {"alpha": 1e-2, "target_bounds": (-5, 15), "max_grad_norm": 20.0}
    model = DPSGDRegressor(1e10, **settings).partial_fit(X, y)
    before, intercept = model.coef_.copy(), model.intercept_
    whole = DPSGDRegressor(1e10, **settings).fit(X, y)
    np.testing.assert_allclose(before, whole.coef_, atol=1e-3)
    model.set_params(max_iter=1, eta0=1e-50, average=False).partial_fit(X[:50], y[:50])
    np.testing.assert_allclose(model.coef_, before, rtol=1e-10)
    assert model.intercept_ == pytest.approx(intercept, rel=1e-10)
    assert model.n_partial_fits_ == 2


def test_calls_on_disjoint_rows_are_parts():
    X, y = make_table(300)
    accountant = PrivacyAccountant(2.0, 0.1)
    model = DPSGDRegressor(
        0.75, target_bounds=(0, 10), partial_fit_rows="disjoint", accountant=accountant
    )
    for part in range(3):
        model.partial_fit(X[part::3], y[part::3])
    assert accountant.epsilon_spent == 0.75


@pytest.mark.parametrize(
    "settings",
    [
        {"target_bounds": None},
        {"target_bounds": (1, 1)},
        {"target_bounds": (0, np.inf)},
        {"target_bounds": (1e200, 2e200)},
        {"loss": "epsilon_insensitive"},
        {"loss": "huber", "huber_threshold": 0.0},
        {"loss": "huber", "huber_threshold": 1e90},
        {"max_iter": 0},
        {"batch_size": 301},
    ],
    ids=str,
)
def test_bad_settings_charge_nothing(settings):
    X, y = make_table(300)
    accountant = PrivacyAccountant(100.0, 0.1)
    model = DPSGDRegressor(**{"target_bounds": (0, 10), "accountant": accountant} | settings)
    for fit in (model.fit, model.partial_fit):
        with pytest.raises(ValueError):
            fit(X, y)
    assert not accountant.charges and not [n for n in vars(model) if n.endswith("_")]


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_odd_tables_are_fitted_and_stay_finite(loss, delta):
    X, _ = make_table(40)
    rng = np.random.default_rng(0)
    for table in (X[:1], np.zeros((20, 3)), np.full((20, 3), 1e300), X * 1e200):
        for targets in (np.zeros(len(table)), rng.normal(size=len(table)) * 1e300):
            for epsilon in (1e-6, 1.0):
                model = DPSGDRegressor(epsilon, delta=delta, loss=loss, target_bounds=(-1, 1))
                model.fit(table, targets)
                assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_)


@pytest.mark.parametrize("dtype", ["U3", "S3", "M8[s]"])
def test_targets_must_be_numbers(dtype):
    X, _ = make_table(40)
    accountant = PrivacyAccountant(10.0, 1e-3)
    model = DPSGDRegressor(target_bounds=(0, 10), accountant=accountant)
    with pytest.raises(ValueError):
        model.fit(X, np.ones(40, dtype=int).astype(dtype))
    assert not accountant.charges and not [n for n in vars(model) if n.endswith("_")]
