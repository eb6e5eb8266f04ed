"""The second step of the search for bounds: its price, its sensitivity, and what it finds."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from skdp import DPAdditiveClassifier, DPMinMaxScaler, DPStandardScaler, PrivacyAccountant
from skdp.accounting import Gaussian, PureDP, get_epsilon
from skdp.base import TableShape
from skdp.mechanisms import GaussianMechanism
from skdp.noise import RandomSource
from skdp.stats import _refinement as module
from skdp.stats import estimate_bounds
from skdp.stats._bounds import BoundsSearch, _add_bins, plan_bounds
from skdp.stats._refinement import FIRST_CELLS, MAX_LEVELS, MIN_LEVELS, MIN_RELATIVE_WIDTH
from tests._guarantees import meet
from tests._private import collect_findings

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
        module._add_cells(cells, np.array([row]), None, narrow, low, high, n_cells)
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
    one_step, refinement = search.whole, search.refinement
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
            assert refinement.event == PureDP(refinement.share)
            assert n_levels * Fraction(get_epsilon(level.event, 0.0)) <= Fraction(refinement.share)


def test_rows_are_placed_by_themselves():
    x = narrow_columns(1000)["six hours"].astype(float)
    low, high = np.array([float(2**30)]), np.array([float(2**31)])

    def placed(rows, **options):
        cells = np.zeros(N_CELLS)
        args = np.array([0]), low, high, np.array([N_CELLS])
        module._add_cells(cells, np.asarray(rows, **options), None, *args)
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
    if isinstance(plan.whole, GaussianMechanism):
        sizes = [counts.size for counts, _ in released]
        levels = [mechanism for _, mechanism in released]
        scales = np.array([m.scale_for(size) for m, size in zip(levels, sizes, strict=True)])
        grids = np.array([m.grid_for(size) for m, size in zip(levels, sizes, strict=True)])
        distances = np.sqrt(moved) + grids * np.sqrt(sizes)
        assert np.sum((distances / scales) ** 2) <= 1 / refinement.event.noise_multiplier**2
    else:
        # Counts of rows are integers, which the geometric mechanism does not round.
        scales = np.array([mechanism.scale for _, mechanism in released])
        assert np.sum(moved / scales) <= refinement.share


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
