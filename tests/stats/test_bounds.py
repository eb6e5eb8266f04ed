"""Bounds that are found: bins, the second step of the search, and columns of one value."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from skdp import (
    DPAdditiveClassifier,
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPLinearRegression,
    DPMaxAbsScaler,
    DPMeanTransformer,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPRobustScaler,
    DPSimpleImputer,
    DPStandardScaler,
    PrivacyAccountant,
)
from skdp.accounting import Gaussian, Guarantee, PureDP, get_epsilon
from skdp.base import TableShape
from skdp.mechanisms import GaussianMechanism
from skdp.noise import RandomSource
from skdp.stats import _bounds, _refinement, estimate_bounds
from skdp.stats._bounds import (
    BOUNDS_FRACTION,
    FALLBACK,
    BoundsSearch,
    NormSearch,
    _add_bins,
    plan_bounds,
    plan_search,
    spaced_bins,
    spaced_edges,
)
from skdp.stats._moments import plan_moments
from skdp.stats._refinement import FIRST_CELLS, MAX_LEVELS, MIN_LEVELS, MIN_RELATIVE_WIDTH
from tests._attacks import attack_choices
from tests._guarantees import meet
from tests._private import NO_BOUNDS, QuantileTree, collect_findings

SMALLEST = 2.0**-100
LARGEST = 2.0**100
AUTOMATIC = [
    DPMeanTransformer(),
    DPStandardScaler(),
    DPRobustScaler(),
    DPHistogramTransformer(),
    DPKBinsDiscretizer(strategy="uniform"),
    DPSimpleImputer(),
    DPSimpleImputer(strategy="median"),
]


@pytest.mark.parametrize("bits", [0, 1, 3])
def test_bins_hold_what_lies_between_their_edges(bits):
    edges = spaced_edges(bits)
    assert edges[0] == SMALLEST and edges[-1] == LARGEST and np.all(np.diff(edges) > 0)
    k = np.minimum(np.arange(len(edges)) + 1, len(edges) - 1)
    np.testing.assert_array_equal(spaced_bins(edges, bits), k)
    np.testing.assert_array_equal(spaced_bins(-edges, bits), -k)
    np.testing.assert_array_equal(spaced_bins(np.nextafter(edges, 0), bits), np.arange(len(edges)))
    extremes = np.array([0.0, -0.0, 5e-324, 1e308, -1e308, np.inf])
    last = len(edges) - 1
    np.testing.assert_array_equal(spaced_bins(extremes, bits), [0, 0, 0, last, -last, last])


@pytest.mark.parametrize(("relation", "moved"), [("add_remove", 1), ("replace_one", 2)])
@pytest.mark.parametrize("d", [1, 3])
def test_brute_force_sensitivity(relation, moved, d, monkeypatch):
    rows = np.array(list(itertools.product([-3.0, 0.0, 1e-50, 5.0, 1e40], repeat=d)))
    plan = BoundsSearch(n_rows=10, guarantee=meet(1.0, 0.0, relation), n_columns=d)
    counts = []
    monkeypatch.setattr(
        type(plan.mechanism), "release", lambda self, values, **kw: counts.append(values) or values
    )
    for row in rows:
        plan._release(row[None], RandomSource(0), _bounds._add_bins)
    if relation == "add_remove":
        moves = counts
    else:
        moves = [a - b for a, b in itertools.combinations(counts, 2)]
    assert max(np.abs(move).sum() for move in moves) == plan.mechanism.sensitivity == moved * d


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("d", [1, 200])
def test_the_cost_is_what_was_asked_for(delta, relation, d):
    plan = plan_bounds(TableShape(n_rows=1000, n_columns=d), meet(0.7, delta, relation))
    assert get_epsilon(plan.event, delta, relation=relation) <= 0.7
    # Laplace noise is the smaller where a row moves one count.
    assert (plan.mechanism.mechanism.delta > 0) == (delta > 0 and plan.sensitivity > 1)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_counts_have_the_stated_noise(delta):
    plan = BoundsSearch(n_rows=100, guarantee=meet(1.0, delta), n_columns=20)
    noisy = plan._release(np.ones((100, 20)), RandomSource(0), _bounds._add_bins)
    exact = np.zeros(noisy.shape)
    exact[:, noisy.shape[1] // 2 + int(spaced_bins(np.ones(1), 0)[0])] = 100.0
    deviation = plan.mechanism.scale * (1.0 if plan.mechanism.delta else np.sqrt(2.0))
    # 8,000 values: the deviation is known to 1.3 %, and a tenth is more than seven of these.
    assert np.std(noisy - exact) == pytest.approx(deviation, rel=0.1)


def test_thresholds_are_seldom_exceeded_by_noise_alone():
    # 400 columns with 3201 empty bins and 1e-4 each: more than 4 with probability 1e-9.
    plan = BoundsSearch(n_rows=10**7, guarantee=meet(100.0), n_columns=400)
    assert plan.splits == 8
    noisy = plan.mechanism.release(np.zeros(plan.size, dtype=np.int64), random_state=0)
    assert np.sum(noisy.reshape(400, -1).max(axis=1) > plan.threshold) <= 4


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("n", [100, 10_000])
def test_bounds_hold_the_values_and_are_not_far(n, relation):
    X = np.random.default_rng(0).uniform([17, -300, 0.51], [90, -260, 0.99], size=(n, 3))
    plan = BoundsSearch(n_rows=n, guarantee=meet(30.0, 0.0, relation), n_columns=3)
    low, high = plan.run(X, RandomSource(0))
    inside = np.mean((X >= low) & (X <= high))
    assert inside > 0.95
    assert np.all(low >= [8, -512, 0.5]) and np.all(high <= [128, -128, 1])
    if n == 10_000:
        np.testing.assert_array_equal(low, [16, -320, 0.5])
        np.testing.assert_array_equal(high, [96, -256, 1])


@pytest.mark.parametrize("value", [0.0, -7.0, 1.0, 1e-300, 1e300])
@pytest.mark.parametrize("n", [100, 10**5])
def test_constants(value, n):
    plan = BoundsSearch(n_rows=n, guarantee=meet(1.0))
    low, high = plan.run(np.full((n, 1), value), RandomSource(0))
    assert low[0] < high[0]
    if abs(value) < LARGEST:
        assert low[0] <= value <= high[0]
    # A value below SMALLEST counts as 0, which has no unit. Beside 1 there may be rare zeros.
    assert high[0] - low[0] <= max(abs(value), 2.0 * (abs(value) < SMALLEST or value == 1.0))


def test_where_noise_hides_all_the_bounds_are_a_guess_that_is_reported():
    few = {"n_rows": 1, "guarantee": meet(1e-3)}
    plan = BoundsSearch(**few, n_columns=4)
    with collect_findings() as findings:
        low, high = plan.run(np.full((1, 4), 1e6), RandomSource(0))
    assert np.all(low < high) and np.isfinite([low, high]).all()
    assert findings == [(NO_BOUNDS, [0, 1, 2, 3])]
    assert NormSearch(**few).run(np.array([[5.0]]), RandomSource(0)) == FALLBACK


def test_zeros_alone_have_no_unit():
    x = np.zeros((1000, 1))
    x[:3] = 1e6
    with collect_findings() as findings:
        low, high = BoundsSearch(n_rows=1000, guarantee=meet(1.0)).run(x, RandomSource(0))
    assert (low[0], high[0]) == (-FALLBACK, FALLBACK) and findings == [(NO_BOUNDS, [0])]


# Columns of few rows, by name, and the fraction of their rows that bounds have to hold.
SMALL = {
    "ages": lambda rng, n: rng.integers(17, 56, n),
    "flags": lambda rng, n: rng.random(n) < 0.3,
    "mostly ones": lambda rng, n: rng.random(n) < 0.9,
    "wages": lambda rng, n: rng.lognormal(5, 0.8, n),
    "shares": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.normal(size=n),
    "codes": lambda rng, n: rng.choice([1, 2, 3], n, p=[0.3, 0.15, 0.55]),
    "below zero": lambda rng, n: -rng.integers(17, 56, n),
}


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("name", SMALL)
def test_columns_of_few_rows_are_held_where_no_bin_may_stand_out(name, delta):
    """Sums of several bins show them: 5 standard deviations of a count are a third of the rows."""
    rng, n, shares, widths = np.random.default_rng(0), 500, [], []
    for seed in range(20):
        x = SMALL[name](rng, n).astype(float)
        low, high = BoundsSearch(n_rows=n, guarantee=meet(0.05, delta)).run(
            x[:, None], RandomSource(seed)
        )
        shares.append(np.mean((x >= low[0]) & (x <= high[0])))
        widths.append((high[0] - low[0]) / (np.quantile(x, 0.98) - np.quantile(x, 0.02)))
    assert np.mean(shares) > 0.75
    assert np.median(widths) < 6.0


def test_low_bins_of_a_code_are_not_lost():
    """57 % of the rows stand out, and the others must not be clipped to them."""
    x = np.random.default_rng(0).choice([1.0, 2.0, 3.0], 3500, p=[0.3, 0.13, 0.57])
    for seed in range(20):
        low, high = BoundsSearch(n_rows=3500, guarantee=meet(0.02)).run(
            x[:, None], RandomSource(seed)
        )
        assert low[0] <= 1.0 and high[0] >= 3.0 and high[0] - low[0] < 40.0


def test_norms_cover_nearly_all_rows():
    norms = np.random.default_rng(0).gamma(9.0, size=20_000)
    plan = NormSearch(n_rows=20_000, guarantee=meet(0.2))
    bound = plan.run(norms[:, np.newaxis], RandomSource(0))
    assert 0.97 < np.mean(norms <= bound) < 1.0
    assert bound < 1.15 * np.quantile(norms, 0.98)


def test_far_rows_do_not_stretch_the_bounds():
    X = np.random.default_rng(0).uniform(1, 2, size=(10_000, 1))
    X[:5] = 1e30
    low, high = BoundsSearch(n_rows=10_000, guarantee=meet(1.0)).run(X, RandomSource(0))
    assert (low[0], high[0]) == (1.0, 2.0)


def test_a_bin_of_the_datas_own_is_caught(monkeypatch):
    # Bins that start at the least value seen: a row shifts the bins of all others.
    bins = _bounds.spaced_bins
    monkeypatch.setattr(_bounds, "spaced_bins", lambda x, bits: bins(x / np.abs(x).min(), bits))
    plan, counts = BoundsSearch(n_rows=3, guarantee=meet(1.0)), []
    monkeypatch.setattr(
        type(plan.mechanism), "release", lambda self, values, **kw: counts.append(values) or values
    )
    for rows in ([3.0, 5.0, 0.1], [3.0, 5.0]):
        plan._release(np.array(rows)[:, None], RandomSource(0), _bounds._add_bins)
    assert np.abs(counts[0] - counts[1]).sum() > plan.mechanism.sensitivity


@pytest.mark.parametrize(
    "options", [{"epsilon": 0.0}, {"delta": 1.0}, {"relation": "swap"}, {"n_rows": 0}]
)
def test_bad_parameters_are_refused(options):
    with pytest.raises(ValueError):
        n_rows = options.pop("n_rows", 10)
        BoundsSearch(n_rows=n_rows, guarantee=meet(**{"epsilon": 1.0} | options))


def test_a_search_takes_of_delta_only_where_that_helps():
    # With many columns Gaussian noise grows with the root of their number.
    for n_columns, helps in ((1, False), (10, True)):
        shape = TableShape(n_rows=1000, n_columns=n_columns)
        search, rest = plan_search(shape, meet(1.0, 1e-6))
        geometric, all_of_it = plan_search(shape, meet(1.0))
        is_lower = search.mechanism.threshold < geometric.mechanism.threshold
        assert (search.delta, is_lower) == (2e-7 * helps, helps)
        assert all_of_it.delta == 0.0 and all_of_it.epsilon == pytest.approx(0.8)
        assert Fraction(search.epsilon) + Fraction(rest.epsilon) <= 1
        assert Fraction(search.delta) + Fraction(rest.delta) <= Fraction(1e-6)
        assert rest.delta == pytest.approx(8e-7 if helps else 1e-6)
    assert plan_search(shape, meet(1.0, 1e-100, "replace_one"))[1].delta == 1e-100


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("transformer", AUTOMATIC, ids=str)
def test_a_search_with_part_of_delta_is_within_one_charge(transformer, relation):
    accountant = PrivacyAccountant(1.0, 1e-6, relation=relation)
    X = np.random.default_rng(0).uniform(size=(50, 12))
    transformer.set_params(epsilon=1.0, delta=1e-6, accountant=accountant).fit(X)
    assert [(s.epsilon, s.delta) for s in accountant.charges] == [(1.0, 1e-6)]


# Bounds and norms that are found for columns in which most rows hold one value.


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


# The second step of the search for bounds: its price, its sensitivity, and what it finds.


START = 1_717_200_000  # Seconds since 1970, in 2024.


# Resolution of the search relative to the magnitude of the values, also with few levels.
N_CELLS = 1 << 13


def bounds_of(X, epsilon=1.0, delta=0.0, seed=0, relation="add_remove"):
    guarantee = meet(epsilon, delta, relation)
    plan = BoundsSearch(n_rows=len(X), n_columns=X.shape[1], guarantee=guarantee)
    return plan.run(X, RandomSource(seed))


def narrow_columns(n, seed=0):
    """Return columns whose spread is small beside their size, by name."""
    rng = np.random.default_rng(seed)
    return {
        "six hours": START + rng.integers(0, 6 * 3600, n),
        "a day, normal": START + rng.normal(43_200, 10_000, n),
        "days of a week": 19_876.0 + rng.integers(0, 7, n),
        "a large offset": 1e9 + rng.normal(0, 1e3, n),
        "years": rng.integers(1950, 2025, n),
        "negative": -1e6 - rng.exponential(10.0, n),
        "across a power of two": 2.0**30 + rng.normal(0, 5e3, n),
    }


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("name", narrow_columns(1))
@pytest.mark.parametrize("seed", range(3))
def test_narrow_columns_are_followed(name, delta, seed):
    x = narrow_columns(50_000, seed)[name].astype(float)
    low, high = bounds_of(x[:, None], 2.0, delta, seed)
    assert np.mean((x >= low[0]) & (x < high[0])) > 0.97
    spread = np.quantile(x, 0.99) - np.quantile(x, 0.01)
    # A cell is 2**-13 of one or two of the first bins, which are up to half of the number.
    assert high[0] - low[0] <= 4.0 * spread + 4.0 * abs(x).max() / N_CELLS


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("seed", range(5))
def test_ordinary_columns_keep_their_bounds(seed, relation):
    rng, n = np.random.default_rng(seed), 20_000
    X = np.column_stack(
        [
            rng.integers(17, 90, n),
            rng.lognormal(3, 1, n),
            rng.normal(0, 1, n),
            rng.uniform(0.51, 0.99, n),
            rng.uniform(0, 1, n),
            rng.random(n) < 0.1,
        ]
    ).astype(float)
    plan = BoundsSearch(n_rows=n, n_columns=6, guarantee=meet(2.0, 0.0, relation))
    source = RandomSource(seed)
    first = plan.read(plan._release(X, source, _add_bins))
    low, high = plan.run(X, RandomSource(seed))
    np.testing.assert_array_equal(low, first[0])
    np.testing.assert_array_equal(high, first[1])


@pytest.mark.parametrize(("relation", "moved"), [("add_remove", 1), ("replace_one", 2)])
@pytest.mark.parametrize("n_narrow", [1, 2])
@pytest.mark.parametrize("n_levels", [MIN_LEVELS, MAX_LEVELS])
def test_brute_force_sensitivity_of_the_cells(relation, moved, n_narrow, n_levels):
    values = [np.nan, -np.inf, 0.0, 8.0, np.nextafter(16.0, 0), 16.0, 11.3, 1e308, 12.5]
    low, high = np.full(n_narrow, 8.0), np.full(n_narrow, 16.0)
    # Columns may have different numbers of cells, of which two at most are next to each other.
    n_cells = np.array([FIRST_CELLS, 37])[:n_narrow]
    narrow, counts = np.arange(n_narrow), []
    for row in itertools.product(values, repeat=n_narrow):
        cells = np.zeros(n_cells.sum())
        _refinement._add_cells(cells, np.array([row]), None, narrow, low, high, n_cells)
        counts.append(cells)
    moves = counts if relation == "add_remove" else [a - b for a in counts for b in counts[3::4]]
    for delta in (0.0, 1e-6):
        plan = BoundsSearch(n_rows=10, n_columns=20, guarantee=meet(1.0, delta, relation))
        mechanism = plan.refinement.mechanism(n_narrow, n_levels)
        norm = 2 if isinstance(mechanism, GaussianMechanism) else 1
        most = max(np.linalg.norm(move, norm) for move in moves)
        assert most == pytest.approx((moved * n_narrow) ** (1 / norm))
        assert most <= mechanism.sensitivity <= most * (1 + 1e-12)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("n_columns", [1, 40])
def test_the_price_is_the_same_for_every_number_of_narrow_columns(delta, relation, n_columns):
    shape = TableShape(n_rows=100, n_columns=n_columns)
    plan = plan_bounds(shape, meet(0.7, delta, relation))
    assert get_epsilon(plan.event, delta, relation=relation) <= 0.7
    search = plan.mechanism
    one_step, refinement = search.one_step_mechanism, search.refinement
    for n_narrow in {1, n_columns}:
        n_levels = int(refinement.n_levels(n_narrow))
        level = refinement.mechanism(n_narrow, n_levels)
        if isinstance(one_step, GaussianMechanism):
            assert isinstance(refinement.event, Gaussian)
            levels = [1 / level.noise_multiplier**2] * n_levels
            assert math.fsum(levels) <= 1 / refinement.event.noise_multiplier**2
            first_step = 1 / search.mechanism.noise_multiplier**2
            assert math.fsum([first_step, *levels]) <= 1 / one_step.noise_multiplier**2
        else:
            assert refinement.event == PureDP(refinement.epsilon)
            assert n_levels * Fraction(get_epsilon(level.event, 0.0)) <= Fraction(
                refinement.epsilon
            )


def test_rows_are_placed_by_themselves():
    x = narrow_columns(1000)["six hours"].astype(float)
    low, high = np.array([float(2**30)]), np.array([float(2**31)])

    def placed(rows, **options):
        cells = np.zeros(N_CELLS)
        args = np.array([0]), low, high, np.array([N_CELLS])
        _refinement._add_cells(cells, np.asarray(rows, **options), None, *args)
        return cells

    together = placed(x[:, None], order="F")
    assert np.array_equal(together, sum(placed(row[None, None]) for row in x))
    # A cell holds its lower edge.
    width = (high[0] - low[0]) / N_CELLS
    for k in (0, 1, 77, N_CELLS - 1):
        assert placed([[low[0] + k * width]]).argmax() == k
        assert placed([[np.nextafter(low[0] + (k + 1) * width, 0)]]).argmax() == k


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_levels_cost_what_was_planned_with_the_rounding_of_each(monkeypatch, relation, delta):
    """The counts of a level are rounded to a grid, which can move them further apart."""
    plan = BoundsSearch(n_rows=50_000, n_columns=3, guarantee=meet(1.0, delta, relation))
    refinement, released = plan.refinement, []

    def release(self, values, **kwargs):
        released.append((np.array(values), self))
        return values

    monkeypatch.setattr(type(refinement.mechanism(1, 1)), "release", release)
    # One column is at one value, one is narrow, and the last one fills its bounds.
    X = np.column_stack(
        [np.full(50_000, 11.0), np.linspace(9.0, 9.01, 50_000), np.linspace(8, 16, 50_000)]
    )
    ends = np.full(3, 8.0), np.full(3, 16.0), np.full(3, 50_000.0), np.ones(3)
    refinement.run(X, *ends, RandomSource(0))
    n_followed = [round(counts.sum() / 50_000) for counts, _ in released]
    assert n_followed[0] == 3 and n_followed[-1] == 1 and len(released) <= refinement.n_levels(3)
    # The price of a level is its movement in units of the noise; their sum is the whole price.
    moved = np.array(n_followed) * (2 if relation == "replace_one" else 1)
    if isinstance(plan.one_step_mechanism, GaussianMechanism):
        sizes = [counts.size for counts, _ in released]
        levels = [mechanism for _, mechanism in released]
        scales = np.array([m.scale_for(size) for m, size in zip(levels, sizes, strict=True)])
        grids = np.array([m.grid_for(size) for m, size in zip(levels, sizes, strict=True)])
        distances = np.sqrt(moved) + grids * np.sqrt(sizes)
        assert np.sum((distances / scales) ** 2) <= 1 / refinement.event.noise_multiplier**2
    else:
        # Counts of rows are integers, which the geometric mechanism does not round.
        scales = np.array([mechanism.scale for _, mechanism in released])
        assert np.sum(moved / scales) <= refinement.epsilon


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("n_columns", [1, 7, 400])
def test_the_stage_names_the_largest_noise(delta, n_columns):
    guarantee = meet(1.0, delta)
    for n_rows in (100, 5000, 100_000):
        plan = BoundsSearch(n_rows=n_rows, n_columns=n_columns, guarantee=guarantee).refinement
        scales = [plan.mechanism(k, int(plan.n_levels(k))).scale for k in range(1, n_columns + 1)]
        assert plan.stage.scale == pytest.approx(max(scales))


def search_of(places, epsilon, seed=0, n_cells=N_CELLS):
    """Return the refined bounds of one column of integers from 0 to `n_cells` - 1."""
    n = len(places)
    refinement = BoundsSearch(n_rows=n, guarantee=meet(epsilon)).refinement
    ends = np.array([0.0]), np.array([float(n_cells)]), np.array([float(n)]), np.array([0.0])
    X = np.asarray(places, dtype=float)[:, None]
    return refinement.run(X, *ends, RandomSource(seed))[0]


@pytest.mark.parametrize("epsilon", [0.05, 0.2, 1.0])
def test_noise_does_not_narrow_a_column_that_fills_its_bin(epsilon):
    rng = np.random.default_rng(0)
    for seed in range(50):
        assert not search_of(rng.integers(0, N_CELLS, 2_000), epsilon, seed).is_finer


def test_tails_that_do_not_stand_out_are_held():
    rng = np.random.default_rng(0)
    for seed in range(20):
        places = np.clip(4000 + 60 * rng.standard_t(2, size=20_000), 0, N_CELLS - 1).astype(int)
        found = search_of(places, 1.0, seed)
        # A quarter of the cells of the first level, and one more at each end.
        assert found.is_finer and found.high - found.low <= N_CELLS * (1 / 4 + 2 / FIRST_CELLS)
        assert np.mean((places >= found.low) & (places < found.high)) > 0.95


def test_a_single_value_is_reported_and_keeps_coarse_cells():
    """A value may be a code whose rare other values would be huge if they were scaled finely."""
    for seed in range(20):
        found = search_of(np.full(20_000, 11), 10.0, seed, n_cells=16)
        assert found.is_finer and not found.is_seen
        assert found.high - found.low >= 2.0**-13 * 16


def test_no_noise_is_no_error():
    for epsilon in (1e9, 1e12):
        x = 1e12 + np.random.default_rng(0).integers(0, 999, 1000).astype(float)
        low, high = bounds_of(x[:, None], epsilon)
        assert low[0] <= 1e12 and 1e12 + 998 <= high[0] <= low[0] + 5000


def test_doubles_resolve_the_bounds():
    """Otherwise bins or grid points that are chosen after the charge could not be computed."""
    for spread in (0.0, 1.0, 50.0, 1e3):
        x = 1e15 + spread * np.random.default_rng(0).random(20_000)
        low, high = bounds_of(x[:, None], 100.0)
        assert high[0] - low[0] >= MIN_RELATIVE_WIDTH * 1e15


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("n", [500, 1000, 2000, 4000])
def test_narrow_columns_are_followed_or_reported(n):
    """On few rows, too, where noise may hide them."""
    lost = []
    silent = []
    names = list(narrow_columns(1))
    for name, seed in itertools.product(names, range(20)):
        x = narrow_columns(n, seed)[name].astype(float)
        plan = BoundsSearch(n_rows=n, n_columns=1, guarantee=meet(0.2))
        with collect_findings() as findings:
            low, high = plan.run(x[:, None], RandomSource(seed))
        is_held = np.mean((x >= low[0]) & (x <= high[0])) > 0.9
        spread = np.quantile(x, 0.99) - np.quantile(x, 0.01)
        is_held &= high[0] - low[0] <= 20.0 * (spread + abs(x).max() / N_CELLS)
        if not is_held:
            lost.append((name, seed))
            if not findings:
                silent.append((name, seed))
    n_searches = 20 * len(names)
    assert len(silent) <= 0.02 * n_searches, silent
    if n >= 2000:
        assert len(lost) <= 0.1 * n_searches, lost


@pytest.mark.parametrize("value", [1.0, -1.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_rare_zeros_of_a_flag_stay_apart(value, delta):
    x = value * (np.random.default_rng(0).random(1900) < 0.95)
    for seed in range(20):
        low, high = bounds_of(x[:, None], 0.2, delta, seed)
        assert high[0] - low[0] >= 1.0 and high[0] - low[0] <= 4.0
        assert low[0] <= 0.0 <= high[0] and low[0] <= value <= high[0]


def test_a_column_with_gaps_is_followed_by_models():
    rng, n = np.random.default_rng(0), 20_000
    seconds = rng.integers(0, 6 * 3600, n)
    y = seconds > 3 * 3600
    X = pd.DataFrame({"t": START + seconds}).mask(rng.random((n, 1)) < 0.1)
    scores = DPAdditiveClassifier(10.0, delta=1e-6).fit(X, y).decision_function(X)
    assert roc_auc_score(y, scores) > 0.9


@pytest.mark.parametrize("kind", [DPStandardScaler, DPMinMaxScaler])
def test_scalers_follow_narrow_columns_within_one_charge(kind):
    accountant = PrivacyAccountant(2.0, 1e-6)
    X = START + np.random.default_rng(0).integers(0, 86_400, (50_000, 1)).astype(float)
    scaler = kind(2.0, accountant=accountant).fit(X)
    assert len(accountant.charges) == 1 and accountant.epsilon_spent == 2.0
    assert np.ptp(scaler.bounds_) < 4 * 86_400 + 2**30 / N_CELLS * 4
    # The values of one day, uniform, within bounds of at most ten days.
    assert 1 / (10 * np.sqrt(12)) * 0.9 < np.std(scaler.transform(X)) < 3.0


def test_the_low_end_of_columns_with_zeros_is_zero():
    x = np.random.default_rng(0).integers(0, 20, 10_000).astype(float)
    assert estimate_bounds(x, 10.0, random_state=0)[0] == 0.0
    assert estimate_bounds(-x, 10.0, random_state=0)[1] == 0.0
    assert not np.signbit(estimate_bounds(x, 10.0, random_state=0)[0])


# Attacks on what is released of columns.


def standard(epsilon, X):
    return DPStandardScaler(epsilon, bounds=(-1, 1), with_std=False).fit(X).mean_[0] > 0.25


def onehot(epsilon, X):
    encoder = DPOneHotEncoder(epsilon, categories=[0, 1], min_frequency=1).fit(X)
    return encoder.counts_[0][1] > 0.5


def quantiles(wanted):
    """The middle one of some quantiles of two rows, of which one may be the null row."""

    def call(epsilon, X):
        guarantee = Guarantee(epsilon=epsilon)
        tree = QuantileTree(quantiles=wanted, n_columns=1, n_rows=2, guarantee=guarantee)
        released = tree.run(np.array(X), RandomSource(), low=np.zeros(1), high=np.ones(1))
        return released[len(wanted) // 2, 0] < 0.5

    return call


def bounds(epsilon, X):
    claimed, made = (
        BoundsSearch(n_rows=24, guarantee=Guarantee(epsilon=each)) for each in (1.0, epsilon)
    )
    return claimed.read(made._release(np.array(X), RandomSource(), _add_bins))[1][0] > 1.0


# What an attacker sees of a release, and two neighbors. A value in the middle of the bounds, one
# that is not declared or 0 among the bounds' bins adds nothing to what is looked at.
ATTACKED = [
    (standard, [[0.0], [1.0]], [[0.0], [0.0]]),
    (onehot, [[0], [1]], [[0], [7]]),
    (quantiles((0.0, 0.5, 1.0)), [[0.5], [1.0]], [[0.5]]),
    (quantiles((0.5,)), [[0.5], [1.0]], [[0.5]]),
    # Seven values of 24 rows stand out of the noise at epsilon = 1, and six do not.
    (bounds, [[40.0]] * 7 + [[0.0]] * 17, [[40.0]] * 6 + [[0.0]] * 18),
]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("seen", "one", "other"), ATTACKED, ids=["standard", "onehot", "minmax", "quantile", "bounds"]
)
def test_a_distinguisher_certifies_no_more_than_epsilon_and_finds_less_noise(seen, one, other):
    # A copy that calibrates its noise to 20 while it claims 1 is caught. Confidence 1 - 1e-6.
    def certified(epsilon):
        outputs = (np.array([int(seen(epsilon, X)) for _ in range(400)]) for X in (one, other))
        return attack_choices(*outputs, confidence=1 - 1e-6)

    assert certified(1.0) <= 1.0
    assert certified(20.0) > 1.0
