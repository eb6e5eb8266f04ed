"""What is released before the weights: class frequencies and means, and what they are good for."""

import numpy as np
import pytest
from scipy.special import logit

from skdp import (
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
    PrivacyAccountant,
)
from skdp.accounting import Neighbors, get_epsilon
from skdp.base import TableShape
from skdp.mechanisms import LaplaceMechanism
from skdp.noise import RandomSource
from tests._guarantees import meet

CLASSIFIERS = (
    DPLogisticRegression,
    DPLinearSVC,
    DPSGDClassifier,
    lambda *args, **params: DPSGDClassifier(*args, loss="hinge", **params),
)
TARGETS = {
    "classes": (DPLogisticRegression(), [0, 1], lambda rng: rng.integers(2, size=9)),
    "several": (DPLogisticRegression(), [0, 1, 2], lambda rng: rng.integers(3, size=9)),
    "hinge": (DPLinearSVC(), [0, 1, 2], lambda rng: rng.integers(3, size=9)),
    "descent": (DPSGDClassifier(), [0, 1, 2], lambda rng: rng.integers(3, size=9)),
    "mean": (DPSGDRegressor(target_bounds=(-1, 1)), None, lambda rng: rng.choice([-9.0, 1.0], 9)),
    "counts": (
        DPPoissonRegressor(target_bounds=(0, 5)),
        None,
        lambda rng: rng.choice([0.0, 5.0], 9),
    ),
}


def center_of(model, classes, relation="add_remove", n_rows=9, epsilon=1.0):
    shape = TableShape(n_rows=n_rows, n_columns=3, classes=classes)
    return model.plan_fit(shape, meet(epsilon, 1e-6, relation)).mechanism.rows.baseline


def moved(name, relation, monkeypatch):
    """Return how far what is counted or summed moves between neighbors, over the sensitivity.

    A row that is removed leaves a null record, which counts nowhere; the number of rows is public.
    """
    model, classes, draw = TARGETS[name]
    center, seen = center_of(model, classes, relation), []
    monkeypatch.setattr(
        LaplaceMechanism, "release", lambda self, v, **_: seen.append(np.array(v)) or v
    )
    rng, ratios = np.random.default_rng(0), []
    for _ in range(50):
        y = draw(rng)
        other = y.copy()
        other[0] = draw(rng)[0]
        for rows in (y, y[1:] if relation == "add_remove" else other):
            center.run(rows, RandomSource(0))
        ratios.append(np.abs(seen[-1] - seen[-2]).sum() / center.mechanism.sensitivity)
    return max(ratios)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", TARGETS)
def test_neighbors_reach_the_sensitivity_and_no_more(name, relation, monkeypatch):
    assert 0.999 < moved(name, relation, monkeypatch) <= 1.0


@pytest.mark.parametrize("name", ["several", "hinge", "descent", "mean", "counts"])
def test_a_replaced_row_priced_as_a_removed_one_is_caught(name, monkeypatch):
    monkeypatch.setattr(Neighbors, "sensitivity_factor", 1)
    assert moved(name, "replace_one", monkeypatch) > 1.5


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("make", CLASSIFIERS)
def test_the_center_is_in_the_one_charge_of_the_fit(make, relation, delta):
    X, y = np.random.default_rng(0).normal(size=(400, 3)), np.arange(400) % 3
    accountant = PrivacyAccountant(1.0, 1e-6, relation=relation)
    model = make(1.0, delta=delta, accountant=accountant).fit(X, y)
    (spend,) = accountant.charges
    assert (spend.epsilon, spend.delta) == (1.0, delta)
    assert get_epsilon(spend.event, delta, relation=relation) <= 1.0
    assert any("Laplace" in law for law in model.privacy_.mechanism.split(", then ")[:2])


def test_its_share_falls_with_rows_and_epsilon():
    model, classes, _ = TARGETS["classes"]
    shares = [
        center_of(model, classes, n_rows=n, epsilon=e).mechanism.epsilon / e
        for n, e in ((100, 0.1), (1000, 1.0), (10**6, 1.0), (100, 1e10))
    ]
    assert shares[0] == pytest.approx(0.75)
    assert shares[0] > shares[1] > shares[2] > shares[3]


@pytest.mark.parametrize("make", [DPLogisticRegression, DPLinearSVC])
def test_counts_that_no_noise_can_be_drawn_for_are_refused_before_the_charge(make):
    """Noise of so small an epsilon can be drawn for one count, but not for those of 60 classes."""
    X, y = np.random.default_rng(0).normal(size=(400, 3)), np.arange(400) % 60
    accountant = PrivacyAccountant(1.0, 0.0)
    model = make(1e-13, delta=0.0, mechanism="output", accountant=accountant)
    with pytest.raises(ValueError, match=r"too small for 60 value"):
        model.fit(X, y)
    assert accountant.charges == []


def test_a_call_that_goes_on_releases_no_center():
    X, y = np.random.default_rng(0).normal(size=(400, 3)), np.arange(400) % 2
    accountant = PrivacyAccountant(2.0, 2e-6)
    model = DPSGDClassifier(accountant=accountant, classes=[0, 1])
    model.partial_fit(X, y).partial_fit(X, y)
    assert ["Composed" in repr(spend.event) for spend in accountant.charges] == [True, False]


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("make", CLASSIFIERS)
def test_fits_without_information_end_at_the_class_of_most_rows(make, delta):
    """Rows that tell nothing, of which a fifth are of one class: the mean accuracy of eight fits.

    Predictions by a noisy count are right in four fifths of the rows. Without the center's share
    or with a penalty that does not grow with the noise means are below .72.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 30))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (np.arange(500) % 5 == 0).astype(int)
    scores = [make(0.3, delta=delta, random_state=seed).fit(X, y).score(X, y) for seed in range(8)]
    assert np.mean(scores) > 0.78


def test_scores_are_logarithms_of_smoothed_weighed_frequencies(monkeypatch):
    monkeypatch.setattr(LaplaceMechanism, "release", lambda self, values, **_: values)
    model = DPLogisticRegression(class_weight={0: 2.0})
    center = center_of(model, [0, 1, 2], n_rows=1000)
    scores = center.run(np.repeat([0, 1, 2], [200, 300, 500]), RandomSource(0))
    smoothed = np.log([225.0, 325.0, 525.0]) + np.log([2.0, 1.0, 1.0])
    assert center.mechanism.scale == pytest.approx(25.0)
    np.testing.assert_allclose(scores, smoothed - smoothed.mean())
    binary = center_of(DPLogisticRegression(), [0, 1], n_rows=1000)
    found = binary.run(np.repeat([0, 1], [700, 300]), RandomSource(0))
    assert found == pytest.approx(logit(325.0 / 1050.0))
    hinge = center_of(DPLinearSVC(), [0, 1, 2], n_rows=1000)
    assert np.abs(hinge.run(np.zeros(1000, int), RandomSource(0))).max() == pytest.approx(1.0)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_targets_that_fill_little_of_their_range_end_near_their_mean(delta):
    """Means of eight fits; the standard deviation of a fit is below a half."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.2, 0.2, (500, 20)), 0.3 + 0.05 * rng.normal(size=500)
    params = {"target_bounds": (0, 1), "delta": delta, "epsilon": 0.5}
    scores = [DPRidge(random_state=s, **params).fit(X, y).score(X, y) for s in range(8)]
    assert np.mean(scores) > -1.5
