import numpy as np
import pytest

from skdp.accounting import gaussian_noise_multiplier
from skdp.audit import _distinguish
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism

DELTA = 1e-5


def distinguish(inside, outside, **options):
    names = [f"number {place}" for place in range(inside.shape[1])]
    return _distinguish.distinguish(inside, outside, names=names, **options)


def worlds(mechanism, n):
    return (mechanism.release(np.full(n, value))[:, None] for value in (1.0, 0.0))


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(("gaussian", "share"), [(False, 0.4), (True, 0.85)])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_gaussian_mechanism(epsilon, gaussian, share):
    """The bounds that are asked for, from 1e5 runs a world; the median of five such audits."""
    rng, mu = np.random.default_rng(0), 1.0 / gaussian_noise_multiplier(epsilon, DELTA)
    options = {"delta": DELTA, "confidence": 0.95, "gaussian": gaussian}
    found = []
    for _ in range(5):
        inside, outside = rng.normal(mu, size=(100_000, 1)), rng.normal(size=(100_000, 1))
        found.append(distinguish(inside, outside, **options).epsilon)
    assert share * epsilon <= np.median(found) <= epsilon


@pytest.mark.thorough
@pytest.mark.parametrize("gaussian", [False, True])
def test_the_truth_is_passed_at_most_at_the_stated_rate(gaussian):
    """P(Binomial(200, 0.05) > 28) < 1e-6, thresholds and tests chosen by the data."""
    mechanism, passed = GaussianMechanism(1.0, DELTA, sensitivity=1.0), 0
    for _ in range(200):
        inside, outside = worlds(mechanism, 1000)
        options = {"delta": DELTA, "confidence": 0.95, "gaussian": gaussian}
        passed += distinguish(inside, outside, **options).epsilon > 1.0
    assert passed <= 28


def test_most_of_a_pure_claim_is_found():
    inside, outside = worlds(LaplaceMechanism(2.0, sensitivity=1.0), 20_000)
    found = distinguish(inside, outside, delta=0.0, confidence=0.999)
    assert 0.85 * 2.0 <= found.epsilon <= 2.0


def test_what_numbers_say_together_under_laplace_noise():
    """Four of them, each moved by 1.5 scales, are (6, 0)-private; a discriminant finds 2.5."""
    rng, found = np.random.default_rng(0), []
    for _ in range(5):
        inside, outside = rng.laplace(size=(2000, 4)) + 1.5, rng.laplace(size=(2000, 4))
        found.append(distinguish(inside, outside, delta=0.0, confidence=0.999).epsilon)
    assert 2.8 < np.median(found) <= 6.0


def test_noise_that_numbers_share_is_taken_away():
    noise = np.random.default_rng(0).laplace(size=(2, 100, 1)) * [1.0, 3.0]
    inside, outside = noise[0] + [1e-3, 0.0], noise[1]
    found = distinguish(inside, outside, delta=0.0, confidence=0.999)
    assert found.epsilon > 1.0 and found.test == "a linear discriminant"


@pytest.mark.parametrize("narrow", ["inside", "outside"])
def test_laws_of_one_mean_are_told_apart_by_their_spread(narrow):
    rng = np.random.default_rng(0)
    small, large = 0.05 * rng.normal(size=(2000, 1)), rng.normal(size=(2000, 1))
    pair = (small, large) if narrow == "inside" else (large, small)
    found = distinguish(*pair, delta=0.0, confidence=0.999)
    assert found.epsilon > 1.5 and "the distance of" in found.test


def test_nothing_to_tell_apart():
    nothing = np.empty((40, 0))
    assert distinguish(nothing, nothing, delta=0.0, confidence=0.95).epsilon == 0.0
    constant = np.ones((40, 2))
    assert distinguish(constant, constant, delta=0.0, confidence=0.95).epsilon == 0.0
    found = distinguish(constant, 2.0 * constant, delta=0.0, confidence=0.95)
    assert found.epsilon > 1.0


@pytest.mark.thorough
@pytest.mark.filterwarnings("error")
def test_a_number_that_hardly_ever_moves():
    """Equal numbers have a variance above 0 by rounding; which ones depends on the processor."""
    rng = np.random.default_rng(0)
    for value in rng.uniform(size=100):
        constant, moving = np.full(100, value), rng.normal(size=(2, 2, 100))
        inside, outside = (np.column_stack([constant, *world]) for world in moving)
        inside[1, 0] += 0.5
        found = distinguish(inside, outside, delta=0.0, confidence=0.999)
        assert found.epsilon < 0.5


def test_a_number_that_is_shown_twice_counts_once():
    """Of forty runs in a world a discriminant takes five numbers; so many copies would fill it."""
    noise = np.random.default_rng(0).laplace(size=(2, 40, 1)) * [1.0, 3.0]
    inside, outside = noise[0] + [1e-3, 0.0], noise[1]
    copies = [np.hstack([np.tile(world[:, :1], 9), world]) for world in (inside, outside)]
    options = {"delta": 0.0, "confidence": 0.999}
    assert distinguish(*copies, **options) == distinguish(inside, outside, **options)
