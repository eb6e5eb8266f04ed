"""Quantiles: their trees and choices, and the rows of given ranks."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare

from skdp import ChunkedArray, DPMaxAbsScaler
from skdp.accounting import Neighbors, get_epsilon
from skdp.base import TableShape
from skdp.noise import RandomSource
from skdp.stats import _quantiles as module
from skdp.stats._quantiles import _LAST, POSITIONS, QuantileTree, _levels, _Positions, _windows
from skdp.stats._ranks import (
    CELLS,
    CODE_BITS,
    COLUMN_SHIFT,
    WEIGHTS,
    ranked_columns,
    weight_codes,
    weights_of,
)
from tests._attacks import attack_choices
from tests._guarantees import meet
from tests._private import BoundsSearch, ColumnTable, Rows, read_persons


def make_plan(quantiles, d=1, **options):
    n_rows = options.pop("n_rows", None)
    guarantee = meet(**{"epsilon": 1.0} | options)
    return QuantileTree(quantiles=quantiles, n_columns=d, n_rows=n_rows, guarantee=guarantee)


def unit_bounds(d=1):
    return {"low": np.zeros(d), "high": np.ones(d)}


def exact_law(rows, node, rate, first=0, last=24):
    """The law of one choice on a small grid, from the definition."""
    q = node.share / 2**30
    points = np.arange(first, last + 1)
    below = np.array([np.sum((rows >= first) & (rows < c)) for c in points])
    above = np.array([np.sum((rows >= c) & (rows < last)) for c in points])
    f = (1 - q) * below - q * above
    behind = np.isin(points - 1, rows[rows >= first])
    distances = np.where(behind, np.maximum(np.maximum(f - 1, -f), 0), np.abs(f))
    weights = np.exp(-float(rate) * distances)
    return weights / weights.sum()


class Ranked:
    """Rows at known positions, all of them, as a window of the rows of a part has some."""

    def __init__(self, positions, codes=None):
        order = np.argsort(positions, kind="stable")
        weights = np.ones(len(order), dtype=np.int64) if codes is None else WEIGHTS[codes[order]]
        self.positions, self.below = np.sort(positions), np.append(0, np.cumsum(weights))
        if codes is not None:
            last = np.append(np.diff(self.positions) > 0, True)
            self.positions, self.below = self.positions[last], self.below[np.append(True, last)]

    def with_point(self, point):
        return self

    def under(self, point):
        return int(self.below[np.searchsorted(self.positions, point)])

    def within(self, part):
        """Return those of a part."""
        own = Ranked.__new__(Ranked)
        start, stop = np.searchsorted(self.positions, [part.first, part.stop])
        own.positions, own.below = self.positions[start:stop], self.below[start : stop + 1]
        return own


def part_of(plan, rows, level=0, node=0, chosen=(0, 0, 0), last=_LAST):
    """Return the part of some rows, and their window, in which a node of a level is chosen."""
    level = plan.levels[level]
    rate = plan._rate(level, level[node])
    below = [rows.under(point) for point in chosen]
    terms = 0, len(rows.positions), np.array(chosen), below, [0, int(rows.below[-1])]
    part = plan._part(level[node], rate, *terms)
    part = replace(part, last=min(part.last, last))
    return part, rows.within(part)


def choose(part, rows, stream):
    return module._choose(part, rows, stream)[0]


# Spread out, none, one, and ties at one end of the range.
TABLES = [tuple(range(24)), (), (4,), (0,) * 9 + (23,), (0, 3, 3, 18)]


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("quantile", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_the_range_of_the_loss_of_one_choice_is_epsilon(relation, quantile):
    plan = make_plan([quantile], relation=relation)
    (level,) = plan.levels
    rate = plan._rate(level, level[0])

    def logs(rows):
        return np.log(exact_law(np.array(rows), level[0], rate))

    ranges = [np.ptp(logs(a) - logs(b)) for a, b in neighbors(relation)]
    assert max(ranges) <= 1.0 + 1e-9
    # The noise is not larger than it must be, but for the least and the largest row.
    assert max(ranges) > (0.99 if 0 < quantile < 1 else 0.49)


def neighbors(relation):
    for rows in TABLES:
        for i in range(len(rows)):
            rest = rows[:i] + rows[i + 1 :]
            if relation == "add_remove":
                yield rows, rest
            else:
                yield from ((rows, tuple(sorted((*rest, value)))) for value in range(0, 24, 2))


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_the_range_of_the_loss_of_a_level_is_epsilon(relation):
    # Two parts, between which a row can move; the splits are as uneven as these quantiles.
    plan = make_plan([0.1, 0.5, 0.6], relation=relation)
    level = plan.levels[1]
    spans = [(0, 12), (12, 24)]
    rates = [plan._rate(level, node) for node in level]

    def logs(rows):
        laws = [
            np.log(exact_law(np.array(rows), node, rate, *span))
            for node, rate, span in zip(level, rates, spans, strict=True)
        ]
        return np.add.outer(*laws)

    ranges = [np.ptp(logs(a) - logs(b)) for a, b in neighbors(relation)]
    assert 0.8 * plan.level_epsilon < max(ranges) <= plan.level_epsilon * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 60.0])
def test_choices_have_the_law_of_the_definition(epsilon):
    # Rows at known positions; the law of runs of points between them. False alarm: 1e-7.
    rows = np.sort(np.random.default_rng(0).integers(0, _LAST, size=40))
    plan = make_plan([0.3], epsilon=epsilon)
    (level,) = plan.levels
    rate = plan._rate(level, level[0])
    stream = RandomSource(0).stream()
    edges = np.concatenate([[0], rows + 1, [_LAST + 1]])
    weights = np.diff(edges).astype(float)
    ranks = np.arange(41)
    weights *= np.exp(-float(rate) * np.abs(ranks - level[0].share / 2**30 * 40))
    expected = weights / weights.sum()
    n, terms = 4000, part_of(plan, Ranked(rows))
    chosen = [choose(*terms, stream) for _ in range(n)]
    counts = np.bincount(np.searchsorted(edges, chosen, side="right") - 1, minlength=41)
    common = expected * n > 5
    grouped = [np.append(x[common], x[~common].sum()) for x in (counts, n * expected)]
    grouped = [x[grouped[1] > 0] for x in grouped]
    assert chisquare(*grouped).pvalue > 1e-7


def test_far_runs_have_the_law_of_the_definition(monkeypatch):
    # With a window of a tenth of the scale nearly all points are in the outer runs.
    monkeypatch.setattr(module, "_FAR", 0)
    rows = np.sort(np.random.default_rng(0).integers(0, _LAST, size=400))
    plan = make_plan([0.5], epsilon=0.01)
    (level,) = plan.levels
    rate, stream, n = plan._rate(level, level[0]), RandomSource(0).stream(), 3000
    terms = part_of(plan, Ranked(rows))
    chosen = [choose(*terms, stream) for _ in range(n)]
    edges = np.concatenate([[0], rows + 1, [_LAST + 1]])
    weights = np.diff(edges) * np.exp(-float(rate) * np.abs(np.arange(401) - 200))
    expected = np.add.reduceat(weights / weights.sum(), np.arange(0, 401, 20))
    counts = np.bincount((np.searchsorted(edges, chosen, side="right") - 1) // 20, minlength=21)
    # False alarm: 1e-7.
    assert chisquare(counts, n * expected).pvalue > 1e-7


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("far", [0, 50])
def test_points_behind_rows_have_the_law_of_the_definition(share, far, monkeypatch):
    # So few points that those behind rows matter, rows at one point, and outer runs.
    monkeypatch.setattr(module, "_FAR", far)
    rng, last, n = np.random.default_rng(0), 60, 5000
    rows = np.sort(np.concatenate([rng.integers(0, last + 1, size=30), np.full(170, 40), [last]]))
    plan = make_plan([share], epsilon=0.05)
    (level,) = plan.levels
    rate, stream = plan._rate(level, level[0]), RandomSource(0).stream()
    law = exact_law(rows, level[0], rate, 0, last + 1)[: last + 1]
    terms = part_of(plan, Ranked(rows), last=last)
    counts = np.bincount([choose(*terms, stream) for _ in range(n)], minlength=last + 1)
    common = n * law / law.sum() > 5
    grouped = [np.append(x[common], x[~common].sum()) for x in (counts, n * law / law.sum())]
    grouped = [x[grouped[1] > 0] for x in grouped]
    # False alarm: 1e-7.
    assert chisquare(*grouped).pvalue > 1e-7


@pytest.mark.parametrize("n", [1, 2, 100, 4001])
def test_without_noise_the_nearest_rows_are_chosen(n):
    # Gaps between the outermost rows are wide.
    x = np.clip(np.random.default_rng(0).standard_cauchy(size=(n, 1)) / 1e4, -0.5, 0.5) + 0.5
    for wanted in ([0.0, 0.5, 1.0], [0.0], [0.02], [0.9], [1.0]):
        found = make_plan(wanted, epsilon=1e10, n_rows=n).run(x, RandomSource(0), **unit_bounds())
        nearest = np.quantile(x, wanted, axis=0, method="nearest")
        extreme = np.isin(wanted, (0.0, 1.0)) if len(wanted) > 1 else slice(None)
        np.testing.assert_allclose(found[extreme], nearest[extreme], atol=2.0**-22)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("d", [1, 3, 100])
def test_the_whole_costs_what_was_asked_for(relation, delta, d):
    plan = make_plan([0.1, 0.25, 0.5, 0.9], d, delta=delta, relation=relation)
    cost = get_epsilon(plan.event, delta, relation=relation)
    assert 0.99 < cost <= 1.0


def test_a_budget_without_noise_is_divided_evenly():
    for count in (3, 30):
        each = module.epsilon_of_each(meet(1e10, 1e-6), count)
        assert 1e10 * (1 - 1e-12) < count * each <= 1e10


def test_many_quantiles_take_logarithmically_many_levels():
    quantiles = np.linspace(0.01, 0.99, 99)
    levels = _levels(quantiles)
    assert len(levels) == 7
    assert sorted(node.index for level in levels for node in level) == list(range(99))


def test_little_noise_gives_the_answer_of_numpy():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=4001), rng.beta(2, 5, size=4001), np.full(4001, 0.3)])
    quantiles = [0.9, 0.1, 0.5, 0.25, 0.5]
    ours = make_plan(quantiles, 3, epsilon=1e10).run(X, RandomSource(0), **unit_bounds(3))
    np.testing.assert_allclose(ours, np.quantile(X, quantiles, axis=0), atol=1e-3)


def test_results_do_not_decrease_and_stay_within_bounds():
    X = np.random.default_rng(0).normal(size=(50, 20))
    plan = make_plan(np.linspace(0, 1, 11), 20, epsilon=0.1)
    found = plan.run(X, RandomSource(0), **unit_bounds(20))
    assert np.all(np.diff(found, axis=0) >= 0) and found.min() >= 0 and found.max() <= 1


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_constant_columns_and_ties(value):
    plan = make_plan([0.1, 0.5, 0.9], epsilon=1.0)
    found = plan.run(np.full((2000, 1), value), RandomSource(0), **unit_bounds())
    np.testing.assert_allclose(found, value, atol=1e-6)


def test_degenerate_bounds_and_one_row():
    low, high = np.array([2.0, 0.0]), np.array([2.0, 1.0])
    found = make_plan([0.5], 2).run(np.array([[5.0, 0.5]]), RandomSource(0), low, high)
    assert found[0, 0] == 2.0 and 0 <= found[0, 1] <= 1


def test_extreme_bounds_do_not_overflow():
    plan = make_plan([0.5], epsilon=1e6)
    low, high = np.array([-1.7e308]), np.array([1.7e308])
    with np.errstate(all="raise"):
        found = plan.run(np.full((100, 1), 1e308), RandomSource(0), low, high)
    np.testing.assert_allclose(found, 1e308, rtol=1e-5)


def test_a_row_at_a_chosen_point_is_in_one_part():
    rows, plan = Ranked(np.array([3, 5, 5, 9, _LAST, _LAST])), make_plan([0.2, 0.5, 0.7])
    for point in (0, 5, 6, _LAST):
        parts = [part_of(plan, rows, 1, node, (0, point, 0)) for node in (0, 1)]
        assert sum(part.total for part, _ in parts) == 6
        assert [len(own.positions) for _, own in parts] == [part.total for part, _ in parts]


def choices(plan, rows, n, seed):
    """Which of four quarters of the range is chosen, with rows all at one end of it."""
    terms = part_of(plan, Ranked(np.array(rows, dtype=np.int64)))
    stream = RandomSource(seed).stream()
    chosen = [choose(*terms, stream) for _ in range(n)]
    return np.array(chosen) // (CELLS * POSITIONS // 4)


@pytest.mark.thorough
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_a_distinguisher_certifies_no_more_than_epsilon(relation):
    plan = make_plan([0.5], epsilon=2.0, relation=relation)
    one = [0] * 2 + [_LAST] * 2
    other = [0] * 2 + [_LAST] if relation == "add_remove" else [0] * 3 + [_LAST]
    # Confidence 1 - 1e-6.
    samples = choices(plan, one, 3000, 0), choices(plan, other, 3000, 1)
    assert attack_choices(*samples, confidence=1 - 1e-6) <= 2.0


@pytest.mark.thorough
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_half_the_sensitivity_is_caught(relation, monkeypatch):
    rate = QuantileTree._rate
    monkeypatch.setattr(QuantileTree, "_rate", lambda self, *node: 2 * rate(self, *node))
    with pytest.raises(AssertionError):
        test_the_range_of_the_loss_of_one_choice_is_epsilon(relation, 0.5)
    with pytest.raises(AssertionError):
        test_the_range_of_the_loss_of_a_level_is_epsilon(relation)


@pytest.mark.thorough
def test_a_dropped_factor_of_replace_one_is_caught(monkeypatch):
    rate = QuantileTree._rate

    def dropped(self, *node):
        own = replace(self.guarantee, neighbors=Neighbors(relation="add_remove"))
        return rate(replace(self, guarantee=own), *node)

    monkeypatch.setattr(QuantileTree, "_rate", dropped)
    with pytest.raises(AssertionError):
        test_the_range_of_the_loss_of_one_choice_is_epsilon("replace_one", 0.5)
    with pytest.raises(AssertionError):
        test_the_range_of_the_loss_of_a_level_is_epsilon("replace_one")


@pytest.mark.parametrize("quantiles", [[], [1.5], [-0.1], [np.nan], "half", [[0.5]]])
def test_bad_quantiles_are_refused(quantiles):
    with pytest.raises(ValueError, match="quantiles"):
        make_plan(quantiles)


def log_law(plan, level, tables, last=24):
    """Return the logarithms of the chances of the points of a small grid, at each part."""
    positions, ids = np.concatenate([np.stack(table) for table in tables], axis=1)
    rows = Ranked(positions, weight_codes(read_persons(ids, len(ids)).row_weights))
    logs = [np.zeros(1)]
    for node in range(len(plan.levels[level])):
        part, own = part_of(plan, rows, level, node, (12, 12, 12), last)
        edges, distances = module._intervals(part, own)
        steps = np.repeat(distances, np.diff(edges)) / (part.whole * part.fine)
        logs.append(-float(part.rate) * steps - logsumexp(-float(part.rate) * steps))
    return sum(np.ix_(*logs))


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_the_range_of_the_loss_of_a_person_of_any_number_of_rows_is_epsilon(relation, level):
    plan = make_plan([0.1, 0.5, 0.6], relation=relation, unit="person")
    rng, ranges = np.random.default_rng(0), []
    for i in range(60):
        others = rng.integers(0, 24, 20), rng.integers(0, 9, 20)
        own = [np.resize(rng.choice([0, 6, 11, 12, 18, 23], 1 + i % 2), k) for k in (1, 2, 7, 50)]
        persons = [(rows, np.full(len(rows), 9)) for rows in own]
        laws = [log_law(plan, level, [others, person]) for person in persons]
        first = laws if relation == "replace_one" else [log_law(plan, level, [others])]
        ranges += [np.ptp(one - other) for one in first for other in laws]
    assert 0.9 * plan.level_epsilon < max(ranges) <= plan.level_epsilon


def test_a_person_weighs_the_same_however_many_rows_there_are():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=2001)
    copies = rng.integers(1, 9, len(x))
    ids = np.repeat(np.arange(len(x)), copies)
    plan = make_plan([0.25, 0.9], epsilon=1e10, n_rows=len(x), unit="person")
    persons = read_persons(ids, len(ids))
    X = np.repeat(x, copies)[:, None]
    found = plan.run(X, RandomSource(0), **unit_bounds(), persons=persons)
    np.testing.assert_allclose(found[:, 0], np.quantile(x, [0.25, 0.9]), atol=2e-3)


def ranked_persons(n_persons, most_rows, last, seed=0):
    """Return positions of persons' rows with their weights, and these in order."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n_persons), rng.integers(1, most_rows + 1, n_persons))
    positions = rng.integers(0, last + 1, len(ids))
    row_weights = read_persons(ids, len(ids)).row_weights
    weights = np.floor(row_weights * 2**20) / 2**20
    return positions, weights, Ranked(positions, weight_codes(row_weights))


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("n_persons, last", [(6, 60), (40, 4000)])
def test_choices_among_lumps_of_weights_have_the_law_of_the_definition(
    n_persons, last, monkeypatch
):
    # Lumps whose points are far from equally likely, so that a choice that does not look is seen.
    monkeypatch.setattr(module, "_NEAR", 9)
    positions, weights, ranked = ranked_persons(n_persons, 9, last)
    plan, n = make_plan([0.3], epsilon=4.0, unit="person"), 2000
    (level,) = plan.levels
    rate, stream = plan._rate(level, level[0]), RandomSource(0).stream()
    terms = part_of(plan, ranked, last=last)
    points, q = np.arange(-1, last + 1)[:, None], level[0].share / 2**30
    f = ((1 - q) * (positions < points) - q * (positions >= points)) @ weights
    law = np.exp(-float(rate) * np.maximum(np.maximum(f[:-1], -f[1:]), 0))
    edges, _ = module._intervals(*terms)
    assert len(edges) <= 2 * len(np.unique(positions))
    counts = np.bincount([choose(*terms, stream) for _ in range(n)], minlength=last + 1)
    # Neighboring points together, about twenty times expected.
    expected = n * law / law.sum()
    starts = np.flatnonzero(np.diff(np.minimum(np.cumsum(expected) // 20, n // 20 - 1), prepend=-1))
    grouped = [np.add.reduceat(x, starts) for x in (counts, expected)]
    # False alarm: 1e-6 in each of two.
    assert chisquare(*grouped).pvalue > 1e-6


def test_a_choice_takes_as_many_runs_as_persons_weigh_whatever_rows_they_have():
    positions, weights, ranked = ranked_persons(200, 50, 10**6)
    plan = make_plan([0.4], epsilon=0.1, unit="person")
    part, _ = part_of(plan, ranked, last=10**6)
    edges, distances = module._intervals(part, ranked)
    assert len(edges) <= 2 * 200 + 9 < len(positions) / 4
    # No point of a run is nearer than is said, nor farther by a unit or more: its ends are not.
    for start, end, distance in zip(edges, edges[1:], distances, strict=False):
        for point in {start, end - 1} if start < end else ():
            place = int(np.searchsorted(ranked.positions, point))
            behind = place > 0 and ranked.positions[place - 1] == point - 1
            first, own = part.scores(ranked.below[[place - behind, place]])
            excess = module._distance(first, own) - distance
            assert 0 <= excess < part.whole * part.fine


# Rows of given ranks: sorted ones, and those that are counted where they are, are the same.


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


@pytest.mark.parametrize("by_person", [False, True])
@pytest.mark.parametrize("is_sorted_first", [False, True])
def test_ranks_that_are_searched_one_by_one_are_those_of_sorted_keys(by_person, is_sorted_first):
    X = made(50_000)
    row_weights = of_persons(len(X)).row_weights if by_person else None
    one = next(ranked_columns(Rows(X), LOW, HIGH, row_weights))
    keys = next(ranked_columns(Rows(cut(X)), LOW, HIGH, row_weights))._keys.to_array()
    keys = np.sort(keys, axis=None)
    below = np.append(0, np.cumsum(weights_of(keys)))
    rng = np.random.default_rng(3)
    for start in rng.integers(0, one.starts[-1] - 50, size=30).tolist():
        # A range of one column, as narrow as that of a quantile.
        column = np.searchsorted(one.starts, start, side="right") - 1
        end = min(start + 40, one.starts[column + 1] - 1)
        if is_sorted_first:
            one.sort([(start, end)])
        cells = keys[np.searchsorted(below, [start, end], side="right") - 1]
        cells = cells >> CODE_BITS << CODE_BITS
        first, last = np.searchsorted(keys, cells)
        expected = list(zip(cells.tolist(), below[[first, last]].tolist(), strict=True))
        assert one.find([start, end]) == expected
        run = cells[0], cells[1] + (1 << CODE_BITS)
        (rows,) = one.rows([run])
        stop = np.searchsorted(keys, run[1])
        np.testing.assert_array_equal(rows, keys[first:stop])


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
    # One or two columns at a time, where all are counted together.
    monkeypatch.setattr("skdp.stats._ranks._MAX_BYTES", 24_000)
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
        rate = plan._rate(level, level[0])
        parts = [plan._part(level[0], rate, j, len(X), (), (), ranks.starts) for j in range(4)]
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


def test_rows_of_a_cell_keep_their_positions():
    positions = _Positions(RandomSource(0).stream())
    keys = (np.array([3, 3, 3, 5, 8]) << CODE_BITS) | 1
    first = positions.rows(keys[:3], (3, 4))
    rows = positions.rows(keys, (0, 9))
    np.testing.assert_array_equal(rows[:3], first)
    np.testing.assert_array_equal(rows >> CODE_BITS >> 24, [3, 3, 3, 5, 8])
    np.testing.assert_array_equal(positions.rows(keys, (0, 9)), rows)
    np.testing.assert_array_equal(positions.rows(keys[3:4], (4, 7)), rows[3:4])


@pytest.mark.parametrize("seed", range(5))
def test_positions_of_overlapping_ranges_agree(seed):
    """Each row keeps the position that was drawn when a range first contained its cell."""
    rng = np.random.default_rng(seed)
    cells = np.sort(rng.integers(0, 60, size=40))
    keys = (cells << CODE_BITS) | 1
    positions = _Positions(RandomSource(seed).stream())
    known = np.full(len(keys), -1)
    stream = RandomSource(seed).stream()
    for _ in range(40):
        first = int(rng.integers(0, 60))
        end = first + 1 + int(rng.integers(0, 20))
        chosen = np.flatnonzero((cells >= first) & (cells < end))
        new = chosen[known[chosen] < 0]
        if len(new):
            words = stream.words((len(new) + 1) // 2).view(np.uint32)[: len(new)]
            drawn = (cells[new] << 24) + (words & np.uint32(POSITIONS - 1)).astype(np.int64)
            known[new] = np.sort(drawn)
        rows = positions.rows(keys[chosen], (first, end))
        np.testing.assert_array_equal(rows, (known[chosen] << CODE_BITS) | 1)


# Missing values.


def test_missing_values_count_nowhere_in_bounds_and_medians():
    X = 5.0 + np.random.default_rng(0).uniform(size=(5000, 1))
    X[::2] = np.nan
    table = ColumnTable(X.shape, X)
    plan = BoundsSearch(n_rows=5000, guarantee=meet(10.0))
    low, high = plan.run(table.numbers(), RandomSource())
    assert 4.0 <= low[0] <= 5.0 and 6.0 <= high[0] <= 8.0
    ends = {"low": np.array([5.0]), "high": np.array([6.0])}
    median = QuantileTree(quantiles=[0.5], n_columns=1, guarantee=meet(10.0))
    same, again = (
        plan.run(values, RandomSource(0))
        for values in (ColumnTable((2500, 1), X[1::2]).numbers(), X[1::2])
    )
    np.testing.assert_array_equal(same, again)
    same, again = (median.run(values, RandomSource(0), **ends) for values in (X, X[1::2]))
    np.testing.assert_array_equal(same, again)


# Quantiles of magnitudes.


BOUNDS = (-1.0, 0.75)


# Some beyond the bounds.
VALUES = (-3.0, -1.0, -0.4, 0.0, 0.6, 2.0)


def plan_of_magnitudes(n_rows, relation="add_remove", epsilon=1.0, **params):
    shape = TableShape(n_rows=n_rows, n_columns=1)
    return DPMaxAbsScaler(bounds=BOUNDS, **params).plan_fit(shape, meet(epsilon, 0.0, relation))


def only_choice_of(plan):
    """Return the node and the rate of the only choice."""
    ((node,),) = plan.mechanism.levels
    return node, plan.mechanism._rate((node,), node)


def neighbors_of_rows(rows, relation):
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
    plan, logs = plan_of_magnitudes(3, relation, quantile=quantile), {}
    node, rate = only_choice_of(plan)

    def log_law(rows):
        if rows not in logs:
            plan.run(np.array(rows)[:, None], None)
            logs[rows] = np.log(exact_law(seen.pop(), node, rate, 0, 25))
        return logs[rows]

    ranges = [
        np.ptp(log_law(rows) - log_law(other))
        for rows in product(VALUES, repeat=3)
        for other in neighbors_of_rows(rows, relation)
    ]
    assert 0.5 < max(ranges) <= 1.0 + 1e-9
