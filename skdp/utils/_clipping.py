"""Clipping whose bounds hold after floating-point rounding."""

import math

import numpy as np

from skdp.utils._frames import is_frame
from skdp.utils._row_wise import row_norms
from skdp.utils._validation import broadcast_bounds, check_positive

_BLOCK_VALUES = 1 << 17


def finite_doubles(values):
    """Replace what overflowed, in place, by the largest double of its sign.

    So a table stays finite behind a transformer, and the next step does not refuse it after the
    charge.
    """
    largest = np.finfo(np.float64).max
    return np.clip(values, -largest, largest, out=values)


def clip_rows(X, norm):
    """Scale rows down to an L2 norm that never exceeds the bound.

    The norm of the returned floats, taken as real numbers, is at most `norm`: the computed norm is
    compared and scaled with a margin for its own rounding and that of the products, of a relative
    size of about ``(n_features + 8) * 2**-51`` (float32: ``2**-23`` more). Clipping twice changes
    nothing. A row whose squared norm overflows float64 becomes zero.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        An array of float64 or float32; other numbers, and lists, become float64.
    norm : float > 0
        The bound C. Each row g becomes ``g * min(1, C / ||g||)``.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        A new array of the dtype of `X`.

    Raises
    ------
    ValueError
        If `X` is not a matrix of numbers, holds NaN, or `norm` is not positive and finite.

    Examples
    --------
    >>> from skdp.utils import clip_rows
    >>> clip_rows([[3.0, 4.0], [0.3, 0.4]], norm=1.0).round(6)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    X = check_matrix(X)
    norm = check_positive(norm, "norm")
    out = np.empty_like(X)
    d = X.shape[1]
    # Sum of d squares in any order, the square root, the division, the product.
    margin = (d + 8) * 2.0**-53
    unit = 2.0**-24 if X.dtype == np.float32 else 2.0**-53
    tiny = math.sqrt(d) * float(np.finfo(X.dtype).smallest_subnormal)
    keep_below = norm * (1.0 - margin) - 2.0**-500
    target = keep_below * (1.0 - 3.0 * margin - 2.0 * unit) - tiny
    if keep_below <= 0 or target <= 0:
        raise ValueError(f"norm={norm!r} is too small for {X.dtype} and {d} features")
    size = max(1, _BLOCK_VALUES // max(d, 1))
    for rows in (slice(start, start + size) for start in range(0, len(X), size)):
        wide = X[rows].astype(np.float64, copy=False)
        with np.errstate(all="ignore"):
            norms = row_norms(wide)
            if np.isnan(norms).any():
                raise ValueError("X holds NaN")
            factors = np.where(norms <= keep_below, 1.0, target / norms)
            np.multiply(wide, factors[:, None], out=out[rows], casting="same_kind")
        out[rows][~np.isfinite(norms)] = 0.0
    return out


def clip_features(X, bounds):
    """Clip each feature to its range.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        An array of float64 or float32; other numbers, and lists, become float64.
    bounds : tuple of (low, high)
        Scalars or arrays of shape (n_features,), finite, ``low <= high``.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        A new array of the dtype of `X`. For float32, bounds that float32 cannot represent are
        rounded inwards.

    Raises
    ------
    ValueError
        If `X` is not a matrix of numbers, holds NaN, or the bounds are not ranges.

    Examples
    --------
    >>> from skdp.utils import clip_features
    >>> clip_features([[-1.0, 5.0], [0.5, 0.5]], bounds=(0.0, [1.0, 2.0]))
    array([[0. , 2. ],
           [0.5, 0.5]])
    """
    X = check_matrix(X)
    low, high = broadcast_bounds(bounds, X.shape[1])
    if X.dtype == np.float32:
        low, high = _inwards(low, np.float32(np.inf)), _inwards(high, np.float32(-np.inf))
        if np.any(low > high):
            raise ValueError("no float32 number lies inside the bounds")
    out = np.clip(X, low, high)
    if np.isnan(out).any():
        raise ValueError("X holds NaN")
    return out


def _inwards(bound, towards):
    rounded = bound.astype(np.float32)
    outside = rounded < bound if towards > 0 else rounded > bound
    return np.where(outside, np.nextafter(rounded, towards), rounded)


def check_matrix(X):
    is_declared = hasattr(X, "dtype") or is_frame(X)
    X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(f"X must be a matrix of real numbers, got {X.dtype} of shape {X.shape}")
    # A list's type is that of its widest number.
    if X.dtype == np.float64 or (X.dtype == np.float32 and is_declared):
        return X
    # A warning would tell that a value overflowed.
    with np.errstate(over="ignore"):
        return X.astype(np.float64)
