"""Bounds and norms that are found for columns in which most rows hold one value."""

import itertools

import numpy as np
import pytest

from skdp import (
    DPLinearRegression,
    DPMaxAbsScaler,
    DPMinMaxScaler,
    DPRobustScaler,
    DPSimpleImputer,
    DPStandardScaler,
)
from skdp.base import TableShape
from skdp.noise import RandomSource
from skdp.stats._bounds import BOUNDS_FRACTION, BoundsSearch, NormSearch, spaced_bins
from skdp.stats._moments import plan_moments
from tests._guarantees import meet


def spike(value, share, rest):
    def draw(rng, n):
        rare = np.arange(n) < share * n
        return np.where(rare, rest(rng, n), value)

    return draw


def ones(rng, n):
    return np.ones(n)


COLUMNS = {
    "constant 0": spike(0.0, 0.0, ones),
    "constant 7": spike(7.0, 0.0, ones),
    **{f"{share} of ones": spike(0.0, share, ones) for share in (0.5, 0.16, 0.03, 0.003)},
    "spike at 5": spike(5.0, 0.1, lambda rng, n: rng.normal(50.0, 10.0, n)),
    "spike at 0 in 1e12": spike(0.0, 0.1, lambda rng, n: rng.uniform(1e12, 2e12, n)),
    "spike at 0 in 1e-12": spike(0.0, 0.1, lambda rng, n: rng.uniform(1e-12, 2e-12, n)),
    "heavy tails": lambda rng, n: rng.standard_cauchy(n),
    "negative": lambda rng, n: -rng.lognormal(3.0, 1.0, n),
    "1e-12": lambda rng, n: rng.normal(1e-12, 1e-12, n),
    "1e12": lambda rng, n: rng.normal(1e12, 1e12, n),
}
FAST = [(name, 1000, 1.0, 2) for name in COLUMNS]
FULL = [(*case, 20) for case in itertools.product(COLUMNS, (300, 3000, 30_000), (0.1, 1.0, 10.0))]


def cases(fast, full):
    slow = [pytest.param(*case, marks=pytest.mark.slow) for case in full]
    return pytest.mark.parametrize(("name", "n", "epsilon", "n_fits"), [*fast, *slow])


def draw(name, n):
    return COLUMNS[name](np.random.default_rng(0), n)[:, None]


def stretch(x, low, high):
    """Bound how far a value is from any in the bounds, over half their width."""
    largest = max(abs(low), abs(high))
    inside = (x >= low) & (x <= high)
    return np.where(inside, 2.0, 32.0 * (np.abs(x) / largest + 1.0))


@cases(FAST, FULL)
def test_scales_are_as_large_as_noise_and_bounds_allow(name, n, epsilon, n_fits):
    """Derived in docs/theory/statistics.md, section 4, and docs/theory/encoders.md, section 3."""
    x = draw(name, n)
    rest = epsilon - BOUNDS_FRACTION * epsilon
    moments = plan_moments(TableShape(n_rows=n, n_columns=1), meet(rest), n_moments=2)
    floor = min(moments.mechanism.deviation(2) / n, 1 / 3) * (1 - 1e-9)
    for seed in range(n_fits):
        standard = DPStandardScaler(epsilon, random_state=seed).fit(x)
        low, high = (bound.item() for bound in standard.bounds_)
        # Bounds of nothing but zeros would have no unit.
        assert max(abs(low), abs(high)) >= 0.5 * np.min(np.abs(x[x != 0]), initial=2.0)
        assert np.all(np.abs(standard.transform(x)) <= stretch(x, low, high) / np.sqrt(floor))
        for scaler in (DPMinMaxScaler, DPMaxAbsScaler, DPRobustScaler):
            fitted = scaler(epsilon, random_state=seed).fit(x)
            ends = (bound.item() for bound in fitted.bounds_)
            assert np.all(np.abs(fitted.transform(x)) <= 2.0**20 * stretch(x, *ends))
    if "of ones" in name:
        # The value that is rare is within the bounds, seen or not.
        assert low <= 0.0 and high >= 1.0


@cases(FAST, FULL)
def test_what_many_rows_hold_is_within_the_bounds(name, n, epsilon, n_fits):
    """A bin with three times the threshold is missed with probability below 1e-11.

    Its noise would have to be below twice minus the threshold, which alone has 1e-4 / 401.
    """
    x = draw(name, n)
    plan = BoundsSearch(n_rows=n, guarantee=meet(BOUNDS_FRACTION * epsilon))
    held = np.zeros(x.shape, dtype=bool)
    for bits, threshold in ((plan._split_bits, plan.threshold), (0, plan.octave_threshold)):
        if bits or plan.splits == 1:
            bins = spaced_bins(x, bits)
            numbers, inverse, counts = np.unique(bins, return_inverse=True, return_counts=True)
            held |= ((counts >= 3 * threshold) & (numbers != 0))[inverse].reshape(x.shape)
    for seed in range(n_fits):
        low, high = plan.run(x, RandomSource(seed))
        assert np.all(((x >= low) & (x <= high))[held])


def counts_of(plan, column):
    middle = plan._n_bins(plan._split_bits) // 2 if plan.signed else 0
    bins = spaced_bins(column, plan._split_bits) + middle
    return np.bincount(bins, minlength=plan.size)[None]


def test_a_rare_rest_that_is_spread_is_seen():
    plan = BoundsSearch(n_rows=20_000, guarantee=meet(0.2))
    for sign in (1.0, -1.0):
        x = np.zeros(20_000)
        x[: int(4 * plan.threshold)] = sign * np.linspace(64, 127, int(4 * plan.threshold))
        low, high = (bound.item() for bound in plan.read(counts_of(plan, x)))
        assert plan.splits == 8 and counts_of(plan, x)[0, 1:].max() > 0
        assert max(sign * low, sign * high) == 128.0
    norms = NormSearch(n_rows=20_000, guarantee=meet(0.2))
    assert 120.0 <= norms.read(counts_of(norms, np.abs(x))[0]) <= 128.0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_ranges_are_seldom_taken_to_be_occupied_by_noise_alone(delta):
    """2 · 400 columns with 2e-4 each: more than 6 with probability below 1e-8."""
    found = 0
    for seed in (0, 1):
        plan = BoundsSearch(n_rows=10**7, guarantee=meet(100.0, delta), n_columns=400)
        noisy = plan.mechanism.release(np.zeros(plan.size, dtype=np.int64), random_state=seed)
        found += plan.occupied(noisy.reshape(400, -1)).any(axis=1).sum()
    assert plan.splits == 8 and found <= 6


def test_the_threshold_of_a_range_bounds_the_tail():
    """P(a sum of 8 counts' noise is above it) is at most that of Laplace noise, by its law."""
    plan = BoundsSearch(n_rows=10**6, guarantee=meet(0.5))
    b, s, x = plan.mechanism.scale, plan.splits, plan.octave_threshold
    rng = np.random.default_rng(0)
    # Given the sum of 8 exponential variables, importance sampling of Laplace sums by a tilt.
    t = 0.75 / b
    up, down = 1 / b - t, 1 / b + t
    signs = rng.random((200_000, s)) < down / (up + down)
    sums = np.where(
        signs, rng.exponential(1 / up, signs.shape), -rng.exponential(1 / down, signs.shape)
    ).sum(axis=1)
    weights = np.exp(-t * sums) / (1 - (b * t) ** 2) ** s
    estimate = np.mean(weights * (sums > x))
    assert s == 8 and 1e-9 < estimate <= 1e-4 / 401


def test_rows_of_zeros_do_not_make_the_norm():
    """Nearly all rows are 0: a norm of 2**-100 would make 1e30 of the coefficients."""
    rng = np.random.default_rng(0)
    X = np.zeros((3000, 2))
    X[:60] = rng.normal(size=(60, 2))
    y = rng.uniform(-1, 1, size=3000)
    model = DPLinearRegression(data_norm="auto", target_bounds=(-1, 1), random_state=0).fit(X, y)
    assert model.data_norm_ == 1.0
    assert np.abs(X @ model.coef_).max() < 1e3


def test_a_column_of_zeros_and_few_ones_is_imputed_within_units():
    x = (np.arange(3000) < 90).astype(float)[:, None]
    x[::7] = np.nan
    imputer = DPSimpleImputer(random_state=0).fit(x)
    assert imputer.bounds_[0] == -1.0 and imputer.bounds_[1] == 1.0
