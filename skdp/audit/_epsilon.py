"""How much of a claimed epsilon an attacker can prove."""

import warnings
from dataclasses import asdict, dataclass

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from skdp.accounting import convert_relation
from skdp.audit._bounds import halved_epsilon, one_run_epsilon, one_run_gaussian_epsilon
from skdp.audit._canaries import (
    canary_worlds,
    orthogonal_canaries,
    with_as_many_rows,
    worst_case_worlds,
)
from skdp.audit._distinguish import distinguish, published_floats
from skdp.audit._outputs import accountants, seeds, without_accountant
from skdp.base import relation_of
from skdp.exceptions import PrivacyViolationWarning
from skdp.utils._validation import check_integer, check_privacy_parameters

__all__ = ["METHODS", "EpsilonAudit", "audit_epsilon"]

METHODS = ("worst_case", "two_worlds", "one_run")
RELATIONS = ("add_remove", "replace_one")
FITS_A_JOB = 50
LARGEST = 1e140

# How many of the canaries are guessed: several fractions, each with its part of the error.
GUESSED = (0.05, 0.1, 0.2, 0.4, 1.0)


@dataclass(frozen=True)
class EpsilonAudit:
    """A certified lower bound on epsilon beside the claim.

    Printing gives text, `to_dict` gives JSON values.

    Parameters
    ----------
    lower_bound : float
        With the stated confidence the true epsilon, at the claim's delta, is no less.
    epsilon, delta : float
        The claim.
    confidence : float
        Of the bound.
    method : str
        How the worlds were made.
    attack : str
        What the attacker looked at.
    runs : int
        How many fits it took.
    gaussian : bool
        Whether the bound assumes the trade-off curve of a Gaussian mechanism.
    """

    lower_bound: float
    epsilon: float
    delta: float
    confidence: float
    method: str
    attack: str
    runs: int
    gaussian: bool = False

    @property
    def violation(self):
        """Whether the bound is above the claim."""
        return self.lower_bound > self.epsilon

    def to_dict(self):
        """Return the audit as JSON values.

        Returns
        -------
        dict
        """
        return asdict(self) | {"violation": self.violation, "words": self._words()}

    def _words(self):
        if self.violation:
            return (
                f"VIOLATION: the claim of epsilon = {self.epsilon:g} does not hold; the true "
                f"epsilon is at least {self.lower_bound:.3g} (confidence {self.confidence:g})."
            )
        return (
            f"This attack proves that epsilon is at least {self.lower_bound:.3g} (confidence "
            f"{self.confidence:g}); the claim of {self.epsilon:g} stands. A lower bound says what "
            "one attack found, never how private the estimator is: that is what the claim says."
        )

    def __str__(self):
        lines = [
            f"Audit of a claim of ({self.epsilon:g}, {self.delta:g})-differential privacy",
            f"  {self._words()}",
            f"  method {self.method!r}, {self.runs} fits, by {self.attack}",
        ]
        if self.gaussian:
            lines.append("  Assuming the trade-off curve of a Gaussian mechanism.")
        return "\n".join(lines)


def audit_epsilon(
    estimator,
    X=None,
    y=None,
    *,
    method="worst_case",
    epsilon=None,
    delta=None,
    canary=None,
    replacement=None,
    relation=None,
    n_fits=1000,
    n_samples=500,
    n_canaries=1000,
    canary_norm=None,
    gaussian=False,
    confidence=0.95,
    n_jobs=None,
    random_state=None,
    verbose=0,
):
    """Attack an estimator's claim and certify a lower bound on its epsilon.

    Parameters
    ----------
    estimator : estimator
        Any that is fitted to X and y. Clones that the audit fits charge no accountant of skdp,
        and draw fresh noise even where a `random_state` is given.
    X : array-like of shape (n_samples, n_features), default=None
        The table of "two_worlds" and "one_run"; "worst_case" makes its own.
    y : array-like of shape (n_samples,), default=None
        Targets or labels of X.
    method : {"worst_case", "two_worlds", "one_run"}, default="worst_case"
        "worst_case": many fits on two tables made so that one row moves a linear model as far
        as it can. "two_worlds": many fits on X with a canary and without it (Jagielski et al.
        2020). Both look at every number that a fit publishes and at the model's answer to the
        canary. "one_run": one fit on X with canaries in columns of their own, each in by a coin
        (Steinke et al. 2023), for linear models, whose `coef_` is looked at.
    epsilon, delta : float, default=None
        The claim; None takes the estimator's parameters, delta 0 without one.
    canary : tuple of (row, label), default=None
        Of "two_worlds"; None makes a long row in the direction in which X varies least.
    replacement : tuple of (row, label), default=None
        Of "two_worlds": what is in the canary's place in the other table. None leaves the place
        empty, or under "replace_one" puts the canary there with another label. Under
        "add_remove" a replacement is a removal and an addition, and what is certified of both
        together is shared between them.
    relation : {"add_remove", "replace_one"}, default=None
        What the claim is for; None takes that of the estimator's accountant, add/remove without
        one. Clones that are fitted keep the relation of the estimator's accountant.
    n_fits : int, default=1000
        In each world.
    n_samples : int, default=500
        Rows of the tables of "worst_case".
    n_canaries : int, default=1000
        Of "one_run".
    canary_norm : float, default=None
        Of "one_run"; None takes the estimator's `data_norm`, or the longest row of X.
    gaussian : bool, default=False
        Bound through the trade-off curve of a Gaussian mechanism (Nasr et al. 2023): valid only
        where the mechanism is known to have it, full-batch Gaussian steps say. Needs delta > 0.
    confidence : float, default=0.95
        Of the bound.
    n_jobs : int, default=None
        As in joblib.
    random_state : int or None, default=None
        Of coins and labels of the canaries; never of the estimator's noise.
    verbose : int, default=0
        As in joblib.

    Returns
    -------
    EpsilonAudit

    Raises
    ------
    ValueError
        If there is no claim, or an option is not as described.

    Warns
    -----
    PrivacyViolationWarning
        If the bound is above the claim.

    Notes
    -----
    Under "add_remove" the table without the row is shorter by one, while skdp takes the number of
    rows to be public: published numbers that it alone decides are left out, but a mean moves with
    its divisor, by as much as with the row. So where fits make a `privacy_` statement, a bound
    above the claim is not believed: as many fits again are made to tables of one size, with a
    usual row in the canary's place, a removal and an addition, and their bound for one of the
    two is what is returned. Thresholds and tests are chosen on half of the fits and judged on the
    other half.

    References
    ----------
    M. Jagielski, J. Ullman, A. Oprea, "Auditing Differentially Private Machine Learning", 2020.
    T. Steinke, M. Nasr, M. Jagielski, "Privacy Auditing with One (1) Training Run", 2023.

    Examples
    --------
    >>> from skdp import DPLogisticRegression
    >>> from skdp.audit import audit_epsilon
    >>> found = audit_epsilon(DPLogisticRegression(epsilon=4.0, mechanism="output"), n_fits=100)
    >>> found.violation
    False
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {method!r}")
    epsilon, delta = _claim(estimator, epsilon, delta)
    if gaussian and delta == 0.0:
        raise ValueError("gaussian=True needs a claim with delta above 0")
    if method != "worst_case" and (X is None or y is None):
        raise ValueError(f"method={method!r} needs X and y")
    relation = _relation(estimator) if relation is None else relation
    if relation not in RELATIONS:
        raise ValueError(f"relation must be one of {RELATIONS}, got {relation!r}")
    parallel = Parallel(n_jobs=n_jobs, verbose=verbose)
    if method == "one_run":
        bound, attack, runs = _one_run(
            estimator,
            orthogonal_canaries(
                X,
                y,
                check_integer(n_canaries, "n_canaries", 20),
                _norm(estimator, X, canary_norm),
                relation,
                check_random_state(random_state),
            ),
            (delta, confidence, gaussian),
        )
    else:
        n_fits = check_integer(n_fits, "n_fits", 20)
        if method == "worst_case":
            n_samples = check_integer(n_samples, "n_samples", 4)
            worlds = worst_case_worlds(estimator, n_samples, relation)
        else:
            worlds = canary_worlds(X, y, canary, relation, replacement)
        twice = method == "two_worlds" and replacement is not None and relation == "add_remove"
        claim = (epsilon, delta) if twice else None
        terms = delta, confidence, gaussian
        bound, attack, runs = _many_runs(estimator, worlds, n_fits, parallel, terms, claim)
        if bound > epsilon and len(worlds.X_in) > len(worlds.X_out) and _states(estimator, worlds):
            worlds, claim = with_as_many_rows(worlds), (epsilon, delta)
            bound, attack, more = _many_runs(estimator, worlds, n_fits, parallel, terms, claim)
            attack, runs = f"{attack}, tables of one size", runs + more
    audit = EpsilonAudit(bound, epsilon, delta, confidence, method, attack, runs, gaussian)
    if audit.violation:
        warnings.warn(audit.to_dict()["words"], PrivacyViolationWarning, stacklevel=2)
    return audit


def _many_runs(estimator, worlds, n_fits, parallel, terms, claim=None):
    """Return the bound, the test and the number of fits.

    With a claim for a removed row the worlds differ by a removal and an addition.
    """
    delta, confidence, gaussian = terms
    apart = delta if claim is None else convert_relation(*claim, *RELATIONS)[1]
    tables = ((worlds.X_in, worlds.y_in), (worlds.X_out, worlds.y_out))
    sizes = [min(FITS_A_JOB, n_fits - i) for i in range(0, n_fits, FITS_A_JOB)]
    probe = worlds.X_in[-1:]
    jobs = parallel(
        delayed(_observed)(estimator, *table, probe, size) for table in tables for size in sizes
    )
    runs = [run for job in jobs for run in job]
    values, names = _as_matrix(runs)
    constant = np.logical_and(*(np.all(v == v[0], axis=0) for v in np.split(values, 2)))
    private = ~constant
    if np.any(constant & (values[0] != values[n_fits])):
        others = [
            _observed(estimator, -0.5 * X[::-1], _other_targets(y), probe, 2) for X, y in tables
        ]
        values, names = _as_matrix([*runs, *others[0], *others[1]])
        private = ~_known_from_size(values[:n_fits], values[2 * n_fits : -2])
        private |= ~_known_from_size(values[n_fits : 2 * n_fits], values[-2:])
    inside, outside = values[:n_fits], values[n_fits : 2 * n_fits]
    verdict = distinguish(
        inside[:, private],
        outside[:, private],
        delta=apart,
        confidence=confidence,
        gaussian=gaussian,
        names=[name for name, use in zip(names, private, strict=True) if use],
    )
    bound = verdict.epsilon
    if claim is not None and verdict.counts:
        bound = halved_epsilon(
            *verdict.counts, delta=delta, confidence=confidence, gaussian=gaussian
        )
    return bound, verdict.test, 2 * n_fits


def _states(estimator, worlds):
    """Say whether fits make the statement of skdp, which takes the number of rows to be public."""
    fitted = _fresh(estimator).fit(worlds.X_in, worlds.y_in)
    return any(
        hasattr(part, "privacy_") for part in (fitted, *dict(getattr(fitted, "steps", ())).values())
    )


def _known_from_size(runs, others):
    """Return which published numbers the number of rows alone decides.

    They are the same in every fit to tables of one size, whatever the rows.
    """
    return np.all(runs == runs[0], axis=0) & np.all(others == runs[0], axis=0)


def _as_matrix(runs):
    """Return the numbers of all runs as rows of one width, and what the columns are.

    Fits that publish differently many numbers tell how many, which may give a row away.
    """
    lengths = np.array([(len(published), len(answers)) for published, answers in runs])
    widths = lengths.max(axis=0)
    values = np.zeros((len(runs), sum(widths) + 2))
    for row, (published, answers) in zip(values, runs, strict=True):
        row[: len(published)] = published
        row[widths[0] : widths[0] + len(answers)] = answers
    values[:, -2:] = lengths
    names = [f"published number {i}" for i in range(widths[0])]
    names += ["the model's answer to the canary"] * widths[1]
    names += ["how many numbers are published", "how many numbers the model answers"]
    # Numbers whose squares can be summed.
    return np.clip(np.nan_to_num(values), -LARGEST, LARGEST), names


def _other_targets(y):
    """Return targets of the same kind as y, of which no statistic need be the same."""
    if y.dtype.kind == "f":
        return 0.5 * y[::-1]
    labels = np.unique(y)
    other = np.full(len(y), labels[0])
    other[: len(labels)] = labels
    return other


def _one_run(estimator, canaries, terms):
    delta, confidence, gaussian = terms
    fitted = _fresh(estimator).fit(canaries.X, canaries.y)
    final = fitted[-1] if hasattr(fitted, "steps") else fitted
    if not hasattr(final, "coef_"):
        raise ValueError("method='one_run' needs an estimator with coef_")
    m = len(canaries.coins)
    coef = np.atleast_2d(final.coef_)[:, -m:]
    scores = _canary_scores(coef, canaries.labels, getattr(final, "classes_", None))
    order = np.argsort(scores, kind="stable")
    certify = one_run_gaussian_epsilon if gaussian else one_run_epsilon
    each = 1.0 - (1.0 - confidence) / len(GUESSED)
    bounds = []
    for fraction in GUESSED:
        half = max(1, int(fraction * m / 2))
        correct = np.sum(canaries.coins[order[-half:]]) + np.sum(~canaries.coins[order[:half]])
        bounds.append(certify(int(correct), 2 * half, m, delta=delta, confidence=each))
    return max(bounds), f"{m} canaries in columns of their own, seen in coef_", 1


def _canary_scores(coef, labels, classes):
    """Return how far each canary's own weight was pulled to its label."""
    if classes is None:
        return coef[0] * np.sign(labels)
    codes = np.searchsorted(classes, labels)
    if len(coef) == 1:
        return coef[0] * (2 * codes - 1)
    own = coef[codes, np.arange(coef.shape[1])]
    return own - (coef.sum(axis=0) - own) / (len(coef) - 1)


def _fresh(estimator):
    estimator = without_accountant(estimator)
    names = seeds(estimator)
    return estimator.set_params(**dict.fromkeys(names)) if names else estimator


def _observed(estimator, X, y, probe, n_fits):
    """Return what each of some fits publishes, and answers to the canary."""
    fits = (_fresh(estimator).fit(X, y) for _ in range(n_fits))
    return [(published_floats(fitted), _answers(fitted, probe)) for fitted in fits]


def _answers(fitted, probe):
    for name in ("decision_function", "predict_proba", "predict", "transform"):
        if hasattr(fitted, name):
            answers = getattr(fitted, name)(probe)
            answers = answers.toarray() if hasattr(answers, "toarray") else np.asarray(answers)
            return answers.ravel() if answers.dtype.kind in "biuf" else np.empty(0)
    return np.empty(0)


def _relation(estimator):
    """Return the relation of the estimator's ledger, add/remove without one."""
    for accountant in accountants(estimator).values():
        return relation_of(accountant)
    return "add_remove"


def _claim(estimator, epsilon, delta):
    parameters = estimator.get_params()
    if epsilon is None:
        epsilon = parameters.get("epsilon")
        if epsilon is None:
            raise ValueError("the estimator claims no epsilon: say which claim to audit")
    return check_privacy_parameters(
        epsilon, parameters.get("delta", 0.0) if delta is None else delta
    )


def _norm(estimator, X, canary_norm):
    if canary_norm is None:
        canary_norm = estimator.get_params().get("data_norm")
    if isinstance(canary_norm, float | int):
        return float(canary_norm)
    return float(np.max(np.linalg.norm(np.asarray(X, dtype=np.float64), axis=1)))
