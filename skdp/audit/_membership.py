"""Membership inference: was a row among those that an estimator was fitted to?"""

from dataclasses import dataclass, replace

import numpy as np
from joblib import delayed
from sklearn.base import is_classifier
from sklearn.metrics import roc_curve
from sklearn.utils import check_consistent_length, check_random_state, indexable
from sklearn.utils.validation import check_is_fitted, column_or_1d

from skdp._data._persons import read_persons
from skdp.audit import _scores
from skdp.audit._outputs import fit_persons, halves, per_row_statistic, shadow, without_accountant
from skdp.audit._scores import Interval, area_under_curve, attack_accuracy, rate_at
from skdp.utils._documents import PrintedDocument, Section
from skdp.utils._frames import take_rows
from skdp.utils._progress import run_jobs
from skdp.utils._validation import check_choice, check_integer
from skdp.utils._values import FrozenValue

# Below this many shadows each row's own variance is too rough (Carlini et al. 2022, section VI).
SHADOWS_FOR_ROW_VARIANCE = 64


@dataclass(frozen=True, eq=False)
class MembershipInference(PrintedDocument, FrozenValue):
    """What a membership inference attack found.

    Printing gives text, a notebook shows HTML, `to_dict` gives JSON values. Of an attack on
    persons, rows are persons, in the order of their first rows.

    Parameters
    ----------
    attack, access : str
        The attack, and what it saw of the model.
    members : ndarray of bool, shape (n_rows,)
        Which rows the attacked model was fitted to.
    scores : ndarray of shape (n_rows,)
        The attack's score of each row, the larger the likelier a member.
    fpr, tpr : ndarray
        The ROC curve.
    auc : Interval
        Area under it: 0.5 is guessing.
    tpr_at : dict of float to Interval
        True-positive rate at a false-positive rate of 0.1 % and of 1 %. The limits take in that the
        threshold is chosen on the others: of few others (at 95 % below 4380 and 437) the lower one
        is 0.
    advantage : float
        The largest true-positive minus false-positive rate on these rows; above 0 on noise too.
    accuracy : Interval
        How often a threshold that was chosen on the other half of the rows is right, with
        members and others weighted equally: 0.5 is guessing.
    train_score, test_score : float
        The model's own score on its rows and on the others; the gap is what over-fitting shows.
    confidence : float
        Of the intervals.
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

    note = (
        "These figures say what this attack found, not how private the estimator is; they were "
        "computed from the data without privacy and are for whoever holds the data."
    )

    @property
    def generalization_gap(self):
        """The score on members minus that on others."""
        return self.train_score - self.test_score

    def rows_at_risk(self, n=10):
        """Return the members that the attack is surest of, the surest first.

        Parameters
        ----------
        n : int, default=10
            How many.

        Returns
        -------
        ndarray of int, shape (min(n, n_members),)
            Positions in the attacked table.
        """
        order = np.argsort(-self.scores, kind="stable")
        return order[self.members[order]][: check_integer(n, "n", 1)]

    def by_group(self, sensitive_features):
        """Return the figures of each class or group by itself: disparate vulnerability.

        Parameters
        ----------
        sensitive_features : array-like of shape (n_rows,)
            The group of each row (each person): `y` for the classes.

        Returns
        -------
        dict of MembershipInference
            By the group's value. A figure's intervals hold for all groups together: each has a
            confidence of 1 - (1 - confidence) / number of groups (Bonferroni). The model's scores
            are those on all rows.

        Raises
        ------
        ValueError
            If a group has no members or no others.

        Notes
        -----
        A claim bounds the attack on every row alike, so on every group's mean. Figures of a group
        are no guarantee for it: they say how much this attack found of it.

        References
        ----------
        B. Kulynych, M. Yaghini, G. Cherubin, M. Veale, C. Troncoso, "Disparate Vulnerability to
        Membership Inference Attacks", 2022.
        """
        features = column_or_1d(sensitive_features)
        check_consistent_length(features, self.members)
        values = np.unique(features)
        found = {}
        confidence = 1.0 - (1.0 - self.confidence) / len(values)
        for value in values.tolist():
            rows = features == value
            members = self.members[rows]
            scores = self.scores[rows]
            if not 0 < members.sum() < len(members):
                raise ValueError(f"group {value!r} needs rows that are members, and others")
            found[value] = replace(self, **_figures(members, scores, confidence))
        return found

    def to_dict(self):
        """Return the figures as JSON values, without the rows' scores.

        Returns
        -------
        dict
        """
        plain = ("attack", "access", "advantage", "train_score", "test_score", "confidence", "note")
        return {name: getattr(self, name) for name in plain} | {
            "n_members": int(self.members.sum()),
            "n_others": int((~self.members).sum()),
            "auc": vars(self.auc),
            "tpr_at_fpr": {f"{rate:g}": vars(value) for rate, value in self.tpr_at.items()},
            "accuracy": vars(self.accuracy),
        }

    def section(self):
        """Return the figures as a part of a document.

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
        return Section(heading, rows, notes=(self.note,))


def membership_inference(
    estimator,
    X,
    y,
    *,
    groups=None,
    releases=None,
    attack="lira",
    access="probabilities",
    members=None,
    n_shadow=64,
    offline=False,
    variance="auto",
    confidence=0.95,
    n_jobs=None,
    random_state=None,
    verbose=None,
):
    """Attack an estimator: tell the rows that it was fitted to from others.

    Parameters
    ----------
    estimator : estimator
        Private or not. With `members` it is attacked as it is, fitted; without, a clone is
        fitted to a random half of the rows. Clones that the attack fits charge no accountant.
        Shadows of an estimator with a `random_state` have seeds of their own: the attacker does
        not know the target's.
    X : array-like of shape (n_samples, n_features)
        The attacker's candidates, rows of the training table and others alike.
    y : array-like of shape (n_samples,)
        Their labels or targets.
    groups : array-like of shape (n_samples,), default=None
        An id of the person of each row. The attack then looks for persons, by the means over
        their rows: all rows of a person are in a half or none.
    releases : callable, default=None
        What is published is a sequence of models, and the attacker sees them all:
        ``releases(estimator, X, y, members)`` takes an unfitted clone and the mask of the rows
        that are in the table, and yields the fitted models one by one, in a fixed number. The same
        object may be yielded again: it is asked before the next one is made. For "lira" alone,
        without `offline` and `members`.
    attack : {"loss", "shadow", "lira", "rmia"}, default="lira"
        "loss": a threshold on the row's loss (Yeom et al. 2018), which needs no shadow models.
        "shadow": a classifier that learned on shadow models (Shokri et al. 2017). "lira": the
        likelihood ratio (Carlini et al. 2022). "rmia": pairwise likelihood ratios (Zarifzadeh et
        al. 2024).
    access : {"probabilities", "labels", "parameters"}, default="probabilities"
        What the attacker sees: predicted probabilities (or margins), labels alone, or a linear
        model's coefficients with which gradients are computed (Nasr et al. 2019).
    members : array-like of bool, shape (n_samples,), default=None
        Which rows a fitted estimator was fitted to.
    n_shadow : int, default=64
        How many shadow models are fitted, each to a random half of the rows.
    offline : bool, default=False
        With "lira" and "rmia", use for each row the shadows without it alone, as an attacker
        must who learns of his candidates after fitting them.
    variance : {"auto", "row", "global"}, default="auto"
        With "lira", whether each row has variances of its own; "auto" does from 64 shadows on.
    confidence : float, default=0.95
        Of every interval.
    n_jobs : int, default=None
        How many shadows are fitted at a time, as in joblib.
    random_state : int or None, default=None
        Of the halves.
    verbose : int, default=None
        None shows on a terminal or in a notebook how many shadows are fitted, in one line of the
        standard error; 0 shows nothing, more is as in joblib.

    Returns
    -------
    MembershipInference

    Raises
    ------
    ValueError
        If an option is not as described, or `members` names no row or every row.
    NotFittedError
        If `members` is given for an estimator that is not fitted.

    Notes
    -----
    The halves depend on the row's position and `random_state` alone. What is returned is
    computed from the data without privacy: it is for whoever may see the data.

    References
    ----------
    S. Yeom, I. Giacomelli, M. Fredrikson, S. Jha, "Privacy Risk in Machine Learning: Analyzing
    the Connection to Overfitting", 2018; and those of the attacks, in `skdp.audit`'s guide.

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
    check_choice(attack, "attack", ("loss", "shadow", "lira", "rmia"))
    check_choice(access, "access", ("probabilities", "labels", "parameters"))
    check_choice(variance, "variance", ("auto", "row", "global"))
    if releases is not None and (attack != "lira" or offline or members is not None):
        raise ValueError("releases are attacked by attack='lira', without offline and members")
    X, y = indexable(X, column_or_1d(y))
    n_shadow = check_integer(n_shadow, "n_shadow", 2)
    # Without groups each row is a person's only one.
    codes = read_persons(range(len(y)) if groups is None else groups, len(y)).codes
    n_units = codes.max() + 1
    groups = groups if groups is None else codes
    random = check_random_state(random_state)

    def statistic(model):
        # One number a person, the mean over the rows.
        return np.bincount(codes, per_row_statistic(model, X, y, access)) / np.bincount(codes)

    def observe(model, mask):
        """Fit to some persons; return the model with its statistic of all, or one a release."""
        rows = mask[codes]
        seen = []
        if releases is None:
            own = (each if each is None else take_rows(each, rows) for each in (X, y, groups))
            model = fit_persons(model, *own)
            return model, statistic(model)
        for published in releases(model, X, y, rows):
            seen.append(statistic(published))
        return published, np.array(seen)

    if members is None:
        members = halves(n_units, 1, random)[0]
        model, target = observe(without_accountant(estimator), members)
    else:
        rows = _check_members(members, len(y))
        members = np.bincount(codes, rows) > 0
        if not np.array_equal(members[codes], rows):
            raise ValueError("members must name all rows of a person, or none")
        check_is_fitted(estimator)
        model = estimator
        target = statistic(estimator)
    if attack == "loss":
        scores = target
    else:
        fitted = halves(n_units, n_shadow, random)
        seeds = random.randint(np.iinfo(np.int32).max, size=n_shadow).tolist()
        told = delayed(lambda model, mask: observe(model, mask)[1])
        runs = (told(shadow(estimator, s), mask) for s, mask in zip(seeds, fitted, strict=True))
        what = "membership_inference: {} of {} shadow models"
        options = {"n_jobs": n_jobs, "verbose": verbose, "what": what, "n": n_shadow}
        shadows = np.array(run_jobs(runs, **options))
        by_label = groups is None and is_classifier(model)
        labels = np.asarray(y) if by_label else np.zeros(n_units)
        scores = _score(attack, target, shadows, fitted, labels, offline, variance)

    found = {"attack": attack, "access": access} | _figures(members, scores, confidence)
    for name, rows in (("train_score", members[codes]), ("test_score", ~members[codes])):
        found[name] = float(model.score(take_rows(X, rows), take_rows(y, rows)))
    return MembershipInference(**found)


def _figures(members, scores, confidence):
    fpr, tpr, _ = roc_curve(members, scores, drop_intermediate=False)
    return {
        "members": members,
        "scores": scores,
        "fpr": fpr,
        "tpr": tpr,
        "auc": area_under_curve(members, scores, confidence),
        "tpr_at": {rate: rate_at(members, scores, rate, confidence) for rate in (0.001, 0.01)},
        "advantage": float(np.max(tpr - fpr)),
        "accuracy": attack_accuracy(members, scores, confidence),
        "confidence": confidence,
    }


def _score(attack, target, shadows, fitted, labels, offline, variance):
    if attack == "shadow":
        return _scores.shadow_classifier(target, shadows, fitted, labels)
    if attack == "rmia":
        return _scores.rmia(target, shadows, fitted, offline=offline)
    if variance == "auto":
        variance = "row" if len(shadows) >= SHADOWS_FOR_ROW_VARIANCE else "global"
    return _scores.lira(target, shadows, fitted, offline=offline, variance=variance)


def _check_members(members, n_rows):
    members = np.asarray(members)
    if members.dtype != bool or members.shape != (n_rows,):
        raise ValueError(f"members must be {n_rows} booleans, got {members.dtype} {members.shape}")
    if not 0 < members.sum() < n_rows:
        raise ValueError("members must name some of the rows, and not all of them")
    return members
