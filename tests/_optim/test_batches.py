import itertools
import tracemalloc
import warnings

import mpmath
import numpy as np
import pytest
from scipy import stats

from skdp._optim import _batches
from skdp._optim._batches import FixedSizeBatches, FullBatches, PoissonBatches
from skdp.exceptions import SeededNoiseWarning
from skdp.noise import RandomSource

# Each test draws from a fixed seed; false alarm rates are those for a random one, 1e-7 each.
RARE = 1e-7


def stream(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return RandomSource(seed).stream()


def membership(batches, n_steps, seed=0):
    """One line of zeros and ones for each step."""
    table = np.zeros((n_steps, batches.n_rows))
    for step, rows in enumerate(batches.draw(n_steps, stream(seed))):
        assert rows.dtype == np.int64
        assert np.all(np.diff(rows) > 0)
        table[step, rows] = 1.0
    return table


def poisson_p_values(table, rate):
    """P-values of what Poisson sampling promises; each is uniform under it."""
    n_steps, n_rows = table.shape
    each = table.sum(axis=0)
    yield stats.binomtest(int(table.sum()), table.size, rate).pvalue
    variance = n_steps * rate * (1 - rate)
    yield stats.chi2.sf(np.sum((each - n_steps * rate) ** 2) / variance, n_rows)
    sizes = table.sum(axis=1)
    variance = n_rows * rate * (1 - rate)
    kurtosis = 2.0 + (1.0 - 6.0 * rate * (1 - rate)) / variance
    spread = np.mean((sizes - n_rows * rate) ** 2) / variance - 1.0
    yield 2.0 * stats.norm.sf(abs(spread) / np.sqrt(kurtosis / n_steps))
    centered = (table - rate) / np.sqrt(rate * (1 - rate))
    pairs = (centered.T @ centered)[np.triu_indices(n_rows, 1)] / np.sqrt(n_steps)
    yield min(1.0, 2.0 * stats.norm.sf(np.abs(pairs).max()) * pairs.size)
    for lag in (1, 2):
        products = np.sum(centered[lag:] * centered[:-lag]) / np.sqrt(centered[lag:].size)
        yield 2.0 * stats.norm.sf(abs(products))


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("block", [1, 64, 1 << 14])
@pytest.mark.parametrize("rate", [0.03, 0.4, 0.9])
def test_poisson_law(rate, block, monkeypatch):
    monkeypatch.setattr(_batches, "BLOCK_ROWS", block)
    table = membership(PoissonBatches(40, rate), 4000, seed=block)
    assert min(poisson_p_values(table, rate)) > RARE


def test_the_law_is_not_that_of_other_batches():
    rng, rate = np.random.default_rng(0), 0.1
    epochs = [rng.permutation(40).reshape(10, 4) for _ in range(400)]
    shuffled = np.zeros((4000, 40))
    shuffled[np.arange(4000)[:, None], np.concatenate(epochs)] = 1.0
    assert min(poisson_p_values(shuffled, rate)) < RARE
    fixed = membership(FixedSizeBatches(40, 4), 4000)
    assert min(poisson_p_values(fixed, rate)) < RARE
    together = np.repeat(rng.uniform(size=(4000, 20)) < rate, 2, axis=1).astype(float)
    assert min(poisson_p_values(together, rate)) < RARE
    repeated = np.repeat(rng.uniform(size=(2000, 40)) < rate, 2, axis=0).astype(float)
    assert min(poisson_p_values(repeated, rate)) < RARE


def test_sizes_are_binomial():
    sizes = [len(rows) for rows in PoissonBatches(30, 0.1).draw(20_000, stream())]
    counts = np.bincount(np.minimum(sizes, 9), minlength=10)
    law = stats.binom(30, 0.1)
    expected = 20_000 * np.append(law.pmf(np.arange(9)), law.sf(8))
    assert counts[0] > 0
    assert stats.chisquare(counts, expected).pvalue > RARE


@pytest.mark.parametrize(
    "rate", [1e-12, 1e-5, 0.01, 0.1, 1 / 3, 0.5, 0.999, 1 - 2.0**-40, 1 - 2.0**-53]
)
def test_the_exact_rate_is_at_most_the_rate(rate):
    with mpmath.workdps(80):
        exact = -mpmath.expm1(-1 / mpmath.mpf(PoissonBatches(10, rate)._scale))
        assert rate * (1 - mpmath.mpf(2) ** -48) <= exact <= rate


@pytest.mark.parametrize("block", [1, 5, 100])
def test_waiting_times_become_rows_of_steps(block, monkeypatch):
    """Every trial of the sequence stands for one row of one step; none is lost at a border."""
    monkeypatch.setattr(_batches, "BLOCK_ROWS", block)
    n_rows, n_steps, drawn = 7, 60, []

    def waits(scale, size, stream):
        drawn.append(np.random.default_rng(len(drawn)).geometric(0.2, size=size) - 1)
        return drawn[-1].copy()

    monkeypatch.setattr(_batches, "geometric", waits)
    batches = PoissonBatches(n_rows, 0.2)
    found = list(batches.draw(n_steps, None))
    at_once = max(1, int(block / (batches.expected_size + 1.0)))
    expected, drawn = [], iter(drawn)
    for first in range(0, n_steps, at_once):
        n_trials, position, successes = n_rows * min(at_once, n_steps - first), -1, []
        while position < n_trials:
            for wait in next(drawn).tolist():
                position += wait + 1
                successes.append(position)
        expected += [
            [s - step * n_rows for s in successes if step * n_rows <= s < (step + 1) * n_rows]
            for step in range(n_trials // n_rows)
        ]
    assert [rows.tolist() for rows in found] == expected


def test_no_cost_grows_with_the_rows():
    tracemalloc.start()
    batches = PoissonBatches(10**12, 1e-9)
    sizes = [len(rows) for rows in batches.draw(200, stream())]
    sizes += [len(rows) for rows in FixedSizeBatches(10**12, 1000).draw(20, stream())]
    assert tracemalloc.get_traced_memory()[1] < 8e6
    tracemalloc.stop()
    assert 900 < np.mean(sizes[:200]) < 1100


def test_empty_batches_are_ordinary():
    batches = list(PoissonBatches(3, 1e-6).draw(500, stream()))
    assert len(batches) == 500
    assert all(rows.shape == (0,) for rows in batches)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("block", [1, 50, 1 << 14])
def test_every_subset_is_as_likely(size, block, monkeypatch):
    monkeypatch.setattr(_batches, "BLOCK_ROWS", block)
    subsets = {s: i for i, s in enumerate(itertools.combinations(range(6), size))}
    drawn = FixedSizeBatches(6, size).draw(4000, stream(size))
    codes = np.array([subsets[tuple(rows.tolist())] for rows in drawn])
    assert stats.chisquare(np.bincount(codes, minlength=len(subsets))).pvalue > RARE
    pairs = np.bincount(codes[1:] * len(subsets) + codes[:-1], minlength=len(subsets) ** 2)
    assert stats.chisquare(pairs).pvalue > RARE


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("size", [300, 501, 999])
def test_large_subsets(size):
    table = membership(FixedSizeBatches(1000, size), 300)
    assert (table.sum(axis=1) == size).all()
    z = (table.sum(axis=0) - 0.3 * size) / np.sqrt(300 * size / 1000 * (1 - size / 1000))
    assert stats.chi2.sf(np.sum(z**2) * 999 / 1000, 999) > RARE


def test_all_rows():
    for batches in (FixedSizeBatches(5, 5), PoissonBatches(5, 1.0)):
        drawn = list(batches.draw(3, stream()))
        assert [rows.tolist() for rows in drawn] == [[0, 1, 2, 3, 4]] * 3
    assert list(FullBatches(5).draw(3, stream())) == [None] * 3


def test_what_a_plan_asks():
    assert PoissonBatches(100, 0.25).max_size == 100
    assert PoissonBatches(100, 0.25).expected_size == 25.0
    assert FixedSizeBatches(100, 7).max_size == FixedSizeBatches(100, 7).expected_size == 7
    assert FullBatches(100).max_size == FullBatches(100).expected_size == 100


def test_different_streams_give_different_batches():
    one, other = (list(PoissonBatches(1000, 0.1).draw(5, stream(seed))) for seed in (1, 2))
    assert all(a.tolist() != b.tolist() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.5, np.nan, 1e-16])
def test_bad_rates(rate):
    with pytest.raises(ValueError, match="rate"):
        PoissonBatches(10, rate)


@pytest.mark.parametrize("size", [0, -1, 11])
def test_bad_sizes(size):
    with pytest.raises(ValueError, match="size"):
        FixedSizeBatches(10, size)
