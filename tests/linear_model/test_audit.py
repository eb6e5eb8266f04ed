"""Attacks on the worst neighbors certify an epsilon near the claim, and never above it.

Many short rows push the weight to one side and hardly curve the objective; one long row has the
other label. With it or without it the minimizer is nearly as far apart as the sensitivity
allows. The attacker sees the released weight and picks a threshold.

All steps of a noisy descent together are one Gaussian release. Its trade-off curve has one
parameter mu, which errors of both kinds bound from below at any threshold, the middle one
included (Nasr et al. 2023, Tight auditing of differentially private machine learning). From that
a larger epsilon follows than from the rare errors that epsilon itself is about, but only for a
mechanism whose curve is Gaussian: that is said where it is used.
"""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta, norm

from skdp.accounting import gaussian_noise_multiplier, gdp_to_delta
from skdp.linear_model._objective_perturbation import LinearNoise
from skdp.mechanisms import GammaNormMechanism, GaussianMechanism
from skdp.noise import RandomSource
from tests._attacks import epsilon_lower_bound
from tests._guarantees import meet, of_rows, plan_weights
from tests._private import BinaryLogisticLoss, BoundedRows, GaussianNoise, LinearObjective, minimize

LOSS = BinaryLogisticLoss()
EPSILON = 4.0
MU = 1.0 / gaussian_noise_multiplier(EPSILON, 1e-5)
WAYS = [("output", 0.0), ("output", 1e-5), ("objective", 0.0), ("objective", 1e-5)]
WAYS += [("gradient", 1e-5)]
# Of the claim, what 2e4 fits a world certify at least.
CERTIFIED = 0.3
# The same from the middle of a Gaussian trade-off curve.
CERTIFIED_AS_GAUSSIAN = 0.6


def worlds(mechanism):
    """Return the two tables and C; few rows for descent, whose steps grow with them."""
    length, count, C = (0.01, 1700, 1.0) if mechanism != "gradient" else (0.1, 100, 1.0)
    X, y = np.append(np.full(count, length), 1.0)[:, None], np.append(np.ones(count), 0.0)
    return (X, y), (X[:-1], y[:-1]), C


def released(mechanism, delta, n_fits, seed):
    source, (one, other, C) = RandomSource(seed), worlds(mechanism)
    problem = of_rows(LOSS, len(one[0]), 1, 1.0)
    plan = plan_weights(mechanism, problem, C, meet(EPSILON, delta))
    rows = [(BoundedRows(X, 1.0, 0.0), y) for X, y in (one, other)]
    return [[plan.run(LOSS, *world, source)[0] for _ in range(n_fits)] for world in rows]


def certified(one, other, delta):
    """Return the epsilon that is certified with confidence 0.95 in each direction.

    Thresholds are chosen on even fits and judged on odd ones.
    """
    bounds = []
    for sign in (1, -1):
        a, b = sign * np.array(one), sign * np.array(other)
        for first, second in ((a, b), (-b, -a)):
            cuts = np.quantile(second[::2], np.linspace(0.9, 0.999, 60))
            gains = [bound(first[::2], second[::2], cut, delta) for cut in cuts]
            bounds.append(bound(first[1::2], second[1::2], cuts[np.argmax(gains)], delta))
    return max(bounds)


def bound(first, second, cut, delta):
    hits, false_hits = int(np.sum(first > cut)), int(np.sum(second > cut))
    return epsilon_lower_bound(
        hits, len(first), false_hits, len(second), delta=delta, confidence=0.95
    )


def certified_mu(one, other, confidence=0.95):
    """Return the mu of a Gaussian trade-off curve that is certified.

    Thresholds are chosen on even fits and judged on odd ones.
    """
    a, b = np.array(one), np.array(other)
    a, b = (a, b) if np.mean(a[::2]) > np.mean(b[::2]) else (b, a)
    cuts = np.quantile(np.concatenate([a[::2], b[::2]]), np.linspace(0.05, 0.95, 91))
    cut = max(cuts, key=lambda cut: mu_bound(a[::2], b[::2], cut, confidence))
    return mu_bound(a[1::2], b[1::2], cut, confidence)


def mu_bound(first, second, cut, confidence):
    hits, false_hits = int(np.sum(first > cut)), int(np.sum(second > cut))
    error = (1.0 - confidence) / 2.0
    low = beta.ppf(error, hits, len(first) - hits + 1)
    high = beta.ppf(1.0 - error, false_hits + 1, len(second) - false_hits)
    return norm.ppf(low) - norm.ppf(high)


def test_the_neighbors_move_the_minimizer_by_nine_tenths_of_the_bound():
    one, other, C = worlds("output")
    weights = [
        minimize(LinearObjective(LOSS, BoundedRows(X, 1.0, 0.0), y, C), 1e-9)
        for X, y in (one, other)
    ]
    assert abs(weights[0] - weights[1])[0] >= 0.9 * C * LOSS.loss_lipschitz


def test_the_neighbors_gradients_stay_nearly_as_far_apart_as_the_sensitivity():
    one, other, C = worlds("gradient")
    plan = plan_weights("gradient", of_rows(LOSS, 101, 1, 1.0), C, meet(EPSILON, 1e-5))
    means = [np.mean(world) for world in released("gradient", 1e-5, 30, 0)]
    # Gradients are clipped at half of the bound on them, and the objective is 1-strongly convex.
    assert means[1] - means[0] > 0.2
    assert plan.mechanism.sensitivity < 0.5001


@pytest.mark.thorough
@pytest.mark.parametrize(("mechanism", "delta"), WAYS[:-1])
def test_attacks_certify_less_than_the_claim(mechanism, delta):
    found = certified(*released(mechanism, delta, 1000, 0), delta)
    # Few fits certify little; the slow test asks for more.
    assert 0.08 * EPSILON < found < EPSILON


@pytest.mark.thorough
def test_an_attack_on_descent_certifies_less_than_its_trade_off_curve():
    """False alarms are below 1e-6; an eighth of the noise is found below, by fewer fits."""
    assert certified_mu(*released("gradient", 1e-5, 200, 0), confidence=1.0 - 1e-6) < MU


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "delta"), WAYS)
def test_attacks_with_many_fits_certify_less_than_the_claim(mechanism, delta):
    worlds = released(mechanism, delta, 20_000, 1)
    found = certified(*worlds, delta)
    print(f"{mechanism}, delta = {delta}: certified {found:.2f} of {EPSILON}")
    assert CERTIFIED * EPSILON < found < EPSILON
    if mechanism == "gradient":
        mu = certified_mu(*worlds)
        found = brentq(lambda epsilon: gdp_to_delta(mu, epsilon) - delta, 0.0, 100.0)
        print(f"as a Gaussian trade-off curve: mu = {mu:.3f}, epsilon = {found:.2f}")
        assert mu < MU
        assert CERTIFIED_AS_GAUSSIAN * EPSILON < found < EPSILON


@pytest.mark.thorough
@pytest.mark.parametrize(("mechanism", "delta"), WAYS)
def test_attacks_find_noise_of_an_eighth(mechanism, delta, monkeypatch):
    for cls in (GaussianMechanism, GammaNormMechanism):
        release = cls.release

        def weak(self, values, release=release, **source):
            return values + 0.125 * (release(self, values, **source) - values)

        monkeypatch.setattr(cls, "release", weak)
    add = GaussianNoise.add
    monkeypatch.setattr(
        GaussianNoise,
        "add",
        lambda self, v, noise: add(self, v, np.rint(0.125 * noise).astype(int)),
    )
    draw = LinearNoise.draw
    monkeypatch.setattr(LinearNoise, "draw", lambda self, stream: 0.125 * draw(self, stream))
    if mechanism == "gradient":
        assert certified_mu(*released(mechanism, delta, 100, 0)) > MU
    else:
        assert certified(*released(mechanism, delta, 1000, 0), delta) > EPSILON
