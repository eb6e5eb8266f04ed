"""Rows of linear models are whitened by a noisy second moment; what a row moves that by."""

from functools import partial

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import csr_array
from sklearn.linear_model import LinearRegression, Ridge

from skdp import (
    ChunkedArray,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
    PrivacyAccountant,
)
from skdp.accounting import Gaussian, get_epsilon
from skdp.base import TableShape, guarantee_of
from skdp.linear_model import _whitening
from skdp.linear_model._row_center import RowCenter
from skdp.mechanisms import GaussianMechanism
from skdp.noise import RandomSource
from tests._guarantees import meet
from tests._private import is_sent, read_persons

N, D = 4000, 6
MAKERS = {
    "ridge": partial(DPRidge, target_bounds=(-3, 3), mechanism="gradient"),
    "least squares": partial(DPLinearRegression, target_bounds=(-3, 3), mechanism="gradient"),
    "sgd, numbers": partial(DPSGDRegressor, target_bounds=(-3, 3)),
    "counts": partial(DPPoissonRegressor, target_bounds=(0, 20)),
}
CLASSIFIERS = {
    "logistic": partial(DPLogisticRegression, mechanism="gradient"),
    "hinge": partial(DPLinearSVC, mechanism="gradient"),
    "sgd": partial(DPSGDClassifier, loss="log_loss"),
}


@pytest.fixture(autouse=True)
def whiten_small_tables(request, monkeypatch):
    """Whiten with more noise than fits do, so that tables may be small; one test has the limit."""
    if "limit" not in request.fixturenames:
        monkeypatch.setattr(_whitening, "MAX_NOISE", 4.0)
        monkeypatch.setattr(_whitening, "MIN_ROWS_PER_COLUMN", 20)


@pytest.fixture
def limit():
    """Return the limit of the noise."""
    return _whitening.MAX_NOISE


def plan_of(name, relation="add_remove", unit="row", delta=1e-6, n=N, d=D, epsilon=4.0, **params):
    classes = np.arange(params.pop("n_classes", 2))
    shape = TableShape(n_rows=n, n_columns=d, classes=classes)
    return (MAKERS | CLASSIFIERS)[name](**params).plan_fit(
        shape, meet(epsilon, delta, relation, unit)
    )


def whitening_of(*args, **params):
    return plan_of(*args, **params).mechanism.rows.whitening


def make_table(n=N, seed=0):
    """Return correlated rows in a corner of the unit ball, and their linear predictor."""
    rng = np.random.default_rng(seed)
    scales = np.geomspace(0.3, 0.02, D)
    X = 0.2 + (rng.normal(size=(n, D)) @ (np.eye(D) + 0.3)) * scales
    weights = np.linalg.solve(np.eye(D) + 0.3, np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])) / scales
    score = (X - 0.2) @ weights
    return X / 2.0, 2.0 * score / score.std()


def targets(name, score, seed=0):
    rng = np.random.default_rng(seed)
    if name == "counts":
        return rng.poisson(np.exp(np.minimum(0.3 * score, 2.5))).astype(float)
    return 0.5 * score + 0.2 * rng.normal(size=len(score))


CENTER, UNIT = np.full(D, 0.1), 0.5


@pytest.fixture
def sums(monkeypatch):
    """The second moments that are released, before their noise, for a fixed center and unit."""
    values = []
    monkeypatch.setattr(RowCenter, "run", lambda *_: (CENTER, np.ones(D), UNIT))
    monkeypatch.setattr(GaussianMechanism, "release", lambda self, v, **_: values.append(v) or v)
    return values


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_brute_force_sensitivity(relation, sums):
    """A row of any length and direction in the place of another, or of none."""
    whitening = whitening_of("ridge", relation)
    X, _ = make_table(200)
    directions = np.random.default_rng(1).normal(size=(30, D))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    distance = whitening.distance_factor * UNIT
    # Two rows are furthest apart if they are orthogonal together with their constant feature.
    for row in (*np.eye(D), *-np.eye(D), np.zeros(D), *directions):
        for scale in (1e-3, 0.5 * distance, distance, 2.0 * distance, 1e3, 1e200):
            X[17] = CENTER + scale * row
            whitening.run(X, 1.0, RandomSource(0))
    found = np.array(sums)
    others = found
    if relation == "add_remove":
        whitening.run(np.delete(X, 17, axis=0), 1.0, RandomSource(0))
        others = np.array(sums[-1:])
    apart = max(np.linalg.norm(found - other, axis=1).max() for other in others)
    sensitivity = whitening.mechanism.sensitivity
    assert 0.95 * sensitivity < apart <= sensitivity


def test_a_person_moves_it_by_what_a_row_does(sums):
    whitening = whitening_of("ridge", unit="person")
    n = 400
    X, _ = make_table(n)
    ids = np.minimum(np.arange(n), n - 20)
    X[n - 20 :] = np.eye(D)[0]
    whitening.run(X[: n - 20], 1.0, RandomSource(0))
    whitening.run(X, 1.0, RandomSource(0), read_persons(ids, n))
    whitening.run(X, 1.0, RandomSource(0), read_persons(np.arange(n), n))
    without, shared, counted = sums
    sensitivity = whitening.mechanism.sensitivity
    assert np.linalg.norm(shared - without) <= sensitivity < np.linalg.norm(counted - without)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", MAKERS)
def test_it_is_in_the_one_charge(name, relation):
    """The second moment and the steps are one Gaussian release of what is left of epsilon."""
    accountant = PrivacyAccountant(4.0, 1e-6, relation=relation)
    X, score = make_table()
    model = MAKERS[name](epsilon=4.0, accountant=accountant, random_state=0)
    model.fit(X, targets(name, score))
    (charge,) = accountant.charges
    assert get_epsilon(charge.event, 1e-6, relation=relation) <= 4.0
    plan = plan_of(name, relation)
    assert {"the mean row", "the second moment"} < {stage.name for stage in plan.stages}
    assert "the second moment" in str(model.privacy_)
    fit = plan.mechanism
    center = fit.rows.whitening.center.mechanism.noise_multiplier
    released = fit.rows.whitening.mechanism.noise_multiplier
    steps = fit.weights.sgd.noise_multiplier / np.sqrt(fit.weights.sgd.n_steps)
    joint = Gaussian((center**-2 + released**-2 + steps**-2) ** -0.5)
    beside = fit.rows.baseline.mechanism.epsilon
    if fit.rows.shrinkage_mechanism is not None:
        beside += fit.rows.shrinkage_mechanism.epsilon
    total = beside + get_epsilon(joint, 1e-6)
    assert total <= 4.0 and total == pytest.approx(4.0, rel=1e-4)


@pytest.mark.parametrize("n_rows", [10**4, 10**5, 10**6])
def test_steps_of_squares_converge_for_each_curvature(n_rows):
    """Without noise, and up to the bound on the curvature for which the step size is set."""
    fit = plan_of("ridge", n=n_rows, d=20).mechanism
    update = fit.weights.update
    smoothness = fit.weights.problem.curvature + fit.weights.settings.alpha
    relative_curvature = np.geomspace(1e-4, 1.0, 400)
    state = update.begin(np.ones(len(relative_curvature)))
    for _ in range(update.n_steps):
        state.step(smoothness * relative_curvature * state.lookahead)
    error = state.average
    assert np.abs(error).max() < 1.0
    # Directions that noise does not hide, below the safety factor of the bound.
    is_typical = (relative_curvature > 0.05) & (relative_curvature < 1.0 / _whitening.SAFETY)
    assert np.mean(error[is_typical] ** 2) < 1.0 / n_rows


def test_where_rows_are_not_whitened():
    """Without delta or an intercept, with given settings, with much noise, and where it is slow."""
    assert all(whitening_of(name) is not None for name in MAKERS)
    assert all(whitening_of(name, n=10**5) is not None for name in CLASSIFIERS)
    assert all(whitening_of(name, class_weight={0: 1.0, 1: 2.0}) is None for name in CLASSIFIERS)
    assert whitening_of("logistic", C=1.0) is None
    assert whitening_of("logistic", standard_errors="total") is None
    assert whitening_of("sgd", alpha=0.01) is None
    others = [
        whitening_of("ridge", delta=0.0),
        whitening_of("ridge", fit_intercept=False),
        whitening_of("ridge", n=100),
        whitening_of("ridge", n=10**6, d=201),
        whitening_of("ridge", epsilon=0.02),
        whitening_of("counts", alpha=1.0),
        whitening_of("logistic", n_classes=3),
        whitening_of("sgd, numbers", alpha=0.01),
        whitening_of("sgd, numbers", max_grad_norm=1.0),
        whitening_of("sgd, numbers", eta0=1.0),
        whitening_of("sgd, numbers", momentum=0.5),
        whitening_of("sgd, numbers", penalty=None),
        whitening_of("sgd, numbers", optimizer="adam"),
        whitening_of("sgd, numbers", learning_rate="linear"),
        whitening_of("sgd, numbers", average=False),
        whitening_of("sgd, numbers", projection_radius=10.0),
        whitening_of("sgd, numbers", sampling="poisson"),
        whitening_of("sgd, numbers", batch_size=100),
        whitening_of("sgd, numbers", max_iter=100),
    ]
    assert [number for number, value in enumerate(others) if value is not None] == []


@pytest.mark.parametrize("name", MAKERS)
def test_a_fit_takes_few_steps_however_many_rows_there_are(name):
    steps = [plan_of(name, n=n).mechanism.weights.sgd.n_steps for n in (10**4, 10**6, 10**7)]
    assert max(steps) <= 80
    # Larger tables are read in batches, whose noise is not part of one Gaussian release.
    assert whitening_of(name, n=10**9) is None


def test_limits_of_the_noise_and_of_the_rows(limit):
    """More noise means more steps; with less, more distant rows keep their weight."""
    assert whitening_of("ridge", n=10**5, d=20, epsilon=0.02) is None
    assert whitening_of("ridge", n=4999, d=20, epsilon=100.0) is None
    n_steps, distances = [], []
    for epsilon in (0.1, 1.0, 100.0):
        fit = plan_of("ridge", n=10**5, d=20, epsilon=epsilon).mechanism
        whitening = fit.rows.whitening
        typical = _whitening.TYPICAL_SQUARED_NORM / whitening.n_columns
        assert whitening.noise_norm <= limit * typical
        n_steps.append(fit.weights.sgd.n_steps)
        distances.append(whitening.distance_factor)
    assert n_steps[0] > n_steps[1] == n_steps[2]
    assert distances[0] == 1.0 < distances[1] < distances[2]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classes_pay_little_for_the_second_moment(name, limit):
    """The noise of steps determines the loss of a rare class; a wide table is only centered."""
    assert whitening_of(name, n=10**5, d=60, epsilon=0.1) is None
    for n, d, epsilon in [(10**4, 5, 0.3), (10**5, 20, 0.1), (10**5, 20, 1.0), (10**6, 60, 10.0)]:
        fit = plan_of(name, n=n, d=d, epsilon=epsilon).mechanism
        whitening = fit.rows.whitening
        assert whitening.noise_norm <= limit * _whitening.TYPICAL_SQUARED_NORM / d
        multipliers = [
            whitening.center.mechanism.noise_multiplier,
            whitening.mechanism.noise_multiplier,
            fit.weights.sgd.noise_multiplier / np.sqrt(fit.weights.sgd.n_steps),
        ]
        # The squares of the reciprocals add up to that of the whole fit.
        budgets = np.array(multipliers) ** -2.0
        assert budgets[1] < 0.051 * (budgets[1] + budgets[2])
        assert fit.weights.sgd.n_steps == 64


@pytest.mark.parametrize("name", ["ridge", *CLASSIFIERS])
def test_rows_of_a_rare_class_keep_their_gradients(name, limit):
    """They are farther from the center than others, but not twice as far."""
    rng = np.random.default_rng(0)
    n, d = 5000, 10
    fit = plan_of(name, n=n, d=d, epsilon=1.0).mechanism
    X = rng.normal(size=(n, d)) / 8.0
    is_rare = np.arange(n) < 50
    X[is_rare, 0] += 3.0 / 8.0
    whitening = fit.rows.whitening.run(X, 1.0, RandomSource(0))
    weights = whitening.row_weights(X)
    is_lighter = np.mean(weights[is_rare]) < 0.99 * np.mean(weights)
    assert is_lighter == (name == "ridge")


def test_where_rows_are_longer_than_the_bound_those_of_classes_are_shortened(limit):
    X = np.random.default_rng(0).normal(size=(40_000, 5))
    X *= 10.0 / np.linalg.norm(X, axis=1, keepdims=True)
    fit = plan_of("sgd", n=len(X), d=5, epsilon=1.0).mechanism
    whitening = fit.rows.whitening.run(X, 1.0, RandomSource(0))
    whitened = (X - whitening.center) @ whitening.transform
    weights = whitening.row_weights(X)[:, np.newaxis]
    values = np.linalg.eigvalsh((whitened * weights).T @ whitened / len(X))
    assert values[-1] <= whitening.second_moment


def test_where_rows_hardly_vary_the_model_is_as_good_as_without_whitening(limit, monkeypatch):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(10_000, 3))
    X = 0.49 + 0.03 * noise
    y = np.clip(noise.sum(axis=1) / 2.0 + 0.5 * rng.normal(size=len(X)), -3.0, 3.0)

    def score(n_fits=3):
        fits = [MAKERS["least squares"](epsilon=20.0, random_state=k) for k in range(n_fits)]
        return np.mean([model.fit(X, y).score(X, y) for model in fits])

    assert whitening_of("least squares", n=len(X), d=3, epsilon=20.0) is not None
    whitened = score()
    monkeypatch.setattr(_whitening, "MAX_NOISE", 0.0)
    assert whitening_of("least squares", n=len(X), d=3, epsilon=20.0) is None
    assert whitened > score() - 0.01


@pytest.mark.parametrize("name", ["ridge", *CLASSIFIERS])
def test_gradients_of_whitened_rows_are_within_the_clip(name):
    """Also of sparse rows near the center, and of those that are far from it."""
    rng = np.random.default_rng(0)
    fit = plan_of(name).mechanism
    plan, loss = fit.weights.sgd, fit.problem.loss
    X, _ = make_table()
    whitening = fit.rows.whitening.run(X, 1.0, RandomSource(0))
    center = whitening.center
    rows = [center * (1.0 + 1e-9), center, 0.0 * center, 1e3 * center, -1e100 * center, X[0]]
    rows += list(rng.normal(size=(10, D)))
    # The distance from which on gradients are shortened, in all directions, and just around it.
    distance = whitening.weight_distance
    for factor in (0.5, 1.0 - 1e-9, 1.0 + 1e-9, 1.5):
        rows += [*(whitening.weight_center + factor * distance * np.eye(D))]
    longest = 0.0
    for row in rows:
        for table in (row[np.newaxis], csr_array(row[np.newaxis])):
            for weights in rng.normal(size=(5, D + 1)) * 1e3:
                sums = plan.sums(table, np.array([0.0]), loss, whitening=whitening)
                longest = max(longest, np.linalg.norm(sums.sums(weights, None)))
    assert 0.9 * plan.clip < longest <= plan.clip * (1.0 + 1e-9)


def test_gradients_are_those_of_transformed_rows():
    fit = plan_of("ridge").mechanism
    plan, loss = fit.weights.sgd, fit.problem.loss
    X, score = make_table()
    whitening = fit.rows.whitening.run(X, 0.5, RandomSource(0))
    weights = np.random.default_rng(0).normal(size=D + 1)
    sums = plan.sums(X, score, loss, whitening=whitening)
    rows = np.column_stack(
        [(X - whitening.center) @ whitening.transform, np.full(N, sums.constant)]
    )
    gradients = loss.residual(rows @ weights, score)[:, np.newaxis] * rows
    gradients *= np.minimum(1.0, plan.clip / np.linalg.norm(gradients, axis=1))[:, np.newaxis]
    distances = np.linalg.norm(X - whitening.weight_center, axis=1)
    weights_of_rows = np.minimum(1.0, whitening.weight_distance / distances) ** 2
    assert np.sum(weights_of_rows < 1.0) > 10
    gradients *= weights_of_rows[:, np.newaxis]
    np.testing.assert_allclose(sums.sums(weights, None), gradients.sum(axis=0), rtol=1e-9)


@pytest.mark.parametrize("length", [1.0, 1e3])
def test_the_second_moment_of_whitened_rows_is_within_its_bound(length):
    """Also of rows that are all much longer than the declared bound."""
    X, _ = make_table(20_000)
    X = length * X
    whitening = whitening_of("ridge", n=len(X), epsilon=1e4).run(X, 1.0, RandomSource(0))
    distances = np.linalg.norm(X - whitening.weight_center, axis=1)
    weights = np.minimum(1.0, whitening.weight_distance / distances) ** 2
    whitened = (X - whitening.center) @ whitening.transform
    values = np.linalg.eigvalsh((whitened * weights[:, np.newaxis]).T @ whitened / len(X))
    assert values[-1] <= whitening.second_moment
    if length == 1.0:
        # The columns' variances differ by a factor of 225 and more.
        assert values[-1] < 5.0 * values[0]
        assert (weights @ (whitened**2).sum(axis=1)) / len(X) == pytest.approx(0.64, rel=0.1)


def test_weights_are_in_the_units_of_the_table():
    X, score = make_table(50_000)
    X *= min(1.0, 0.999 / np.linalg.norm(X, axis=1).max())
    y = targets("least squares", score)
    model = MAKERS["least squares"](epsilon=1e4, random_state=0).fit(X, y)
    public = LinearRegression().fit(X, y)
    deviations = X.std(axis=0)
    scale = np.linalg.norm(public.coef_ * deviations)
    assert np.linalg.norm((model.coef_ - public.coef_) * deviations) < 0.02 * scale
    means = [np.mean(fitted.coef_ @ X.T + fitted.intercept_) for fitted in (model, public)]
    assert means[0] == pytest.approx(means[1], abs=0.02 * scale)


def test_the_alpha_of_ridge_is_in_the_units_of_the_table():
    X, score = make_table(20_000)
    X *= min(1.0, 0.999 / np.linalg.norm(X, axis=1).max())
    y = targets("ridge", score)
    fitted = [
        model.fit(X, y)
        for model in (MAKERS["ridge"](epsilon=1e5, alpha=50.0, random_state=0), Ridge(alpha=50.0))
    ]
    deviations = X.std(axis=0)
    scores = [(model.coef_ * deviations) for model in fitted]
    free = LinearRegression().fit(X, y).coef_ * deviations
    # The penalty changes the weights by much more than the fits differ.
    distance = np.linalg.norm(scores[0] - scores[1])
    assert distance < 0.1 * np.linalg.norm(scores[1] - free)


@pytest.mark.parametrize(
    ("name", "data_norm"),
    [("ridge", 1.0), ("ridge", "auto"), ("counts", 1.0), ("sgd, numbers", 0.5)],
)
def test_sparse_rows_give_the_same_model(name, data_norm):
    X, score = make_table()
    X[np.abs(X - 0.1) < 0.01] = 0.0
    fits = [
        MAKERS[name](epsilon=4.0, random_state=0, data_norm=data_norm).fit(
            table, targets(name, score)
        )
        for table in (X, csr_array(X))
    ]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-5)
    np.testing.assert_allclose(fits[0].intercept_, fits[1].intercept_, rtol=1e-5)


@pytest.mark.parametrize("unit", ["row", "person"])
def test_processes_compute_the_same_model(unit, monkeypatch, tmp_path):
    """The weights of long rows are those of one process, where rows are sent with each sum."""
    # Only chunks in files are read by processes, and only tables of this many values.
    monkeypatch.setattr("skdp._data._parts.MIN_VALUES_FOR_THREADS", 1)
    sent = []

    def recorded(sums):
        sent.append(is_sent(sums))
        return sent[-1]

    monkeypatch.setattr("skdp._optim._clipped_sums.is_sent", recorded)
    X, score = make_table()
    X[::7] *= 5.0
    paths = [tmp_path / "first.npy", tmp_path / "second.npy"]
    for path, part in zip(paths, (X[:1500], X[1500:]), strict=True):
        np.save(path, part)
    groups = None
    if unit == "person":
        groups = np.arange(N)
        # One person has 500 rows, in both files.
        groups[1250:1750] = 1250
    fits = []
    for settings in ({"n_jobs": 1}, {"n_jobs": 2, "backend": "loky"}):
        sent.clear()
        accountant = PrivacyAccountant(4.0, 1e-6, unit=unit)
        with parallel_config(**settings):
            model = MAKERS["ridge"](epsilon=4.0, random_state=0, accountant=accountant)
            table = ChunkedArray(paths)
            fits.append(model.fit(table, targets("ridge", score), groups=groups))
        assert set(sent) == {settings["n_jobs"] == 2}
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


@pytest.mark.parametrize("name", ["ridge", "sgd, numbers"])
def test_rows_longer_than_the_bound_do_not_make_steps_diverge(name):
    X, score = make_table(20_000)
    y = targets(name, score)
    longest = 10.0 * X
    model = MAKERS[name](epsilon=4.0, random_state=0).fit(longest, y)
    assert model.score(longest, y) > 0.9 * MAKERS[name](
        epsilon=4.0, random_state=0, data_norm=10.0
    ).fit(longest, y).score(longest, y)


@pytest.mark.parametrize("strength", [1e200, 1e300])
@pytest.mark.parametrize(
    ("make", "is_whitened"),
    [
        (partial(MAKERS["ridge"], epsilon=0.5), False),
        (partial(MAKERS["ridge"], epsilon=1e4), True),
        (partial(DPLogisticRegression, mechanism="gradient"), False),
    ],
)
def test_a_strong_penalty_on_long_rows_gives_finite_weights(
    make, is_whitened, strength, monkeypatch
):
    """Also where the penalty, in the units of rows with a released norm, is infinite."""
    # Such a penalty needs few steps without whitening, and the table is small.
    monkeypatch.setattr(_whitening, "STEPS_OF_WHITENING", -1000)
    monkeypatch.setattr(_whitening, "MIN_ROWS_PER_COLUMN", 0)
    X = np.random.default_rng(0).choice([-1e300, 1e300], size=(400, D))
    model = make(data_norm="auto", random_state=0)
    y = X[:, 0] / 1e300
    if isinstance(model, DPLogisticRegression):
        model.set_params(C=1.0 / strength)
        y = y > 0.0
    else:
        model.set_params(alpha=strength)
    model.fit(X, y)
    statement = " ".join(str(model.privacy_).split())
    assert ("the second moment" in statement) == is_whitened
    assert np.abs(model.coef_).max() < 1e-20
    assert np.isfinite(model.intercept_).all()


# The mechanism of which less loss is stated.


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(
    ("model", "names"),
    [
        (DPRidge(target_bounds=(0, 30)), ("sufficient_statistics", "gradient")),
        (DPLinearRegression(target_bounds=(-1, 1)), ("sufficient_statistics", "gradient")),
        (DPPoissonRegressor(target_bounds=(0, 10)), ("output", "gradient")),
    ],
)
def test_auto_is_the_mechanism_of_which_less_loss_is_stated(
    model, names, epsilon, delta, monkeypatch
):
    # Statistics are compared with gradients of rows that are not whitened.
    monkeypatch.setattr(_whitening, "MAX_NOISE", 0.0)

    def of(mechanism):
        return model.set_params(epsilon=epsilon, delta=delta, mechanism=mechanism)

    least, name = min((of(name).expected_excess_loss(3000, 6), name) for name in names)
    assert of("auto").expected_excess_loss(3000, 6) == least
    shape, guarantee = TableShape(n_rows=3000, n_columns=6), guarantee_of(model)
    chosen = of("auto").plan_fit(shape, guarantee).mechanism.weights
    assert type(chosen) is type(of(name).plan_fit(shape, guarantee).mechanism.weights)


@pytest.mark.parametrize("data_norm", [1.0, 0.6, 0.1])
def test_rows_in_a_corner_that_are_longer_than_the_bound(data_norm, limit, monkeypatch):
    """The spread of the rows, shortened to the bound, says nothing of how far from it they are."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(20_000, 5))
    X = (1.0 + 0.1 * noise) / np.sqrt(5.0)
    y = np.clip(noise.sum(axis=1) / 2.5 + 0.4 * rng.normal(size=len(X)), -3.0, 3.0)

    def score(n_fits=2):
        models = [
            DPSGDRegressor(target_bounds=(-3, 3), data_norm=data_norm, random_state=seed)
            for seed in range(n_fits)
        ]
        return np.mean([model.fit(X, y).score(X, y) for model in models])

    whitened = score()
    if data_norm == 0.1:
        # Nothing is found, but the weights are not noise alone either.
        assert whitened > -0.1
        return
    assert whitened > 0.8
    monkeypatch.setattr(_whitening, "MAX_NOISE", 0.0)
    assert whitened > score() - 0.02


@pytest.mark.parametrize("epsilon", [1.0, 1e3, 1e10])
def test_the_bound_on_rounding_errors_covers_every_transform(epsilon):
    """Also where the largest distance limits the unit of the rows."""
    whitening = whitening_of("ridge", n=10**6, d=2, epsilon=epsilon)
    constant = 0.3
    # The unit of equal rows is the smallest possible, apart from noise.
    rows = np.full((10**6, 2), 0.6)
    norm = np.linalg.norm(whitening.run(rows, 1.0, RandomSource(0)).transform, 2)
    assert whitening.rounding_factor(1.0 / constant) >= 1.0 + 6.0 * norm / constant
