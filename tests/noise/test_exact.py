from fractions import Fraction

import mpmath
import numpy as np
import pytest

from skdp.noise._discrete import _geometric
from skdp.noise._exact import LazyUniform, bernoulli_exp, exp_bounds, truthful
from tests.noise._scripted import Scripted


def objects(*values):
    return np.array(values, dtype=object)


@pytest.mark.parametrize("precision", [8, 71, 135, 500, 3000])
def test_exp_bounds_enclose_and_are_tight(precision):
    mpmath.mp.prec = precision + 200
    exponents = [Fraction(1, 10**30), Fraction(1, 3), Fraction(1), Fraction(22, 7), Fraction(100)]
    exponents += [Fraction(precision), Fraction(10**400)]
    denominator = 3 * 7 * 10**30
    numerators = objects(*[int(x * denominator) for x in exponents])
    low, high = exp_bounds(numerators, denominator, precision)
    for x, a, b in zip(numerators, low, high, strict=True):
        true = mpmath.ldexp(mpmath.exp(-mpmath.mpf(x) / denominator), precision)
        assert a <= true <= b
        assert b - a <= 3


def test_exp_of_zero_is_one():
    low, high = exp_bounds(objects(0, 0), 5, 100)
    assert all(low == 1 << 100) and all(high == 1 << 100)


def below_exp(uniform):
    """Decide whether a number lies below exp(-1)."""
    return uniform.is_below(lambda index, precision: exp_bounds(objects(1)[index], 1, precision))


def test_a_comparison_draws_more_bits_only_inside_the_band():
    mpmath.mp.prec = 400
    bits = int(mpmath.floor(mpmath.ldexp(mpmath.exp(-1), 128)))
    leading, following = bits >> 64, bits & (2**64 - 1)
    for shift, expected in ((-1, True), (1, False)):
        script = Scripted(following + shift)
        uniform = LazyUniform(np.array([leading], dtype=np.uint64), 64, script)
        assert below_exp(uniform)[0] == expected
        assert script.batches == []
    script = Scripted(1)
    assert below_exp(LazyUniform(np.array([leading - 1000], dtype=np.uint64), 64, script))[0]
    assert len(script.batches) == 1


def test_bernoulli_inside_the_band_is_decided_by_integers():
    mpmath.mp.prec = 400
    bits = int(mpmath.floor(mpmath.ldexp(mpmath.exp(-1), 128)))
    leading, following = bits >> 64, bits & (2**64 - 1)

    def exponent(index):
        return np.full(index.size, 1, dtype=object), 1

    for shift, expected in ((-1, True), (1, False)):
        result = bernoulli_exp(np.ones(1), exponent, Scripted(leading, following + shift))
        assert result[0] == expected


def test_a_geometric_draw_at_the_edge_of_two_integers():
    """The 63 bits of U that enclose exp(-5/3): the next bits decide between 4 and 5."""
    mpmath.mp.prec = 400
    bits = int(mpmath.floor(mpmath.ldexp(mpmath.exp(mpmath.mpf(-5) / 3), 127)))
    leading, following = np.array([bits >> 64], dtype=np.uint64), bits & (2**64 - 1)
    assert _geometric(3.0, leading, Scripted(following - 1), False)[0] == 5
    assert _geometric(3.0, leading, Scripted(following + 1), False)[0] == 4


def test_a_geometric_draw_whose_leading_bits_are_all_zero():
    """U = 2**-64: -s ln U = 64 s ln 2."""
    word = np.zeros(1, dtype=np.uint64)
    value = _geometric(1000.0, word, Scripted(2**63, 1), False)[0]
    assert value == int(1000 * 64 * np.log(2))


def test_a_guard_band_of_zero_width_would_be_wrong():
    """The float alone decides this draw wrongly, so the check above can fail."""
    mpmath.mp.prec = 400
    scale, wrong = 1000.0, 0
    for m in range(1, 400):
        bits = int(mpmath.floor(mpmath.ldexp(mpmath.exp(mpmath.mpf(-m) / 1000), 127)))
        for shift, expected in ((-1, m), (1, m - 1)):
            leading = np.array([bits >> 64], dtype=np.uint64)
            following = (bits & (2**64 - 1)) + shift
            assert _geometric(scale, leading, Scripted(following), False)[0] == expected
            wrong += int(np.floor(-scale * np.log(leading * 2.0**-63))[0]) != expected
    assert wrong > 300


def threshold(x, bits):
    """floor(2**bits * x), for x of type mpf."""
    return int(mpmath.floor(mpmath.ldexp(x, bits)))


class Zeros:
    """Further bits that are all zero."""

    def words(self, n):
        return np.zeros(n, dtype=np.uint64)


def test_the_guard_band_covers_the_error_of_large_logarithms():
    """63 bits of U at 2 to 40 units from exp(-m/1000), for U between 2**-13 and 2**-7."""
    mpmath.mp.prec, scale = 400, 1000.0
    m = np.arange(5000, 9000, 20)
    edges = [threshold(mpmath.exp(mpmath.mpf(-int(k)) / 1000), 63) for k in m]
    apart = np.concatenate([np.arange(-40, -1), np.arange(2, 41)])
    leading = (np.array(edges, dtype=np.int64)[:, None] + apart).astype(np.uint64)
    drawn = _geometric(scale, leading.ravel(), Zeros(), False).reshape(leading.shape)
    assert np.array_equal(drawn, m[:, None] - (apart > 0))
    plain = np.floor(-scale * np.log(leading * 2.0**-63))
    assert np.any(plain != drawn)


def test_the_guard_band_covers_the_unknown_bits_of_a_small_number():
    """U between 2**-30 and 2**-10: the bits beyond the 63rd decide far from the float's error."""
    mpmath.mp.prec, scale = 400, 1000.0
    for m in range(7000, 20_700, 137):
        bits = threshold(mpmath.exp(mpmath.mpf(-m) / 1000), 127)
        leading, following = np.array([bits >> 64], dtype=np.uint64), bits & (2**64 - 1)
        for shift, expected in ((-16, m), (16, m - 1)):
            assert _geometric(scale, leading, Scripted(following + shift), False)[0] == expected


@pytest.mark.parametrize("off", [-(2.0**-46), 2.0**-46])
def test_the_guard_band_covers_the_error_of_an_exponent(off):
    """The documented tolerance of the float exponent moves no draw beside the border."""
    mpmath.mp.prec = 400
    leading = threshold(mpmath.exp(-1), 64)

    def exact(index):
        return np.full(index.size, 1, dtype=object), 1

    for shift, expected in ((-3, True), (3, False)):
        drawn = bernoulli_exp(np.array([1.0 + off]), exact, Scripted(leading + shift))
        assert drawn[0] == expected


def test_open_draws_are_extended_by_bits_of_their_own():
    mpmath.mp.prec = 400
    bits = threshold(mpmath.exp(mpmath.mpf(-5) / 3), 127)
    leading, following = np.full(4, bits >> 64, dtype=np.uint64), bits & (2**64 - 1)
    script = Scripted([following - 1, following + 1, following + 1, following - 1])
    assert _geometric(3.0, leading, script, False).tolist() == [5, 4, 4, 5]
    assert script.batches == []


@pytest.mark.parametrize("exponent", [0.25, 1.0, 3.5])
@pytest.mark.parametrize("others", [1, 6, 1000])
def test_truth_at_the_boundary_is_decided_by_integers(exponent, others):
    mpmath.mp.prec = 400
    bits = threshold(1 / (1 + others * mpmath.exp(-mpmath.mpf(exponent))), 128)
    leading, following = bits >> 64, bits & (2**64 - 1)
    script = Scripted([leading, leading], [following - 1, following + 1])
    assert truthful(exponent, others, 2, script).tolist() == [True, False]
    assert script.batches == []


@pytest.mark.parametrize("name", ["log", "exp"])
def test_numpy_is_as_accurate_as_the_guard_bands_suppose(name):
    """Within 4 units in the last place, on vectors (SIMD code) and near the ends of the range."""
    mpmath.mp.prec = 200
    rng = np.random.default_rng(0)
    if name == "log":
        x = np.concatenate([rng.random(3000), 1 - 2.0 ** -rng.uniform(1, 53, 500)])
        x = np.concatenate([x, 2.0 ** -rng.uniform(0, 63, 500)])
    else:
        x = -np.concatenate([rng.uniform(0, 700, 2000), 2.0 ** rng.uniform(-60, 5, 2000)])
    found = getattr(np, name)(x)
    for argument, value in zip(x.tolist(), found.tolist(), strict=True):
        true = getattr(mpmath, name)(mpmath.mpf(argument))
        assert abs(true - mpmath.mpf(value)) <= 4 * np.spacing(abs(value))
