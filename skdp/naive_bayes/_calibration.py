r"""Calibration of the scores of two classes by one noisy histogram of them.

Columns are seldom independent, so that the evidence :math:`e` of a row, a sum over columns of log
ratios, is too large. Probabilities are :math:`\sigma(\operatorname{logit} \pi + a + b e)`, with
:math:`\pi` the released frequency of the second class (Platt 1999). The evidence of the rows of
each class is counted in a few bins, and noise is added to the counts. Everything after that is
post-processing: each slope :math:`b` of a grid has the shift :math:`a` with which the mean
probability is :math:`\pi`, and slopes are averaged by their likelihood. The derivation is in
``docs/naive_bayes.md``.
"""

import math

import numpy as np
from scipy.special import expit, logit, ndtri, softmax

# The bins of the evidence: at least the first, at most the second number, and so many that a bin of
# average size holds so many standard deviations of the noise. With 6 to 16 bins the mean log loss
# on the training rows of ten tables (docs/benchmarks/many_tables.py) was the same within .004.
FEWEST_BINS = 8
MOST_BINS = 64
BIN_DEVIATIONS = 30.0
# Bins have equal probability under a normal distribution of so many times the standard deviation
# that the evidence has if columns are independent; they seldom are, and tails matter most. On the
# same rows, 1.5 and 2 differed by .003 at most.
WIDTH = 2.0
# The slopes that are compared. The smallest is about the best one for 85 columns of which many say
# the same (Caravan: .05).
SLOPES = 2.0 ** np.arange(-6.0, 0.5, 0.5)
# Shifts are sought within this distance from 0, in log odds, by this many bisections.
LARGEST_SHIFT = 64.0
BISECTIONS = 50
# A bin is taken to hold at least this fraction of the rows of an average one.
LEAST_MASS = 1e-3


def n_evidence_bins(n_rows, deviation):
    """Return the number of bins of the evidence, from public numbers.

    Parameters
    ----------
    n_rows : int
        The public number of rows, or of persons.
    deviation : float
        The standard deviation of the noise of a count.
    """
    return int(np.clip(n_rows / (BIN_DEVIATIONS * deviation), FEWEST_BINS, MOST_BINS))


def evidence_bins(values, counts, n_bins):
    """Return the edges between the bins of the evidence, and a typical evidence of each bin.

    Parameters
    ----------
    values : list of ndarray of shape (n_cells,)
        The evidence of each column's cells, as released.
    counts : list of ndarray of shape (n_cells,)
        The released counts of the cells.
    n_bins : int
    """
    mean = variance = 0.0
    for value, count in zip(values, counts, strict=True):
        fractions = count / max(count.sum(), 1e-300)
        own = float(fractions @ value)
        mean += own
        variance += float(fractions @ (value - own) ** 2)
    spread = WIDTH * math.sqrt(variance)
    quantiles = ndtri(np.arange(1, 2 * n_bins) / (2 * n_bins))
    return mean + spread * quantiles[1::2], mean + spread * quantiles[::2]


def calibrated(noisy, evidence, prior, deviation, n_rows):
    """Return the shift and the slope of the evidence.

    Parameters
    ----------
    noisy : ndarray of shape (2, n_bins)
        Noisy counts of the rows of each class by bins of their evidence.
    evidence : ndarray of shape (n_bins,)
        A typical evidence of each bin.
    prior : float
        The released frequency of the second class.
    deviation : float
        The standard deviation of the noise of a count.
    n_rows : int
        The public number of rows, or of persons.

    Returns
    -------
    shift : float
        In log odds.
    slope : float
        Between the smallest and the largest of `SLOPES`.
    """
    masses = _masses(noisy.sum(axis=0), 2.0 * deviation**2, n_rows)
    log_odds = logit(prior)
    shifts = _shifts(SLOPES, masses, evidence, prior)
    p = expit(log_odds + shifts[:, np.newaxis] + SLOPES[:, np.newaxis] * evidence)
    # What a bin has more of the second class than the probability says, and the variance of that,
    # from chance and from the noise of both counts.
    excess = (1.0 - p) * noisy[1] - p * noisy[0]
    variance = masses * p * (1.0 - p) + deviation**2 * ((1.0 - p) ** 2 + p**2)
    likelihood = -0.5 * np.sum(excess**2 / variance + np.log(variance), axis=1)
    slope = softmax(likelihood) @ SLOPES
    return float(_shifts(np.array([slope]), masses, evidence, prior)[0]), float(slope)


def _masses(noisy, variance, n_rows):
    """Return how many rows bins hold: noisy counts, moved to equal ones as far as noise asks.

    It is the estimator of James and Stein about bins of equal size.
    """
    equal = n_rows / len(noisy)
    excess = noisy - equal
    kept = max(0.0, 1.0 - len(noisy) * variance / max(float(excess @ excess), 1e-300))
    masses = np.maximum(equal + kept * excess, LEAST_MASS * equal)
    return masses * (n_rows / masses.sum())


def _shifts(slopes, masses, evidence, prior):
    """Return, for each slope, the shift with which the mean probability is the prior."""
    low, high = np.full(len(slopes), -LARGEST_SHIFT), np.full(len(slopes), LARGEST_SHIFT)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        scores = logit(prior) + middle[:, np.newaxis] + slopes[:, np.newaxis] * evidence
        is_above = (masses * expit(scores)).sum(axis=1) > prior * masses.sum()
        low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
    return 0.5 * (low + high)
