"""The penalty of noisy gradients where one of two classes is rare."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from skdp import DPLinearSVC, DPLogisticRegression, DPSGDClassifier
from skdp.base import TableShape
from tests._guarantees import meet

MAKERS = {
    "logistic": lambda **params: DPLogisticRegression(mechanism="gradient", **params),
    "hinge": lambda **params: DPLinearSVC(mechanism="gradient", **params),
    "sgd": lambda **params: DPSGDClassifier(**params),
    "sgd, hinge": lambda **params: DPSGDClassifier(loss="hinge", **params),
}


def solver_of(name, n=20_000, d=40, **params):
    shape = TableShape(n_rows=n, n_columns=d, classes=np.arange(2))
    fit = MAKERS[name](**params).plan_fit(shape, meet(1.0, 1e-6)).mechanism
    assert fit.adapts_penalty
    return fit.weights


@pytest.mark.parametrize("name", MAKERS)
def test_the_penalty_grows_as_a_class_becomes_rare(name):
    solver = solver_of(name)
    penalties = [solver.for_frequency(p).settings.alpha for p in (0.5, 0.1, 0.03, 0.01, 1e-9)]
    assert penalties[0] == solver.settings.alpha
    assert np.all(np.diff(penalties[:4]) > 0.0)
    assert np.isfinite(penalties[-1])
    # Either class can be the rare one.
    assert solver.for_frequency(0.97).settings.alpha == pytest.approx(penalties[2], rel=1e-9)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("frequency", [0.5, 0.01, 0.0, 1.0])
def test_the_charged_run_is_unchanged(name, frequency):
    """The frequency is released after the charge: it has no effect on noise, steps and event."""
    solver = solver_of(name)
    adapted = solver.for_frequency(frequency)
    assert adapted.mechanism == solver.mechanism
    assert adapted.mechanism.event == solver.mechanism.event
    assert adapted.update.n_steps + adapted.shrinkage.n_steps == adapted.mechanism.n_steps


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("name", ["logistic", "hinge"])
def test_the_published_strength_is_the_one_that_was_used(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 10)) / 5.0
    strengths = {}
    for fraction in (0.5, 0.02):
        y = (np.arange(5000) < 5000 * fraction).astype(int)
        strengths[fraction] = MAKERS[name](epsilon=4.0, random_state=0).fit(X, y).C_
    assert strengths[0.02] < strengths[0.5]


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("name", ["logistic", "hinge", "sgd"])
def test_rare_rows_are_ranked(name):
    """One row in a hundred is positive, and two of forty columns are informative."""
    rng = np.random.default_rng(0)
    n, d = 30_000, 40
    X = rng.normal(size=(2 * n, d)) / np.sqrt(d)
    scores = np.sqrt(d) * (X[:, 0] + X[:, 1])
    y = (scores + rng.logistic(size=2 * n) > 5.5).astype(int)
    assert 0.005 < y.mean() < 0.02
    model = MAKERS[name](random_state=0).fit(X[:n], y[:n])
    assert roc_auc_score(y[n:], model.decision_function(X[n:])) > 0.7
