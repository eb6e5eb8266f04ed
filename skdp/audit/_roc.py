"""The quality of a membership attack: ROC, area, rates at small error, with their limits."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, ndtri
from scipy.stats import rankdata
from sklearn.metrics import roc_curve

from skdp.audit._bounds import clopper_pearson


@dataclass(frozen=True)
class Interval:
    """An estimate with the limits of its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self):
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def area_under_curve(members, scores, confidence):
    """Return the area under the ROC curve with DeLong's interval on the scale of log-odds.

    Near 0 and 1, where an overfitted model's area is, the plain interval is too short, and of no
    length if all members beat all others. There the limit is exact for independent scores: k pairs
    without a row in common are then all right, with a probability of at most area^k.

    Parameters
    ----------
    members : ndarray of bool, shape (n,)
    scores : ndarray of float, shape (n,)
    confidence : float

    Returns
    -------
    Interval

    References
    ----------
    E. DeLong, D. DeLong, D. Clarke-Pearson, "Comparing the Areas under Two or More Correlated
    Receiver Operating Characteristic Curves", 1988; X. Sun, W. Xu, "Fast Implementation of
    DeLong's Algorithm", 2014 (the ranks); M. Pepe, "The Statistical Evaluation of Medical Tests
    for Classification and Prediction", 2003 (the log-odds).
    """
    inside, outside = scores[members], scores[~members]
    m, n = len(inside), len(outside)
    ranks = rankdata(np.concatenate([inside, outside]))
    beaten = (ranks[:m] - rankdata(inside)) / n
    beating = 1.0 - (ranks[m:] - rankdata(outside)) / m
    area, error = float(beaten.mean()), (1.0 - confidence) / 2.0
    if area in (0.0, 1.0):
        far = error ** (1.0 / min(m, n))
        return Interval(area, far, 1.0) if area else Interval(area, 0.0, 1.0 - far)
    if min(m, n) < 2:
        return Interval(area, 0.0, 1.0)
    variance = np.var(beaten, ddof=1) / m + np.var(beating, ddof=1) / n
    half = -float(ndtri(error)) * math.sqrt(variance) / (area * (1.0 - area))
    low, high = expit(logit(area) - half), expit(logit(area) + half)
    return Interval(area, float(low), float(high))


def rate_at(members, scores, false_positive_rate, confidence):
    """Return the true-positive rate at the largest threshold error that is allowed.

    The limits are exact for the rate at that threshold (Clopper and Pearson 1934).
    """
    outside = np.sort(scores[~members])[::-1]
    allowed = math.floor(false_positive_rate * len(outside))
    threshold = outside[allowed] if allowed < len(outside) else -np.inf
    hits, n = int(np.sum(scores[members] > threshold)), int(members.sum())
    return Interval(hits / n, *clopper_pearson(hits, n, confidence))


def attack_accuracy(members, scores, confidence):
    """Return how often a threshold tells members from others, both weighted equally.

    Each half of the rows is judged with the threshold that is best on the other half: the best
    threshold on the rows that it is judged on would beat guessing on pure noise.
    """
    half = np.zeros(len(members), dtype=bool)
    half[np.flatnonzero(members)[::2]] = half[np.flatnonzero(~members)[::2]] = True
    right = np.empty(len(members), dtype=bool)
    for judged in (half, ~half):
        others = ~judged
        if not 0 < members[others].sum() < others.sum():
            return Interval(0.5, 0.0, 1.0)
        fpr, tpr, thresholds = roc_curve(members[others], scores[others])
        threshold = thresholds[np.argmax(tpr - fpr)]
        right[judged] = (scores[judged] >= threshold) == members[judged]
    rates = right[members].mean(), right[~members].mean()
    sizes = members.sum(), (~members).sum()
    quantile = -float(ndtri((1.0 - confidence) / 2.0))
    widths = [_half_widths(r, n, quantile) for r, n in zip(rates, sizes, strict=True)]
    below, above = (math.hypot(*side) / 2.0 for side in zip(*widths, strict=True))
    value = float(sum(rates)) / 2.0
    return Interval(value, max(0.0, value - below), min(1.0, value + above))


def _half_widths(rate, n, quantile):
    """Return how far the limits of a rate are below and above it.

    They are the normal ones, or Wilson's (1927) where the rate is 0 or 1 and the normal ones have
    no width; independent parts' widths add as squares (Newcombe 1998).
    """
    if 0.0 < rate < 1.0:
        half = quantile * math.sqrt(rate * (1.0 - rate) / n)
        return half, half
    far = quantile**2 / (n + quantile**2)
    return (far, 0.0) if rate else (0.0, far)
