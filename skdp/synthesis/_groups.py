"""Estimates of cell counts, and groups of cells, from the released counts of columns.

Everything in this module is post-processing.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from skdp._data._dyadic import consistent_counts, merge_cells, nonnegative_counts
from skdp.utils._values import FrozenValue

# The cells of atoms, other values and missing values are dropped if their counts are below a value
# that noise alone exceeds with this probability: four standard deviations of Gaussian noise.
FALSE_CELL_PROBABILITY = 3e-5
# Runs of neighboring cells with fewer rows than this many standard deviations get equal counts.
RUN_STDS = 2.0
# Minimum fraction of the rows in equal cells, regardless of the noise added to the atoms.
MIN_EQUAL_FRACTION = 0.02
# Mass added to each cell of a group when cells are drawn, so that all probabilities are positive.
MIN_CELL_MASS = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedColumn(FrozenValue):
    """A column after its counts were released: estimated counts and the groups of its cells.

    Parameters
    ----------
    grid : CategoryCells or NumericCells
    noisy : ndarray
        Released counts.
    masses : ndarray of shape (n_cells,)
        Estimated counts of the cells, non-negative.
    noise_std : float
        Standard deviation of the noise in a released count.
    groups : ndarray of shape (n_cells,), dtype int64, default=None
        Group of each cell.
    n_groups : int, default=0
    """

    grid: object
    noisy: np.ndarray
    masses: np.ndarray
    noise_std: float
    groups: np.ndarray | None = None
    n_groups: int = 0

    @cached_property
    def is_possible(self):
        """For each cell, True if rows may be drawn from it.

        Dropped cells are not possible. Categories and equal cells are possible even without rows.
        """
        is_possible = self.masses > 0.0
        if self.grid.is_categorical:
            is_possible[: len(self.grid.categories)] = True
            if not is_possible.any():
                # No category was found, so every value counts as "other".
                is_possible[-2] = True
        else:
            is_possible[: self.grid.n_equal_cells] = self.grid.can_hold_values
        return is_possible

    @property
    def group_masses(self):
        """Estimated count of each group."""
        return np.bincount(self.groups, self.masses, self.n_groups)


def estimate_masses(grid, noisy, mechanism, total):
    """Return a `GroupedColumn` without groups, from the noisy counts of a column.

    Parameters
    ----------
    grid : CategoryCells or NumericCells
    noisy : ndarray
        Its released counts.
    mechanism : Mechanism
        The mechanism that released them.
    total : float
        Public number of rows, or of persons.
    """
    noise_std = mechanism.deviation(size=len(noisy))
    min_single = mechanism.tail(FALSE_CELL_PROBABILITY, len(noisy))
    if grid.is_categorical:
        masses = _category_masses(grid, noisy, noise_std, min_single, total)
    else:
        masses = _numeric_masses(grid, noisy, noise_std, min_single, total)
    return GroupedColumn(grid=grid, noisy=noisy, masses=masses, noise_std=noise_std)


def _category_masses(grid, noisy, noise_std, min_single, total):
    """Return estimated counts of a categorical column's cells: shrunk, nonnegative, of sum `total`.

    The last two cells are other values and missing values. They are dropped if their noisy counts
    may be noise alone (below `min_single`), or if the column cannot have them.
    """
    estimates = shrink_to_uniform(noisy, noise_std, total, len(grid.categories))
    is_dropped = noisy < min_single
    is_dropped[:-2] = False
    is_dropped[-2] |= not grid.can_be_other
    is_dropped[-1] |= not grid.can_be_missing
    if is_dropped.all():
        return np.zeros(len(noisy))
    masses = np.zeros(len(noisy))
    masses[~is_dropped] = project_to_simplex(estimates[~is_dropped], total)
    return masses


def shrink_to_uniform(noisy, noise_std, total, n_uniform):
    """Return the counts, with the first `n_uniform` shrunk toward their common mean.

    The James-Stein factor compares the variance of the noise with the squared differences between
    the counts and their mean. Where the noise hides the counts, they become equal.
    """
    if n_uniform < 4:
        return noisy.copy()
    counts = noisy[:n_uniform]
    mean = max(total - np.maximum(noisy[n_uniform:], 0.0).sum(), 0.0) / n_uniform
    spread = np.sum((counts - mean) ** 2)
    factor = max(1.0 - (n_uniform - 2) * noise_std**2 / max(spread, 1e-300), 0.0)
    return np.append(mean + factor * (counts - mean), noisy[n_uniform:])


def _numeric_masses(grid, noisy, noise_std, min_single, total):
    """Return estimated counts of a numeric column's cells: consistent, nonnegative and smoothed.

    The last cells, of single values and of missing values, have a count of 0 if their noisy counts
    may be noise alone (below `min_single`). The counts of equal cells are averaged over runs.
    """
    n_single = len(grid.atoms) + 1
    single = noisy[-n_single:].copy()
    single[single < min_single] = 0.0
    if not grid.can_be_missing:
        single[-1] = 0.0
    limit = (1.0 - MIN_EQUAL_FRACTION) * total
    if single.sum() > limit:
        single *= limit / single.sum()
    remaining = total - single.sum()
    counts = consistent_counts(noisy[:-n_single], remaining, grid.coarsest)
    counts = nonnegative_counts(counts, remaining)
    # Differences between neighboring cells are removed if noise alone explains them.
    starts = merge_cells(counts, 4 * len(counts), RUN_STDS * noise_std)
    runs = _run_of_cell(starts, len(counts))
    n_possible = np.bincount(runs, grid.can_hold_values)
    mean_counts = np.bincount(runs, counts) / np.maximum(n_possible, 1)
    return np.append(mean_counts[runs] * grid.can_hold_values, single)


def _run_of_cell(starts, n_cells):
    return np.searchsorted(starts, np.arange(n_cells), side="right") - 1


def project_to_simplex(values, total):
    """Return the closest non-negative values with the sum `total`, in Euclidean distance.

    References
    ----------
    J. Duchi, S. Shalev-Shwartz, Y. Singer and T. Chandra. Efficient projections onto the l1-ball
    for learning in high dimensions. ICML 2008.
    """
    ordered = np.sort(values)[::-1]
    thresholds = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    return np.maximum(values - thresholds[np.flatnonzero(ordered > thresholds)[-1]], 0.0)


def group_cells(column, n_bins, min_count):
    """Return the column with groups of cells, each with about `min_count` rows or more.

    Parameters
    ----------
    column : GroupedColumn
    n_bins : int
        Approximate maximum number of groups of equal cells of a numeric column.
    min_count : float
    """
    if column.grid.is_categorical:
        return _group_categories(column, min_count)
    grid = column.grid
    n_equal = grid.n_equal_cells
    groups = np.zeros(grid.n_cells, dtype=np.int64)
    # The cells beyond the upper bound contain no value; they belong to the last group.
    n_possible = int(grid.can_hold_values.sum())
    starts = merge_cells(column.masses[:n_possible], n_bins, min_count)
    groups[:n_equal] = _run_of_cell(starts, n_equal)
    n_groups = len(starts)
    for i, atom in enumerate(grid.atoms):
        cell = n_equal + i
        if column.masses[cell] >= min_count:
            groups[cell] = n_groups
            n_groups += 1
        else:
            position = np.searchsorted(grid.equal_edges, atom, side="right") - 1
            groups[cell] = groups[min(position, n_equal - 1)]
    if column.masses[-1] >= min_count:
        groups[-1] = n_groups
        n_groups += 1
    return replace(column, groups=groups, n_groups=n_groups)


def _group_categories(column, min_count):
    """Return the column with one group per frequent category, and one for all others."""
    is_large = (column.masses >= min_count) & column.is_possible
    n_large = int(is_large.sum())
    groups = np.full(len(column.masses), n_large)
    groups[is_large] = np.arange(n_large)
    n_groups = n_large + 1
    if not (column.is_possible & ~is_large).any():
        # No row may be drawn from a group that contains only dropped cells.
        groups[~is_large] = groups[np.argmax(column.masses)]
        n_groups = n_large
    return replace(column, groups=groups, n_groups=n_groups)


def draw_cells(column, codes, rng):
    """Return a cell for each group code, drawn in proportion to the cells' estimated counts.

    Parameters
    ----------
    column : GroupedColumn
    codes : ndarray of shape (n_rows,), dtype int64
        Group of each row.
    rng : RandomState
    """
    cells = np.zeros(len(codes), dtype=np.int64)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=column.n_groups))
    first = 0
    for group, last in enumerate(ends):
        rows = order[first:last]
        first = last
        if not len(rows):
            continue
        members = np.flatnonzero((column.groups == group) & column.is_possible)
        masses = np.cumsum(column.masses[members] + MIN_CELL_MASS)
        # One uniform number per stratum adds less sampling error than independent draws.
        uniforms = (rng.permutation(len(rows)) + rng.random_sample()) / len(rows)
        positions = np.searchsorted(masses / masses[-1], uniforms, side="right")
        cells[rows] = members[np.minimum(positions, len(members) - 1)]
    return cells


def unbiased_group_counts(column, total):
    """Return unbiased counts of the groups of a column, and their standard errors.

    The counts are linear in the released ones: for categories, they are the released counts; for
    numeric columns, they are sums of least-squares estimates of the cells, which may be negative.
    The errors of different groups are not independent.

    Parameters
    ----------
    column : GroupedColumn
    total : float
        Public number of rows, or of persons.

    Returns
    -------
    counts, standard_errors : ndarray of shape (n_groups,)
    """
    grid = column.grid
    if grid.is_categorical:
        # The counts of cells that the column's type excludes consist only of noise.
        can_have_rows = np.ones(grid.n_cells, dtype=bool)
        can_have_rows[-2] = grid.categories.dtype != bool
        can_have_rows[-1] = grid.can_be_missing
        groups = column.groups[can_have_rows]
        counts = np.bincount(groups, column.noisy[can_have_rows], column.n_groups)
        n_added = np.bincount(groups, minlength=column.n_groups)
        return counts, column.noise_std * np.sqrt(n_added)
    n_equal = grid.n_equal_cells
    n_single = len(grid.atoms) + 1
    n_levels = len(column.noisy) - n_single
    equal_groups = column.groups[:n_equal]
    single_groups = column.groups[n_equal:]
    # The response of the groups to one released count, with the total of the equal cells fixed.
    weights = np.zeros((column.n_groups, len(column.noisy)))
    unit = np.zeros(n_levels)
    for i in range(n_levels):
        unit[i] = 1.0
        response = consistent_counts(unit, 0.0, grid.coarsest)
        weights[:, i] = np.bincount(equal_groups, response, column.n_groups)
        unit[i] = 0.0
    per_total = consistent_counts(unit, 1.0, grid.coarsest)
    total_response = np.bincount(equal_groups, per_total, column.n_groups)
    for i, group in enumerate(single_groups):
        weights[:, n_levels + i] -= total_response
        weights[group, n_levels + i] += 1.0
    counts = weights @ column.noisy + total * total_response
    return counts, column.noise_std * np.sqrt((weights**2).sum(axis=1))
