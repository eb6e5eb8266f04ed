"""What a fit releases: sensitivities, the price of all stages together, and the searches."""

import math
from dataclasses import replace
from functools import cache, partial

import mpmath
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone

from skdp import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPDecisionTreeClassifier,
    DPHistogramNB,
    DPHistogramTransformer,
    DPRandomForestClassifier,
    DPRandomForestRegressor,
    DPTableVectorizer,
    PrivacyAccountant,
)
from skdp.accounting import ApproximateDP, Gaussian, gaussian_delta, get_delta, get_epsilon
from skdp.base import TableShape
from skdp.gam import _plan as module
from skdp.gam._blocks import WEIGHT_STEP, BlockDesign, joint_design, main_design, trend_block
from skdp.gam._descent import (
    PENALTY_SMOOTHNESS,
    Schedule,
    residual_grid,
    residual_sums,
    shorten_rows,
)
from skdp.gam._plan import AdditiveFit
from skdp.gam._poisson_task import PoissonTask
from skdp.gam._tables import TABLE_CELLS, make_table
from skdp.gam._tasks import BinaryTask, MultinomialTask, NumberTask, Residuals
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism
from skdp.noise import RandomSource
from tests._attacks import epsilon_lower_bound
from tests._guarantees import meet
from tests._private import (
    BOUNDS_FRACTION,
    REFINEMENT_FRACTION,
    Budget,
    GaussianNoise,
    GaussianThreshold,
    Term,
    declared_columns,
    exact_counts,
    finest_edges,
    read_kinds,
    read_persons,
)
from tests._private import DYADIC_CELLS as CELLS

COLORS = ["red", "green", "blue"]
CATEGORIES = {2: COLORS}
BOUNDS = {0: (-1.0, 1.0), 1: (0.0, 10.0)}
TASKS = [
    BinaryTask(),
    BinaryTask(weights=(0.25, 1.0)),
    MultinomialTask(weights=(1.0, 0.5, 1.0)),
    NumberTask(),
    NumberTask(clip=0.06),
]
# The Poisson loss needs delta > 0.
GAUSSIAN_TASKS = [*TASKS, PoissonTask(mean=0.3, clip=0.8)]


def make_rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = np.empty((n, 3), dtype=object)
    X[:, 0] = rng.uniform(-1, 1, n)
    X[:, 1] = rng.normal(5, 2, n)
    X[:, 2] = rng.choice(COLORS, n)
    return X


def plan_of(task, guarantee, n=40, **changes):
    columns = declared_columns(["object"] * 3, BOUNDS, CATEGORIES, None)
    terms = {"columns": columns, "n_rows": n, "n_bins": 8, "task": task, "guarantee": guarantee}
    return AdditiveFit(**terms | changes)


def table_of(rows):
    return read_kinds(DPAdditiveClassifier(), rows)[0]


def odd_rows():
    """Rows that are as different as they can be: at the ends, outside, missing, undeclared."""
    numbers = (-1.0, 0.3, 1.0, 1e300, None)
    return [[a, b, c] for a in numbers for b in (0.0, 10.0, None) for c in ("red", "other", None)]


def counts_of(plan, rows):
    terms = plan._finest_terms(plan.columns)
    counts = exact_counts(terms, table_of(rows), coarsest=plan.levels[0])
    return np.concatenate(counts, axis=1)[0].astype(float)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_brute_force_sensitivity_of_the_cells(relation, delta):
    plan = plan_of(BinaryTask(), meet(1.0, delta, relation))
    order, claimed = (1 if delta == 0.0 else 2), plan._counts_mechanism.sensitivity
    base, counts = make_rows(), {}
    for k, row in enumerate(odd_rows()):
        counts[k] = counts_of(plan, np.vstack([base, np.array([row], dtype=object)]))
    others = counts.values() if relation == "replace_one" else [counts_of(plan, base)]
    moves = [np.linalg.norm(a - b, ord=order) for a in counts.values() for b in others]
    assert max(moves) <= claimed
    # The largest: no cell in common at any level.
    assert max(moves) > 0.999 * claimed


def setup_of(plan, rows, targets=None, row_weights=None):
    """The design of some bins, and the packed cells of rows in them."""
    terms = counted(plan)
    cells = replace(plan, n_rows=len(rows))._joint_codes(
        terms, table_of(rows), targets, row_weights
    )
    fraction = 0.0 if plan.budget.is_pure else 0.3
    # With much noise, trends are longer, and so are rows.
    return main_design(terms, plan.n_rows, 10.0, trend_fraction=fraction), cells


@cache
def counted(plan):
    return plan._count_cells(plan.columns, table_of(make_rows()), RandomSource(0))


def gradient_of(plan, rows, targets, weights, row_weights=None):
    design, cells = setup_of(plan, rows, targets, row_weights)
    step = residual_grid(plan.task.clip, plan.n_rows)
    rows = shorten_rows(cells, design)
    return residual_sums(rows, design, Residuals(plan.task, 0.0), weights, step)


def targets_of(task, n):
    if isinstance(task, NumberTask):
        return np.random.default_rng(1).uniform(-1, 1, n)
    return np.arange(n) % task.n_outputs if task.n_outputs > 1 else np.arange(n) % 2


# With little noise numbers have many bins, and a trend.
@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("epsilon", [1.0, 1e3])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("task", GAUSSIAN_TASKS, ids=repr)
def test_brute_force_sensitivity_of_a_gradient(task, relation, epsilon):
    n = 41
    plan = plan_of(task, meet(epsilon, 1e-6, relation), n=n)
    claimed = plan._steps_noise(100, 1).sensitivity
    base, targets = make_rows(), targets_of(task, n - 1)
    design, _ = setup_of(plan, base)
    extremes = (-1.0, 1.0) if isinstance(task, NumberTask) else range(max(task.n_outputs, 2))
    largest = 0.0
    for scale in (0.0, 1.0, 1e3):
        shape = (design.size, task.n_outputs)
        weights = scale * np.random.default_rng(2).normal(size=shape)
        without = gradient_of(plan, base, targets, weights)
        found = []
        for row in odd_rows()[::5]:
            rows = np.vstack([base, np.array([row], dtype=object)])
            for last in extremes:
                found.append(gradient_of(plan, rows, np.append(targets, last), weights))
        others = found if relation == "replace_one" else [without]
        # Sums are exact, so that not even the last bit is beyond the claim.
        moves = [np.linalg.norm(a - b) for a in found for b in others]
        assert max(moves) <= claimed * (1 + 2.0**-50)
        largest = max(largest, max(moves))
    # Two rows that are clipped need not point in opposite directions, nor weigh the same.
    assert largest > (0.97 if relation == "add_remove" else 0.6) * claimed


@pytest.mark.parametrize("task", [TASKS[2], TASKS[3], GAUSSIAN_TASKS[-1]], ids=repr)
def test_brute_force_sensitivity_of_a_gradient_to_a_person(task):
    """Rows of all kinds, one or many and alike or not, of a person beside others with several."""
    plan = plan_of(task, meet(1.0, 1e-6), n=21)
    claimed = plan._steps_noise(100, 1).sensitivity
    base, targets = make_rows(), targets_of(task, 40)
    design, _ = setup_of(plan, base)
    weights = 1e3 * np.random.default_rng(2).normal(size=(design.size, task.n_outputs))
    ends = (-1.0, 1.0) if isinstance(task, NumberTask) else range(task.n_outputs)
    own = [(row, end) for row in odd_rows()[::5] for end in ends]

    def moved_by(added):
        rows = np.vstack([base, np.array([row for row, _ in added], dtype=object)])
        ids = np.append(np.arange(40) // 2, np.full(len(added), 20))
        y = np.append(targets, [end for _, end in added])
        row_weights = read_persons(ids, len(ids)).row_weights
        return np.linalg.norm(gradient_of(plan, rows, y, weights, row_weights) - without)

    without = gradient_of(plan, base, targets, weights, np.full(40, 0.5))
    of_rows = [moved_by([each]) for each in own]
    worst = own[np.argmax(of_rows)]
    of_persons = [moved_by([worst] * k) for k in (2, 7, 500)] + [moved_by(own)]
    assert max(of_rows + of_persons) <= claimed * (1 + 2.0**-50)
    assert max(of_persons) > 0.9 * max(of_rows)


@pytest.mark.parametrize("k", [None, 3], ids=["rows", "person"])
def test_steps_shorten_rows_whose_features_are_longer_than_1(k, monkeypatch):
    """The gradients of a fit, before noise, for rows at the ends of all trends, alone and alike."""
    plan, targets = plan_of(BinaryTask(), meet(1e3, 1e-6), n=41), targets_of(BinaryTask(), 40)
    seen = []

    def add(self, exact, drawn):
        seen.append(exact)
        return exact

    monkeypatch.setattr(GaussianNoise, "add", add)

    def gradient(added):
        rows = np.vstack([make_rows(), *[np.array([[-1.0, 10.0, "red"]], dtype=object)] * added])
        row_weights = None
        if k is not None:
            ids = np.append(np.arange(40), np.full(added, 40))
            row_weights = read_persons(ids, len(ids)).row_weights
        y = np.append(targets, np.ones(added, dtype=int))
        design, cells = setup_of(plan, rows, y, row_weights)
        assert design.squared_norm > 1.0
        seen.clear()
        residuals = Residuals(plan.task, 0.0)
        plan._descent(cells, design, residuals, RandomSource(0), budget_fraction=0.5)
        return seen[0], design

    (with_row, design), (without, _) = gradient(k or 1), gradient(0)
    moved = np.linalg.norm(with_row - without)
    claimed = plan._steps_noise(design.size, 1).sensitivity
    assert 0.99 * claimed < moved <= claimed * (1 + 2.0**-50)


def test_trends_are_longer_until_the_mean_squared_norm_is_1():
    """Computed with the exact counts; rows within 1 keep their weight."""
    plan = plan_of(BinaryTask(), meet(1e3, 1e-6), n=400)
    table = table_of(make_rows(400))
    terms = plan._count_cells(plan.columns, table, RandomSource(0))
    cells = plan._joint_codes(terms, table, targets_of(plan.task, 400))
    for fraction in (0.1, 0.8):
        design = main_design(terms, 400, 10.0, trend_fraction=fraction)
        norms = np.zeros(400)
        for block in design.blocks:
            of_rows = 0 if block.term < 0 else cells.column_cells()[block.term]
            norms += block.squared_norms[of_rows]
        assert norms.mean() == pytest.approx(1.0, abs=0.02)
        assert norms.max() <= design.squared_norm
        weights = shorten_rows(cells, design).row_weights
        assert np.all(weights * np.sqrt(norms) <= 1.0)
        assert np.all(weights[norms <= 1.0] == 1.0)
        long = norms > 1.0
        assert 0.1 < long.mean() < 0.9
        np.testing.assert_allclose((weights * np.sqrt(norms))[long], 1.0, atol=1e-7)
    for without in (
        main_design(terms, 400, 10.0),
        main_design(terms, 400, 1e12, trend_fraction=0.8),
    ):
        assert without.squared_norm <= 1.0
        assert shorten_rows(cells, without) is cells


def test_trends_are_the_longer_the_more_noise_there_is():
    """Until the noise in a trend's gradient has the variance of its sampling error."""
    plan = plan_of(BinaryTask(), meet(1e3, 1e-6), n=400)
    terms = plan._count_cells(plan.columns, table_of(make_rows(400)), RandomSource(0))

    def squared_norm(signal_to_noise):
        return main_design(terms, 400, signal_to_noise, trend_fraction=0.8).squared_norm

    norms = [squared_norm(signal) for signal in (1e6, 600.0, 400.0, 300.0, 100.0, 20.0)]
    assert norms[0] <= 1.0
    assert np.all(np.diff(norms[:5]) > 0.05)
    # Less signal then changes only how the columns share the norm.
    assert norms[-1] == pytest.approx(norms[-2], rel=0.1)


def moved_by(values, others, delta):
    """The largest distance of released values, in the norm of the noise."""
    order = 1 if delta == 0.0 else 2
    return max(np.linalg.norm(a - b, ord=order) for a in values for b in others)


def released_before_noise(monkeypatch, run):
    """What the last mechanism of a run adds noise to."""
    seen = []

    def release(self, values, **source):
        seen.append(np.atleast_1d(values))
        return values

    with monkeypatch.context() as patch:
        for mechanism in (GaussianMechanism, LaplaceMechanism):
            patch.setattr(mechanism, "release", release)
        run()
    return seen[-1]


PEOPLE = {"rows": None, "person": 7}


@pytest.mark.parametrize("k", PEOPLE.values(), ids=PEOPLE)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_brute_force_sensitivity_of_the_center(task, delta, relation, k, monkeypatch):
    """A row, or a person of seven, of any target, beside none or another one."""
    plan, targets = plan_of(task, meet(1.0, delta, relation)), targets_of(task, 20)
    ends = (-1.0, 1.0) if isinstance(task, NumberTask) else range(max(task.n_outputs, 2))

    def values_of(added):
        y, persons = np.append(targets, added).astype(targets.dtype), None
        if k is not None:
            persons = read_persons(np.append(np.arange(20), np.full(len(added), 20)), len(y))
        run = partial(plan.baseline.run, y, RandomSource(0), persons)
        return released_before_noise(monkeypatch, run)

    found = [values_of([end] * (k or 1)) for end in ends]
    others = found if relation == "replace_one" else [values_of([])]
    reach = plan.baseline.mechanism.sensitivity
    assert 0.999 * reach < moved_by(found, others, delta) <= reach


@pytest.mark.parametrize("k", PEOPLE.values(), ids=PEOPLE)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("center", [-1.0, 0.1, 1.0])
def test_brute_force_sensitivity_of_the_variance(center, relation, k, monkeypatch):
    """A row, or a person of seven, of any target, beside none or another one."""
    plan, targets = plan_of(NumberTask(), meet(1.0, 1e-6, relation)), targets_of(NumberTask(), 20)

    def values_of(added):
        y, persons = np.append(targets, added), None
        if k is not None:
            persons = read_persons(np.append(np.arange(20), np.full(len(added), 20)), len(y))
        run = partial(plan.target_variance.run, y, center, RandomSource(0), persons)
        return released_before_noise(monkeypatch, run)

    found = [values_of([end] * (k or 1)) for end in (-1.0, center, 0.3, 1.0)]
    others = found if relation == "replace_one" else [values_of([])]
    reach = plan.target_variance.mechanism.sensitivity
    moved = moved_by(found, others, 1e-6)
    assert moved <= reach
    assert moved > 0.999 * reach


@pytest.mark.parametrize("k", PEOPLE.values(), ids=PEOPLE)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("center, clip", [(-1.0, 1.0), (0.1, 0.02), (1.0, 0.3)])
def test_brute_force_sensitivity_of_the_corrected_mean(center, clip, relation, k, monkeypatch):
    """A row, or a person of seven, of any target, beside none or another one, with any clip."""
    plan, targets = plan_of(NumberTask(), meet(1.0, 1e-6, relation)), targets_of(NumberTask(), 20)

    def values_of(added):
        y, persons = np.append(targets, added), None
        if k is not None:
            persons = read_persons(np.append(np.arange(20), np.full(len(added), 20)), len(y))
        run = partial(plan.mean_correction.run, y, center, clip, RandomSource(0), persons)
        return released_before_noise(monkeypatch, run)

    found = [values_of([end] * (k or 1)) for end in (-1.0, center, 0.3, 1.0)]
    others = found if relation == "replace_one" else [values_of([])]
    reach = plan.mean_correction.mechanism.sensitivity
    # With a center at an end of the bounds targets are on one side of it only.
    least = 0.49 if relation == "replace_one" else 0.999
    assert least * reach < moved_by(found, others, 1e-6) <= reach


def test_the_corrected_mean_and_its_spread():
    """Without noise to speak of: the mean, whatever the first one was, and the variance."""
    plan = plan_of(NumberTask(), meet(1e6, 1e-6), n=500)
    targets = 0.3 + 0.1 * np.random.default_rng(0).uniform(-1.0, 1.0, size=500)
    for first in (0.2, 0.35):
        variance = float(np.mean((targets - first) ** 2))
        center, after = plan._correct_mean(
            targets, np.array([first]), variance, RandomSource(0), None
        )
        assert center[0] == pytest.approx(targets.mean(), abs=1e-4)
        assert after == pytest.approx(max(targets.var(), 0.3 * variance), rel=1e-2)


def test_residuals_are_clipped_to_the_spread_of_the_targets():
    plan = plan_of(NumberTask(), meet(1.0, 1e-6), n=500)
    assert plan._residual_clip(0.1**2) == pytest.approx(0.1)
    assert plan._residual_clip(0.25**2) == 0.25 and plan._residual_clip(0.0) == 0.02
    # With little noise as much as before.
    assert plan_of(NumberTask(), meet(1.0, 1e-6), n=10**6)._residual_clip(0.01) == 0.25
    # The noise of the steps is relative to the clip, so their event is the same.
    narrow = replace(plan, task=NumberTask(clip=0.05))
    assert narrow._steps_noise(1, 9).scale == pytest.approx(plan._steps_noise(1, 9).scale / 5.0)
    assert narrow.budget_fractions == plan.budget_fractions
    assert narrow.budget.event == plan.budget.event


def test_cells_are_finer_than_bins_where_noise_hides_counts():
    """Bins have values of their own, cells the trend's; trees and delta = 0 have bins only."""
    plan = plan_of(BinaryTask(), meet(0.5, 1e-6), n=400, n_bins=32)
    table = table_of(make_rows(400))
    terms = plan._count_cells(plan.columns, table, RandomSource(0))
    bins = terms[0].bins
    assert bins[-1] + 1 < len(bins) and len(bins) > 10
    assert np.array_equal(np.unique(bins), np.arange(bins[-1] + 1)) and np.all(np.diff(bins) >= 0)
    merged = terms[0].in_bins()
    assert len(merged.counts) == bins[-1] + 1 == len(merged.edges[0])
    assert merged.counts.sum() == pytest.approx(terms[0].counts.sum())
    blocks = [b for b in main_design(terms, 400, trend_fraction=0.3).blocks if b.term == 0]
    first, trend = blocks[0], blocks[-1]
    assert trend.profile is not None
    assert first.size == bins[-1] + 1 and len(np.unique(trend.features[:-1])) > first.size
    coarse = plan_of(BinaryTask(), meet(0.5, 1e-6), n=400, n_bins=4)
    (term, *_) = coarse._count_cells(coarse.columns, table, RandomSource(0))
    assert len(term.counts) <= 10
    pure = plan_of(BinaryTask(), meet(0.5, 0.0), n=400, n_bins=32)
    assert pure._count_cells(pure.columns, table, RandomSource(0))[0].bin_starts is None


def check_of(plan, rows, targets, weights, monkeypatch, row_weights=None):
    """The values of a check before noise."""
    design, cells = setup_of(plan, rows, targets, row_weights)
    residuals = Residuals(plan.task, 0.1)
    strength = None if plan.budget.is_pure else 1.0
    run = partial(
        plan._shrinkage_factor,
        cells,
        design,
        residuals,
        weights,
        strength,
        RandomSource(0),
        plan._problem(design),
    )
    return released_before_noise(monkeypatch, run)


@pytest.mark.quick_cases(cover="pairs")
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_brute_force_sensitivity_of_the_check(task, delta, relation, monkeypatch):
    plan, targets = plan_of(task, meet(1.0, delta, relation), n=41), targets_of(task, 40)
    base, reach = make_rows(), plan.shrinkage_test.sensitivity
    design, _ = setup_of(plan, base)
    ends = (-1.0, 1.0) if isinstance(task, NumberTask) else range(max(task.n_outputs, 2))
    largest = 0.0
    for scale in (0.01, 1.0, 1e3):
        shape = (design.size, task.n_outputs)
        weights = scale * np.random.default_rng(2).normal(size=shape)
        found = []
        for row in odd_rows()[::5]:
            rows = np.vstack([base, np.array([row], dtype=object)])
            for end in ends:
                y = np.append(targets, end)
                found.append(check_of(plan, rows, y, weights, monkeypatch))
        without = [check_of(plan, base, targets, weights, monkeypatch)]
        moved = moved_by(found, found if relation == "replace_one" else without, delta)
        assert moved <= reach
        largest = max(largest, moved)
    assert largest > 0.6 * reach


@pytest.mark.parametrize("task", [TASKS[2], TASKS[3]], ids=repr)
def test_a_person_moves_a_check_by_what_a_row_does(task, monkeypatch):
    plan = plan_of(task, meet(1.0, 1e-6), n=21)
    base, targets = make_rows(20), targets_of(task, 20)
    design, _ = setup_of(plan, base)
    weights = np.random.default_rng(2).normal(size=(design.size, task.n_outputs))
    without = check_of(plan, base, targets, weights, monkeypatch)
    end, moved = (1.0 if isinstance(task, NumberTask) else 2), []
    for k in (1, 7, 500):
        rows = np.vstack([base, np.array([odd_rows()[0]] * k, dtype=object)])
        row_weights = read_persons(np.append(np.arange(20), np.full(k, 20)), len(rows)).row_weights
        y = np.append(targets, [end] * k)
        values = check_of(plan, rows, y, weights, monkeypatch, row_weights)
        moved.append(np.linalg.norm(values - without))
    assert max(moved) <= plan.shrinkage_test.sensitivity
    assert max(moved[1:]) > 0.9 * moved[0]


def test_a_persons_steps_are_no_more_than_a_rows():
    rng = np.random.default_rng(0)
    residuals = Residuals(NumberTask(clip=0.5), 0.0)
    targets = np.append(0.5, rng.uniform(0.0, 0.5, 99))
    alone = residuals.in_steps(2.0**-40, "numpy", np.zeros((100, 1)), -targets)[:, 0]
    for k in (3, 5, 7, 8, 10, 11, 500, 4097):
        row_weights = read_persons(np.zeros(k), k).row_weights
        for value, most in zip(targets, alone, strict=True):
            rows = np.zeros((k, 1)), np.full(k, -value)
            steps = residuals.in_steps(2.0**-40, "numpy", *rows, row_weights)
            assert (1.0 - k * 2.0**-26) * most - k <= steps.sum() <= most


def test_sums_are_exact_and_know_no_order():
    plan = plan_of(BinaryTask(), meet(1.0, 1e-6), n=3000)
    rows, targets = make_rows(3000), targets_of(BinaryTask(), 3000)
    design, _ = setup_of(plan, rows[:10])
    weights = np.random.default_rng(3).normal(size=(design.size, 1))
    one = gradient_of(plan, rows, targets, weights)
    order = np.random.default_rng(4).permutation(3000)
    np.testing.assert_array_equal(one, gradient_of(plan, rows[order], targets[order], weights))
    step = residual_grid(0.5, 3000) * WEIGHT_STEP
    assert np.all(one / step == np.rint(one / step)) and np.abs(one / step).max() < 2.0**53


def test_a_row_has_at_most_norm_1_without_its_trends():
    design, _ = setup_of(plan_of(BinaryTask(), meet(1e3, 1e-6)), make_rows())
    trends = [block.weight**2 for block in design.blocks if block.is_trend]
    squares = math.fsum(block.weight**2 for block in design.blocks)
    assert trends and 0.8 < squares - math.fsum(trends) <= 1.0 < squares
    assert 1.0 < design.squared_norm <= squares
    heavy = [replace(block, weight=2 * block.weight) for block in design.blocks]
    with pytest.raises(ValueError, match="more than 1"):
        type(design)(heavy)
    plain, _ = setup_of(plan_of(BinaryTask(), meet(1e3)), make_rows())
    assert 0.99 < math.fsum(block.weight**2 for block in plain.blocks) <= 1.0


def test_the_features_of_a_trend_rise_within_its_weight():
    counts = np.array([5.0, 0.0, 90.0, 400.0, 3.0, -2.0, 7.0])
    block = trend_block(0, counts, 0.25)
    features = block.features
    assert np.all(np.diff(features[:-1]) >= 0.0) and features[-1] == 0.0
    assert np.abs(features).max() <= 0.25 and features[0] < 0.0 < features[-2]
    assert np.all(features / WEIGHT_STEP == np.rint(features / WEIGHT_STEP))
    # The second moment is that of the rows, but for the rounding of the features.
    exact = features**2 @ np.maximum(counts, 0.0)
    assert block.moments[0] == pytest.approx(exact, rel=0.02)
    too_long = replace(block, profile=2.0 * block.profile, weight=1.0)
    with pytest.raises(ValueError, match="more than 1"):
        BlockDesign([too_long])


def test_trends_have_more_where_a_class_is_rare():
    """By the released frequency; trees and delta = 0 have none."""
    plan = plan_of(BinaryTask(), meet(1.0, 1e-6), n=20_000)
    centers = [np.array([math.log(p / (1.0 - p))]) for p in (0.5, 0.2, 0.02, 1e-4)]
    fractions = [plan._trend_fraction(center) for center in centers]
    assert fractions == sorted(fractions) and fractions[0] < 0.15 and fractions[-1] == 0.8
    assert plan_of(BinaryTask(), meet(1.0, 0.0), n=20_000)._trend_fraction(centers[0]) == 0.0
    numbers = plan_of(NumberTask(), meet(1.0, 1e-6), n=10**7)
    assert numbers._trend_fraction(np.zeros(1)) == 0.1


def term_of(counts):
    edges, counts = np.arange(len(counts) - 2), np.array(counts, dtype=float)
    return Term(features=(0,), kinds=("label",), edges=(edges,), counts=counts)


def test_columns_that_hardly_vary_get_less_where_noise_is_large():
    terms = [term_of([96, 4, 0, 0]), term_of([50, 50, 0, 0])]

    def squares(signal_to_noise):
        return [block.weight**2 for block in main_design(terms, 100, signal_to_noise).blocks]

    np.testing.assert_allclose(squares(1e9), 1 / 3, rtol=1e-2)
    # Two rows differ with the probabilities 0.0768 and 0.5; n mu is a twentieth of 500.
    constant, one, other = squares(25.0)
    assert one / other == pytest.approx(math.sqrt((0.05 + 0.0768) / (0.05 + 0.5)), rel=1e-2)
    assert constant + one + other <= 1.0


def test_large_noise_takes_fewer_steps():
    def steps(bend, penalty_to_noise=1.0):
        return Schedule(
            loss_smoothness=bend, l2_reg_strength=1.0, penalty_to_noise=penalty_to_noise
        ).n_steps

    # The root of the condition number is 40: twice that. 5: half of the ten; 1: the fewest.
    assert steps(1599.0) == 80
    assert steps(24.0) == 5 and steps(0.1) == 4
    # Where the penalty is far above the noise, steps need not be saved.
    assert steps(24.0, penalty_to_noise=2.0) == 10
    assert Schedule(loss_smoothness=24.0, l2_reg_strength=1.0, penalty_to_noise=1.0).n_averaged == 3


# One budget


def drawn_noises(monkeypatch, fit):
    """Return (multiplier, number of draws) of all Gaussian noise that a fit draws."""
    found = []
    draw, release = GaussianNoise.draw, GaussianMechanism.release

    def counted(self, n_steps, stream):
        found.append((self.scale / self.sensitivity, n_steps))
        return draw(self, n_steps, stream)

    def released(self, values, **source):
        found.append((self.noise_multiplier, 1))
        return release(self, values, **source)

    discover = GaussianThreshold.run

    def discovered(self, table, source, persons):
        found.append((self._noise.scale / self._noise.sensitivity, 1))
        return discover(self, table, source, persons)

    with monkeypatch.context() as patch:
        patch.setattr(GaussianNoise, "draw", counted)
        patch.setattr(GaussianMechanism, "release", released)
        patch.setattr(GaussianThreshold, "run", discovered)
        fit()
    return found


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_all_noise_together_is_the_event(monkeypatch, epsilon, declared, relation):
    bounds, categories = (BOUNDS, CATEGORIES) if declared else ("auto", {2: "auto"})
    accountant = PrivacyAccountant(100.0, 0.1, relation=relation)
    model = DPAdditiveClassifier(
        epsilon, delta=1e-6, bounds=bounds, categories=categories, accountant=accountant
    )
    X = make_rows(400)
    noises = drawn_noises(monkeypatch, lambda: model.fit(X, X[:, 0] > 0))
    # Cells, center, steps and check, after the searches; bounds are refined if columns are narrow.
    assert len(noises) in ((4,) if declared else (6, 7))
    # The budget of levels of a refinement that were not needed is charged all the same.
    unused = 0.0 if declared else REFINEMENT_FRACTION * BOUNDS_FRACTION
    event = accountant.charges[0].event
    parts = event.events if hasattr(event, "events") else (event,)
    (gaussian,) = [part for part in parts if isinstance(part, Gaussian)]
    total = math.fsum(steps / multiplier**2 for multiplier, steps in noises)
    # Nothing is drawn that was not charged, and next to nothing charged in vain.
    assert 0.999999 - unused < total * gaussian.noise_multiplier**2 <= 1.0
    other = [part for part in parts if part is not gaussian]
    assert other == ([] if declared else [ApproximateDP(0.0, 1e-7)])
    assert get_delta(event, epsilon, relation=relation) <= 1e-6
    assert get_epsilon(event, 1e-6, relation=relation) > 0.999 * epsilon


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-10])
def test_the_multiplier_by_another_formula(epsilon, delta):
    multiplier = Budget(guarantee=meet(epsilon, delta)).multiplier
    mpmath.mp.dps = 50
    mu = 1 / mpmath.mpf(multiplier)
    exact = mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
        -mu / 2 - epsilon / mu
    )
    assert exact <= delta
    assert gaussian_delta(multiplier * (1 - 1e-9), epsilon) > delta


def test_declared_pairs_are_within_the_same_budget(monkeypatch):
    accountant = PrivacyAccountant(10.0, 0.1)
    terms = {"bounds": BOUNDS, "categories": CATEGORIES, "interactions": [(0, 2)]}
    model = DPAdditiveRegressor(2.0, target_bounds=(0, 1), accountant=accountant, **terms)
    X = make_rows(400)
    noises = drawn_noises(monkeypatch, lambda: model.fit(X, X[:, 0] > 0))
    # The variance of the targets and the correction of their mean are two of them.
    assert len(noises) == 6
    (charge,) = accountant.charges
    total = math.fsum(steps / multiplier**2 for multiplier, steps in noises)
    assert 0.999999 < total * charge.event.noise_multiplier**2 <= 1.0


def test_a_joint_layout_has_norm_1_too():
    plan = plan_of(NumberTask(), meet(1.0, 1e-6))
    terms = plan._count_cells(plan.columns, table_of(make_rows()), RandomSource(0))
    design = main_design(terms, 40)
    tables = [make_table(terms, indices, TABLE_CELLS[2], 40) for indices in ((0, 2), (0, 1))]
    joint = joint_design(design, tables, 0.5)
    assert 0.99 < math.fsum(block.weight**2 for block in joint.blocks) <= 1.0
    weights = np.random.default_rng(0).normal(size=(design.size, 1))
    moved = joint.weights_from(design, weights)
    for j, table in design.bin_values(weights).items():
        np.testing.assert_allclose(joint.bin_values(moved)[j], table)


def test_a_plan_knows_its_price_before_it_sees_a_table():
    model = DPAdditiveClassifier(0.5, bounds=(-1, 1), classes=[0, 1])
    plan = model.plan_fit(TableShape(n_rows=100, n_columns=3), meet(0.5, 1e-6))
    accountant = PrivacyAccountant(1.0, 1e-5)
    X = np.random.default_rng(0).uniform(-1, 1, size=(100, 3))
    model.set_params(accountant=accountant).fit(X, X[:, 0] > 0)
    assert accountant.charges[0].event == plan.event
    assert (plan.epsilon, plan.delta) == (0.5, 1e-6)


def test_categories_are_not_found_without_delta_nor_charged_where_they_cannot_be():
    X, y = make_rows(100), np.arange(100) % 2
    with pytest.raises(ValueError, match="delta > 0"):
        DPAdditiveClassifier(delta=0.0, bounds=BOUNDS, categories={2: "auto"}).fit(X, y)
    accountant = PrivacyAccountant(10.0, 1e-3, composition="gdp")
    model = DPAdditiveClassifier(bounds=BOUNDS, categories={2: "auto"}, accountant=accountant)
    with pytest.raises(ValueError):
        model.fit(X, y)
    assert accountant.charges == [] and not hasattr(model, "privacy_")
    model.set_params(categories=CATEGORIES).fit(X, y)
    assert len(accountant.charges) == 1


TARGETS = {"target_bounds": (0, 1)}
OF_RAW_TABLES = [
    (DPAdditiveClassifier, {}),
    (DPAdditiveRegressor, TARGETS),
    (DPDecisionTreeClassifier, {"max_depth": 2}),
    (DPRandomForestClassifier, {"n_estimators": 3}),
    (DPRandomForestRegressor, TARGETS | {"n_estimators": 3}),
    (DPHistogramNB, {}),
    (DPTableVectorizer, {}),
]


def narrow_bounds():
    """Ranges of few doubles, near zero and far from it, and the widest there are."""
    for low in (1.0, -1e15, 2e-140):
        for steps in (1, 15, 40, 1024, 6000, 20_000, 100_000):
            yield low, low + steps * np.spacing(abs(low))
    yield from ((0.0, 5e-324), (0.0, 1e-310), (0.0, 1e-150), (1e15, 1e15 + 1), (-1e150, 1e150))


@pytest.mark.quick_cases(every=15)
@pytest.mark.parametrize("epsilon", [0.5, 1e9])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(
    ("kind", "more"), OF_RAW_TABLES, ids=[kind.__name__ for kind, _ in OF_RAW_TABLES]
)
def test_bounds_are_refused_before_the_charge_or_fitted(kind, more, delta, epsilon):
    accountant, y = PrivacyAccountant(1e10, 0.5), np.arange(60) % 2
    known = more | {"epsilon": epsilon, "delta": delta, "accountant": accountant}
    shape = TableShape(n_rows=60, n_columns=1, classes=[0, 1], kinds=["number"])
    accepted, refused = [], []
    for bounds in narrow_bounds():
        try:
            kind(bounds=bounds, **known).plan_fit(shape, meet(epsilon, delta))
        except ValueError:
            refused.append(bounds)
        else:
            accepted.append(bounds)
    assert len(accepted) > 3 and len(refused) > 3
    with pytest.raises(ValueError, match="bounds"):
        kind(bounds=refused[0], **known).fit(y[:, None], y)
    assert accountant.charges == []
    low, high = np.transpose(accepted)
    rows = np.where(np.random.default_rng(0).integers(0, 2, (60, len(low))), low, high)
    model = kind(bounds=(low, high), **known).fit(rows, y)
    found = model.transform(rows) if kind is DPTableVectorizer else model.predict(rows)
    assert len(accountant.charges) == 1 and np.isfinite(found.sum())


@pytest.mark.parametrize("epsilon", [1e-100, 1e-20])
def test_what_cannot_be_drawn_is_refused_before_the_charge(epsilon):
    accountant = PrivacyAccountant(10.0, 1e-3)
    model = DPAdditiveClassifier(epsilon, delta=1e-100, bounds=(-1, 1), accountant=accountant)
    X = np.random.default_rng(0).uniform(-1, 1, size=(50, 2))
    try:
        model.fit(X, X[:, 0] > 0)
    except ValueError:
        assert accountant.charges == []


def test_the_noise_of_a_long_list_of_categories_is_refused_before_the_charge():
    accountant = PrivacyAccountant(1.0, 0.0)
    terms = {"epsilon": 1e-11, "delta": 0.0, "accountant": accountant}
    rows = np.zeros((5, 1))
    DPTableVectorizer(categories={0: range(100)}, **terms).fit(rows)
    with pytest.raises(ValueError, match="is too small for"):
        DPTableVectorizer(categories={0: range(9000)}, **terms).fit(rows)
    assert len(accountant.charges) == 1


class ToldOnce:
    """A number that can be asked for once."""

    told = False

    def __float__(self):
        if self.told:
            raise RuntimeError("told before")
        self.told = True
        return 0.5


@pytest.mark.parametrize("build", [np.asarray, pd.DataFrame], ids=["array", "frame"])
@pytest.mark.parametrize(
    "estimator",
    [
        DPAdditiveRegressor(target_bounds=(0, 1), bounds={0: (0, 1)}, categories={1: ["a", "b"]}),
        DPTableVectorizer(bounds={0: (0, 1)}, categories={1: ["a", "b"]}),
        DPHistogramTransformer(categories={1: ["a", "b"]}),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_cell_is_asked_for_its_number_once(estimator, build):
    rows = np.array([[0.1, "a"], [ToldOnce(), "b"], [None, "a"]], dtype=object)
    estimator = clone(estimator)
    if isinstance(estimator, DPHistogramTransformer):
        rows = rows[:2]
    estimator.fit(build(rows), np.zeros(len(rows)))
    assert isinstance(rows[1, 0], ToldOnce)


# The search for categories


def threshold_plan(relation="add_remove", n_columns=2):
    return GaussianThreshold(
        n_columns=n_columns,
        n_rows=100,
        guarantee=meet(1.0, 1e-6, relation),
        noise_multiplier=3.0,
        threshold_delta=0.02,
    )


def test_a_label_of_one_row_is_seldom_released():
    # Of a label that one row has, per column delta_t / d = 0.01: of 40,000 such labels 400 are
    # expected; more than 500 have a probability below 1e-6.
    plan = threshold_plan()
    noisy = plan.release(np.ones(40_000), random_state=RandomSource(1))
    released = np.sum(noisy >= plan.threshold)
    assert 300 < released < 500
    expected = 1.0 + 3.0 * math.sqrt(2.0) * norm.isf(0.01)
    assert plan.threshold == pytest.approx(expected, rel=1e-3)
    assert plan.threshold >= expected


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_counts_of_labels_have_the_noise_that_is_charged(relation):
    plan = threshold_plan(relation)
    noisy = plan.release(np.full(40_000, 50.0), random_state=RandomSource(2))
    moved = math.sqrt(2.0 * (1 if relation == "add_remove" else 2))
    # The standard error of the deviation is 0.0035 of it; 5 of them.
    assert np.std(noisy) / (3.0 * moved) == pytest.approx(1.0, abs=0.018)


def test_the_noise_of_a_label_does_not_depend_on_how_many_there_are(monkeypatch):
    plan, scales = threshold_plan(), []

    def drawn(scale, size, stream):
        scales.append(scale)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr("skdp.stats._column_plan.discrete_gaussian", drawn)
    for size in (3, 50):
        counts = np.arange(float(size))
        # Whole numbers are on the grid: nothing is rounded.
        np.testing.assert_array_equal(plan.release(counts, random_state=RandomSource(3)), counts)
    assert scales[0] == scales[1]


def test_plans_of_kinds_that_containers_give():
    shape = TableShape(n_rows=100, n_columns=2, classes=[0, 1], kinds=["number", "label"])
    plan = DPAdditiveClassifier(bounds=(0, 1)).plan_fit(shape, meet(1.0, 1e-6)).mechanism
    assert plan.key_selection is not None and plan.bounds_search is None
    plan = DPAdditiveRegressor(target_bounds=(0, 1)).plan_fit(shape, meet(1.0, 1e-6)).mechanism
    assert plan.key_selection is not None and plan.bounds_search is not None


# delta = 0


def objective_of(epsilon=1.0, relation="add_remove", task=None, unit="row"):
    plan = plan_of(task or BinaryTask(), meet(epsilon, 0.0, relation, unit))
    design, _ = setup_of(plan, make_rows())
    return plan, design, plan._problem(design)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0])
@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("task", TASKS[:2] + TASKS[3:], ids=repr)
def test_objective_perturbation_costs_its_share(task, unit, epsilon, relation):
    plan, design, objective = objective_of(epsilon, relation, task, unit)
    rows = 1 if relation == "add_remove" else 2
    # By hand: noise, one row's curvature of rank 1 beside the penalty, and the output; of a
    # person's curvature the trace alone is known.
    moved = rows * task.clip * sum(block.weight for block in design.blocks)
    # Each weight's rounding to a grid of at most 2**-40 of the scale counts as a step.
    noise = moved / objective.scale + objective.size * 2.0**-40
    rank = 1 if unit == "row" else objective.size
    jacobian = rank * math.log1p(task.loss.curvature_bound / (rank * objective.l2_reg_strength))
    output = epsilon * plan.budget_fractions["steps"] / 64
    rest = sum(mechanism.epsilon for mechanism in (plan.baseline.mechanism, plan.shrinkage_test))
    rest += epsilon * plan.budget_fractions["counts"]
    assert noise + jacobian + output + rest <= epsilon
    # What the penalty spares the Jacobian is the noise's.
    assert noise + jacobian + output + rest > 0.999 * epsilon


@pytest.mark.parametrize("task", [BinaryTask(), MultinomialTask(weights=(1.0,) * 3, clipped=False)])
def test_brute_force_l1_sensitivity_and_a_certified_minimum(task):
    n, rows = 40, make_rows()
    plan = plan_of(task, meet(1.0), n=n)
    targets = targets_of(task, n)
    design, _ = setup_of(plan, rows)

    def gradient(weights, targets=targets):
        _, cells = setup_of(plan, rows, targets)
        return residual_sums(cells, design, Residuals(task, 0.0), weights, module.INEXACT_GRID)

    _, _, objective = objective_of(task=task)
    moves = []
    for scale in (0.0, 1.0, 100.0):
        shape = (design.size, task.n_outputs)
        weights = scale * np.random.default_rng(2).normal(size=shape)
        for k in range(max(2, task.n_outputs)):
            other = np.append(targets[:-1], k)
            # Two labels of one row: as if it were replaced.
            moves.append(np.abs(gradient(weights) - gradient(weights, other)).sum())
    assert max(moves) <= 2 * objective.l1_sensitivity
    radius = objective._radius
    tolerance = 1e-9
    found = objective._minimum(gradient, weights.shape, tolerance, radius)
    assert np.linalg.norm(gradient(found) + objective.l2_reg_strength * found) <= tolerance
    # A bound on the curvature that is too small by far is raised until steps converge.
    worse = replace(objective, loss_smoothness=1e-3 * objective.loss_smoothness)
    again = worse._minimum(gradient, weights.shape, tolerance, radius)
    strengths = worse.l2_reg_strength / objective.l2_reg_strength
    assert strengths == 1.0 and np.abs(again - found).max() < 1e-6


def test_ties_are_a_penalty_of_neighbors():
    """The gradient of half the squared rises of bins; the gap's cell and labels have none."""
    _, design, _ = objective_of()
    rng, matrix = np.random.default_rng(0), design.roughness_gradient(np.eye(design.size))
    for _ in range(3):
        w, direction = rng.normal(size=(2, design.size, 1))
        bins = [
            w[start : start + block.size - 1]
            for block, start in zip(design.blocks, design.offsets, strict=False)
            if 0 <= block.term < 2
        ]
        rises = math.fsum(float(np.sum(np.diff(own, axis=0) ** 2)) for own in bins)
        assert float(np.vdot(w, design.roughness_gradient(w))) == pytest.approx(rises)
        assert np.vdot(direction, design.roughness_gradient(w)) == pytest.approx(
            np.vdot(design.roughness_gradient(direction), w)
        )
    values = np.linalg.eigvalsh(matrix)
    assert np.abs(matrix - matrix.T).max() == 0.0 and len(bins) == 2
    # With the squared norm the curvature is at most what the steps and roundings reckon with.
    assert -1e-12 < values[0] and 1.0 + values[-1] <= PENALTY_SMOOTHNESS


def test_with_delta_zero_one_level_is_counted_finer_at_the_ends():
    plan = plan_of(BinaryTask(), meet(1.0, 0.0), n=40)
    assert list(plan.levels) == [4]
    assert list(replace(plan, n_rows=10**9).levels) == [10]
    # With delta > 0 all levels up to the finest one, which has about n mu cells.
    plan = plan_of(BinaryTask(), meet(1.0, 1e-6))
    assert list(plan.levels) == [*range(1, 5)]
    for n, finest in ((400, 7), (10**4, 10)):
        plan = replace(plan, n_rows=n)
        assert list(plan.levels) == [*range(1, finest + 1)]
        assert 2**finest >= min(plan.signal_to_noise, 1024)
    assert list(plan_of(NumberTask(), meet(1.0, 1e-6)).levels) == [*range(1, 11)]
    column = plan.columns[1]
    for n_cells in (16, CELLS):
        edges = finest_edges(column, n_cells, equal_width=False)
        widths = np.diff(edges)
        assert edges[0] == 0.0 and edges[n_cells // 2] == 5.0 and edges[-1] == 10.0
        np.testing.assert_allclose(widths, widths[::-1])
        assert (np.diff(widths[: n_cells // 2]) > 0.0).all() and widths.min() > 0.0


@pytest.mark.slow
def test_a_distinguisher_gets_no_more_than_epsilon():
    """A row against another, by the value of its cell; the fast one is that of the contract."""
    n, fits = 30, 600
    rows = np.zeros((n, 1))
    rows[-1] = 1.0
    y = np.append(np.tile([0, 1], n // 2)[:-1], 1)
    other, labels = rows.copy(), y.copy()
    other[-1], labels[-1] = 0.0, 0
    for delta in (0.0, 1e-5):
        model = DPAdditiveClassifier(
            1.0,
            delta=delta,
            bounds=(0, 1),
            n_bins=2,
            classes=[0, 1],
            accountant=PrivacyAccountant(1e9, 0.5, relation="replace_one"),
        )
        seen = [
            np.array([model.fit(*table).explain([[1.0]])[0, 0] for _ in range(fits)])
            for table in ((rows, y), (other, labels))
        ]
        # Wrong with a probability of 1e-4 each even if the claim were attained.
        threshold = np.median(np.concatenate(seen))
        hits, false = (int(np.sum(values > threshold)) for values in seen)
        certified = epsilon_lower_bound(hits, fits, false, fits, delta=delta, confidence=0.9999)
        assert certified <= 1.0
