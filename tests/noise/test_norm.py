import warnings

import mpmath
import numpy as np
import pytest
from scipy import stats

from skdp.exceptions import SeededNoiseWarning
from skdp.noise import RandomSource, rounded_norm_noise
from skdp.noise import _norm as norm


def source(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return RandomSource(seed)


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

    class Scripted:
        def __init__(self, words):
            self.given = [np.array(w, dtype=np.uint64) for w in words]

        def words(self, n):
            word = self.given.pop(0)
            assert word.size == n
            return word

    edge = 2**63 - 1
    inside_after = [[edge, 0], [2**63], [0], [0], [0]]
    with pytest.raises(IndexError):  # 1 - 2**-127 at once too near: the bits run out
        rounded_norm_noise(np.zeros(1), 2.0**20, Scripted(inside_after[:4]))
    # |x| = 1 - 2**-127 and |y| = 0.5 lies outside: the whole vector is drawn again.
    crossed = Scripted([[edge, 2**31], [2**63], [2**64 - 1], [2**63], [0], [2**62, 2**61], [2**63]])
    result = rounded_norm_noise(np.zeros(1), 2.0**20, crossed)
    assert result.shape == (1,) and crossed.given == []
