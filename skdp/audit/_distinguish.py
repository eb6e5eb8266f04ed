"""Tests that use published numbers to distinguish between fits to two tables.

The best of several simple tests is chosen on some of the runs and evaluated on the others. Runs
with the canary are *inside*, runs without it *outside*.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp.audit import _bounds
from skdp.utils._values import FrozenValue

# Maximum number of single numbers that are candidates: those with the largest effects.
MAX_FEATURES = 500
# Number of thresholds per candidate.
N_THRESHOLDS = 200
# Minimum number of runs per weight of a discriminant. With more weights, it would overfit the runs.
RUNS_PER_WEIGHT = 4
# Shrinkage of the discriminant's covariance: larger than rounding errors, but small enough for
# numbers that share noise, whose difference is informative.
SHRINKAGE = 1e-9
# Number of features whose distance to the mode is also a candidate: the features whose means, and
# those whose variances, differ most. It detects tables whose numbers differ only in variance. From
# the weights of diffprivlib 0.6.6's logistic regression at epsilon = 1, whose curvature is wrong,
# 3000 fits certify 1.4 with it and nothing without it or with the median in place of the mode.
SPREAD_FEATURES = 3
# Fraction of the values in the shortest interval, whose center is the mode (half-sample mode).
MODE_FRACTION = 0.1
# With more single numbers than this, only the best one is a candidate, alongside a discriminant.
MANY_SCORERS = 18
# Number of errors of each kind that `estimate_bound` adds. With 0, audits of correct estimators
# run more fits than necessary; with 2, audits stop before finding violations that 1000 fits would
# prove.
MORE_ERRORS = 1
NO_TEST = "nothing: no published number depends on the rows"


@dataclass(frozen=True, eq=False)
class ChosenTest(FrozenValue):
    """A test of whether the canary was in the table, chosen without the runs that evaluate it.

    Parameters
    ----------
    description : str
        The number, or the combination of numbers, that the test uses.
    score : callable
        Maps values of shape (n_runs, n_numbers) to one score per run.
    threshold : float
        The test result is "in" if the score is at least this.
    bound : float
        Epsilon that the runs used for the choice would certify, corrected for the number of
        candidates. It is used only to rank tests and certifies nothing.
    """

    description: str
    score: object
    threshold: float
    bound: float

    def counts(self, inside, outside):
        """Return true positives and runs, false positives and runs."""
        scores = self.score(inside), self.score(outside)
        return tuple(int(n) for n in _counts(*scores, self.threshold))


@dataclass(frozen=True)
class TestResult(FrozenValue):
    """The outcome of a test between two tables.

    Parameters
    ----------
    epsilon : float
        The certified lower bound.
    test : str
        Description of the test.
    counts : tuple of int, default=()
        True positives and runs, false positives and runs; empty if there is no test.
    """

    epsilon: float
    test: str
    counts: tuple = ()


def distinguish(inside, outside, *, names, delta, confidence, gaussian=False):
    """Return the epsilon that the published numbers of fits to two tables certify.

    The test is chosen on the even runs and evaluated on the odd runs.

    Parameters
    ----------
    inside, outside : ndarray of shape (n_runs, n_numbers)
    names : sequence of str
        Description of each number.
    delta, confidence : float
    gaussian : bool, default=False
        Bound epsilon through the trade-off curve of a Gaussian mechanism.

    Returns
    -------
    TestResult
    """
    test = choose_test(
        inside[::2],
        outside[::2],
        names=names,
        delta=delta,
        confidence=confidence,
        gaussian=gaussian,
    )
    if test is None:
        return TestResult(0.0, NO_TEST)
    counts = test.counts(inside[1::2], outside[1::2])
    epsilon = certified_epsilon(counts, delta=delta, confidence=confidence, gaussian=gaussian)
    return TestResult(epsilon, test.description, counts)


def _bound_of_tests(gaussian, delta):
    """Return the function from counts of tests to bounds on mu, or on epsilon at this delta."""
    if gaussian:
        return _bounds.mus_of_tests
    return partial(_bounds.epsilons_of_tests, delta=delta)


def certified_epsilon(counts, *, delta, confidence, gaussian=False):
    """Return the epsilon that the counts of a `ChosenTest` certify."""
    certify = _bounds.epsilon_from_rates
    if gaussian:
        certify = _bounds.gaussian_epsilon_from_rates
    return certify(*counts, delta=delta, confidence=confidence)


def estimate_bound(test, inside, outside, n_runs, *, delta, confidence, gaussian=False):
    """Return an estimate of the bound that a test would certify on a number of further runs.

    An audit makes further runs only if they could prove a violation according to this estimate. The
    error rates are those on the given runs, at the threshold that is best for these runs, after
    `MORE_ERRORS` false alarms and misses have been added: a few extreme runs could otherwise make
    the estimate far too large. The true bound can be larger or smaller.

    Parameters
    ----------
    test : ChosenTest
        Chosen on other runs.
    inside, outside : ndarray of shape (n, n_numbers)
        Runs from which the error rates are estimated.
    n_runs : int
        Number of runs per table with which the test would be evaluated.
    delta, confidence : float
    gaussian : bool, default=False
        As in `distinguish`.

    Returns
    -------
    float
        An epsilon, or the mu of a Gaussian mechanism. It certifies nothing.
    """
    scores_in = test.score(inside)
    scores_out = test.score(outside)
    hits, n_in, false_alarms, n_out = _counts(
        scores_in, scores_out, _thresholds(scores_in, scores_out)
    )
    certify = _bound_of_tests(gaussian, delta)
    hits = np.maximum(hits - MORE_ERRORS, 0) * n_runs // n_in
    false_alarms = np.minimum(false_alarms + MORE_ERRORS, n_out) * n_runs // n_out
    return float(np.max(certify(hits, n_runs, false_alarms, n_runs, error=1.0 - confidence)))


def _thresholds(scores_in, scores_out):
    """Return quantiles of all scores, as the thresholds that are tried."""
    quantiles = np.linspace(0.0, 1.0, N_THRESHOLDS)
    return np.unique(np.quantile(np.concatenate([scores_in, scores_out]), quantiles))


def choose_test(inside, outside, *, names, delta, confidence, gaussian=False):
    """Return the test that is expected to certify the largest epsilon on further runs.

    Constant and duplicated numbers are left out. Candidates are single numbers, the distance from
    some of them to the mode for either table, a linear discriminant and likelihood ratios for
    Laplace noise, with thresholds at quantiles.

    Parameters
    ----------
    inside, outside : ndarray of shape (n_runs, n_numbers)
    names : sequence of str
    delta, confidence : float
    gaussian : bool, default=False
        As in `distinguish`.

    Returns
    -------
    ChosenTest or None
        None if all numbers are constant.
    """
    # The same number can occur in several places of a pipeline, and a discriminant has few weights.
    both = np.vstack([inside, outside])
    first = {both[:, column].tobytes(): column for column in reversed(range(both.shape[1]))}
    columns = sorted(column for column in first.values() if np.ptp(both[:, column]))
    if not columns:
        return None
    scorers = _scorers(inside, outside, names, columns)
    bound_all = _bound_of_tests(gaussian, delta)
    # Bonferroni correction; otherwise, a threshold could be chosen because of luck.
    error = (1.0 - confidence) / (len(scorers) * N_THRESHOLDS)
    # The result if no test certifies anything.
    best = ChosenTest(*scorers[0], -math.inf, -math.inf)
    for name, score in scorers:
        scores_in = score(inside)
        scores_out = score(outside)
        thresholds = _thresholds(scores_in, scores_out)
        bounds = bound_all(*_counts(scores_in, scores_out, thresholds), error=error)
        index = np.argmax(bounds)
        if bounds[index] > best.bound:
            best = ChosenTest(name, score, thresholds[index], float(bounds[index]))
    return best


def _scorers(inside, outside, names, columns):
    """Return the statistics that may tell fits with the canary from fits without it.

    These are single numbers, combinations of several, and distances to the mode of one table.

    Parameters
    ----------
    inside, outside : ndarray of shape (n_runs, n_numbers)
        Numbers observed in fits with and without the canary.
    names : list of str
        Names of the numbers.
    columns : sequence of int
        Numbers that may be used.

    Returns
    -------
    list of (str, callable)
        Names, and functions of an array of such shape that return a score per run, which is larger
        with the canary.
    """
    columns = np.asarray(columns)
    difference = np.mean(inside[:, columns], axis=0) - np.mean(outside[:, columns], axis=0)
    # The variance of equal numbers is a rounding error above 0, which depends on the processor.
    variances = [
        np.where(np.ptp(runs, axis=0) > 0.0, np.var(runs, axis=0), 0.0)
        for runs in (inside[:, columns], outside[:, columns])
    ]
    std = np.sqrt(variances[0] + variances[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        effect_size = np.where(difference == 0.0, 0.0, np.abs(difference) / std)
        spread_ratio = np.abs(np.log(variances[0] / variances[1]))
    by_effect = np.argsort(-effect_size, kind="stable")
    scorers = [
        (names[columns[j]], _value(columns[j], np.sign(difference[j]) or 1.0))
        for j in by_effect[:MAX_FEATURES]
    ]
    selected = columns[by_effect[std[by_effect] > 0.0][: len(inside) // RUNS_PER_WEIGHT]]
    if len(selected) > 1:
        labels = np.repeat([1, 0], [len(inside), len(outside)])
        table = np.vstack([inside, outside])[:, selected]
        discriminant = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=SHRINKAGE)
        model = make_pipeline(StandardScaler(), discriminant).fit(table, labels)

        def discriminant_score(values):
            return model.decision_function(values[:, selected])

        combined = [
            ("a linear discriminant", discriminant_score),
            ("likelihoods of Laplace noise", _likelihood_ratio(inside, outside, selected)),
        ]
        if len(scorers) > MANY_SCORERS:
            # Each further candidate lowers the error that every candidate may have; combinations
            # use all numbers.
            scorers = scorers[:1]
        scorers = scorers + combined
    spread_ratio = np.where(np.isfinite(spread_ratio), spread_ratio, 0.0)
    by_spread = np.argsort(-spread_ratio)[:SPREAD_FEATURES]
    for column in columns[sorted({*np.argsort(-effect_size)[:SPREAD_FEATURES], *by_spread})]:
        for runs, sign in ((inside, -1.0), (outside, 1.0)):
            name = f"the distance of {names[column]} to the mode of one table"
            scorers.append((name, _distance(column, sign, _mode(runs[:, column]))))
    return scorers


def _mode(values):
    """Return the center of the shortest interval that contains a tenth of the values."""
    values = np.sort(values)
    n = max(1, int(MODE_FRACTION * len(values)))
    start = np.argmin(values[n:] - values[:-n])
    return (values[start] + values[start + n]) / 2.0


def _value(column, sign):
    """Return the function that scores runs by a published number."""

    def score(values):
        return sign * values[:, column]

    return score


def _distance(column, sign, center):
    """Return the function that scores runs by the distance from a published number to a center."""

    def score(values):
        return sign * np.abs(values[:, column] - center)

    return score


def _likelihood_ratio(inside, outside, columns):
    """Return the log likelihood ratio for two tables with independent Laplace noise.

    It is the optimal test for this noise; a linear discriminant is optimal for Gaussian noise.
    """
    floor = SHRINKAGE * np.ptp(np.vstack([inside, outside])[:, columns], axis=0)
    distributions = []
    for runs in (inside[:, columns], outside[:, columns]):
        center = np.median(runs, axis=0)
        distributions.append((center, np.mean(np.abs(runs - center), axis=0) + floor))

    def score(values):
        near, far = (np.sum(np.abs(values[:, columns] - c) / s, axis=1) for c, s in distributions)
        return far - near

    return score


def _counts(scores_in, scores_out, thresholds):
    """Return, for each table, the number of scores that reach the thresholds and of all scores."""
    below_in = np.searchsorted(np.sort(scores_in), thresholds)
    below_out = np.searchsorted(np.sort(scores_out), thresholds)
    return (len(scores_in) - below_in, len(scores_in), len(scores_out) - below_out, len(scores_out))
