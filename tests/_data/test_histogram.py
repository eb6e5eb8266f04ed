"""Counts: bins and cells of columns, trees of counts, and scores of pairs of columns."""

import itertools
import math

import numpy as np
import pytest

from skdp._data import _dyadic, _histogram
from skdp._data._chunked import as_chunked
from skdp._data._dyadic import (
    CELLS,
    consistent_counts,
    level_counts,
    merge_cells,
    nonnegative_counts,
)
from skdp._data._histogram import bin_numbers, check_edges, count_bins, count_cells, uniform_edges
from skdp._data._pair_scores import (
    all_pairs,
    chance_scores,
    independent_tables,
    max_scores,
    pair_scores,
    pair_tables,
    score_sensitivity,
)
from skdp._data._parts import Rows
from skdp._data._persons import read_persons

RANGES = [(7, (0, 1)), (64, (-3, 3)), (1000, (0, 0.3)), (10, (0, 10)), (3, (1e6, 1e6 + 1))]


def awkward_values(edges):
    """Values inside and outside, at edges and next to them."""
    rng = np.random.default_rng(0)
    low, high = edges[0], edges[-1]
    near = [edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)]
    x = np.concatenate(
        [rng.uniform(2 * low - high, 2 * high - low, 20_000), *near, [1e308, -1e308]]
    )
    return x[rng.permutation(x.size)]


@pytest.mark.parametrize(("n_bins", "span"), RANGES)
def test_counts_are_those_of_numpy(n_bins, span):
    edges = uniform_edges(*span, n_bins)
    x = awkward_values(edges)
    ours = count_bins(x[:, None], [edges])[0]
    np.testing.assert_array_equal(ours, np.histogram(x, bins=n_bins, range=span)[0])
    np.testing.assert_array_equal(ours, np.histogram(x, bins=edges)[0])
    np.testing.assert_array_equal(edges, np.histogram_bin_edges(x, n_bins, span))


def test_edges_decide_whatever_the_range():
    # Far from 0 and near it; where arithmetic is too coarse, edges are searched.
    rng = np.random.default_rng(1)
    for _ in range(300):
        n_bins = int(rng.integers(1, 200))
        low = float(rng.normal() * 10.0 ** rng.uniform(-3, 9))
        edges = np.linspace(low, low + 10.0 ** rng.uniform(-2, 3), n_bins + 1)
        near = [edges]
        for towards in (np.inf, -np.inf):
            near += [np.nextafter(edges, towards), np.nextafter(near[-1], towards)]
        step = edges[1] - edges[0]
        near += [edges + step * sign * 2.0**-k for sign in (-1, 1) for k in (19, 20, 21, 22, 30)]
        X = np.column_stack([np.concatenate(near), rng.permutation(np.concatenate(near))])
        counts = count_bins(X, [edges, edges])
        for column, ours in zip(X.T, counts, strict=True):
            np.testing.assert_array_equal(ours, np.histogram(column, edges)[0])


@pytest.mark.parametrize(("n_bins", "span"), RANGES)
def test_uneven_edges_are_those_of_numpy(n_bins, span):
    edges = np.unique(np.random.default_rng(1).uniform(*span, n_bins + 1))
    x = awkward_values(edges)
    np.testing.assert_array_equal(count_bins(x[:, None], [edges])[0], np.histogram(x, edges)[0])


def test_what_is_outside_can_count_in_the_outermost_bins():
    X = np.random.default_rng(0).normal(size=(5000, 2))
    X[:4] = [[np.inf, -np.inf], [1e308, -1e308], [-1.0, 3.0], [1.0, -3.0]]
    edges = [np.linspace(-1, 1, 5), np.array([-3.0, 0.1, 3.0])]
    for j, counts in enumerate(count_bins(X, edges, outermost=True)):
        clipped = np.clip(X[:, j], edges[j][0], edges[j][-1])
        np.testing.assert_array_equal(counts, np.histogram(clipped, edges[j])[0])
    # A column of a single bin.
    assert count_bins(X, [[-1.0, 1.0]] * 2, outermost=True)[0].tolist() == [5000]


def test_columns_may_have_different_bins():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70_000, 3))
    edges = [np.linspace(-1, 1, 5), np.linspace(-3, 3, 100), np.array([-1.0, 0.1, 4.0])]
    for some in (edges, edges[:2]):
        counts = count_bins(X[:, : len(some)], some)
        for j, each in enumerate(some):
            np.testing.assert_array_equal(counts[j], np.histogram(X[:, j], each)[0])


def test_pairs_are_those_of_numpy():
    X = np.random.default_rng(0).normal(size=(70_000, 2))
    edges = [np.linspace(-1, 1, 5), np.linspace(-3, 3, 8)]
    expected = np.histogram2d(X[:, 0], X[:, 1], edges)[0]
    np.testing.assert_array_equal(count_cells(X, edges), expected)


@pytest.mark.parametrize("edges", [np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.1, 2.0])])
def test_nan_and_infinity_count_nowhere(edges):
    x = np.array([[np.nan], [np.inf], [-np.inf], [2.0]])
    assert count_bins(x, [edges])[0].tolist() == [0, 1]
    numbers = bin_numbers(x, [edges])[:, 0]
    assert numbers.tolist() == [0, 1, 0, 1]


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("line", [1, 8, 512])
@pytest.mark.parametrize("n_columns", [1, 2, 3, 20, 513])
def test_counts_are_those_of_numpy_for_every_shape(n_columns, line, monkeypatch):
    # Several rows are one line where columns are few, and rows may be left over.
    monkeypatch.setattr(_histogram, "LINE_VALUES", line)
    monkeypatch.setattr(_histogram, "STEP_VALUES", 4 * line)
    rng = np.random.default_rng(n_columns)
    for n_rows in (1, 2, 255, 256, 257, 1100):
        low = rng.normal(size=n_columns) * 10.0 ** rng.uniform(-3, 5, size=n_columns)
        edges = [np.linspace(a, a + 2.0, int(rng.integers(1, 6)) + 1) for a in low]
        for j in range(2, n_columns, 5):
            edges[j] = edges[j][0] + np.cumsum(rng.exponential(size=len(edges[j])))
        X = low + rng.uniform(-1, 3, size=(n_rows, n_columns))
        for column, own in zip(X.T, edges, strict=True):
            special = rng.choice([*own, *np.nextafter(own, -np.inf), np.nan, np.inf], size=n_rows)
            np.copyto(column, special, where=rng.random(n_rows) < 0.5)
        row_weights = rng.integers(0, 2**26, size=n_rows) * 2.0**-26
        for order in "CF":
            ours = count_bins(np.array(X, order=order), edges)
            shared = count_bins(np.array(X, order=order), edges, row_weights=row_weights)
            for j in range(0, n_columns, 1 + n_columns // 20):
                told = np.isfinite(X[:, j])
                x, weights = X[told, j], row_weights[told]
                np.testing.assert_array_equal(ours[j], np.histogram(x, edges[j])[0])
                expected = np.histogram(x, edges[j], weights=weights)[0]
                np.testing.assert_array_equal(shared[j], expected)


def test_edges_near_the_largest_number():
    X, edges = np.array([[np.inf], [np.nan], [1.6e308], [-np.inf]]), np.array([1.5e308, 1.7e308])
    assert count_bins(X, [edges])[0].tolist() == [1]
    assert count_bins(X, [-edges[::-1]])[0].tolist() == [0]


def test_files_are_read_block_by_block(tmp_path):
    X = np.random.default_rng(0).integers(0, 10, size=(100_000, 2)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    edges = [uniform_edges(0, 10, 10)] * 2
    for counts in count_bins(np.load(tmp_path / "X.npy", mmap_mode="r"), edges):
        assert counts.sum() == len(X)


@pytest.mark.parametrize("edges", [[1.0], [0, 0], [1, 0], [0, np.inf], ["a", "b"], [[0, 1]]])
def test_bad_edges_are_refused(edges):
    with pytest.raises(ValueError, match="bins"):
        check_edges(edges)


@pytest.mark.filterwarnings("error")
def test_edges_too_close_for_a_quotient_do_not_warn():
    edges = [np.array([0.0, 5e-324, 1e-323])]
    assert count_bins(np.array([[0.0], [5e-324], [1e-323], [1.0]]), edges)[0].tolist() == [1, 2]


# Bins out of noisy counts: least squares, sums that increase, merging.


@pytest.mark.parametrize("coarsest", [1, 2, 4])
def test_consistent_counts_are_those_of_least_squares(coarsest):
    design = np.stack([level_counts(unit, coarsest) for unit in np.eye(16)], axis=1)
    assert len(design) == 32 - 2**coarsest
    noisy = np.random.default_rng(0).normal(size=len(design))
    # The sum is known: a very heavy row of its own.
    heavy = np.vstack([design, 1e6 * np.ones(16)])
    best = np.linalg.lstsq(heavy, np.append(noisy, 1e6 * 7.0), rcond=None)[0]
    np.testing.assert_allclose(consistent_counts(noisy, 7.0, coarsest), best, atol=1e-5)


def test_without_noise_nothing_changes():
    counts = np.random.default_rng(1).integers(0, 9, size=CELLS)
    levels = level_counts(counts)
    assert len(levels) == 2 * CELLS - 2 and levels.sum() == 10 * counts.sum()
    found = consistent_counts(levels.astype(float), counts.sum())
    np.testing.assert_allclose(found, counts, atol=1e-9)
    np.testing.assert_allclose(nonnegative_counts(found, counts.sum()), counts, atol=1e-9)


def test_masses_are_not_negative_and_no_more_than_there_are():
    noisy = np.random.default_rng(2).normal(0, 30, size=CELLS)
    masses = nonnegative_counts(noisy, 100.0)
    assert masses.min() >= 0.0 and masses.sum() <= 100.0 + 1e-9
    # Cutting negatives off would make thousands of rows out of nothing.
    assert np.maximum(noisy, 0.0).sum() > 5000.0


@pytest.mark.parametrize("n_bins", [2, 8, 32])
def test_bins_hold_about_as_much_as_each_other(n_bins):
    masses = np.random.default_rng(3).uniform(0, 1, size=CELLS)
    starts = merge_cells(masses, n_bins, 0.0)
    held = np.add.reduceat(masses, starts)
    assert starts[0] == 0 and len(starts) == n_bins
    # Up to a cell and to what is not told from nothing.
    assert held.max() - held.min() <= 2.0 + 2.0 * _dyadic.COUNT_RTOL * held.mean()


def merged_by_definition(counts, n_bins, min_count):
    """Return the starts of merged bins, cell by cell."""
    min_count = max(min_count, _dyadic.MIN_BIN_COUNT)
    is_bin = counts >= (1.0 - _dyadic.COUNT_RTOL) * max(counts.sum() / n_bins, min_count)
    target = max(counts[~is_bin].sum() / max(n_bins - is_bin.sum(), 1), min_count)
    starts = []
    for is_large, run in itertools.groupby(range(len(counts)), key=is_bin.__getitem__):
        cells = list(run)
        if is_large:
            starts += cells
            continue
        run_counts = counts[cells]
        n_run_bins = max(int(run_counts.sum() / target + _dyadic.COUNT_RTOL), 1)
        bin_count = run_counts.sum() / n_run_bins
        below = np.cumsum(run_counts) - run_counts
        last = -1
        for cell, position in zip(cells, below, strict=True):
            if bin_count > 0.0:
                position = position / bin_count + _dyadic.COUNT_RTOL
            index = min(int(position), n_run_bins - 1)
            if index > last:
                starts.append(cell)
            last = index
    return starts


@pytest.mark.parametrize("seed", range(4))
def test_merged_bins_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    for n_cells in (1, 2, 3, 16, CELLS):
        for n_bins in (1, 2, 7, 40):
            counts = rng.exponential(size=n_cells) ** rng.integers(1, 5)
            counts[rng.uniform(size=n_cells) < 0.5] = 0.0
            for min_count in (0.0, 1.0):
                starts = merge_cells(counts, n_bins, min_count)
                assert starts.tolist() == merged_by_definition(counts, n_bins, min_count)


def test_a_spike_stands_alone_and_small_bins_are_merged():
    masses = np.full(CELLS, 0.1)
    masses[500] = 900.0
    starts = merge_cells(masses, 32, 30.0)
    assert 500 in starts and 501 in starts
    held = np.add.reduceat(masses, starts)
    assert held.min() > 20.0
    for least in (0.0, 1.0):
        assert merge_cells(np.zeros(CELLS), 32, least).tolist() == [0]
    one = np.zeros(CELLS)
    one[7] = 3.0
    assert merge_cells(one, 32, 0.0).tolist() == [0, 7, 8]


# Scores of pairs of columns: exact, of sensitivity 1, and computed from any container's rows.


SIZES = [3, 2, 4]


GROUPS = [None, np.array([0, 0, 1, 1, 0]), None]


def columns_of(block):
    """Cells as `pair_tables` reads them: one row of the block per column."""
    return np.asarray(block).astype(np.int64).T


def cells_of(X):
    return Rows.wrap(X).mapped(columns_of)


def random_cells(rng, n):
    return np.column_stack([rng.integers(k, size=n) for k in (3, 5, 4)]).astype(np.float64)


def scores_of(X, expected, n, row_weights=None, sizes=SIZES, groups=GROUPS):
    pairs = all_pairs(len(sizes))
    tables = pair_tables(cells_of(X), groups, sizes, pairs, row_weights)
    return pair_scores(tables, expected, n)


def noisy_counts(rng, n):
    return [rng.normal(n / k, n / 10, size=k) for k in SIZES]


def test_tables_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    X = random_cells(rng, 500)
    tables = pair_tables(cells_of(X), GROUPS, SIZES, all_pairs(3))
    second = GROUPS[1][X[:, 1].astype(int)]
    columns = [X[:, 0].astype(int), second, X[:, 2].astype(int)]
    for table, (j, k) in zip(tables, all_pairs(3), strict=True):
        for a, b in itertools.product(range(SIZES[j]), range(SIZES[k])):
            assert table[a, b] == ((columns[j] == a) & (columns[k] == b)).sum()


def test_scores_are_whole_numbers_of_the_textbook_formula():
    rng = np.random.default_rng(1)
    X = random_cells(rng, 300)
    counts = noisy_counts(rng, 300)
    expected = independent_tables(counts, all_pairs(3), 300)
    scores = scores_of(X, expected, 300)
    assert (scores == np.rint(scores)).all()
    tables = pair_tables(cells_of(X), GROUPS, SIZES, all_pairs(3))
    for score, table, (j, k) in zip(scores, tables, all_pairs(3), strict=True):
        p, q = (np.maximum(counts[i], 0) / np.maximum(counts[i], 0).sum() for i in (j, k))
        assert score == np.abs(table - np.rint(300 * np.outer(p, q))).sum()


@pytest.mark.parametrize("factor", [1, 2])
def test_largest_move_over_all_neighbors_is_the_claim(factor):
    """Every row of small tables is taken out, or replaced by every other row."""
    rng = np.random.default_rng(2)
    l1_claim, l2_claim = score_sensitivity(3, factor)
    largest = 0.0
    for _ in range(20):
        n = int(rng.integers(3, 9))
        X = random_cells(rng, n)
        expected = independent_tables(noisy_counts(rng, n), all_pairs(3), n)
        scores = scores_of(X, expected, n)
        for i in range(n):
            rows = [np.zeros((0, 3))]
            if factor == 2:
                rows = [np.array([row]) for row in itertools.product((0, 2), (0, 2), (0, 3))]
            for row in rows:
                neighbor = np.concatenate([np.delete(X, i, axis=0), row])
                moves = np.abs(scores_of(neighbor, expected, n) - scores)
                assert moves.max() <= factor
                assert moves.sum() <= l1_claim
                assert np.linalg.norm(moves) <= l2_claim
                largest = max(largest, moves.sum())
    assert largest == l1_claim


@pytest.mark.parametrize("factor", [1, 2])
def test_a_person_moves_scores_no_more_than_a_row(factor):
    rng = np.random.default_rng(3)
    l1_claim, _ = score_sensitivity(3, factor)
    largest = 0.0
    for _ in range(30):
        ids = np.repeat([0, 1, 2, 3], rng.integers(1, 8, size=4))
        X = random_cells(rng, len(ids))
        X[ids == 0] = X[0]
        persons = read_persons(ids, len(ids))
        expected = independent_tables(noisy_counts(rng, 4), all_pairs(3), 4)
        scores = scores_of(X, expected, 4, persons.row_weights)
        assert (scores * 2**26 == np.rint(scores * 2**26)).all()
        for person in range(4):
            others = X[ids != person]
            weights = persons.row_weights[ids != person]
            if factor == 2:
                new = np.repeat([[2.0, 3.0, 1.0]], 5, axis=0)
                others = np.concatenate([others, new])
                weights = np.append(weights, np.full(5, np.floor(2**26 / 5) / 2**26))
            moves = np.abs(scores_of(others, expected, 4, weights) - scores)
            assert moves.max() <= factor
            assert moves.sum() <= l1_claim
            largest = max(largest, moves.sum())
    assert largest >= 0.99 * l1_claim


def test_entries_that_are_not_rounded_would_break_the_claim():
    """The distance to fractions of rows is rounded, and moves by more than 1 now and then."""
    rng = np.random.default_rng(4)
    moves = []
    for _ in range(200):
        p, q = rng.random(3), rng.random(4)
        expected = 20 * np.outer(p / p.sum(), q / q.sum())
        table = rng.integers(3, size=(3, 4)).astype(float)
        score = np.abs(table - expected).sum()
        table[1, 1] += 1.0
        moves.append(abs(np.abs(table - expected).sum() - score))
    assert max(moves) > 1.0


def test_partitions_and_blocks_do_not_change_a_score():
    rng = np.random.default_rng(5)
    X = random_cells(rng, 40_000)
    weights = np.floor(2**26 / rng.integers(1, 9, size=len(X))) / 2**26
    expected = independent_tables(noisy_counts(rng, len(X)), all_pairs(3), len(X))
    for row_weights in (None, weights):
        whole = scores_of(X, expected, len(X), row_weights)
        dask_array = pytest.importorskip("dask.array")
        chunked = as_chunked(dask_array.from_array(X, chunks=(7001, 3)))
        np.testing.assert_array_equal(scores_of(chunked, expected, len(X), row_weights), whole)
        order = rng.permutation(len(X))
        moved = None if row_weights is None else row_weights[order]
        np.testing.assert_array_equal(scores_of(X[order], expected, len(X), moved), whole)


def test_score_of_independent_columns_is_by_chance():
    rng = np.random.default_rng(6)
    n = 5000
    stds = [np.full(k, 40.0) for k in SIZES]
    ratios = []
    for _ in range(30):
        X = random_cells(rng, n)
        exact = [np.bincount(X[:, 0].astype(int)), None, np.bincount(X[:, 2].astype(int))]
        exact[1] = np.bincount(GROUPS[1][X[:, 1].astype(int)])
        counts = [c + rng.normal(0.0, 40.0, size=len(c)) for c in exact]
        expected = independent_tables(counts, all_pairs(3), n)
        ratios.append(scores_of(X, expected, n) / chance_scores(counts, all_pairs(3), n, stds))
    assert np.abs(np.mean(ratios, axis=0) - 1.0).max() < 0.25


def test_score_of_a_function_of_a_column_is_the_largest():
    rng = np.random.default_rng(7)
    first = rng.integers(4, size=2000)
    X = np.column_stack([first, first // 2, first])
    counts = [np.bincount(first), np.bincount(first // 2), np.bincount(first)]
    sizes = [4, 2, 4]
    expected = independent_tables(counts, all_pairs(3), 2000)
    scores = scores_of(X, expected, 2000, sizes=sizes, groups=[None] * 3)
    np.testing.assert_allclose(scores / max_scores(counts, all_pairs(3), 2000), 1.0, atol=0.01)


def test_l2_sensitivity_is_rounded_up():
    for n_pairs in (1, 2, 3, 105):
        for factor in (1, 2):
            l1, l2 = score_sensitivity(n_pairs, factor)
            assert l1 == factor * n_pairs
            assert factor * math.sqrt(n_pairs) <= l2 < 1.001 * factor * math.sqrt(n_pairs)


def test_counts_without_positive_entries_are_read_as_equal():
    (table,) = independent_tables([np.array([-1.0, -2.0]), np.zeros(2)], [(0, 1)], 8)
    np.testing.assert_array_equal(table, 2)
