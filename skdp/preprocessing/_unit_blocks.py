"""Blocks of a table, clipped to bounds and scaled to [-1, 1]."""

import numpy as np

__all__ = ["check_row_count", "rounded_sums", "unit_blocks"]

BLOCK_ROWS = 16384
# Values in [-1, 1] are rounded to this grid where their sums have to be exact in float64.
STEP = 2.0**-22
LARGEST_COUNT = 2**31


def unit_blocks(X, low, high):
    """Yield the blocks of rows of X, each value clipped and mapped from [low, high] to [-1, 1].

    Parameters
    ----------
    X : array or ChunkedArray of shape (n_rows, n_features)
        Numbers, not NaN.
    low, high : ndarray of shape (n_features,)

    Yields
    ------
    ndarray of shape (at most BLOCK_ROWS, n_features), float64
        It is overwritten when the next one is asked for.
    """
    middle, inverse = low + (high - low) / 2, 2.0 / (high - low)
    buffer = np.empty((min(BLOCK_ROWS, X.shape[0]), X.shape[1]))
    for start in range(0, X.shape[0], BLOCK_ROWS):
        block = X[start : start + BLOCK_ROWS]
        u = buffer[: len(block)]
        # Overflow is clipped below; a warning would tell that it happened.
        with np.errstate(all="ignore"):
            u[...] = block
            u -= middle
            u *= inverse
            np.clip(u, -1.0, 1.0, out=u)
        yield u


def rounded_sums(X, low, high):
    """Return the exact sums over rows of X, mapped to [-1, 1] and rounded to multiples of 2**-22.

    Integers below 2**53 are summed, for at most 2**31 rows: no order of rows nor size of blocks
    changes the sums, and a row moves each by at most 1.
    """
    sums = np.zeros(X.shape[1])
    for u in unit_blocks(X, low, high):
        u *= 1.0 / STEP
        np.rint(u, out=u)
        sums += np.ones(len(u)) @ u
    return sums * STEP


def check_row_count(n_rows):
    """Raise `ValueError` where sums of that many rounded values may not be exact."""
    if n_rows > LARGEST_COUNT:
        raise ValueError(f"at most 2**31 rows can be summed, got {n_rows}")
