"""Certified lower bounds on epsilon, by attacks on fitted estimators."""

import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import compress
from typing import Literal

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.utils import check_random_state

from skdp._data._frames import take_rows
from skdp._data._persons import read_persons
from skdp._fitting._findings import muted_findings
from skdp._fitting._progress_line import run_jobs
from skdp.accounting import Guarantee, Neighbors, convert_relation, gdp_to_epsilon
from skdp.audit import _tables
from skdp.audit._bounds import halved_epsilon, one_run_epsilon, one_run_gaussian_epsilon
from skdp.audit._distinguish import (
    NO_TEST,
    TestResult,
    certified_epsilon,
    choose_test,
    estimate_bound,
)
from skdp.audit._outputs import accountants, fit_persons, parameter, relation_in, shadow
from skdp.audit._published import as_matrix, observe
from skdp.base import terms_of
from skdp.exceptions import PrivacyViolationWarning
from skdp.utils._documents import PrintedDocument, Section, count_of
from skdp.utils._types import Relation, TableLike, Unit
from skdp.utils._validation import RELATIONS, check_choice, check_integer, check_is_estimator
from skdp.utils._values import FrozenValue

# Rounds of an audit with n_fits=None: fits per table to choose a test, fits per table to evaluate
# it (both include earlier rounds), and the fraction of the error 1 - confidence. In simulations
# with too little Laplace noise, these rounds prove a violation as often as a single round of 500 +
# 500 fits. Most audits of correct estimators end after the first round.
ROUNDS = ((100, 100, 0.1), (200, 250, 0.2), (350, 650, 0.7))
# Fractions of the canaries about which "one_run" guesses. The error probability is split equally
# between these fractions.
GUESSED_FRACTIONS = (0.05, 0.1, 0.2, 0.4, 1.0)
# Description of "worst_case" for readers without knowledge of statistics.
WORST_CASE = (
    "The audit trained the model {runs} times on two artificial tables that differ in one "
    "{canary}, the one that is easiest to notice, and tried to tell from the results which table "
    "was used."
)
# Description of each method, by its name and `EpsilonAudit.is_replaced`.
ATTEMPTS = {
    ("worst_case", False): WORST_CASE,
    ("worst_case", True): WORST_CASE,
    ("two_worlds", False): (
        "The audit trained the model {runs} times, with and without one conspicuous {canary}, and "
        "tried to tell from the results whether it was there."
    ),
    ("two_worlds", True): (
        "The audit trained the model {runs} times, with one conspicuous {canary} and with another "
        "one in its place, and tried to tell from the results which of the two was there."
    ),
    ("one_run", False): (
        "The audit trained the model once on a table to which {canaries} had been added by coin "
        "flips, and tried to tell from the result which of them were in the table."
    ),
    ("one_run", True): (
        "The audit trained the model once on a table with {canaries} whose labels had been chosen "
        "by coin flips, and tried to tell from the result which labels they had."
    ),
}
# Singular and plural of the canary, by its privacy unit.
CANARIES = {
    "row": ("record", "records"),
    "group": ("group of {rows} equal rows", "groups of {rows} equal rows"),
    "person": ("person", "persons"),
}
# Number of rows of a canary that is a person.
ROWS_OF_A_PERSON = 10


@dataclass(frozen=True)
class EpsilonAudit(PrintedDocument, FrozenValue):
    """A certified lower bound on epsilon, compared with a claim.

    The printed text explains in plain words what was tried, what it shows and what it does not
    show. A notebook also shows the method, and `to_dict` returns JSON values.

    Parameters
    ----------
    lower_bound : float
        The true epsilon at the claim's delta is at least this, with the stated confidence.
    epsilon, delta : float
        The claim.
    confidence : float
        Confidence of the bound.
    method : str
        Method that created the two tables.
    attack : str
        Description of the test that certified the bound.
    runs : int
        Number of fits.
    gaussian : bool
        True if the bound assumes the trade-off curve of a Gaussian mechanism.
    unit : {"row", "person", "group"}, default="row"
        Privacy unit of a canary.
    canary_rows : int, default=1
        Number of rows of a canary, which are equal.
    is_replaced : bool, default=False
        True if a canary was replaced by another one, False if it was added or removed.
    """

    lower_bound: float
    epsilon: float
    delta: float
    confidence: float
    method: str
    attack: str
    runs: int
    gaussian: bool = False
    unit: Unit = "row"
    canary_rows: int = 1
    is_replaced: bool = False

    @property
    def violation(self):
        """True if the bound is above the claim."""
        return self.lower_bound > self.epsilon

    def __str__(self):
        return self._verdict()

    def to_dict(self):
        """Return the audit as JSON values.

        Returns
        -------
        dict
            The attributes, `violation`, and the verdict in plain words, "words".
        """
        return asdict(self) | {"violation": self.violation, "words": self._verdict()}

    def _verdict(self):
        """Return the verdict in plain words: the attack, its result, and the limits of both."""
        condition = f"confidence {self.confidence:g}"
        if self.gaussian:
            condition += ", assuming the trade-off curve of a Gaussian mechanism"
        canary, canaries = (text.format(rows=self.canary_rows) for text in CANARIES[self.unit])
        tried = ATTEMPTS[self.method, self.is_replaced].format(
            runs=self.runs, canary=canary, canaries=canaries
        )
        claim = f"epsilon = {self.epsilon:g}"
        if self.delta:
            claim += f" and delta = {self.delta:g}"
        proved = f"epsilon is at least {self.lower_bound:.3g} ({condition})"
        if self.violation:
            return (
                f"VIOLATION: the claim of {claim} does not hold. {tried} It "
                f"succeeded too often: this attack proves that {proved}. Do not publish "
                "models of this estimator as private until the cause is found."
            )
        return (
            f"No violation was found. {tried} It succeeded no more often than the claim of {claim} "
            f"allows: this attack proves that {proved}. This is not a "
            "proof of the claim: no attack can show that a claim holds, because a better one may "
            "find more."
        )

    def section(self):
        """Return the audit as a section of a printed document.

        Returns
        -------
        Section
        """
        heading = f"Audit of a claim of ({self.epsilon:g}, {self.delta:g})-differential privacy"
        rows = (("method", f"{self.method!r}, {count_of(self.runs, 'fit')}, by {self.attack}"),)
        return Section(heading, rows, notes=(self._verdict(),))


def audit_epsilon(
    estimator: BaseEstimator,
    X: TableLike | None = None,
    y: ArrayLike | None = None,
    *,
    groups: ArrayLike | None = None,
    method: Literal["worst_case", "two_worlds", "one_run"] = "worst_case",
    epsilon: float | None = None,
    delta: float | None = None,
    canary: tuple[ArrayLike, object] | None = None,
    replacement: tuple[ArrayLike, object] | None = None,
    relation: Relation | None = None,
    n_fits: int | None = None,
    n_samples: int = 500,
    n_canaries: int = 1000,
    canary_norm: float | None = None,
    gaussian: bool = False,
    confidence: float = 0.95,
    n_jobs: int | None = None,
    random_state: int | None = None,
    verbose: int | None = None,
) -> EpsilonAudit:
    """Return a certified lower bound on epsilon from attacks on an estimator.

    Parameters
    ----------
    estimator : estimator
        Any estimator that is fitted to X and y. The audit fits clones, which charge no accountant
        of skdp and draw fresh noise even if `random_state` is set.
    X : array-like of shape (n_samples, n_features), default=None
        Table for "two_worlds" and "one_run"; "worst_case" creates its own tables.
    y : array-like of shape (n_samples,), default=None
        Targets or labels of X.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row of X. A canary is then a person with ten equal rows. "worst_case"
        creates persons if the estimator's accountant has unit="person". If the unit is a group, a
        canary is a group of `max_rows` equal rows, which are removed or replaced together.
    method : {"worst_case", "two_worlds", "one_run"}, default="worst_case"
        "worst_case": many fits on two synthetic tables in which one row has the largest effect
        on a linear model. "two_worlds": many fits on X with a canary and without it (Jagielski et
        al. 2020). Both use every number within the fitted estimator, including nested objects,
        and the model's output for the canary. "one_run": one fit on X with canaries in separate
        columns, each present by a coin flip (Steinke et al. 2023); it uses the model's outputs for
        them.
    epsilon, delta : float, default=None
        The claim, for the unit of the estimator's accountant; None uses the parameters of the
        estimator, with a delta of 0 if it has none.
    canary : tuple of (row, label), default=None
        Canary for "two_worlds". None tries two rows in the direction in which X varies least: one
        with the largest norm in X, and one with ten times that norm or `data_norm`, which a private
        estimator must clip.
    replacement : tuple of (row, label), default=None
        Row in the other table of "two_worlds". None removes the canary, or gives it another label
        under "replace_one". Under "add_remove", a replacement is a removal and an addition, and the
        returned bound is for one of the two steps.
    relation : {"add_remove", "replace_one"}, default=None
        Relation of the claim. None uses the relation of the estimator's accountant, or "add_remove"
        without an accountant. Fitted clones keep the accountant's relation.
    n_fits : int, default=None
        Number of fits to each of the two tables; half of them are used to choose the test. None
        runs 200 fits, and continues to 450 and to 1000 as long as 1000 fits could prove a violation
        at about the observed error rates.
    n_samples : int, default=500
        Number of rows in the tables of "worst_case"; a canary with several rows counts as one.
    n_canaries : int, default=1000
        Number of canaries for "one_run".
    canary_norm : float, default=None
        Norm of the canaries for "one_run"; None uses the estimator's `data_norm`, or the largest
        norm of a row of X.
    gaussian : bool, default=False
        Use the trade-off curve of a Gaussian mechanism for the bound (Nasr et al. 2023). This is
        valid only if the mechanism is known to have this curve, as full-batch Gaussian steps do. It
        needs delta > 0.
    confidence : float, default=0.95
        Confidence of the bound.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib.
    random_state : int or None, default=None
        Seed of the coins and labels of the canaries, never of the estimator's noise.
    verbose : int, default=None
        None shows the number of planned and of finished fits on a terminal or in a notebook, in
        one line of the standard error. 0 shows nothing; larger values have the same meaning as in
        joblib.

    Returns
    -------
    EpsilonAudit

    Raises
    ------
    ValueError
        If there is no claim, an option is invalid, or a classifier's canary has a label that is
        neither in y nor declared.

    Warns
    -----
    PrivacyViolationWarning
        If the bound is above the claim.

    Notes
    -----
    Half of the fits are used to choose a canary, a number and a threshold; the other half are used
    to evaluate them. A canary for which the estimator raises a `ValueError` is left out.

    Under "add_remove", the table without the row is one row shorter, but skdp assumes that the
    number of rows is public. Published numbers that depend only on this number are left out. A
    mean, however, changes as much with its divisor as with the row. Therefore, if fits have a
    `privacy_` statement and the bound is above the claim, the audit is repeated with tables of
    equal size, which contain the most central row instead of the canary. If the fits that choose
    the test already suggest this, it is not evaluated before. The tables of equal size differ by
    a removal and an addition, and the bound for one of the two is returned.

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
    check_is_estimator(estimator, "estimator")
    if relation is None:
        relation = relation_in(estimator)
    claim = _claim(estimator, epsilon, delta, Neighbors(relation=relation))
    if gaussian and claim.delta == 0.0:
        raise ValueError("gaussian=True needs a claim with delta > 0, got delta=0: pass delta")
    if method != "worst_case" and (X is None or y is None):
        raise ValueError(f"method={method!r} needs X and y: pass both, or use 'worst_case'")
    # Clones charge no accountant, and each draws fresh noise.
    estimator = shadow(estimator)
    persons = None
    if groups is not None:
        persons = read_persons(groups, _n_rows(y)).codes
    if method == "one_run":
        n_canaries = check_integer(n_canaries, "n_canaries", 20)
        random = check_random_state(random_state)
        norm = _canary_norm(estimator, X, canary_norm)
        canaries = _tables.orthogonal_canaries(X, y, n_canaries, norm, relation, random)
        fitter = _Fitter(estimator, _n_rows(y), _rows_of_unit(estimator, persons), persons)
        result = _one_run(
            fitter, canaries, delta=claim.delta, confidence=confidence, gaussian=gaussian
        )
        n_runs = 1
    else:
        if method == "worst_case":
            n_samples = check_integer(n_samples, "n_samples", 4)
            pairs = _tables.worst_case_tables(estimator, n_samples, relation)
            persons = _one_row_persons(estimator, n_samples - 1)
        else:
            pairs = _canary_pairs(estimator, X, y, canary, relation, replacement)
        # A replacement under add/remove is a removal and an addition.
        is_two_steps = (
            method == "two_worlds" and replacement is not None and relation == "add_remove"
        )
        n_others = len(pairs[0].y_in) - 1
        fitter = _Fitter(estimator, n_others, _rows_of_unit(estimator, persons), persons)
        run = _CountedRuns(n_jobs, verbose)
        new_attack = partial(
            _Attack, fitter=fitter, run=run, claim=claim, confidence=confidence, gaussian=gaussian
        )
        rounds = _rounds(n_fits, confidence)
        result, n_runs = _attack_pairs(pairs, is_two_steps, rounds, new_attack, run)
    audit = EpsilonAudit(
        lower_bound=result.epsilon,
        epsilon=claim.epsilon,
        delta=claim.delta,
        confidence=confidence,
        method=method,
        attack=result.test,
        runs=n_runs,
        gaussian=gaussian,
        unit=fitter.unit,
        canary_rows=fitter.canary_rows,
        is_replaced=relation == "replace_one" or replacement is not None,
    )
    if audit.violation:
        warnings.warn(str(audit), PrivacyViolationWarning, stacklevel=2)
    return audit


def _canary_norm(estimator, X, canary_norm):
    """Return the norm of the canaries: the parameter, the declared norm, or the largest in X."""
    if canary_norm is None:
        canary_norm = _tables.declared_norm(estimator)
    if canary_norm is None:
        canary_norm = np.max(np.linalg.norm(_tables.coordinates(_tables.as_table(X)), axis=1))
    return canary_norm


def _one_row_persons(estimator, n_rows):
    """Return codes of one-row persons if an accountant's unit is the person, else None."""
    if any(terms_of(accountant).unit == "person" for accountant in accountants(estimator)):
        return np.arange(n_rows)
    return None


def _canary_pairs(estimator, X, y, canary, relation, replacement):
    """Return the pairs of tables of "two_worlds", one per canary, with checked labels."""
    canaries = [canary]
    if canary is None:
        canaries = _tables.default_canaries(estimator, X, y)
    pairs = [_tables.canary_tables(X, y, row, relation, replacement) for row in canaries]
    if is_classifier(estimator):
        for pair in pairs:
            _check_labels(pair, y, parameter(estimator, "classes"))
    return pairs


def _attack_pairs(pairs, is_two_steps, rounds, new_attack, run):
    """Return the result of attacks on pairs of neighboring tables, and the number of fits.

    A violation found with a removed row is tested again with tables of equal size, because a mean
    also changes with its divisor, and skdp treats the number of rows as public. If the fits that
    are used to choose the test already suggest one, it is not evaluated on further fits before.

    Parameters
    ----------
    pairs : list of NeighboringTables
    is_two_steps : bool
        True if the tables of a pair are two steps apart.
    rounds : list of _Round
        Numbers of fits, with which the attacks are run one after another.
    new_attack : callable
        Maps a pair and `is_two_steps` to an `_Attack`.
    run : _CountedRuns
    """
    attacks = [new_attack(pair, is_two_steps=is_two_steps) for pair in pairs]
    result, attack, n_runs = _run_attacks(attacks, rounds, run)
    if result is None or (result.epsilon > attack.claim.epsilon and attack.may_differ_by_size):
        same_size = _tables.with_as_many_rows(attack.tables)
        attacks = [new_attack(same_size, is_two_steps=True)]
        result, _, n_more = _run_attacks(attacks, rounds, run)
        result = replace(result, test=f"{result.test}, tables of one size")
        n_runs += n_more
    return result, n_runs


@dataclass(frozen=True)
class _Round(FrozenValue):
    """The number of fits to each table, including earlier rounds, and the confidence.

    Parameters
    ----------
    n_choosing, n_judging : int
        Number of fits to each table that are used to choose a test, and to evaluate it.
    confidence : float
        Confidence of the bound of this round.
    """

    n_choosing: int
    n_judging: int
    confidence: float

    @property
    def n_fits(self):
        """Number of fits to both tables."""
        return 2 * (self.n_choosing + self.n_judging)


def _rounds(n_fits, confidence):
    """Return the rounds of an audit as a list of `_Round`.

    The errors of all rounds add up to 1 - confidence, so their bounds hold together.
    """
    if n_fits is not None:
        n_fits = check_integer(n_fits, "n_fits", 20)
        return [_Round(n_fits - n_fits // 2, n_fits // 2, confidence)]
    return [
        _Round(n_choosing, n_judging, 1.0 - part_of_error * (1.0 - confidence))
        for n_choosing, n_judging, part_of_error in ROUNDS
    ]


def _n_rows(y):
    """Return the number of rows that have these targets."""
    return len(y)


def _rows_of_unit(estimator, persons):
    """Return the number of rows of a canary."""
    if persons is not None:
        return ROWS_OF_A_PERSON
    units = [terms_of(accountant) for accountant in accountants(estimator)]
    return max((terms.max_rows for terms in units if terms.unit == "group"), default=1)


def _check_labels(tables, y, declared):
    """Raise `ValueError` if a canary has a label that is neither in y nor declared."""
    labels = y
    if declared is not None:
        labels = np.append(y, declared)
    unknown = np.setdiff1d(np.append(tables.y_in, tables.y_out), labels).tolist()
    if unknown:
        raise ValueError(
            f"canary has the label {unknown[0]!r}, which is not in y. The set of labels is public: "
            "use a label of y, or declare `classes`"
        )


class _CountedRuns:
    """Run fits, and show the numbers of planned and finished ones.

    Parameters
    ----------
    n_jobs, verbose : int or None
        As in `audit_epsilon`.
    """

    def __init__(self, n_jobs, verbose):
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.n_done = self.n_planned = 0

    def __call__(self, jobs, n):
        results = run_jobs(
            jobs,
            line_format="audit_epsilon: {} of {} fits",
            n=self.n_planned,
            n_done=self.n_done,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        self.n_done += n
        return results


@dataclass(frozen=True, eq=False)
class _Fitter(FrozenValue):
    """Fit clones of an estimator to tables whose last rows are canaries.

    Parameters
    ----------
    estimator : estimator
    n_others : int
        Number of rows before the canaries.
    canary_rows : int
        Number of equal rows of each canary: the rows of its privacy unit.
    persons : ndarray of shape (n_others,), default=None
        Person ids of the other rows, if the privacy unit is a person.
    """

    estimator: object
    n_others: int
    canary_rows: int = 1
    persons: object = None

    @property
    def unit(self):
        """Privacy unit of a canary."""
        if self.persons is not None:
            return "person"
        if self.canary_rows > 1:
            return "group"
        return "row"

    @muted_findings()
    def fit(self, X, y, *, canary_rows=None, other_rows=1):
        """Return a fitted clone; canaries have `canary_rows` equal rows, others `other_rows`."""
        model = clone(self.estimator)
        if canary_rows is None:
            canary_rows = self.canary_rows
        if canary_rows == other_rows == 1 and self.persons is None:
            return model.fit(X, y)
        indices = np.arange(len(y))
        repeated = np.repeat(indices, np.where(indices < self.n_others, other_rows, canary_rows))
        X, y = take_rows(X, repeated), y[repeated]
        if self.persons is None:
            return model.fit(X, y)
        n_canaries = max(len(indices) - self.n_others, 0)
        ids = np.append(self.persons, self.persons.max() + 1 + np.arange(n_canaries))
        return fit_persons(model, X, y, ids[repeated])

    def fit_and_observe(self, X, y, probe, *, canary_rows=None, other_rows=1):
        """Return all numbers in a fitted clone, and its output for the probe."""
        fitted = self.fit(X, y, canary_rows=canary_rows, other_rows=other_rows)
        return observe(fitted, probe)


class _Attack:
    """An attack that tries to distinguish between fits to two neighboring tables.

    The test is chosen on some fits and evaluated on others.

    Parameters
    ----------
    tables : NeighboringTables
    fitter : _Fitter
    run : callable
        Function that runs delayed calls; see `run_jobs`.
    claim : Guarantee
        The claim for one row.
    confidence : float
        Confidence of the bound.
    gaussian : bool
        Use the trade-off curve of a Gaussian mechanism for the bound.
    is_two_steps : bool
        True if the tables differ by both a removal and an addition.
    """

    def __init__(self, tables, fitter, run, claim, confidence, gaussian, is_two_steps):
        self.tables = tables
        self.claim = claim
        self._fitter = fitter
        self._run = run
        self._confidence = confidence
        self._gaussian = gaussian
        self._is_two_steps = is_two_steps
        # Observations of the fits to each of the two tables.
        self._choosing = ([], [])
        self._judging = ([], [])
        self._others = self._numbers = self._test = None
        # The test that `choose` returned, and the fits to each table that it used.
        self._chosen = self._choice_fits = self._n_chosen = None

    @property
    def may_differ_by_size(self):
        """True if a removed row also changes the number of rows, which a statement calls public."""
        names = self._choosing[0][0]
        return self.tables.is_removal and any("privacy_." in name for name in names)

    def seems_to_exceed_claim(self, n_judging, confidence):
        """Return True if `n_judging` fits to each table would probably certify more than the claim.

        This is estimated from the fits that are used to choose the test.
        """
        test = self.choose()
        if test is None:
            return False
        bound = estimate_bound(
            test,
            *self._choice_fits,
            n_judging,
            delta=self._delta_between_tables,
            confidence=confidence,
            gaussian=self._gaussian,
        )
        if self._gaussian:
            bound = gdp_to_epsilon(max(bound, 0.0), self.claim.delta)
        return bound > self.claim.epsilon

    @property
    def n_choosing(self):
        """Number of fits to each table that are used to choose the test."""
        return len(self._choosing[0])

    def fit(self, n_choosing, n_judging):
        """Fit until each table has these numbers of fits to choose and to evaluate the test."""
        self._fit(self._choosing, n_choosing)
        self._fit(self._judging, n_judging)

    def _fit(self, observations, n_target):
        """Fit until there are `n_target` observations of each table; earlier ones count.

        Parameters
        ----------
        observations : tuple of (list, list)
            Output of `observe` for the fits to the table with the canary, and to the one without
            it. New ones are appended.
        n_target : int
        """
        tables = self.tables
        # The number of a person's rows is not public: the row that replaces the canary in `X_out`
        # is a person with one row.
        canary_rows = None
        if self._fitter.persons is not None:
            canary_rows = 1
        probe = self._probe
        order = _table_order(n_target - len(observations[0]))
        observe_table = delayed(self._fitter.fit_and_observe)
        jobs = []
        for is_out in order:
            job = observe_table(tables.X_in, tables.y_in, probe)
            if is_out:
                job = observe_table(tables.X_out, tables.y_out, probe, canary_rows=canary_rows)
            jobs.append(job)
        for is_out, observation in zip(order, self._run(jobs, len(order)), strict=True):
            observations[is_out].append(observation)

    @property
    def _probe(self):
        """Rows whose outputs are observed: the canary, which is the last of `X_in`, and the first.

        Noise that shifts both outputs alike, as that of an intercept does, cancels in their
        difference, which `observe` includes for outputs with several columns.
        """
        return take_rows(self.tables.X_in, np.array([len(self.tables.y_in) - 1, 0]))

    def choose(self):
        """Return the best test on the fits used to choose it, or None.

        It is computed once for these fits.
        """
        if self._n_chosen != self.n_choosing:
            self._choice_fits, _, names = self._private_numbers()
            self._chosen = self._choose_test(self._choice_fits, names)
            self._n_chosen = self.n_choosing
        return self._chosen

    def _choose_test(self, fits, names):
        """Return the best test on fits to each of the two tables, or None."""
        return choose_test(
            *fits,
            names=names,
            delta=self._delta_between_tables,
            confidence=self._confidence,
            gaussian=self._gaussian,
        )

    @property
    def _delta_between_tables(self):
        """The delta of all steps between the two tables."""
        delta = self.claim.delta
        if self._is_two_steps:
            _, delta = convert_relation(self.claim.epsilon, delta, *RELATIONS)
        return delta

    def judge(self, confidence):
        """Return the `TestResult` of a test on the fits that were not used to choose it."""
        choosing, judging, names = self._numbers = self._private_numbers()
        test = self._test = self._choose_test(choosing, names)
        if test is None:
            return TestResult(0.0, NO_TEST)
        counts = test.counts(*judging)
        epsilon = self._certified(counts, confidence)
        return TestResult(epsilon, test.description, counts)

    def _certified(self, counts, confidence):
        """Return the epsilon that the counts of a test certify."""
        certify = certified_epsilon
        if self._is_two_steps:
            certify = halved_epsilon
        return certify(
            counts, delta=self.claim.delta, confidence=confidence, gaussian=self._gaussian
        )

    def could_exceed(self, epsilon, n_judging, confidence):
        """Return True if `n_judging` fits to each table could certify more than an epsilon.

        This is estimated from the evaluated test, and from a test that is chosen on the other fits.
        A test without errors is assumed to remain without errors.
        """
        without_error = (n_judging, n_judging, 0, n_judging)
        if self._certified(without_error, confidence) <= epsilon:
            return False
        choosing, judging, names = self._numbers
        hits, n_in, false_alarms, n_out = self._test.counts(*judging)
        if (hits, false_alarms) in ((n_in, 0), (0, n_out)):
            return True
        n_steps = 1
        if self._is_two_steps:
            n_steps = 2
        other_test = self._choose_test(judging, names)
        for test, fits in ((self._test, judging), (other_test, choosing)):
            if test is None:
                continue
            bound = estimate_bound(
                test,
                *fits,
                n_judging,
                delta=self._delta_between_tables,
                confidence=confidence,
                gaussian=self._gaussian,
            )
            bound /= n_steps
            if self._gaussian:
                bound = gdp_to_epsilon(max(bound, 0.0), self.claim.delta)
            if bound > epsilon:
                return True
        return False

    def _private_numbers(self):
        """Return the private numbers in the fits for choice and evaluation, and their descriptions.

        Numbers that depend only on the number of rows are public, and are left out. They are found
        by `_other_fits` only if a number is constant within each of two tables of different sizes.
        """
        groups = [*self._choosing, *self._judging]
        values, names = as_matrix([shown for group in groups for shown in group])
        is_private = ~_same_in_all(values)
        ends = np.cumsum([len(group) for group in groups])
        if self.tables.is_removal and np.any(is_private & self._same_within_tables(values, ends)):
            values, names = as_matrix(
                [shown for group in [*groups, self._other_fits()] for shown in group]
            )
            out = np.r_[ends[0] : ends[1], ends[2] : ends[3]]
            is_public = _same_in_all(np.delete(values, out, axis=0))
            is_private = ~is_public & ~_same_in_all(values[: ends[3]])
        inside, outside, judged_in, judged_out = np.split(values[: ends[3], is_private], ends[:3])
        return (inside, outside), (judged_in, judged_out), list(compress(names, is_private))

    def _same_within_tables(self, values, ends):
        """Return a mask of the numbers that are constant within each of the two tables."""
        choosing_in, choosing_out, judging_in, judging_out = np.split(values[: ends[3]], ends[:3])
        tables = np.vstack([choosing_in, judging_in]), np.vstack([choosing_out, judging_out])
        return _same_in_all(tables[0]) & _same_in_all(tables[1])

    def _other_fits(self):
        """Return observations of fits to further tables, all with the size of the larger table.

        They show which numbers depend only on the number of rows. These tables are neither of the
        two tables of the attack.
        """
        if self._others is None:
            self._others = []
            probe = self._probe
            # A public number must not depend on how many rows a person has.
            other_rows = 1
            if self._fitter.persons is not None:
                other_rows = 2
            for X, y in _tables.other_tables(self.tables):
                # A table for which the estimator raises an error is left out.
                with suppress(ValueError):
                    self._others += [
                        self._fitter.fit_and_observe(X, y, probe, other_rows=other_rows)
                        for _ in range(2)
                    ]
        return self._others


def _same_in_all(values):
    """Return a mask of the columns that are equal in all rows."""
    return np.all(values == values[0], axis=0)


def _table_order(n_fits):
    """Return the order of fits to the tables: 0 with the canary, 1 without it.

    The tables alternate, and so does the order within a pair. Otherwise, a time recorded during a
    fit would distinguish between the tables.
    """
    order = []
    for pair in range(n_fits):
        if pair // 2 % 2:
            order += [0, 1]
        else:
            order += [1, 0]
    return order


def _most_promising(attacks, n_choosing):
    """Return the attack with the best test, judged by some of the fits for each attack.

    Tables for which the estimator raises an error are left out, unless it does so for all tables.
    """
    best = None
    best_bound = -np.inf
    n_left = n_choosing
    for index, attack in enumerate(attacks):
        n_attack_fits = n_left // (len(attacks) - index)
        try:
            attack.fit(n_attack_fits, 0)
        except ValueError:
            if best is None and index == len(attacks) - 1:
                raise
            continue
        n_left -= n_attack_fits
        test = None
        if len(attacks) > 1:
            test = attack.choose()
        bound = -np.inf
        if test is not None:
            bound = test.bound
        if best is None or bound > best_bound:
            best = attack
            best_bound = bound
    return best


def _run_attacks(attacks, rounds, run):
    """Return the result of the most promising attack, the attack, and the number of fits.

    The result is None if only tables of equal size can decide, because these tables differ in size
    and further fits would probably certify more than the claim. Then nothing is certified for them,
    so the estimate needs no confidence.

    Parameters
    ----------
    attacks : list of _Attack
    rounds : list of _Round
        Rounds after the first are run only while they could prove a violation.
    run : _CountedRuns
        Runs the fits of all attacks.
    """
    n_before = run.n_done
    n_choosing = rounds[0].n_choosing
    run.n_planned = n_before + rounds[0].n_fits
    attack = _most_promising(attacks, n_choosing)
    first = rounds[0]
    if attack.may_differ_by_size and attack.seems_to_exceed_claim(
        first.n_judging, first.confidence
    ):
        return None, attack, 2 * n_choosing
    n_elsewhere = n_choosing - attack.n_choosing
    for index, audit_round in enumerate(rounds):
        run.n_planned = n_before + audit_round.n_fits
        attack.fit(audit_round.n_choosing - n_elsewhere, audit_round.n_judging)
        result = attack.judge(audit_round.confidence)
        is_settled = result.epsilon > attack.claim.epsilon or not result.counts
        if is_settled or index == len(rounds) - 1:
            break
        last = rounds[-1]
        if not attack.could_exceed(attack.claim.epsilon, last.n_judging, last.confidence):
            break
    return result, attack, audit_round.n_fits


def _one_run(fitter, canaries, *, delta, confidence, gaussian):
    """Return the `TestResult` of guesses about the canaries in one fit.

    Parameters
    ----------
    fitter : _Fitter
    canaries : Canaries
        The table, and the coins that decided which canaries it has.
    delta, confidence : float
    gaussian : bool
        True to use the trade-off curve of a Gaussian mechanism.
    """
    fitted = fitter.fit(canaries.X, canaries.y)
    m = len(canaries.coins)
    order = np.argsort(_canary_scores(fitted, canaries), kind="stable")
    certify = one_run_epsilon
    if gaussian:
        certify = one_run_gaussian_epsilon
    fraction_confidence = 1.0 - (1.0 - confidence) / len(GUESSED_FRACTIONS)
    bounds = []
    for fraction in GUESSED_FRACTIONS:
        half = max(1, int(fraction * m / 2))
        correct = np.sum(canaries.coins[order[-half:]]) + np.sum(~canaries.coins[order[:half]])
        bounds.append(
            certify(int(correct), 2 * half, m, delta=delta, confidence=fraction_confidence)
        )
    return TestResult(
        max(bounds),
        f"{count_of(m, 'canary', 'canaries')} in separate columns, from the model's outputs for "
        "them",
    )


def _canary_scores(fitted, canaries):
    """Return each canary's effect on the model's output for it, positive toward `canaries.labels`.

    The effect is the output for the canary minus the output for a row without the canary's
    feature. The canaries with the largest effects are guessed to have coins that are True: to be in
    the table, or to have the label in `labels` instead of another one.

    Parameters
    ----------
    fitted : estimator
    canaries : Canaries

    Returns
    -------
    ndarray of shape (n_canaries,)
        For classifiers, the effect on the label's output minus the mean effect on the others.
    """
    names = ("decision_function", "predict_proba")
    if is_regressor(fitted):
        names = ("predict",)
    name = next((name for name in names if hasattr(fitted, name)), None)
    if name is None:
        raise ValueError(
            "method='one_run' needs an estimator with predict (regressors), decision_function or "
            "predict_proba"
        )
    outputs = np.asarray(getattr(fitted, name)(canaries.rows), dtype=float)
    # The last row has zeros in the columns of all canaries.
    effects = (outputs[:-1] - outputs[-1]).reshape(len(canaries.coins), -1)
    if is_regressor(fitted):
        # Targets may all have one sign. A canary moves the output for its row from that for other
        # rows toward its target.
        return effects[:, 0] * np.sign(canaries.labels - outputs[-1])
    if effects.shape[1] == 1:
        effects = np.hstack([-effects, effects])
    classes = np.searchsorted(fitted.classes_, canaries.labels)
    label_effects = effects[np.arange(len(effects)), classes]
    other_effects = (effects.sum(axis=1) - label_effects) / (effects.shape[1] - 1)
    return label_effects - other_effects


def _claim(estimator, epsilon, delta, neighbors):
    """Return the audited claim as a `Guarantee`."""
    parameters = estimator.get_params()
    if epsilon is None:
        epsilon = parameters.get("epsilon")
    if epsilon is None:
        raise ValueError(
            "epsilon=None needs an estimator with a parameter epsilon: pass the epsilon to audit"
        )
    if delta is None:
        delta = parameters.get("delta", 0.0)
    return Guarantee(epsilon=epsilon, delta=delta, neighbors=neighbors)
