"""Values of a known range as shares of its two ends."""

import numpy as np

from skdp.utils._sums import sum_grid

__all__ = ["range_shares"]


def range_shares(values, low, high, n_rows):
    """Return the two weights with which each value is a mean of the ends of its range.

    A clipped value v is ``(1 - a) low + a high`` with a in [0, 1]. Sums of the pair (1 - a, a)
    hold the sum of the values and their count, and a row moves them by 1 in L1 norm, where it
    would move the scaled sum and the count themselves by 2.

    Parameters
    ----------
    values : ndarray of shape (..., n_columns)
        Finite or infinite; what is NaN is clipped to `low`.
    low, high : float or ndarray of shape (n_columns,)
        Finite, with low < high, within 1e150.
    n_rows : int
        The public number of rows whose shares may be summed: sums are then exact.

    Returns
    -------
    below, above : ndarray of the shape of `values`
        1 - a and a, both multiples of ``sum_grid(1.0, n_rows)``.
    """
    grid = sum_grid(1.0, n_rows)
    with np.errstate(all="ignore"):
        above = (np.clip(values, low, high) - low) / (high - low)
        above = np.trunc(np.clip(np.nan_to_num(above), 0.0, 1.0) / grid) * grid
    return 1.0 - above, above
