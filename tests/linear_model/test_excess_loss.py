"""The expected excess loss: that of the plan which "auto" takes, and beside real fits."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from skdp import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
    PrivacyAccountant,
)

N, D, EPSILON = 1000, 4, 0.2


def rows():
    return np.random.default_rng(0).uniform(-0.5, 0.5, (N, D))


def classes():
    scores = rows() @ [6.0, -3.0, 1.0, 0.0]
    return (np.random.default_rng(1).random(N) < expit(scores)).astype(int)


def numbers():
    return np.clip(rows() @ [6.0, -3.0, 1.0, 0.0] + np.random.default_rng(2).normal(size=N), -8, 8)


def counts():
    return np.minimum(np.random.default_rng(3).poisson(np.exp(rows() @ [2.0, -1.0, 0.5, 0.0])), 20)


def log_loss(model, y):
    return -np.mean(np.log(model.predict_proba(rows())[np.arange(N), y]))


def half_squared(model, y):
    return 0.5 * np.mean((model.predict(rows()) - y) ** 2)


def half_deviance(model, y):
    mean = model.predict(rows())
    return np.mean(mean - y * np.log(mean))


CLASSIFIERS = [DPLogisticRegression(), DPSGDClassifier(), DPAdditiveClassifier(bounds=(-0.5, 0.5))]
BOUNDS = {"target_bounds": (-8, 8)}
REGRESSORS = [
    DPRidge(**BOUNDS),
    DPLinearRegression(**BOUNDS),
    DPSGDRegressor(**BOUNDS),
    DPAdditiveRegressor(**BOUNDS, bounds=(-0.5, 0.5)),
]
KINDS = [
    *((model, classes, log_loss, LogisticRegression(C=1e4)) for model in CLASSIFIERS),
    *((model, numbers, half_squared, Ridge(1e-3)) for model in REGRESSORS),
    (DPPoissonRegressor(target_bounds=(0, 20)), counts, half_deviance, PoissonRegressor(alpha=0)),
]


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize(("delta", "relation"), [(0.0, "replace_one"), (1e-5, "add_remove")])
@pytest.mark.parametrize(("model", "targets", "loss", "best"), KINDS)
def test_fits_lose_what_is_expected_within_a_factor(model, targets, loss, best, delta, relation):
    """The mean of 3 fits is at most 1.5 times the expected loss and at least a 1000th of it.

    Seen were .006 to .58. The first needs 2.6 times the usual sum of 15 squared normal values, at
    least, in one of 16 cells: the false alarm is below 1e-4.
    """
    y, X = targets(), rows()
    accountant = PrivacyAccountant(100.0, 1e-3, relation=relation)
    given = {"epsilon": EPSILON, "delta": delta, "accountant": accountant}
    model = model.__class__(**model.get_params() | given)
    fits = [loss(model.set_params(random_state=seed).fit(X, y), y) for seed in range(3)]
    measured = np.mean(fits) - loss(best.fit(X, y), y)
    assert 1e-3 < measured / model.expected_excess_loss(N, D) < 1.5


@pytest.mark.parametrize("model", REGRESSORS, ids=str)
def test_losses_are_in_the_units_of_targets(model):
    if isinstance(model, DPRidge):
        model = model.__class__(**model.get_params() | {"alpha": 0.0})
    wider = model.__class__(**model.get_params() | {"target_bounds": (100, 148)})
    expected = 9.0 * model.expected_excess_loss(N, D)
    assert wider.expected_excess_loss(N, D) == pytest.approx(expected, rel=1e-9)


def test_early_stopping_is_expected_to_cost():
    losses = [
        DPSGDClassifier(penalty=penalty, max_iter=steps).expected_excess_loss(10_000, 5)
        for penalty, steps in ((None, 5), (None, 50), ("l2", "auto"))
    ]
    assert np.isfinite(losses).all() and losses[0] > losses[1] and losses[0] > losses[2]


def test_columns_may_be_named_and_classes_declared():
    named = DPAdditiveClassifier(bounds={"age": (17, 90)}, categories={"sex": ["f", "m"]})
    with pytest.raises(ValueError, match="no column .sex."):
        named.expected_excess_loss(1000, 3)
    few = named.expected_excess_loss(1000, ["age", "sex", "income"])
    assert 0.0 < few < DPAdditiveClassifier(bounds=(0, 1)).expected_excess_loss(1000, 3)
    declared = DPSGDClassifier(classes=["a", "b", "c"], class_weight={"a": 5.0})
    assert declared.expected_excess_loss(1000, 3) > 5.0 * DPSGDClassifier().expected_excess_loss(
        1000, 3, n_classes=2
    )
    assert DPSGDClassifier().expected_excess_loss(1000, 3, n_classes=3) == DPSGDClassifier(
        classes=[0, 1, 2]
    ).expected_excess_loss(1000, 3)


@pytest.mark.parametrize("given", [(0, 3), (10, 0), (10.5, 3), (10, 3, 1), (10, [])])
def test_shapes_are_checked(given):
    with pytest.raises((TypeError, ValueError)):
        DPSGDClassifier().expected_excess_loss(*given)
