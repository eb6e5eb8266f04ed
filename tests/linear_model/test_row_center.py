"""Rows of linear models are clipped about their noisy mean; what a row moves that by."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from skdp import DPLinearSVC, DPLogisticRegression, DPSGDClassifier, PrivacyAccountant
from skdp.accounting import get_epsilon
from skdp.base import TableShape
from skdp.linear_model import _row_center
from skdp.mechanisms import GaussianMechanism
from skdp.noise import RandomSource
from tests._guarantees import meet
from tests._persons import persons_of

N, D = 400, 6
MAKERS = {
    "logistic": lambda **params: DPLogisticRegression(mechanism="gradient", **params),
    "hinge": lambda **params: DPLinearSVC(mechanism="gradient", **params),
    "sgd": lambda **params: DPSGDClassifier(**params),
}


def plan_of(name, relation="add_remove", unit="row", delta=1e-6, n=N, **params):
    shape = TableShape(n_rows=n, n_columns=D, classes=np.arange(2))
    return MAKERS[name](**params).plan_fit(shape, meet(1.0, delta, relation, unit))


def rows_in_a_corner(n=N, seed=0, spread=0.03):
    """Return rows that lie near one point, and classes that follow from where they lie."""
    rng = np.random.default_rng(seed)
    X = 0.35 + spread * rng.normal(size=(n, D))
    return X, (X.sum(axis=1) + 0.02 * rng.normal(size=n) > 0.35 * D).astype(int)


@pytest.fixture
def sums(monkeypatch):
    """The sums that are released, before their noise."""
    values = []
    monkeypatch.setattr(GaussianMechanism, "release", lambda self, v, **_: values.append(v) or v)
    return values


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_brute_force_sensitivity(relation, sums):
    """A row of any length and direction in the place of another, or of none.

    Directions with one large value and some small ones are the worst for the squares.
    """
    center = plan_of("logistic", relation).mechanism.rows.center
    X, _ = rows_in_a_corner()
    skewed = np.random.default_rng(1).normal(size=(30, D)) ** 3
    skewed /= np.linalg.norm(skewed, axis=1, keepdims=True)
    for row in (*np.eye(D), *-np.eye(D), np.full(D, D**-0.5), np.zeros(D), *skewed, *-skewed):
        for scale in (1e-3, 0.5, 1.0, 1e3, 1e200):
            X[17] = scale * row
            center.run(X, 1.0, RandomSource(0))
    found = np.array(sums)
    others = found
    if relation == "add_remove":
        center.run(np.delete(X, 17, axis=0), 1.0, RandomSource(0))
        others = np.array(sums[-1:])
    apart = max(np.linalg.norm(found - other, axis=1).max() for other in others)
    sensitivity = center.mechanism.sensitivity
    assert 0.95 * sensitivity < apart <= sensitivity


def test_a_person_moves_it_by_what_a_row_does(sums):
    center = plan_of("logistic", unit="person").mechanism.rows.center
    X, _ = rows_in_a_corner()
    ids = np.minimum(np.arange(N), N - 20)
    X[N - 20 :] = np.eye(D)[0]
    center.run(X[: N - 20], 1.0, RandomSource(0))
    center.run(X, 1.0, RandomSource(0), persons_of(ids))
    center.run(X, 1.0, RandomSource(0), persons_of(np.arange(N)))
    without, shared, counted = sums
    sensitivity = center.mechanism.sensitivity
    assert np.linalg.norm(shared - without) <= sensitivity < np.linalg.norm(counted - without)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", MAKERS)
def test_it_is_in_the_one_charge(name, relation):
    X, y = rows_in_a_corner()
    accountant = PrivacyAccountant(1.0, 1e-6, relation=relation)
    model = MAKERS[name](accountant=accountant, random_state=0).fit(X, y)
    (charge,) = accountant.charges
    assert get_epsilon(charge.event, 1e-6, relation=relation) <= 1.0
    names = [stage.name for stage in plan_of(name, relation).stages]
    assert "the mean row" in names
    assert "the mean row" in str(model.privacy_)


def test_where_rows_are_not_centered():
    """Without delta or an intercept, with a C of scikit-learn's, and where noise hides the mean."""
    assert plan_of("logistic").mechanism.rows.center is not None
    others = [
        plan_of("logistic", delta=0.0),
        plan_of("logistic", fit_intercept=False),
        plan_of("logistic", C=1.0),
        plan_of("logistic", standard_errors="total"),
        plan_of("logistic", n=20),
        plan_of("logistic", intercept_scaling=0.01),
        plan_of("sgd", alpha=0.01),
        plan_of("sgd", max_grad_norm=1.0),
        plan_of("sgd", eta0=1.0),
        plan_of("sgd", penalty=None),
        plan_of("sgd", optimizer="adam"),
        plan_of("sgd", projection_radius=10.0),
        plan_of("sgd", sampling="poisson"),
    ]
    assert plan_of("sgd").mechanism.rows.center is not None
    assert all(plan.mechanism.rows.center is None for plan in others)


@pytest.mark.parametrize("name", ["logistic", "hinge"])
@pytest.mark.parametrize("data_norm", [1.0, "auto"])
def test_sparse_rows_give_the_same_model(name, data_norm):
    X, y = rows_in_a_corner()
    X[np.abs(X - 0.35) < 0.01] = 0.0
    fits = [
        MAKERS[name](random_state=0, data_norm=data_norm).fit(table, y)
        for table in (X, csr_array(X))
    ]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-6)
    np.testing.assert_allclose(fits[0].intercept_, fits[1].intercept_, rtol=1e-6)


def test_gradients_of_centered_rows_are_within_the_clip():
    """Also of sparse rows near the center, and of those that are far from it."""
    rng = np.random.default_rng(0)
    plan = plan_of("logistic").mechanism.weights.sgd
    loss = plan.problem.loss_spec.loss
    center = rng.normal(size=D) / D**0.5
    rows = [center * (1.0 + 1e-9), center, 0.0 * center, 1e3 * center, -1e100 * center]
    for row in rows:
        for table in (row[np.newaxis], csr_array(row[np.newaxis])):
            for weights in rng.normal(size=(5, D + 1)) * 1e3:
                for factors in (None, np.array([16.0, 1e-3, 1.0, 2.0, 0.5, 0.1])):
                    sums = plan.sums(
                        table, np.array([0.0]), loss, center=center, column_factors=factors
                    )
                    gradient = sums.sums(weights, None)
                    assert np.linalg.norm(gradient) <= plan.clip * (1.0 + 1e-9)


def columns_of_unequal_size(n=20_000, seed=0):
    """Return one-hot columns of frequent and rare categories, and classes that depend on both."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(D, size=n, p=[0.45, 0.45, 0.03, 0.03, 0.02, 0.02])
    X = np.eye(D)[codes] * 0.9
    return X, (rng.random(n) < np.array([0.5, 0.5, 0.9, 0.1, 0.9, 0.1])[codes]).astype(int)


def test_columns_are_divided_by_their_deviations():
    X, _ = columns_of_unequal_size()
    # With class weights, rows are centered and not whitened.
    plan = plan_of("logistic", n=len(X), class_weight={0: 1.0, 1: 2.0})
    center = plan.mechanism.rows.center
    _, factors, unit = center.run(X, 1.0, RandomSource(0))
    before = X.std(axis=0)
    after = before * factors
    # Not entirely, because a part of the mean variance, and noise, is added to each.
    assert before.max() / before.min() > 3.0
    assert after.max() / after.min() < 1.7
    # The size of the rows is unchanged, apart from the noise.
    np.testing.assert_allclose((after**2).sum(), (before**2).sum(), rtol=0.05)
    np.testing.assert_allclose(unit, min(1.25 * np.sqrt((before**2).sum()), 1.0), rtol=0.05)


def test_equal_columns_are_not_scaled_where_noise_hides_their_variances():
    X, _ = rows_in_a_corner(seed=1)
    center = plan_of("logistic").mechanism.rows.center
    for seed in range(20):
        _, factors, _ = center.run(X, 1.0, RandomSource(seed))
        assert np.all((factors > 0.0) & (factors <= 16.0))
        assert factors.max() / factors.min() < 4.0


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("name", ["logistic", "sgd"])
def test_weights_of_scaled_columns_are_in_the_units_of_the_table(name):
    """With hardly any noise, scores are those of the frequencies of the columns."""
    X, y = columns_of_unequal_size()
    model = MAKERS[name](epsilon=1e4, random_state=0).fit(X, y)
    observed = [y[X[:, j] > 0.0].mean() for j in range(D)]
    np.testing.assert_allclose(model.predict_proba(0.9 * np.eye(D))[:, 1], observed, atol=0.05)


@pytest.mark.parametrize("name", MAKERS)
def test_classes_of_rows_in_a_corner_are_told_apart(name):
    """Uncentered, their accuracy is that of the guess."""
    X, y = rows_in_a_corner(3000)
    scores = [MAKERS[name](random_state=seed).fit(X, y).score(X, y) for seed in range(3)]
    assert min(scores) > 0.88


@pytest.mark.parametrize("make_rows", [np.asarray, csr_array])
def test_sums_do_not_depend_on_how_many_rows_are_read_at_once(make_rows, sums, monkeypatch):
    """To the last bit, also with rows that overflow and with persons."""
    center = plan_of("logistic").mechanism.rows.center
    X, _ = rows_in_a_corner()
    X[3] = 1e200
    X[5] = 0.0
    X = make_rows(X)
    persons = persons_of(np.arange(N) // 3)
    for n_values in (1 << 15, 7 * D, 1):
        monkeypatch.setattr(_row_center, "CACHED_VALUES", n_values)
        center.run(X, 1.0, RandomSource(0))
        center.run(X, 1.0, RandomSource(0), persons)
    assert not np.array_equal(sums[0], sums[1])
    for number, total in enumerate(sums):
        np.testing.assert_array_equal(total, sums[number % 2])
