import math
import warnings

import numpy as np
import pytest
from scipy import stats

from skdp import accounting
from skdp.exceptions import SeededNoiseWarning
from skdp.mechanisms import GeometricMechanism
from skdp.noise import RandomSource


def source(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return RandomSource(seed)


@pytest.mark.parametrize("epsilon, sensitivity", [(0.5, 1), (2.0, 3), (0.01, 1)])
def test_law(epsilon, sensitivity):
    mechanism = GeometricMechanism(epsilon, sensitivity)
    noise = mechanism.release(np.full(50_000, 7), random_state=source(1)) - 7
    a = math.exp(-epsilon / sensitivity)
    width = math.ceil(6 / (1 - a))
    support = np.arange(-width, width + 1)
    p = (1 - a) / (1 + a) * a ** np.abs(support)
    counts = [np.sum(noise == x) for x in support]
    counts = np.append(counts, noise.size - np.sum(counts))
    expected = np.append(p, 1 - p.sum()) * noise.size
    few = expected < 5
    counts = np.append(counts[~few], counts[few].sum())
    expected = np.append(expected[~few], expected[few].sum())
    keep = expected > 0
    assert (
        stats.chisquare(counts[keep], expected[keep] / expected[keep].sum() * noise.size).pvalue
        > 1e-4
    )


def test_types_and_event():
    mechanism = GeometricMechanism(0.5, 2)
    assert type(mechanism.release(5)) is int
    assert mechanism.release(np.zeros((2, 2), dtype=np.uint8)).dtype == np.int64
    assert mechanism.event == accounting.DiscreteLaplace(mechanism.scale, 2)
    assert mechanism.scale == pytest.approx(4.0)
    assert GeometricMechanism.from_scale(4.0, 2).epsilon == pytest.approx(0.5)


def loss_profile(weights, t):
    """The least integral of min(p, t q) of a product of shifted discrete Laplace pairs."""
    p, q = weights
    return np.minimum(p, t * q).sum()


@pytest.mark.parametrize("shifts", [(1, 1), (2, 1), (3, 4), (1, 1, 2)])
@pytest.mark.parametrize("scale", [0.5, 2.0, 9.0])
def test_the_event_of_one_integer_covers_an_array(shifts, scale):
    """A split of the L1 distance over several integers is never easier to tell apart."""

    def pair(shift):
        x = np.arange(-math.ceil(40 * scale), shift + math.ceil(40 * scale) + 1)
        p, q = np.exp(-np.abs(x) / scale), np.exp(-np.abs(x - shift) / scale)
        # Only the likelihood ratio matters: merge equal ratios.
        ratio, inverse = np.unique(np.abs(x) - np.abs(x - shift), return_inverse=True)
        p, q = (np.bincount(inverse, w / w.sum()) for w in (p, q))
        return ratio, p, q

    _, p, q = pair(shifts[0])
    for shift in shifts[1:]:
        _, p2, q2 = pair(shift)
        p, q = np.outer(p, p2).ravel(), np.outer(q, q2).ravel()
    _, p1, q1 = pair(sum(shifts))
    for t in np.exp(np.linspace(-sum(shifts), sum(shifts), 301) / scale):
        assert loss_profile((p, q), t) >= loss_profile((p1, q1), t) * (1 - 1e-12)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("scale", [0.3, 2.0, 50.0])
def test_expected_error_is_the_exact_quantile(confidence, scale):
    mechanism = GeometricMechanism.from_scale(scale)
    a = math.exp(-1 / mechanism.scale)
    t = mechanism.expected_error(confidence)
    assert 2 * a ** (t + 1) / (1 + a) <= (1 - confidence) * (1 + 1e-9)
    assert t == 0 or 2 * a**t / (1 + a) > (1 - confidence) * (1 - 1e-9)


def test_bad_input():
    for bad in (0, -1, 1.5, None, True, "1", 2**60):
        with pytest.raises(ValueError):
            GeometricMechanism(1.0, bad)
    for bad in (0, -1, np.nan, np.inf, None, 1e-30):
        with pytest.raises(ValueError):
            GeometricMechanism(bad)
    for bad in (1.0, "1", None, [], [1.0], 2**62, -(2**62), 2**70, True):
        with pytest.raises(ValueError, match="values"):
            GeometricMechanism(1.0).release(bad)
