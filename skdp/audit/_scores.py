r"""Membership scores of rows from statistics of a target and shadow models, and their quality.

The scores take the target's statistic of each row, the shadows' statistics, an array of shape
(n_shadow, n_rows), and which rows each shadow was fitted to, and are one a row, the larger the
likelier a member.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, ndtri
from scipy.stats import binom, multivariate_normal, norm, rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skdp.audit._bounds import clopper_pearson
from skdp.utils._values import FrozenValue

LEAST_DEVIATION = 1e-3


def lira(target, shadows, fitted, *, offline=False, variance="row"):
    """Return the likelihood ratio of two Gaussians, or how unlikely the outsiders' one is.

    Parameters
    ----------
    target : ndarray of shape (n_rows,) or (n_releases, n_rows)
        Of several releases it is the ratio of Gaussians of so many dimensions, whose covariances
        all rows share: what noise and other rows do to all releases alike cancels.
    shadows : ndarray of shape (n_shadow, n_rows) or (n_shadow, n_releases, n_rows)
    fitted : ndarray of bool, shape (n_shadow, n_rows)
    offline : bool, default=False
        Use the shadows that were not fitted to a row alone; of one release.
    variance : {"row", "global"}, default="row"
        Whether each row has variances of its own, or all rows share theirs, which is better
        with few shadows.

    Returns
    -------
    ndarray of shape (n_rows,)

    References
    ----------
    N. Carlini et al., "Membership Inference Attacks From First Principles", 2022, sections V
    and VI.
    """
    if target.ndim == 2:
        return _joint_ratio(target, shadows, fitted)
    mean_out, deviation_out = _gaussian(shadows, ~fitted, variance)
    if offline:
        return norm.logcdf(target, mean_out, deviation_out)
    inside = norm.logpdf(target, *_gaussian(shadows, fitted, variance))
    return inside - norm.logpdf(target, mean_out, deviation_out)


def rmia(target, shadows, fitted, *, offline=False, gamma=2.0, offline_scale=0.3):
    r"""Return how many other rows the row's likelihood ratio beats by a factor.

    The ratio of a row is its probability under the target over its mean under the shadows;
    offline the mean is :math:`\frac{1}{2}((1 + a) p_{out} + 1 - a)` (section 3.1).

    Parameters
    ----------
    target, shadows, fitted, offline
        As in `lira`; statistics are log-odds.
    gamma : float, default=2.0
        The factor.
    offline_scale : float, default=0.3
        The a of the offline mean.

    Returns
    -------
    ndarray of shape (n_rows,)

    References
    ----------
    S. Zarifzadeh, P. Liu, R. Shokri, "Low-Cost High-Power Membership Inference Attacks", 2024.
    """
    p = expit(shadows)
    out = mean_of(p, ~fitted)
    inside = offline_scale * out + 1.0 - offline_scale if offline else mean_of(p, fitted)
    prior = 0.5 * (inside + out)
    ratio = expit(target) / np.maximum(prior, np.finfo(float).tiny)
    beaten = np.searchsorted(np.sort(ratio), ratio / gamma, side="right") / len(ratio)
    # Rows that beat equally many others are told apart by their ratio.
    return beaten + 1e-6 * np.argsort(np.argsort(ratio)) / len(ratio)


def shadow_classifier(target, shadows, fitted, labels):
    """Return the verdict of a classifier that learned on shadows what membership looks like.

    One logistic regression for each label, on the statistic and its square.

    Parameters
    ----------
    target, shadows, fitted
        As in `lira`.
    labels : ndarray of shape (n_rows,)
        One attack is learned for each.

    Returns
    -------
    ndarray of shape (n_rows,)

    References
    ----------
    R. Shokri, M. Stronati, C. Song, V. Shmatikov, "Membership Inference Attacks Against Machine
    Learning Models", 2017.
    """
    scores = np.zeros(len(target))
    for label in np.unique(labels):
        rows = labels == label
        known = shadows[:, rows].ravel()
        membership = fitted[:, rows].ravel()
        if 0 < membership.sum() < len(membership):
            attack = make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression())
            attack.fit(known[:, None], membership)
            scores[rows] = attack.decision_function(target[rows, None])
    return scores


def mean_of(values, mask):
    """Return the means of values over the shadows of a mask, row by row."""
    return np.where(mask, values, 0.0).sum(axis=0) / np.maximum(mask.sum(axis=0), 1)


def _joint_ratio(target, shadows, fitted):
    """Return the likelihood ratio of several releases together.

    How far a row's presence moves its own statistics is drawn towards the mean over rows, by the
    share of the moves' variance that so few shadows leave to chance (James and Stein 1961).
    """
    masks = fitted[:, None], ~fitted[:, None]
    means = [mean_of(shadows, mask) for mask in masks]
    gaps = [np.where(mask, shadows - mean, 0.0) for mask, mean in zip(masks, means, strict=True)]
    laws = [np.einsum("str,sur->tu", each, each) / fitted.sum() for each in gaps]
    moves = np.subtract(*means)
    common = moves.mean(axis=1, keepdims=True)
    chance = sum(map(np.trace, laws)) / (len(shadows) / 2)
    kept = max(0.0, 1.0 - chance / max(np.var(moves, axis=1).sum(), LEAST_DEVIATION**2))
    half = (common + kept * (moves - common)) / 2.0
    rest = target - sum(means) / 2.0
    least = LEAST_DEVIATION**2 * np.eye(len(target))
    inside, outside = (multivariate_normal(cov=law + least) for law in laws)
    return inside.logpdf((rest - half).T) - outside.logpdf((rest + half).T)


def _gaussian(shadows, mask, variance):
    mean = mean_of(shadows, mask)
    squares = np.where(mask, (shadows - mean) ** 2, 0.0)
    if variance == "global":
        return mean, max(np.sqrt(squares.sum() / max(mask.sum(), 1)), LEAST_DEVIATION)
    deviation = np.sqrt(squares.sum(axis=0) / np.maximum(mask.sum(axis=0) - 1, 1))
    return mean, np.maximum(deviation, LEAST_DEVIATION)


@dataclass(frozen=True)
class Interval(FrozenValue):
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
    inside = scores[members]
    outside = scores[~members]
    m = len(inside)
    n = len(outside)
    ranks = rankdata(np.concatenate([inside, outside]))
    beaten = (ranks[:m] - rankdata(inside)) / n
    beating = 1.0 - (ranks[m:] - rankdata(outside)) / m
    area = float(beaten.mean())
    error = (1.0 - confidence) / 2.0
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
    """Return the true-positive rate at a false-positive rate, with limits.

    The value is that of the lowest threshold that the rate allows on these outsiders. Their rate
    above a threshold is not the law's: of 20 outsiders the highest one has 1 in 21 above it in
    expectation. So the limits are of two other thresholds, whose rates under the law are
    below and above the one asked for with half of the error (binomial); the other half is that of
    exact limits there (Clopper and Pearson 1934). The lower limit is 0 where there
    are too few outsiders for such a threshold: at 95 % below 437 for a rate of 1 %.
    """
    outside = np.concatenate([[np.inf], np.sort(scores[~members])[::-1], [-np.inf]])
    inside = scores[members]
    m = len(outside) - 2
    alarms = binom(m, false_positive_rate)
    share = (1.0 - confidence) / 4.0
    thresholds = outside[[int(alarms.ppf(share)), int(alarms.isf(share)) + 1]]
    hits = np.array([np.sum(inside > thresholds[0]), np.sum(inside >= thresholds[1])])
    low, high = clopper_pearson(hits, len(inside), (1.0 + confidence) / 2.0)
    threshold = outside[math.floor(false_positive_rate * m) + 1]
    return Interval(float(np.mean(inside > threshold)), float(low[0]), float(high[1]))


def attack_accuracy(members, scores, confidence):
    """Return how often a threshold tells members from others, both weighted equally.

    Each half of the rows is judged with the threshold that is best on the other half: the best
    threshold on the rows that it is judged on would beat guessing on pure noise. The limits are
    those of two independent rates together, whose distances add as squares (Newcombe 1998), each
    by exact limits (Clopper and Pearson 1934).
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
    value = 0.0
    squares = np.zeros(2)
    for hits in (right[members], right[~members]):
        rate = hits.mean()
        limits = clopper_pearson(int(hits.sum()), len(hits), confidence)
        value += rate / 2.0
        squares += np.square(rate - limits)
    below, above = np.sqrt(squares) / 2.0
    return Interval(float(value), max(0.0, value - below), min(1.0, value + above))
