import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import d2_tweedie_score

from skdp import DPPoissonRegressor, PrivacyAccountant


def make_table(n=2000, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X *= rng.uniform(0.2, 1.5, size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    return X, rng.poisson(np.exp(X @ rng.normal(size=d) + 0.5))


def clipped_with_constant(X, constant=0.3):
    X = X * np.minimum(1.0, 1.0 / np.linalg.norm(X, axis=1, keepdims=True))
    return np.column_stack([X, np.full(len(X), constant)])


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("alpha", [0.01, 0.1, 1.0])
def test_little_noise_gives_the_answer_of_sklearn(alpha, delta):
    X, y = make_table()
    Z = clipped_with_constant(X)
    peer = PoissonRegressor(alpha=alpha, fit_intercept=False, tol=1e-9, max_iter=10_000).fit(Z, y)
    params = {"epsilon": 1e10, "delta": delta, "alpha": alpha, "target_bounds": (0, 40)}
    model = DPPoissonRegressor(mechanism="output", **params).fit(X, y)
    assert peer.predict(Z).max() < 40 and y.max() <= 40
    np.testing.assert_allclose(
        np.append(model.coef_, model.intercept_ / 0.3), peer.coef_, atol=1e-3
    )
    np.testing.assert_allclose(model.alpha_, alpha)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("mechanism", ["auto", "gradient"])
@pytest.mark.parametrize("alpha", [0.01, 0.1])
def test_little_noise_in_gradients_gives_the_answer_of_sklearn(alpha, mechanism):
    X, y = make_table()
    peer = PoissonRegressor(alpha=alpha, tol=1e-9, max_iter=10_000).fit(X, y)
    params = {"alpha": alpha, "target_bounds": (0, 40), "data_norm": 1.5, "mechanism": mechanism}
    model = DPPoissonRegressor(1e10, **params).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-3)
    np.testing.assert_allclose(model.alpha_, alpha)


def test_predictions_are_means_within_the_bounds():
    X, y = make_table()
    model = DPPoissonRegressor(epsilon=100.0, target_bounds=(0.5, 20)).fit(X, y)
    means = np.clip(np.exp(X @ model.coef_ + model.intercept_), 0.5, 20)
    np.testing.assert_allclose(model.predict(X), means)
    assert model.predict(1e6 * X).max() == 20 and model.predict(-1e6 * X).min() == 0.5
    assert model.score(X, y) == pytest.approx(d2_tweedie_score(y, model.predict(X), power=1))


@pytest.mark.parametrize("mechanism", ["output", "gradient"])
def test_far_targets_are_clipped(mechanism):
    X, y = make_table()
    far = np.where(y >= 3, 10**6, y)
    params = {"target_bounds": (0, 3), "random_state": 0, "mechanism": mechanism}
    one = DPPoissonRegressor(**params).fit(X, np.minimum(y, 3))
    other = DPPoissonRegressor(**params).fit(X, far)
    np.testing.assert_array_equal(one.coef_, other.coef_)


@pytest.mark.thorough
def test_useful_at_a_usual_epsilon():
    X, y = make_table(n=100_000)
    model = DPPoissonRegressor(epsilon=4.0, target_bounds=(0, 10), random_state=0).fit(X, y)
    assert model.score(X, y) > 0.5


def test_automatic_alpha_uses_public_quantities_alone():
    X, y = make_table()
    other_X, other_y = make_table(seed=1)
    one, other = (
        DPPoissonRegressor(target_bounds=(0, 9)).fit(*table).alpha_
        for table in ((X, y), (3.0 * other_X, other_y))
    )
    assert one == other


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("high", [0.1, 5.0, 1e4])
@pytest.mark.parametrize("alpha", [1e-6, 1.0])
def test_every_fit_ends_at_its_certified_norm(high, alpha):
    X, y = make_table(n=200)
    for table in (X, np.zeros_like(X), np.tile(X[:1], (200, 1)), X * 1e200):
        for targets in (y, np.zeros(200), np.full(200, 1e9)):
            model = DPPoissonRegressor(alpha=alpha, target_bounds=(0, high)).fit(table, targets)
            assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"target_bounds": None}, "must be given"),
        ({"target_bounds": (-1, 1)}, "0 <= low < high"),
        ({"target_bounds": (2, 1)}, "low < high"),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": "best"}, "alpha"),
        ({"mechanism": "objective"}, "mechanism"),
    ],
)
def test_bad_parameters_are_refused_and_not_charged(params, words):
    X, y = make_table(n=50)
    accountant = PrivacyAccountant(10.0, 1e-3)
    with pytest.raises(ValueError, match=words):
        DPPoissonRegressor(accountant=accountant, **{"target_bounds": (0, 9)} | params).fit(X, y)
    assert accountant.charges == []
