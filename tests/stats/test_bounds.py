import itertools
from fractions import Fraction

import numpy as np
import pytest

from skdp import (
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPMeanTransformer,
    DPRobustScaler,
    DPSimpleImputer,
    DPStandardScaler,
    PrivacyAccountant,
)
from skdp.accounting import get_epsilon
from skdp.base import TableShape
from skdp.noise import RandomSource
from skdp.stats import _bounds as module
from skdp.stats._bounds import (
    FALLBACK,
    BoundsSearch,
    NormSearch,
    plan_bounds,
    plan_search,
    spaced_bins,
    spaced_edges,
)
from tests._guarantees import meet
from tests._private import NO_BOUNDS, collect_findings

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
        plan._release(row[None], RandomSource(0), module._add_bins)
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
    noisy = plan._release(np.ones((100, 20)), RandomSource(0), module._add_bins)
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
    bins = module.spaced_bins
    monkeypatch.setattr(module, "spaced_bins", lambda x, bits: bins(x / np.abs(x).min(), bits))
    plan, counts = BoundsSearch(n_rows=3, guarantee=meet(1.0)), []
    monkeypatch.setattr(
        type(plan.mechanism), "release", lambda self, values, **kw: counts.append(values) or values
    )
    for rows in ([3.0, 5.0, 0.1], [3.0, 5.0]):
        plan._release(np.array(rows)[:, None], RandomSource(0), module._add_bins)
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
