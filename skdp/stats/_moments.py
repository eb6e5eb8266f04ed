"""Plans of sums, means, variances, counts and histograms of all columns in one release."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp._data._histogram import check_edges, count_bins, count_cells, uniform_edges
from skdp._data._parts import Rows, max_additions, sum_over
from skdp._data._persons import count_over, row_weights_of, times_row_weights, weighted_bincount
from skdp._data._sums import exact_sum
from skdp._fitting._findings import (
    report_no_values,
    report_unfilled_means,
    report_unfilled_variances,
)
from skdp.accounting import Guarantee
from skdp.mechanisms import PermuteAndFlip
from skdp.mechanisms._plan import MechanismPlan, bounded_noise, counting_mechanism
from skdp.utils._validation import check_integer

# Number of rows of a block; ten columns of a block fit into a processor's cache.
BLOCK_ROWS = 4096

# The (L1, L2) sensitivities of one column's sums of u (1 moment), and of u and u^2 - 1/2 (2
# moments), for u in [-1, 1]. Derived in docs/theory/guarantees.md.
SENSITIVITY = {
    ("add_remove", 1): (1.0, 1.0),
    ("replace_one", 1): (2.0, 2.0),
    ("add_remove", 2): (1.5, math.sqrt(1.25)),
    ("replace_one", 2): (2.25, 2.0),
}
# Variance of the uniform distribution on [-1, 1].
UNIFORM_VARIANCE = 1.0 / 3.0
# Maximum number of cells of a joint histogram: 1 GB of counts.
MAX_CELLS = 2**27


@dataclass(frozen=True, kw_only=True, eq=False)
class StatisticPlan(MechanismPlan):
    """Base class of plans whose (epsilon, delta) are taken from the guarantee.

    The delta of a mechanism that does not use it is 0, but the statistic is charged the full
    guarantee.
    """

    guarantee: Guarantee

    by_person = True

    @property
    def epsilon(self):
        return self.guarantee.epsilon

    @property
    def delta(self):
        return self.guarantee.delta


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentsPlan(StatisticPlan):
    """Plan of the means, or the means and variances, of columns within bounds.

    Columns are scaled to [-1, 1], so that the cost does not depend on the bounds.

    Parameters
    ----------
    n_rows : int
        Public number of privacy units.
    low, high : ndarray of shape (n_columns,)
        Bounds of the columns.
    guarantee : Guarantee
    n_moments : {1, 2}
        1 for means, 2 for means and variances.
    counted : bool, default=False
        True if values may be NaN, so that the other values of each column are counted.
    """

    n_rows: int
    low: np.ndarray
    high: np.ndarray
    n_moments: int = 1
    counted: bool = False

    released_name = "sums of columns"

    @property
    def size(self):
        """Number of values that are released together."""
        return (self.n_moments + self.counted) * len(self.low)

    @property
    def exact_sensitivities(self):
        """The (L1, L2) sensitivities of sums without rounding errors."""
        l1, l2 = SENSITIVITY[self.guarantee.relation, self.n_moments]
        if self.counted:
            # Replacing a value by a missing one removes its contribution to the sums, and 1 from
            # the count.
            removed_l1, removed_l2 = SENSITIVITY["add_remove", self.n_moments]
            l1 = max(l1, removed_l1 + 1.0)
            l2 = max(l2, math.hypot(removed_l2, 1.0))
        return l1 * len(self.low), l2 * math.sqrt(len(self.low))

    @cached_property
    def mechanism(self):
        l1, l2 = self.exact_sensitivities
        # Bound on the rounding errors of both neighbors' sums. Each value is rounded five times
        # before it is added.
        additions = max_additions(BLOCK_ROWS) + 5
        rounding = 2.0 * additions * self.n_rows * np.finfo(np.float64).eps
        l1 = l1 + rounding * self.size
        l2 = l2 + rounding * math.sqrt(self.size)
        return bounded_noise(self.guarantee, l1, l2)

    def run(self, X, source, persons=None):
        """Return the noisy means, and the noisy variances or None, in the units of the columns."""
        row_weights = row_weights_of(persons)
        sums = _centered_sums(X, self.low, self.high, self.n_moments, row_weights, self.counted)
        noisy = self.mechanism.release(sums, random_state=source)
        n_values = self.n_rows
        if self.counted:
            *noisy, n_values = noisy
            report_no_values(n_values, self.mechanism.deviation(self.size), self.n_rows)
        self.report_unfilled(noisy, n_values, self.mechanism.deviation(self.size))
        return self.means_and_variances(noisy, n_values)

    def report_unfilled(self, sums, n_values, noise_std):
        """Report columns whose noisy sums show that their values do not fill the bounds.

        Parameters
        ----------
        sums : sequence of ndarray of shape (n_columns,)
            Noisy sums, as in `means_and_variances`.
        n_values : float or ndarray of shape (n_columns,)
            Number of values of each column, public or noisy.
        noise_std : float
            Standard deviation of the noise of a sum.
        """
        n_values = np.maximum(n_values, noise_std)
        noise = noise_std / n_values
        means = np.clip(sums[0] / n_values, -1.0, 1.0)
        if len(sums) == 1:
            report_unfilled_means(means, noise, self.low, self.high)
        else:
            mean_squares = sums[1] / n_values + 0.5
            report_unfilled_variances(means, mean_squares, noise, self.low, self.high)

    def means_and_variances(self, sums, n_values):
        """Return the means, and the variances or None, from noisy sums and numbers of values."""
        noise_std = self.mechanism.deviation(self.size)
        n_values = np.maximum(n_values, noise_std)
        relative_noise = noise_std / n_values
        half_range = (self.high - self.low) / 2
        # The result is then that of a uniform distribution over the bounds.
        is_hidden = relative_noise > UNIFORM_VARIANCE
        mean = np.where(is_hidden, 0.0, np.clip(sums[0] / n_values, -1.0, 1.0))
        # The addition is rounded, so that the result could be outside the bounds.
        means = np.clip(self.low + half_range + half_range * mean, self.low, self.high)
        if len(sums) == 1:
            return means, None
        variance = np.clip(sums[1] / n_values + 0.5 - mean**2, relative_noise, 1.0)
        return means, np.where(is_hidden, UNIFORM_VARIANCE, variance) * half_range**2


@dataclass(frozen=True, kw_only=True, eq=False)
class SumPlan(MomentsPlan):
    """Plan of the sums of columns within bounds.

    Under add/remove, a null row counts as 0, and the sensitivity of a sum is the larger magnitude
    of its bounds. Each column is divided by it, and then has the sensitivity of scaled values in
    [-1, 1]. Under replace-one, the number of rows is the same in both datasets, and the sums are
    computed from the centered sums.
    """

    @property
    def units(self):
        """Factor by which each sum is divided before noise is added."""
        if self.guarantee.relation == "replace_one":
            return (self.high - self.low) / 2
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def run(self, X, source, persons=None):
        """Return the noisy sums."""
        row_weights = row_weights_of(persons)
        if self.guarantee.relation == "replace_one":
            sums = _centered_sums(X, self.low, self.high, 1, row_weights)[0]
            start = self.n_rows * (self.low + (self.high - self.low) / 2)
        else:
            sums = np.zeros(X.shape[1])
            small = ((self.low, self.high), self.n_rows)
            sum_over(Rows(X), _add_exactly, sums, *small, row_args=(row_weights,))
            sums = sums / self.units
            start = 0.0
        return start + self.mechanism.release(sums, random_state=source) * self.units


def _add_exactly(sums, block, row_weights, bounds, n_rows):
    sums += exact_sum(block, bounds, n_samples=n_rows, row_weights=row_weights)


def unit_sums(X, add, sums, low, high, row_weights=None):
    """Sum a function of the rows of X, after clipping values and scaling them to [-1, 1].

    Parameters
    ----------
    X : array or ChunkedArray of shape (n_rows, n_features)
        Numbers.
    add : callable
        Called as ``add(sums, block, row_weights)``. It may change the block.
    sums : ndarray
        Array of zeros to which `add` adds.
    low, high : ndarray of shape (n_features,)
        Bounds of the columns, which become -1 and 1.
    row_weights : ndarray of shape (n_rows,), default=None
        Weights of the rows; None means 1.

    Returns
    -------
    ndarray
        `sums`.
    """
    rows = Rows(X, BLOCK_ROWS)
    small = (add, low, high)
    return sum_over(rows, _add_unit_rows, sums, *small, row_args=(row_weights,))


def _add_unit_rows(sums, block, row_weights, add, low, high):
    # Values that overflow are clipped. A NumPy warning would reveal them.
    with np.errstate(all="ignore"):
        u = block - (low + (high - low) / 2)
        u *= 2.0 / (high - low)
        np.clip(u, -1.0, 1.0, out=u)
    add(sums, u, row_weights)


def _centered_sums(X, low, high, n_moments, row_weights=None, counted=False):
    """Return the sums over rows of u and of u^2 - 1/2, for X clipped and scaled to u in [-1, 1].

    With `counted` they are sums over values that are not NaN, and the last row is their number.
    """
    sums = np.zeros((n_moments + counted, X.shape[1]))
    # `sum_over` calls `_add_unit_rows` for each block, in this process or on a worker; that scales
    # the block and calls `_add_moments` or `_add_present`.
    unit_sums(X, _add_present if counted else _add_moments, sums, low, high, row_weights)
    n_rows = X.shape[0] if row_weights is None else row_weights.sum()
    sums[1:n_moments] -= (sums[-1] if counted else n_rows) / 2
    return sums


def _add_present(sums, u, row_weights):
    sums[-1] += times_row_weights(~np.isnan(u), row_weights).sum(axis=0)
    _add_moments(sums[:-1], np.nan_to_num(u, nan=0.0), row_weights)


def _add_moments(sums, u, row_weights):
    weighted = times_row_weights(u, row_weights)
    sums[0] += np.ones(len(u)).dot(weighted)
    if len(sums) == 2:
        sums[1] += np.einsum("ij,ij->j", weighted, u)


def release_counts(mechanism, counts, source):
    """Return noisy counts as integers; Gaussian noise is rounded afterwards."""
    return np.rint(mechanism.release(counts, random_state=source)).astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class CountPlan(StatisticPlan):
    """Plan of the number of nonzero values of each column.

    A row changes the count of each column by at most 1 under either relation.
    """

    n_columns: int

    @property
    def size(self):
        """Number of values that are released together."""
        return self.n_columns

    @cached_property
    def mechanism(self):
        return counting_mechanism(self.n_columns, self.guarantee)

    def run(self, X, source, persons=None):
        """Return the noisy counts."""
        rows = Rows(X)
        row_weights = row_weights_of(persons)
        counts = count_over(rows, _add_nonzero, X.shape[1], row_weights=row_weights)
        return release_counts(self.mechanism, counts, source)


def _add_nonzero(counts, block, row_weights):
    counts += times_row_weights(np.not_equal(block, 0), row_weights).sum(axis=0)


@dataclass(frozen=True, kw_only=True, eq=False)
class ModePlan(StatisticPlan):
    """Plan that chooses the most frequent category with permute-and-flip on the counts.

    A row changes each count by at most 1; under add/remove all in the same direction.
    """

    n_categories: int

    # Permute-and-flip adds no noise to values, so there is no number of values to check before the
    # charge.
    size = None

    @cached_property
    def mechanism(self):
        return PermuteAndFlip(self.guarantee.epsilon, 1.0, self.guarantee.relation == "add_remove")

    def run(self, codes, source, persons=None):
        """Return the index of the chosen category."""
        # The code -1 of undeclared labels is counted in the first entry, which is left out.
        counts = weighted_bincount(codes + 1, row_weights_of(persons), self.n_categories + 1)
        return self.mechanism.release(counts[1:], random_state=source)


@dataclass(frozen=True, kw_only=True, eq=False)
class HistogramPlan(StatisticPlan):
    """Plan of the counts of the bins of each column, or of a joint histogram of all columns.

    A row is in one bin of each column, or in one cell of the joint histogram. Under replace-one,
    two counts change by 1, under add/remove one.

    Parameters
    ----------
    low, high : ndarray of shape (n_columns,)
        Range of the bins of columns for which `bins` is a number.
    guarantee : Guarantee
    bins : tuple of int or ndarray, of length n_columns
        Number of bins of equal width, or the edges, of each column.
    joint : bool, default=False
        True counts the cells of the joint histogram.
    """

    low: np.ndarray
    high: np.ndarray
    bins: tuple
    joint: bool = False

    @property
    def size(self):
        """Number of values that are released together."""
        sizes = [bins if isinstance(bins, int) else len(bins) - 1 for bins in self.bins]
        return math.prod(sizes) if self.joint else sum(sizes)

    @cached_property
    def mechanism(self):
        n_histograms = 1 if self.joint else len(self.bins)
        l1_sensitivity = self.guarantee.neighbors.sensitivity_factor * n_histograms
        return counting_mechanism(l1_sensitivity, self.guarantee)

    def check_size(self, size):
        """Raise `ValueError` if the bins cannot be counted; called before the charge."""
        for edges in self.edges:
            check_edges(edges, "range: it is too narrow for that many bins")
        # Each column has two more bins, for values outside of its range.
        if self.joint and math.prod(len(edges) + 1 for edges in self.edges) > MAX_CELLS:
            raise ValueError(
                f"bins: a joint histogram of {self.size} cells is too large to count; use fewer "
                "bins or fewer columns"
            )
        super().check_size(size)

    @property
    def edges(self):
        """The edges of the bins of each column."""
        edges = []
        for low, high, bins in zip(self.low, self.high, self.bins, strict=True):
            edges.append(uniform_edges(low, high, bins) if isinstance(bins, int) else bins)
        return edges

    def run(self, X, source, persons=None):
        """Return the noisy counts, a list of arrays or a joint array, and the edges."""
        edges = self.edges
        row_weights = row_weights_of(persons)
        if self.joint:
            counts = count_cells(X, edges, row_weights)
            return release_counts(self.mechanism, counts, source), edges
        counts = count_bins(X, edges, row_weights=row_weights)
        released = release_counts(self.mechanism, np.concatenate(counts), source)
        ends = np.cumsum([len(column_counts) for column_counts in counts])
        return np.split(released, ends[:-1]), edges


def check_bins(bins):
    """Return a validated number of bins, or validated edges."""
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        return check_integer(bins, "bins", 1)
    return check_edges(bins)
