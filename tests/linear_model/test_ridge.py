import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LinearRegression, Ridge

from skdp import DPLinearRegression, DPRidge, PrivacyAccountant
from skdp.base import TableShape
from skdp.noise import RandomSource
from tests._guarantees import meet


def make_table(n=3000, d=4, seed=0, length=0.9, shift=0.2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X *= length * rng.uniform(0.2, 1.0, size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    X += shift
    y = X @ rng.normal(size=d) + 2.0 + 0.1 * rng.normal(size=n)
    return X, np.clip(y, -2.0, 6.0)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [None, 0.0, 0.1, 10.0])
def test_little_noise_gives_the_answer_of_sklearn(alpha, fit_intercept, delta):
    X, y = make_table()
    params = {"data_norm": 2.0, "target_bounds": (-2, 6), "fit_intercept": fit_intercept}
    if alpha is None:
        peer, estimator = LinearRegression(fit_intercept=fit_intercept), DPLinearRegression()
    else:
        peer, estimator = Ridge(alpha, fit_intercept=fit_intercept), DPRidge(alpha=alpha)
    peer.fit(X, y)
    model = estimator.set_params(epsilon=1e10, delta=delta, **params).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-3)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), atol=1e-3)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_long_rows_count_less_and_far_targets_are_clipped(is_sparse, fit_intercept):
    """A row of twice the norm counts as half of its equation; the answer solves all equations."""
    X, y = make_table(length=3.0)
    y = 10.0 * y
    params = {"target_bounds": (-20, 20), "fit_intercept": fit_intercept}
    weights = np.minimum(1.0, 1.0 / np.linalg.norm(X, axis=1)) ** 2
    assert 0.2 < np.mean(weights < 1.0) < 0.9
    peer = LinearRegression(fit_intercept=fit_intercept)
    peer.fit(X, np.clip(y, -20, 20), sample_weight=weights)
    model = DPLinearRegression(epsilon=1e10, **params).fit(csr_array(X) if is_sparse else X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-3)


@pytest.mark.parametrize("shift", [2.0, 5.0])
def test_the_center_of_long_rows_may_lie_beyond_the_bound(shift):
    """All rows are scaled down, each with its equation: their mean is not within the bound."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 2)) + shift
    y = X @ [1.0, -2.0] + 0.1 * rng.normal(size=5000)
    weights = np.minimum(1.0, 1.0 / np.linalg.norm(X, axis=1)) ** 2
    peer = LinearRegression().fit(X, np.clip(y, -20, 20), sample_weight=weights)
    assert np.linalg.norm(np.average(X, axis=0, weights=weights)) > 1.0
    model = DPLinearRegression(1e10, target_bounds=(-20, 20)).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=2e-3)


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("data_norm", [1.0, "auto"])
@pytest.mark.parametrize("epsilon", [3.0, 10.0, 1000.0])
def test_rows_longer_than_the_bound_do_not_bias_the_answer(epsilon, data_norm):
    """A third of the rows are longer than 1; scaled down without their targets they cost .09."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 1))
    y = np.clip(X[:, 0] + 0.3 * rng.normal(size=20_000), -4, 4)
    model = DPRidge(epsilon, data_norm=data_norm, target_bounds=(-4, 4), random_state=0)
    assert model.fit(X, y).score(X, y) > 0.91


def test_targets_far_from_zero_cost_nothing_with_an_intercept():
    X, y = make_table()
    near = DPRidge(random_state=0, target_bounds=(-2, 6)).fit(X, y)
    far = DPRidge(random_state=0, target_bounds=(998, 1006)).fit(X, y + 1000.0)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-4)
    np.testing.assert_allclose(far.intercept_, near.intercept_ + 1000.0, atol=1e-3)


def test_the_answer_does_not_depend_on_units():
    X, y = make_table()
    one = DPLinearRegression(random_state=0, data_norm=2.0, target_bounds=(-2, 6)).fit(X, y)
    params = {"random_state": 0, "data_norm": 200.0, "target_bounds": (-2e6, 6e6)}
    other = DPLinearRegression(**params).fit(100.0 * X, 1e6 * y)
    np.testing.assert_allclose(other.coef_ * 1e-4, one.coef_, atol=1e-5)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_useful_at_a_usual_epsilon(delta):
    X, y = make_table(n=20_000)
    model = DPLinearRegression(
        epsilon=1.0, delta=delta, data_norm=1.5, target_bounds=(-2, 6), random_state=0
    )
    assert model.fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize("epsilon", [1e-3, 1.0])
def test_singular_tables_and_single_rows_give_finite_models(epsilon):
    for X, y in (
        (np.zeros((50, 3)), np.zeros(50)),
        (np.ones((50, 3)), np.ones(50)),
        (np.full((50, 3), 1e300), np.full(50, 1e300)),
        (np.ones((1, 3)), np.ones(1)),
    ):
        model = DPLinearRegression(epsilon=epsilon, target_bounds=(0, 2)).fit(X, y)
        assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_)


@pytest.mark.thorough
def test_the_noise_vanishes_as_epsilon_grows():
    """Errors in the coefficients, mean of 10 fits; a factor of 100 in epsilon is one in noise."""
    X, y = make_table(n=20_000)
    exact = LinearRegression().fit(X, y).coef_
    errors = [
        np.mean(
            [
                np.linalg.norm(
                    DPLinearRegression(
                        epsilon=e, data_norm=2.0, target_bounds=(-2, 6), random_state=s
                    )
                    .fit(X, y)
                    .coef_
                    - exact
                )
                for s in range(10)
            ]
        )
        for e in (1e1, 1e3, 1e5, 1e7)
    ]
    assert all(later < earlier for earlier, later in zip(errors, errors[1:], strict=False))


def test_noise_in_the_matrix_is_within_what_the_ridge_is_made_for():
    """A symmetric matrix of noise has norm below the margin but for one draw in twenty.

    Of 400 draws more than 45 are above with a chance below 1e-5.
    """
    p, above = 12, 0
    source = RandomSource(0)
    params = {"fit_intercept": False, "target_bounds": (-1, 1)}
    ridge = DPRidge(mechanism="sufficient_statistics", **params)
    plan = ridge.plan_fit(TableShape(n_rows=100, n_columns=p), meet(1.0, 1e-6)).mechanism.weights
    unit = plan._scales[0]
    margin = plan.mechanism.scale * unit * (np.sqrt(2 * p) + np.sqrt(2 * np.log(40)))
    for _ in range(400):
        noise = plan.mechanism.release(np.zeros(p * (p + 1) // 2), random_state=source) * unit
        matrix = np.zeros((p, p))
        matrix[np.triu_indices(p)] = noise
        # Off the diagonal an entry is released once, times the root of two.
        matrix = (matrix + matrix.T) / np.sqrt(2) + (1 - np.sqrt(2)) * np.diag(np.diag(matrix))
        above += np.linalg.norm(matrix, 2) > margin
    assert above <= 45


def test_one_fit_is_one_charge():
    X, y = make_table()
    accountant = PrivacyAccountant(1.0, 1e-6)
    model = DPRidge(target_bounds=(-2, 6), accountant=accountant).fit(X, y)
    assert [(s.epsilon, s.delta) for s in accountant.charges] == [(1.0, 1e-6)]
    assert "target_bounds" in model.privacy_.public


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"target_bounds": None}, "must be given"),
        ({"target_bounds": (1, 1)}, "low < high"),
        ({"target_bounds": (2, 1)}, "low < high"),
        ({"target_bounds": (0, np.inf)}, "between 1e-100 and 1e100"),
        ({"target_bounds": (np.nan, 1)}, "finite"),
        ({"target_bounds": 3}, "target_bounds"),
        ({"target_bounds": ("0", 1)}, "target_bounds"),
        ({"target_bounds": (0, 1e101)}, "between 1e-100 and 1e100"),
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": np.nan}, "alpha"),
        ({"alpha": "auto"}, "alpha"),
        ({"mechanism": "output"}, "mechanism"),
        ({"data_norm": 0.0}, "data_norm"),
        ({"intercept_scaling": -0.1}, "intercept_scaling"),
    ],
)
def test_bad_parameters_are_refused_and_not_charged(params, words):
    X, y = make_table(n=50)
    accountant = PrivacyAccountant(10.0, 1e-3)
    with pytest.raises(ValueError, match=words):
        DPRidge(accountant=accountant, **{"target_bounds": (0, 1)} | params).fit(X, y)
    assert accountant.charges == []
