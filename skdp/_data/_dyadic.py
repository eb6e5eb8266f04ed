"""Bins of a column from the noisy counts of its dyadic cells.

Everything in this module is post-processing of released counts.
"""

from itertools import pairwise

import numpy as np
from scipy.optimize import isotonic_regression

# Number of times that the range of a numeric column is halved, and the resulting number of cells.
LEVELS = 10
CELLS = 1 << LEVELS
# Relative tolerance when counts are compared with the target count of a bin. It keeps bin edges
# stable when the noise is tiny.
COUNT_RTOL = 0.01
# Smallest target count of a bin: a column without rows becomes one bin.
MIN_BIN_COUNT = 1e-6


def level_counts(counts, coarsest=1):
    """Return the counts of all dyadic levels in one array, finest level first.

    Parameters
    ----------
    counts : ndarray of shape (n_cells,)
        Counts of the finest level; `n_cells` is a power of two.
    coarsest : int, default=1
        The coarsest level, which has ``2**coarsest`` cells.

    Returns
    -------
    ndarray of shape (2 * n_cells - 2**coarsest,)
        Counts of the levels. A row adds 1 to one cell of each level.
    """
    levels = [counts]
    while len(levels[-1]) > 2**coarsest:
        levels.append(levels[-1][::2] + levels[-1][1::2])
    return np.concatenate(levels)


def consistent_counts(noisy, total, coarsest=1):
    """Return the least-squares estimate of the finest counts from the counts of all levels.

    Parameters
    ----------
    noisy : ndarray of shape (2 * n_cells - 2**coarsest,)
        Output of `level_counts` plus independent noise of equal variance.
    total : float
        Sum of the counts of a level.
    coarsest : int, default=1
        The coarsest level, which has ``2**coarsest`` cells.

    Returns
    -------
    ndarray of shape (n_cells,)
        Estimates with the sum `total`. Some may be negative.

    References
    ----------
    M. Hay, V. Rastogi, G. Miklau and D. Suciu. Boosting the accuracy of differentially private
    histograms through consistency. VLDB 2010, theorem 3.
    """
    n_cells = (len(noisy) + 2**coarsest) // 2
    sizes = [n_cells >> height for height in range(n_cells.bit_length() - coarsest)]
    levels = np.split(noisy, np.cumsum(sizes[:-1]))
    # Upward pass: the best estimate of each count from the counts of its subtree.
    subtree_estimates = [levels[0]]
    for height, level in enumerate(levels[1:], start=2):
        weight = 2.0 ** (height - 1) / (2.0**height - 1.0)
        children = subtree_estimates[-1]
        child_sums = children[::2] + children[1::2]
        subtree_estimates.append(weight * level + (1.0 - weight) * child_sums)
    # Downward pass: the difference between a parent and its children is divided equally.
    children = subtree_estimates[-1]
    parents = children + (total - children.sum()) / len(children)
    for children in reversed(subtree_estimates[:-1]):
        deficit = parents - (children[::2] + children[1::2])
        parents = children + np.repeat(deficit / 2, 2)
    return parents


def nonnegative_counts(counts, total):
    """Return the non-negative counts whose cumulative sums are closest to the given ones.

    Clipping negative counts would increase the sum of many small counts. Isotonic regression of
    the cumulative sums preserves it.
    """
    return np.diff(np.clip(isotonic_regression(np.cumsum(counts)).x, 0.0, total), prepend=0.0)


def merge_cells(counts, n_bins, min_count):
    """Return the indices of the cells at which the merged bins start.

    A cell whose count reaches the target count of a bin becomes a bin. The cells between such cells
    are merged into bins of about equal counts.

    Parameters
    ----------
    counts : ndarray of shape (n_cells,)
        Non-negative counts.
    n_bins : int
        Approximate maximum number of bins.
    min_count : float
        Minimum target count of a bin.

    Returns
    -------
    ndarray of int
        Indices in increasing order; the first one is 0.
    """
    min_count = max(min_count, MIN_BIN_COUNT)
    is_bin = counts >= (1.0 - COUNT_RTOL) * max(counts.sum() / n_bins, min_count)
    target_count = max(counts[~is_bin].sum() / max(n_bins - is_bin.sum(), 1), min_count)
    # Runs of cells that are bins, and of cells that are not.
    changes = (np.flatnonzero(is_bin[1:] != is_bin[:-1]) + 1).tolist()
    starts = []
    for first, end in pairwise([0, *changes, len(counts)]):
        if is_bin[first]:
            starts.append(np.arange(first, end))
            continue
        run_counts = counts[first:end]
        run_count = run_counts.sum()
        n_run_bins = max(int(run_count / target_count + COUNT_RTOL), 1)
        bin_count = run_count / n_run_bins
        positions = np.cumsum(run_counts) - run_counts
        if bin_count > 0.0:
            positions = positions / bin_count + COUNT_RTOL
        bin_indices = np.minimum(positions.astype(np.int64), n_run_bins - 1)
        starts.append([first])
        starts.append(first + 1 + np.flatnonzero(bin_indices[1:] > bin_indices[:-1]))
    return np.concatenate(starts)
