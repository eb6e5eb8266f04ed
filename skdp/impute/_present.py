"""Private statistics of the values that are present; where one is missing is private as well."""

import math

import numpy as np

from skdp.stats._bounds import spaced_bins, spaced_edges
from skdp.utils._sums import range_shares

__all__ = ["bounds_of_present", "means_of_present", "present_columns"]


def bounds_of_present(search, table, source):
    """Release bounds of each column's values, missing ones counted nowhere.

    Parameters
    ----------
    search : BoundsPlan
    table : ColumnTable
    source : RandomSource

    Returns
    -------
    low, high : ndarray of shape (n_columns,)
    """
    n_columns, bits = search.n_columns, search.splits.bit_length() - 1
    n_bins = 2 * len(spaced_edges(bits)) - 1
    offset = np.arange(n_columns) * n_bins + n_bins // 2
    counts = np.zeros(n_columns * n_bins, dtype=np.int64)
    for block in _blocks(table):
        bins = spaced_bins(block, bits).reshape(block.shape) + offset
        counts += np.bincount(bins[~np.isnan(block)], minlength=counts.size)
    noisy = search.mechanism.release(counts, random_state=source)
    return search.read(noisy.reshape(n_columns, n_bins))


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
    n_rows, n_columns = table.shape
    sums = np.zeros((2, n_columns))
    for block in _blocks(table):
        present = ~np.isnan(block)
        sums += [(part * present).sum(axis=0) for part in range_shares(block, low, high, n_rows)]
    below, above = mechanism.release(sums, random_state=source)
    count = below + above
    enough = count > math.sqrt(2.0) * deviation
    share = np.where(enough, above / np.where(enough, count, 1.0), 0.5)
    return low + np.clip(share, 0.0, 1.0) * (high - low)


def present_columns(table):
    """Yield the values of each column that are not missing."""
    n_rows, n_columns = table.shape
    for j in range(n_columns):
        blocks = [table.numeric(np.array([j]), rows)[:, 0] for rows in table.blocks(1)]
        column = np.concatenate(blocks)
        yield column[~np.isnan(column)]


def _blocks(table):
    columns = np.arange(table.shape[1])
    return (table.numeric(columns, rows) for rows in table.blocks())
