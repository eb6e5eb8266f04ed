import itertools
import math
import warnings

import numpy as np
import pytest
from scipy import integrate, stats

from skdp import accounting, noise
from skdp.exceptions import SeededNoiseWarning
from skdp.mechanisms import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from skdp.noise import RandomSource

SCORES = np.array([3.0, 2.5, 2.5, 1.0, 0.0, -1.0, 2.0, 2.9])
MECHANISMS = {
    "exponential": ExponentialMechanism,
    "permute": PermuteAndFlip,
    "gumbel": lambda *a, **k: ReportNoisyMax(*a, **k),
    "laplace": lambda *a, **k: ReportNoisyMax(*a, noise="laplace", **k),
    "expo-noise": lambda *a, **k: ReportNoisyMax(*a, noise="exponential", **k),
}
each = pytest.mark.parametrize("make", MECHANISMS.values(), ids=MECHANISMS.keys())


def source(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return RandomSource(seed)


def frequencies(mechanism, scores, n, seed):
    root = source(seed)
    chosen = [mechanism.release(scores, random_state=root) for _ in range(n)]
    return np.bincount(chosen, minlength=len(scores))


def exponential_law(scores, epsilon):
    p = np.exp(epsilon * (scores - scores.max()) / 2)
    return p / p.sum()


def permute_and_flip_law(scores, epsilon):
    """McKenna and Sheldon 2020: the sum over subsets, by the order of the visits."""
    accept = np.exp(epsilon * (scores - scores.max()) / 2)
    k, law = len(scores), np.zeros(len(scores))
    for order in itertools.permutations(range(k)):
        left = 1.0
        for i in order:
            law[i] += left * accept[i]
            left *= 1.0 - accept[i]
    return law / math.factorial(k)


def laplace_noisy_max_law(scores, scale):
    x = np.linspace(scores.min() - 40 * scale, scores.max() + 40 * scale, 60_001)
    cdf = stats.laplace.cdf(x[:, None], scores, scale)
    law = [
        integrate.trapezoid(
            stats.laplace.pdf(x, scores[i], scale) * np.delete(cdf, i, axis=1).prod(axis=1), x
        )
        for i in range(len(scores))
    ]
    return np.array(law) / np.sum(law)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("kind", list(MECHANISMS))
def test_empirical_law_is_the_exact_law(kind, epsilon):
    n, scores = 4000, SCORES
    if kind in ("permute", "expo-noise"):
        scores = SCORES[:6]
        law = permute_and_flip_law(scores, epsilon)
    elif kind == "laplace":
        law = laplace_noisy_max_law(scores, 2 / epsilon)
    else:
        law = exponential_law(scores, epsilon)
    counts = frequencies(MECHANISMS[kind](epsilon, 1.0), scores, n, seed=1)
    assert stats.chisquare(counts, law * n).pvalue > 1e-4


def test_that_law_test_would_catch_a_wrong_factor():
    counts = frequencies(ExponentialMechanism(1.0, 1.0), SCORES, 6000, seed=1)
    assert stats.chisquare(counts, exponential_law(SCORES, 2.0) * 6000).pvalue < 1e-10


def test_monotonic_doubles_the_exponent():
    counts = frequencies(ExponentialMechanism(1.0, 1.0, monotonic=True), SCORES, 6000, seed=2)
    assert stats.chisquare(counts, exponential_law(SCORES, 2.0) * 6000).pvalue > 1e-4


@pytest.mark.quick_cases(every=3)
@each
def test_utility_theorem(make):
    """Scores 500 and 399, sensitivity 1, epsilon 0.1, four candidates."""
    mechanism = make(0.1, 1.0)
    n = 2000
    top = frequencies(mechanism, [399.0, 500.0, 399.0, 399.0], n, seed=3)[1]
    law = exponential_law(np.array([399.0, 500.0, 399.0, 399.0]), 0.1)[1]
    assert law >= 0.973
    least = law if mechanism.name != "Report noisy max" or mechanism.noise != "laplace" else 0.973
    assert stats.binomtest(int(top), n, least, alternative="less").pvalue > 1e-5


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("scores", [SCORES[:6], np.arange(5.0), np.array([0, 0, 0, 0, 9.0])])
def test_permute_and_flip_is_never_worse(scores, epsilon):
    better = permute_and_flip_law(scores, epsilon) @ scores
    assert better >= exponential_law(scores, epsilon) @ scores - 1e-12
    n = 1500
    gained = [
        frequencies(cls(epsilon, 1.0), scores, n, seed=4) @ scores / n
        for cls in (PermuteAndFlip, ExponentialMechanism)
    ]
    assert gained[0] - gained[1] > -5 * np.ptp(scores) / math.sqrt(2 * n)


@each
def test_extreme_scores(make):
    mechanism = make(1.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        root = RandomSource()
        for _ in range(10):
            assert mechanism.release([1e308, -1e308, 0.0], random_state=root) == 0
            assert mechanism.release([-1e308, -np.inf, -1.7e308], random_state=root) == 0
            assert mechanism.release([7.0], random_state=root) == 0
            assert mechanism.release([-np.inf, 5e-324, -np.inf], random_state=root) == 1
            assert mechanism.release([1, 2**53], random_state=root) == 1


@each
def test_ties_are_broken_uniformly(make):
    counts = frequencies(make(1.0, 1.0), np.full(5, 1e308), 1500, seed=5)
    assert stats.chisquare(counts).pvalue > 1e-4


@each
def test_huge_and_tiny_scales(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert make(1e12, 1.0).release([0.0, 1.0, 0.5]) == 1
        assert make(1e-12, 1.0).release([0.0, 1.0, 0.5]) in (0, 1, 2)
        assert make(1.0, 1e200).release([0.0, 1e205]) == 1


def test_many_candidates():
    scores = np.zeros(200_000)
    scores[17] = 100.0
    for make in MECHANISMS.values():
        assert make(2.0, 1.0).release(scores) == 17


def test_decisions_inside_the_guard_band_are_exact(monkeypatch):
    """With a band as wide as all numbers, every decision is made in integers: the same choice."""
    bernoulli_exp = noise.bernoulli_exp
    plain = [
        ExponentialMechanism(1.0, 1.0).release(SCORES, random_state=source(i)) for i in range(9)
    ]
    monkeypatch.setattr(
        noise, "bernoulli_exp", lambda x, exact, stream: bernoulli_exp(x, exact, stream, exact=True)
    )
    again = [
        ExponentialMechanism(1.0, 1.0).release(SCORES, random_state=source(i)) for i in range(9)
    ]
    assert plain == again


def test_events():
    assert ExponentialMechanism(0.5, 1.0).event == accounting.ExponentialMechanism(0.5)
    assert ReportNoisyMax(0.5, 1.0).event == accounting.ExponentialMechanism(0.5)
    for mechanism in (
        PermuteAndFlip(0.5, 1.0),
        ReportNoisyMax(0.5, 1.0, noise="laplace"),
        ReportNoisyMax(0.5, 1.0, noise="exponential"),
    ):
        assert mechanism.event == accounting.PureDP(0.5)


@each
def test_scale_round_trip(make):
    mechanism = make(0.3, 2.0)
    assert mechanism.scale == pytest.approx(2 * 2.0 / 0.3)
    back = type(mechanism).from_scale(mechanism.scale, 2.0)
    assert back.epsilon == pytest.approx(0.3)
    assert make(0.3, 2.0, monotonic=True).scale == pytest.approx(2.0 / 0.3)


@pytest.mark.quick_cases(cover="values")
@each
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_expected_error_covers(make, epsilon):
    mechanism, n = make(epsilon, 1.0), 1000
    counts = frequencies(mechanism, SCORES, n, seed=6)
    inside = counts[SCORES.max() - SCORES <= mechanism.expected_error(0.8, size=8)].sum()
    assert stats.binomtest(int(inside), n, 0.8, alternative="less").pvalue > 1e-5


@each
@pytest.mark.parametrize(
    "bad", [[], [np.nan, 1], [np.inf], [-np.inf], 3.0, [[1.0]], ["a"], [None], [1j], [2**53 + 1, 0]]
)
def test_bad_scores(make, bad):
    with pytest.raises(ValueError, match="score"):
        make(1.0, 1.0).release(bad)


@each
def test_bad_parameters(make):
    for bad in (0, -1, np.nan, np.inf, None, "1", True):
        with pytest.raises(ValueError, match="epsilon"):
            make(bad, 1.0)
        with pytest.raises(ValueError, match="sensitivity"):
            make(1.0, bad)
    with pytest.raises(ValueError, match="monotonic"):
        make(1.0, 1.0, monotonic="yes")
    with pytest.raises(ValueError, match="scale"):
        make(1.0, 1e300)
    with pytest.raises(ValueError, match="noise"):
        ReportNoisyMax(1.0, 1.0, noise="uniform")
