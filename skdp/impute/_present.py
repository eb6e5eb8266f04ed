"""Private statistics of the values that are present; where one is missing is private as well."""

import math

import numpy as np

from skdp._data._containers import as_numbers
from skdp._data._parts import sum_over
from skdp.utils._sums import range_shares

__all__ = ["means_of_present", "present_columns"]


def means_of_present(mechanism, deviation, table, low, high, source):
    """Release the mean of each column's values, clipped to bounds.

    Each value adds 1 in all to two sums, the weights of the ends of its range; a missing one adds
    nothing. So one release holds the sum of the values and their number.

    Parameters
    ----------
    mechanism : LaplaceMechanism or GaussianMechanism
    deviation : float
        The standard deviation of the noise in each sum.
    table : ColumnTable
    low, high : ndarray of shape (n_columns,)
    source : RandomSource

    Returns
    -------
    ndarray of shape (n_columns,)
        The middle of the bounds where the noisy number of values is below its own noise.
    """
    sums = np.zeros((2, table.shape[1]))
    sum_over(table.numbers(), _add_shares, sums, low, high, table.shape[0])
    below, above = mechanism.release(sums, random_state=source)
    count = below + above
    enough = count > math.sqrt(2.0) * deviation
    share = np.where(enough, above / np.where(enough, count, 1.0), 0.5)
    return low + np.clip(share, 0.0, 1.0) * (high - low)


def _add_shares(sums, block, low, high, n_rows):
    present = ~np.isnan(block)
    sums += [(part * present).sum(axis=0) for part in range_shares(block, low, high, n_rows)]


def present_columns(table):
    """Yield the values of each column that are not missing."""
    for j in range(table.shape[1]):
        column = as_numbers(table.column(j).whole())
        yield column[~np.isnan(column)]
