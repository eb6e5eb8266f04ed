"""Sums, means, variances, counts and histograms of all columns in one release."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp._data._histogram import check_edges, count_bins, count_cells, uniform_edges
from skdp._data._parts import Rows, max_additions, sum_over
from skdp._data._persons import count_over, row_weights_of, times_row_weights, weighted_bincount
from skdp.accounting import Guarantee
from skdp.mechanisms import PermuteAndFlip
from skdp.mechanisms._plan import MechanismPlan, bounded_noise, counting_mechanism
from skdp.utils import exact_sum
from skdp.utils._validation import check_integer

# Ten columns of that many rows stay in a processor's cache.
BLOCK_ROWS = 4096

# The (L1, L2) sensitivities of one column's sums of u, and of u and u^2 - 1/2, for u in
# [-1, 1]; derived in docs/guarantees.md.
SENSITIVITY = {
    ("add_remove", 1): (1.0, 1.0),
    ("replace_one", 1): (2.0, 2.0),
    ("add_remove", 2): (1.5, math.sqrt(1.25)),
    ("replace_one", 2): (2.25, 2.0),
}
UNIFORM_VARIANCE = 1.0 / 3.0
MOST_CELLS = 2**27


@dataclass(frozen=True, kw_only=True, eq=False)
class StatisticPlan(MechanismPlan):
    """A plan that is charged what was asked for, whatever its mechanism makes of delta."""

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
    """Means, or means and variances, of columns within bounds.

    Columns are scaled to [-1, 1], so that what it costs does not depend on the bounds.

    Parameters
    ----------
    n_rows : int
        Public.
    low, high : ndarray of shape (n_columns,)
    guarantee : Guarantee
    n_moments : {1, 2}
    counted : bool, default=False
        Whether values can be NaN, and those that are not are counted.
    """

    n_rows: int
    low: np.ndarray
    high: np.ndarray
    n_moments: int = 1
    counted: bool = False

    released = "sums of columns"

    @property
    def size(self):
        return (self.n_moments + self.counted) * len(self.low)

    @property
    def moved(self):
        """The L1 and L2 sensitivities of the exact sums."""
        l1, l2 = SENSITIVITY[self.guarantee.relation, self.n_moments]
        if self.counted:
            # A missing value in place of one takes away what that adds, and one of the number.
            added = SENSITIVITY["add_remove", self.n_moments]
            l1 = max(l1, added[0] + 1.0)
            l2 = max(l2, math.hypot(added[1], 1.0))
        return l1 * len(self.low), l2 * math.sqrt(len(self.low))

    @cached_property
    def mechanism(self):
        l1, l2 = self.moved
        # For each of the two neighbors; a value is rounded five times before it is added.
        additions = max_additions(BLOCK_ROWS) + 5
        rounding = 2.0 * additions * self.n_rows * np.finfo(np.float64).eps
        l1 = l1 + rounding * self.size
        l2 = l2 + rounding * math.sqrt(self.size)
        return bounded_noise(self.guarantee, l1, l2)

    def run(self, X, source, persons=None):
        """Return the means, and the variances or None, in the columns' units."""
        row_weights = row_weights_of(persons)
        sums = _centered_sums(X, self.low, self.high, self.n_moments, row_weights, self.counted)
        noisy = self.mechanism.release(sums, random_state=source)
        return self.read(noisy[:-1], noisy[-1]) if self.counted else self.read(noisy, self.n_rows)

    def read(self, sums, present):
        """Return the means, and the variances or None, that noisy sums of values show."""
        deviation = self.mechanism.deviation(self.size)
        present = np.maximum(present, deviation)
        noise = deviation / present
        half = (self.high - self.low) / 2
        nothing_left = noise > UNIFORM_VARIANCE
        mean = np.where(nothing_left, 0.0, np.clip(sums[0] / present, -1.0, 1.0))
        # The sum is rounded, which can lead out of the bounds.
        means = np.clip(self.low + half + half * mean, self.low, self.high)
        if len(sums) == 1:
            return means, None
        variance = np.clip(sums[1] / present + 0.5 - mean**2, noise, 1.0)
        return means, np.where(nothing_left, UNIFORM_VARIANCE, variance) * half**2


@dataclass(frozen=True, kw_only=True, eq=False)
class SumPlan(MomentsPlan):
    """Sums of columns within bounds.

    Under add/remove a null row counts as 0, and a row moves a sum by the larger magnitude of its
    bounds; each column is divided by that, and then moves as a mean's sum does. Under replace-one
    the number of rows is the same in both data sets, and the sums are the means times that.
    """

    @property
    def units(self):
        """What noise of scale 1 amounts to in each sum."""
        if self.guarantee.relation == "replace_one":
            return (self.high - self.low) / 2
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def run(self, X, source, persons=None):
        """Return the sums."""
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
    """Sum a function of the rows of X, each value clipped and mapped from [low, high] to [-1, 1].

    Parameters
    ----------
    X : array or ChunkedArray of shape (n_rows, n_features)
        Numbers, not NaN.
    add : callable
        Of the sums, a block that it may change, and the row weights of its rows.
    sums : ndarray
        Zeros.
    low, high : ndarray of shape (n_features,)
    row_weights : ndarray of shape (n_rows,), default=None
        None for ones.

    Returns
    -------
    ndarray
        `sums`.
    """
    rows = Rows(X, BLOCK_ROWS)
    small = (add, low, high)
    return sum_over(rows, _add_unit_rows, sums, *small, row_args=(row_weights,))


def _add_unit_rows(sums, block, row_weights, add, low, high):
    # What overflows is clipped, and no warning may tell of it.
    with np.errstate(all="ignore"):
        u = block - (low + (high - low) / 2)
        u *= 2.0 / (high - low)
        np.clip(u, -1.0, 1.0, out=u)
    add(sums, u, row_weights)


def _centered_sums(X, low, high, n_moments, row_weights=None, counted=False):
    """Return the sums over rows of u and of u^2 - 1/2, for X clipped and scaled to [-1, 1].

    With `counted`, those of values that are not NaN, and below them their numbers.
    """
    sums = np.zeros((n_moments + counted, X.shape[1]))
    unit_sums(X, _add_present if counted else _add_moments, sums, low, high, row_weights)
    n_rows = X.shape[0] if row_weights is None else row_weights.sum()
    sums[1:n_moments] -= (sums[-1] if counted else n_rows) / 2
    return sums


def _add_present(sums, u, row_weights):
    sums[-1] += times_row_weights(~np.isnan(u), row_weights).sum(axis=0)
    _add_moments(sums[:-1], np.nan_to_num(u, nan=0.0), row_weights)


def _add_moments(sums, u, row_weights):
    shared = times_row_weights(u, row_weights)
    sums[0] += np.ones(len(u)).dot(shared)
    if len(sums) == 2:
        sums[1] += np.einsum("ij,ij->j", shared, u)


def release_counts(mechanism, counts, source):
    """Return noisy counts as integers; Gaussian noise is rounded afterwards."""
    return np.rint(mechanism.release(counts, random_state=source)).astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class CountPlan(StatisticPlan):
    """The number of values that are not zero, of each column.

    A row moves the count of each column by one, under either relation.
    """

    n_columns: int

    @property
    def size(self):
        return self.n_columns

    @cached_property
    def mechanism(self):
        return counting_mechanism(self.n_columns, self.guarantee)

    def run(self, X, source, persons=None):
        """Return the noisy counts."""
        rows = Rows(X)
        row_weights = row_weights_of(persons)
        counts = count_over(rows, _add_others_than_zero, X.shape[1], row_weights=row_weights)
        return release_counts(self.mechanism, counts, source)


def _add_others_than_zero(counts, block, row_weights):
    counts += times_row_weights(np.not_equal(block, 0), row_weights).sum(axis=0)


@dataclass(frozen=True, kw_only=True, eq=False)
class ModePlan(StatisticPlan):
    """The category that most rows have, by permute-and-flip on the counts.

    A row moves each count by one at most, under add/remove all in the same direction.
    """

    n_categories: int

    size = None

    @cached_property
    def mechanism(self):
        return PermuteAndFlip(self.guarantee.epsilon, 1.0, self.guarantee.relation == "add_remove")

    def run(self, codes, source, persons=None):
        """Return the place of the category."""
        counts = weighted_bincount(codes + 1, row_weights_of(persons), self.n_categories + 1)
        return self.mechanism.release(counts[1:], random_state=source)


@dataclass(frozen=True, kw_only=True, eq=False)
class HistogramPlan(StatisticPlan):
    """Counts of bins of columns, or of the cells of all columns' bins together if `joint`.

    A row is in one bin of each column (in one cell): under replace-one it moves to another.

    Parameters
    ----------
    low, high : ndarray of shape (n_columns,)
        Read where `bins` is a number.
    guarantee : Guarantee
    bins : tuple of int or ndarray, of length n_columns
        The number of bins of one width between the bounds, or the edges.
    joint : bool, default=False
    """

    low: np.ndarray
    high: np.ndarray
    bins: tuple
    joint: bool = False

    @property
    def size(self):
        sizes = [b if isinstance(b, int) else len(b) - 1 for b in self.bins]
        return math.prod(sizes) if self.joint else sum(sizes)

    @cached_property
    def mechanism(self):
        cells = 1 if self.joint else len(self.bins)
        moved = self.guarantee.neighbors.sensitivity_factor * cells
        return counting_mechanism(moved, self.guarantee)

    def check_size(self, size):
        """Refuse what no release can do, before anything is charged."""
        for edges in self.edges:
            check_edges(edges, "range: it is too narrow for that many bins")
        # Counted are cells outside of the bins, too.
        if self.joint and math.prod(len(edges) + 1 for edges in self.edges) > MOST_CELLS:
            raise ValueError(f"there are {self.size} cells of all columns, too many to count")
        super().check_size(size)

    @property
    def edges(self):
        columns = zip(self.low, self.high, self.bins, strict=True)
        return [uniform_edges(a, b, n) if isinstance(n, int) else n for a, b, n in columns]

    def run(self, X, source, persons=None):
        """Return the noisy counts, a list of arrays or a matrix, and the edges."""
        edges = self.edges
        row_weights = row_weights_of(persons)
        if self.joint:
            counts = count_cells(X, edges, row_weights)
            return release_counts(self.mechanism, counts, source), edges
        counts = count_bins(X, edges, row_weights=row_weights)
        released = release_counts(self.mechanism, np.concatenate(counts), source)
        return np.split(released, np.cumsum([len(each) for each in counts])[:-1]), edges


def check_bins(bins):
    """Return a number of bins, or their edges."""
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        return check_integer(bins, "bins", 1)
    return check_edges(bins)
