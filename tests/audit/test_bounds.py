import math

import numpy as np
import pytest
from scipy.stats import binom

from skdp.accounting import gaussian_noise_multiplier
from skdp.audit import (
    epsilon_from_rates,
    gaussian_epsilon_from_rates,
    one_run_epsilon,
    one_run_gaussian_epsilon,
)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_two_worlds_pass_the_truth_at_most_at_the_stated_rate(epsilon):
    """Randomized response has the worst rates there are; the sum over all counts is exact."""
    n = 60
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    hits = np.arange(n + 1)
    inside, outside = binom.pmf(hits, n, truth), binom.pmf(hits, n, 1.0 - truth)
    passed = [
        [epsilon_from_rates(int(a), n, int(b), n, confidence=0.9) > epsilon for b in hits]
        for a in hits
    ]
    assert inside @ np.array(passed) @ outside <= 0.1


def test_a_secret_that_one_world_alone_can_show_is_found():
    """A test that is never wrong in one world; its mirror image proves hardly anything."""
    assert epsilon_from_rates(200, 1000, 0, 1000) > 3.0
    assert epsilon_from_rates(1000, 1000, 800, 1000) > 3.0


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("method", ["binomial", "f-dp"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.5, 0.0), (2.0, 0.0), (1.0, 1e-3)])
def test_one_run_passes_the_truth_at_most_at_the_stated_rate(method, epsilon, delta):
    """Randomized response on each canary, with the secret shown outright with probability delta."""
    m = 100
    truth = delta + (1.0 - delta) / (1.0 + math.exp(-epsilon))
    c = np.arange(m + 1)
    bounds = [one_run_epsilon(int(i), m, m, delta=delta, method=method) for i in c]
    assert np.all(np.diff(bounds) >= 0.0)
    rate = binom.pmf(c, m, truth) @ (np.array(bounds) > epsilon)
    assert rate <= 0.05
    if epsilon:
        # Without delta the first theorem is exact for randomized response, but for the steps.
        assert rate >= (0.01 if delta == 0.0 else 0.001)


def gaussian_canaries(rng, epsilon, delta, m):
    """Each canary moves a coordinate of its own by the clip; the attacker thresholds it."""
    mu = 1.0 / gaussian_noise_multiplier(epsilon, delta)
    coins = rng.integers(0, 2, m)
    return coins, mu * (coins - 0.5) + rng.normal(size=m)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("bound", [one_run_epsilon, one_run_gaussian_epsilon])
def test_one_run_of_the_gaussian_mechanism(bound):
    rng, epsilon, delta, m, guesses = np.random.default_rng(0), 4.0, 1e-5, 1000, 100
    bounds = []
    for _ in range(200):
        coins, scores = gaussian_canaries(rng, epsilon, delta, m)
        sure = np.argsort(-np.abs(scores))[:guesses]
        correct = int(np.sum((scores[sure] > 0) == coins[sure]))
        bounds.append(bound(correct, guesses, m, delta=delta))
    # P(Binomial(200, 0.05) > 28) < 1e-6
    assert np.sum(np.array(bounds) > epsilon) <= 28
    assert np.mean(bounds) >= (0.5 if bound is one_run_gaussian_epsilon else 0.3) * epsilon


def test_gaussian_rates_reach_what_a_point_of_the_curve_cannot():
    rng, delta, n = np.random.default_rng(0), 1e-5, 100_000
    for epsilon in (1.0, 4.0):
        mu = 1.0 / gaussian_noise_multiplier(epsilon, delta)
        inside, outside = rng.normal(mu, size=n), rng.normal(size=n)
        points, gaussian = [], []
        for threshold in (mu / 2, mu / 2 + 2.5):
            counts = (int(np.sum(inside > threshold)), n, int(np.sum(outside > threshold)), n)
            points.append(epsilon_from_rates(*counts, delta=delta))
            gaussian.append(gaussian_epsilon_from_rates(*counts, delta=delta))
        # Thresholds fixed beforehand; one-sided limits at 97.5 % each.
        assert 0.4 * epsilon <= max(points) <= epsilon
        assert 0.85 * epsilon <= max(gaussian) <= epsilon


def test_the_recursion_holds_for_every_law_that_it_excludes():
    """What is rejected for a tail p is rejected for smaller p, and for more right guesses."""
    bounds = [one_run_epsilon(80, 100, 400, confidence=c) for c in (0.5, 0.9, 0.99, 0.9999)]
    assert np.all(np.diff(bounds) < 0.0)
    bounds = [one_run_epsilon(c, 100, 400, delta=1e-6) for c in (55, 70, 85, 100)]
    assert np.all(np.diff(bounds) > 0.0)
    # A delta that explains the guesses by itself leaves nothing to certify.
    assert one_run_epsilon(60, 60, 400, delta=0.5) == 0.0


def test_counts_that_cannot_be_are_refused():
    for counts in ((5, 4, 10), (5, 20, 10), (-1, 4, 10)):
        with pytest.raises(ValueError):
            one_run_epsilon(*counts)
    with pytest.raises(ValueError):
        epsilon_from_rates(11, 10, 0, 10)
    with pytest.raises(ValueError, match="confidence"):
        epsilon_from_rates(1, 10, 0, 10, confidence=1.0)
    with pytest.raises(ValueError, match="delta"):
        gaussian_epsilon_from_rates(1, 10, 0, 10, delta=0.0)
    with pytest.raises(ValueError, match="method"):
        one_run_epsilon(1, 10, 10, method="guess")
