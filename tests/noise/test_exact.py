"""Exact samplers: their distributions, rounded norms, and draws by weights."""

import math
import warnings
from decimal import localcontext
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.stats import chisquare

from skdp.exceptions import SeededNoiseWarning
from skdp.noise import (
    RandomSource,
    _integers,
    choose_by_distance,
    discrete_gaussian,
    discrete_laplace,
    rounded_norm_noise,
)
from skdp.noise import _discrete as discrete
from skdp.noise import _norm as norm
from skdp.noise._discrete import _geometric
from skdp.noise._exact import (
    LazyUniform,
    bernoulli_exp,
    exp_bounds,
    is_below,
    is_one_below,
    truthful,
)
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


@pytest.mark.parametrize("off", [-(2.0**-45), 2.0**-45])
def test_the_guard_band_covers_the_error_of_one_threshold(off):
    def bounds(index, precision):
        half = 1 << (precision - 1)
        return objects(half), objects(half)

    for word, expected in ((2**63 - 2, True), (2**63 + 2, False)):
        assert is_one_below(0.5 + off, bounds, Scripted(word)) is expected
        assert is_below(np.array([0.5 + off]), bounds, Scripted(word)).tolist() == [expected]
    # Other words are compared as floats, without a bound.
    assert is_one_below(0.5, None, Scripted(2**62))
    assert not is_one_below(0.5, None, Scripted(2**63 + 2**62))


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


# Moments and tails of the samplers, with many draws.


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


def draw(weights, distances, rate, n, seed=0):
    stream = RandomSource(seed).stream()
    found = [choose_by_distance(weights, distances, rate, stream) for _ in range(n)]
    return np.bincount(found, minlength=len(weights))


def law(weights, distances, rate):
    distances = np.array(distances) - min(distances)
    weights = np.array(weights) * np.exp(-float(rate) * distances)
    return weights / weights.sum()


CASES = [
    ([1, 1, 1], [0, 1, 2], Fraction(1, 2)),
    ([5, 0, 3, 7], [7, 0, 9, 8], Fraction(1, 3)),
    # Far candidates that are many are as likely as near ones that are few.
    ([1, 2**40], [0, 277], Fraction(1, 10)),
    ([2**50, 2**50], [10**15, 10**15 + 1], Fraction(1, 1)),
]


@pytest.mark.parametrize(("weights", "distances", "rate"), CASES)
def test_the_law_is_the_stated_one(weights, distances, rate):
    # False alarm: 1e-7 each.
    counts, expected = draw(weights, distances, rate, 5_000), law(weights, distances, rate)
    assert np.all(counts[expected == 0] == 0)
    possible = expected > 0
    assert chisquare(counts[possible], 5_000 * expected[possible]).pvalue > 1e-7


def test_integers_decide_as_floats_do(monkeypatch):
    fast = [draw(*case, 200, seed=3) for case in CASES]
    compare = _integers._is_below_scaled_exp

    def doubtful(approximate, *args):
        *exact, stream = args
        word = stream.words(1)
        both = [
            compare(value, *exact, _Replay(word, stream))
            for value in (approximate, float(word[0]) * 2.0**-64)
        ]
        # The second approximation is the number itself, which leaves it to the integers.
        assert both[0] == both[1]
        return both[0]

    monkeypatch.setattr(_integers, "_is_below_scaled_exp", doubtful)
    for case, counts in zip(CASES, fast, strict=True):
        np.testing.assert_array_equal(draw(*case, 200, seed=3), counts)


class _Replay:
    def __init__(self, word, stream):
        self._word, self._stream = word, stream

    def words(self, n):
        word, self._word = self._word, None
        return self._stream.words(n) if word is None else word


@pytest.mark.parametrize("weights", [[0, 0], [2**56, 1]])
def test_impossible_weights_are_refused(weights):
    with pytest.raises(ValueError, match="weights"):
        choose_by_distance(weights, [0, 1], Fraction(1), RandomSource().stream())
