"""Expected errors of private statistics, from public quantities only."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp._data._tables import TableShape
from skdp.accounting import Guarantee, Neighbors
from skdp.mechanisms._plan import counting_mechanism
from skdp.stats._moments import noise_of_histogram, noise_of_moments, unit_of_sums
from skdp.stats._quantiles import QuantileTree
from skdp.utils._types import Relation
from skdp.utils._validation import broadcast_bounds, check_choice, check_integer, check_within

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

    It is computed only from public quantities.

    Parameters
    ----------
    statistic : {"mean", "sum", "var", "count", "histogram", "histogram2d", "median", "quantile"}
    n_rows : int
        Number of rows.
    epsilon, delta : float
        Parameters of the statistic. With bounds="auto", four fifths of epsilon remain for the
        statistic.
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
        The mean absolute difference from the statistic of the clipped values, before the result is
        clipped to its possible range. The result is a number for scalar bounds, otherwise one
        number per column. For "var", it holds if the mean is at the center of the bounds;
        elsewhere, the error is up to three times as large. For histograms, it is the error of one
        count. For "median" and "quantile", it is a difference in ranks divided by the number of
        rows, if values near the quantile are evenly spaced. For a median, 0.01 means a result
        between the 49 % and the 51 % quantile.

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
    shape = TableShape(n_rows=n_rows, n_columns=n_columns)
    if statistic == "count":
        return counting_mechanism(n_columns, guarantee).mean_error(n_columns)
    if statistic in ("histogram", "histogram2d"):
        # The error of one count does not depend on the number of bins.
        n_histograms = n_columns
        if statistic == "histogram2d":
            n_histograms = 1
        return noise_of_histogram(guarantee, n_histograms).mean_error(n_histograms)
    if statistic in ("median", "quantile"):
        quantile = 0.5
        if statistic == "quantile":
            quantile = check_within(q, "q", 0.0, 1.0)
        tree = QuantileTree(
            quantiles=[quantile], n_columns=n_columns, n_rows=n_rows, guarantee=guarantee
        )
        return _rank_error(tree, n_rows)
    if statistic == "sum":
        unit = unit_of_sums(low, high, relation)
        error = noise_of_moments(shape, guarantee).mean_error(n_columns) * unit
    else:
        n_moments = 1
        if statistic == "var":
            n_moments = 2
        noise = noise_of_moments(shape, guarantee, n_moments)
        half_range = (high - low) / 2
        error = noise.mean_error(n_moments * n_columns) / n_rows * half_range**n_moments
    if np.ndim(bounds[0]) == np.ndim(bounds[1]) == 0:
        return float(error[0])
    return error


def _rank_error(tree, n_rows):
    """Return the expected distance from the exact to the chosen rank, divided by `n_rows`."""
    rank = tree.shares[0] * n_rows
    # More distant ranks have a probability below exp(-100).
    max_distance = 100.0 * tree.scale + 1.0
    first = max(0, math.floor(rank - max_distance))
    last = min(n_rows, math.ceil(rank + max_distance))
    distances = np.abs(np.linspace(first, last, min(last - first, 10**6) + 1) - rank)
    weights = np.exp(-(distances - distances.min()) / tree.scale)
    return float(weights @ distances / weights.sum() / n_rows)
