"""Classifiers keep of their weights what explains more than chance; what a row moves that by."""

from functools import partial

import numpy as np
import pytest

from skdp import DPLinearSVC, DPLogisticRegression, DPSGDClassifier
from skdp.base import TableShape
from skdp.mechanisms import LaplaceMechanism
from skdp.noise import RandomSource
from tests._guarantees import meet
from tests._persons import persons_of

N, D = 60, 3
CHECKED = {
    "objective": partial(DPLogisticRegression, mechanism="objective"),
    "gradient": partial(DPLogisticRegression, mechanism="gradient"),
    "output": partial(DPLinearSVC, mechanism="output"),
}


def plan_of(make, n_classes, relation="add_remove", delta=1e-6, unit="row"):
    shape = TableShape(n_rows=N, n_columns=D, classes=np.arange(n_classes))
    model = make(classes=np.arange(n_classes))
    return model.plan_fit(shape, meet(1.0, delta, relation, unit)).mechanism


def gains_of(plan, X, y, start, weights, monkeypatch, groups=None):
    """The values of a check before its noise."""
    monkeypatch.setattr(LaplaceMechanism, "release", lambda self, v, **_: values.append(v) or v)
    persons = None if groups is None else persons_of(groups)
    values, rows = [], plan.rows.run(X, RandomSource(0), persons)
    plan._shrinkage_factor(rows, y, start, weights, RandomSource(0))
    return values[0]


def table_and_weights(plan, n_classes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, D)), rng.integers(n_classes, size=N)
    start, weights = rng.normal(size=(2, *plan.problem.loss.weights_shape, D + 1))
    return X, y, start, weights


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", CHECKED)
def test_brute_force_sensitivity(name, n_classes, relation, monkeypatch):
    """A row of any length, direction and label in the place of another, or of none."""
    plan = plan_of(CHECKED[name], n_classes, relation)
    X, y, start, weights = table_and_weights(plan, n_classes)
    moved, found = np.atleast_2d(weights - start)[:, :D], []
    for row in (*moved, *-moved, np.zeros(D)):
        for scale in (1e-3, 1.0, 1e3, 1e200):
            for label in range(n_classes):
                X[17], y[17] = scale * row, label
                found.append(gains_of(plan, X, y, start, weights, monkeypatch))
    if relation == "add_remove":
        others = [np.delete(X, 17, axis=0), np.delete(y, 17)]
        others = [gains_of(plan, *others, start, weights, monkeypatch)]
    else:
        others = found
    apart = max(np.abs(one - other).sum() for one in found for other in others)
    assert (
        0.5 * plan.rows.shrinkage_mechanism.sensitivity
        < apart
        <= plan.rows.shrinkage_mechanism.sensitivity
    )


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", CHECKED)
def test_a_person_moves_it_by_what_a_row_does(name, n_classes, monkeypatch):
    """Twenty rows of one person; counted one each they move it by more than is priced."""
    plan, alone = plan_of(CHECKED[name], n_classes, unit="person"), N - 20
    X, y, start, weights = table_and_weights(plan, n_classes)
    check = partial(gains_of, plan, start=start, weights=weights, monkeypatch=monkeypatch)
    without, ids = check(X[:alone], y[:alone]), np.minimum(np.arange(N), alone)
    X[alone:], moved = 1e3 * np.atleast_2d(weights - start)[0, :D], []
    for label in range(n_classes):
        y[alone:] = label
        moved += [[np.abs(check(X, y, groups=g) - without).sum() for g in (ids, None)]]
    shared, counted = np.max(moved, axis=0)
    assert shared <= plan.rows.shrinkage_mechanism.sensitivity < counted


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("name", CHECKED)
def test_it_is_paid_from_the_same_epsilon(name, delta, relation):
    plan = plan_of(CHECKED[name], 3, relation, delta)
    paid = (
        plan.rows.baseline.mechanism.epsilon,
        plan.rows.shrinkage_mechanism.epsilon,
        plan.rows.remaining.epsilon,
    )
    assert sum(paid) <= 1.0 and sum(paid) == pytest.approx(1.0)
    assert plan.rows.shrinkage_mechanism.epsilon == pytest.approx(0.05 * (1.0 - paid[0]))
    assert plan.weights.mechanism.epsilon == pytest.approx(paid[2])


def test_what_is_not_checked():
    """Weights without a center, those whose noise has a public law, and those of one column."""
    given = partial(DPLogisticRegression, C=1.0), partial(DPLinearSVC, C=1.0)
    public = {"mechanism": "output"}, {"standard_errors": "total"}, {"fit_intercept": False}
    for make in (*given, *(partial(DPLogisticRegression, **one) for one in public)):
        plan = plan_of(make, 2)
        assert plan.rows.shrinkage_mechanism is None
        assert not hasattr(plan.weights, "check") or plan.weights.shrinkage.n_steps == 0
    shape = TableShape(n_rows=N, n_columns=1, classes=[0, 1])
    assert DPLinearSVC().plan_fit(shape, meet(1.0)).mechanism.rows.shrinkage_mechanism is None
    model, shape = DPSGDClassifier(classes=[0, 1]), TableShape(n_rows=1000, n_columns=D)
    assert model.plan_fit(shape, meet(1.0, 1e-6)).mechanism.weights.shrinkage.n_steps > 0
    later = model._plan_call(shape, meet(1.0, 1e-6), with_baseline=False).mechanism
    assert later.weights.shrinkage.n_steps == 0
