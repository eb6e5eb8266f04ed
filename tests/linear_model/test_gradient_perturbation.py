"""Each step of noisy descent releases a gradient within its sensitivity, at the planned price."""

import math

import numpy as np
import pytest

from skdp import DPLogisticRegression, PrivacyAccountant
from skdp._data._bounded import BoundedRows
from skdp._losses import BinaryLogisticLoss, ClassWeightedLoss, MultinomialLogisticLoss
from skdp.accounting import Neighbours, get_epsilon
from skdp.linear_model import _gradient_perturbation
from skdp.linear_model._gradient_perturbation import (
    NOISE_FACTOR,
    _n_steps,
    plan_gradient_perturbation,
)
from skdp.linear_model._objective import loss_gradient
from skdp.mechanisms import GaussianMechanism
from skdp.noise import discrete_gaussian
from tests._guarantees import meet, of_rows

BINARY = BinaryLogisticLoss()
LOSSES = {
    "binary": BINARY,
    "weighted": ClassWeightedLoss(BINARY, (3.0, 0.5)),
    "softmax": MultinomialLogisticLoss(3),
    "weighted softmax": ClassWeightedLoss(MultinomialLogisticLoss(3), (1.0, 0.2, 2.0)),
}


def moved_over_claimed(loss, rng, relation):
    """Return how far neighbours' gradients are apart over the sensitivity, at several weights."""
    k, n = max(2, *loss.weights_shape, 2), 20
    X, y = rng.normal(scale=10.0, size=(n, 2)), rng.integers(k, size=n)
    if isinstance(loss, ClassWeightedLoss):
        y[:2] = np.argmax(loss.weights)
    X[1] = -X[0]
    plan = plan_gradient_perturbation(of_rows(loss, n, 2, 2.0), 0.1, meet(1.0, 1e-6, relation))
    ratios = []
    for length in (0.1, 1.0, 10.0):
        weights = length * rng.normal(size=(*loss.weights_shape, 2))
        weights *= min(1.0, plan.radius / np.linalg.norm(weights))
        if not loss.weights_shape:
            weights = np.outer(weights @ X[0], X[0])[0] * (-1) ** (y[0] == 0)
        keep = {"add_remove": [np.arange(n), np.arange(1, n)]}
        keep["replace_one"] = [np.delete(np.arange(n), 1), np.arange(1, n)]
        one, other = (
            loss_gradient(loss, BoundedRows(X[i], 2.0, 0.0), y[i], weights) for i in keep[relation]
        )
        ratios.append(np.linalg.norm(one - other) / plan.step.sensitivity)
    return max(ratios)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_brute_force_sensitivity(relation, loss):
    rng = np.random.default_rng(0)
    ratios = [moved_over_claimed(loss, rng, relation) for _ in range(200)]
    # A row of the wrong label, and two rows that are wrong in opposite ways, come near the claim.
    assert 0.45 <= max(ratios) <= 1.0
    if relation == "add_remove":
        assert max(ratios) >= 0.9


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_all_steps_together_cost_what_is_claimed(epsilon, delta):
    plan = plan_gradient_perturbation(of_rows(BINARY, 10_000, 20, 1.0), 0.1, meet(epsilon, delta))
    cost = get_epsilon(plan.mechanism.event, delta)
    assert (1 - 1e-6) * epsilon <= cost <= epsilon
    assert plan.mechanism.event.count == plan.n_steps > 10


def test_the_ledger_has_every_step():
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    accountant = PrivacyAccountant(1.0, 1e-5)
    model = DPLogisticRegression(1.0, delta=1e-5, mechanism="gradient", accountant=accountant)
    model.fit(X, y)
    (spend,) = accountant.spends
    assert (spend.epsilon, spend.delta) == (1.0, 1e-5)
    assert f"{spend.event.count} steps" in model.privacy_.sampler


def noise_ratio():
    """Return the spread of weights that are averages of noise alone over what was priced.

    On null rows with little weight of the loss every iterate is minus C times the noise of its
    step.
    """
    X, y = np.zeros((50, 400)), np.arange(50) % 2
    model = DPLogisticRegression(mechanism="gradient", C=1e-9, fit_intercept=False).fit(X, y)
    n_steps = int(model.privacy_.sampler.split()[-2])
    priced = model.C_ * model.privacy_.noise_scale / math.sqrt(n_steps - n_steps // 2)
    return np.sqrt(np.mean(model.coef_**2)) / priced


def test_the_noise_is_what_was_priced():
    """The root mean square of 400 values is within a fifth but for a chance below 1e-7."""
    assert 0.8 < noise_ratio() < 1.2


def check_classes_are_independent():
    X, y = np.zeros((50, 400)), np.arange(50) % 3
    model = DPLogisticRegression(mechanism="gradient", C=1e-9, fit_intercept=False).fit(X, y)
    assert np.abs(np.corrcoef(model.coef_)[~np.eye(3, dtype=bool)]).max() < 0.3


def test_classes_get_noise_of_their_own():
    """A correlation of 400 pairs is below 0.3 but for a chance of 1e-8."""
    check_classes_are_independent()


class TestMutations:
    """Each of the classic mistakes is found by a check above."""

    def test_halved_noise(self, monkeypatch):
        release = GaussianMechanism.release

        def halved(self, values, **source):
            return values + 0.5 * (release(self, values, **source) - values)

        monkeypatch.setattr(GaussianMechanism, "release", halved)
        assert not 0.8 < noise_ratio() < 1.2

    def test_one_noise_for_all_steps(self, monkeypatch):
        noise = {}

        def sample(self, scale, size, stream):
            return noise.setdefault(size, discrete_gaussian(scale, size, stream))

        monkeypatch.setattr(GaussianMechanism, "_sample", sample)
        assert not 0.8 < noise_ratio() < 1.2

    def test_noise_shared_between_classes(self, monkeypatch):
        release = GaussianMechanism.release

        def shared(self, values, **source):
            return values + release(self, np.zeros(values.shape[-1]), **source)

        monkeypatch.setattr(GaussianMechanism, "release", shared)
        with pytest.raises(AssertionError):
            check_classes_are_independent()

    def test_root_two_forgotten_for_softmax(self, monkeypatch):
        monkeypatch.setattr(MultinomialLogisticLoss, "slope_bound", 1.0)
        with pytest.raises(AssertionError):
            test_brute_force_sensitivity("add_remove", LOSSES["softmax"])

    def test_class_weights_forgotten(self, monkeypatch):
        monkeypatch.setattr(
            ClassWeightedLoss, "slope_bound", property(lambda self: self.loss.slope_bound)
        )
        with pytest.raises(AssertionError):
            test_brute_force_sensitivity("add_remove", LOSSES["weighted"])

    def test_replacement_priced_as_removal(self, monkeypatch):
        monkeypatch.setattr(Neighbours, "rows_moved", 1)
        ratios = []
        X = np.array([[np.cos(1.4), s * np.sin(1.4)] for s in (1.0, -1.0)])
        plan = plan_gradient_perturbation(
            of_rows(BINARY, 1, 2, 1.0), 1.0, meet(1.0, 1e-6, "replace_one")
        )
        for row in X:
            rows = BoundedRows(row[None], 1.0, 0.0)
            ratios.append(loss_gradient(BINARY, rows, np.zeros(1), np.array([50.0, 0.0])))
        assert np.linalg.norm(ratios[0] - ratios[1]) > plan.step.sensitivity

    def test_steps_priced_as_one(self, monkeypatch):
        calibrated = _gradient_perturbation.gaussian_noise_multiplier
        monkeypatch.setattr(
            _gradient_perturbation,
            "gaussian_noise_multiplier",
            lambda *args: 0.1 * calibrated(*args),
        )
        plan = plan_gradient_perturbation(of_rows(BINARY, 10_000, 2, 1.0), 1.0, meet(1.0, 1e-5))
        assert get_epsilon(plan.mechanism.event, 1e-5) > 1.0


def quadratic_noise(condition, n_steps):
    """Return the largest noise of averaged iterates over a quadratic of any curvature.

    In units of what the minimiser under one release's noise costs at worst, 1 / 8.
    """
    root = math.sqrt(condition)
    momentum = (root - 1.0) / (root + 1.0)
    h = np.geomspace(1e-3, condition - 1.0, 60)
    slope = 1.0 - (h + 1.0) / condition
    previous = np.zeros_like(h)
    current = point = -np.ones_like(h) / condition
    responses = []
    for _ in range(n_steps):
        responses.append(current)
        point = current + momentum * (current - previous)
        previous, current = current, slope * point
    sums = np.vstack([np.zeros_like(h), np.cumsum(responses, axis=0)])
    first = n_steps // 2
    total = np.zeros_like(h)
    for start in range(n_steps):
        weight = sums[n_steps - start] - sums[max(first, start) - start]
        total += (weight / (n_steps - first)) ** 2
    return (8.0 * 0.5 * h * total * n_steps).max()


@pytest.mark.parametrize("condition", [1.5, 10.0, 300.0, 10_000.0])
def test_averaging_keeps_the_noise_low_in_the_quadratic_model(condition):
    for noise in (10.0, 1.0, 0.1, 1e-4):
        assert quadratic_noise(condition, _n_steps(condition, noise)) <= NOISE_FACTOR


def test_weights_stay_within_the_radius_of_the_rounding_bound(monkeypatch):
    seen = []

    def spy(loss, rows, y, weights):
        seen.append(np.linalg.norm(weights))
        return loss_gradient(loss, rows, y, weights)

    monkeypatch.setattr(_gradient_perturbation, "loss_gradient", spy)
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    problem = of_rows(BINARY, 200, 4, math.hypot(1.0, 0.3))
    model = DPLogisticRegression(0.01, delta=1e-9, mechanism="gradient", C=100.0).fit(X, y)
    plan = plan_gradient_perturbation(problem, model.C_, meet(0.01, 1e-9))
    assert max(seen) <= plan.radius * (1 + 1e-12)
    assert max(seen) > 0.9 * plan.radius
