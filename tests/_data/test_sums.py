from fractions import Fraction

import numpy as np
import pytest

from skdp.base import clip_rows, exact_counts, exact_sum, sum_grid


def test_sum_is_the_exact_sum_of_truncated_values():
    X = np.random.default_rng(0).standard_normal((1000, 3))
    low, high = np.array([-1.0, 0.0, -0.3]), np.array([1.0, 2.0, 0.7])
    total = exact_sum(X, (low, high))
    for j in range(3):
        grid = Fraction(float(sum_grid(max(-low[j], high[j]), 1000)))
        steps = [int(Fraction(float(v)) / grid) for v in np.clip(X[:, j], low[j], high[j])]
        assert Fraction(float(total[j])) == sum(steps) * grid
    np.testing.assert_allclose(total, np.clip(X, low, high).sum(axis=0), rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sum_does_not_depend_on_order_or_blocks(dtype):
    rng = np.random.default_rng(1)
    X = (rng.standard_normal((100_000, 2)) * np.exp(rng.uniform(-20, 5, (100_000, 2)))).astype(
        dtype
    )
    total = exact_sum(X, (-3.0, 3.0))
    for _ in range(2):
        rng.shuffle(X)
        assert np.array_equal(exact_sum(X, (-3.0, 3.0)), total)
    parts = exact_sum(X[:1000], (-3, 3), n_samples=100_000)
    parts = parts + exact_sum(X[1000:], (-3, 3), n_samples=100_000)
    assert np.array_equal(parts, total)
    naive = np.clip(X, -3, 3).astype(float)
    assert not np.array_equal(naive.sum(axis=0), naive[::-1].cumsum(axis=0)[-1])


def test_one_record_moves_the_sum_by_the_bound_at_most_exactly():
    rng = np.random.default_rng(2)
    X = rng.uniform(-10, 10, (500, 2))
    total = exact_sum(X, (-0.7, 0.3))
    for i in range(0, 500, 25):
        without = np.delete(X, i, axis=0)
        moved = [
            abs(Fraction(float(a)) - Fraction(float(b)))
            for a, b in zip(total, exact_sum(without, (-0.7, 0.3), n_samples=500), strict=True)
        ]
        assert max(moved) <= Fraction(0.7)


def test_rounding_keeps_the_norm_of_rows():
    X = clip_rows(np.random.default_rng(3).standard_normal((100, 5)), 0.3)
    for row in X:
        rounded = exact_sum(row[None], (-0.3, 0.3), n_samples=100)
        assert sum(Fraction(float(v)) ** 2 for v in rounded) <= Fraction(0.3) ** 2


@pytest.mark.parametrize("n", [1, 2, 3, 1000, 2**20, 2**20 + 1])
@pytest.mark.parametrize("bound", [1.0, 0.7, 1e-200, 1e200])
def test_grid_leaves_room_for_all_rows(n, bound):
    steps = Fraction(bound) / Fraction(float(sum_grid(bound, n)))
    assert 2**51 <= steps * n <= 2**53


@pytest.mark.parametrize("bound", [5e-324, 1e-315, 1e-308, 1e-280])
def test_error_bound_holds_at_tiny_bounds(bound):
    X = np.random.default_rng(4).uniform(-bound, bound, (1000, 1))
    true = sum(Fraction(float(v)) for v in X[:, 0])
    error = abs(Fraction(float(exact_sum(X, (-bound, bound))[0])) - true)
    assert error < 1000 * 4 * 1000 * Fraction(bound) / 2**53


def test_sum_edges():
    assert np.array_equal(exact_sum(np.empty((0, 2)), (0, 1)), [0, 0])
    assert np.array_equal(exact_sum([[1.0], [5.0]], (0, 0)), [0])
    assert np.array_equal(exact_sum([[np.inf], [-np.inf]], (-1, 1)), [0])
    with pytest.raises(ValueError, match="NaN"):
        exact_sum([[np.nan]], (0, 1))
    with pytest.raises(ValueError, match="n_samples"):
        exact_sum([[1.0], [1.0]], (0, 1), n_samples=1)
    for bad in (2.5, True, "5", -1):
        with pytest.raises(ValueError, match="n_samples"):
            exact_sum([[1.0]], (0, 1), n_samples=bad)
        with pytest.raises(ValueError, match="n_samples"):
            sum_grid(1.0, bad)
    with pytest.raises(ValueError, match="overflow"):
        exact_sum([[1.0], [1.0]], (0, 1.7e308))


def test_counts():
    assert exact_counts([[0, 1], [1, 7]], 3).tolist() == [1, 2, 0]
    assert exact_counts([], 2).tolist() == [0, 0]
    with pytest.raises(ValueError, match="codes"):
        exact_counts([0.5], 2)
    for bad in (0, 2.0, True, "5", None):
        with pytest.raises(ValueError, match="n_categories"):
            exact_counts([0], bad)
