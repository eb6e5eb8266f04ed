"""Noisy counts: of true values, and of the bins of histograms."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp._data._histogram import check_edges, count_bins, count_bins_2d, uniform_edges
from skdp._data._persons import shares_of, times_shares
from skdp.accounting import Guarantee
from skdp.mechanisms import GeometricMechanism, LaplaceMechanism
from skdp.mechanisms._plan import bounded_noise
from skdp.stats._moments import StatisticPlan
from skdp.utils._validation import check_integer


def counting_mechanism(moved, guarantee, error=None):
    """Return the mechanism of least error for counts of which a unit moves `moved` by one.

    With delta > 0 it is Gaussian noise where that is the smaller. `error` of a mechanism is what
    is to be small; None is the mean error. Counts by shares are no whole numbers: rounded, those of
    many places could move by one each.
    """
    by_person = guarantee.neighbours.unit == "person"
    pure = LaplaceMechanism if by_person else GeometricMechanism
    choices = [pure(guarantee.epsilon, float(moved) if by_person else moved)]
    if guarantee.delta > 0.0:
        choices.append(bounded_noise(guarantee, moved))
    return min(choices, key=error or (lambda mechanism: mechanism.mean_error(1)))


def release_counts(mechanism, counts, source):
    """Return noisy counts as integers; Gaussian noise is rounded afterwards."""
    released = mechanism.release(counts, random_state=source)
    return np.rint(released).astype(np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class CountPlan(StatisticPlan):
    """The number of values that are not zero, of each column.

    A row moves the count of each column by one, under either relation.
    """

    n_columns: int
    guarantee: Guarantee

    by_person = True

    @property
    def size(self):
        return self.n_columns

    @cached_property
    def mechanism(self):
        return counting_mechanism(self.n_columns, self.guarantee)

    def run(self, X, source, persons=None):
        """Return the noisy counts."""
        counts = times_shares(np.not_equal(X, 0), shares_of(persons)).sum(axis=0)
        return release_counts(self.mechanism, counts, source)


@dataclass(frozen=True, eq=False, kw_only=True)
class HistogramPlan(StatisticPlan):
    """Counts of bins of columns, or of the cells of two columns' bins if `joint`.

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
    guarantee: Guarantee
    bins: tuple
    joint: bool = False

    by_person = True

    @property
    def size(self):
        sizes = [b if isinstance(b, int) else len(b) - 1 for b in self.bins]
        return math.prod(sizes) if self.joint else sum(sizes)

    @cached_property
    def mechanism(self):
        cells = 1 if self.joint else len(self.bins)
        moved = self.guarantee.neighbours.rows_moved * cells
        return counting_mechanism(moved, self.guarantee)

    def check_size(self, size):
        """Refuse what no release can do, before anything is charged."""
        for edges in self.edges:
            check_edges(edges, "range: it is too narrow for that many bins")
        super().check_size(size)

    @property
    def edges(self):
        return [
            uniform_edges([a], [b], bins)[0] if isinstance(bins, int) else bins
            for a, b, bins in zip(self.low, self.high, self.bins, strict=True)
        ]

    def run(self, X, source, persons=None):
        """Return the noisy counts, a list of arrays or a matrix, and the edges."""
        edges, shares = self.edges, shares_of(persons)
        if self.joint:
            counts = count_bins_2d(X, edges, shares)
            return release_counts(self.mechanism, counts, source), edges
        counts = count_bins(X, edges, shares=shares)
        released = release_counts(self.mechanism, np.concatenate(counts), source)
        ends = np.cumsum([len(each) for each in counts])[:-1]
        return np.split(released, ends), edges


def check_bins(bins, n_columns):
    """Return a number of bins or edges for each column."""
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        return (check_integer(bins, "bins", 1),) * n_columns
    return (check_edges(bins),) * n_columns
