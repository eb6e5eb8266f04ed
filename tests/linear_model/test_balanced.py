"""Balanced class weights: what is released, what it costs, and how far a row moves the rest."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
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
from skdp.accounting import Guarantee, Neighbors, get_epsilon
from skdp.base import TableShape
from skdp.linear_model import _balanced
from skdp.linear_model._balanced import BalancedWeights, ClassCounts, plan_balanced
from skdp.mechanisms import LaplaceMechanism
from skdp.noise import RandomSource
from tests._attacks import epsilon_lower_bound
from tests._private import BinaryTask, MultinomialTask, read_persons

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
