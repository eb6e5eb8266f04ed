"""Tests that tell the fits to two tables apart by the numbers that they published.

The best of simple tests is chosen on some of the runs and judged on the others. A *world* is a
table, and the fits to it.
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

# Number of single numbers that are candidates, the clearest first.
MAX_FEATURES = 500
# Number of thresholds of a candidate.
N_THRESHOLDS = 200
# Runs for each weight of a discriminant. With more weights it would fit the noise of the runs.
RUNS_PER_WEIGHT = 4
# Little, or what numbers with shared noise say together would be lost; more than rounding errors.
SHRINKAGE = 1e-9
# Number of numbers for which the distance to the mode of a world is a candidate, too: those whose
# means, and those whose variances, differ most. It finds worlds that differ in spread alone. The
# mode finds the wrong curvature of another library's logistic regression, the median does not.
SPREAD_FEATURES = 3
# The fraction of the values that lie in the shortest interval around the mode.
MODE_FRACTION = 0.1
# With more single numbers than these only the clearest is a candidate beside a discriminant.
MANY_SCORERS = 18
# Number of errors of each kind that `attainable_bound` adds. With 0, audits of sound estimators
# would go on more often; with 2, violations that a thousand fits prove are given up too early.
MORE_ERRORS = 1
NO_TEST = "nothing: no number that is published depends on the rows"


@dataclass(frozen=True, eq=False)
class ChosenTest(FrozenValue):
    """A test of "was the canary in the table?", chosen without the runs that judge it.

    Parameters
    ----------
    description : str
        The number, or the combination of numbers, that the test looks at.
    score : callable
        Maps values of shape (n_runs, n_numbers) to one score a run.
    threshold : float
        The test says "in" where the score reaches it.
    bound : float
        The epsilon that the runs which chose the test would certify, at the error of all
        candidates together. It ranks tests and certifies nothing.
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
        True positives and runs, false positives and runs; empty without a test.
    has_statement : bool, default=False
        Whether a part of the fitted estimator makes a `privacy_` statement of skdp.
    """

    epsilon: float
    test: str
    counts: tuple = ()
    has_statement: bool = False


def distinguish(inside, outside, *, names, delta, confidence, gaussian=False):
    """Certify an epsilon from the numbers that fits to two tables published.

    The test is chosen on the even runs and judged on the odd ones.

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
    options = {"delta": delta, "confidence": confidence, "gaussian": gaussian}
    test = choose_test(inside[::2], outside[::2], names=names, **options)
    if test is None:
        return TestResult(0.0, NO_TEST)
    counts = test.counts(inside[1::2], outside[1::2])
    return TestResult(certified_epsilon(counts, **options), test.description, counts)


def certified_epsilon(counts, *, delta, confidence, gaussian=False):
    """Return the epsilon that the counts of a `ChosenTest` certify."""
    certify = _bounds.gaussian_epsilon_from_rates if gaussian else _bounds.epsilon_from_rates
    return certify(*counts, delta=delta, confidence=confidence)


def attainable_bound(test, inside, outside, n_runs, *, delta, confidence, gaussian=False):
    """Return the bound that a test would certify on more runs, if its rates stayed the same.

    The threshold is the best one for these runs. One more false alarm and one more miss are counted
    than there were: otherwise a few runs that happen to be the largest would promise too much.

    Parameters
    ----------
    test : ChosenTest
        Chosen on other runs.
    inside, outside : ndarray of shape (n, n_numbers)
        The runs that show its rates.
    n_runs : int
        How many runs in each world would judge the test.
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
    certify = _bounds.mus_of_tests if gaussian else partial(_bounds.epsilons_of_tests, delta=delta)

    hits = np.maximum(hits - MORE_ERRORS, 0) * n_runs // n_in
    false_alarms = np.minimum(false_alarms + MORE_ERRORS, n_out) * n_runs // n_out
    return float(np.max(certify(hits, n_runs, false_alarms, n_runs, error=1.0 - confidence)))


def _thresholds(scores_in, scores_out):
    quantiles = np.linspace(0.0, 1.0, N_THRESHOLDS)
    return np.unique(np.quantile(np.concatenate([scores_in, scores_out]), quantiles))


def choose_test(inside, outside, *, names, delta, confidence, gaussian=False):
    """Choose the test that is expected to certify the largest epsilon on further runs.

    Numbers that never change, and those that repeat an earlier one, are left out. Candidates are
    single numbers, the distance of some of them to the mode of either world, a linear
    discriminant and likelihood ratios of Laplace noise, with thresholds at quantiles.

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
        None if no number ever changes.
    """
    # A composition shows a number in many places, and a discriminant has few weights.
    both = np.vstack([inside, outside])
    first = {both[:, column].tobytes(): column for column in reversed(range(both.shape[1]))}
    columns = sorted(column for column in first.values() if np.ptp(both[:, column]))
    if not columns:
        return None
    scorers = _scorers(inside, outside, names, columns)
    bound_all = (
        _bounds.mus_of_tests if gaussian else partial(_bounds.epsilons_of_tests, delta=delta)
    )
    # At the error of all candidates together; otherwise the luckiest threshold would be chosen.
    error = (1.0 - confidence) / (len(scorers) * N_THRESHOLDS)
    # Where no test certifies anything, any will do.
    best = ChosenTest(*scorers[0], -math.inf, -math.inf)
    for name, score in scorers:
        scores_in = score(inside)
        scores_out = score(outside)
        thresholds = _thresholds(scores_in, scores_out)
        bounds = bound_all(*_counts(scores_in, scores_out, thresholds), error=error)
        place = np.argmax(bounds)
        if bounds[place] > best.bound:
            best = ChosenTest(name, score, thresholds[place], float(bounds[place]))
    return best


def _scorers(inside, outside, names, columns):
    """Return (name, function) of the candidates, larger scores for the world with the canary."""
    columns = np.asarray(columns)
    gap = np.mean(inside[:, columns], axis=0) - np.mean(outside[:, columns], axis=0)
    # The variance of equal numbers is a rounding error above 0, which depends on the processor.
    variances = [
        np.where(np.ptp(world, axis=0) > 0.0, np.var(world, axis=0), 0.0)
        for world in (inside[:, columns], outside[:, columns])
    ]
    spread = np.sqrt(variances[0] + variances[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        clarity = np.where(gap == 0.0, 0.0, np.abs(gap) / spread)
        spread_ratio = np.abs(np.log(variances[0] / variances[1]))
    clearest = np.argsort(-clarity, kind="stable")
    scorers = [
        (names[columns[j]], _value(columns[j], np.sign(gap[j]) or 1.0))
        for j in clearest[:MAX_FEATURES]
    ]
    used = columns[clearest[spread[clearest] > 0.0][: len(inside) // RUNS_PER_WEIGHT]]
    if len(used) > 1:
        labels = np.repeat([1, 0], [len(inside), len(outside)])
        table = np.vstack([inside, outside])[:, used]
        discriminant = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=SHRINKAGE)
        model = make_pipeline(StandardScaler(), discriminant).fit(table, labels)
        combined = [
            ("a linear discriminant", lambda values: model.decision_function(values[:, used])),
            ("likelihoods of Laplace noise", _likelihood_ratio(inside, outside, used)),
        ]
        scorers = (scorers[:1] if len(scorers) > MANY_SCORERS else scorers) + combined
    spread_ratio = np.where(np.isfinite(spread_ratio), spread_ratio, 0.0)
    by_spread = np.argsort(-spread_ratio)[:SPREAD_FEATURES]
    for column in columns[sorted({*np.argsort(-clarity)[:SPREAD_FEATURES], *by_spread})]:
        for world, sign in ((inside, -1.0), (outside, 1.0)):
            name = f"the distance of {names[column]} to one world's mode"
            scorers.append((name, _distance(column, sign, _mode(world[:, column]))))
    return scorers


def _mode(values):
    """Return the middle of the shortest interval that holds a tenth of the values."""
    values = np.sort(values)
    n = max(1, int(MODE_FRACTION * len(values)))
    start = np.argmin(values[n:] - values[:-n])
    return (values[start] + values[start + n]) / 2.0


def _value(column, sign):
    return lambda values: sign * values[:, column]


def _distance(column, sign, center):
    return lambda values: sign * np.abs(values[:, column] - center)


def _likelihood_ratio(inside, outside, columns):
    """Return the log likelihood ratio of two worlds whose numbers have independent Laplace noise.

    It is the best test where the noise is that; a discriminant is the best for Gaussian noise.
    """
    floor = SHRINKAGE * np.ptp(np.vstack([inside, outside])[:, columns], axis=0)
    distributions = []
    for world in (inside[:, columns], outside[:, columns]):
        center = np.median(world, axis=0)
        distributions.append((center, np.mean(np.abs(world - center), axis=0) + floor))

    def score(values):
        near, far = (np.sum(np.abs(values[:, columns] - c) / s, axis=1) for c, s in distributions)
        return far - near

    return score


def _counts(scores_in, scores_out, thresholds):
    """Return how many scores of each world reach the thresholds, and how many there are."""
    below_in = np.searchsorted(np.sort(scores_in), thresholds)
    below_out = np.searchsorted(np.sort(scores_out), thresholds)
    return (len(scores_in) - below_in, len(scores_in), len(scores_out) - below_out, len(scores_out))
