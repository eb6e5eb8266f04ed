"""Bins out of noisy counts: least squares, sums that increase, merging."""

import numpy as np
import pytest

from skdp._data import _dyadic as module
from skdp._data._dyadic import (
    CELLS,
    consistent_counts,
    level_counts,
    merge_cells,
    nonnegative_counts,
)


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
    assert held.max() - held.min() <= 2.0 + 2.0 * module.COUNT_RTOL * held.mean()


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
