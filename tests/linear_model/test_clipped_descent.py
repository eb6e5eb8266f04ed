"""Regression by noisy clipped gradients: the loss, the bound on a step, the price, the choice."""

import dataclasses
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from skdp import (
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSGDClassifier,
    PrivacyAccountant,
)
from skdp.accounting import Composed, Gaussian, get_epsilon
from skdp.audit import audit_epsilon
from skdp.base import TableShape
from skdp.exceptions import PrivacyViolationWarning
from skdp.linear_model import _clipped_descent
from skdp.linear_model._clipped_descent import plan_run
from skdp.linear_model._ridge import LOSS_SPEC
from skdp.noise import RandomSource
from tests._guarantees import meet
from tests._private import BoundedRows, ShrinkageRule, plan_sgd


def make_table(n=4000, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    w = rng.normal(size=d)
    return X, np.clip(X @ (w / np.linalg.norm(w)) + 0.1 * rng.normal(size=n), -1.0, 1.0)


def test_the_loss_is_half_the_squared_error_up_to_its_bounds():
    loss, rng = LOSS_SPEC.loss, np.random.default_rng(0)
    scores, y = 3.0 * rng.normal(size=500), rng.uniform(-1, 1, 500)
    step = 1e-6
    for score, target in zip(scores, y, strict=True):
        ends = [loss.value(np.array([score + s]), np.array([target]))[0] for s in (step, -step)]
        slope = loss.residual(np.array([score]), np.array([target]))[0]
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-6)
        assert abs(slope) <= LOSS_SPEC.residual_norm
    near = np.abs(scores - y) <= 1
    np.testing.assert_allclose(loss.residual(scores, y)[near], (scores - y)[near])


def descent(regressor, n_rows, n_columns, relation="add_remove", delta=1e-6):
    classes = getattr(regressor, "classes", None)
    shape = TableShape(n_rows=n_rows, n_columns=n_columns, classes=classes)
    return regressor.plan_fit(shape, meet(1.0, delta, relation)).mechanism.weights


REGRESSORS = (
    DPRidge(mechanism="gradient", data_norm=2.0, target_bounds=(-1, 1)),
    DPPoissonRegressor(mechanism="gradient", data_norm=2.0, target_bounds=(0, 1)),
)
CLASSIFIERS = (
    DPLogisticRegression(mechanism="gradient", data_norm=2.0, classes=[0, 1]),
    DPLogisticRegression(mechanism="gradient", data_norm=2.0, classes=[0, 1, 2]),
    DPLinearSVC(mechanism="gradient", data_norm=2.0, classes=[0, 1, 2]),
)


def moved(regressor, relation, delta, seed):
    """Return how far neighbors' clipped sums are apart, over what a step allows for."""
    rng = np.random.default_rng(seed)
    kind = int if regressor in CLASSIFIERS else float
    X, y = 10.0 * rng.normal(size=(12, 2)), rng.choice([0, 1], 12).astype(kind)
    X[1], y[1] = -X[0], y[0]
    one = descent(regressor, 12, 2, relation, delta)
    fit = plan_run(one.problem, one.settings, rng.choice([1.0, 3.7]))
    weights = rng.normal(size=(*fit.problem.loss_spec.loss.weights_shape, 3))
    weights *= rng.choice([0.0, 1.0, 50.0])
    kept = [np.arange(1, 12) if relation == "add_remove" else np.r_[1, 1:12], np.arange(12)]
    one, other = (
        fit.sgd.sums(X[i], y[i], fit.problem.loss_spec.loss).sums(weights, None) for i in kept
    )
    norm = np.linalg.norm((one - other).ravel(), 1 if delta == 0.0 else 2)
    return norm / fit.sgd.sensitivity


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("regressor", REGRESSORS + CLASSIFIERS)
def test_neighbors_sums_come_near_the_sensitivity_and_stay_within(regressor, relation, delta):
    ratios = [moved(regressor, relation, delta, seed) for seed in range(200)]
    assert 0.9 < max(ratios) <= 1.0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("regressor", REGRESSORS + CLASSIFIERS)
def test_all_steps_are_one_charge_of_the_budget(regressor, relation, delta):
    X, y = make_table(n=300)
    accountant = PrivacyAccountant(1.0, 1e-6, relation=relation)
    y = y > 0 if regressor in CLASSIFIERS else np.abs(y)
    model = clone(regressor).set_params(accountant=accountant, delta=delta).fit(X, y)
    (spend,) = accountant.charges
    # Beside the steps, the center and the check of classes are composed by the sum of their
    # epsilons, which is no tight bound.
    assert 0.8 < get_epsilon(spend.event, delta, relation=relation) <= 1.0
    # The mean row and the steps are together one Gaussian release.
    centers = tuple(event for event in spend.event.events if isinstance(event, Gaussian))
    first, steps, *check = (event for event in spend.event.events if event not in centers)
    assert len(check) == (regressor in CLASSIFIERS) and len(centers) <= (delta > 0)
    beside = sum(event.epsilon for event in (first, *check))
    steps = Composed((*centers, steps)) if centers else steps
    paid = beside + get_epsilon(steps, delta, relation=relation)
    assert paid <= 1.0 and paid == pytest.approx(1.0, rel=1e-5)
    assert "steps" in model.privacy_.sampler


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_unit_of_rows_changes_neither_the_price_nor_the_noise_beside_the_clip(delta):
    one = descent(REGRESSORS[0], 1000, 3, delta=delta)
    other = plan_run(one.problem, one.settings, 0.3)
    assert other.sgd.event == one.sgd.event
    assert other.sgd.scale / other.sgd.clip == pytest.approx(one.sgd.scale / one.sgd.clip)
    assert other.sgd.clip == pytest.approx(0.3 * one.sgd.clip)


@pytest.mark.parametrize("regressor", REGRESSORS)
def test_the_search_for_a_norm_is_paid_from_the_same_budget(regressor):
    X, y = make_table(n=300)
    accountant = PrivacyAccountant(1.0, 1e-6)
    model = clone(regressor).set_params(data_norm="auto", accountant=accountant, delta=1e-6)
    model.fit(X, np.abs(y))
    (spend,) = accountant.charges
    assert get_epsilon(spend.event, 1e-6) <= 1.0


def test_no_norm_that_is_found_leads_out_of_what_the_engine_takes():
    """A fit that failed after its charge would tell of the rows."""
    params = {"mechanism": "gradient", "data_norm": "auto"}
    fit = descent(DPRidge(target_bounds=(0, 1), **params), 100, 3)
    for unit in (2.0**-100, 2.0**100):
        X, y = np.full((4, 3), 0.1 * unit), np.zeros(4)
        rows = BoundedRows(X, 1.0, fit.problem.constant, unit)
        assert np.isfinite(fit.run(fit.problem.loss_spec.loss, rows, y, RandomSource(0))).all()
    with pytest.raises(ValueError, match="target_bounds"):
        descent(DPPoissonRegressor(target_bounds=(0, 1e30), **params), 100, 3)


def test_rows_of_a_searched_norm_are_fitted_in_its_unit():
    X, y = make_table()
    params = {"mechanism": "gradient", "target_bounds": (-1, 1)}
    peer = Ridge(5.0).fit(X, y)
    model = DPRidge(1e8, data_norm="auto", alpha=5.0, **params).fit(40.0 * X, y)
    assert 39 < model.data_norm_ < 60
    np.testing.assert_allclose(40.0 * model.coef_, peer.coef_, atol=0.02)
    assert model.intercept_ == pytest.approx(peer.intercept_, abs=0.01)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("target_bounds", [(-1, 1), (-3, 1), (999, 1003)])
def test_little_noise_gives_the_ridge_of_sklearn(target_bounds, delta):
    X, y = make_table()
    middle = 0.0 if target_bounds[0] < 0 else 1001.0
    params = {"target_bounds": target_bounds, "mechanism": "gradient", "alpha": 5.0}
    model = DPRidge(1e10, delta=delta, fit_intercept=middle > 0, **params).fit(X, y + middle)
    peer = Ridge(5.0, fit_intercept=middle > 0).fit(X, y + middle)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-3)
    assert model.intercept_ == pytest.approx(peer.intercept_, abs=1e-3)


def chosen(epsilon, delta, n_rows, n_columns):
    model = DPLinearRegression(target_bounds=(-1, 1), data_norm=n_columns**0.5)
    shape = TableShape(n_rows=n_rows, n_columns=n_columns)
    return type(model.plan_fit(shape, meet(epsilon, delta)).mechanism.weights).__name__


@pytest.mark.parametrize(
    ("epsilon", "delta", "n_rows", "n_columns", "name"),
    [
        (1.0, 1e-6, 500, 13, "ClippedDescent"),
        (4.0, 1e-6, 15_000, 13, "ClippedDescent"),
        (1.0, 1e-6, 1400, 3000, "ClippedDescent"),
        (1.0, 0.0, 1400, 13, "ClippedDescent"),
        (1.0, 0.0, 20_000, 3, "AdaSSP"),
        (1e6, 1e-6, 1000, 13, "AdaSSP"),
        (1e10, 0.0, 1000, 13, "AdaSSP"),
    ],
)
def test_the_choice_follows_from_public_quantities(epsilon, delta, n_rows, n_columns, name):
    assert chosen(epsilon, delta, n_rows, n_columns) == name


def one_hot(n, blocks, bins, seed):
    """Return rows of one-hot blocks, whose sums are all equal, and targets in [0, 1]."""
    rng = np.random.default_rng(seed)
    values = rng.integers(bins, size=(n, blocks))
    X = np.zeros((n, blocks * bins))
    for block in range(blocks):
        X[np.arange(n), block * bins + values[:, block]] = 1.0
    return X, np.clip(values[:, 0] / bins + 0.1 * rng.normal(size=n), 0.0, 1.0)


@pytest.mark.parametrize(("mechanism", "least"), [("auto", -0.05), ("sufficient_statistics", -0.6)])
def test_binned_columns_do_not_blow_weights_up(mechanism, least):
    """Their Gram matrix is singular. Mean R² of ten fits.

    That of statistics is about -.2, with a standard deviation of .1; with eigenvalues raised to
    the noise of one entry only it is below -1.5, and predictions that are not clipped have -25.
    """
    X, y = one_hot(1500, 10, 20, 0)
    params = {"data_norm": 10**0.5, "target_bounds": (0, 1), "mechanism": mechanism}
    scores = [
        DPLinearRegression(0.1, random_state=seed, **params).fit(X, y).score(X, y)
        for seed in range(10)
    ]
    assert np.mean(scores) > least


@pytest.mark.parametrize("epsilon", [0.05, 0.1])
def test_fits_without_information_end_near_the_constant(epsilon):
    """Targets that lie off the middle of their range, and nothing to learn. Mean R² of ten fits.

    It is about -.15 and -.08, with a standard deviation of .05 and .01. With the penalty of usual
    noise it is below -1.5; with too few steps for the intercept below -.5 at the smaller epsilon.
    """
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (1000, 100)), rng.beta(2, 5, 1000)
    params = {"data_norm": 10.0, "target_bounds": (0, 1), "epsilon": epsilon}
    scores = [DPRidge(random_state=seed, **params).fit(X, y).score(X, y) for seed in range(10)]
    assert np.mean(scores) > -0.4


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_weights_that_were_fitted_to_chance_go_back_to_the_center(delta):
    """Mean R² of ten fits on other rows: about -.005, unchecked -.1."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (3000, 40)), rng.beta(2, 5, 3000)
    params = {"data_norm": 40**0.5, "target_bounds": (0, 1), "epsilon": 5.0, "delta": delta}
    scores = [
        DPRidge(random_state=seed, **params).fit(X[:600], y[:600]).score(X[600:], y[600:])
        for seed in range(10)
    ]
    assert np.mean(scores) > -0.04


@pytest.mark.thorough
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


@pytest.mark.parametrize("delta", [0.0, 1e-18])
def test_noise_that_can_be_drawn_in_the_planned_unit_can_be_in_every_unit(delta):
    """The norm that is the unit is found after the charge: nothing may be refused then."""
    model = DPRidge(data_norm="auto", mechanism="gradient", target_bounds=(0, 1))
    shape = TableShape(n_rows=400, n_columns=3)
    refused, epsilon = 1e-13, 1e-10
    for _ in range(20):
        middle = np.sqrt(refused * epsilon)
        try:
            plan, epsilon = model.plan_fit(shape, meet(middle, delta)), middle
        except ValueError:
            refused = middle
    for eighths in range(8, 16):
        weights = plan.mechanism.weights
        plan_run(weights.problem, weights.settings, eighths / 8.0)


# What is kept of weights, by what they explain.


CHECKED = {
    "objective": partial(DPLogisticRegression, mechanism="objective"),
    "gradient": partial(DPLogisticRegression, mechanism="gradient"),
    "output": partial(DPLinearSVC, mechanism="output"),
}


EVERY = CHECKED | {
    "hinge steps": partial(DPLinearSVC, mechanism="gradient"),
    "steps": DPSGDClassifier,
    "squared hinge steps": partial(DPSGDClassifier, loss="squared_hinge"),
}


@pytest.fixture
def seen(monkeypatch):
    """What is kept of weights, fit by fit."""
    kept, found = ShrinkageRule.shrinkage_factor, []

    def told(self, *args):
        found.append(kept(self, *args))
        return found[-1]

    monkeypatch.setattr(ShrinkageRule, "shrinkage_factor", told)
    return found


def nothing_to_learn(n=400, d=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + 2000, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.choice(3, n + 2000, p=(0.3, 0.2, 0.5))
    return X[:n], y[:n], X[n:], y[n:]


@pytest.mark.thorough
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("name", EVERY)
def test_weights_that_explain_nothing_are_as_good_as_the_class_of_most_rows(name, delta, seen):
    """The mean accuracy of six fits; unchecked it is .04 to .10 below that of the class."""
    X, y, X_test, y_test = nothing_to_learn()
    scores = []
    for seed in range(6):
        accountant = PrivacyAccountant(6.0, delta)
        model = EVERY[name](6.0, delta=delta, accountant=accountant, random_state=seed)
        scores.append(model.fit(X, y).score(X_test, y_test))
    assert np.mean(scores) > np.mean(y_test == 2) - 0.01
    # Some are kept, so that scores still rank rows.
    assert len(seen) == 6 and min(seen) >= 0.1


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", EVERY)
def test_weights_that_explain_much_stay(name, n_classes, seen):
    X = np.random.default_rng(0).normal(size=(1500, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = X[:, :n_classes].argmax(axis=1)
    EVERY[name](4.0, delta=1e-5, random_state=0).fit(X, y)
    assert seen == [1.0]


# One-run audits, and an interrupt midway.


# What delta adds to the audit's level must be less than the level.
AUDIT_DELTA = 1e-10


def draw_table(n=1000, d=5, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    scores = X @ rng.normal(size=(d, n_classes)) * 4 + rng.normal(size=(n, n_classes))
    return X, scores.argmax(axis=1)


def weights_of(model):
    return np.column_stack([model.coef_, model.intercept_])


@pytest.mark.parametrize("sampling", ["full", "poisson"])
def test_interrupt_midway(sampling, monkeypatch):
    X, y = draw_table(200)
    accountant = PrivacyAccountant(10.0, 0.1)
    model = DPSGDClassifier(1.0, sampling=sampling, accountant=accountant).fit(X, y)
    assert len(accountant.charges) == 1

    def interrupt(taken):
        if taken == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(
        "skdp.linear_model._clipped_descent.progress_callback", lambda *of: interrupt
    )
    before = weights_of(model)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, y)
    # What was released stays; the run that was interrupted is charged.
    np.testing.assert_array_equal(weights_of(model), before)
    assert len(accountant.charges) == 2 and accountant.epsilon_spent == 2.0
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]
    assert len(accountant.charges) == 3 and accountant.epsilon_spent == 3.0
    assert accountant.verify()


REGIMES = [
    {"sampling": "full", "max_iter": 20},
    {"sampling": "poisson", "batch_size": 100, "max_iter": 10},
    {"sampling": "without_replacement", "batch_size": 400, "max_iter": 2, "delta": 0.0},
]


def one_run_audit(settings, epsilon=2.0):
    """Audit one run with canaries, each with a column of its own, in or out by a coin."""
    X, y = draw_table(400)
    model = DPSGDClassifier(epsilon, classes=[0, 1], fit_intercept=False, alpha=0.0)
    model.set_params(**{"delta": AUDIT_DELTA} | settings)
    return audit_epsilon(
        model, X, y, method="one_run", n_canaries=400, confidence=1 - 1e-6, random_state=0
    )


@pytest.mark.parametrize("settings", REGIMES, ids=str)
def test_one_run_audit_stays_below_the_claim(settings):
    # The bound exceeds the claim with probability 1e-6 at most.
    assert one_run_audit(settings).lower_bound <= 2.0


@pytest.mark.parametrize("settings", REGIMES, ids=str)
def test_one_run_audit_finds_a_lack_of_noise(settings, monkeypatch):
    def careless(*arguments):
        plan = plan_sgd(*arguments)
        noise = dataclasses.replace(plan.noise, scale=plan.noise.scale / 1000)
        return dataclasses.replace(plan, noise=noise)

    monkeypatch.setattr(_clipped_descent, "plan_sgd", careless)
    with pytest.warns(PrivacyViolationWarning):
        assert one_run_audit(settings).violation
