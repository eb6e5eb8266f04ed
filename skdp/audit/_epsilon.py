"""How much of a claimed epsilon an attacker can prove."""

import warnings
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from itertools import compress

import numpy as np
from joblib import delayed
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import check_random_state

from skdp._data._persons import read_persons
from skdp.accounting import Guarantee, Neighbours, convert_relation
from skdp.audit import _tables
from skdp.audit._bounds import halved_epsilon, one_run_epsilon, one_run_gaussian_epsilon
from skdp.audit._outputs import accountants, fit_persons, parameter, relation_in, shadow
from skdp.audit._published import Verdict, as_matrix, distinguish, observe
from skdp.base import terms_of
from skdp.exceptions import PrivacyViolationWarning
from skdp.utils._documents import PrintedDocument, Section
from skdp.utils._findings import muted_findings
from skdp.utils._frames import take_rows
from skdp.utils._progress import run_jobs
from skdp.utils._validation import RELATIONS, check_choice, check_integer
from skdp.utils._values import FrozenValue

# How many of the canaries are guessed: several fractions, each with its part of the error.
GUESSED = (0.05, 0.1, 0.2, 0.4, 1.0)
# The rows of a canary that is a person.
ROWS_OF_A_PERSON = 10


class EpsilonAudit(PrintedDocument, FrozenValue):
    """A certified lower bound on epsilon beside the claim.

    Printing gives text, a notebook shows HTML, `to_dict` gives JSON values.

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

    def section(self):
        """Return it as a part of a document.

        Returns
        -------
        Section
        """
        heading = f"Audit of a claim of ({self.epsilon:g}, {self.delta:g})-differential privacy"
        rows = (("method", f"{self.method!r}, {self.runs} fits, by {self.attack}"),)
        assumed = ("Assuming the trade-off curve of a Gaussian mechanism.",) * self.gaussian
        return Section(heading, rows, notes=(self._words(), *assumed))


def audit_epsilon(
    estimator,
    X=None,
    y=None,
    *,
    groups=None,
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
    verbose=None,
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
    groups : array-like of shape (n_samples,), default=None
        An id of the person of each row of X. A canary is then a person of several equal rows.
        "worst_case" makes persons where the estimator's accountant has such a unit.
    method : {"worst_case", "two_worlds", "one_run"}, default="worst_case"
        "worst_case": many fits on two tables made so that one row moves a linear model as far
        as it can. "two_worlds": many fits on X with a canary and without it (Jagielski et al.
        2020). Both look at every number within the fitted estimator, whatever is nested in what,
        and at the model's answer to the canary. "one_run": one fit on X with canaries in columns
        of their own, each in by a coin (Steinke et al. 2023), by the model's answers to them.
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
    verbose : int, default=None
        None shows on a terminal or in a notebook how many fits there will be and how many are
        made, in one line of the standard error; 0 shows nothing, more is as in joblib.

    Returns
    -------
    EpsilonAudit

    Raises
    ------
    ValueError
        If there is no claim, an option is not as described, or a classifier's canary has a label
        that is neither in y nor declared.

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
    check_choice(method, "method", ("worst_case", "two_worlds", "one_run"))
    relation = relation_in(estimator) if relation is None else relation
    claim = _claim(estimator, epsilon, delta, Neighbours(relation=relation))
    if gaussian and claim.delta == 0.0:
        raise ValueError("gaussian=True needs a claim with delta above 0")
    if method != "worst_case" and (X is None or y is None):
        raise ValueError(f"method={method!r} needs X and y")
    # Clones charge no accountant, and each draws fresh noise.
    estimator = shadow(estimator)
    bounded = {"delta": claim.delta, "confidence": confidence, "gaussian": gaussian}
    persons = None if groups is None else read_persons(groups, len(y)).codes
    if method == "one_run":
        n_canaries = check_integer(n_canaries, "n_canaries", 20)
        norm = parameter(estimator, "data_norm") if canary_norm is None else canary_norm
        if not isinstance(norm, float | int):
            norm = np.max(np.linalg.norm(_tables.coordinates(_tables.as_table(X)), axis=1))
        random = check_random_state(random_state)
        canaries = _tables.orthogonal_canaries(X, y, n_canaries, norm, relation, random)
        found, runs = _one_run(estimator, canaries, persons, **bounded), 1
    else:
        if method == "worst_case":
            n_samples = check_integer(n_samples, "n_samples", 4)
            worlds = _tables.worst_case_worlds(estimator, n_samples, relation)
            by_person = any(terms_of(each).unit == "person" for each in accountants(estimator))
            persons = np.arange(n_samples - 1) if by_person else None
        else:
            worlds = _tables.canary_worlds(X, y, canary, relation, replacement)
            if is_classifier(estimator):
                _check_labels(worlds, y, parameter(estimator, "classes"))
        twice = method == "two_worlds" and replacement is not None and relation == "add_remove"
        n_fits = check_integer(n_fits, "n_fits", 20)
        what = "audit_epsilon: {} of {} fits"
        run = partial(run_jobs, n_jobs=n_jobs, verbose=verbose, what=what)
        fit = partial(_fitted, estimator, persons)
        attack = partial(_many_runs, fit, n_fits=n_fits, run=run, **bounded)
        found, runs = attack(worlds, claim if twice else None), 2 * n_fits
        if found.epsilon > claim.epsilon and len(worlds.y_in) > len(worlds.y_out) and found.states:
            again, runs = attack(_tables.with_as_many_rows(worlds), claim), 2 * runs
            found = replace(again, test=f"{again.test}, tables of one size")
    audit = EpsilonAudit(
        found.epsilon, claim.epsilon, attack=found.test, runs=runs, method=method, **bounded
    )
    if audit.violation:
        warnings.warn(audit.to_dict()["words"], PrivacyViolationWarning, stacklevel=2)
    return audit


def _check_labels(worlds, y, declared):
    known = np.append(y, y if declared is None else declared)
    new = np.setdiff1d(np.append(worlds.y_in, worlds.y_out), known).tolist()
    if new:
        raise ValueError(
            f"a canary has the label {new[0]!r}, which y has not: which labels there are is public"
        )


def _many_runs(fit, worlds, claim, *, n_fits, run, delta, **bounded):
    """Return what the fits certify.

    With a claim for a removed row the worlds differ by a removal and an addition.
    """
    probe = take_rows(worlds.X_in, np.array([len(worlds.y_in) - 1, 0]))

    def seen(X, y, **counts):
        return observe(fit(X, y, **counts), probe)

    tables = ((worlds.X_in, worlds.y_in), (worlds.X_out, worlds.y_out))
    turns = _turns(n_fits)
    jobs = (delayed(seen)(*tables[world], **({"own": 1} if world else {})) for world in turns)
    fits = run(jobs, n=len(turns))
    runs = [fits[turn] for turn in np.argsort(turns, kind="stable")]
    values, names = as_matrix(runs)
    private = ~_same_in_all(values)
    steady = _same_in_all(values[:n_fits]) & _same_in_all(values[n_fits:])
    if len(worlds.y_in) > len(worlds.y_out) and np.any(private & steady):
        others = []
        for X, y in _tables.other_tables(worlds):
            # A table that is refused is left out.
            with suppress(ValueError):
                # What is public of persons is the same however many rows they have.
                others += [seen(X, y, rows=2) for _ in range(2)]
        values, names = as_matrix([*runs, *others])
        known = _same_in_all(np.delete(values, np.s_[n_fits : 2 * n_fits], axis=0))
        private = ~known & ~_same_in_all(values[: 2 * n_fits])
    inside, outside = np.split(values[: 2 * n_fits, private], 2)
    apart = delta
    if claim is not None:
        _, apart = convert_relation(claim.epsilon, claim.delta, *RELATIONS)
    shown = list(compress(names, private))
    verdict = distinguish(inside, outside, names=shown, delta=apart, **bounded)
    verdict = replace(verdict, states=any("privacy_." in name for name in names))
    if claim is None or not verdict.counts:
        return verdict
    return replace(verdict, epsilon=halved_epsilon(*verdict.counts, delta=delta, **bounded))


def _same_in_all(values):
    return np.all(values == values[0], axis=0)


def _turns(n_fits):
    """Return the worlds, 0 and 1, in the order in which they are fitted.

    The worlds alternate, and so does the order in a pair. Otherwise a time that a fit records
    would tell the worlds apart.
    """
    return [world for pair in range(n_fits) for world in ((0, 1) if pair // 2 % 2 else (1, 0))]


@muted_findings()
def _fitted(estimator, persons, X, y, rows=1, own=ROWS_OF_A_PERSON):
    """Fit a clone; with persons, those who are behind these have one row in X each, and get `own`.

    The others get `rows` of each of theirs.
    """
    if persons is None:
        return clone(estimator).fit(X, y)
    n_others = len(persons)
    ids = np.append(persons, len(y) + np.arange(n_others, len(y)))[: len(y)]
    places = np.arange(len(y))
    places = np.repeat(places, np.where(places < n_others, rows, own))
    return fit_persons(clone(estimator), take_rows(X, places), y[places], ids[places])


def _one_run(estimator, canaries, persons, *, delta, confidence, gaussian):
    fitted = _fitted(estimator, persons, canaries.X, canaries.y)
    m = len(canaries.coins)
    order = np.argsort(_canary_scores(fitted, canaries), kind="stable")
    certify = one_run_gaussian_epsilon if gaussian else one_run_epsilon
    each = 1.0 - (1.0 - confidence) / len(GUESSED)
    bounds = []
    for fraction in GUESSED:
        half = max(1, int(fraction * m / 2))
        correct = np.sum(canaries.coins[order[-half:]]) + np.sum(~canaries.coins[order[:half]])
        bounds.append(certify(int(correct), 2 * half, m, delta=delta, confidence=each))
    return Verdict(max(bounds), f"{m} canaries in columns of their own, by the model's answers")


def _canary_scores(fitted, canaries):
    """Return how far each canary pulled the model's answer to itself to its label."""
    names = ("predict",) if is_regressor(fitted) else ("decision_function", "predict_proba")
    name = next((name for name in names if hasattr(fitted, name)), None)
    if name is None:
        raise ValueError("method='one_run' needs a model with scores of rows")
    answers = np.asarray(getattr(fitted, name)(canaries.rows), dtype=float)
    pulls = (answers[:-1] - answers[-1]).reshape(len(canaries.coins), -1)
    if is_regressor(fitted):
        return pulls[:, 0] * np.sign(canaries.labels)
    if pulls.shape[1] == 1:
        pulls = np.hstack([-pulls, pulls])
    own = pulls[np.arange(len(pulls)), np.searchsorted(fitted.classes_, canaries.labels)]
    return own - (pulls.sum(axis=1) - own) / (pulls.shape[1] - 1)


def _claim(estimator, epsilon, delta, neighbours):
    parameters = estimator.get_params()
    epsilon = parameters.get("epsilon") if epsilon is None else epsilon
    if epsilon is None:
        raise ValueError("the estimator claims no epsilon: say which claim to audit")
    delta = parameters.get("delta", 0.0) if delta is None else delta
    return Guarantee(epsilon=epsilon, delta=delta, neighbours=neighbours)
