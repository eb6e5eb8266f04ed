"""Sums, means and variances of all columns in one release."""

import math
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

import numpy as np

from skdp._data._parts import Rows, most_additions, sum_over
from skdp._data._persons import shares_of, times_shares
from skdp.accounting import Guarantee
from skdp.mechanisms._plan import MechanismPlan, bounded_noise
from skdp.utils import exact_sum

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


class StatisticPlan(MechanismPlan):
    """A plan that is charged what was asked for, whatever its mechanism makes of delta."""

    epsilon = property(attrgetter("guarantee.epsilon"))
    delta = property(attrgetter("guarantee.delta"))


@dataclass(frozen=True, eq=False, kw_only=True)
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
    """

    n_rows: int
    low: np.ndarray
    high: np.ndarray
    guarantee: Guarantee
    n_moments: int = 1

    by_person = True

    @property
    def size(self):
        return self.n_moments * len(self.low)

    @cached_property
    def mechanism(self):
        l1, l2 = SENSITIVITY[self.guarantee.relation, self.n_moments]
        n_columns, n_values = len(self.low), self.size
        # For each of the two neighbours; a value is rounded five times before it is added.
        additions = most_additions(BLOCK_ROWS) + 5
        rounding = 2.0 * additions * self.n_rows * np.finfo(np.float64).eps
        l1 = l1 * n_columns + rounding * n_values
        l2 = l2 * math.sqrt(n_columns) + rounding * math.sqrt(n_values)
        return bounded_noise(self.guarantee, l1, l2)

    def run(self, X, source, persons=None):
        """Return the means, and the variances or None, in the columns' units."""
        low, high = self.low, self.high
        middle, half = low + (high - low) / 2, (high - low) / 2
        sums = _centred_sums(X, low, high, self.n_moments, shares_of(persons))
        released = self.mechanism.release(sums, random_state=source)
        mean, variance = _moments(released, self.n_rows, self.mechanism.deviation(self.size))
        # The sum is rounded, which can lead out of the bounds.
        mean = np.clip(middle + half * mean, low, high)
        return mean, None if variance is None else variance * half**2


@dataclass(frozen=True, eq=False, kw_only=True)
class SumPlan(MomentsPlan):
    """Sums of columns within bounds.

    Under add/remove a null row counts as 0, and a row moves a sum by the larger magnitude of its
    bounds; each column is divided by that. Under replace-one the number of rows is the same in both
    data sets, and the sums are the means times that.
    """

    @cached_property
    def mechanism(self):
        if self.guarantee.relation == "replace_one":
            return super().mechanism
        # The sums are exact; the quotient is rounded by a relative 2**-53 for each neighbour, and
        # so is the product with a row's share.
        slack = 1.0 + (self.n_rows + 1) * np.finfo(np.float64).eps
        return bounded_noise(self.guarantee, slack * self.size, slack * math.sqrt(self.size))

    @property
    def units(self):
        """What noise of scale 1 amounts to in each sum."""
        if self.guarantee.relation == "replace_one":
            return (self.high - self.low) / 2
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def run(self, X, source, persons=None):
        """Return the sums."""
        shares = shares_of(persons)
        if self.guarantee.relation == "replace_one":
            sums = _centred_sums(X, self.low, self.high, 1, shares)[0]
            middle = self.low + (self.high - self.low) / 2
            return self.n_rows * middle + self._release(sums, source)
        sums = exact_sum(X, (self.low, self.high), n_samples=self.n_rows, shares=shares)
        return self._release(sums / self.units, source)

    def _release(self, sums, source):
        return self.mechanism.release(sums, random_state=source) * self.units


def unit_sums(X, add, sums, low, high, shares=None):
    """Sum a function of the rows of X, each value clipped and mapped from [low, high] to [-1, 1].

    Parameters
    ----------
    X : array or ChunkedArray of shape (n_rows, n_features)
        Numbers, not NaN.
    add : callable
        Of the sums, a block that it may change, and the shares of its rows.
    sums : ndarray
        Zeros.
    low, high : ndarray of shape (n_features,)
    shares : ndarray of shape (n_rows,), default=None
        None for ones.

    Returns
    -------
    ndarray
        `sums`.
    """
    rows, small = Rows(X, BLOCK_ROWS), (add, low, high)
    return sum_over(rows, _add_unit_rows, sums, *small, along=(shares,))


def _add_unit_rows(sums, block, shares, add, low, high):
    # What overflows is clipped, and no warning may tell of it.
    with np.errstate(all="ignore"):
        u = block - (low + (high - low) / 2)
        u *= 2.0 / (high - low)
        np.clip(u, -1.0, 1.0, out=u)
    add(sums, u, shares)


def _centred_sums(X, low, high, n_moments, shares=None):
    """Return the sums over rows of u and of u^2 - 1/2, for X clipped and scaled to [-1, 1]."""
    sums = unit_sums(X, _add_moments, np.zeros((n_moments, X.shape[1])), low, high, shares)
    sums[1:] -= (X.shape[0] if shares is None else shares.sum()) / 2
    return sums


def _add_moments(sums, u, shares):
    shared = times_shares(u, shares)
    sums[0] += np.ones(len(u)) @ shared
    if len(sums) == 2:
        sums[1] += np.einsum("ij,ij->j", shared, u)


def _moments(sums, n_rows, deviation):
    """Return the means of u and, if sums of squares were released, its variances or None."""
    noise = deviation / n_rows
    nothing_left = noise > UNIFORM_VARIANCE
    mean = np.zeros(sums.shape[1]) if nothing_left else np.clip(sums[0] / n_rows, -1.0, 1.0)
    if len(sums) == 1:
        return mean, None
    if nothing_left:
        return mean, np.full_like(mean, UNIFORM_VARIANCE)
    return mean, np.clip(sums[1] / n_rows + 0.5 - mean**2, noise, 1.0)
