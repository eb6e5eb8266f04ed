r"""Membership scores of rows from the statistics of a target and of shadow models.

All take the target's statistic of each row, the shadows' statistics, an array of shape (n_shadow,
n_rows), and which rows each shadow was fitted to, and return one score a row, the larger the
likelier a member.
"""

import numpy as np
from scipy.special import expit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

LEAST_DEVIATION = 1e-3


def lira(target, shadows, fitted, *, offline=False, variance="row"):
    """Return the likelihood ratio of two Gaussians, or how unlikely the outsiders' one is.

    Parameters
    ----------
    target : ndarray of shape (n_rows,)
    shadows : ndarray of shape (n_shadow, n_rows)
    fitted : ndarray of bool, shape (n_shadow, n_rows)
    offline : bool, default=False
        Use the shadows that were not fitted to a row alone.
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
    out = _mean(p, ~fitted)
    inside = offline_scale * out + 1.0 - offline_scale if offline else _mean(p, fitted)
    prior = 0.5 * (inside + out)
    ratio = expit(target) / np.maximum(prior, np.finfo(float).tiny)
    order = np.sort(ratio)
    beaten = np.searchsorted(order, ratio / gamma, side="right") / len(ratio)
    # Rows that beat equally many others are told apart by their ratio.
    return beaten + 1e-6 * np.argsort(np.argsort(ratio)) / len(ratio)


def shadow_classifier(target, shadows, fitted, labels):
    """Return the verdict of a classifier that learnt on shadows what membership looks like.

    One logistic regression for each label, on the statistic and its square.

    Parameters
    ----------
    target, shadows, fitted
        As in `lira`.
    labels : ndarray of shape (n_rows,)
        One attack is learnt for each.

    Returns
    -------
    ndarray of shape (n_rows,)

    References
    ----------
    R. Shokri, M. Stronati, C. Song, V. Shmatikov, "Membership Inference Attacks Against Machine
    Learning Models", 2017.
    """
    scores = np.empty(len(target))
    for label in np.unique(labels):
        rows = labels == label
        known, membership = shadows[:, rows].ravel(), fitted[:, rows].ravel()
        if np.ptp(membership.astype(int)) == 0:
            scores[rows] = 0.0
            continue
        centre, spread = known.mean(), max(known.std(), LEAST_DEVIATION)
        attack = LogisticRegression()
        attack.fit(_features((known - centre) / spread), membership)
        scores[rows] = attack.decision_function(_features((target[rows] - centre) / spread))
    return scores


def _features(statistic):
    return np.column_stack([statistic, statistic**2])


def _mean(values, mask):
    counts = np.maximum(mask.sum(axis=0), 1)
    return np.where(mask, values, 0.0).sum(axis=0) / counts


def _gaussian(shadows, mask, variance):
    mean = _mean(shadows, mask)
    squares = np.where(mask, (shadows - mean) ** 2, 0.0)
    if variance == "global":
        return mean, max(np.sqrt(squares.sum() / max(mask.sum(), 1)), LEAST_DEVIATION)
    deviation = np.sqrt(squares.sum(axis=0) / np.maximum(mask.sum(axis=0) - 1, 1))
    return mean, np.maximum(deviation, LEAST_DEVIATION)
