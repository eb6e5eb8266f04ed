"""Moments and tails of the samplers, with many draws."""

import math
import warnings

import mpmath
import numpy as np
import pytest
from scipy import stats

from skdp.exceptions import SeededNoiseWarning
from skdp.noise import RandomSource, discrete_gaussian, discrete_laplace
from skdp.noise import _discrete as discrete
from tests.noise._scripted import Scripted


def stream(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return RandomSource(seed).stream()


def central_moments(log_weight, scale, reach):
    """E|X|^j of the law on the integers, j = 1, 2, 4, 8, in units of the scale."""
    x = np.arange(0, math.ceil(reach * scale) + 2) if scale < 1e3 else None
    if x is None:
        return None
    weight = np.exp(log_weight(x / scale))
    weight[1:] *= 2
    return [float((weight * (x / scale) ** j).sum() / weight.sum()) for j in (1, 2, 4, 8)]


LAWS = {
    "laplace": (discrete_laplace, lambda z: -z, 60, [1.0, 2.0, 24.0, 40320.0]),
    "gaussian": (discrete_gaussian, lambda z: -z * z / 2, 12, [math.sqrt(2 / math.pi), 1, 3, 105]),
}


def check_moments(kind, scale, n, seed):
    """Mean, E|X|, variance and fourth moment within 4.5 standard errors."""
    sampler, log_weight, reach, limit = LAWS[kind]
    exact = central_moments(log_weight, scale, reach) or limit
    sums, bits = np.zeros(4), stream(seed)
    for _ in range(n // 10**6):
        z = sampler(scale, 10**6, bits) / scale
        square = z * z
        sums += z.sum(), np.abs(z).sum(), square.sum(), (square * square).sum()
    mean, first, second, fourth = sums / n
    e1, e2, e4, e8 = exact
    # At a large scale the discrete moments differ from the continuous ones by less than 1e-5 ...
    slack = 0.0 if scale < 1e3 else 1e-5
    for found, true, variance in (
        (mean, 0.0, e2),
        (first, e1, e2 - e1**2),
        (second, e2, e4 - e2**2),
        (fourth, e4, e8 - e4**2),
    ):
        assert abs(found - true) < 4.5 * math.sqrt(variance / n) + slack * true


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("scale", [0.7, 3.0, 2.0**20 * 1.3])
def test_moments(kind, scale):
    check_moments(kind, scale, 10**6, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("scale", [0.7, 3.0, 50.0, 2.0**20 * 1.3])
def test_moments_at_1e7_draws(kind, scale):
    check_moments(kind, scale, 10**7, seed=2)


def test_moments_of_half_the_noise_are_caught(monkeypatch):
    sampler, *law = LAWS["gaussian"]
    halved = (lambda scale, n, bits: sampler(scale / 2, n, bits), *law)
    monkeypatch.setitem(LAWS, "gaussian", halved)
    with pytest.raises(AssertionError):
        check_moments("gaussian", 3.0, 10**6, seed=1)


def test_counts_in_the_tails():
    n, scale, bits = 3 * 10**6, 2.0**20, stream(3)
    draws = np.abs(discrete_gaussian(scale, n, bits)) / scale
    for t in (2.0, 3.0, 4.0, 4.75):
        p = 2 * stats.norm.sf(t)
        assert stats.binomtest(int(np.sum(draws > t)), n, p).pvalue > 1e-5
    draws = np.abs(discrete_laplace(scale, n, bits)) / scale
    for t in (3.0, 7.0, 10.0):
        assert stats.binomtest(int(np.sum(draws > t)), n, math.exp(-t)).pvalue > 1e-5


@pytest.mark.parametrize("sigma", [3.0, 2.0**20])
@pytest.mark.parametrize("t", [1, 4, 6, 7, 9])
def test_beyond_six_sigma_a_proposal_is_kept_with_the_exact_probability(sigma, t):
    """The uniform number is placed 2**-120 below and above the exact acceptance probability.

    The law of the proposals is exact by the tests of the geometric draw, so that this makes the
    law of the draws exact at |x| = t sigma.
    """
    mpmath.mp.prec = 600
    scale, y = math.floor(sigma) + 1, round(t * sigma)
    leading = int(mpmath.floor(mpmath.exp(-mpmath.mpf(y + 0.5) / scale) * 2**63))
    shifted = mpmath.mpf(y) - mpmath.mpf(sigma) ** 2 / scale
    p = mpmath.exp(-(shifted**2) / (2 * mpmath.mpf(sigma) ** 2))
    for side, kept in ((-1, 1), (1, 0)):
        u = int(mpmath.floor(p * mpmath.mpf(2) ** 192)) + side * 2**72
        words = [[(u >> shift) & (2**64 - 1)] for shift in (128, 64, 0)]
        script = Scripted([leading], *words)
        draws = discrete._gaussian_block(sigma, 1, script, False)
        assert draws.tolist() == [y] * kept


def test_importance_counts_in_the_tail_of_the_proposals():
    """Leading zeros in U move the draw beyond 9 ln 2 scales; from there on the law starts again."""

    class Tail:
        def __init__(self):
            self.bits = stream(4)

        def words(self, n):
            words = self.bits.words(n)
            sign = words & np.uint64(1 << 63)
            return sign | ((words & np.uint64(2**63 - 1)) >> np.uint64(9))

    scale = 2.0**20
    draws = np.abs(discrete_laplace(scale, 100_000, Tail())) / scale - 9 * math.log(2)
    assert draws.min() > -(2.0**-20)
    assert stats.kstest(draws, "expon").pvalue > 1e-4
