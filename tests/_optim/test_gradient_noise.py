import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from skdp._optim import _gradient_noise
from skdp._optim._gradient_noise import GaussianNoise, LaplaceNoise
from skdp.exceptions import SeededNoiseWarning
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism
from skdp.noise import RandomSource
from tests._private import has_numba

KINDS = {"gaussian": GaussianNoise, "laplace": LaplaceNoise}
LAWS = {"gaussian": stats.norm, "laplace": stats.laplace}
# Each test draws from a fixed seed; false alarm rates are those for a random one, 1e-7 each.
RARE = 1e-7


def stream(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return RandomSource(seed).stream()


def noise_table(noise, n_steps, seed=0):
    drawn = [vector.copy() for vector in noise.draw(n_steps, stream(seed))]
    return np.array([noise.add(np.zeros(noise.size), vector) for vector in drawn])


def dependence(table, kind):
    """P-values of independence among coordinates and between steps, and of the law."""
    z = stats.norm.ppf(np.clip(LAWS[kind].cdf(table), 1e-12, 1.0 - 1e-12))
    n_steps, size = z.shape
    pairs = (z.T @ z)[np.triu_indices(size, 1)] / math.sqrt(n_steps)
    yield min(1.0, 2.0 * stats.norm.sf(np.abs(pairs).max()) * pairs.size)
    for lag in (1, 2):
        yield 2.0 * stats.norm.sf(abs(np.sum(z[lag:] * z[:-lag])) / math.sqrt(z[lag:].size))
    yield stats.kstest(table.ravel(), LAWS[kind].cdf).pvalue


@pytest.mark.parametrize("block", [1, 100, 1 << 14])
@pytest.mark.parametrize("kind", KINDS)
def test_law_and_independence(kind, block, monkeypatch):
    monkeypatch.setattr(_gradient_noise, "BLOCK_VALUES", block)
    noise = KINDS[kind](3.0, 12, 1.0)
    assert min(dependence(noise_table(noise, 3000, block) / noise.drawn_scale, kind)) > RARE


@pytest.mark.parametrize("kind", KINDS)
def test_shared_or_halved_noise_is_told(kind):
    noise = KINDS[kind](3.0, 12, 1.0)
    table = noise_table(noise, 3000) / noise.drawn_scale
    one_for_all_classes = np.tile(table[:, :4], (1, 3))
    one_for_two_steps = np.repeat(table[::2], 2, axis=0)
    for mutated in (one_for_all_classes, one_for_two_steps, 0.5 * table, 2.0 * table):
        assert min(dependence(mutated, kind)) < RARE


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_rounded_before_noise_is_added(kind):
    noise = KINDS[kind](1.0, 5, 1.0)
    rng = np.random.default_rng(0)
    vector = next(noise.draw(1, stream()))
    values = rng.normal(size=5) * 100.0
    released = noise.add(values, vector)
    np.testing.assert_array_equal(released / noise.step, np.rint(released / noise.step))
    assert np.abs(released - vector * noise.step - values).max() <= 0.5 * noise.step
    rounded = np.rint(values / noise.step) * noise.step
    np.testing.assert_array_equal(noise.add(rounded, vector), released)


@pytest.mark.parametrize("kind", KINDS)
def test_large_values_are_added_exactly(kind):
    noise = KINDS[kind](1.0, 4, 1.0)
    vector = next(noise.draw(1, stream()))
    values = np.array([2.0**45, -(2.0**70), 1e100, 3.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        released = noise.add(values, vector)
    step = Fraction(noise.step)
    exact = [
        round(Fraction(v) / step) * step + int(z) * step
        for v, z in zip(values.tolist(), vector.tolist(), strict=True)
    ]
    assert [Fraction(v) for v in released.tolist()] == [Fraction(float(v)) for v in exact]


def test_shapes():
    noise = GaussianNoise(1.0, 6, 1.0)
    vector = next(noise.draw(1, stream()))
    assert vector.shape == (6,) and vector.dtype == np.int64
    released = noise.add(np.zeros((2, 3)), vector)
    np.testing.assert_array_equal(released.ravel(), noise.add(np.zeros(6), vector))
    assert released.shape == (2, 3)


@pytest.mark.parametrize("n_steps", [0, 1, 7])
def test_numbers_of_steps(n_steps, monkeypatch):
    monkeypatch.setattr(_gradient_noise, "BLOCK_VALUES", 8)
    for kind in KINDS.values():
        assert len(list(kind(1.0, 3, 1.0).draw(n_steps, stream()))) == n_steps


CASES = [
    (scale, size, sensitivity)
    for scale in (1e-50, 0.01, 0.9, 3e5)
    for size in (1, 10, 10_000)
    for sensitivity in (scale, 0.03 * scale, 7.0 * scale)
]


@pytest.mark.parametrize("scale, size, sensitivity", CASES)
def test_scales_pay_for_rounding(scale, size, sensitivity):
    """In rational numbers: what the accountant was told is what remains after all slack."""
    exact, moved = Fraction(scale), Fraction(sensitivity)
    noise = GaussianNoise(scale, size, sensitivity)
    step = Fraction(noise.step)
    priced = (Fraction(noise.scale_in_steps) ** 2 - 16) * step**2
    # A little more than the root: the test errs on the strict side.
    root = Fraction(math.isqrt(size * 10**40) + 1, 10**20)
    assert priced >= (exact / moved * (moved + root * step)) ** 2
    noise = LaplaceNoise(scale, size, sensitivity)
    step = Fraction(noise.step)
    least = exact / moved * (moved / step + size * (1 + Fraction(1, 2**20)))
    assert Fraction(noise.scale_in_steps) >= least


@pytest.mark.parametrize("scale, size, sensitivity", CASES)
def test_scales_are_those_of_the_mechanisms(scale, size, sensitivity):
    gaussian = GaussianMechanism.from_scale(scale, sensitivity, 1e-5)
    laplace = LaplaceMechanism.from_scale(scale, sensitivity)
    noise = GaussianNoise(scale, size, sensitivity)
    assert noise.drawn_scale == pytest.approx(gaussian.scale_for(size), rel=1e-11)
    assert noise.drawn_scale <= scale * (1.0 + 2.0**-15)
    noise = LaplaceNoise(scale, size, sensitivity)
    assert noise.drawn_scale == pytest.approx(laplace.scale_for(size), rel=1e-11)
    assert noise.drawn_scale <= scale * (1.0 + 2.0**-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "scale, sensitivity", [(1e200, 1.0), (1e-200, 1.0), (np.nan, 1.0), (1e30, 1e-30)]
)
def test_noise_that_cannot_be_drawn(kind, scale, sensitivity):
    with pytest.raises(ValueError, match="cannot be sampled"):
        KINDS[kind](scale, 10, sensitivity)


def test_steps_move_by_no_more_than_is_charged():
    """Rounded sums of neighbors come apart by the sensitivity and the rounding."""
    rng = np.random.default_rng(0)
    noise = GaussianNoise(1.0, 50, 1.0)
    zero = np.zeros(50, dtype=np.int64)
    for _ in range(200):
        sums, move = rng.normal(size=50) * 1e3, rng.normal(size=50)
        move /= np.linalg.norm(move)
        apart = noise.add(sums + move, zero) - noise.add(sums, zero)
        assert np.linalg.norm(apart) <= 1.0 + math.sqrt(50) * noise.step


@pytest.mark.skipif(not has_numba(), reason="numba is not installed")
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_compiled_noise_has_the_same_bits(scale):
    """Also where a value is beyond the range of the integers, which only NumPy's version covers."""
    rng = np.random.default_rng(0)
    noise = GaussianNoise(scale, 6, scale)
    step = noise.step
    middles = (rng.integers(-1000, 1000, 6) + 0.5) * step
    vectors = [scale * rng.normal(size=6), np.zeros(6), -np.zeros(6), middles, -middles]
    vectors += [
        step * np.array([2.0**61, -(2.0**61), 2.0**60, 1.0, 0.4, 0.6]),
        vectors[0] * 2.0**70,
    ]
    for values, drawn in zip(vectors, noise.draw(len(vectors), stream()), strict=True):
        for shaped in (values, values.reshape(2, 3)):
            results = [noise.add(shaped, drawn, loops) for loops in ("numpy", "numba")]
            np.testing.assert_array_equal(*results)
            assert results[1].shape == shaped.shape
    for value in (np.nan, np.inf):
        with pytest.raises((ValueError, OverflowError)):
            noise.add(np.full(6, value), drawn, "numba")
