"""Bins of a column from noisy counts of its dyadic cells: everything here is post-processing."""

import numpy as np
from scipy.optimize import isotonic_regression

LEVELS = 10
CELLS = 1 << LEVELS
# Of a bin: as much as that is not told from nothing, so that bins do not hang on vanishing noise.
ROUNDING = 0.01


def level_counts(counts, coarsest=1):
    """Return the counts of dyadic levels, finest first, in one array.

    Parameters
    ----------
    counts : ndarray of shape (n_cells,)
        A power of two.
    coarsest : int, default=1
        The level with which they end, of ``2**coarsest`` cells.

    Returns
    -------
    ndarray of shape (2 * n_cells - 2**coarsest,)
        A row that is counted adds 1 to one of each level.
    """
    levels = [counts]
    while len(levels[-1]) > 2**coarsest:
        levels.append(levels[-1].reshape(-1, 2).sum(axis=1))
    return np.concatenate(levels)


def consistent_counts(noisy, total, coarsest=1):
    """Return the least squares estimate of the finest counts from those of several levels.

    Parameters
    ----------
    noisy : ndarray of shape (2 * n_cells - 2**coarsest,)
        As `level_counts`, with independent noise of one variance.
    total : float
        Of each level.
    coarsest : int, default=1

    Returns
    -------
    ndarray of shape (n_cells,)
        Of sum `total`; some may be negative.

    References
    ----------
    M. Hay, V. Rastogi, G. Miklau and D. Suciu. Boosting the accuracy of differentially private
    histograms through consistency. VLDB 2010, theorem 3.
    """
    n_cells = (len(noisy) + 2**coarsest) // 2
    sizes = [n_cells >> height for height in range(n_cells.bit_length() - coarsest)]
    levels = np.split(noisy, np.cumsum(sizes[:-1]))
    # Upwards: the best estimate of each count from what is below it.
    best = [levels[0]]
    for height, level in enumerate(levels[1:], start=2):
        own = 2.0 ** (height - 1) / (2.0**height - 1.0)
        best.append(own * level + (1.0 - own) * best[-1].reshape(-1, 2).sum(axis=1))
    # Downwards: what cells lack of their parent is shared evenly.
    parent = np.array([total])
    for level in reversed(best):
        parts = level.reshape(len(parent), -1)
        lacking = parent - parts.sum(axis=1)
        parent = (parts + lacking[:, None] / parts.shape[1]).ravel()
    return parent


def nearest_masses(counts, total):
    """Return counts that are not negative, whose sums from the left are nearest to those given.

    Cutting negative counts off would raise the sum of many small ones; sums from the left that
    are made to increase (isotonic regression) keep it.
    """
    return np.diff(np.clip(isotonic_regression(np.cumsum(counts)).x, 0.0, total), prepend=0.0)


def merged_cells(masses, n_bins, least):
    """Return where the bins that cells are merged to begin.

    A cell that holds as much as a bin does stands alone; between such cells, neighbors are
    merged until they hold their share of the rest.

    Parameters
    ----------
    masses : ndarray of shape (n_cells,)
    n_bins : int
        About as many bins are made, or fewer.
    least : float
        A bin's least mass.

    Returns
    -------
    ndarray of int
        Increasing, from 0 on.
    """
    # Nothing at all makes one bin.
    least = max(least, 1e-6)
    alone = masses >= (1.0 - ROUNDING) * max(masses.sum() / n_bins, least)
    share = max(masses[~alone].sum() / max(n_bins - alone.sum(), 1), least)
    starts = []
    for run in np.split(np.arange(len(masses)), np.flatnonzero(np.diff(alone)) + 1):
        if alone[run[0]]:
            starts.extend(run)
            continue
        below = np.cumsum(masses[run]) - masses[run]
        n_own = max(int(masses[run].sum() / share + ROUNDING), 1)
        each = masses[run].sum() / n_own
        number = (below / each + ROUNDING if each > 0.0 else below).astype(np.int64)
        number = np.minimum(number, n_own - 1)
        starts.extend(run[np.diff(number, prepend=-1) > 0])
    return np.array(starts)
