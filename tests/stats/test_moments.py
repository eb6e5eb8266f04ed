"""Moments, sums and histograms: what one row moves in the sums that are released."""

import itertools
import math
import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from scipy import stats

from skdp import DPPCA, DPStandardScaler
from skdp.accounting import Guarantee, Neighbors
from skdp.base import TableShape
from skdp.noise import RandomSource
from skdp.stats import _moments, expected_error
from skdp.stats._moments import (
    SENSITIVITY,
    _centered_sums,
    bin_edges,
    plan_histogram,
    plan_mode,
    plan_moments,
    plan_nonzero_counts,
    plan_sums,
)
from skdp.stats._quantiles import plan_quantiles
from skdp.stats._release import plan_within_bounds
from skdp.stats._second_moment import plan_covariance
from skdp.stats._tables import nearest_counts, plan_crosstab
from tests._attacks import attack_choices
from tests._guarantees import meet
from tests._private import (
    MEAN_WEIGHT,
    BoundsSearch,
    SecondMoment,
    _second_moment,
    collect_findings,
    pack_symmetric,
    read_persons,
    second_moment_sensitivity,
)


@pytest.mark.parametrize("n_moments", [1, 2])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_brute_force_sensitivity(relation, n_moments):
    grid = np.linspace(-1.2, 1.2, 121)[:, None]
    rows = [_centered_sums(row[None], -1.0, 1.0, n_moments)[:, 0] for row in grid]
    # One row's sums hold u^2 - 1/2; a missing row contributes nothing.
    if relation == "add_remove":
        moves = rows
    else:
        moves = [a - b for a, b in itertools.combinations(rows, 2)]
    l1, l2 = SENSITIVITY[relation, n_moments]
    largest_l1 = max(np.abs(move).sum() for move in moves)
    largest_l2 = max(np.linalg.norm(move) for move in moves)
    assert 0.999 * l1 < largest_l1 <= l1 * (1 + 1e-12)
    assert 0.999 * l2 < largest_l2 <= l2 * (1 + 1e-12)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_sensitivity_grows_with_the_features(relation, delta):
    l1, l2 = SENSITIVITY[relation, 2]
    for d in (1, 10):
        shape = TableShape(n_rows=1000, n_columns=d)
        plan = plan_moments(shape, meet(1.0, delta, relation), n_moments=2)
        expected = l1 * d if delta == 0.0 else l2 * math.sqrt(d)
        assert expected < plan.sensitivity < expected * (1 + 1e-6)


# Sums, counts and histograms.


RELATIONS = ["add_remove", "replace_one"]


@pytest.mark.parametrize("relation", RELATIONS)
def test_brute_force_sensitivity_of_counts(relation):
    rows = np.array([[0.1, 0.1], [0.9, 0.1], [0.9, 0.9], [5.0, 0.1], [5.0, 5.0]])
    shape, bins = TableShape(n_rows=1, n_columns=2), (2, 2)
    edges = bin_edges(np.zeros(2), np.ones(2), bins)
    for joint in (False, True):
        plan = plan_histogram(shape, meet(1.0, 0.0, relation), bins=bins, joint=joint)
        count = _moments.count_cells if joint else _moments.count_bins
        counts = [np.concatenate(count(row[None], edges), axis=None) for row in rows]
        moves = counts
        if relation == "replace_one":
            moves = [a - b for a, b in itertools.combinations(counts, 2)]
        assert max(np.abs(move).sum() for move in moves) == plan.sensitivity
    columns = TableShape(n_rows=1, n_columns=3)
    assert plan_nonzero_counts(columns, meet(1.0)).sensitivity == 3


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-3.0, 1.0), (17.0, 90.0)])
def test_brute_force_sensitivity_of_sums(relation, bounds, monkeypatch):
    ends = dict(zip(("low", "high"), (np.array([b]) for b in bounds), strict=True))
    guarantee, released = meet(1.0, 0.0, relation), []
    plan = plan_sums(TableShape(n_rows=7, n_columns=1), guarantee)

    def kept(self, sums, **_):
        released.append(sums)
        return sums

    monkeypatch.setattr(type(plan.mechanism), "release", kept)
    base = np.random.default_rng(0).uniform(*bounds, size=6)
    values = [-1e9, *bounds, sum(bounds) / 2, 0.0, 1e9]
    for value in values:
        plan.run(np.append(base, value)[:, None], None, **ends)
    if relation == "add_remove":
        plan.run(base[:, None], None, **ends)
        moves = [abs(x - released[-1])[0] for x in released]
    else:
        moves = [abs(x - y)[0] for x, y in itertools.combinations(released, 2)]
    assert 0.999 * plan.sensitivity < max(moves) <= plan.sensitivity


def errors(call, truth, runs=1000):
    return np.abs(np.array([call() for _ in range(runs)]) - truth)


@pytest.mark.quick_cases(every=20)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("statistic", ["mean", "sum", "var", "count", "histogram"])
def test_errors_are_the_expected_ones(statistic, delta, relation):
    # Far from where results are clipped. Five standard errors: a false alarm in 1e6 runs.
    n, d, bounds, source = 1000, 2, (-1.0, 3.0), RandomSource(0)
    X = np.tile(np.linspace(-0.9, 2.9, n)[:, None], d)
    low, high = np.full(d, -1.0), np.full(d, 3.0)
    settings = TableShape(n_rows=n, n_columns=d), meet(2.0, delta, relation)
    ends = {} if statistic == "count" else {"low": low, "high": high}
    plan, truth = {
        "mean": (plan_moments(*settings), X.mean(axis=0)),
        "var": (plan_moments(*settings, n_moments=2), X.var(axis=0)),
        "sum": (plan_sums(*settings), X.sum(axis=0)),
        "count": (plan_nonzero_counts(*settings), [n, n]),
        "histogram": (plan_histogram(*settings, bins=(1, 1)), [n, n]),
    }[statistic]

    def call():
        found = plan.run(X, source, **ends)
        if statistic in ("mean", "var"):
            found = found[statistic == "var"]
        return [x[0] for x in found[0]] if statistic == "histogram" else found

    found = errors(call, truth).ravel()
    options = {"delta": delta, "bounds": bounds, "n_columns": d, "relation": relation}
    expected = expected_error(statistic, n, 2.0, **options)
    # Rounded Gaussian noise on a count of scale above 1 is as large as its unrounded law.
    assert abs(found.mean() - expected) <= 5 * found.std() / np.sqrt(found.size) + 1e-3 * expected


def released_counts(relation, rows, n, sensitivity=None):
    shape = TableShape(n_rows=len(rows), n_columns=1)
    mechanism = plan_histogram(shape, meet(1.0, 0.0, relation), bins=(2,)).mechanism
    if sensitivity is not None:
        mechanism = type(mechanism)(1.0, sensitivity)
    counts = np.histogram(rows, 2, (0, 1))[0]
    noisy = mechanism.release(np.tile(counts, (n, 1)), random_state=len(rows) + int(sum(rows) * 8))
    # Which side of the middle each count is on.
    return (noisy[:, 0] > 2) * 2 + (noisy[:, 1] > 2)


def test_a_distinguisher_finds_a_dropped_factor_of_replace_one():
    # Confidence 1 - 1e-6.
    one, other, n = [0.1] * 3 + [0.9] * 2, [0.1] * 2 + [0.9] * 3, 50_000
    kept = [released_counts("replace_one", rows, n) for rows in (one, other)]
    assert attack_choices(*kept, confidence=1 - 1e-6) <= 1.0
    dropped = [released_counts("replace_one", rows, n, sensitivity=1) for rows in (one, other)]
    assert attack_choices(*dropped, confidence=1 - 1e-6) > 1.0


@pytest.mark.parametrize(
    "make_plan",
    [
        plan_moments,
        plan_sums,
        plan_nonzero_counts,
        partial(plan_histogram, bins=(2, 3)),
        partial(plan_quantiles, quantiles=[0.5]),
        partial(plan_within_bounds, plan_moments, (0.0, 1.0)),
        partial(plan_within_bounds, plan_moments, "auto"),
    ],
)
def test_a_plan_is_a_value(make_plan):
    plan = make_plan(TableShape(n_rows=100, n_columns=2), meet(1.0, 1e-6))
    again = pickle.loads(pickle.dumps(plan))
    assert (again.event, again.stages, again.epsilon) == (plan.event, plan.stages, plan.epsilon)


def test_bounds_reach_the_run_of_a_plan_only():
    """So no cost can depend on them: all declared bounds have the same plan."""
    shape, guarantee = TableShape(n_rows=100, n_columns=2), meet(1.0, 1e-6)
    plans = [
        plan_within_bounds(plan_moments, bounds, shape, guarantee)
        for bounds in ((0.0, 1.0), (-1e6, 1e6))
    ]
    assert plans[0] == plans[1]


# Statistics of several columns, and of columns with gaps.


def gappy(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform([0.0, -3.0], [1.0, 5.0], size=(n, 2))
    X[rng.uniform(size=X.shape) < [0.3, 0.6]] = np.nan
    return X


def moves(sums_of, rows, relation, base, order):
    """How far the sums of a table move where a row is added, or replaced by another."""
    found = [sums_of(np.vstack([base, row])) for row in rows]
    others = found if relation == "replace_one" else [sums_of(base)]
    return max(np.linalg.norm(np.ravel(a - b), order) for a in found for b in others)


@pytest.mark.parametrize("n_moments", [1, 2])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", RELATIONS)
def test_brute_force_sensitivity_of_moments_with_gaps(relation, delta, n_moments):
    low, high = np.zeros(2), np.full(2, 2.0)
    shape = TableShape(n_rows=21, n_columns=2)
    plan = plan_moments(shape, meet(1.0, delta, relation), n_moments=n_moments, counted=True)

    def sums_of(X):
        return _moments._centered_sums(X, low, high, n_moments, None, True)

    rows = itertools.product((-9.0, 1.0, 2.0, np.nan), repeat=2)
    moved = moves(sums_of, [*rows], relation, gappy(20), 2 if delta else 1)
    assert 0.999 * plan.mechanism.sensitivity < moved <= plan.mechanism.sensitivity


@pytest.mark.parametrize("relation", RELATIONS)
def test_brute_force_sensitivity_of_covariances(relation, monkeypatch):
    seen, low, high = [], np.array([0.0, -5.0]), np.array([2.0, 5.0])
    plan = plan_covariance(TableShape(n_rows=21, n_columns=2), meet(1.0, 1e-6, relation))

    def kept(self, sums, **_):
        seen.append(sums)
        return sums

    def sums_of(X):
        plan.run(X, RandomSource(0), low=low, high=high)
        return seen.pop()

    monkeypatch.setattr(type(plan.mechanism), "release", kept)
    rows = [*itertools.product((-99.0, 1.0, 2.0), (-5.0, 0.0, 99.0))]
    base = np.random.default_rng(0).uniform(low, high, (20, 2))
    moved = moves(sums_of, rows, relation, base, 2)
    assert 0.9 * plan.mechanism.sensitivity < moved <= plan.mechanism.sensitivity


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_row_is_in_one_cell_of_any_number_of_columns(relation):
    bins = (np.arange(3.0),) * 3
    shape = TableShape(n_rows=5, n_columns=3)
    plan = plan_histogram(shape, meet(1.0, 0.0, relation), bins=bins, joint=True)

    def counts_of(X):
        return _moments.count_cells(X, bins)

    rows = [*itertools.product((0.5, 1.5, 9.0), repeat=3)]
    moved = moves(counts_of, rows, relation, np.full((4, 3), 0.5), 1)
    assert moved == plan.mechanism.sensitivity == (1 if relation == "add_remove" else 2)


def test_a_crosstab_is_made_of_its_release_alone(monkeypatch):
    """And of the number of persons, whatever number of rows they have."""
    noisy, seen = np.array([[3.0, -2.0, 30.0], [0.5, 1.0, 2.0]]), []

    def released(mechanism, counts, source):
        seen.append((mechanism, counts))
        return noisy

    monkeypatch.setattr(_moments, "release_counts", released)
    bins = (np.arange(3) - 0.5, np.arange(4) - 0.5)
    shape = TableShape(n_rows=10, n_columns=2)
    plan = plan_crosstab(shape, meet(1.0, unit="person"), bins=bins)
    rows = np.random.default_rng(0).integers(0, 2, (400, 2)).astype(float)
    found = plan.run(rows, None, read_persons(np.arange(400) % 10, 400))
    np.testing.assert_array_equal(found, nearest_counts(noisy, 10))
    assert found.sum() == 10
    ((mechanism, counts),) = seen
    # A cell for each pair of labels, and shares of persons in place of rows.
    assert mechanism is plan.mechanism and counts.shape == (2, 3)
    assert counts.sum() == pytest.approx(10.0)


def test_nearest_counts():
    rng = np.random.default_rng(0)
    for _ in range(200):
        noisy = rng.integers(-30, 60, (3, 4))
        counts = nearest_counts(noisy, 250)
        assert counts.sum() == np.clip(noisy.sum(), 0, 250) and counts.min() >= 0
        # All that are above 0 were lowered by the same, the others by less, but for rounding.
        lowered = noisy - counts
        most = lowered[counts > 0]
        assert most.size == 0 or np.ptp(most) <= 1
        assert most.size == 0 or lowered[counts == 0].max(initial=-99) <= most.min() + 1
    np.testing.assert_array_equal(nearest_counts(np.array([3, 0, 4]), 7), [3, 0, 4])


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_law_of_the_mode_is_bounded(relation):
    """The chances of each answer with two neighbors, by permute-and-flip's exact law."""
    epsilon = 1.0
    plan = plan_mode(None, meet(epsilon, 0.0, relation), n_categories=2)
    codes, other = np.repeat([0, 1], [4, 3]), np.repeat([0, 1], [4, 4])
    if relation == "replace_one":
        other = np.repeat([0, 1], [3, 4])
    source, n = RandomSource(1), 1500
    shares = [np.mean([plan.run(c, source) for _ in range(n)]) for c in (codes, other)]
    # Of two candidates the worse is chosen with half of exp(-gap / scale).
    scale = (1.0 if relation == "add_remove" else 2.0) / epsilon
    tolerance = 4.5 * math.sqrt(0.25 / n)
    assert abs(shares[0] - 0.5 * math.exp(-1.0 / scale)) < tolerance
    expected = 0.5 if relation == "add_remove" else 1.0 - 0.5 * math.exp(-1.0 / scale)
    assert abs(shares[1] - expected) < tolerance


def test_a_person_counts_as_a_row_for_the_mode(monkeypatch):
    seen = []
    plan = plan_mode(None, meet(1.0, unit="person"), n_categories=2)
    monkeypatch.setattr(
        type(plan.mechanism), "release", lambda self, counts, random_state: seen.append(counts)
    )
    codes, ids = np.array([0, 0, 1, -1, 1, 1]), np.array([0, 0, 0, 0, 1, 1])
    plan.run(codes, RandomSource(0), read_persons(ids, 6))
    np.testing.assert_allclose(seen[0], [0.5, 1.25])


# Second moments.


def plan(shape, *, with_mean=True, relation="add_remove", epsilon=1.0, delta=1e-6):
    neighbors = Neighbors(relation=relation)
    guarantee = Guarantee(epsilon=epsilon, delta=delta, neighbors=neighbors)
    n_rows, n_columns = shape
    constant = MEAN_WEIGHT if with_mean else 0.0
    return SecondMoment(guarantee=guarantee, n_rows=n_rows, n_columns=n_columns, constant=constant)


def largest_move(relation, with_mean, step=15):
    """The largest distance of neighbors' statistics, over rows of the plane (and beyond)."""
    angles = np.radians(np.arange(0, 360, step))
    rows = [r * np.array([np.cos(a), np.sin(a)]) for r in (0.3, 0.7, 1.0, 3.0) for a in angles]
    vectors = [plan((1, 2), with_mean=with_mean).statistics(row[None]) for row in rows]
    if relation == "add_remove":
        return max(np.linalg.norm(vector) for vector in vectors)
    return max(np.linalg.norm(a - b) for a, b in itertools.combinations(vectors, 2))


@pytest.mark.parametrize("with_mean", [True, False])
@pytest.mark.parametrize("relation", RELATIONS)
def test_brute_force_sensitivity_of_second_moments(relation, with_mean):
    claimed = plan((1, 2), with_mean=with_mean, relation=relation).mechanism.sensitivity
    assert 0.999 * claimed < largest_move(relation, with_mean) <= claimed


def test_brute_force_catches_a_constant_forgotten_and_one_relation_for_both(monkeypatch):
    assert largest_move("add_remove", True) > second_moment_sensitivity(0.0, "add_remove")
    assert largest_move("replace_one", True) > second_moment_sensitivity(MEAN_WEIGHT, "add_remove")
    monkeypatch.setattr(_second_moment, "clip_rows", lambda X, norm: X)
    assert largest_move("add_remove", False) > second_moment_sensitivity(0.0, "add_remove")


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_noise_has_the_stated_law(delta):
    d, n = 12, 50
    planned = plan((n, d), delta=delta)
    released = []
    for _ in range(40):
        mean, covariance = planned.release(np.zeros((n, d)), None)
        second = covariance * (n - 1) + n * np.outer(mean, mean)
        released.append(pack_symmetric(second))
    noise = np.concatenate(released)
    if delta == 0.0:
        # The norm is Gamma(size)-distributed, a direction uniform: near enough normal.
        law = stats.norm(scale=planned.mechanism.scale * math.sqrt(planned.size))
        assert 0.9 < noise.std() / law.std() < 1.1
    else:
        # A false alarm in 1e6 runs.
        assert stats.kstest(noise, stats.norm(scale=planned.mechanism.scale).cdf).pvalue > 1e-6


def certified(row, n_fits=700):
    """The epsilon that the released largest variance certifies for a row added to null rows."""
    tables = np.zeros((2, 40, 2))
    tables[1, 0] = row
    outputs = [
        [DPPCA(delta=1e-2, center=None).fit(table).explained_variance_[0] for _ in range(n_fits)]
        for table in tables
    ]
    threshold = np.median(outputs)
    return attack_choices(
        *(np.array(o) > threshold for o in outputs), delta=1e-2, confidence=1 - 1e-6
    )


@pytest.mark.thorough
def test_a_distinguisher_finds_rows_that_are_not_clipped(monkeypatch):
    assert certified([1.0, 0.0]) <= 1.0 and certified([3.0, 0.0]) <= 1.0
    monkeypatch.setattr(_second_moment, "clip_rows", lambda X, norm: X)
    # Of squared length 9: what a sensitivity of R in place of R^2 comes to at R = 9.
    assert certified([3.0, 0.0]) > 1.0


def largest_computed_move(n=2**18):
    """Return by how much a row moves the statistics as they are computed, rounding and all.

    The other rows make the sums so large that they round what the row adds to them.
    """
    X = np.zeros((n, 2))
    X[: n // 2] = [1.0, 0.0]
    X[n // 2 : -1] = [np.sqrt(0.5), np.sqrt(0.5)]
    planned = plan(X.shape, with_mean=False)
    without, moves = planned.statistics(X), []
    for angle in np.linspace(0.1, 1.5, 12):
        X[-1] = np.cos(angle), np.sin(angle)
        moves.append(np.linalg.norm(planned.statistics(X) - without))
    return max(moves), planned


def test_the_sensitivity_holds_for_sums_as_they_are_computed(monkeypatch):
    moved, planned = largest_computed_move()
    exact = second_moment_sensitivity(0.0, "add_remove")
    # Rounding takes more than the slack of 1e-12 that the formula itself has.
    assert exact * (1.0 + 2e-12) < moved <= planned.mechanism.sensitivity
    monkeypatch.setattr(_second_moment, "UNIT_ROUNDOFF", 0.0)
    assert moved > plan((2**18, 2), with_mean=False).mechanism.sensitivity


# Warnings of what was released follow from it alone.


RNG = np.random.default_rng(0)


LITTLE = "released little about some columns"


def said(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(w.message) for w in caught if LITTLE in str(w.message)]


@pytest.mark.parametrize("is_found", [True, False])
def test_warnings_follow_from_the_noisy_counts_alone(monkeypatch, is_found):
    """With the same noisy counts every table gives the same warning, or none."""

    def released(plan, X, source, add, *small, persons=None):
        counts = np.zeros((plan.n_columns, plan._n_bins(plan._split_bits)))
        # Bins of several magnitudes, so that nothing is refined.
        counts[:, -400:-380] = 1e6 * is_found
        return counts

    monkeypatch.setattr(BoundsSearch, "_release", released)
    messages = {
        tuple(said(lambda X=X: DPStandardScaler(1.0).fit(X)))
        for X in (np.zeros((100, 2)), np.full((100, 2), 1e9), RNG.normal(size=(100, 2)))
    }
    assert len(messages) == 1 and bool(messages.pop()) != is_found


def test_unfilled_bounds_are_told_from_noisy_sums_alone(monkeypatch):
    """With the same noisy sums every table gives the same warning."""
    sums = "skdp.stats._moments._centered_sums"
    monkeypatch.setattr(sums, lambda X, *args: np.full((2, 1), -len(X)))
    messages = {
        tuple(said(lambda X=X: DPStandardScaler(1.0, bounds=(5, 6), random_state=0).fit(X)))
        for X in (np.full((5000, 1), 5.5), RNG.uniform(5, 6, (5000, 1)), np.zeros((5000, 1)))
    }
    assert len(messages) == 1


def columns_of_all_sizes(n, seed):
    """Return ordinary columns, and narrow ones of large numbers, by name."""
    rng = np.random.default_rng(seed)
    columns = {
        "order numbers": 4.5e9 + rng.integers(0, 2000, n),
        "ten minutes": 1.76e9 + rng.uniform(0, 600, n),
        "three hours": 1.76e9 + rng.uniform(0, 10_800, n),
        "large integers": 1e12 + rng.integers(0, 999, n),
        "at the limit of doubles": 1e15 + rng.integers(0, 5, n),
        "orders of a year": 20_240_000 + rng.integers(0, 9000, n),
        "years": rng.integers(1950, 2025, n),
        "prices": np.round(rng.lognormal(3, 0.7, n), 2),
        "flag": rng.random(n) < 0.3,
        "normal": rng.normal(size=n),
        "rare amounts": np.where(rng.random(n) < 0.8, 0.0, rng.lognormal(8, 1, n)),
        "ages": rng.integers(17, 90, n),
    }
    return {name: values.astype(float) for name, values in columns.items()}


def judge_found_bounds(n, epsilon, seeds):
    """Return the numbers of useless bounds, of silent ones, of useful ones, and of false alarms.

    Bounds are useless if the values fill less than 2 % of them or most are outside, and useful if
    they fill 5 % or more.
    """
    n_useless, n_silent, n_useful, n_alarms = 0, 0, 0, 0
    for seed in seeds:
        for values in columns_of_all_sizes(n, seed).values():
            plan = BoundsSearch(n_rows=n, guarantee=meet(0.2 * epsilon))
            with collect_findings() as findings:
                low, high = plan.run(values[:, None], RandomSource(seed))
            is_inside = np.mean((values >= low[0]) & (values <= high[0])) > 0.6
            spread = np.quantile(values, 0.99) - np.quantile(values, 0.01)
            filled = spread / (high[0] - low[0]) if is_inside else 0.0
            n_useless += filled < 0.02
            n_silent += filled < 0.02 and not findings
            n_useful += filled >= 0.05
            n_alarms += filled >= 0.05 and bool(findings)
    return n_useless, n_silent, n_useful, n_alarms


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("n_seeds", [pytest.param(3), pytest.param(20, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("n", [500, 2000, 20_000])
def test_found_bounds_that_are_useless_are_reported(n, epsilon, n_seeds):
    """Of all searches at most 2 % are useless without a word; with little noise 1 % warn falsely.

    On few rows noise hides whether values fill their bounds, which is what the warning says.
    """
    n_useless, n_silent, n_useful, n_alarms = judge_found_bounds(n, epsilon, range(n_seeds))
    n_searches = n_seeds * len(columns_of_all_sizes(1, 0))
    assert n_silent <= max(1, 0.02 * n_searches), (n_silent, n_searches)
    if n * epsilon >= 20_000:
        # Only integers whose doubles are too close for bounds around them are not found.
        assert n_alarms <= max(1, 0.01 * n_useful), (n_alarms, n_useful)
        assert n_useless <= 2 * n_seeds, (n_useless, n_seeds)
