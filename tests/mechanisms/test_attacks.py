"""What an attacker certifies from released floats: nothing above the claim.

The same code certifies epsilon > 6 for a claimed 1 on textbook noise. A certificate is wrong with
a probability of 1e-3 at most, if the truth is exactly the claim; here the attacks see bits alone,
and what these reveal is far below the claim.
"""

import warnings

import numpy as np
import pytest

from skdp.exceptions import SeededNoiseWarning
from skdp.mechanisms import (
    ExponentialMechanism,
    GammaNormMechanism,
    GaussianMechanism,
    GeometricMechanism,
    LaplaceMechanism,
    PermuteAndFlip,
    RandomizedResponse,
    ReportNoisyMax,
)
from skdp.noise import RandomSource
from tests._attacks import (
    attack_choices,
    attack_floats,
    certified_epsilon,
    epsilon_lower_bound,
    grid_bits,
    in_textbook_support,
    lowest_set_bit,
)

EPSILON = 1.0
ADDITIVE = [
    LaplaceMechanism(EPSILON, 1.0),
    GaussianMechanism(EPSILON, 1e-5, 1.0),
    GammaNormMechanism(EPSILON, 1.0),
]
PAIRS = [(0.0, 1.0), (0.1, 1.0)]
by_name = pytest.mark.parametrize("mechanism", ADDITIVE, ids=lambda m: m.name)


def source(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return RandomSource(seed)


def releases(mechanism, value, n, seed):
    root = source(seed)
    return np.array([mechanism.release(value, random_state=root) for _ in range(n)])


def attack_pair(mechanism, pair, n, release=releases):
    outputs = [release(mechanism, value, n, seed) for seed, value in enumerate(pair)]
    return attack_floats(*outputs, values=pair, scale=mechanism.scale, delta=mechanism.delta)


@pytest.mark.thorough
@by_name
def test_attacks_certify_nothing_above_the_claim(mechanism):
    certified = attack_pair(mechanism, (0.1, 1.0), 4000)
    assert set(certified) == {"precision", "low bits", "grid bits", "support", "learned"}
    assert max(certified.values()) <= EPSILON


@pytest.mark.slow
@by_name
@pytest.mark.parametrize("pair", PAIRS)
def test_attacks_certify_nothing_above_the_claim_with_many_releases(mechanism, pair):
    assert max(attack_pair(mechanism, pair, 150_000).values()) <= EPSILON


def test_the_same_attacks_break_textbook_noise():
    rng, n = np.random.default_rng(0), 30_000
    first, second = rng.laplace(0.0, 1.0, n), 1.0 + rng.laplace(0.0, 1.0, n)
    certified = attack_floats(first, second, values=(0.0, 1.0))
    assert certified["support"] > 6
    assert certified["learned"] > 6
    assert certified["precision"] > 5.5
    assert certified_epsilon(first, second) > 5.5


@pytest.mark.thorough
@by_name
def test_vectors_of_public_floats(mechanism):
    outputs = []
    for seed, value in enumerate(([0.1, 0.2, -0.3], [0.1, 0.9, 0.3])):
        root = source(seed)
        outputs.append([mechanism.release(value, random_state=root) for _ in range(2000)])
    assert certified_epsilon(*outputs, delta=mechanism.delta) <= EPSILON


@pytest.mark.thorough
@pytest.mark.parametrize(
    "mechanism, pair",
    [
        (ExponentialMechanism(EPSILON, 1.0), ([2.0, 1.0, 1.0], [1.0, 2.0, 2.0])),
        (PermuteAndFlip(EPSILON, 1.0), ([2.0, 1.0, 1.0], [1.0, 2.0, 2.0])),
        (ReportNoisyMax(EPSILON, 1.0), ([2.0, 1.0, 1.0], [1.0, 2.0, 2.0])),
        (ReportNoisyMax(EPSILON, 1.0, noise="laplace"), ([2.0, 1.0, 1.0], [1.0, 2.0, 2.0])),
        (ReportNoisyMax(EPSILON, 1.0, noise="exponential"), ([2.0, 1.0], [1.0, 2.0])),
        (GeometricMechanism(EPSILON), (0, 1)),
        (RandomizedResponse(EPSILON, (0, 1, 2)), (0, 1)),
    ],
    ids=lambda m: getattr(m, "name", ""),
)
def test_choices_certify_nothing_above_the_claim(mechanism, pair):
    outputs = [releases(mechanism, value, 3000, seed) for seed, value in enumerate(pair)]
    assert attack_choices(*outputs) <= EPSILON
    assert attack_choices(*outputs) > 0.0


def test_choices_with_half_the_noise_are_caught():
    mechanism, pair = RandomizedResponse(2 * EPSILON, (0, 1)), (0, 1)
    outputs = [releases(mechanism, value, 3000, seed) for seed, value in enumerate(pair)]
    assert attack_choices(*outputs) > EPSILON


# Mutants of the mechanisms: each must be caught.


def plain_noise(mechanism, value, n, seed):
    """Exact noise on a grid, added to a value that was not rounded to it."""
    return value + releases(mechanism, 0.0, n, seed)


def unrounded_noise(mechanism, value, n, seed):
    """The sum of four continuous Gaussian numbers: not a defense either."""
    parts = np.random.default_rng(seed).normal(size=(4, n))
    return value + mechanism.scale * parts.sum(axis=0) / 2


def noise_on_unrounded_steps(mechanism, value, n, seed):
    """The release in steps of the grid, with a number of steps for the value that is no integer."""
    noise = releases(mechanism, 0.0, n, seed)
    step = 2.0 ** lowest_set_bit(noise).min()
    return (value / step + noise / step) * step


@pytest.mark.quick_cases(every=6)
@by_name
@pytest.mark.parametrize("mutant", [plain_noise, noise_on_unrounded_steps, unrounded_noise])
def test_release_without_rounding_is_caught(mechanism, mutant):
    assert max(attack_pair(mechanism, (0.1, 1.0), 4000, mutant).values()) > EPSILON


def own_grid(mechanism, value, n, seed):
    """Rounding to a grid that is chosen by the value itself."""
    step = value * 2.0**-10
    return np.rint(releases(mechanism, value, n, seed) / step) * step


def test_grid_that_depends_on_the_value_is_caught():
    assert max(attack_pair(ADDITIVE[0], (0.25, 1.0), 4000, own_grid).values()) > EPSILON


# The attacks' own parts.


def test_lowest_set_bit():
    x = np.array([0.0, 1.0, 3.0, -0.5, 6.0, 1 + 2.0**-52, 5e-324, -(2.0**1000)])
    assert lowest_set_bit(x).tolist() == [2000, 0, 0, -1, 1, -52, -1074, 1000]


def test_grid_bits():
    assert grid_bits([0.0, 1.0, -1.0, 1025.0, 1e308], 0).tolist() == [0, 1, 1023, 1, 0]


def test_textbook_support_holds_its_own_outputs():
    x = np.random.default_rng(1).laplace(1.0, 1.0, 2000)
    assert in_textbook_support(x, 1.0, 1.0).all()
    assert in_textbook_support(x, 0.0, 1.0).mean() < 0.6


def test_epsilon_lower_bound():
    assert epsilon_lower_bound(0, 100, 0, 100) == 0.0
    assert epsilon_lower_bound(100, 100, 100, 100) == 0.0
    bound = epsilon_lower_bound(5000, 10_000, 0, 10_000)
    assert bound == pytest.approx(np.log(0.4836 / 0.000760), abs=0.01)
    rng = np.random.default_rng(0)
    hits, false_hits = rng.binomial(1000, 0.5, 4000), rng.binomial(1000, 0.5 / np.e, 4000)
    wrong = sum(
        epsilon_lower_bound(a, 1000, b, 1000, confidence=0.9) > 1
        for a, b in zip(hits, false_hits, strict=True)
    )
    assert wrong < 0.1 * 4000
