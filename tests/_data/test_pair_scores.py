"""Scores of pairs of columns: exact, of sensitivity 1, and computed from any container's rows."""

import itertools
import math

import numpy as np
import pytest

from skdp._data._chunked import as_chunked
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
