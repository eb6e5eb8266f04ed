"""Estimation of columns' ranges from counts so noisy that single bins may be hidden.

Everything here is post-processing of noisy counts and public values, and is not charged. Each count
belongs to an octave, the range from a power of two to the next. Position 0 is the bin of 0,
position k > 0 the k-th octave of positive numbers, and position -k that of negative numbers.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

# The constants below were tuned on the training rows of twenty small tables by mean scores of
# additive models (docs/benchmarks/many_tables.py with --undeclared --rows train).

# An octave next to the range is added to it if this fraction of the rows is expected in the octave.
# Zero is added if the octaves between it and the range may contain this fraction.
MIN_FRACTION = 0.08
# Prior standard deviation, across columns, of the fraction of rows in an octave next to the range.
# Noisy counts are shrunk towards 0 accordingly.
PRIOR_FRACTION = 0.1
# Zero is not added if the counts between it and the range are this many standard deviations below
# the minimum.
DEVIATIONS_OF_ZERO = 1.5
# Number of octaves next to the range, or of the other sign, that may belong to the column.
N_BESIDE = 6
# The other sign is added if its counts are this many standard deviations above 0.
DEVIATIONS_OF_SIGN = 2.0
# Probability with which noise alone may exceed a window's threshold if only zeros are visible above
# the noise. It is small because most such columns are flags, for which (-1, 1) is right.
FALSE_ALARM_BESIDE_ZEROS = 1e-6
# Maximum number of octaves in the windows that are compared if no bin is visible.
MAX_WINDOW = 8
# Number of columns whose windows are compared at once; more columns would need more memory.
COLUMNS_PER_BLOCK = 64
# Decrease in a window's log prior weight: for each octave after the first, for negative numbers,
# and for each octave by which its end is outside the typical exponents.
WINDOW_PENALTY = 0.3
NEGATIVE_PENALTY = 3.0
DISTANCE_PENALTY = 0.5
TYPICAL_EXPONENTS = (-3, 14)


class Noise(NamedTuple):
    """Distribution of the noise in the count of an octave.

    Parameters
    ----------
    std : float
        Standard deviation.
    is_gaussian : bool
        False for Laplace noise.
    thresholds : ndarray of shape (MAX_WINDOW,)
        Bounds that the noise in a sum of 1, 2, 3, ... counts exceeds with probability
        `FALSE_ALARM_BESIDE_ZEROS`.
    """

    std: float
    is_gaussian: bool
    thresholds: np.ndarray


def likely_ranges(counts, first, last, is_found, noise, *, has_zeros, n_rows):
    """Return the first and the last position of the likely range of each column.

    Parameters
    ----------
    counts : ndarray of shape (n_columns, 2 * n_octaves + 1)
        Noisy counts, with the bin of 0 in the middle.
    first, last : ndarray of int, shape (n_columns,)
        Positions of the outermost octaves that are visible above the noise.
    is_found : ndarray of bool, shape (n_columns,)
        True if an octave other than the bin of 0 is visible.
    noise : Noise
    has_zeros : ndarray of bool, shape (n_columns,)
        True if the bin of 0 is visible.
    n_rows : int
        Public number of rows.

    Returns
    -------
    first, last : ndarray of int, shape (n_columns,)
    is_likely : ndarray of bool, shape (n_columns,)
        False if only zeros are likely.
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
    """Return, for each column, the first and last position of the most likely window of octaves.

    Windows of adjacent octaves, with or without the zeros before them, are compared by their
    evidence against pure noise and by a prior on magnitudes. If zeros are visible above the noise,
    a window must be visible, too.

    Parameters
    ----------
    counts, noise, has_zeros
        Parameters of `likely_ranges`, which has the same return values.
    """
    n_columns = len(counts)
    first = np.empty(n_columns, dtype=np.int64)
    last = np.empty(n_columns, dtype=np.int64)
    is_likely = np.empty(n_columns, dtype=bool)
    for start in range(0, n_columns, COLUMNS_PER_BLOCK):
        block = slice(start, start + COLUMNS_PER_BLOCK)
        windows = _best_windows(counts[block], noise, has_zeros[block])
        first[block], last[block], is_likely[block] = windows
    return first, last, is_likely


def _best_windows(counts, noise, has_zeros):
    """Return the most likely windows of a block of columns."""
    n_columns = len(counts)
    middle = counts.shape[1] // 2
    lengths, ends, prior, is_too_long = _windows(middle)
    # Octaves of either sign are summed from the smallest magnitude on.
    sums = np.zeros((n_columns, 2, middle + 1))
    sums[:, 0, 1:] = np.cumsum(counts[:, middle + 1 :], axis=1)
    sums[:, 1, 1:] = np.cumsum(counts[:, :middle][:, ::-1], axis=1)
    inside = sums[:, :, ends] - sums[:, :, np.newaxis, :-1]
    zeros = counts[:, middle].reshape(-1, 1, 1, 1)
    # Scores have five axes: column, sign, length, without or with the zeros, and first octave.
    totals = np.stack([inside, inside + zeros], axis=3)
    scores = _evidence(totals, np.add.outer(lengths, [0, 1])[:, :, np.newaxis], noise) + prior
    is_hidden = has_zeros.reshape(-1, 1, 1, 1) & (inside <= noise.thresholds[:, np.newaxis])
    scores[:, :, :, 0][is_hidden] = -np.inf
    scores[has_zeros, :, :, 1] = -np.inf
    scores[..., is_too_long] = -np.inf
    # The first of several windows with equal scores is chosen.
    starts = scores.argmax(axis=-1)
    best_scores = np.take_along_axis(scores, starts[..., np.newaxis], axis=-1)
    best_scores = np.fmax(best_scores.reshape(n_columns, -1), -np.inf)
    columns = np.arange(n_columns)
    best = best_scores.argmax(axis=1)
    best_scores = best_scores[columns, best]
    sign, length, is_from_zero = np.unravel_index(best, starts.shape[1:])
    start = starts[columns, sign, length, is_from_zero]
    inner = np.where(is_from_zero, 0, start + 1)
    outer = start + lengths[length]
    low = np.where(sign, -outer, inner)
    high = np.where(sign, -inner, outer)
    is_any = best_scores > -np.inf
    return np.where(is_any, low, 0), np.where(is_any, high, 0), np.isfinite(best_scores)


@lru_cache(maxsize=8)
def _windows(n_octaves):
    """Return the lengths of windows, and arrays for all lengths and first octaves.

    Returns
    -------
    lengths : ndarray of shape (n_lengths,)
    ends : ndarray of shape (n_lengths, n_octaves)
        The octave after the window.
    prior : ndarray of shape (2, n_lengths, 1, n_octaves)
        Log prior weights of windows of positive and of negative numbers.
    is_too_long : ndarray of shape (n_lengths, 2, n_octaves)
        True if a window would continue beyond the last octave.
    """
    lengths = np.arange(1, MAX_WINDOW + 1)
    ends = np.add.outer(lengths, np.arange(n_octaves))
    # The smallest magnitude at position k is 2**(k - 1 - n_octaves / 2).
    exponents = ends - 1 - n_octaves // 2
    lowest, highest = TYPICAL_EXPONENTS
    distance = np.maximum(exponents - highest, 0) + np.maximum(lowest - exponents, 0)
    prior = -DISTANCE_PENALTY * distance - WINDOW_PENALTY * (lengths[:, np.newaxis] - 1)
    prior = np.stack([prior, prior - NEGATIVE_PENALTY])[:, :, np.newaxis]
    is_too_long = np.stack([ends > n_octaves] * 2, axis=1)
    return lengths, np.minimum(ends, n_octaves), prior, is_too_long


def _evidence(total, n_counts, noise):
    """Return the log likelihood ratio of sums of counts against pure noise."""
    deviations = np.maximum(total, 0.0) / (noise.std * np.sqrt(n_counts))
    evidence = 0.5 * deviations**2
    if noise.is_gaussian:
        return evidence
    # Far from 0, the density of a sum decreases like that of one Laplace variable. Its scale is the
    # standard deviation divided by sqrt(2).
    return np.minimum(evidence, deviations * np.sqrt(2.0 * n_counts))


def _widened(counts, first, last, std, n_rows):
    """Return the range of one column, extended by likely octaves, 0 and the other sign.

    Octaves are numbered from the bin of 0, on either side. `counts` are noisy, with deviation
    `std`.
    """
    middle = len(counts) // 2
    min_count = MIN_FRACTION * n_rows
    positive = counts[middle + 1 :]
    negative = counts[:middle][::-1]
    noisy_min_count = min_count * (1.0 + (std / (PRIOR_FRACTION * n_rows)) ** 2)
    if last > 0:
        last = _extended(positive, last, noisy_min_count)
    if first < 0:
        first = -_extended(negative, -first, noisy_min_count)
    if first > 0 and _may_hold(counts[middle : middle + first], min_count, std):
        first = 0
    if last < 0 and _may_hold(counts[middle + last + 1 : middle + 1][::-1], min_count, std):
        last = 0
    # A range that starts at 0 is extended to the other sign, up to the same magnitude.
    if first == 0 < last and _has_sign(negative, last, min_count, std):
        first = -last
    elif first < 0 == last and _has_sign(positive, -first, min_count, std):
        last = -first
    return first, last


def _extended(octaves, end, min_count):
    """Return the end of a range to which octaves with noisy counts above a minimum were added."""
    while end < len(octaves) and octaves[end] > min_count:
        end += 1
    return end


def _may_hold(inner, min_count, std):
    """Return True unless noisy counts show that few rows are between 0 and the range.

    Parameters
    ----------
    inner : ndarray
        Counts of the bin of 0, and of all octaves from there to the range.
    min_count : float
        Number of rows for which the octaves would be added.
    std : float
        Standard deviation of the noise in a count.
    """
    # The octaves next to the range, and 0 itself.
    if len(inner) <= N_BESIDE:
        neighbors = inner
    else:
        neighbors = np.append(inner[:1], inner[-N_BESIDE:])
    return neighbors.sum() + DEVIATIONS_OF_ZERO * std * np.sqrt(len(neighbors)) > min_count


def _has_sign(octaves, end, min_count, std):
    """Return True if noisy counts show values of the other sign, up to the magnitude of an end."""
    neighbors = octaves[max(0, end - N_BESIDE) : end]
    threshold = max(min_count, DEVIATIONS_OF_SIGN * std * np.sqrt(len(neighbors)))
    return neighbors.sum() > threshold
