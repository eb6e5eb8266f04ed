"""Certified lower bounds on epsilon, by attacks on fitted estimators."""

import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import compress

import numpy as np
from joblib import delayed
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import check_random_state

from skdp._data._persons import read_persons
from skdp.accounting import Guarantee, Neighbors, convert_relation, gdp_to_epsilon
from skdp.audit import _tables
from skdp.audit._bounds import halved_epsilon, one_run_epsilon, one_run_gaussian_epsilon
from skdp.audit._distinguish import (
    NO_TEST,
    TestResult,
    attainable_bound,
    certified_epsilon,
    choose_test,
)
from skdp.audit._outputs import accountants, fit_persons, parameter, relation_in, shadow
from skdp.audit._published import as_matrix, observe
from skdp.base import terms_of
from skdp.exceptions import PrivacyViolationWarning
from skdp.utils._documents import PrintedDocument, Section
from skdp.utils._findings import muted_findings
from skdp.utils._frames import take_rows
from skdp.utils._progress import run_jobs
from skdp.utils._validation import RELATIONS, check_choice, check_integer
from skdp.utils._values import FrozenValue

# Rounds of an audit where `n_fits` is None: the fits to each table that choose a test, and those
# that judge it, with the fits of earlier rounds, and the part of the error, 1 - confidence, of the
# bound. In simulations of Laplace noise that is too small they prove a violation as often as
# one round of 500 and 500 fits. Most audits of sound estimators end after the first.
ROUNDS = ((100, 100, 0.1), (200, 250, 0.2), (350, 650, 0.7))
# Fractions of the canaries of one run that are guessed; each has an equal part of the error.
GUESSED = (0.05, 0.1, 0.2, 0.4, 1.0)
# Rows of a canary that is a person.
ROWS_OF_A_PERSON = 10


@dataclass(frozen=True)
class EpsilonAudit(PrintedDocument, FrozenValue):
    """A certified lower bound on epsilon, and the claim that it was compared with.

    Printing gives the verdict in one sentence, a notebook shows how it was found as well, and
    `to_dict` gives JSON values.

    Parameters
    ----------
    lower_bound : float
        With the stated confidence the true epsilon, at the claim's delta, is no less.
    epsilon, delta : float
        The claim.
    confidence : float
        Confidence of the bound.
    method : str
        The method by which the two tables were made.
    attack : str
        Description of the test that certified the bound.
    runs : int
        Number of fits.
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
        """True if the bound is above the claim."""
        return self.lower_bound > self.epsilon

    def __str__(self):
        return self._verdict()

    def to_dict(self):
        """Return the audit as JSON values.

        Returns
        -------
        dict
            The attributes, `violation`, and the verdict as a sentence, "words".
        """
        return asdict(self) | {"violation": self.violation, "words": self._verdict()}

    def _verdict(self):
        """Return the verdict in one sentence."""
        condition = f"confidence {self.confidence:g}"
        if self.gaussian:
            condition += ", assuming the trade-off curve of a Gaussian mechanism"
        proved = f"epsilon is at least {self.lower_bound:.3g} ({condition})"
        if self.violation:
            return (
                f"VIOLATION: the claim of epsilon = {self.epsilon:g} does not hold, because this "
                f"attack proves that {proved}."
            )
        return (
            f"No violation was found: this attack proves that {proved}, the claim is epsilon = "
            f"{self.epsilon:g}, and no attack can show that a claim holds."
        )

    def section(self):
        """Return the audit as a part of a document.

        Returns
        -------
        Section
        """
        heading = f"Audit of a claim of ({self.epsilon:g}, {self.delta:g})-differential privacy"
        rows = (("method", f"{self.method!r}, {self.runs} fits, by {self.attack}"),)
        return Section(heading, rows, notes=(self._verdict(),))


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
    n_fits=None,
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
        Any that is fitted to X and y. The clones that the audit fits charge no accountant of skdp,
        and draw fresh noise even where a `random_state` is given.
    X : array-like of shape (n_samples, n_features), default=None
        The table of "two_worlds" and "one_run"; "worst_case" makes its own.
    y : array-like of shape (n_samples,), default=None
        Targets or labels of X.
    groups : array-like of shape (n_samples,), default=None
        An id of the person of each row of X. A canary is then a person of ten equal rows.
        "worst_case" makes persons where the estimator's accountant has such a unit. Where its unit
        is a group, a canary is a group of `max_rows` equal rows, all of which are removed or
        replaced.
    method : {"worst_case", "two_worlds", "one_run"}, default="worst_case"
        "worst_case": many fits on two tables made so that one row moves a linear model as far
        as it can. "two_worlds": many fits on X with a canary and without it (Jagielski et al.
        2020). Both look at every number within the fitted estimator, whatever is nested in what,
        and at the model's answer to the canary. "one_run": one fit on X with canaries in columns
        of their own, each in by a coin (Steinke et al. 2023), by the model's answers to them.
    epsilon, delta : float, default=None
        The claim, for the unit of the estimator's accountant; None takes the estimator's
        parameters, delta 0 without one.
    canary : tuple of (row, label), default=None
        The canary of "two_worlds". None tries two in the direction in which X varies least: a row
        as long as the longest, and one ten times as long as that or as `data_norm`, which a
        private estimator must shorten.
    replacement : tuple of (row, label), default=None
        The row of the other table of "two_worlds". None removes the canary, or under
        "replace_one" gives it another label. Under "add_remove" a replacement is a removal and an
        addition, and what is certified of both together is divided between them.
    relation : {"add_remove", "replace_one"}, default=None
        The relation of the claim; None takes that of the estimator's accountant, add/remove without
        one. Clones that are fitted keep the relation of the estimator's accountant.
    n_fits : int, default=None
        Number of fits to each of the two tables, half of which choose what to look at. None makes
        200, and goes on to 450 and to 1000 while the verdict is open: while 1000 could prove a
        violation, at about the rates that were seen.
    n_samples : int, default=500
        Rows of the tables of "worst_case"; a canary of several rows counts as one.
    n_canaries : int, default=1000
        Number of canaries of "one_run".
    canary_norm : float, default=None
        Norm of the canaries of "one_run"; None takes the estimator's `data_norm`, or the longest
        row of X.
    gaussian : bool, default=False
        Bound through the trade-off curve of a Gaussian mechanism (Nasr et al. 2023): valid only
        where the mechanism is known to have it, as full-batch Gaussian steps. Needs delta > 0.
    confidence : float, default=0.95
        Confidence of the bound.
    n_jobs : int, default=None
        As in joblib.
    random_state : int or None, default=None
        Seed of the coins and labels of the canaries, never of the estimator's noise.
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
    Half of the fits choose a canary, a number to look at and a threshold; the other half judge
    them. A canary that the estimator refuses by a `ValueError` is left out.

    Under "add_remove" the table without the row is shorter by one, while skdp takes the number of
    rows to be public: published numbers that it alone decides are left out, but a mean changes with
    its divisor, by as much as with the row. So where fits make a `privacy_` statement, a bound
    above the claim is not believed: as many fits again are made to tables of one size, with the
    most central row instead of the canary, a removal and an addition, and their bound for one of
    the two is returned.

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
    claim = _claim(estimator, epsilon, delta, Neighbors(relation=relation))
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
        norm = _tables.declared_norm(estimator) if canary_norm is None else canary_norm
        if norm is None:
            norm = np.max(np.linalg.norm(_tables.coordinates(_tables.as_table(X)), axis=1))
        random = check_random_state(random_state)
        canaries = _tables.orthogonal_canaries(X, y, n_canaries, norm, relation, random)
        fitter = _Fitter(estimator, len(y), _rows_of_unit(estimator, persons), persons)
        result = _one_run(fitter, canaries, **bounded)
        n_runs = 1
    else:
        if method == "worst_case":
            n_samples = check_integer(n_samples, "n_samples", 4)
            pairs = _tables.worst_case_tables(estimator, n_samples, relation)
            is_by_person = any(terms_of(each).unit == "person" for each in accountants(estimator))
            persons = np.arange(n_samples - 1) if is_by_person else None
        else:
            given = canary is not None
            canaries = [canary] if given else _tables.default_canaries(estimator, X, y)
            pairs = [_tables.canary_tables(X, y, each, relation, replacement) for each in canaries]
            if is_classifier(estimator):
                for pair in pairs:
                    _check_labels(pair, y, parameter(estimator, "classes"))
        is_two_steps = method == "two_worlds" and replacement is not None
        is_two_steps = is_two_steps and relation == "add_remove"
        rounds = _rounds(n_fits, confidence)
        n_others = len(pairs[0].y_in) - 1
        fitter = _Fitter(estimator, n_others, _rows_of_unit(estimator, persons), persons)
        run = _CountedRuns(n_jobs, verbose)
        new_attack = partial(_Attack, fitter=fitter, run=run, options=bounded)
        attacks = [new_attack(pair, two_steps=claim if is_two_steps else None) for pair in pairs]
        result, attack, n_runs = _run_attacks(attacks, rounds, claim, run)
        if result.epsilon > claim.epsilon and attack.tables.is_removal and result.has_statement:
            same_size = _tables.with_as_many_rows(attack.tables)
            attacks = [new_attack(same_size, two_steps=claim)]
            result, _, n_more = _run_attacks(attacks, rounds, claim, run)
            result = replace(result, test=f"{result.test}, tables of one size")
            n_runs += n_more
    audit = EpsilonAudit(
        result.epsilon, claim.epsilon, attack=result.test, runs=n_runs, method=method, **bounded
    )
    if audit.violation:
        warnings.warn(str(audit), PrivacyViolationWarning, stacklevel=2)
    return audit


@dataclass(frozen=True)
class _Round(FrozenValue):
    """The number of fits to each table, with those of earlier rounds, and the confidence.

    Parameters
    ----------
    n_choosing, n_judging : int
        Number of fits to each table that choose a test, and that judge it.
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
    """Return the rounds of an audit.

    The errors of all rounds add up to 1 - confidence, so that their bounds hold together.
    """
    if n_fits is not None:
        n_fits = check_integer(n_fits, "n_fits", 20)
        return [_Round(n_fits - n_fits // 2, n_fits // 2, confidence)]
    return [
        _Round(n_choosing, n_judging, 1.0 - part_of_error * (1.0 - confidence))
        for n_choosing, n_judging, part_of_error in ROUNDS
    ]


def _rows_of_unit(estimator, persons):
    """Return the number of rows of a canary."""
    if persons is not None:
        return ROWS_OF_A_PERSON
    units = [terms_of(each) for each in accountants(estimator)]
    return max((terms.max_rows for terms in units if terms.unit == "group"), default=1)


def _check_labels(tables, y, declared):
    known = np.append(y, y if declared is None else declared)
    new = np.setdiff1d(np.append(tables.y_in, tables.y_out), known).tolist()
    if new:
        raise ValueError(
            f"a canary has the label {new[0]!r}, which y does not have: the set of labels is public"
        )


class _CountedRuns:
    """Runs fits and shows how many of those that are planned are made.

    Parameters
    ----------
    n_jobs, verbose : int or None
        As in `audit_epsilon`.
    """

    def __init__(self, n_jobs, verbose):
        self._options = {"n_jobs": n_jobs, "verbose": verbose}
        self.n_done = self.n_planned = 0

    def __call__(self, jobs, n):
        counts = {"n": self.n_planned, "n_done": self.n_done}
        results = run_jobs(jobs, what="audit_epsilon: {} of {} fits", **counts, **self._options)
        self.n_done += n
        return results


@dataclass(frozen=True, eq=False)
class _Fitter(FrozenValue):
    """Fits clones of an estimator to tables whose last rows are canaries.

    Parameters
    ----------
    estimator : estimator
    n_others : int
        Number of rows before the canaries.
    canary_rows : int
        Number of rows into which each canary is repeated: those of its unit.
    persons : ndarray of shape (n_others,), default=None
        Ids of the persons of the other rows, where the unit is a person.
    """

    estimator: object
    n_others: int
    canary_rows: int = 1
    persons: object = None

    @muted_findings()
    def fit(self, X, y, *, canary_rows=None, other_rows=1):
        """Return a fitted clone; a canary has `canary_rows`, another row is `other_rows` times."""
        model = clone(self.estimator)
        canary_rows = self.canary_rows if canary_rows is None else canary_rows
        if canary_rows == other_rows == 1 and self.persons is None:
            return model.fit(X, y)
        places = np.arange(len(y))
        repeated = np.repeat(places, np.where(places < self.n_others, other_rows, canary_rows))
        X, y = take_rows(X, repeated), y[repeated]
        if self.persons is None:
            return model.fit(X, y)
        n_canaries = max(len(places) - self.n_others, 0)
        ids = np.append(self.persons, self.persons.max() + 1 + np.arange(n_canaries))
        return fit_persons(model, X, y, ids[repeated])

    def observe(self, X, y, probe, **rows):
        """Return every number that a fitted clone shows, and its answer to the probe."""
        return observe(self.fit(X, y, **rows), probe)


class _Attack:
    """Tries to tell fits to two neighboring tables apart.

    The test is chosen on some fits and judged on others.

    Parameters
    ----------
    tables : NeighboringTables
    fitter : _Fitter
    run : callable
        Runs delayed calls; see `run_jobs`.
    options : dict
        `delta`, `confidence` and `gaussian`.
    two_steps : Guarantee, default=None
        The claim for a removed row, if the tables are a removal and an addition apart.
    """

    def __init__(self, tables, fitter, run, options, two_steps=None):
        self.tables = tables
        self._fitter = fitter
        self._run = run
        self._options = options
        self._two_steps = two_steps
        # For each table what its fits showed.
        self._choosing = ([], [])
        self._judging = ([], [])
        self._others = self._numbers = self._test = None

    @property
    def n_choosing(self):
        """Number of fits to each table on which the test is chosen."""
        return len(self._choosing[0])

    def fit(self, n_choosing, n_judging):
        """Fit until each table has as many fits to choose the test on, and to judge it on."""
        self._fit(self._choosing, n_choosing)
        self._fit(self._judging, n_judging)

    def _fit(self, seen, n):
        tables = self.tables
        probe = take_rows(tables.X_in, np.array([len(tables.y_in) - 1, 0]))
        # The number of a person's rows is not public: in the other table the person has one.
        one_row = {"canary_rows": 1} if self._fitter.persons is not None else {}
        order = _table_order(n - len(seen[0]))
        jobs = (
            delayed(self._fitter.observe)(tables.X_out, tables.y_out, probe, **one_row)
            if is_other
            else delayed(self._fitter.observe)(tables.X_in, tables.y_in, probe)
            for is_other in order
        )
        for is_other, shown in zip(order, self._run(jobs, len(order)), strict=True):
            seen[is_other].append(shown)

    def choose(self):
        """Return the test that is best on the fits made so far to choose it, or None."""
        choosing, _, names = self._private_numbers()
        return choose_test(*choosing, names=names, **self._test_options)

    @property
    def _test_options(self):
        """The options of a test between the tables, with the delta of all steps between them."""
        if self._two_steps is None:
            return self._options
        claim = self._two_steps
        _, delta = convert_relation(claim.epsilon, claim.delta, *RELATIONS)
        return self._options | {"delta": delta}

    def judge(self, confidence):
        """Choose a test and return the `TestResult` of the fits that did not choose it."""
        choosing, judging, names = self._numbers = self._private_numbers()
        test = self._test = choose_test(*choosing, names=names, **self._test_options)
        has_statement = any("privacy_." in name for name in self._choosing[0][0])
        if test is None:
            return TestResult(0.0, NO_TEST, has_statement=has_statement)
        counts = test.counts(*judging)
        epsilon = self._certified(counts, confidence)
        return TestResult(epsilon, test.description, counts, has_statement)

    def _certified(self, counts, confidence):
        """Return the epsilon that the counts of a test certify."""
        options = self._options | {"confidence": confidence}
        if self._two_steps is None:
            return certified_epsilon(counts, **options)
        return halved_epsilon(*counts, **options)

    def could_exceed(self, epsilon, n_judging, confidence):
        """Return True if `n_judging` fits to each table might certify more than an epsilon.

        The test that was judged shows it, and so does one that is chosen on the other fits. A test
        that made no error may go on without one.
        """
        without_error = (n_judging, n_judging, 0, n_judging)
        if self._certified(without_error, confidence) <= epsilon:
            return False
        choosing, judging, names = self._numbers
        hits, n_in, false_alarms, n_out = self._test.counts(*judging)
        if (hits, false_alarms) in ((n_in, 0), (0, n_out)):
            return True
        options = self._test_options | {"confidence": confidence}
        n_steps = 1 if self._two_steps is None else 2
        other_test = choose_test(*judging, names=names, **self._test_options)
        for test, fits in ((self._test, judging), (other_test, choosing)):
            if test is None:
                continue
            bound = attainable_bound(test, *fits, n_judging, **options) / n_steps
            if options["gaussian"]:
                bound = gdp_to_epsilon(max(bound, 0.0), self._options["delta"])
            if bound > epsilon:
                return True
        return False

    def _private_numbers(self):
        """Return the numbers of the fits to choose on and to judge on, and descriptions of them.

        Numbers that are public, because they follow from the number of rows, are left out.
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
        """Return True for each number that all fits to one table have in common, in both tables."""
        choosing_in, choosing_out, judging_in, judging_out = np.split(values[: ends[3]], ends[:3])
        tables = np.vstack([choosing_in, judging_in]), np.vstack([choosing_out, judging_out])
        return _same_in_all(tables[0]) & _same_in_all(tables[1])

    def _other_fits(self):
        """Return what fits to other tables of the larger one's size show."""
        if self._others is None:
            self._others = []
            probe = take_rows(self.tables.X_in, np.array([len(self.tables.y_in) - 1, 0]))
            # What is public of persons is the same however many rows they have.
            rows = {"other_rows": 2} if self._fitter.persons is not None else {}
            for X, y in _tables.other_tables(self.tables):
                # A table that is refused is left out.
                with suppress(ValueError):
                    self._others += [self._fitter.observe(X, y, probe, **rows) for _ in range(2)]
        return self._others


def _same_in_all(values):
    return np.all(values == values[0], axis=0)


def _table_order(n_fits):
    """Return the tables, 0 and 1 for that without the canary, in the order of the fits to them.

    The tables alternate, and so does the order in a pair. Otherwise a time that a fit records
    would tell the tables apart.
    """
    return [table for pair in range(n_fits) for table in ((0, 1) if pair // 2 % 2 else (1, 0))]


def _most_promising(attacks, n_choosing):
    """Fit each attack with a part of the fits and return the one whose test is best.

    Tables that the estimator refuses are left out, unless it refuses all.
    """
    best = None
    best_bound = -np.inf
    n_left = n_choosing
    for place, attack in enumerate(attacks):
        n_own = n_left // (len(attacks) - place)
        try:
            attack.fit(n_own, 0)
        except ValueError:
            if best is None and place == len(attacks) - 1:
                raise
            continue
        n_left -= n_own
        test = attack.choose() if len(attacks) > 1 else None
        bound = -np.inf if test is None else test.bound
        if best is None or bound > best_bound:
            best = attack
            best_bound = bound
    return best


def _run_attacks(attacks, rounds, claim, run):
    """Return the result of the most promising attack, the attack, and the number of fits.

    Parameters
    ----------
    attacks : list of _Attack
    rounds : list of _Round
        A further round is made only if it could prove a violation that the last one did not.
    claim : Guarantee
    run : _CountedRuns
        The one that runs the fits of all attacks.
    """
    n_before = run.n_done
    n_choosing = rounds[0].n_choosing
    run.n_planned = n_before + rounds[0].n_fits
    attack = _most_promising(attacks, n_choosing)
    n_elsewhere = n_choosing - attack.n_choosing
    for place, this in enumerate(rounds):
        run.n_planned = n_before + this.n_fits
        attack.fit(this.n_choosing - n_elsewhere, this.n_judging)
        result = attack.judge(this.confidence)
        is_settled = result.epsilon > claim.epsilon or not result.counts
        if is_settled or place == len(rounds) - 1:
            break
        last = rounds[-1]
        if not attack.could_exceed(claim.epsilon, last.n_judging, last.confidence):
            break
    return result, attack, this.n_fits


def _one_run(fitter, canaries, *, delta, confidence, gaussian):
    fitted = fitter.fit(canaries.X, canaries.y)
    m = len(canaries.coins)
    order = np.argsort(_canary_scores(fitted, canaries), kind="stable")
    certify = one_run_gaussian_epsilon if gaussian else one_run_epsilon
    confidence_each = 1.0 - (1.0 - confidence) / len(GUESSED)
    bounds = []
    for fraction in GUESSED:
        half = max(1, int(fraction * m / 2))
        correct = np.sum(canaries.coins[order[-half:]]) + np.sum(~canaries.coins[order[:half]])
        bounds.append(certify(int(correct), 2 * half, m, delta=delta, confidence=confidence_each))
    return TestResult(max(bounds), f"{m} canaries in columns of their own, by the model's answers")


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


def _claim(estimator, epsilon, delta, neighbors):
    parameters = estimator.get_params()
    epsilon = parameters.get("epsilon") if epsilon is None else epsilon
    if epsilon is None:
        raise ValueError("the estimator claims no epsilon: say which claim to audit")
    delta = parameters.get("delta", 0.0) if delta is None else delta
    return Guarantee(epsilon=epsilon, delta=delta, neighbors=neighbors)
