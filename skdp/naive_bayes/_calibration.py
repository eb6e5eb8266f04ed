r"""Calibration of the scores for two classes from one noisy histogram of the scores.

Columns are seldom independent, so the evidence :math:`e` of a row, a sum of log-ratios over the
columns, is too large. Probabilities are :math:`\sigma(\operatorname{logit} \pi + a + b e)`, where
:math:`\pi` is the released frequency of the second class (Platt 1999). The evidence of the rows of
each class is counted in a few bins, and noise is added to the counts. Everything after that is
post-processing: for each slope :math:`b` of a grid the shift :math:`a` makes the mean probability
equal to :math:`\pi`, and slopes are averaged by their likelihood. The derivation is in
``docs/theory/naive_bayes.md``.
"""

import math

import numpy as np
from scipy.special import expit, logit, ndtri, softmax

# Minimum and maximum number of bins for the evidence, and the average count per bin in standard
# deviations of the noise. With 6 to 16 bins, the mean log loss on the training rows of ten tables
# (docs/benchmarks/many_tables.py) differed by at most .004.
MIN_BINS = 8
MAX_BINS = 64
BIN_COUNT_STDS = 30.0
# Bins have equal probability under a normal distribution whose standard deviation is this multiple
# of the one for independent columns. Columns are seldom independent, and tails matter most. On the
# same rows, results with 1.5 and 2 differed by at most .003.
STD_FACTOR = 2.0
# Candidate slopes. The smallest slope is close to the best slope for 85 strongly correlated columns
# (Caravan: .05).
SLOPES = 2.0 ** np.arange(-6.0, 0.5, 0.5)
# Bound on the magnitude of the shift, in log-odds, and the number of bisections that find it.
MAX_SHIFT = 64.0
N_BISECTIONS = 50
# Lower bound on the number of rows in a bin, relative to the average bin.
MIN_RELATIVE_COUNT = 1e-3


def n_evidence_bins(n_rows, deviation):
    """Return the number of bins of the evidence, from public values.

    Parameters
    ----------
    n_rows : int
        Public number of rows, or of persons.
    deviation : float
        Standard deviation of the noise in a count.
    """
    return int(np.clip(n_rows / (BIN_COUNT_STDS * deviation), MIN_BINS, MAX_BINS))


def evidence_bins(values, counts, n_bins):
    """Return the inner edges of the bins of the evidence, and the median evidence of each bin.

    Parameters
    ----------
    values : list of ndarray of shape (n_cells,)
        Released evidence of the cells of each column.
    counts : list of ndarray of shape (n_cells,)
        Released counts of the cells.
    n_bins : int
    """
    mean = 0.0
    variance = 0.0
    for column_values, column_counts in zip(values, counts, strict=True):
        frequencies = column_counts / max(column_counts.sum(), 1e-300)
        column_mean = float(frequencies @ column_values)
        mean += column_mean
        variance += float(frequencies @ (column_values - column_mean) ** 2)
    std = STD_FACTOR * math.sqrt(variance)
    quantiles = ndtri(np.arange(1, 2 * n_bins) / (2 * n_bins))
    return mean + std * quantiles[1::2], mean + std * quantiles[::2]


def calibrate(noisy, evidence, prior, deviation, n_rows):
    """Return the shift and the slope of the evidence.

    Parameters
    ----------
    noisy : ndarray of shape (2, n_bins)
        Noisy counts of the rows of each class in the bins of the evidence.
    evidence : ndarray of shape (n_bins,)
        Typical evidence of each bin.
    prior : float
        Released frequency of the second class.
    deviation : float
        Standard deviation of the noise in a count.
    n_rows : int
        Public number of rows, or of persons.

    Returns
    -------
    shift : float
        Shift in log-odds.
    slope : float
        Weighted mean of `SLOPES`.
    """
    counts = _shrunk_counts(noisy.sum(axis=0), 2.0 * deviation**2, n_rows)
    log_odds = logit(prior)
    shifts = _shifts(SLOPES, counts, evidence, prior)
    p = expit(log_odds + shifts[:, np.newaxis] + SLOPES[:, np.newaxis] * evidence)
    # Excess of the second class in a bin over its probability, and the variance of this excess,
    # from sampling and from the noise of both counts.
    excess = (1.0 - p) * noisy[1] - p * noisy[0]
    variance = counts * p * (1.0 - p) + deviation**2 * ((1.0 - p) ** 2 + p**2)
    log_likelihood = -0.5 * np.sum(excess**2 / variance + np.log(variance), axis=1)
    slope = softmax(log_likelihood) @ SLOPES
    shift = _shifts(np.array([slope]), counts, evidence, prior)[0]
    return float(shift), float(slope)


def _shrunk_counts(noisy, variance, n_rows):
    """Return the number of rows in each bin: noisy counts, shrunk toward equal counts.

    This is the estimator of James and Stein.
    """
    equal = n_rows / len(noisy)
    excess = noisy - equal
    squares = max(float(excess @ excess), 1e-300)
    shrinkage_factor = max(0.0, 1.0 - len(noisy) * variance / squares)
    counts = np.maximum(equal + shrinkage_factor * excess, MIN_RELATIVE_COUNT * equal)
    return counts * (n_rows / counts.sum())


def _shifts(slopes, counts, evidence, prior):
    """Return, for each slope, the shift at which the mean probability equals the prior."""
    low = np.full(len(slopes), -MAX_SHIFT)
    high = np.full(len(slopes), MAX_SHIFT)
    for _ in range(N_BISECTIONS):
        middle = 0.5 * (low + high)
        scores = logit(prior) + middle[:, np.newaxis] + slopes[:, np.newaxis] * evidence
        is_above = (counts * expit(scores)).sum(axis=1) > prior * counts.sum()
        low = np.where(is_above, low, middle)
        high = np.where(is_above, middle, high)
    return 0.5 * (low + high)
