"""Rows of given ranks: sorted ones, and those that are counted where they are, are the same."""

import numpy as np
import pytest
from scipy.stats import chisquare

from skdp import ChunkedArray
from skdp.noise import RandomSource
from skdp.stats import _quantiles as module
from skdp.stats._quantiles import POSITIONS, _Positions, _windows
from skdp.stats._ranks import CELLS, CODE_BITS, COLUMN_SHIFT, ranked_columns
from tests._private import Rows, read_persons
from tests.stats.test_quantiles import make_plan, unit_bounds

LOW, HIGH = np.array([-4.0, -4.0, 0.0, 0.0]), np.array([4.0, 4.0, 1e3, 1.0])


def made(n=3000, seed=0):
    """Return a table: spread out, ties, far away from most of the range, and nothing in most."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 1], X[:, 2] = np.round(X[:, 1]), np.exp(X[:, 2])
    X[rng.random(n) < 0.9, 3] = np.nan
    return X


def cut(X, seed=1):
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(X), size=4))
    return ChunkedArray([part for part in np.split(X, cuts) if len(part)])


def both(X, row_weights=None):
    tables = Rows(X), Rows(cut(X))
    return [next(ranked_columns(rows, LOW, HIGH, row_weights)) for rows in tables]


def of_persons(n):
    ids = np.random.default_rng(2).integers(0, n // 3, size=n)
    return read_persons(ids, n)


@pytest.mark.parametrize("by_person", [False, True])
def test_counts_find_what_sorted_rows_have(by_person):
    X = made()
    row_weights = of_persons(len(X)).row_weights if by_person else None
    one, other = both(X, row_weights)
    assert one.starts == other.starts
    rng = np.random.default_rng(3)
    weights = [0, one.starts[-1] - 1, *rng.integers(0, one.starts[-1], size=50).tolist()]
    found = one.find(weights)
    assert found == other.find(weights)
    runs = []
    for (key, below), weight in zip(found, weights, strict=True):
        end = key + (int(rng.integers(1, CELLS // 4)) << CODE_BITS)
        runs.append((key, min(end, ((key >> COLUMN_SHIFT) + 1) << COLUMN_SHIFT)))
        assert below <= weight
    for left, right in zip(one.rows(runs), other.rows(runs), strict=True):
        np.testing.assert_array_equal(left, right)


def test_the_cell_of_a_weight_is_that_of_the_row_of_its_rank():
    X = made()
    one, _ = both(X)
    ranks = np.arange(0, len(X), 97)
    for j, column in enumerate(X.T[:3]):
        found = one.find([one.starts[j] + int(rank) for rank in ranks])
        share = np.clip((np.sort(column)[ranks] - LOW[j]) / (HIGH[j] - LOW[j]), 0, 1)
        cells = [(key >> CODE_BITS) & (2 * CELLS - 1) for key, _ in found]
        np.testing.assert_allclose(cells, share * CELLS, atol=0.51)
        assert all(
            below - one.starts[j] <= rank for (_, below), rank in zip(found, ranks, strict=True)
        )


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("by_person", [False, True])
@pytest.mark.parametrize("epsilon", [0.01, 5.0, 1e6])
@pytest.mark.parametrize("quantiles", [[0.5], [0.0, 0.3, 0.35, 1.0], np.linspace(0, 1, 20)])
def test_the_same_is_released_of_rows_in_memory_and_in_parts(
    quantiles, epsilon, by_person, monkeypatch
):
    # Two columns at a time, where all are counted together.
    monkeypatch.setattr("skdp.stats._ranks._MAX_KEYS", 6000)
    X, options = made(), {"unit": "person"} if by_person else {}
    persons = of_persons(len(X)) if by_person else None
    plan = make_plan(quantiles, 4, epsilon=epsilon, n_rows=len(X), **options)
    one, other = (plan.run(held, RandomSource(0), LOW, HIGH, persons) for held in (X, cut(X)))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("by_person", [False, True])
def test_a_window_has_the_rows_that_all_rows_have_there(by_person):
    """Its runs of points and their distances are those that all rows give."""
    X, options = made(20_000), {"unit": "person"} if by_person else {}
    row_weights = of_persons(len(X)).row_weights if by_person else None
    plan = make_plan([0.3], 4, epsilon=50.0, n_rows=len(X), **options)
    (level,) = plan.levels
    for ranks in both(X, row_weights):
        places = [_Positions(RandomSource(0).stream()) for _ in LOW]
        parts = [plan._part(level, level[0], j, len(X), (), (), ranks.starts) for j in range(4)]
        for part, window in zip(parts, _windows(parts, ranks, places), strict=True):
            whole = window.with_point(0).with_point((CELLS + 1) * POSITIONS - 1)
            assert len(window.positions) < len(whole.positions)
            runs = [module._intervals(part, own) for own in (window, whole)]
            for some, everything in zip(*runs, strict=True):
                np.testing.assert_array_equal(some, everything)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("in_parts", [False, True])
def test_far_points_have_the_law_of_the_definition(in_parts, monkeypatch):
    # With a window of a tenth of the scale nearly all points are beyond the rows looked at.
    monkeypatch.setattr(module, "_FAR", 0)
    x = np.sort(np.random.default_rng(0).uniform(size=400))[:, None]
    plan, n = make_plan([0.5], epsilon=0.01, n_rows=400), 1500
    (level,) = plan.levels
    held = cut(x) if in_parts else x
    chosen = [plan.run(held, RandomSource(i), **unit_bounds()).item() for i in range(n)]
    weights = np.diff([0.0, *x[:, 0], 1.0])
    ranks = np.abs(np.arange(401) - level[0].share / 2**30 * 400)
    law = np.add.reduceat(
        weights * np.exp(-float(plan._rate(level, level[0])) * ranks), range(0, 401, 20)
    )
    counts = np.bincount(np.searchsorted(x[:, 0], chosen) // 20, minlength=21)
    # False alarm: 1e-7 in each of two.
    assert chisquare(counts, n * law / law.sum()).pvalue > 1e-7


def test_rows_of_a_cell_keep_their_places():
    places = _Positions(RandomSource(0).stream())
    keys = (np.array([3, 3, 3, 5, 8]) << CODE_BITS) | 1
    places.draw(keys[:3], (3, 4))
    some = places.rows
    for _ in range(2):
        places.draw(keys, (0, 9))
        np.testing.assert_array_equal(places.rows[:3], some)
        np.testing.assert_array_equal(places.rows >> CODE_BITS >> 24, [3, 3, 3, 5, 8])
        np.testing.assert_array_equal(places.sums, np.arange(6))
