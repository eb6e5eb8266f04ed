"""Scores with a known sensitivity.

Larger scores are better. The number of scored rows is public: under "add_remove" a removed row is
replaced by a null record that adds nothing to the score. The sensitivities are derived in
``docs/theory/model_selection.md``.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial
from inspect import signature
from typing import ClassVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.utils import column_or_1d

from skdp._data._labels import category_codes
from skdp._data._persons import n_units, row_weights_of, times_row_weights
from skdp._data._row_wise import row_sums
from skdp._data._tables import TableShape, target_array
from skdp.mechanisms._plan import plan_release
from skdp.mechanisms._randomized_response import categories_array
from skdp.metrics._statistics import count_cells
from skdp.pipeline._instances import reason_for_missing
from skdp.stats._moments import noise_of_histogram, noise_of_moments, plan_moments
from skdp.utils import _validation as checks
from skdp.utils._documents import count_of
from skdp.utils._values import FrozenValue, checked

# Bound on the rounding error in two correctly rounded sums of n terms of at most 1, each divided by
# n; derived in docs/theory/model_selection.md.
ROUNDING = 2.0**-50

# Name of released denominators in privacy statements.
DENOMINATORS = "denominators of the score"
# Reason and remedy for metrics of `dp_evaluate` whose sensitivity stays unbounded even if all
# candidates share their denominators.
UNBOUNDED = {
    "average_precision": (
        "scoring='average_precision' has no bounded sensitivity, even if the class counts are "
        "known: one row can change the precision at every threshold. Search with 'roc_auc', and "
        "release the average precision of the chosen model by skdp.dp_evaluate"
    ),
    "precision": (
        "scoring='precision' has no bounded sensitivity: its denominator is the number of rows "
        "that a candidate predicts as positive, which may be 0. Search with 'f1', and release the "
        "precision of the chosen model by skdp.dp_evaluate"
    ),
    "root_mean_squared_error": (
        "scoring='root_mean_squared_error' has no bounded sensitivity, because the root is steep "
        "near 0. Search with 'neg_mean_squared_error', which orders candidates equally, and "
        "release the root of the chosen model by skdp.dp_evaluate"
    ),
}
UNBOUNDED["neg_root_mean_squared_error"] = UNBOUNDED["root_mean_squared_error"]
# Names of losses in `dp_evaluate`: a score is minus the loss, as in scikit-learn.
LOSS_NAMES = ("log_loss", "brier_score", "mean_squared_error", "mean_absolute_error")


def _check_counts(class_counts, name):
    """Return class counts as ((label, fraction of all rows), ...)."""
    if isinstance(class_counts, tuple):
        class_counts = dict(class_counts)
    if not isinstance(class_counts, dict) or len(class_counts) < 2:
        raise ValueError(
            "class_counts must be a dict from at least two labels to public numbers of rows, got "
            f"{class_counts!r}"
        )
    categories_array(list(class_counts))
    counts = [
        checks.check_positive(count, "a count in class_counts") for count in class_counts.values()
    ]
    fractions = [count / math.fsum(counts) for count in counts]
    if not min(fractions) > 1e-9:
        raise ValueError(
            f"class_counts must not differ by more than a factor of 1e9, got {class_counts!r}"
        )
    return tuple(zip(class_counts, fractions, strict=True))


@dataclass(frozen=True)
class BoundedScore(FrozenValue, ABC):
    """Base class of scores with a known sensitivity to one row.

    Subclasses are frozen values; `bounded_score` creates them by their `name`. A class that defines
    `value` must also define `sensitivity`. It is `monotonic` only if it defines that method as
    well.
    """

    # Methods of an estimator; any one of them is enough for the score.
    methods: ClassVar[tuple[str, ...]] = ("predict",)
    # True if targets are class labels, False if they are numbers.
    of_labels = True

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        base = next(parent for parent in cls.__mro__[1:] if issubclass(parent, BoundedScore))
        if cls.value is base.value:
            return
        if cls.sensitivity is base.sensitivity:
            raise TypeError(
                f"{cls.__name__} defines value but not sensitivity: define sensitivity, too"
            )
        # A new `value` may change in another direction than that of the base class.
        if cls.monotonic is base.monotonic:
            cls.monotonic = BoundedScore.monotonic

    def check(self, estimator, classes, persons=None):
        """Raise `ValueError` if the estimator cannot be scored; called before the charge.

        Parameters
        ----------
        estimator : estimator
            Fitted or not.
        classes : ndarray or None
            The label set, None for a regressor.
        persons : Persons, default=None
            Person of each row, if the privacy unit is a person.

        Raises
        ------
        ValueError
            If `check_methods` does, or if the score does not suit the label set.
        """
        self.check_methods(estimator, persons)
        if self.of_labels != (classes is not None):
            expected = "a regressor"
            if self.of_labels:
                expected = "a classifier"
            raise ValueError(
                f"the score {self.name!r} needs {expected}, got {type(estimator).__name__}"
            )
        counts = dict(getattr(self, "class_counts", None) or ())
        if counts and set(counts) != set(np.asarray(classes).tolist()):
            raise ValueError(
                f"class_counts of the score {self.name!r} must have the labels "
                f"{np.asarray(classes).tolist()}, got {list(counts)}"
            )

    def check_methods(self, estimator, persons=None):
        """Raise `ValueError` if the estimator cannot be scored with any labels.

        This is the part of `check` for callers that do not know the label set: a private scorer,
        and the checks of a search before its candidates receive labels.

        Parameters
        ----------
        estimator : estimator
            Fitted or not.
        persons : Persons, default=None
            Person of each row, if the privacy unit is a person.

        Raises
        ------
        ValueError
            If the estimator has none of the score's `methods` (one is enough), or if the score does
            not support persons.
        """
        if not any(hasattr(estimator, method) for method in self.methods):
            methods = " or ".join(self.methods)
            name = type(estimator).__name__
            message = f"the score {self.name!r} needs {methods}, which {name} does not have"
            raise ValueError(message + reason_for_missing(estimator, self.methods[0]))
        if persons is not None and "persons" not in signature(self.value).parameters:
            raise ValueError(
                f"the score {self.name!r} does not support persons: leave groups out, or use "
                "another score"
            )

    @abstractmethod
    def value(self, estimator, X, y, persons=None):
        """Return the raw score of a fitted estimator, which is not private.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets or labels.
        persons : Persons, default=None
            Person of each row, if the privacy unit is a person. A row then has its weight from
            ``row_weights``, and ``n_persons`` replaces the number of rows. A user-defined score
            without this parameter supports rows only.

        Returns
        -------
        float
        """

    @abstractmethod
    def sensitivity(self, n_samples, relation="add_remove"):
        """Return the sensitivity of a fixed estimator's score to one row, or person, rounded up.

        Parameters
        ----------
        n_samples : int
            Public number of scored rows, or persons.
        relation : {"add_remove", "replace_one"}, default="add_remove"

        Returns
        -------
        float
        """

    @property
    def needs_denominators(self):
        """True for a ratio whose denominators are not declared.

        A search first releases the denominators with a small part of its budget, and
        `with_denominators` then returns a score with a known sensitivity.
        """
        return False

    def planned_sensitivity(self, n_samples, relation="add_remove"):
        """Return the sensitivity with which a search is planned.

        Parameters
        ----------
        n_samples : int
            Public number of scored rows, or persons.
        relation : {"add_remove", "replace_one"}, default="add_remove"

        Returns
        -------
        float
            `sensitivity`, or 1 if that depends on denominators yet to be released. The mechanisms
            are later scaled to the true sensitivity, which does not change their events.
        """
        if self.needs_denominators:
            return 1.0
        return self.sensitivity(n_samples, relation)

    def monotonic(self, relation):
        """Return True if a row changes the scores of all estimators in the same direction.

        Parameters
        ----------
        relation : {"add_remove", "replace_one"}
            The relation of neighboring tables.

        Returns
        -------
        bool
            False unless a subclass overrides this method.
        """
        return False

    def weights(self, sizes):
        """Return the weights for adding the scores of several test sets.

        Parameters
        ----------
        sizes : array-like of shape (n_folds,)
            Number of rows of each test set.

        Returns
        -------
        ndarray of shape (n_folds,)
            The sizes divided by their sum, unless a subclass overrides this method.
        """
        sizes = np.asarray(sizes, dtype=float)
        return sizes / sizes.sum()


@dataclass(frozen=True)
class _MeanOverRows(BoundedScore):
    """Base class of scores computed from the mean over rows of values in [0, `_bound`].

    Subclasses return the values from ``_row_values``. The score is minus the mean, which is that of
    a loss, unless ``_score_of_mean`` is overridden.
    """

    def value(self, estimator, X, y, persons=None):
        """Return the score of the mean of the rows' values, which are clipped to [0, `_bound`]."""
        values = self._row_values(estimator, X, column_or_1d(target_array(y)))
        bound = self._bound
        # NaN counts as the largest value, so the bound holds for every row.
        values = np.clip(np.where(np.isnan(values), bound, values), 0.0, bound)
        total = math.fsum(times_row_weights(values, row_weights_of(persons)))
        return self._score_of_mean(total / n_units(values, persons))

    def monotonic(self, relation):
        return relation == "add_remove"

    def sensitivity(self, n_samples, relation="add_remove"):
        """Return the sensitivity of the score: that of the mean times `_mean_sensitivity`."""
        n_samples = checks.check_integer(n_samples, "n_samples", 1)
        checks.check_relation(relation)
        return self._mean_sensitivity * (1.0 / n_samples + ROUNDING)

    @property
    def _mean_sensitivity(self):
        """Sensitivity of the score times the number of rows, without rounding."""
        return self._bound

    def _score_of_mean(self, loss):
        """Return the score from the mean of the row values: greater is better."""
        return -loss


@dataclass(frozen=True)
class Accuracy(_MeanOverRows):
    """Fraction of rows that are predicted correctly."""

    name = "accuracy"

    _bound = 1.0

    def _row_values(self, estimator, X, y):
        return _is_correct(estimator, X, y)

    def _score_of_mean(self, gain):
        return gain


@dataclass(frozen=True)
class ErrorCount(BoundedScore):
    """Negative number of rows that are predicted incorrectly."""

    name = "neg_error_count"
    monotonic = _MeanOverRows.monotonic

    def value(self, estimator, X, y, persons=None):
        """Return minus the number of wrong predictions, or minus the sum of their row weights."""
        wrong = ~_is_correct(estimator, X, column_or_1d(target_array(y)))
        return -float(times_row_weights(wrong, row_weights_of(persons)).sum())

    def sensitivity(self, n_samples, relation="add_remove"):
        """Return 1: a row, or the weights of a person, count at most 1."""
        checks.check_integer(n_samples, "n_samples", 1)
        checks.check_relation(relation)
        return 1.0

    def weights(self, sizes):
        return np.ones(len(sizes))


class _ClassCounts:
    """Mixin for scores whose denominators are the class counts."""

    @property
    def needs_denominators(self):
        """True if the class counts are not declared."""
        return self.class_counts is None

    def plan_denominators(self, n_units, guarantee, classes):
        """Return the plan of the class counts, to be released once for a search.

        Parameters
        ----------
        n_units : int
            Public number of privacy units.
        guarantee : Guarantee
        classes : ndarray of shape (n_classes,)

        Returns
        -------
        Plan
            Its `run` receives the labels and returns the noisy count of each class.
        """
        mechanism = noise_of_histogram(guarantee, 1)
        run = partial(_release_class_counts, mechanism, classes, n_units)
        return plan_release(mechanism, run, stage_name=DENOMINATORS)

    def with_denominators(self, released):
        """Return the score with released class counts, which are public from now on."""
        return replace(self, class_counts=released)

    def _check_known(self):
        """Raise `ValueError` if the class counts, and therefore the sensitivity, are unknown."""
        if self.needs_denominators:
            raise ValueError(
                f"the score {self.name!r} has no known sensitivity without class counts: pass "
                "class_counts={label: number of rows, ...} of public numbers. Searches, "
                "dp_cross_val_score and make_dp_scorer release them if they are not declared"
            )


@dataclass(frozen=True)
class BalancedAccuracy(_ClassCounts, Accuracy):
    """Mean over classes of the number of correct predictions divided by the class's number of rows.

    Parameters
    ----------
    class_counts : dict of label to positive number, default=None
        Public; only their ratios are read. None lets a search release them.
    """

    class_counts: dict | None = checked(_check_counts, default=None)

    name = "balanced_accuracy"
    monotonic = _MeanOverRows.monotonic

    def value(self, estimator, X, y, persons=None):
        """Return the mean recall of the classes.

        With unknown class counts, it is divided by the counts of these rows, so it has no bounded
        sensitivity.
        """
        if not self.needs_denominators:
            return super().value(estimator, X, y, persons)
        labels = column_or_1d(target_array(y))
        is_right = times_row_weights(
            _is_correct(estimator, X, labels).astype(float), row_weights_of(persons)
        )
        weights = times_row_weights(np.ones(len(labels)), row_weights_of(persons))
        classes = np.asarray(estimator.classes_)
        codes = category_codes(labels, classes)
        recalls = [
            is_right[codes == c].sum() / weights[codes == c].sum()
            for c in range(len(classes))
            if (codes == c).any()
        ]
        return float(np.mean(recalls))

    def sensitivity(self, n_samples, relation="add_remove"):
        """Return the sensitivity for known class counts."""
        self._check_known()
        return super().sensitivity(n_samples, relation)

    @property
    def _gains(self):
        return [1.0 / (fraction * len(self.class_counts)) for _, fraction in self.class_counts]

    @property
    def _bound(self):
        return max(self._gains)

    def _row_values(self, estimator, X, y):
        """Return the gain of its class for each correct prediction; 0 for wrong ones."""
        # Rows with an undeclared label have the code -1, which indexes a gain of 0.
        gains = np.array([*self._gains, 0.0])[_class_codes(self.class_counts, y)]
        return gains * _is_correct(estimator, X, y)


def _sorted_pair(class_counts, name):
    """Return class counts of two classes, the negative class first."""
    if class_counts is None:
        return None
    if (n_classes := len(class_counts)) != 2:
        raise ValueError(f"class_counts of {name} must have two classes, got {n_classes}")
    return tuple(sorted(class_counts))


def _check_two_classes(classes, name):
    """Raise `ValueError` unless there are two classes, for scores that have a positive class."""
    if len(classes) != 2:
        raise ValueError(f"the score {name!r} needs two classes, got {len(classes)}")


@dataclass(frozen=True)
class Recall(_ClassCounts, Accuracy):
    """Number of correctly predicted rows of the positive class, divided by the number of its rows.

    Parameters
    ----------
    class_counts : dict of two labels to positive numbers, default=None
        Public; only their ratio is used. None lets a search release them. The second of the sorted
        labels is the positive class.
    """

    class_counts: dict | None = checked(_check_counts, default=None)

    name = "recall"
    monotonic = _MeanOverRows.monotonic

    def __post_init__(self):
        super().__post_init__()
        vars(self).update(class_counts=_sorted_pair(self.class_counts, self.name))

    def check(self, estimator, classes, persons=None):
        super().check(estimator, classes, persons)
        _check_two_classes(classes, self.name)

    def value(self, estimator, X, y, persons=None):
        """Return the recall of the positive class."""
        if not self.needs_denominators:
            return super().value(estimator, X, y, persons)
        n_true, _, n_positive = _positive_counts(estimator, X, y, persons, estimator.classes_)
        # Without positives, no prediction is a true positive, and the score is 0.
        return n_true / max(n_positive, 1e-300)

    def sensitivity(self, n_samples, relation="add_remove"):
        """Return the sensitivity for a known number of positives."""
        self._check_known()
        return super().sensitivity(n_samples, relation)

    @property
    def _bound(self):
        return 1.0 / self.class_counts[1][1]

    def _row_values(self, estimator, X, y):
        """Return `_bound` for each true positive; 0 for other rows."""
        is_positive = _class_codes(self.class_counts, y) == 1
        return self._bound * (is_positive & _is_correct(estimator, X, y))


@dataclass(frozen=True)
class F1(_ClassCounts, BoundedScore):
    """Harmonic mean of precision and recall of the positive class.

    The score is 2 tp / (n_positive + n_predicted): tp is the number of true positives, limited to
    the known number of positives, n_positive, and n_predicted is the number of rows predicted as
    positive.

    Parameters
    ----------
    class_counts : dict of two labels to positive numbers, default=None
        As in `Recall`.
    """

    class_counts: dict | None = checked(_check_counts, default=None)

    name = "f1"

    def __post_init__(self):
        super().__post_init__()
        vars(self).update(class_counts=_sorted_pair(self.class_counts, self.name))

    def check(self, estimator, classes, persons=None):
        super().check(estimator, classes, persons)
        _check_two_classes(classes, self.name)

    def value(self, estimator, X, y, persons=None):
        """Return F1 of the positive class.

        A known number of positives replaces that of these rows in the denominator, and limits the
        true positives.
        """
        if self.needs_denominators:
            classes = estimator.classes_
        else:
            classes = categories_array([label for label, _ in self.class_counts])
        n_true, n_predicted, n_positive = _positive_counts(estimator, X, y, persons, classes)
        if not self.needs_denominators:
            n_positive = self._n_positive(n_units(column_or_1d(target_array(y)), persons))
        return 2.0 * min(n_true, n_positive) / max(n_positive + n_predicted, 1e-300)

    def sensitivity(self, n_samples, relation="add_remove"):
        """Return the sensitivity for a known number of positives."""
        self._check_known()
        checks.check_relation(relation)
        n_positive = self._n_positive(checks.check_integer(n_samples, "n_samples", 1))
        # A row adds at most one true positive, which is also a predicted positive. The score rises
        # most, by 2 / (n_positive + 1), if there was no true positive before. A false positive
        # lowers it by at most 1 / (2 n_positive): see docs/theory/model_selection.md, section 1,
        # point 4. The former is larger, since n_positive is at least 1.
        increase = 2.0 / (n_positive + 1.0)
        decrease = 1.0 / (2.0 * n_positive)
        if relation == "add_remove":
            return increase + ROUNDING
        return increase + decrease + ROUNDING

    def _n_positive(self, n_samples):
        """Return the known number of scored positives, at least 1."""
        return max(1.0, self.class_counts[1][1] * n_samples)


@dataclass(frozen=True)
class LogLoss(_MeanOverRows):
    """Negative mean log loss, with the loss of each row clipped to `bound`.

    Parameters
    ----------
    bound : float
        Largest loss of a row, in nats; public.
    """

    bound: float = checked(checks.check_positive, default=5.0)

    name = "neg_log_loss"
    methods = ("predict_proba",)

    @property
    def _bound(self):
        return self.bound

    def _row_values(self, estimator, X, y):
        """Return minus the logarithm of the probability of each true label."""
        with np.errstate(all="ignore"):
            probabilities = estimator.predict_proba(X)
            return -np.log(row_sums(np.where(_indicators(estimator, y), probabilities, 0.0)))


@dataclass(frozen=True)
class BrierScore(_MeanOverRows):
    """Negative mean over rows of half the squared distance between probabilities and labels."""

    name = "neg_brier_score"
    methods = ("predict_proba",)

    _bound = 1.0

    def _row_values(self, estimator, X, y):
        """Return half the squared distance of the probabilities from the one-hot encoded label."""
        probabilities = estimator.predict_proba(X)
        truth = _indicators(estimator, y)
        # A label that the estimator does not know counts as an additional class with probability 0.
        unknown = ~truth.any(axis=1)
        return 0.5 * (row_sums(np.square(probabilities - truth)) + unknown)


@dataclass(frozen=True)
class ROCAUC(_ClassCounts, BoundedScore):
    """Area under the ROC curve: fraction of pairs of both classes that are ordered correctly.

    Parameters
    ----------
    class_counts : dict of two labels to positive numbers, default=None
        Public; only their ratio is used. None lets a search release them. The second of the sorted
        labels is the positive class. The ratio determines the maximum number of scored rows per
        class; rows beyond it do not count. With persons, rows count in order until their weights
        add up to this number.
    """

    class_counts: dict | None = checked(_check_counts, default=None)

    name = "roc_auc"
    methods = ("decision_function", "predict_proba")

    def __post_init__(self):
        super().__post_init__()
        vars(self).update(class_counts=_sorted_pair(self.class_counts, self.name))

    def value(self, estimator, X, y, persons=None):
        """Return the fraction of pairs of both classes whose scores are in the right order.

        With known class counts, these are the limits of the sums of the row weights of each class,
        and the number of pairs is their product. NaN counts as the lowest score.
        """
        y = column_or_1d(target_array(y))
        scores = _positive_class_scores(estimator, X)
        scores = np.where(np.isnan(scores), -np.inf, scores)
        if self.needs_denominators:
            codes = category_codes(y, np.asarray(estimator.classes_))
            return float(roc_auc_score(codes == 1, scores, sample_weight=row_weights_of(persons)))
        weights = times_row_weights(np.ones(len(y)), row_weights_of(persons))
        limits = self._class_limits(n_units(y, persons))
        codes = _class_codes(self.class_counts, y)
        negatives = scores[codes == 0]
        positives = scores[codes == 1]
        negative_weights = _within_limit(weights[codes == 0], limits[0])
        positive_weights = _within_limit(weights[codes == 1], limits[1])
        order = np.argsort(negatives)
        # Entry i is the weight of the i negatives with the lowest scores.
        cumulative = np.append(0.0, np.cumsum(negative_weights[order]))
        below = np.searchsorted(negatives[order], positives, "left")
        not_above = np.searchsorted(negatives[order], positives, "right")
        # The mean of both counts: ties count one half.
        twice_ordered = positive_weights * (cumulative[below] + cumulative[not_above])
        return math.fsum(twice_ordered) / (2 * limits[0] * limits[1])

    def check(self, estimator, classes, persons=None):
        super().check(estimator, classes, persons)
        _check_two_classes(classes, self.name)

    def sensitivity(self, n_samples, relation="add_remove"):
        """Return the sensitivity for known class counts.

        A row is in at most as many pairs as the other class has rows, so its fraction of all pairs
        is at most 1 over the count of the row's class. A replaced row may change its class.
        """
        self._check_known()
        limits = self._class_limits(checks.check_integer(n_samples, "n_samples", 1))
        checks.check_relation(relation)
        if relation == "add_remove":
            return 1.0 / min(limits) + ROUNDING
        return 1.0 / limits[0] + 1.0 / limits[1] + ROUNDING

    def _class_limits(self, n_samples):
        """Return the maximum number of scored rows of each class, at least 1."""
        return [max(1, round(fraction * n_samples)) for _, fraction in self.class_counts]


class _ReleasedByCounts(BoundedScore):
    """Base class of two-class metrics that searches refuse because of unbounded sensitivity.

    `make_dp_scorer` releases them with the counts of `dp_evaluate`.
    """

    @property
    def needs_denominators(self):
        """Always True, because `make_dp_scorer` releases all counts."""
        return True


@dataclass(frozen=True)
class AveragePrecision(_ReleasedByCounts):
    """Average precision."""

    name = "average_precision"
    methods = ("predict_proba", "decision_function")

    def value(self, estimator, X, y, persons=None):
        """Return the average precision, which is only released by counts of cells."""
        y = column_or_1d(target_array(y))
        codes = category_codes(y, np.asarray(estimator.classes_))
        scores = _positive_class_scores(estimator, X)
        return float(
            average_precision_score(codes == 1, scores, sample_weight=row_weights_of(persons))
        )

    def sensitivity(self, n_samples, relation="add_remove"):
        raise ValueError(UNBOUNDED[self.name])


@dataclass(frozen=True)
class Precision(_ReleasedByCounts):
    """Fraction of positives among the rows that are predicted as positive."""

    name = "precision"

    def value(self, estimator, X, y, persons=None):
        """Return the precision of the positive class."""
        n_true, n_predicted, _ = _positive_counts(estimator, X, y, persons, estimator.classes_)
        # Without predicted positives, none of them is true, and the score is 0.
        return n_true / max(n_predicted, 1e-300)

    def sensitivity(self, n_samples, relation="add_remove"):
        raise ValueError(UNBOUNDED[self.name])


@dataclass(frozen=True)
class MeanSquaredError(_MeanOverRows):
    """Negative mean squared error, with targets and predictions clipped to bounds.

    Parameters
    ----------
    target_bounds : tuple of (low, high)
        Public.
    """

    target_bounds: tuple = checked(lambda bounds, name: checks.check_target_bounds(bounds))

    name = "neg_mean_squared_error"
    of_labels = False

    @property
    def _bound(self):
        """Largest squared error of a row, rounded up."""
        low, high = self.target_bounds
        # The factor covers the rounding of the difference, of its square and of this product.
        return (high - low) ** 2 * (1.0 + 2.0**-50)

    def _row_values(self, estimator, X, y):
        """Return the squared errors of clipped predictions for clipped targets."""
        predicted, y = _clipped_numbers(estimator, X, y, self.target_bounds)
        return np.square(predicted - y)


@dataclass(frozen=True)
class MeanAbsoluteError(_MeanOverRows):
    """Negative mean absolute error, with targets and predictions clipped to bounds.

    Parameters
    ----------
    target_bounds : tuple of (low, high)
        Public.
    """

    target_bounds: tuple = checked(lambda bounds, name: checks.check_target_bounds(bounds))

    name = "neg_mean_absolute_error"
    of_labels = False

    @property
    def _bound(self):
        """Largest absolute error of a row, rounded up."""
        low, high = self.target_bounds
        # The factor covers the rounding of the difference and of this product.
        return (high - low) * (1.0 + 2.0**-50)

    def _row_values(self, estimator, X, y):
        """Return the absolute errors of clipped predictions for clipped targets."""
        predicted, y = _clipped_numbers(estimator, X, y, self.target_bounds)
        return np.abs(predicted - y)


@dataclass(frozen=True)
class R2(MeanSquaredError):
    """1 minus the mean squared error divided by the variance of the targets.

    Parameters
    ----------
    target_bounds : tuple of (low, high)
        Public.
    target_variance : float, default=None
        Public. None lets a search release it. The exact variance of the scored targets is private,
        and dividing by it would make the sensitivity unbounded.
    """

    target_variance: float | None = None

    name = "r2"
    monotonic = _MeanOverRows.monotonic

    def __post_init__(self):
        super().__post_init__()
        if self.target_variance is not None:
            variance = checks.check_positive(self.target_variance, "target_variance")
            vars(self).update(target_variance=variance)

    @property
    def needs_denominators(self):
        """True if the variance of the targets is not declared."""
        return self.target_variance is None

    def plan_denominators(self, n_units, guarantee, classes=None):
        """Return the plan of the targets' variance, to be released once for a search.

        Parameters
        ----------
        n_units : int
            Public number of privacy units.
        guarantee : Guarantee
        classes : None

        Returns
        -------
        Plan
            Its `run` receives the targets and returns their noisy variance.
        """
        shape = TableShape(n_rows=n_units, n_columns=1)
        moments = plan_moments(shape, guarantee, n_moments=2)
        run = partial(_release_variance, moments, self.target_bounds)
        return plan_release(noise_of_moments(shape, guarantee, 2), run, stage_name=DENOMINATORS)

    def with_denominators(self, released):
        """Return the score with a released variance, which is public from now on."""
        return replace(self, target_variance=released)

    def value(self, estimator, X, y, persons=None):
        """Return R2, with the declared variance of the targets or else that of these rows."""
        if not self.needs_denominators:
            return super().value(estimator, X, y, persons)
        with np.errstate(all="ignore"):
            targets = np.clip(np.asarray(column_or_1d(target_array(y)), float), *self.target_bounds)
        weights = times_row_weights(np.ones(len(targets)), row_weights_of(persons))
        mean = np.average(targets, weights=weights)
        variance = np.average(np.square(targets - mean), weights=weights)
        loss = -MeanSquaredError(self.target_bounds).value(estimator, X, y, persons)
        if variance > 0.0:
            return 1.0 - loss / variance
        return float(loss == 0.0)

    def sensitivity(self, n_samples, relation="add_remove"):
        """Return the sensitivity for a declared variance of the targets."""
        if self.needs_denominators:
            raise ValueError(
                "the score 'r2' has no known sensitivity without target_variance: pass a public "
                "one. Searches, dp_cross_val_score and make_dp_scorer release it if it is not "
                "declared"
            )
        return super().sensitivity(n_samples, relation)

    @property
    def _mean_sensitivity(self):
        return max(1.0, self._bound / self.target_variance) * (1.0 + 2.0**-50)

    def _score_of_mean(self, loss):
        return 1.0 - loss / self.target_variance


def _release_class_counts(mechanism, classes, n_units, y, source, persons=None):
    """Return the noisy class counts; counts hidden by noise are set to the size of their noise."""
    min_count = max(mechanism.deviation(len(classes)), 1e-6 * n_units)
    codes = category_codes(y, classes)
    counts = count_cells([codes], (len(classes),), row_weights_of(persons))
    noisy = mechanism.release(counts, random_state=source).astype(np.float64)
    return dict(zip(classes.tolist(), np.maximum(noisy, min_count).tolist(), strict=True))


def _release_variance(moments, target_bounds, y, source, persons=None):
    """Return the noisy variance of targets within bounds."""
    low, high = (np.array([bound]) for bound in target_bounds)
    targets = np.asarray(y, dtype=np.float64)[:, np.newaxis]
    _, variances = moments.run(targets, source, low=low, high=high, persons=persons)
    return float(variances[0])


CLASSIFIER_SCORES = (
    Accuracy,
    ErrorCount,
    BalancedAccuracy,
    Recall,
    F1,
    LogLoss,
    BrierScore,
    ROCAUC,
)
# Scores with unbounded sensitivity, which only `make_dp_scorer` releases.
RELEASED_BY_COUNTS: dict[str, type[BoundedScore]] = {
    score.name: score for score in (AveragePrecision, Precision)
}
REGRESSION_SCORES = (MeanSquaredError, MeanAbsoluteError, R2)
SCORES: dict[str, type[BoundedScore]] = {
    score.name: score for score in (*CLASSIFIER_SCORES, *REGRESSION_SCORES)
}


def bounded_score(name: str | BoundedScore, **parameters: object) -> BoundedScore:
    """Return a score with a known sensitivity, for the parameter `scoring` of the searches.

    Parameters
    ----------
    name : str
        "accuracy", "neg_error_count", "balanced_accuracy", "recall", "f1", "neg_log_loss",
        "neg_brier_score", "roc_auc", "neg_mean_squared_error", "neg_mean_absolute_error" or "r2".
        As in scikit-learn, larger is better. The names of losses in `dp_evaluate`, such as
        "log_loss", are also accepted: the score is minus the loss.
    **parameters
        Public parameters of the score: `class_counts` (dict from label to number of rows, of
        which only the ratios are used) for "balanced_accuracy", "recall", "f1" and "roc_auc",
        `bound` (default 5.0 nats) for "neg_log_loss", `target_bounds` for
        "neg_mean_squared_error", "neg_mean_absolute_error" and "r2", and `target_variance` for
        "r2". Class counts and the variance are denominators of their scores. If they are not
        declared, a search releases them once, with a small part of its budget.

    Returns
    -------
    BoundedScore

    Raises
    ------
    ValueError
        If the score has no known sensitivity, or a parameter is missing or wrong.

    Examples
    --------
    >>> from skdp.model_selection import bounded_score
    >>> score = bounded_score("roc_auc", class_counts={"no": 300, "yes": 100})
    >>> round(score.sensitivity(1000), 6)
    0.004
    """
    if isinstance(name, BoundedScore) and not parameters:
        return name
    if isinstance(name, str) and name in UNBOUNDED:
        raise ValueError(UNBOUNDED[name])
    if isinstance(name, str) and name in LOSS_NAMES:
        name = f"neg_{name}"
    if not isinstance(name, str) or name not in SCORES:
        available = ", ".join(map(repr, SCORES))
        raise ValueError(
            f"scoring={name!r} has no known sensitivity, so it cannot be released privately: use "
            f"one of {available}, see skdp.model_selection.bounded_score"
        )
    try:
        return SCORES[name](**parameters)
    except TypeError:
        declared = fields(SCORES[name])
        names = [field.name for field in declared if field.name != "methods"]
        missing = [
            field.name
            for field in declared
            if field.name not in parameters
            and field.default is MISSING
            and field.default_factory is MISSING
        ]
        if missing:
            raise ValueError(
                f"scoring={name!r} needs {' and '.join(missing)}: pass it by keyword, as in "
                f"bounded_score({name!r}, {missing[0]}=...) or make_dp_scorer({name!r}, ...)"
            ) from None
        raise ValueError(
            f"scoring={name!r} accepts {names or 'no parameters'}, got {sorted(parameters)}"
        ) from None


def default_score(scoring, estimator):
    """Return the score that the user named, or the default score of the estimator.

    Parameters
    ----------
    scoring : str, BoundedScore or None
    estimator : estimator

    Raises
    ------
    ValueError
        If the score has no known sensitivity, or `scoring` is None for a regressor without
        `target_bounds`.
    """
    if scoring is None and is_classifier(estimator):
        return bounded_score("accuracy")
    bounds = [
        value for name, value in estimator.get_params().items() if name.endswith("target_bounds")
    ]
    if scoring is not None:
        names = [name for score in REGRESSION_SCORES for name in (score.name, score.name[4:])]
        if isinstance(scoring, str) and scoring in (*names, "r2") and bounds:
            return bounded_score(scoring, target_bounds=bounds[-1])
        return bounded_score(scoring)
    if not bounds:
        raise ValueError(
            "scoring=None needs an estimator with target_bounds: give scoring, for example "
            "bounded_score('r2', target_bounds=(low, high))"
        )
    return bounded_score("r2", target_bounds=bounds[-1])


def _class_codes(class_counts, y):
    """Return the index of each row's label in `class_counts`, -1 for other labels."""
    return category_codes(y, categories_array([label for label, _ in class_counts]))


def _is_correct(estimator, X, y):
    """Return a boolean array: True for rows that are predicted correctly."""
    predicted = column_or_1d(estimator.predict(X))
    if predicted.shape != y.shape:
        raise ValueError(f"predict returned {count_of(len(predicted), 'label')} for {len(y)} rows")
    # Comparing cells of y directly could raise an error after the charge, so codes are compared
    # instead.
    codes = category_codes(predicted, predicted)
    return (codes >= 0) & (category_codes(y, predicted) == codes)


def _indicators(estimator, y):
    """Return the boolean matrix (rows, classes) of the labels, one-hot encoded."""
    codes = category_codes(y, np.asarray(estimator.classes_))
    return codes[:, None] == np.arange(len(estimator.classes_))


def _positive_counts(estimator, X, y, persons, classes):
    """Return the numbers of true positives, of predicted positives and of positives.

    Rows whose label is not one of the classes do not count.
    """
    y = column_or_1d(target_array(y))
    classes = np.asarray(classes)
    codes = category_codes(y, classes)
    predicted = category_codes(column_or_1d(estimator.predict(X)), classes)
    if predicted.shape != codes.shape:
        raise ValueError(f"predict returned {count_of(len(predicted), 'label')} for {len(y)} rows")
    weights = times_row_weights(np.ones(len(y)), row_weights_of(persons))
    is_predicted = (predicted == 1) & (codes >= 0)
    is_positive = codes == 1
    masks = (is_predicted & is_positive, is_predicted, is_positive)
    return [math.fsum(weights[mask]) for mask in masks]


def _clipped_numbers(estimator, X, y, target_bounds):
    """Return the predictions and the targets, clipped to the bounds."""
    with np.errstate(all="ignore"):
        predicted = np.asarray(column_or_1d(estimator.predict(X)), dtype=np.float64)
        y = np.asarray(y, dtype=np.float64)
        return np.clip(predicted, *target_bounds), np.clip(y, *target_bounds)


def _within_limit(weights, limit):
    """Return the part of each weight that is within a running total of `limit`, row by row."""
    return np.clip(limit - (np.cumsum(weights) - weights), 0.0, weights)


def _positive_class_scores(estimator, X):
    """Return one number per row that increases with the probability of the positive class."""
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=float)
    else:
        scores = np.asarray(estimator.predict_proba(X), dtype=float)[:, -1]
    if scores.ndim != 1:
        raise ValueError("the score 'roc_auc' needs a classifier with two classes")
    return scores
