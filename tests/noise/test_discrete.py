import math
import warnings

import numpy as np
import pytest
from scipy import stats

from skdp.exceptions import SeededNoiseWarning
from skdp.noise import RandomSource, discrete_gaussian, discrete_laplace


def stream(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return RandomSource(seed).stream()


def laplace_log_weight(x, scale):
    return -np.abs(x) / scale


def gaussian_log_weight(x, sigma):
    return -0.5 * (x / sigma) ** 2


SAMPLERS = [
    (discrete_laplace, laplace_log_weight, 40.0),
    (discrete_gaussian, gaussian_log_weight, 10.0),
]


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("sampler, log_weight, reach", SAMPLERS)
@pytest.mark.parametrize("scale", [0.1, 0.3, 1.0, 1.7, 5.0, 31.25])
@pytest.mark.parametrize("exact", [False, True])
def test_law_at_small_scale(sampler, log_weight, reach, scale, exact):
    n = 2000 if exact else 100_000
    draws = sampler(scale, n, stream(1), exact=exact)
    support = np.arange(-math.ceil(reach * scale) - 3, math.ceil(reach * scale) + 4)
    p = np.exp(log_weight(support, scale))
    assert_fits(draws, support, p / p.sum())


def assert_fits(draws, support, p):
    counts = np.bincount(draws - support[0], minlength=support.size)
    assert counts.size == support.size
    large = p * draws.size >= 5
    observed = np.append(counts[large], counts[~large].sum())
    expected = np.append(p[large], p[~large].sum()) * draws.size
    keep = expected > 1e-9
    assert observed[~keep].sum() == 0
    if keep.sum() == 1:
        return
    assert (
        stats.chisquare(observed[keep], expected[keep] / expected[keep].sum() * draws.size).pvalue
        > 1e-4
    )


@pytest.mark.thorough
@pytest.mark.parametrize("scale", [2.0**10, 2.0**20 * 1.37, 2.0**33, 2.0**46])
def test_law_at_large_scale(scale):
    draws = discrete_laplace(scale, 100_000, stream(2)) / scale
    assert stats.kstest(draws, "laplace").pvalue > 1e-4
    draws = discrete_gaussian(scale, 100_000, stream(3)) / scale
    assert stats.kstest(draws, "norm").pvalue > 1e-4


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("scale", [1e-12, 0.3, 1.7, 1000.5, 2.0**20, 2.0**40, 2.0**47])
def test_fast_path_and_integer_path_agree_draw_by_draw(sampler, scale):
    fast = sampler(scale, 400, stream(4))
    exact = sampler(scale, 400, stream(4), exact=True)
    assert np.array_equal(fast, exact)


def test_low_bits_are_uniform_at_large_scale():
    for sampler in (discrete_laplace, discrete_gaussian):
        low = sampler(2.0**20, 200_000, stream(5)) & 1023
        assert stats.chisquare(np.bincount(low, minlength=1024)).pvalue > 1e-4


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
def test_shapes_and_reproducibility(sampler):
    draws = sampler(3.0, (4, 0), stream())
    assert draws.shape == (4, 0) and draws.dtype == np.int64
    assert sampler(3.0, 5, stream()).shape == (5,)
    assert sampler(3.0, (), stream()).shape == ()
    assert np.array_equal(sampler(3.0, (70, 1000), stream(9)), sampler(3.0, (70, 1000), stream(9)))


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, None, "1", True, 2.0**60, 1 + 0j])
def test_no_scale_means_no_noise(sampler, bad):
    with pytest.raises(ValueError, match="must be a number"):
        sampler(bad, 3, stream())


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1e-9])
def test_tiny_scales_give_zeros_without_warnings(sampler, scale):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not sampler(scale, 20, RandomSource().stream()).any()
