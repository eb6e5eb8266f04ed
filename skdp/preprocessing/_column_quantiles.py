"""Private quantiles of every column within bounds that are declared, or found in the same fit."""

from dataclasses import dataclass, replace

import numpy as np

from skdp.mechanisms import JointMechanism
from skdp.stats._bounds import AUTO_SHARE, plan_search
from skdp.stats._quantiles import QuantilePlan
from skdp.utils._shares import split_epsilon
from skdp.utils._validation import check_bounds, is_auto

__all__ = ["ColumnQuantiles", "flat_ranges", "plan_column_quantiles"]

# Between the bounds quantiles lie on a grid of 2**24 steps. A range of a few steps is no range.
LEAST_RANGE = 2.0**-21


@dataclass(frozen=True)
class ColumnQuantiles:
    """What will be released: bounds, unless they are declared, then quantiles within them.

    Parameters
    ----------
    search : BoundsPlan or None
    quantiles : QuantilePlan
        Its bounds are those declared, or are replaced by those found.
    epsilon, delta : float
    """

    search: object
    quantiles: object
    epsilon: float
    delta: float

    @property
    def mechanism(self):
        """What is charged."""
        if self.search is None:
            return self.quantiles
        return JointMechanism((self.search, self.quantiles), self.epsilon, self.delta)

    def run(self, X, source):
        """Return the quantiles, shape (n_quantiles, n_columns), and the bounds (low, high)."""
        plan = self.quantiles
        if self.search is not None:
            low, high = self.search.run(X, source)
            plan = replace(plan, low=low, high=high)
        return plan.run(X, source), plan.low, plan.high


def plan_column_quantiles(shape, quantiles, bounds, relation, epsilon, delta):
    """Plan from public quantities alone.

    Parameters
    ----------
    shape : (int, int)
    quantiles : sequence of float
        In [0, 1].
    bounds : "auto" or tuple of (low, high)
        "auto" spends a fifth of epsilon, and at most of delta, on bounds.
    relation : {"add_remove", "replace_one"}
    epsilon, delta : float

    Returns
    -------
    ColumnQuantiles
    """
    n_rows, n_columns = shape
    if not is_auto(bounds):
        low, high = check_bounds(bounds, n_columns)
        plan = QuantilePlan(quantiles, low, high, epsilon, delta, relation, n_rows)
        return ColumnQuantiles(None, plan, epsilon, delta)
    first, rest = split_epsilon(epsilon, AUTO_SHARE)
    search, left = plan_search(n_rows, n_columns, first, delta, relation)
    low, high = -np.ones(n_columns), np.ones(n_columns)
    plan = QuantilePlan(quantiles, low, high, rest, left, relation, n_rows)
    return ColumnQuantiles(search, plan, epsilon, delta)


def flat_ranges(ranges, low, high):
    """Return the ranges, the bounds' own in the place of those too small to divide by.

    So values within the bounds are no further apart than ``1 / LEAST_RANGE`` after the division,
    in any unit.
    """
    return np.where(ranges > LEAST_RANGE * (high - low), ranges, high - low)
