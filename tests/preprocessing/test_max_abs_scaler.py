"""What is DPMaxAbsScaler's own; what it shares is in test_quantile_scalers.py."""

import numpy as np
import pytest
from scipy.stats import chisquare

from skdp import DPMaxAbsScaler
from skdp.base import TableShape
from skdp.noise import RandomSource
from tests._attacks import attack_choices
from tests._guarantees import meet

BOUNDS = (-1.0, 0.75)


def make_plan(n_rows, relation="add_remove", epsilon=1.0, **params):
    shape = TableShape(n_rows=n_rows, n_columns=1)
    return DPMaxAbsScaler(bounds=BOUNDS, **params).plan_fit(shape, meet(epsilon, 0.0, relation))


def only_choice(plan):
    """Return the node and the rate of the only choice."""
    ((node,),) = plan.mechanism.levels
    return node, plan.mechanism._rate((node,), node)


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


def certified(epsilon, n=1500):
    """The epsilon that the median of magnitudes certifies for the row at -0.1."""
    plan, source = make_plan(2, epsilon=epsilon, quantile=50), RandomSource()
    outputs = [
        [plan.run(np.array(X), source).released.item() > 0.9 for _ in range(n)]
        for X in ([[-0.9]], [[-0.1], [-0.9]])
    ]
    return attack_choices(*outputs, confidence=1 - 1e-6)


@pytest.mark.thorough
def test_a_distinguisher_finds_too_little_noise():
    assert certified(1.0) <= 1.0
    # A copy that claims 1 and draws its noise for 8 is found.
    assert certified(8.0) > 1.0


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
