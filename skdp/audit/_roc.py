"""The quality of a membership attack: ROC, area, rates at small error, with their limits."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.metrics import roc_curve

from skdp.audit._bounds import clopper_pearson

__all__ = ["Interval", "area_under_curve", "rate_at", "roc"]


@dataclass(frozen=True)
class Interval:
    """An estimate with the limits of its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self):
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def roc(members, scores):
    """Return false-positive and true-positive rates at every threshold."""
    fpr, tpr, _ = roc_curve(members, scores, drop_intermediate=False)
    return fpr, tpr


def area_under_curve(members, scores, confidence):
    """Return the area under the ROC curve with DeLong's interval.

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
    DeLong's Algorithm", 2014 (the ranks).
    """
    inside, outside = scores[members], scores[~members]
    m, n = len(inside), len(outside)
    ranks = rankdata(np.concatenate([inside, outside]))
    beaten = (ranks[:m] - rankdata(inside)) / n
    beating = 1.0 - (ranks[m:] - rankdata(outside)) / m
    area = float(beaten.mean())
    variance = np.var(beaten, ddof=1) / m + np.var(beating, ddof=1) / n
    half = -float(ndtri((1.0 - confidence) / 2.0)) * math.sqrt(variance)
    return Interval(area, max(0.0, area - half), min(1.0, area + half))


def rate_at(members, scores, false_positive_rate, confidence):
    """Return the true-positive rate at the largest threshold error that is allowed.

    The limits are exact for the rate at that threshold (Clopper and Pearson 1934).
    """
    outside = np.sort(scores[~members])[::-1]
    allowed = math.floor(false_positive_rate * len(outside))
    threshold = outside[allowed] if allowed < len(outside) else -np.inf
    hits, n = int(np.sum(scores[members] > threshold)), int(members.sum())
    return Interval(hits / n, *clopper_pearson(hits, n, confidence))
