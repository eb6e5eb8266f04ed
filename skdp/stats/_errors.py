"""Expected errors of private statistics, from public quantities only."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp.accounting import Guarantee, Neighbors
from skdp.stats._moments import CountPlan, HistogramPlan, MomentsPlan, SumPlan
from skdp.stats._quantiles import QuantilePlan
from skdp.utils._types import Relation
from skdp.utils._validation import broadcast_bounds, check_choice, check_integer

STATISTICS = ("mean", "sum", "var", "count", "histogram", "histogram2d", "median", "quantile")


def expected_error(
    statistic: str,
    n_rows: int,
    epsilon: float = 1.0,
    *,
    delta: float = 0.0,
    bounds: tuple[ArrayLike, ArrayLike] = (0.0, 1.0),
    n_columns: int = 1,
    q: float = 0.5,
    relation: Relation = "add_remove",
) -> float | np.ndarray:
    """Return the expected absolute error that privacy adds to a statistic.

    It is computed from public quantities only.

    Parameters
    ----------
    statistic : {"mean", "sum", "var", "count", "histogram", "histogram2d", "median", "quantile"}
    n_rows : int
        Number of rows.
    epsilon, delta : float
        Parameters of the statistic. With bounds "auto" four fifths of epsilon remain for it.
    bounds : tuple of (low, high), default=(0, 1)
        Numbers or arrays of shape (n_columns,). Not used for counts and quantiles.
    n_columns : int, default=1
        Number of columns that are released together.
    q : float, default=0.5
        Probability of the quantile.
    relation : {"add_remove", "replace_one"}, default="add_remove"

    Returns
    -------
    float or ndarray
        The mean absolute difference to the statistic of the clipped values, before the result is
        clipped to its possible range. It is a number for scalar bounds, else one per column. For
        "var" it holds if the mean is at the center of the bounds; otherwise the error is up to
        three times as large. For histograms it is the error of one count. For "median" and
        "quantile" it is a difference of ranks divided by the number of rows, if values near the
        quantile are evenly spaced: 0.01 is a result between the 49 % and the 51 % quantile.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> from skdp.stats import expected_error
    >>> round(expected_error("mean", 10_000, epsilon=1.0, bounds=(0, 100)), 4)
    0.005
    >>> round(expected_error("count", 10_000, epsilon=0.5), 2)
    1.92
    """
    check_choice(statistic, "statistic", STATISTICS)
    n_rows = check_integer(n_rows, "n_rows", 1)
    n_columns = check_integer(n_columns, "n_columns", 1)
    guarantee = Guarantee(epsilon=epsilon, delta=delta, neighbors=Neighbors(relation=relation))
    low, high = broadcast_bounds(bounds, n_columns)
    if statistic == "count":
        return _mean_error(CountPlan(n_columns=n_columns, guarantee=guarantee))
    if statistic in ("histogram", "histogram2d"):
        is_joint = statistic == "histogram2d"
        # The number of bins does not change the error of one count.
        bins = (1,) * (2 if is_joint else n_columns)
        ones = np.ones(len(bins))
        plan = HistogramPlan(low=ones, high=ones, guarantee=guarantee, bins=bins, joint=is_joint)
        return _mean_error(plan)
    if statistic in ("median", "quantile"):
        quantile = 0.5 if statistic == "median" else q
        quantiles = QuantilePlan(
            n_rows=n_rows, low=low, high=high, guarantee=guarantee, quantiles=[quantile]
        )
        return _rank_error(quantiles, n_rows)
    if statistic == "sum":
        sums = SumPlan(n_rows=n_rows, low=low, high=high, guarantee=guarantee)
        error = _mean_error(sums) * sums.units
    else:
        n_moments = 2 if statistic == "var" else 1
        moments = MomentsPlan(
            n_rows=n_rows, low=low, high=high, guarantee=guarantee, n_moments=n_moments
        )
        error = _mean_error(moments) / n_rows * ((high - low) / 2) ** n_moments
    return float(error[0]) if np.ndim(bounds[0]) == np.ndim(bounds[1]) == 0 else error


def _mean_error(plan):
    """Return the mean magnitude of the noise in each value of a plan."""
    return plan.mechanism.mean_error(plan.size)


def _rank_error(plan, n_rows):
    """Return the expected distance of the chosen from the exact rank, divided by `n_rows`."""
    rank = plan.shares[0] * n_rows
    # Farther ranks have a probability below exp(-100).
    max_distance = 100.0 * plan.scale + 1.0
    first = max(0, math.floor(rank - max_distance))
    last = min(n_rows, math.ceil(rank + max_distance))
    distances = np.abs(np.linspace(first, last, min(last - first, 10**6) + 1) - rank)
    weights = np.exp(-(distances - distances.min()) / plan.scale)
    return float(weights @ distances / weights.sum() / n_rows)
