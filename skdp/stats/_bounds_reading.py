"""Bounds of columns from noisy counts of magnitudes, where noise hides what single bins hold.

Everything here is computed from noisy counts and public values, so it is post-processing and costs
nothing. Counts are of the ranges from a power of two to the next, called octaves, on either side of
a bin of zeros: position 0 is the bin of 0, position k > 0 the k-th octave of positive numbers, and
position -k that of negative ones.
"""

from typing import NamedTuple

import numpy as np

# The constants below were chosen on training rows of twenty small tables (see
# docs/benchmarks/many_tables.py with --undeclared --rows train), by mean scores of additive models.

# An end is moved outwards by an octave that is expected to hold this fraction of the rows, and 0 is
# kept in if what lies between 0 and the bounds may hold it.
MIN_FRACTION = 0.08
# The expectation shrinks noisy counts towards 0, as if the fraction of the rows in an octave beside
# the bounds had this standard deviation among columns.
PRIOR_FRACTION = 0.1
# 0 is kept in unless the counts below the bounds are so many standard deviations below that.
DEVIATIONS_OF_ZERO = 1.5
# How many octaves beside the bounds, or of the other sign, may hold what belongs to the column.
N_BESIDE = 6
# The other sign is taken in if its counts are so many standard deviations above 0.
DEVIATIONS_OF_SIGN = 2.0
# Where zeros alone stand out, others are followed only if noise alone would show them with this
# probability at most in one window: most such columns are flags, for which (-1, 1) is right.
FALSE_ALARM_BESIDE_ZEROS = 1e-6
# Windows of up to so many octaves are compared where no bin stands out.
MAX_WINDOW = 8
# The logarithm of the prior weight of a window falls by these: for each octave in it after the
# first, for negative numbers, and for each octave that its end is beyond the usual exponents.
WINDOW_PENALTY = 0.3
NEGATIVE_PENALTY = 3.0
DISTANCE_PENALTY = 0.5
USUAL_EXPONENTS = (-3, 14)


class Noise(NamedTuple):
    """The noise in the count of an octave.

    Parameters
    ----------
    std : float
        Its standard deviation.
    is_gaussian : bool
        False for noise of Laplace's law.
    thresholds : ndarray of shape (MAX_WINDOW,)
        What the noise in a sum of 1, 2, 3, ... counts exceeds with the probability
        `FALSE_ALARM_BESIDE_ZEROS`.
    """

    std: float
    is_gaussian: bool
    thresholds: np.ndarray


def likely_ranges(counts, first, last, is_found, noise, *, has_zeros, n_rows):
    """Return the first and the last position that are likely to hold each column's values.

    Parameters
    ----------
    counts : ndarray of shape (n_columns, 2 * n_octaves + 1)
        Noisy, the bin of 0 in the middle.
    first, last : ndarray of int, shape (n_columns,)
        The positions of the outermost octaves that stand out of the noise.
    is_found : ndarray of bool, shape (n_columns,)
        True if one does that is not the bin of 0.
    noise : Noise
    has_zeros : ndarray of bool, shape (n_columns,)
        True if the bin of 0 stands out of the noise.
    n_rows : int
        Public.

    Returns
    -------
    first, last : ndarray of int, shape (n_columns,)
    is_likely : ndarray of bool, shape (n_columns,)
        False where nothing but zeros is likely.
    """
    first = first.copy()
    last = last.copy()
    is_likely = np.ones(len(counts), dtype=bool)
    unseen = np.flatnonzero(~is_found)
    if len(unseen):
        windows = best_windows(counts[unseen], noise, has_zeros[unseen])
        first[unseen], last[unseen], is_likely[unseen] = windows
    for j in np.flatnonzero(is_likely):
        first[j], last[j] = _widened(counts[j], int(first[j]), int(last[j]), noise.std, n_rows)
    return first, last, is_likely


def best_windows(counts, noise, has_zeros):
    """Return the first and the last position of the octaves that most likely hold each column.

    Windows of adjacent octaves, with or without the zeros before them, are compared by how
    unlikely noise alone makes their noisy sums, and by a prior on magnitudes. Where zeros stand
    out of the noise, a window must do so, too.

    Parameters
    ----------
    counts, noise, has_zeros
        As in `likely_ranges`, which says what is returned.
    """
    n_columns = len(counts)
    middle = counts.shape[1] // 2
    first = np.zeros(n_columns, dtype=np.int64)
    last = np.zeros(n_columns, dtype=np.int64)
    best_scores = np.full(n_columns, -np.inf)
    columns = np.arange(n_columns)
    zeros = counts[:, middle, np.newaxis]
    lowest, highest = USUAL_EXPONENTS
    for sign, octaves in ((1, counts[:, middle + 1 :]), (-1, counts[:, :middle][:, ::-1])):
        sums = np.concatenate([np.zeros((n_columns, 1)), np.cumsum(octaves, axis=1)], axis=1)
        for length in range(1, MAX_WINDOW + 1):
            inside = sums[:, length:] - sums[:, :-length]
            # Position k holds magnitudes from 2**(k - 1 - middle / 2) on.
            exponents = np.arange(middle - length + 1) + length - 1 - middle // 2
            distance = np.maximum(exponents - highest, 0) + np.maximum(lowest - exponents, 0)
            prior = -DISTANCE_PENALTY * distance - WINDOW_PENALTY * (length - 1)
            prior -= NEGATIVE_PENALTY * (sign < 0)
            alone = _evidence(inside, length, noise) + prior
            is_hidden = has_zeros[:, np.newaxis] & (inside <= noise.thresholds[length - 1])
            alone[is_hidden] = -np.inf
            with_zeros = _evidence(inside + zeros, length + 1, noise) + prior
            with_zeros[has_zeros] = -np.inf
            for scores, is_from_zero in ((alone, False), (with_zeros, True)):
                start = scores.argmax(axis=1)
                is_better = scores[columns, start] > best_scores
                best_scores = np.where(is_better, scores[columns, start], best_scores)
                inner = np.zeros_like(start) if is_from_zero else start + 1
                outer = start + length
                low, high = (inner, outer) if sign > 0 else (-outer, -inner)
                first = np.where(is_better, low, first)
                last = np.where(is_better, high, last)
    return first, last, np.isfinite(best_scores)


def _evidence(total, n_counts, noise):
    """Return how unlikely noise alone makes sums of counts, on a scale of logarithms."""
    deviations = np.maximum(total, 0.0) / (noise.std * np.sqrt(n_counts))
    evidence = 0.5 * deviations**2
    if noise.is_gaussian:
        return evidence
    # Far from 0 the density of a sum falls as that of one Laplace variable, whose scale is its
    # standard deviation over the root of 2.
    return np.minimum(evidence, deviations * np.sqrt(2.0 * n_counts))


def _widened(counts, first, last, std, n_rows):
    """Return the ends of one column's range after the octaves beside it, and 0, were looked at."""
    middle = len(counts) // 2
    least = MIN_FRACTION * n_rows
    positive = counts[middle + 1 :]
    negative = counts[:middle][::-1]
    shown = least * (1.0 + (std / (PRIOR_FRACTION * n_rows)) ** 2)
    if last > 0:
        last = _outwards(positive, last, shown)
    if first < 0:
        first = -_outwards(negative, -first, shown)
    if first > 0 and _may_hold(counts[middle : middle + first], least, std):
        first = 0
    if last < 0 and _may_hold(counts[middle + last + 1 : middle + 1][::-1], least, std):
        last = 0
    # From 0 on: the other sign, up to the same magnitude.
    if first == 0 < last and _has_sign(negative, last, least, std):
        first = -last
    elif first < 0 == last and _has_sign(positive, -first, least, std):
        last = -first
    return first, last


def _outwards(octaves, end, shown):
    """Return an end moved outwards over octaves whose noisy counts are above some number."""
    while end < len(octaves) and octaves[end] > shown:
        end += 1
    return end


def _may_hold(inner, least, std):
    """Return True unless noisy counts show that what is between 0 and the bounds holds few rows.

    Parameters
    ----------
    inner : ndarray
        The counts of the bin of 0 and of all octaves from there to the bounds.
    least : float
    std : float
    """
    # The octaves next to the bounds, and 0 itself.
    beside = inner if len(inner) <= N_BESIDE else np.append(inner[:1], inner[-N_BESIDE:])
    return beside.sum() + DEVIATIONS_OF_ZERO * std * np.sqrt(len(beside)) > least


def _has_sign(octaves, end, least, std):
    """Return True if noisy counts show values of the other sign, up to a magnitude."""
    beside = octaves[max(0, end - N_BESIDE) : end]
    needed = max(least, DEVIATIONS_OF_SIGN * std * np.sqrt(len(beside)))
    return beside.sum() > needed
