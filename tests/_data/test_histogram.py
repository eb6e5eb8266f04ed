import numpy as np
import pytest

from skdp._data import _histogram
from skdp._data._histogram import bin_numbers, check_edges, count_bins, count_cells, uniform_edges

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
