import math
import warnings
from decimal import localcontext

import mpmath
import numpy as np
import pytest
from scipy import stats

from skdp.exceptions import SeededNoiseWarning
from skdp.noise import RandomSource, rounded_norm_noise
from skdp.noise import _norm as norm
from tests.noise._scripted import Scripted


def source(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return RandomSource(seed)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_length_is_gamma_and_direction_uniform(d):
    root, scale = source(1), 2.0**20
    draws = np.array([rounded_norm_noise(np.zeros(d), scale, root.stream()) for _ in range(2500)])
    length = np.linalg.norm(draws, axis=1)
    assert stats.kstest(length / scale, "gamma", args=(d,)).pvalue > 1e-4
    if d > 1:
        cosine = draws[:, 0] / length
        law = stats.beta((d - 1) / 2, (d - 1) / 2, loc=-1, scale=2)
        assert stats.kstest(cosine, law.cdf).pvalue > 1e-4
    assert abs(np.mean(draws[:, 0] > 0) - 0.5) < 4.5 * 0.5 / np.sqrt(2500)


@pytest.mark.parametrize("d", [1, 2, 5, 40])
@pytest.mark.parametrize("scale", [3.0, 2.0**20, 2.0**40])
def test_float_path_and_decimal_path_agree(d, scale):
    offset = np.linspace(-0.5, 0.5, d)
    for seed in range(5):
        fast = rounded_norm_noise(offset, scale, source(seed).stream())
        exact = rounded_norm_noise(offset, scale, source(seed).stream(), exact=True)
        assert np.array_equal(fast, exact)


@pytest.mark.parametrize("d", [1, 2, 7, 300])
def test_error_bound_holds_and_is_small(d):
    mpmath.mp.prec = 200
    for seed in range(3):
        draw = norm._Draw(d, source(seed).stream())
        value, error = draw.approximate(1.0)
        x, y = draw._x.astype(object), draw._y.astype(object)

        def normal(i, x=x, y=y):
            a, b = mpmath.mpf(int(x[i // 2])) / 2**63, mpmath.mpf(int(y[i // 2])) / 2**63
            s = a * a + b * b
            return (a if i % 2 == 0 else b) * mpmath.sqrt(-2 * mpmath.log(s) / s)

        q = -2 * sum(mpmath.log(mpmath.mpf(int(u)) / 2**64) for u in draw._uniforms)
        q += normal(d) ** 2 if d % 2 == 0 else 0
        for i in range(min(d, 20)):
            true = normal(i) * mpmath.sqrt(q) * int(draw._signs[i])
            assert abs(true - mpmath.mpf(float(value[i]))) <= error[i]
        assert np.median(error / np.abs(value)) < 2.0**-40


def test_a_point_on_the_circle_takes_more_bits():
    """A cell that the circle crosses is neither dropped nor used before more bits decide."""

    edge = 2**63 - 1
    inside_after = [[edge, 0], [2**63], [0], [0], [0]]
    with pytest.raises(IndexError):  # 1 - 2**-127 at once too near: the bits run out
        rounded_norm_noise(np.zeros(1), 2.0**20, Scripted(*inside_after[:4]))
    # |x| = 1 - 2**-127 and |y| = 0.5 lies outside: the whole vector is drawn again.
    crossed = Scripted([edge, 2**31], [2**63], [2**64 - 1], [2**63], [0], [2**62, 2**61], [2**63])
    result = rounded_norm_noise(np.zeros(1), 2.0**20, crossed)
    assert result.shape == (1,) and crossed.batches == []


def cell_on_the_circle(float_norm):
    """A cell that the circle crosses, whose corner's squared norm is `float_norm` in float64."""
    for first in range(math.isqrt(2**125), 2**63, 2**40 + 1):
        second = math.isqrt(2**126 - 1 - first**2)
        assert first**2 + second**2 < 2**126 <= (first + 1) ** 2 + (second + 1) ** 2
        x, y = float(first) * 2.0**-63, float(second) * 2.0**-63
        if x * x + y * y == float_norm:
            return first, second


@pytest.mark.quick_cases(cover="pairs")
@pytest.mark.parametrize("d, scale", [(1, 1.0), (2, 1.0), (2, 2.0**20), (4, 2.0**20), (1000, 1.0)])
@pytest.mark.parametrize("cell", [0, -1])
@pytest.mark.parametrize("float_norm", [1.0, 1.0 - 2.0**-53, 1.0 - 2.0**-52])
def test_a_cell_on_the_circle_is_resolved_in_every_place(d, scale, cell, float_norm):
    """The further bits put one point outside the disc: the whole vector must be drawn again."""
    first, second = cell_on_the_circle(float_norm)
    n, rng = d // 2 + 1, np.random.default_rng(0)
    points, again = rng.integers(2**60, 2**62, (2, n, 2), dtype=np.uint64)
    uniforms, others = rng.integers(2**60, 2**64, (2, (d + 1) // 2), dtype=np.uint64)
    points[cell] = first, second
    ones = np.full(n, 2**64 - 1, dtype=np.uint64)
    restart = [again.ravel(), others]
    script = Scripted(points.ravel(), uniforms, ones, ones, uniforms, *restart)
    drawn = rounded_norm_noise(np.zeros(d), scale, script)
    assert script.batches == []
    assert np.array_equal(drawn, rounded_norm_noise(np.zeros(d), scale, Scripted(*restart)))


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, 2.0**70, None, "1", True])
def test_bad_scale(bad):
    with pytest.raises(ValueError, match="scale"):
        rounded_norm_noise(np.zeros(2), bad, source().stream())


@pytest.mark.parametrize("bad", [[], [0.6], [np.nan], [[0.0]], 0.0])
def test_bad_offset(bad):
    with pytest.raises(ValueError, match="offset"):
        rounded_norm_noise(bad, 1.0, source().stream())


@pytest.mark.parametrize("bits", [64, 128])
def test_the_radius_from_one_product_encloses_the_sum_of_logarithms(bits):
    uniforms = np.random.default_rng(1).integers(1, 2**63, 400).astype(object)
    uniforms[0], uniforms[1] = 1, 2**bits - 1
    mpmath.mp.prec = 20 * bits
    true = -2 * sum(mpmath.log(mpmath.mpf(int(u)) / 2**bits) for u in uniforms)
    with localcontext(prec=2 * bits + 60):
        found = mpmath.mpf(str(norm._chi_square(uniforms, bits)))
    assert abs(found - true) < mpmath.mpf(10) ** (12 - 2 * bits - 60)
