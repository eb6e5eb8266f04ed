"""Exact sums and counts, which do not depend on the order of rows."""

import numpy as np
from numpy.typing import ArrayLike

from skdp._data._clipping import check_matrix
from skdp.utils._validation import broadcast_bounds, check_integer

# Number of values that are processed at a time.
_BLOCK_VALUES = 1 << 17


def sum_grid(bound: float | np.ndarray, n_samples: int) -> float | np.ndarray:
    """Return a grid on which sums of `n_samples` values up to `bound` are exact in float64.

    Parameters
    ----------
    bound : float or ndarray
        Largest magnitude of a value; finite.
    n_samples : int >= 0
        Public number of values.

    Returns
    -------
    float or ndarray
        Step of the grid, a power of two between ``n * bound * 2**-53`` and four times that. It is
        at least ``2**-1074``, of which every float is a multiple.

    Examples
    --------
    >>> from skdp.base import sum_grid
    >>> bool(sum_grid(1.0, 2**20) == 2.0**-33)
    True
    """
    mantissa, exponent = np.frexp(bound)
    exponent = np.where(mantissa == 0.5, exponent - 1, exponent)
    doublings = max(check_integer(n_samples, "n_samples", 0) - 1, 0).bit_length()
    return np.maximum(np.ldexp(1.0, exponent + doublings - 53), 2.0**-1074)[()]


def exact_sum(
    X: ArrayLike,
    bounds: tuple[ArrayLike, ArrayLike],
    *,
    n_samples: int | None = None,
    row_weights: np.ndarray | None = None,
) -> np.ndarray:
    """Return exact sums of columns whose values are clipped and rounded to a grid.

    Each value is clipped to its bounds and rounded towards zero to a multiple of `sum_grid`, which
    changes it by less than ``4 * n * max(|low|, |high|) * 2**-53``. The sum of these multiples is
    exact, so it does not depend on the order of rows, on blocks or on threads. Its sensitivity is
    exactly ``max(|low|, |high|)`` under add/remove, without slack for rounding, and ``high - low``
    under replace-one, plus one step of the grid unless ``low <= 0 <= high``. Rounding towards zero
    never increases the norm of a row, so bounds on the L1 or L2 norm of rows remain valid.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Values; NaN is refused.
    bounds : tuple of (low, high)
        Scalars or arrays of shape (n_features,), finite.
    n_samples : int, default=None
        Public number of rows, which determines the grid; None uses that of `X`. It must be at least
        the number of rows of `X`, or the sum of their `row_weights`.
    row_weights : ndarray of shape (n_samples,), default=None
        Weights in [0, 1] by which clipped values are multiplied before they are rounded; None means
        weights of 1. The products are rounded to nearest first, so sensitivities grow by a relative
        2**-53.

    Returns
    -------
    ndarray of shape (n_features,), dtype float64

    Raises
    ------
    ValueError
        If `X` is not a matrix of numbers or contains NaN, if the bounds are not ranges, or if
        `n_samples` is too small or not an integer.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.base import exact_sum
    >>> X = np.linspace(0, 1, 1000)[:, None]
    >>> bool(exact_sum(X, (0, 1)) == exact_sum(X[::-1], (0, 1)))
    True
    """
    X = check_matrix(X)
    n, d = X.shape
    low, high = broadcast_bounds(bounds, d)
    if n_samples is None:
        n_samples = n
    else:
        if row_weights is None:
            total_weight = n
        else:
            total_weight = int(np.ceil(row_weights.sum()))
        n_samples = check_integer(n_samples, "n_samples", total_weight)
    bound = np.maximum(np.abs(low), np.abs(high))
    with np.errstate(over="ignore"):
        if not np.all(np.isfinite(bound * n_samples)):
            raise ValueError("n_samples times the bounds overflows float64")
    grid = sum_grid(bound, n_samples)
    total = np.zeros(d)
    block = max(1, _BLOCK_VALUES // max(d, 1))
    for start in range(0, n, block):
        values = np.clip(X[start : start + block], low, high, dtype=np.float64)
        if row_weights is not None:
            values *= row_weights[start : start + block, np.newaxis]
        total += sum_of_steps(values, grid)
    if np.isnan(total).any():
        raise ValueError("X contains NaN")
    return total * grid


def sum_of_steps(values, grid):
    """Return the exact sums of columns in steps of a grid, after rounding towards zero.

    Parameters
    ----------
    values : ndarray of shape (n, d)
        float64, which are overwritten. The magnitudes of a column add up to at most 2**53 steps.
    grid : float or ndarray of shape (d,)
        Power of two; see `sum_grid`.

    Returns
    -------
    ndarray of shape (d,)
    """
    np.divide(values, grid, out=values)
    np.trunc(values, out=values)
    # The sums of these integers are exact in any order. A product with ones is the fastest.
    return np.ones(len(values)).dot(values)


def exact_counts(codes: ArrayLike, n_categories: int) -> np.ndarray:
    """Return the count of each category code; codes outside 0, ..., n_categories - 1 are ignored.

    Parameters
    ----------
    codes : array-like of int
        Codes of categories.
    n_categories : int >= 1
        Declared number of categories, never computed from the data.

    Returns
    -------
    ndarray of shape (n_categories,), dtype int64

    Raises
    ------
    ValueError
        If the codes are not integers or `n_categories` is not positive.

    Examples
    --------
    >>> from skdp.base import exact_counts
    >>> exact_counts([0, 2, 2, -1, 9], 4)
    array([1, 0, 2, 0])
    """
    codes = np.asarray(codes).ravel()
    if codes.size and codes.dtype.kind not in "iub":
        raise ValueError(f"codes must be integers, got {codes.dtype}")
    n_categories = check_integer(n_categories, "n_categories", 1)
    inside = codes[(codes >= 0) & (codes < n_categories)].astype(np.int64)
    return np.bincount(inside, minlength=n_categories).astype(np.int64)


def range_weights(values, low, high, n_rows, row_weights=1.0):
    """Return two weights for each value that express it as a mean of the ends of its range.

    A clipped value v is ``(1 - a) low + a high`` with a in [0, 1]. Sums of the pairs (1 - a, a)
    determine the sum of the values and their count. The L1 sensitivity of these sums is 1, whereas
    that of the scaled sum and the count together is 2.

    Parameters
    ----------
    values : ndarray of shape (..., n_columns)
        Values, which may be infinite; NaN is replaced by `low`.
    low, high : float or ndarray of shape (n_columns,)
        Finite bounds with low < high and magnitudes up to 1e150.
    n_rows : int
        Public number of rows, or of persons; sums of their weights are exact.
    row_weights : float or ndarray, default=1.0
        Weights of the rows, multiples of 2**-26.

    Returns
    -------
    below, above : ndarray of the shape of `values`
        1 - a and a, multiplied by the row weights, to which they add up exactly. They are multiples
        of ``sum_grid(1.0, n_rows)``, or of 2**-26 if that is finer.
    """
    grid = sum_grid(1.0, n_rows)
    with np.errstate(all="ignore"):
        above = (np.clip(values, low, high) - low) / (high - low)
        above = np.trunc(np.clip(np.nan_to_num(above), 0.0, 1.0) * row_weights / grid) * grid
    return row_weights - above, above


def project_on_simplex(values, total=1.0):
    """Return the nearest non-negative vectors with a given sum, along the last axis.

    The same amount is subtracted from all entries, and negative results become 0.

    References
    ----------
    M. Held, P. Wolfe and H. P. Crowder. Validation of subgradient optimization. Mathematical
    Programming 1974. J. Duchi, S. Shalev-Shwartz, Y. Singer and T. Chandra. Efficient projections
    onto the l1-ball for learning in high dimensions. ICML 2008, figure 1.
    """
    values = values - values.max(axis=-1, keepdims=True)
    decreasing = -np.sort(-values, axis=-1)
    amounts = (np.cumsum(decreasing, axis=-1) - total) / np.arange(1, values.shape[-1] + 1)
    return np.maximum(values - amounts.max(axis=-1, keepdims=True), 0.0)
