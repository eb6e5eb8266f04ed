"""Clipping to bounds that hold after floating-point rounding."""

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp._data._frames import is_frame
from skdp._data._row_wise import row_norms
from skdp.utils._documents import count_of
from skdp.utils._validation import broadcast_bounds, check_positive

# Number of values that are processed at a time.
_BLOCK_VALUES = 1 << 17


def finite_doubles(values):
    """Replace infinite values by the largest double of their sign, in place.

    The output of a transformer is then finite. Otherwise, the next step of a pipeline would refuse
    the output after the charge.
    """
    largest = np.finfo(np.float64).max
    return np.clip(values, -largest, largest, out=values)


def clip_rows(X: ArrayLike, norm: float) -> np.ndarray:
    """Scale rows down to an L2 norm that never exceeds the bound.

    The exact norm of the returned floats is at most `norm`: the computed norm is compared with a
    margin for the rounding of the norm and of the products. The relative margin is about
    ``(n_features + 8) * 2**-51``, plus ``2**-23`` for float32. Clipping is idempotent. A row whose
    squared norm overflows float64 becomes zero.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Array of float64 or float32. Other numbers, and lists, are converted to float64.
    norm : float > 0
        The bound C. Each row g becomes ``g * min(1, C / ||g||)``.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        A new array of the dtype of `X`.

    Raises
    ------
    ValueError
        If `X` is not a matrix of numbers or contains NaN, or `norm` is not positive and finite.

    Examples
    --------
    >>> from skdp.base import clip_rows
    >>> clip_rows([[3.0, 4.0], [0.3, 0.4]], norm=1.0).round(6)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    X = check_matrix(X)
    norm = check_positive(norm, "norm")
    out = np.empty_like(X)
    d = X.shape[1]
    # Bound on the relative rounding errors of a sum of d squares in any order, the square root,
    # the division and the product.
    margin = (d + 8) * 2.0**-53
    if X.dtype == np.float32:
        unit_roundoff = 2.0**-24
    else:
        unit_roundoff = 2.0**-53
    # Products that underflow are rounded by at most half a subnormal number each.
    underflow = math.sqrt(d) * float(np.finfo(X.dtype).smallest_subnormal)
    # Rows with a computed norm up to this value are not changed.
    max_unclipped = norm * (1.0 - margin) - 2.0**-500
    target_norm = max_unclipped * (1.0 - 3.0 * margin - 2.0 * unit_roundoff) - underflow
    if max_unclipped <= 0 or target_norm <= 0:
        raise ValueError(f"norm={norm!r} is too small for {X.dtype} and {count_of(d, 'feature')}")
    size = max(1, _BLOCK_VALUES // max(d, 1))
    for start in range(0, len(X), size):
        rows = slice(start, start + size)
        doubles = X[rows].astype(np.float64, copy=False)
        with np.errstate(all="ignore"):
            norms = row_norms(doubles)
            if np.isnan(norms).any():
                raise ValueError("X contains NaN")
            factors = np.where(norms <= max_unclipped, 1.0, target_norm / norms)
            np.multiply(doubles, factors[:, None], out=out[rows], casting="same_kind")
        out[rows][~np.isfinite(norms)] = 0.0
    return out


def clip_features(X: ArrayLike, bounds: tuple[ArrayLike, ArrayLike]) -> np.ndarray:
    """Clip each feature to its range.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Array of float64 or float32. Other numbers, and lists, are converted to float64.
    bounds : tuple of (low, high)
        Scalars or arrays of shape (n_features,), finite, ``low <= high``.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        A new array with the dtype of `X`. Bounds that float32 cannot represent are rounded inward
        for float32.

    Raises
    ------
    ValueError
        If `X` is not a matrix of numbers or contains NaN, or the bounds are not ranges.

    Examples
    --------
    >>> from skdp.base import clip_features
    >>> clip_features([[-1.0, 5.0], [0.5, 0.5]], bounds=(0.0, [1.0, 2.0]))
    array([[0. , 2. ],
           [0.5, 0.5]])
    """
    X = check_matrix(X)
    low, high = broadcast_bounds(bounds, X.shape[1])
    if X.dtype == np.float32:
        low = _rounded_inwards(low, np.float32(np.inf))
        high = _rounded_inwards(high, np.float32(-np.inf))
        if np.any(low > high):
            raise ValueError("bounds: no float32 number is between low and high; widen the bounds")
    out = np.clip(X, low, high)
    if np.isnan(out).any():
        raise ValueError("X contains NaN")
    return out


def _rounded_inwards(bound, direction):
    """Return the nearest float32 that is not outside a bound; `direction` is inf or -inf."""
    rounded = bound.astype(np.float32)
    if direction > 0:
        is_outside = rounded < bound
    else:
        is_outside = rounded > bound
    return np.where(is_outside, np.nextafter(rounded, direction), rounded)


def check_matrix(X: ArrayLike) -> np.ndarray:
    """Return a matrix of float64 or float32, or raise `ValueError`."""
    is_declared = hasattr(X, "dtype") or is_frame(X)
    X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(f"X must be a matrix of real numbers, got {X.dtype} of shape {X.shape}")
    # The type that NumPy gives a list depends on its values, so lists become float64.
    if X.dtype == np.float64 or (X.dtype == np.float32 and is_declared):
        return X
    # A warning about overflow would reveal that a large value exists.
    with np.errstate(over="ignore"):
        return X.astype(np.float64)
