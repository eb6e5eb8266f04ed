"""Membership inference: attacks that identify the rows to which an estimator was fitted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import roc_curve
from sklearn.utils import check_consistent_length, check_random_state, indexable
from sklearn.utils.validation import check_is_fitted, column_or_1d

from skdp._data._frames import take_rows
from skdp._data._persons import read_persons
from skdp._fitting._progress_line import run_jobs
from skdp.audit import _scores
from skdp.audit._outputs import fit_persons, halves, per_row_statistic, shadow, without_accountant
from skdp.audit._scores import Interval, area_under_curve, attack_accuracy, rate_at
from skdp.utils._documents import PrintedDocument, Section, count_of
from skdp.utils._types import TableLike
from skdp.utils._validation import check_choice, check_integer, check_is_estimator
from skdp.utils._values import FrozenValue

# With fewer shadow models, variances per row are too imprecise (Carlini et al. 2022, section VI).
SHADOWS_FOR_ROW_VARIANCE = 64
# Words of the printed sentences, by unit.
RELATIVE_PRONOUNS = {"row": "that", "person": "who"}


@dataclass(frozen=True, eq=False)
class MembershipInference(PrintedDocument, FrozenValue):
    """Result of a membership inference attack.

    The result is printed as text and shown as HTML in a notebook; `to_dict` returns JSON values.
    After an attack on persons, "rows" means persons, in the order of their first rows.

    Parameters
    ----------
    attack, access : str
        The attack, and its access to the model.
    members : ndarray of bool, shape (n_rows,)
        True for rows that the attacked model was fitted to.
    scores : ndarray of shape (n_rows,)
        Score of each row; members tend to have larger scores.
    fpr, tpr : ndarray
        The ROC curve.
    auc : Interval
        Area under the ROC curve: 0.5 is guessing.
    tpr_at : dict of float to Interval
        True-positive rate at a false-positive rate of 0.1 % and of 1 %. The limits account for
        the choice of the threshold on the non-members. With few non-members (fewer than 4380 and
        437 at 95 %), the lower limit is 0.
    advantage : float
        Largest difference between the true- and false-positive rates on these rows. It is above 0
        even for pure noise.
    accuracy : Interval
        Balanced accuracy of a threshold chosen on the other half of the rows: 0.5 is
        guessing.
    train_score, test_score : float
        Score of the model on members and on other rows; the difference shows overfitting.
    confidence : float
        Confidence of the intervals.
    unit : {"row", "person"}, default="row"
        The units whose membership was inferred.
    """

    attack: str
    access: str
    members: np.ndarray
    scores: np.ndarray
    fpr: np.ndarray
    tpr: np.ndarray
    auc: Interval
    tpr_at: dict
    advantage: float
    accuracy: Interval
    train_score: float
    test_score: float
    confidence: float
    unit: Literal["row", "person"] = "row"

    note = (
        "These figures show how well this attack works, not how private the estimator is. They "
        "were computed from the data without privacy: show them only to those who may see it."
    )

    @property
    def in_plain_words(self):
        """Sentences about the attack, its result, and the limits of both."""
        auc = self.auc
        members = f"which {self.unit}s were used"
        if auc.low > 0.5:
            result = f"The attack learned something about {members}"
        else:
            result = "This cannot be distinguished from guessing"
        pronoun = RELATIVE_PRONOUNS[self.unit]
        return (
            f"The attack tried to tell {members} to train the model. Shown a {self.unit} {pronoun} "
            f"was used and one {pronoun} was not, it picks the right one in {auc.value:.0%} of "
            f"cases ({auc.low:.0%} to {auc.high:.0%}); guessing does so in 50%. {result}. "
            "Another attack may find more: only a guarantee bounds all attacks."
        )

    @property
    def generalization_gap(self):
        """The score on members minus the score on other rows."""
        return self.train_score - self.test_score

    def rows_at_risk(self, n=10):
        """Return the members with the highest scores, in descending order of score.

        Parameters
        ----------
        n : int, default=10
            Maximum number of members.

        Returns
        -------
        ndarray of int, shape (min(n, n_members),)
            Positions in the attacked table.
        """
        order = np.argsort(-self.scores, kind="stable")
        return order[self.members[order]][: check_integer(n, "n", 1)]

    def by_group(self, sensitive_features):
        """Return the figures for each class or group separately (disparate vulnerability).

        Parameters
        ----------
        sensitive_features : array-like of shape (n_rows,)
            Group of each row, or person; pass `y` for the classes.

        Returns
        -------
        dict of MembershipInference
            The results by group. The intervals hold for all groups together: each has a confidence
            of 1 - (1 - confidence) / number of groups (Bonferroni). The model's scores are computed
            on all rows.

        Raises
        ------
        ValueError
            If a group has only members, or only other rows.

        Notes
        -----
        A claim bounds an attack's success on every row, and therefore its mean in every group. The
        figures for a group show only how well this attack works; they are not a guarantee.

        References
        ----------
        B. Kulynych, M. Yaghini, G. Cherubin, M. Veale, C. Troncoso, "Disparate Vulnerability to
        Membership Inference Attacks", 2022.
        """
        features = column_or_1d(sensitive_features)
        check_consistent_length(features, self.members)
        values = np.unique(features)
        results = {}
        confidence = 1.0 - (1.0 - self.confidence) / len(values)
        for value in values.tolist():
            rows = features == value
            members = self.members[rows]
            scores = self.scores[rows]
            if not 0 < members.sum() < len(members):
                raise ValueError(
                    f"sensitive_features has a group {value!r} with only members or only other "
                    "rows: merge it with another group"
                )
            results[value] = _evaluate(
                members,
                scores,
                confidence,
                attack=self.attack,
                access=self.access,
                train_score=self.train_score,
                test_score=self.test_score,
                unit=self.unit,
            )
        return results

    def to_dict(self):
        """Return the figures as JSON values, without the scores, the members and the ROC curve.

        Returns
        -------
        dict
        """
        return {
            "attack": self.attack,
            "access": self.access,
            "advantage": self.advantage,
            "train_score": self.train_score,
            "test_score": self.test_score,
            "confidence": self.confidence,
            "note": self.note,
            "unit": self.unit,
            "n_members": int(self.members.sum()),
            "n_others": int((~self.members).sum()),
            "auc": vars(self.auc),
            "tpr_at_fpr": {f"{rate:g}": vars(value) for rate, value in self.tpr_at.items()},
            "accuracy": vars(self.accuracy),
        }

    def section(self):
        """Return the figures as a section of a printed document.

        Returns
        -------
        Section
        """
        scores = (
            f"{self.train_score:.4g}, {self.test_score:.4g} (gap {self.generalization_gap:.4g})"
        )
        rows = (
            ("area under the ROC curve", f"{self.auc} (0.5 is guessing)"),
            *((f"found at {rate:.1%} false alarms", str(v)) for rate, v in self.tpr_at.items()),
            ("attack accuracy", f"{self.accuracy} (0.5 is guessing)"),
            ("largest advantage", f"{self.advantage:.4g}"),
            ("score on members, others", scores),
            ("intervals", f"at {self.confidence:.4g} confidence"),
        )
        heading = f"Membership inference, attack {self.attack!r} on {self.access}"
        return Section(heading, rows, notes=(self.in_plain_words, self.note))


def membership_inference(
    estimator: BaseEstimator,
    X: TableLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    releases: Callable | None = None,
    attack: Literal["loss", "shadow", "lira", "rmia"] = "lira",
    access: Literal["probabilities", "labels", "parameters"] = "probabilities",
    members: ArrayLike | None = None,
    n_shadow: int = 64,
    offline: bool = False,
    variance: Literal["auto", "row", "global"] = "auto",
    confidence: float = 0.95,
    n_jobs: int | None = None,
    random_state: int | None = None,
    verbose: int | None = None,
) -> MembershipInference:
    """Return the result of an attack that separates training rows from other rows.

    Parameters
    ----------
    estimator : estimator
        Any estimator, private or not. With `members`, the fitted estimator itself is attacked;
        without `members`, a clone is fitted to a random half of the rows. Clones charge no
        accountant. If `random_state` is set, shadow models get different seeds, because the
        attacker does not know the target's seed.
    X : array-like of shape (n_samples, n_features)
        Candidates of the attacker: rows of the training table and other rows.
    y : array-like of shape (n_samples,)
        Labels or targets of the candidates.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The attack then infers the membership of persons from means over
        their rows. Each half contains either all rows of a person or none.
    releases : callable, default=None
        Function for attacks on a sequence of published models, all of which the attacker sees.
        ``releases(estimator, X, y, members)`` receives an unfitted clone and the mask of the rows
        in the table, and yields a fixed number of fitted models. It may yield the same object
        again, because each model is evaluated before the next one is requested. It requires "lira",
        without `offline` and `members`.
    attack : {"loss", "shadow", "lira", "rmia"}, default="lira"
        "loss": a threshold on the row's loss (Yeom et al. 2018), without shadow models. "shadow": a
        classifier fitted to the outputs of shadow models (Shokri et al. 2017). "lira": the
        likelihood ratio (Carlini et al. 2022). "rmia": pairwise likelihood ratios (Zarifzadeh et
        al. 2024).
    access : {"probabilities", "labels", "parameters"}, default="probabilities"
        Access of the attacker: predicted probabilities (or margins), only labels, or the
        coefficients of a linear model, from which gradients are computed (Nasr et al. 2019).
    members : array-like of bool, shape (n_samples,), default=None
        True for the rows to which a fitted estimator was fitted.
    n_shadow : int, default=64
        Number of shadow models, each fitted to a random half of the rows.
    offline : bool, default=False
        With "lira" and "rmia", use only the shadow models without the row. This models an
        attacker who fits the shadow models before the candidates are known.
    variance : {"auto", "row", "global"}, default="auto"
        With "lira", one variance per row or one for all rows. "auto" is "row" with at least 64
        shadow models.
    confidence : float, default=0.95
        Confidence of each interval.
    n_jobs : int, default=None
        Number of shadow models that are fitted at the same time, as in joblib.
    random_state : int or None, default=None
        Seed of the random halves.
    verbose : int, default=None
        None shows the number of fitted shadow models on a terminal or in a notebook, in one line
        of the standard error. 0 shows nothing; larger values have the same meaning as in joblib.

    Returns
    -------
    MembershipInference

    Raises
    ------
    ValueError
        If an option is invalid, or `members` is all True or all False.
    NotFittedError
        If `members` is passed with an estimator that is not fitted.

    Notes
    -----
    The halves depend only on row positions and `random_state`. The result is computed from the
    data without privacy: show it only to those who may see the data.

    References
    ----------
    S. Yeom, I. Giacomelli, M. Fredrikson, S. Jha, "Privacy Risk in Machine Learning: Analyzing
    the Connection to Overfitting", 2018. References for the other attacks are in
    ``docs/theory/auditing.md``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp.audit import membership_inference
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> found = membership_inference(
    ...     DecisionTreeClassifier(random_state=0), X, y, attack="loss", random_state=0
    ... )
    >>> found.train_score, found.auc.value > 0.5
    (1.0, True)
    """
    check_is_estimator(estimator, "estimator")
    check_choice(attack, "attack", ("loss", "shadow", "lira", "rmia"))
    check_choice(access, "access", ("probabilities", "labels", "parameters"))
    check_choice(variance, "variance", ("auto", "row", "global"))
    if releases is not None and (attack != "lira" or offline or members is not None):
        raise ValueError("releases needs attack='lira', without offline and members")
    n_shadow = check_integer(n_shadow, "n_shadow", 2)
    candidates = _Candidates(X, y, groups, access, releases)
    random = check_random_state(random_state)
    if members is None:
        is_member = halves(candidates.n_units, 1, random)[0]
        model, target = candidates.statistics_of_fit(without_accountant(estimator), is_member)
    else:
        is_member = candidates.units_in(members)
        check_is_fitted(estimator)
        model = estimator
        target = candidates.statistic(estimator)
    if attack == "loss":
        scores = target
    else:
        in_shadow = halves(candidates.n_units, n_shadow, random)
        seeds = random.randint(np.iinfo(np.int32).max, size=n_shadow).tolist()
        runs = (
            delayed(candidates.statistics_of_shadow)(shadow(estimator, seed), mask)
            for seed, mask in zip(seeds, in_shadow, strict=True)
        )
        shadows = run_jobs(
            runs,
            line_format="membership_inference: {} of {} shadow models",
            n=n_shadow,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        labels = candidates.labels_of_units(is_classifier(model))
        scores = _score(attack, target, np.array(shadows), in_shadow, labels, offline, variance)
    is_member_row = is_member[candidates.codes]
    return _evaluate(
        is_member,
        scores,
        confidence,
        attack=attack,
        access=access,
        train_score=float(model.score(*candidates.rows(is_member_row))),
        test_score=float(model.score(*candidates.rows(~is_member_row))),
        unit="person" if candidates.has_groups else "row",
    )


class _Candidates:
    """The rows whose membership is inferred, and the persons to which they belong.

    Parameters
    ----------
    X, y, groups, access, releases
        As in `membership_inference`.

    Attributes
    ----------
    codes : ndarray of shape (n_samples,)
        The unit of each row: its person, or the row itself without groups.
    n_units : int
        The number of units.
    """

    def __init__(self, X, y, groups, access, releases):
        self.X, self.y = indexable(X, column_or_1d(y))
        self.has_groups = groups is not None
        if groups is None:
            groups = range(len(self.y))
        self.codes = read_persons(groups, len(self.y)).codes
        self.n_units = self.codes.max() + 1
        self._access = access
        self._releases = releases

    def rows(self, mask):
        """Return the rows of X and y that a mask selects."""
        return take_rows(self.X, mask), take_rows(self.y, mask)

    def units_in(self, members):
        """Return the mask of the units whose rows are members; a unit must not be split."""
        is_member_row = _check_members(members, len(self.y))
        is_member = np.bincount(self.codes, is_member_row) > 0
        if not np.array_equal(is_member[self.codes], is_member_row):
            raise ValueError(
                "members must be equal for all rows of a person, but it is True for some rows and "
                "False for others"
            )
        return is_member

    def labels_of_units(self, is_classification):
        """Return the labels for which attacks fit separate models, or zeros if units have none.

        A person's rows can have several labels.
        """
        if is_classification and not self.has_groups:
            return np.asarray(self.y)
        return np.zeros(self.n_units)

    def statistic(self, model):
        """Return an attacker's observation of a model: the mean statistic over each unit's rows."""
        values = per_row_statistic(model, self.X, self.y, self._access)
        return np.bincount(self.codes, values) / np.bincount(self.codes)

    def statistics_of_fit(self, model, mask):
        """Fit a model to some units, and return it with the statistics of all units.

        Parameters
        ----------
        model : estimator
            Unfitted; `releases` of `membership_inference` may fit it and publish several models.
        mask : ndarray of bool of shape (n_units,)
            True for the units to which the model is fitted.

        Returns
        -------
        model : estimator
            The fitted model; with `releases`, the one that was published last.
        statistics : ndarray of shape (n_units,)
            With `releases`, an array of shape (n_releases, n_units).
        """
        is_row_in = mask[self.codes]
        if self._releases is None:
            groups_in = None
            if self.has_groups:
                groups_in = take_rows(self.codes, is_row_in)
            model = fit_persons(model, *self.rows(is_row_in), groups_in)
            return model, self.statistic(model)
        statistics = []
        for published in self._releases(model, self.X, self.y, is_row_in):
            statistics.append(self.statistic(published))
        return published, np.array(statistics)

    def statistics_of_shadow(self, model, mask):
        """Fit a shadow model to some units, and return the statistics of all units.

        The model itself is not returned, so that it stays in its worker.
        """
        return self.statistics_of_fit(model, mask)[1]


def _evaluate(members, scores, confidence, *, attack, access, train_score, test_score, unit):
    """Return the `MembershipInference` of the scores of an attack."""
    fpr, tpr, _ = roc_curve(members, scores, drop_intermediate=False)
    return MembershipInference(
        attack=attack,
        access=access,
        members=members,
        scores=scores,
        fpr=fpr,
        tpr=tpr,
        auc=area_under_curve(members, scores, confidence),
        tpr_at={rate: rate_at(members, scores, rate, confidence) for rate in (0.001, 0.01)},
        advantage=float(np.max(tpr - fpr)),
        accuracy=attack_accuracy(members, scores, confidence),
        confidence=confidence,
        train_score=train_score,
        test_score=test_score,
        unit=unit,
    )


def _score(attack, target, shadows, fitted, labels, offline, variance):
    """Return the scores of an attack with shadow models, one per unit.

    Parameters
    ----------
    attack : {"lira", "rmia", "shadow"}
    target : ndarray of shape (n_units,) or (n_releases, n_units)
        Statistics of the attacked model.
    shadows : ndarray of shape (n_shadow, *target.shape)
        Statistics of the shadow models.
    fitted : ndarray of bool of shape (n_shadow, n_units)
        True for the units to which a shadow model was fitted.
    labels : ndarray of shape (n_units,)
        Labels for which "shadow" fits separate models.
    offline : bool
    variance : {"auto", "global", "row"}
    """
    if attack == "shadow":
        return _scores.shadow_classifier(target, shadows, fitted, labels)
    if attack == "rmia":
        return _scores.rmia(target, shadows, fitted, offline=offline)
    if variance == "auto":
        variance = "global"
        if len(shadows) >= SHADOWS_FOR_ROW_VARIANCE:
            variance = "row"
    return _scores.lira(target, shadows, fitted, offline=offline, variance=variance)


def _check_members(members, n_rows):
    """Return `members` as a boolean array after checking it."""
    members = np.asarray(members)
    if members.dtype != bool or members.shape != (n_rows,):
        raise ValueError(
            f"members must be {count_of(n_rows, 'boolean')}, got {members.dtype} of shape "
            f"{members.shape}"
        )
    if not 0 < members.sum() < n_rows:
        raise ValueError(
            f"members must be True for some rows, but not for all: got {members.sum()} of {n_rows}"
        )
    return members
