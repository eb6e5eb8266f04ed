"""Releases beside the weights: Hessians for standard errors, counts for class weights."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import helmert
from scipy.sparse import csr_matrix
from scipy.special import expit, softmax
from scipy.stats import binom
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.utils.class_weight import compute_class_weight

from skdp import (
    DPAdditiveClassifier,
    DPDecisionTreeClassifier,
    DPLinearSVC,
    DPLogisticRegression,
    DPRandomForestClassifier,
    DPSGDClassifier,
    PrivacyAccountant,
)
from skdp.accounting import Guarantee, Neighbors, gaussian_noise_multiplier, get_epsilon
from skdp.base import TableShape
from skdp.linear_model import _balanced, _standard_errors
from skdp.linear_model._balanced import BalancedWeights, ClassCounts, plan_balanced
from skdp.linear_model._standard_errors import plan_hessian, split_guarantee
from skdp.mechanisms import LaplaceMechanism
from skdp.noise import RandomSource
from tests._attacks import epsilon_lower_bound
from tests._guarantees import meet, of_rows, plan_weights
from tests._private import (
    BinaryLogisticLoss,
    BinaryTask,
    BoundedRows,
    ClassWeightedLoss,
    LinearObjective,
    MultinomialLogisticLoss,
    MultinomialTask,
    minimize,
    pack_symmetric,
    read_persons,
    summed_hessian,
)

LOSSES = {
    "binary": BinaryLogisticLoss(),
    "softmax": MultinomialLogisticLoss(3),
    "weighted": ClassWeightedLoss(MultinomialLogisticLoss(3), (2.0, 1.0, 0.5)),
}


def make_rows(n, d, seed=0, sparse=False, norm=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X *= norm * rng.uniform(0.3, 1.0, size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    return csr_matrix(X) if sparse else X


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_the_hessian_is_the_derivative_of_the_gradient(name, sparse):
    loss, rng = LOSSES[name], np.random.default_rng(0)
    X, y = make_rows(200, 4, sparse=sparse), rng.integers(3 if name != "binary" else 2, size=200)
    rows = BoundedRows(X, 0.9, 0.3)
    weights = rng.normal(size=(*loss.weights_shape, 5))

    def gradient(weights):
        block = rows[slice(0, 200)]
        return block.weighted_sum(loss.residual(block.scores(weights), y))

    columns = []
    for unit in np.eye(weights.size).reshape(-1, *weights.shape) * 1e-5:
        columns.append((gradient(weights + unit) - gradient(weights - unit)).ravel() / 2e-5)
    expected = np.array(columns)
    if name != "binary":
        contrasts = np.kron(helmert(3), np.eye(5))
        expected = contrasts @ expected @ contrasts.T
    found = summed_hessian(loss, rows, y, weights)
    np.testing.assert_allclose(pack_symmetric(found), pack_symmetric(expected), atol=1e-5)


def test_both_releases_together_cost_what_is_charged_at_any_guarantee():
    """Shares of mu may have no epsilon at a large delta, and last digits must not matter."""
    for epsilon in np.geomspace(1e-4, 1e4, 17):
        for delta in (1e-12, 1e-6, 1e-2, 0.5):
            weights, hessian = split_guarantee("gradient", meet(epsilon, delta))
            plan = plan_hessian(of_rows(LOSSES["binary"], 100, 3, 1.0), hessian)
            multipliers = (
                gaussian_noise_multiplier(weights.epsilon, weights.delta),
                plan.mechanism.event.noise_multiplier,
            )
            together = math.hypot(*(1.0 / z for z in multipliers))
            mu = 1.0 / gaussian_noise_multiplier(epsilon, delta)
            assert mu * (1.0 - 1e-6) < together <= mu


def moved(name, tables, relation, weights):
    """Return how far neighbors' Hessians are apart, over the stated sensitivity."""
    loss, norm = LOSSES[name], 2.0
    vectors = []
    for X, y in tables:
        hessian = summed_hessian(loss, BoundedRows(X, norm, 0.0), y, weights)
        vectors.append(pack_symmetric(hessian))
    share = split_guarantee("output", meet(1.0, 1e-5, relation))[1]
    plan = plan_hessian(of_rows(loss, len(tables[0][1]), X.shape[1], norm), share)
    return np.linalg.norm(vectors[0] - vectors[1]) / plan.mechanism.sensitivity


def worst_case(name, relation):
    """Return two tables that reach the bound: two classes are as likely, rows are orthogonal."""
    X = np.vstack([make_rows(20, 3), 5.0 * np.eye(3)[:2]])
    y = np.zeros(len(X), dtype=int)
    kept = slice(0, -1) if relation == "add_remove" else np.r_[0:20, 21]
    other = X[:-2] if relation == "add_remove" else X[kept]
    one = X[:-1]
    weights = np.zeros(3)
    if name != "binary":
        weights = np.zeros((3, 3))
        weights[2] = -60.0
    return ((one, y[: len(one)]), (other, y[: len(other)])), weights


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", LOSSES)
def test_neighbors_hessians_reach_the_sensitivity_and_no_more(name, relation):
    tables, weights = worst_case(name, relation)
    assert 0.98 < moved(name, tables, relation, weights) <= 1.0


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", LOSSES)
def test_random_neighbors_stay_within_the_sensitivity(name, relation):
    rng = np.random.default_rng(1)
    for _ in range(50):
        X, y = make_rows(12, 3, seed=rng.integers(2**31), norm=4.0), rng.integers(2, size=12)
        other = np.vstack([X[:-1], rng.normal(size=(1, 3)) * 3.0])
        tables = (X, y), ((X[:-1], y[:-1]) if relation == "add_remove" else (other, y))
        weights = rng.normal(size=(*LOSSES[name].weights_shape, 3)) * rng.choice([0.1, 1.0, 10.0])
        assert moved(name, tables, relation, weights) <= 1.0


def test_replacement_priced_as_removal_is_caught(monkeypatch):
    monkeypatch.setitem(_standard_errors.FROBENIUS_SENSITIVITY, "replace_one", 1.0)
    tables, weights = worst_case("binary", "replace_one")
    assert moved("binary", tables, "replace_one", weights) > 1.0


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("mechanism", ["output", "objective", "gradient"])
def test_both_releases_cost_the_budget(mechanism, epsilon, delta):
    X, y = make_rows(300, 3), np.arange(300) % 2
    for relation in ("add_remove", "replace_one"):
        accountant = PrivacyAccountant(epsilon, delta, relation=relation)
        model = DPLogisticRegression(
            epsilon,
            delta=delta,
            mechanism=mechanism,
            standard_errors="total",
            accountant=accountant,
        ).fit(X, y)
        (spend,) = accountant.charges
        assert get_epsilon(spend.event, delta, relation=relation) <= epsilon * (1 + 1e-9)
        assert (spend.epsilon, spend.delta) == (epsilon, delta)
        assert "Hessian" in model.privacy_.mechanism
        assert accountant.epsilon_remaining == 0.0
        assert (model.coef_standard_error_ > 0.0).all()


def test_the_weights_get_the_rest_of_the_budget():
    X, y = make_rows(300, 3), np.arange(300) % 2
    options = {"mechanism": "output", "delta": 1e-5, "C": 0.1}
    alone = DPLogisticRegression(**options).fit(X, y).privacy_.noise_scale
    total = DPLogisticRegression(standard_errors="total", **options).fit(X, y)
    assert total.privacy_.noise_scale == pytest.approx(alone / math.sqrt(0.875), rel=1e-6)


def test_expected_loss_counts_the_share_of_the_hessian():
    one, other = (
        DPLogisticRegression(standard_errors=kind, mechanism="objective").expected_excess_loss(
            1000, 5
        )
        for kind in ("noise", "total")
    )
    assert one < other < 1.3 * one


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("mechanism", ["output", "objective", "gradient"])
def test_little_noise_leaves_the_sampling_error_of_the_textbook(mechanism, n_classes):
    """It is that of the inverse observed information, where C is large."""
    X, rng = make_rows(2000, 3), np.random.default_rng(0)
    y = (
        softmax(X @ rng.normal(size=(3, n_classes)), axis=1).cumsum(1) < rng.random((2000, 1))
    ).sum(1)
    C = 10.0
    model = DPLogisticRegression(
        1e10, mechanism=mechanism, C=C, fit_intercept=False, standard_errors="total"
    ).fit(X, y)
    if n_classes == 2:
        p = expit(X @ model.coef_[0])
        F = (X * (p * (1 - p))[:, None]).T @ X
    else:
        p = softmax(X @ model.coef_.T, axis=1)
        F = sum(
            np.kron(np.diag(q) - np.outer(q, q), np.outer(x, x)) for q, x in zip(p, X, strict=True)
        )
    inverse = np.linalg.inv(C * F + np.eye(len(F)))
    expected = np.sqrt(np.diag(inverse @ (C * C * F) @ inverse)).reshape(model.coef_.shape)
    np.testing.assert_allclose(model.coef_standard_error_, expected, rtol=1e-3)


@pytest.mark.parametrize("n_steps", [1, 2, 7, 40])
def test_noise_of_descent_is_that_of_its_linear_recursion(n_steps):
    problem = of_rows(LOSSES["binary"], 50, 1, 1.0)
    plan = plan_weights("gradient", problem, 1.0, meet(1.0, 1e-5))
    sgd, update = plan.mechanism, plan.update
    averaged = max(1, n_steps // 2)
    update = replace(update, n_steps=n_steps, n_averaged=averaged)
    plan = replace(plan, sgd=replace(sgd, n_steps=n_steps), update=update)
    curvature, alpha = np.array([0.0, 3.0]), plan.settings.alpha
    responses = []
    for impulse in range(n_steps):
        point = previous = np.zeros(2)
        iterates = []
        for t in range(n_steps):
            gradient = curvature / 50 * point + (t == impulse) + alpha * point
            current = point - update.eta0 * gradient
            point = current + update.momentum * (current - previous)
            previous = current
            iterates.append(current)
        responses.append(np.mean(iterates[-averaged:], axis=0))
    expected = (sgd.noise.deviation / 50) ** 2 * np.sum(np.square(responses), axis=0)
    np.testing.assert_allclose(plan.noise_variance(curvature), expected)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("mechanism", ["output", "objective", "gradient"])
def test_noise_has_the_stated_variance_where_there_is_no_curvature(mechanism, delta):
    rows, y = BoundedRows(np.zeros((20, 400)), 1.0, 0.0), np.zeros(20)
    problem = of_rows(LOSSES["binary"], 20, 400, 1.0)
    plan = plan_weights(mechanism, problem, 1e-3, meet(1.0, delta))
    weights = plan.run(problem.loss, rows, y, RandomSource())
    # As in the tests of the noise's law: false alarms are below 1e-7.
    spread = np.mean(weights**2) / plan.noise_variance(np.zeros(1))[0]
    assert 0.75 < math.sqrt(spread) < 1.3


def coverage(mechanism, delta, epsilon, n_classes, C, n_fits, n=2000):
    """Return how often intervals cover, and the mean squared error over that without privacy.

    The target is the minimizer for the population: every row with every label, by its chance.
    """
    X, rng = make_rows(n, 3), np.random.default_rng(1)
    chances = softmax(X @ (2.0 * rng.normal(size=(3, n_classes))), axis=1)
    peer = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000)
    labels, weight = np.tile(np.arange(n_classes), n), chances.ravel()
    target = peer.fit(np.repeat(X, n_classes, axis=0), labels, sample_weight=weight).coef_.copy()
    model = DPLogisticRegression(
        epsilon,
        delta=delta,
        mechanism=mechanism,
        C=C,
        fit_intercept=False,
        classes=range(n_classes),
        standard_errors="total",
    )
    covered, errors, sampling = 0, [], []
    for _ in range(n_fits):
        y = (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        error = model.fit(X, y).coef_ - target
        covered += abs(error) <= 1.96 * model.coef_standard_error_
        errors.append(error)
        sampling.append(peer.set_params(tol=1e-4).fit(X, y).coef_ - target)
    return covered, np.mean(np.square(errors)) / np.mean(np.square(sampling))


SETTINGS = {
    "output": ("output", 1e-5, 250.0, 2, 3.0),
    "objective": ("objective", 1e-5, 1.0, 2, 3.0),
    "pure": ("objective", 0.0, 0.85, 2, 0.8),
    "gradient": ("gradient", 1e-5, 1.5, 2, 1.0),
    "far gradient": ("gradient", 1e-5, 1.0, 2, 3.0),
    "softmax": ("objective", 1e-5, 16.0, 3, 0.3),
}


def check_coverage(name, n_fits):
    covered, ratio = coverage(*SETTINGS[name], n_fits)
    print(f"{name}: {covered.ravel() / n_fits}, error over that of sampling {ratio:.2f}")
    # Each count is binomial; sums over coefficients are correlated and left alone.
    assert (covered >= binom.ppf(1e-7, n_fits, 0.95)).all()
    return ratio


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["output", "objective", "pure"])
def test_intervals_cover_the_coefficients_of_the_population(name):
    check_coverage(name, 100)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_intervals_cover_in_many_fits(name):
    # Noise and sampling are comparable.
    assert 1.0 < check_coverage(name, 400) < 4.0


@pytest.mark.thorough
def test_noisy_iterates_lengthen_the_weights_by_less_than_the_intervals_allow():
    """By a share of about 0.055; the mean of 200 fits has a standard error of 0.0054."""
    X, loss = make_rows(2000, 3), LOSSES["binary"]
    y = np.random.default_rng(0).random(2000) < expit(X @ [2.0, -6.0, -2.0])
    rows, y = BoundedRows(X, 1.0, 0.0), y.astype(float)
    plan = plan_weights(
        "gradient", of_rows(loss, 2000, 3, 1.0), 3.0, meet(1.0, 1e-5), min_clip_fraction=2.0
    )
    exact = minimize(LinearObjective(loss, rows, y, 3.0), 1e-6)
    along = [plan.run(loss, rows, y, RandomSource(seed)) @ exact for seed in range(200)]
    gram = summed_hessian(loss, rows, y, exact)
    values = np.linalg.eigvalsh(gram)
    assert 0.04 < np.mean(along) / (exact @ exact) - 1.0 < plan.averaging_bias(values, 1.0) < 0.15
    assert plan.averaging_bias(np.zeros(3), 1.0) == 0.0


def test_directions_that_the_hessian_cannot_tell_have_wide_intervals():
    X, y = make_rows(50, 3), np.arange(50) % 2
    model = DPLogisticRegression(
        0.01, delta=0.0, C=4.0, mechanism="output", fit_intercept=False, standard_errors="total"
    ).fit(X, y)
    variance = 0.25 * 4.0 + (2.0 * model.privacy_.noise_scale) ** 2
    np.testing.assert_allclose(model.coef_standard_error_, math.sqrt(variance))


@pytest.mark.parametrize(
    ("params", "shape", "words"),
    [
        ({"standard_errors": "sampling"}, (50, 3), "standard_errors"),
        ({"standard_errors": None}, (50, 3), "standard_errors"),
        ({"standard_errors": "total"}, (5, 5001), "5000"),
        ({"standard_errors": "total", "epsilon": 1e-290, "delta": 0.0}, (50, 3), "epsilon"),
    ],
)
def test_bad_parameters_are_refused_and_not_charged(params, shape, words):
    X, y = np.zeros(shape), np.arange(shape[0]) % 2
    accountant = PrivacyAccountant(10.0, 1e-3)
    with pytest.raises(ValueError, match=words):
        DPLogisticRegression(accountant=accountant, **params).fit(X, y)
    assert accountant.charges == []


# Balanced class weights: what is released, what it costs, and how far a row moves the rest.


RELATIONS = ("add_remove", "replace_one")


# The probability with which a test of noise fails although all is right.
FALSE_ALARM = 1e-6


LINEAR = [
    DPLogisticRegression(),
    DPLogisticRegression(delta=0.0),
    DPLogisticRegression(mechanism="output"),
    DPLogisticRegression(mechanism="output", delta=0.0, C=0.5),
    DPLogisticRegression(mechanism="objective", C=2.0),
    DPLogisticRegression(mechanism="gradient"),
    DPLogisticRegression(mechanism="gradient", C=1.0),
    DPLogisticRegression(mechanism="gradient", delta=0.0),
    DPLogisticRegression(standard_errors="total"),
    DPLogisticRegression(data_norm="auto"),
    DPLogisticRegression(fit_intercept=False),
    DPLinearSVC(),
    DPLinearSVC(mechanism="output"),
    DPSGDClassifier(),
    DPSGDClassifier(loss="hinge", delta=0.0),
    DPSGDClassifier(sampling="poisson", max_grad_norm=0.5, alpha=1e-3),
]


RAW_TABLE = [
    DPAdditiveClassifier(bounds=(-4, 4)),
    DPAdditiveClassifier(bounds=(-4, 4), delta=0.0),
    DPDecisionTreeClassifier(bounds=(-4, 4)),
    DPRandomForestClassifier(bounds=(-4, 4), n_estimators=5),
]


EVERY = [clone(e).set_params(class_weight="balanced") for e in (*LINEAR, *RAW_TABLE)]


FIRST_OF_CLASS = list({type(e): e for e in reversed(EVERY)}.values())


def make_table(n=600, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) / 4.0
    if n_classes == 2:
        y = (X[:, 0] + rng.normal(size=n) / 8.0 > 0.35).astype(int)
    else:
        y = np.digitize(X[:, 0], [0.0, 0.3])
    return X, y


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", FIRST_OF_CLASS, ids=lambda e: type(e).__name__)
def test_without_noise_the_weights_are_those_of_scikit_learn(estimator, n_classes):
    X, y = make_table(200, n_classes=n_classes)
    model = clone(estimator).set_params(epsilon=1e6).fit(X, y)
    expected = compute_class_weight("balanced", classes=np.unique(y), y=y)
    np.testing.assert_allclose(model.class_weight_, expected, rtol=1e-2)


@pytest.mark.parametrize("estimator", FIRST_OF_CLASS, ids=lambda e: type(e).__name__)
def test_one_charge_covers_the_counts_and_they_are_a_stage(estimator):
    X, y = make_table()
    accountant = PrivacyAccountant(1.0, 1e-6)
    model = clone(estimator).set_params(accountant=accountant).fit(X, y)
    assert len(accountant.charges) == 1
    assert accountant.epsilon_spent <= 1.0
    assert any("class counts" in stage.name for stage in model.privacy_.stages)
    assert not any("class_weight" in text for text in model.privacy_.public)
    assert model.class_weight_.shape == (2,)


def test_only_balanced_classes_publish_weights():
    X, y = make_table()
    assert not hasattr(DPLogisticRegression().fit(X, y), "class_weight_")
    assert not hasattr(DPLogisticRegression(class_weight={1: 2.0}).fit(X, y), "class_weight_")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("estimator", EVERY, ids=repr)
def test_a_plan_meets_its_guarantee(estimator, relation):
    shape = TableShape(n_rows=5000, n_columns=4, classes=[0, 1, 2])
    for unit, max_rows in (("row", 1), ("group", 3)):
        neighbors = Neighbors(relation=relation, unit=unit, max_rows=max_rows)
        delta = estimator.delta
        plan = estimator.plan_fit(shape, Guarantee(epsilon=0.7, delta=delta, neighbors=neighbors))
        spent = get_epsilon(plan.event, delta, relation=relation, group_size=max_rows)
        assert spent <= 0.7 * (1.0 + 1e-9)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("estimator", EVERY[: len(LINEAR)], ids=repr)
def test_the_event_is_the_same_for_all_weights(estimator, relation):
    rng = np.random.default_rng(0)
    n_classes = 3 if "total" not in estimator.get_params().values() else 2
    shape = TableShape(n_rows=5000, n_columns=4, classes=list(range(n_classes)))
    guarantee = Guarantee(
        epsilon=0.7, delta=estimator.delta, neighbors=Neighbors(relation=relation)
    )
    fit = estimator.plan_fit(shape, guarantee).mechanism
    planned = fit.planned.mechanism.weights
    for _ in range(5):
        values = np.exp(rng.uniform(np.log(1.0 / n_classes), np.log(100.0), n_classes))
        weights = BalancedWeights(values=tuple(values.tolist()), score_std=rng.uniform(0.2, 2.0))
        plan = fit.make_plan(weights)
        later = plan.mechanism.weights
        assert plan.event == fit.planned.event
        if later.choice != "gradient":
            # The sensitivity is that of the largest weight, and so is the noise. Steps are clipped.
            factor = max(values) / _balanced.TYPICAL_MAX_WEIGHT
            C = 1.0 if later.choice == "objective" else planned.C / later.C
            ratio = later.mechanism.sensitivity / planned.mechanism.sensitivity
            assert ratio * C == pytest.approx(factor, rel=1e-3)


def test_later_stages_of_another_event_do_not_run():
    X, y = make_table()
    shape = TableShape(n_rows=len(X), n_columns=4, classes=[0, 1])
    estimator = DPLogisticRegression(class_weight="balanced")
    guarantee = Guarantee(epsilon=1.0, delta=1e-6)
    fit = estimator.plan_fit(shape, guarantee).mechanism
    other = estimator.plan_fit(shape, Guarantee(epsilon=2.0, delta=1e-6)).mechanism.planned
    broken = replace(fit, make_later_plan=lambda *arguments: other)

    class Table:
        pass

    Table.X, Table.y = X, y
    with pytest.raises(RuntimeError, match="privacy event"):
        broken.run(Table, RandomSource(0))


def counts_plan(n, n_classes, relation, unit="row", epsilon=0.5):
    guarantee = Guarantee(epsilon=epsilon, neighbors=Neighbors(relation=relation, unit=unit))

    def make_plan(guarantee, weights, planned):
        return DPLogisticRegression()._plan_weights(
            TableShape(n_rows=n, n_columns=2, classes=list(range(n_classes))),
            guarantee,
            weights,
            planned,
        )

    return plan_balanced(make_plan, n, n_classes, guarantee).mechanism.counts


class Exact:
    """A mechanism without noise, which records what it receives."""

    def __init__(self, mechanism):
        self.mechanism = mechanism
        self.values = None

    def check_size(self, size):
        pass

    def release(self, values, *, random_state=None):
        self.values = np.array(values)
        return self.values


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_neighbor_moves_the_counts_by_more_than_the_sensitivity(n_classes, relation, unit):
    rng = np.random.default_rng(0)
    n_persons = 12
    plan = counts_plan(n_persons, n_classes, relation, unit)
    exact = Exact(plan.mechanism)
    plan = replace(plan, mechanism=exact)
    largest = 0.0

    def counted(codes, persons):
        plan.run(codes, None, persons)
        return exact.values

    for _ in range(200):
        # A person of several rows, and one that has other rows instead, or none.
        owners = np.repeat(np.arange(n_persons), rng.integers(1, 4, n_persons))
        if unit == "row":
            owners = np.arange(n_persons)
        codes = rng.integers(0, n_classes, len(owners))
        codes[owners == 0] = 0
        others = np.array(codes)
        others[owners == 0] = n_classes - 1
        kept = owners != 0 if relation == "add_remove" else np.ones(len(owners), dtype=bool)
        values = []
        for labels, rows in ((codes, slice(None)), (others, kept)):
            persons = None
            if unit == "person":
                persons = read_persons(owners[rows], len(owners[rows]))
            values.append(counted(labels[rows], persons))
        largest = max(largest, np.abs(values[0] - values[1]).sum())
    assert largest <= exact.mechanism.sensitivity * (1.0 + 1e-12)
    # The bound is attained, except where the class that is not counted of two is removed.
    if relation == "replace_one" or n_classes > 2:
        assert largest == pytest.approx(exact.mechanism.sensitivity)


@pytest.mark.parametrize("make_task", [BinaryTask, MultinomialTask])
def test_the_clip_bounds_every_rows_weighted_residual(make_task):
    rng = np.random.default_rng(0)
    n_classes = 2 if make_task is BinaryTask else 4
    for is_pure in (False, True):
        for _ in range(30):
            values = np.exp(rng.uniform(np.log(0.25), np.log(100.0), n_classes))
            task = make_task(weights=(1.0,) * n_classes, is_balanced=True)
            task = task.with_balanced_weights(tuple(values.tolist()), is_pure)
            scores = 9.0 * rng.normal(size=(200, task.n_outputs))
            residuals = task.residuals(scores, rng.integers(0, n_classes, 200))
            assert np.linalg.norm(residuals, axis=1).max() <= task.clip * (1.0 + 1e-12)
            assert np.abs(residuals).sum(axis=1).max() <= task.clip_l1 * (1.0 + 1e-12)
            assert not is_pure or task.max_weight == 1.0


def test_weights_are_bounded_by_public_numbers():
    for n, n_classes in ((50, 2), (10_000, 2), (10_000, 5)):
        plan = counts_plan(n, n_classes, "add_remove")
        for counts in ([-1e6] * n_classes, [0.0] * n_classes, [1e9] * n_classes):
            weights = plan.weights(np.array(counts)).values
            assert max(weights) <= 100.0
            assert min(weights) >= 1.0 / n_classes
        noise = plan.mechanism.deviation(n_classes)
        smallest = plan.weights(np.zeros(n_classes)).values[0]
        floor = min(max(noise, n / (100.0 * n_classes)), n)
        assert smallest == pytest.approx(n / (n_classes * floor))


def certified_epsilon(release, n_runs=4000):
    """Return the epsilon that an attack on the weights certifies for a label that changes."""
    n = 200
    codes = np.zeros(n, dtype=np.int64)
    codes[:20] = 1
    other = np.array(codes)
    other[0] = 0
    plan = counts_plan(n, 2, "replace_one", epsilon=20.0)
    source = RandomSource(0)
    samples = []
    for labels in (codes, other):
        runs = [plan.weights(release(plan, labels, source)).values[1] for _ in range(n_runs)]
        samples.append(np.array(runs))
    cut = np.median(samples[0])
    hits = int(np.sum(samples[0] <= cut))
    false_hits = int(np.sum(samples[1] <= cut))
    confidence = 1.0 - FALSE_ALARM
    bound = epsilon_lower_bound(hits, n_runs, false_hits, n_runs, confidence=confidence)
    return bound, plan.mechanism.epsilon


@pytest.mark.thorough
def test_an_attack_on_the_weights_stays_below_the_epsilon_of_the_counts():
    bound, epsilon = certified_epsilon(ClassCounts.run)
    assert bound <= epsilon


@pytest.mark.thorough
def test_the_attack_finds_counts_with_a_tenth_of_the_noise():
    def release(plan, codes, source):
        mechanism = LaplaceMechanism(10.0 * plan.mechanism.epsilon, plan.mechanism.sensitivity)
        return replace(plan, mechanism=mechanism).run(codes, source)

    bound, epsilon = certified_epsilon(release)
    assert bound > epsilon


@pytest.mark.thorough
def test_persons_count_once():
    rng = np.random.default_rng(0)
    n_persons = 500
    owners = np.repeat(np.arange(n_persons), 1 + 9 * (np.arange(n_persons) < 50))
    y = (owners < 50).astype(int)
    X = rng.normal(size=(len(y), 3)) / 4.0
    accountant = PrivacyAccountant(1e8, 0.5, unit="person")
    for estimator in (DPLogisticRegression(), DPAdditiveClassifier(bounds=(-1, 1))):
        model = estimator.set_params(
            class_weight="balanced", epsilon=1e6, accountant=accountant
        ).fit(X, y, groups=owners)
        # A tenth of the persons have more than half of the rows.
        np.testing.assert_allclose(model.class_weight_, [500 / 900, 5.0], rtol=1e-2)


def test_there_is_no_partial_fit_with_balanced_weights():
    X, y = make_table()
    accountant = PrivacyAccountant(1.0, 1e-6)
    model = DPSGDClassifier(class_weight="balanced", accountant=accountant)
    with pytest.raises(AttributeError, match="partial_fit") as caught:
        model.partial_fit(X, y, classes=[0, 1])
    assert "dict of public weights" in str(caught.value.__cause__)
    assert accountant.charges == []
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("estimator", EVERY[-4:], ids=lambda e: type(e).__name__)
def test_an_unknown_shape_has_a_plan(estimator):
    shape = TableShape(n_rows=None, n_columns=None, classes=[0, 1])
    plan = estimator.plan_fit(shape, Guarantee(epsilon=1.0, delta=1e-6))
    assert get_epsilon(plan.event, 1e-6) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["logistic", "additive"])
def test_a_rare_class_is_found(name):
    rng = np.random.default_rng(0)
    n = 50_000
    X = rng.normal(size=(n, 4)) / 6.0
    y = (X[:, 0] + X[:, 1] / 2.0 + rng.normal(size=n) / 12.0 > 0.45).astype(int)
    assert 0.005 < y.mean() < 0.02
    estimator = DPLogisticRegression(class_weight="balanced")
    if name == "additive":
        estimator = DPAdditiveClassifier(bounds=(-1, 1), class_weight="balanced")
    model = estimator.fit(X, y)
    assert balanced_accuracy_score(y, model.predict(X)) > 0.85
