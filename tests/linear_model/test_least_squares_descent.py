"""Least squares by noisy gradients: bounds of the loss, sensitivity, price and accuracy."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from skdp import DPLinearRegression, DPRidge, PrivacyAccountant
from skdp._data._bounded import BoundedRows
from skdp._losses import ClippedSquaredLoss
from skdp.accounting import get_epsilon
from skdp.base import TableShape
from skdp.linear_model._least_squares_descent import LOSS
from skdp.linear_model._objective import loss_gradient
from tests._guarantees import meet


def make_table(n=4000, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    w = rng.normal(size=d)
    return X, np.clip(X @ (w / np.linalg.norm(w)) + 0.1 * rng.normal(size=n), -1.0, 1.0)


def test_the_loss_is_half_the_squared_error_up_to_its_bounds():
    loss, rng = ClippedSquaredLoss(), np.random.default_rng(0)
    scores, y = 3.0 * rng.normal(size=500), rng.uniform(-1, 1, 500)
    step = 1e-6
    for score, target in zip(scores, y, strict=True):
        ends = [loss.value(np.array([score + s]), np.array([target])) for s in (step, -step)]
        slope = loss.residual(np.array([score]), np.array([target]))[0]
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-6)
        assert abs(slope) <= loss.slope_bound
    near = np.abs(scores - y) <= 1
    np.testing.assert_allclose(loss.residual(scores, y)[near], (scores - y)[near])
    assert loss.value(np.zeros(500), y) <= 500 * loss.value_at_zero()
    assert set(loss.curvature(scores, y)) == {0.0, loss.curvature_bound}


def moved(relation, seed):
    """Return how far neighbours' gradients are apart, over what a step allows for."""
    rng = np.random.default_rng(seed)
    X, y = 10.0 * rng.normal(size=(12, 2)), rng.choice([-1.0, 1.0], 12)
    X[1], y[1] = X[0], -y[0]
    ridge = DPLinearRegression(mechanism="gradient", data_norm=2.0, fit_intercept=False)
    ridge.set_params(target_bounds=(-1, 1))
    shape = TableShape(n_rows=12, n_columns=2)
    plan = ridge.plan_fit(shape, meet(1.0, 1e-6, relation)).model.plan
    weights = rng.choice([0.0, 1.0, 50.0]) * rng.normal(size=2)
    weights *= min(1.0, plan.radius / max(np.linalg.norm(weights), 1e-9))
    # Under replacement row 0 turns into row 1: as long, of the other target.
    kept = [np.arange(1, 12) if relation == "add_remove" else np.r_[1, 1:12], np.arange(12)]
    one, other = (loss_gradient(LOSS, BoundedRows(X[i], 2.0, 0.0), y[i], weights) for i in kept)
    return np.linalg.norm(one - other) / plan.step.sensitivity


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_neighbours_gradients_come_near_the_sensitivity_and_stay_within(relation):
    ratios = [moved(relation, seed) for seed in range(200)]
    assert 0.98 < max(ratios) <= 1.0


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_all_steps_are_one_charge_of_the_budget(relation):
    X, y = make_table()
    accountant = PrivacyAccountant(1.0, 1e-6, relation=relation)
    model = DPRidge(mechanism="gradient", target_bounds=(-1, 1), accountant=accountant).fit(X, y)
    (spend,) = accountant.spends
    assert 0.999 < get_epsilon(spend.event, 1e-6, relation=relation) <= 1.0
    assert "steps" in model.privacy_.sampler


@pytest.mark.parametrize("target_bounds", [(-1, 1), (-3, 1), (999, 1003)])
def test_little_noise_gives_the_ridge_of_sklearn(target_bounds):
    X, y = make_table()
    middle = 0.0 if target_bounds[0] < 0 else 1001.0
    params = {"target_bounds": target_bounds, "mechanism": "gradient", "alpha": 5.0}
    model = DPRidge(1e10, fit_intercept=middle > 0, **params).fit(X, y + middle)
    if middle:
        X = np.column_stack([X, np.full(len(X), 0.3)])
    peer = Ridge(5.0, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_[:4], atol=1e-3)
    expected = middle + 0.3 * peer.coef_[4] if middle else 0.0
    assert model.intercept_ == pytest.approx(expected, abs=1e-3)


def test_it_is_better_than_sufficient_statistics_with_many_features():
    X, _ = make_table(5000, 100)
    w = np.random.default_rng(1).normal(size=100)
    y = np.clip(X @ (4.0 * w / np.linalg.norm(w)), -1.0, 1.0)
    scores = [
        [
            DPLinearRegression(1.0, mechanism=mechanism, target_bounds=(-1, 1))
            .fit(X, y)
            .score(X, y)
            for _ in range(5)
        ]
        for mechanism in ("gradient", "sufficient_statistics")
    ]
    assert np.mean(scores[0]) > np.mean(scores[1]) + 0.05
