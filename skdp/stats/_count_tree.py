"""Estimates, with standard deviations, from the noisy dyadic counts of a numeric column.

Everything in this module is post-processing of released counts. Level l of the tree has 2**l counts
with independent noise of equal variance. One more noisy count is the number of missing values. The
estimate of a count is linear in all of them: it is the total of the column, halved along a path,
plus multiples of the differences D between the estimates of the two children of each node on the
path. The differences are independent of each other and of the total (V. Rastogi's recursion in Hay
et al., VLDB 2010, section 4), so the variances of counts and of ranks are sums.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp._data._dyadic import consistent_counts, nonnegative_counts
from skdp.utils._values import FrozenValue


@dataclass(frozen=True, eq=False)
class CountTree(FrozenValue):
    """Estimated counts of the cells of a numeric column.

    Parameters
    ----------
    noisy : ndarray of shape (n_counts + 1,)
        Released counts of all levels, finest first, then of the missing values.
    noise_std : float
        Standard deviation of the noise in a released count.
    n_units : int
        Public number of rows, or of persons.
    coarsest : int, default=1
        The coarsest level.
    """

    noisy: np.ndarray
    noise_std: float
    n_units: int
    coarsest: int = 1

    @property
    def n_cells(self):
        """Number of cells of the finest level."""
        return (len(self.noisy) - 1 + 2**self.coarsest) // 2

    @property
    def n_levels(self):
        """The finest level; it has ``2**n_levels`` cells."""
        return self.n_cells.bit_length() - 1

    @cached_property
    def _total(self):
        """Estimate of the number of values, and its variance.

        Each level sums to the number of values, which is also the number of rows minus the missing
        values. The estimate is the mean of these numbers, weighted by their inverse variances.
        """
        weights = [1.0]
        estimates = [self.n_units - self.noisy[-1]]
        start = 0
        for level in range(self.n_levels, self.coarsest - 1, -1):
            weights.append(2.0**-level)
            estimates.append(self.noisy[start : start + 2**level].sum())
            start += 2**level
        total = float(np.average(estimates, weights=weights))
        return total, self.noise_std**2 / sum(weights)

    @property
    def total(self):
        """Estimated number of values that are not missing."""
        return float(np.clip(self._total[0], 0.0, self.n_units))

    @property
    def total_std(self):
        """Standard deviation of `total`, and of the number of missing values."""
        return float(np.sqrt(self._total[1]))

    @property
    def n_missing(self):
        """Estimated number of missing values."""
        return self.n_units - self.total

    @cached_property
    def linear_counts(self):
        """Unbiased counts of the cells, some of which may be negative; they sum to the total."""
        return consistent_counts(self.noisy[:-1], self._total[0], self.coarsest)

    @cached_property
    def counts(self):
        """Non-negative counts of the cells, with the sum `total`."""
        if not self.total > 0.0:
            return np.zeros(self.n_cells)
        return nonnegative_counts(self.linear_counts, self.total)

    @cached_property
    def _difference_variances(self):
        """Variance of the difference between the two children of a node, by the node's level.

        A node above the coarsest level is not counted: its count is the sum of its children's
        counts.
        """
        variance = 0.0
        variances = {}
        for level in range(self.n_levels, -1, -1):
            # Variance of the estimate from a node's subtree, which combines its count and its
            # children's sum.
            if level < self.coarsest:
                precision = 0.0
            else:
                precision = 1.0 / self.noise_std**2
            if level < self.n_levels:
                variances[level] = 2.0 * variance
                precision += 1.0 / (2.0 * variance)
            variance = 1.0 / precision
        return [variances[level] for level in range(self.n_levels)]

    def bin_counts(self, level, n_bins=None):
        """Return the counts of the equal-width bins of a level, and their standard deviations.

        Counts are unbiased, up to clipping at 0 and at the number of rows, which only decreases
        errors.

        Parameters
        ----------
        level : int
            There are ``2**level`` bins.
        n_bins : int, default=None
            Number of bins to return; the last one includes all values beyond it. None returns all
            bins.

        Returns
        -------
        counts, stds : ndarray of shape (n_bins,)
        """
        counts = self.linear_counts.reshape(2**level, -1).sum(axis=1)
        variance = self._total[1]
        for differences in self._difference_variances[:level]:
            variance = variance / 4.0 + differences / 4.0
        stds = np.full(len(counts), np.sqrt(variance))
        if n_bins is not None and n_bins < len(counts):
            counts = np.append(counts[: n_bins - 1], counts[n_bins - 1 :].sum())
            # The values beyond an edge are the total minus the values below it.
            edge = (n_bins - 1) << (self.n_levels - level)
            stds = np.append(stds[: n_bins - 1], self.rank_stds(1.0)[edge])
        return np.clip(counts, 0.0, self.n_units), stds

    def rank_stds(self, fraction):
        """Return the standard deviation of the number of values below each cell minus a fraction.

        Parameters
        ----------
        fraction : float
            Fraction of the total that is subtracted, for the error of a quantile's rank.

        Returns
        -------
        ndarray of shape (n_cells + 1,)
        """
        positions = np.arange(self.n_cells + 1) / self.n_cells
        variance = (positions - fraction) ** 2 * self._total[1]
        for level, differences in enumerate(self._difference_variances):
            # Position within the node of this level. Left of the middle, the values below the
            # position are a part of the left child's values; right of it, they are all values
            # except a part of the right child's.
            inside = positions * 2.0**level % 1.0
            weights = np.minimum(inside, 1.0 - inside)
            variance = variance + weights**2 * differences
        return np.sqrt(variance)

    def mean_std(self, centers, mean):
        """Return the standard deviation of the noise in the mean of the cells.

        Parameters
        ----------
        centers : ndarray of shape (n_cells,)
            Value of each cell.
        mean : float
            The mean itself.
        """
        variance = 0.0
        means = centers
        for differences in reversed(self._difference_variances):
            # A row that moves from one child to the other changes its value by the distance between
            # their means.
            left, right = means.reshape(-1, 2).T
            variance += float((0.25 * (left - right) ** 2).sum()) * differences
            means = 0.5 * (left + right)
        # An error in the total is spread over all cells.
        variance += float(means[0] - mean) ** 2 * self._total[1]
        return float(np.sqrt(variance)) / max(self.total, 1.0)

    def quantile(self, fraction, z, starts, ends):
        """Return a quantile of the values, and its interval.

        Parameters
        ----------
        fraction : float in [0, 1]
        z : float
            Half the width of the interval in standard deviations of the rank's noise.
        starts, ends : ndarray of shape (n_cells,)
            Smallest and largest value of each cell.

        Returns
        -------
        value, low, high : float
            The interval consists of whole cells, because positions within a cell are unknown.
        """
        below = np.concatenate([[0.0], np.cumsum(self.counts)])
        target = fraction * below[-1]
        if not below[-1] > 0.0:
            return 0.5 * (starts[0] + ends[-1]), starts[0], ends[-1]
        cell = int(np.clip(np.searchsorted(below, target, side="left") - 1, 0, self.n_cells - 1))
        count = below[cell + 1] - below[cell]
        if count <= 0.0:
            inside = 0.5
        else:
            inside = np.clip((target - below[cell]) / count, 0.0, 1.0)
        value = starts[cell] + inside * (ends[cell] - starts[cell])
        margin = z * self.rank_stds(fraction)
        # A cell is possible unless the ranks of its edges are both below, or both above, the target
        # by more than the margin.
        first = int(np.argmax((below + margin)[1:] >= target))
        last = self.n_cells - 1 - int(np.argmax((below - margin)[:-1][::-1] <= target))
        return float(value), float(starts[min(first, cell)]), float(ends[max(last, cell)])
