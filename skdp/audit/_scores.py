r"""Membership scores from statistics of a target and of shadow models, and their quality.

Each function receives the statistic of each row under the target, the statistics under the shadow
models, of shape (n_shadow, n_rows), and a mask of the rows that each shadow model was fitted to. It
returns one score per row; members tend to have larger scores.
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

# Lower bound on standard deviations, to avoid division by 0.
MIN_STD = 1e-3


def lira(target, shadows, fitted, *, offline=False, variance="row"):
    """Return the likelihood ratio of two Gaussians or, offline, the tail of that for non-members.

    Parameters
    ----------
    target : ndarray of shape (n_rows,) or (n_releases, n_rows)
        With several releases, the Gaussians have n_releases dimensions, and all rows share their
        covariances. Effects of noise and of other rows that are common to all releases then cancel.
    shadows : ndarray of shape (n_shadow, n_rows) or (n_shadow, n_releases, n_rows)
    fitted : ndarray of bool, shape (n_shadow, n_rows)
    offline : bool, default=False
        Use only the shadow models that were not fitted to the row. It requires a single release.
    variance : {"row", "global"}, default="row"
        One variance per row, or one for all rows; the latter is better with few shadow models.

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
    mean_out, std_out = _gaussian(shadows, ~fitted, variance)
    if offline:
        return norm.logcdf(target, mean_out, std_out)
    inside = norm.logpdf(target, *_gaussian(shadows, fitted, variance))
    return inside - norm.logpdf(target, mean_out, std_out)


def rmia(target, shadows, fitted, *, offline=False, gamma=2.0, offline_scale=0.3):
    r"""Return the fraction of rows whose likelihood ratio is smaller by at least a factor.

    The ratio of a row is its probability under the target divided by its mean probability under
    the shadow models. Offline, the mean is :math:`\frac{1}{2}((1 + a) p_{out} + 1 - a)` (section
    3.1).

    Parameters
    ----------
    target, shadows, fitted, offline
        As in `lira`; statistics are log-odds.
    gamma : float, default=2.0
        The factor between two ratios.
    offline_scale : float, default=0.3
        Constant a of the offline mean.

    Returns
    -------
    ndarray of shape (n_rows,)

    References
    ----------
    S. Zarifzadeh, P. Liu, R. Shokri, "Low-Cost High-Power Membership Inference Attacks", 2024.
    """
    p = expit(shadows)
    out = mean_of(p, ~fitted)
    if offline:
        inside = offline_scale * out + 1.0 - offline_scale
    else:
        inside = mean_of(p, fitted)
    prior = 0.5 * (inside + out)
    ratio = expit(target) / np.maximum(prior, np.finfo(float).tiny)
    fraction_below = np.searchsorted(np.sort(ratio), ratio / gamma, side="right") / len(ratio)
    # The ratio breaks ties.
    return fraction_below + 1e-6 * np.argsort(np.argsort(ratio)) / len(ratio)


def shadow_classifier(target, shadows, fitted, labels):
    """Return the scores of a membership classifier that is fitted to shadow models.

    There is one logistic regression per label, on the statistic and its square.

    Parameters
    ----------
    target, shadows, fitted
        As in `lira`.
    labels : ndarray of shape (n_rows,)
        Label of each row; one classifier is fitted per label.

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
        statistics = shadows[:, rows].ravel()
        membership = fitted[:, rows].ravel()
        if 0 < membership.sum() < len(membership):
            attack = make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression())
            attack.fit(statistics[:, None], membership)
            scores[rows] = attack.decision_function(target[rows, None])
    return scores


def mean_of(values, mask):
    """Return the mean of each row's values over the shadow models in a mask."""
    return np.where(mask, values, 0.0).sum(axis=0) / np.maximum(mask.sum(axis=0), 1)


def _joint_ratio(target, shadows, fitted):
    """Return the joint likelihood ratio of several releases.

    The effect of a row's presence on its statistics is shrunk towards the mean effect over rows,
    by the fraction of the effects' variance that is sampling noise (James and Stein 1961).
    """
    means = []
    covariances = []
    for mask in (fitted[:, None], ~fitted[:, None]):
        mean = mean_of(shadows, mask)
        residuals = np.where(mask, shadows - mean, 0.0)
        means.append(mean)
        covariances.append(np.einsum("str,sur->tu", residuals, residuals) / fitted.sum())
    effects = means[0] - means[1]
    mean_effect = effects.mean(axis=1, keepdims=True)
    sampling_variance = sum(map(np.trace, covariances)) / (len(shadows) / 2)
    effect_variance = max(np.var(effects, axis=1).sum(), MIN_STD**2)
    shrinkage_factor = max(0.0, 1.0 - sampling_variance / effect_variance)
    half_effect = (mean_effect + shrinkage_factor * (effects - mean_effect)) / 2.0
    residual = target - sum(means) / 2.0
    floor = MIN_STD**2 * np.eye(len(target))
    inside, outside = (multivariate_normal(cov=cov + floor) for cov in covariances)
    return inside.logpdf((residual - half_effect).T) - outside.logpdf((residual + half_effect).T)


def _gaussian(shadows, mask, variance):
    """Return the mean and standard deviation of each row's statistic over the models in a mask."""
    mean = mean_of(shadows, mask)
    squares = np.where(mask, (shadows - mean) ** 2, 0.0)
    if variance == "global":
        return mean, max(np.sqrt(squares.sum() / max(mask.sum(), 1)), MIN_STD)
    std = np.sqrt(squares.sum(axis=0) / np.maximum(mask.sum(axis=0) - 1, 1))
    return mean, np.maximum(std, MIN_STD)


@dataclass(frozen=True)
class Interval(FrozenValue):
    """An estimate with the limits of its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self):
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def area_under_curve(members, scores, confidence):
    """Return the area under the ROC curve, with DeLong's interval on the log-odds scale.

    On the scale of the area itself, the interval is too short near 0 and 1. Its length would be 0
    if all members had larger scores than all others. In that case, an exact limit for independent
    scores is used: k pairs without a common row are all ordered correctly with a probability of at
    most area^k, with k the smaller of the numbers of members and of others. If there is only one
    member or only one other, no variance can be estimated, and the interval is [0, 1] unless the
    exact limit applies.

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
    fraction_below = (ranks[:m] - rankdata(inside)) / n
    fraction_above = 1.0 - (ranks[m:] - rankdata(outside)) / m
    area = float(fraction_below.mean())
    error = (1.0 - confidence) / 2.0
    if area in (0.0, 1.0):
        far = error ** (1.0 / min(m, n))
        if area:
            return Interval(area, far, 1.0)
        return Interval(area, 0.0, 1.0 - far)
    if min(m, n) < 2:
        return Interval(area, 0.0, 1.0)
    variance = np.var(fraction_below, ddof=1) / m + np.var(fraction_above, ddof=1) / n
    half = -float(ndtri(error)) * math.sqrt(variance) / (area * (1.0 - area))
    low, high = expit(logit(area) - half), expit(logit(area) + half)
    return Interval(area, float(low), float(high))


def rate_at(members, scores, false_positive_rate, confidence):
    """Return the true-positive rate at a false-positive rate, with limits.

    The value is computed at the lowest threshold that the rate allows on these non-members. Their
    rate above a threshold differs from that of the distribution: the expected fraction above the
    highest of 20 non-members is 1 / 21. So the limits are computed at two other thresholds, whose
    true rates are below and above the requested one (binomial). This uses half of the error; exact
    limits at these thresholds use the other half (Clopper and Pearson 1934). The lower limit is 0
    if there are too few non-members for such a threshold: fewer than 437 at 95 % and a rate of 1 %.
    """
    outside = np.concatenate([[np.inf], np.sort(scores[~members])[::-1], [-np.inf]])
    inside = scores[members]
    m = len(outside) - 2
    alarms = binom(m, false_positive_rate)
    error = (1.0 - confidence) / 4.0
    thresholds = outside[[int(alarms.ppf(error)), int(alarms.isf(error)) + 1]]
    hits = np.array([np.sum(inside > thresholds[0]), np.sum(inside >= thresholds[1])])
    low, high = clopper_pearson(hits, len(inside), (1.0 + confidence) / 2.0)
    threshold = outside[math.floor(false_positive_rate * m) + 1]
    return Interval(float(np.mean(inside > threshold)), float(low[0]), float(high[1]))


def attack_accuracy(members, scores, confidence):
    """Return the balanced accuracy of a threshold that separates members from others.

    Each half of the rows is evaluated with the threshold that is best on the other half; a
    threshold chosen on the same rows would be better than guessing even for pure noise. The limits
    combine exact limits on two independent rates (Clopper and Pearson 1934), adding the squares of
    their distances (Newcombe 1998).
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
