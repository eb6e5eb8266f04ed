"""What is DPMaxAbsScaler's own; what it shares is in test_quantile_scalers.py."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare

from skdp import DPMaxAbsScaler
from skdp.base import TableShape
from skdp.noise import RandomSource
from tests._attacks import attack_choices
from tests._guarantees import meet
from tests._private import CELLS, CODE_BITS, QuantileTree
from tests.stats.test_quantiles import exact_law

BOUNDS = (-1.0, 0.75)
# Some beyond the bounds.
VALUES = (-3.0, -1.0, -0.4, 0.0, 0.6, 2.0)


def make_plan(n_rows, relation="add_remove", **params):
    shape = TableShape(n_rows=n_rows, n_columns=1)
    return DPMaxAbsScaler(bounds=BOUNDS, **params).plan_fit(shape, meet(1.0, 0.0, relation))


def only_choice(plan):
    """Return the node and the rate of the only choice."""
    ((node,),) = plan.mechanism.levels
    return node, plan.mechanism._rate((node,), node)


def neighbors(rows, relation):
    for i in range(len(rows)):
        rest = rows[:i] + rows[i + 1 :]
        if relation == "add_remove":
            yield rest
        else:
            yield from ((*rest, value) for value in VALUES)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("quantile", ["auto", 50])
def test_brute_force_range_of_the_loss(relation, quantile, monkeypatch):
    seen = []

    def choose(self, ranks, n_rows, source):
        (keys,) = ranks.rows([(0, (CELLS + 1) << CODE_BITS)])
        seen.append((keys >> CODE_BITS) * 24 // CELLS)
        return np.zeros((1, 1), dtype=np.int64)

    monkeypatch.setattr(QuantileTree, "_choose", choose)
    plan, logs = make_plan(3, relation, quantile=quantile), {}
    node, rate = only_choice(plan)

    def log_law(rows):
        if rows not in logs:
            plan.run(np.array(rows)[:, None], None)
            logs[rows] = np.log(exact_law(seen.pop(), node, rate, 0, 25))
        return logs[rows]

    ranges = [
        np.ptp(log_law(rows) - log_law(other))
        for rows in product(VALUES, repeat=3)
        for other in neighbors(rows, relation)
    ]
    assert 0.5 < max(ranges) <= 1.0 + 1e-9


@pytest.mark.thorough
def test_magnitudes_have_the_law_of_the_definition():
    X = np.array([-0.9, 0.1, 0.5, -0.3, 2.0])
    magnitudes, n = [0.1, 0.3, 0.5, 0.75, 0.9], 3000
    plan = make_plan(5, quantile=70)
    node, rate = only_choice(plan)
    ranks = np.abs(np.arange(6) - 5 * node.share / 2**30)
    law = np.diff([0.0, *magnitudes, 1.0]) * np.exp(-float(rate) * ranks)
    found = [plan.run(X[:, None], RandomSource(i)).released.item() for i in range(n)]
    counts = np.bincount(np.searchsorted(magnitudes, found), minlength=6)
    # False alarm: 1e-7.
    assert chisquare(counts, n * law / law.sum()).pvalue > 1e-7


def certified(n=1500):
    """The epsilon that the median of magnitudes certifies for the row at -0.1."""
    plan, source = make_plan(2, quantile=50), RandomSource()
    outputs = [
        [plan.run(np.array(X), source).released.item() > 0.9 for _ in range(n)]
        for X in ([[-0.9]], [[-0.1], [-0.9]])
    ]
    return attack_choices(*outputs, confidence=1 - 1e-6)


@pytest.mark.thorough
def test_a_distinguisher_finds_too_little_noise(monkeypatch):
    assert certified() <= 1.0
    monkeypatch.setattr(QuantileTree, "level_epsilon", property(lambda self: 8.0))
    assert certified() > 1.0


@pytest.mark.parametrize("bounds", [(1000, 1001), (-1001, -1000), (-1000.5, 1001)])
def test_magnitudes_lie_where_the_bounds_allow(bounds):
    least = 0.0 if bounds[0] < 0 < bounds[1] else 1000.0
    for X in ([[0.0]], [[1e9], [-1e9]]):
        scaler = DPMaxAbsScaler(1e-3, bounds=bounds).fit(X)
        assert least <= scaler.max_abs_[0] <= 1001.0


@pytest.mark.parametrize("clip", [False, True])
def test_beyond_the_quantile_only_clip_keeps_the_range(clip):
    X = np.random.default_rng(0).normal(size=(1001, 2))
    scaler = DPMaxAbsScaler(1e10, bounds=(-10, 10), quantile=50, clip=clip).fit(X)
    expected = X / np.median(np.abs(X), axis=0)
    expected = np.clip(expected, -1.0, 1.0) if clip else expected
    np.testing.assert_allclose(scaler.transform(X), expected, rtol=1e-5)
    np.testing.assert_array_equal(scaler.transform(np.zeros((1, 2))), 0.0)
    assert scaler.quantile_ == 50.0


def test_the_tail_that_is_cut_off_follows_from_public_sizes():
    def quantile(n, epsilon):
        shape = TableShape(n_rows=n, n_columns=1)
        plan = DPMaxAbsScaler(bounds=BOUNDS).plan_fit(shape, meet(epsilon))
        return plan.mechanism.quantiles[0]

    assert quantile(50, 1.0) == 0.95 < quantile(10_000, 1.0) < quantile(10_000, 10.0)
    assert 1.0 - quantile(10_000, 1e9) < 1e-10


def test_a_column_of_zeros_is_divided_by_what_the_bounds_allow():
    scaler = DPMaxAbsScaler(1e6, bounds=(-1.0, 3.0)).fit(np.zeros((100, 1)))
    assert scaler.max_abs_[0] == 0.0 and scaler.scale_[0] == 3.0
