"""The best of simple tests between two worlds: chosen on half of the runs, judged on the rest."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp.audit import _bounds

MOST_FEATURES = 500
N_THRESHOLDS = 200
# A discriminant of more numbers, the clearest first, would learn the noise of the runs.
ROWS_A_WEIGHT = 4
# Little, or what numbers with one noise say together would not be heard, and more than rounding.
SHRINKAGE = 1e-9
# Of so many numbers it is looked at, too, how near they are to where one world's crowd.
CROWDED_FEATURES = 3
CROWD = 0.1


@dataclass(frozen=True)
class Verdict:
    """What a test between two worlds certifies.

    Parameters
    ----------
    epsilon : float
    test : str
        What was looked at, in words.
    counts : tuple of int
        True positives and runs, false positives and runs.
    states : bool, default=False
        Whether a part of what was fitted makes the statement of skdp.
    """

    epsilon: float
    test: str
    counts: tuple = ()
    states: bool = False


def distinguish(inside, outside, *, delta, confidence, gaussian=False, names=None):
    """Certify an epsilon from what two worlds published.

    Candidates are single numbers, how near some of them are to where one world's crowd, a
    linear discriminant and likelihoods of Laplace noise, with thresholds at quantiles, all
    chosen on even runs; the odd runs judge the one that was chosen.

    Parameters
    ----------
    inside, outside : ndarray of shape (n_runs, n_floats)
    delta, confidence : float
    gaussian : bool, default=False
        Bound epsilon through the trade-off curve of a Gaussian mechanism.
    names : sequence of str, default=None
        What each number is, in words.

    Returns
    -------
    Verdict
    """
    if not inside.shape[1]:
        return Verdict(0.0, "nothing: no number that is published depends on the rows")
    if names is None:
        names = [f"published number {column}" for column in range(inside.shape[1])]
    scorers = _scorers(inside[::2], outside[::2], names)
    certify = _bounds.gaussian_epsilon_from_rates if gaussian else _bounds.epsilon_from_rates
    prove = _bounds.mus_of_tests if gaussian else partial(_bounds.epsilons_of_tests, delta=delta)
    # With the error of all candidates together, or the luckiest threshold would be chosen.
    error = (1.0 - confidence) / (len(scorers) * N_THRESHOLDS)
    # Where nothing is certain of any test, any will do.
    best, chosen = -math.inf, (*scorers[0], -math.inf)
    for name, score in scorers:
        a, b = score(inside[::2]), score(outside[::2])
        shares = np.linspace(0.0, 1.0, N_THRESHOLDS)
        thresholds = np.unique(np.quantile(np.concatenate([a, b]), shares))
        bounds = prove(*_counts(a, b, thresholds), error=error)
        if bounds.max() > best:
            best, chosen = bounds.max(), (name, score, thresholds[np.argmax(bounds)])
    name, score, threshold = chosen
    counts = tuple(int(n) for n in _counts(score(inside[1::2]), score(outside[1::2]), threshold))
    return Verdict(certify(*counts, delta=delta, confidence=confidence), name, counts)


def _scorers(inside, outside, names):
    """Return (name, function) of the candidates, larger values for the world with the row."""
    gap = np.mean(inside, axis=0) - np.mean(outside, axis=0)
    # The variance of equal numbers is a rounding error above 0, and which depends on the processor.
    variances = [
        np.where(np.ptp(world, axis=0) > 0.0, np.var(world, axis=0), 0.0)
        for world in (inside, outside)
    ]
    spread = np.sqrt(variances[0] + variances[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        clarity = np.where(gap == 0.0, 0.0, np.abs(gap) / spread)
        unlike = np.abs(np.log(variances[0] / variances[1]))
    clearest = np.argsort(-clarity, kind="stable")
    scorers = [
        (names[column], _value(column, np.sign(gap[column]) or 1.0))
        for column in clearest[:MOST_FEATURES]
    ]
    used = clearest[spread[clearest] > 0.0][: len(inside) // ROWS_A_WEIGHT]
    if len(used) > 1:
        labels = np.repeat([1, 0], [len(inside), len(outside)])
        table = np.vstack([inside, outside])[:, used]
        model = make_pipeline(
            StandardScaler(), LinearDiscriminantAnalysis(solver="lsqr", shrinkage=SHRINKAGE)
        ).fit(table, labels)
        together = [
            ("a linear discriminant", lambda values: model.decision_function(values[:, used])),
            ("likelihoods of Laplace noise", _likelihood(inside, outside, used)),
        ]
        scorers = (scorers[:1] if len(scorers) > 18 else scorers) + together
    unlike = np.where(np.isfinite(unlike), unlike, 0.0)
    chosen = {*np.argsort(-clarity)[:CROWDED_FEATURES], *np.argsort(-unlike)[:CROWDED_FEATURES]}
    for column in sorted(chosen):
        name = f"how near {names[column]} is to where one world's crowd"
        for values, sign in ((inside, -1.0), (outside, 1.0)):
            scorers.append((name, _nearness(column, sign, _crowd(values[:, column]))))
    return scorers


def _crowd(values):
    """Return the middle of the shortest interval that holds a tenth of the values."""
    values = np.sort(values)
    n = max(1, int(CROWD * len(values)))
    start = np.argmin(values[n:] - values[:-n])
    return (values[start] + values[start + n]) / 2.0


def _value(column, sign):
    return lambda values: sign * values[:, column]


def _nearness(column, sign, centre):
    return lambda values: sign * np.abs(values[:, column] - centre)


def _likelihood(inside, outside, columns):
    """Say how much likelier one world is, as if each number had Laplace noise of its own.

    If so it is the best test there is; a discriminant is that of Gaussian noise.
    """
    floor = SHRINKAGE * np.ptp(np.vstack([inside, outside])[:, columns], axis=0)
    laws = []
    for world in (inside[:, columns], outside[:, columns]):
        centre = np.median(world, axis=0)
        laws.append((centre, np.mean(np.abs(world - centre), axis=0) + floor))

    def score(values):
        near, far = (np.sum(np.abs(values[:, columns] - c) / s, axis=1) for c, s in laws)
        return far - near

    return score


def _counts(a, b, thresholds):
    """Return how many values of each world reach the thresholds, and how many there are."""
    below = (np.searchsorted(np.sort(values), thresholds) for values in (a, b))
    return len(a) - next(below), len(a), len(b) - next(below), len(b)
