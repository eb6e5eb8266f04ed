"""Scores whose sensitivity is known, as objects that name both their value and its sensitivity.

Every score is a utility: larger is better. The number of scored rows is public, and a null record
counts nowhere. The sensitivities are derived in ``docs/model_selection.md``.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from inspect import signature

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import column_or_1d

from skdp._data._persons import n_units, row_weights_of, times_row_weights
from skdp._data._tables import target_array
from skdp.mechanisms._randomized_response import categories_array
from skdp.utils import _validation as checks
from skdp.utils._labels import category_codes
from skdp.utils._row_wise import row_sums
from skdp.utils._values import FrozenValue, checked

# Two correctly rounded sums of n terms of at most 1, each divided by n: see the derivation.
ROUNDING = 2.0**-50


def _check_counts(class_counts, name):
    """Return ((label, share of all rows), ...)."""
    if isinstance(class_counts, tuple):
        class_counts = dict(class_counts)
    if not isinstance(class_counts, dict) or len(class_counts) < 2:
        raise ValueError(
            "class_counts must be a dict of two labels or more to public numbers of rows, got "
            f"{class_counts!r}"
        )
    categories_array(list(class_counts))
    counts = [checks.check_positive(count, "a class count") for count in class_counts.values()]
    shares = [count / math.fsum(counts) for count in counts]
    if not min(shares) > 1e-9:
        raise ValueError("class_counts must not differ by more than a factor of 1e9")
    return tuple(zip(class_counts, shares, strict=True))


@dataclass(frozen=True)
class BoundedScore(FrozenValue, ABC):
    """A score of a fitted estimator on rows, and how far one row can move it.

    Subclasses are frozen values; `bounded_score` makes them by their `name`. A class with a `value`
    of its own has a `sensitivity` of its own, and is not `monotonic` unless it says so itself.
    """

    # The methods of an estimator of which one is needed, and whether targets are labels.
    methods = ("predict",)
    of_labels = True

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        base = next(kind for kind in cls.__mro__[1:] if issubclass(kind, BoundedScore))
        if cls.value is base.value:
            return
        if cls.sensitivity is base.sensitivity:
            raise TypeError(f"{cls.__name__} has a value of its own, and needs its sensitivity")
        if cls.monotonic is base.monotonic:
            cls.monotonic = BoundedScore.monotonic

    def check(self, estimator, classes, persons=None):
        """Refuse what cannot be scored, before anything is charged.

        Parameters
        ----------
        estimator : estimator
            Fitted or not.
        classes : ndarray or None
            The label set, None for a regressor.
        persons : Persons, default=None
            Whose the rows are, where the unit is a person.

        Raises
        ------
        ValueError
        """
        self.check_methods(estimator, persons)
        if self.of_labels != (classes is not None):
            kind = "a classifier" if self.of_labels else "a regressor"
            raise ValueError(f"the score {self.name!r} needs {kind}")
        counts = dict(getattr(self, "class_counts", ()))
        if counts and set(counts) != set(np.asarray(classes).tolist()):
            raise ValueError(
                f"the class_counts of the score {self.name!r} must be of the labels "
                f"{np.asarray(classes).tolist()}, got {list(counts)}"
            )

    def check_methods(self, estimator, persons=None):
        """Refuse an estimator that has not the methods, or persons, that the score has no room for.

        Parameters
        ----------
        estimator : estimator
            Fitted or not.
        persons : Persons, default=None
            Whose the rows are, where the unit is a person.

        Raises
        ------
        ValueError
        """
        if not any(hasattr(estimator, method) for method in self.methods):
            needed = " or ".join(self.methods)
            raise ValueError(
                f"the score {self.name!r} needs {needed}, but {type(estimator).__name__} has none"
            )
        if persons is not None and "persons" not in signature(self.value).parameters:
            raise ValueError(f"the score {self.name!r} has no value by persons: leave groups out")

    @abstractmethod
    def value(self, estimator, X, y, persons=None):
        """Return the raw score of a fitted estimator: it is not private.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets or labels.
        persons : Persons, default=None
            Whose the rows are, where the unit is a person: a row counts by its ``row_weights``, and
            ``n_persons`` stands for the number of rows. A score of one's own that does not take
            it is of rows alone.

        Returns
        -------
        float
        """

    @abstractmethod
    def sensitivity(self, n_samples, relation="add_remove"):
        """Return by how much one row, or person, moves a fixed estimator's score, rounded up.

        Parameters
        ----------
        n_samples : int
            The number of scored rows, or persons, which is public.
        relation : {"add_remove", "replace_one"}, default="add_remove"

        Returns
        -------
        float
        """

    def monotonic(self, relation):
        """Say whether a row moves the scores of all estimators in the same direction.

        Parameters
        ----------
        relation : {"add_remove", "replace_one"}
            What neighboring tables are.

        Returns
        -------
        bool
            Whether it is; False unless a class says more.
        """
        return False

    def weights(self, sizes):
        """Return with which weights the scores of test sets of these sizes are added up.

        Parameters
        ----------
        sizes : array-like of shape (n_folds,)
            Rows of each fold.

        Returns
        -------
        ndarray of shape (n_folds,)
            The weights.
        """
        sizes = np.asarray(sizes, dtype=float)
        return sizes / sizes.sum()


@dataclass(frozen=True)
class _MeanOverRows(BoundedScore):
    """Minus the mean over the rows of a loss in [0, bound], or of a gain the mean."""

    def value(self, estimator, X, y, persons=None):
        values = self._of_rows(estimator, X, column_or_1d(target_array(y)))
        bound = self._bound
        # A loss that is no number is the worst one, whichever row it came from.
        values = np.clip(np.where(np.isnan(values), bound, values), 0.0, bound)
        total = math.fsum(times_row_weights(values, row_weights_of(persons)))
        return self._of_mean(total / n_units(values, persons))

    def monotonic(self, relation):
        return relation == "add_remove"

    def sensitivity(self, n_samples, relation="add_remove"):
        n_samples = checks.check_integer(n_samples, "n_samples", 1)
        checks.check_relation(relation)
        return self._unit * (1.0 / n_samples + ROUNDING)

    @property
    def _unit(self):
        return self._bound

    def _of_mean(self, loss):
        return -loss


@dataclass(frozen=True)
class Accuracy(_MeanOverRows):
    """The share of rows that are predicted correctly."""

    name = "accuracy"

    _bound = 1.0

    def _of_rows(self, estimator, X, y):
        return _correct(estimator, X, y)

    def _of_mean(self, gain):
        return gain


@dataclass(frozen=True)
class ErrorCount(BoundedScore):
    """Minus the number of rows that are predicted wrongly."""

    name = "neg_error_count"
    monotonic = _MeanOverRows.monotonic

    def value(self, estimator, X, y, persons=None):
        wrong = ~_correct(estimator, X, column_or_1d(target_array(y)))
        return -float(times_row_weights(wrong, row_weights_of(persons)).sum())

    def sensitivity(self, n_samples, relation="add_remove"):
        checks.check_integer(n_samples, "n_samples", 1)
        checks.check_relation(relation)
        return 1.0

    def weights(self, sizes):
        return np.ones(len(sizes))


@dataclass(frozen=True)
class BalancedAccuracy(Accuracy):
    """The mean over classes of the correct rows over the declared number of rows.

    Parameters
    ----------
    class_counts : dict of label to positive number
        Public; only their ratios are read.
    """

    class_counts: dict = checked(_check_counts)

    name = "balanced_accuracy"

    @property
    def _gains(self):
        return [1.0 / (share * len(self.class_counts)) for _, share in self.class_counts]

    @property
    def _bound(self):
        return max(self._gains)

    def _of_rows(self, estimator, X, y):
        # A row of another label has the code -1, and gains nothing.
        gains = np.array([*self._gains, 0.0])[_codes(self.class_counts, y)]
        return gains * _correct(estimator, X, y)


@dataclass(frozen=True)
class LogLoss(_MeanOverRows):
    """Minus the mean of the rows' log-losses, each clipped to `bound`.

    Parameters
    ----------
    bound : float
        Public; the largest loss of a row, in nats.
    """

    bound: float = checked(checks.check_positive, default=5.0)

    name = "neg_log_loss"
    methods = ("predict_proba",)

    @property
    def _bound(self):
        return self.bound

    def _of_rows(self, estimator, X, y):
        with np.errstate(all="ignore"):
            probabilities = estimator.predict_proba(X)
            return -np.log(row_sums(np.where(_indicators(estimator, y), probabilities, 0.0)))


@dataclass(frozen=True)
class BrierScore(_MeanOverRows):
    """Minus the mean over rows of half the squared distance of probabilities to the truth."""

    name = "neg_brier_score"
    methods = ("predict_proba",)

    _bound = 1.0

    def _of_rows(self, estimator, X, y):
        probabilities = estimator.predict_proba(X)
        truth = _indicators(estimator, y)
        # A label that the estimator does not know is a class of its own, of probability 0.
        unknown = ~truth.any(axis=1)
        return 0.5 * (row_sums(np.square(probabilities - truth)) + unknown)


@dataclass(frozen=True)
class ROCAUC(BoundedScore):
    """The share of pairs of rows of different classes that are ordered rightly.

    Parameters
    ----------
    class_counts : dict of two labels to positive numbers
        Public; only their ratio is read. The second of the sorted labels is the positive one.
        Of the scored rows, at most so many of each class take part, the first ones; of persons,
        the first rows whose row weights add up to so many.
    """

    class_counts: dict = checked(_check_counts)

    name = "roc_auc"
    methods = ("decision_function", "predict_proba")

    def __post_init__(self):
        super().__post_init__()
        if (n_classes := len(self.class_counts)) != 2:
            raise ValueError(f"roc_auc needs the class_counts of two classes, got {n_classes}")
        vars(self).update(class_counts=tuple(sorted(self.class_counts)))

    def value(self, estimator, X, y, persons=None):
        y = column_or_1d(target_array(y))
        scores = _scores_of_second(estimator, X)
        scores = np.where(np.isnan(scores), -np.inf, scores)
        row_weights = times_row_weights(np.ones(len(y)), row_weights_of(persons))
        caps = self._caps(n_units(y, persons))
        codes = _codes(self.class_counts, y)
        negatives, positives = (scores[codes == code] for code in (0, 1))
        outside, inside = (_first(row_weights[codes == code], cap) for code, cap in enumerate(caps))
        order = np.argsort(negatives)
        upto = np.append(0.0, np.cumsum(outside[order]))
        ends = (np.searchsorted(negatives[order], positives, side) for side in ("left", "right"))
        return math.fsum(inside * sum(upto[end] for end in ends)) / (2 * caps[0] * caps[1])

    def sensitivity(self, n_samples, relation="add_remove"):
        caps = self._caps(checks.check_integer(n_samples, "n_samples", 1))
        checks.check_relation(relation)
        if relation == "add_remove":
            return 1.0 / min(caps) + ROUNDING
        return 1.0 / caps[0] + 1.0 / caps[1] + ROUNDING

    def _caps(self, n_samples):
        return [max(1, round(share * n_samples)) for _, share in self.class_counts]


@dataclass(frozen=True)
class MeanSquaredError(_MeanOverRows):
    """Minus the mean squared error of targets and predictions that are clipped to bounds.

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
        low, high = self.target_bounds
        return (high - low) ** 2 * (1.0 + 2.0**-50)

    def _of_rows(self, estimator, X, y):
        with np.errstate(all="ignore"):
            pair = column_or_1d(estimator.predict(X)), y
            pair = (np.asarray(values, dtype=np.float64) for values in pair)
            predicted, y = (np.clip(values, *self.target_bounds) for values in pair)
        return np.square(predicted - y)


@dataclass(frozen=True)
class R2(MeanSquaredError):
    """1 minus the mean squared error over a public variance of the targets.

    Parameters
    ----------
    target_bounds : tuple of (low, high)
        Public.
    target_variance : float, default=None
        Public; None takes that of a uniform distribution over the bounds. The variance of the
        scored targets is private, and a quotient by it has no bound on its sensitivity.
    """

    target_variance: float | None = None

    name = "r2"

    def __post_init__(self):
        super().__post_init__()
        low, high = self.target_bounds
        variance = self.target_variance
        variance = (high - low) ** 2 / 12.0 if variance is None else variance
        vars(self).update(target_variance=checks.check_positive(variance, "target_variance"))

    @property
    def _unit(self):
        return max(1.0, self._bound / self.target_variance) * (1.0 + 2.0**-50)

    def _of_mean(self, loss):
        return 1.0 - loss / self.target_variance


OF_LABELS = (Accuracy, ErrorCount, BalancedAccuracy, LogLoss, BrierScore, ROCAUC)
SCORES = {score.name: score for score in (*OF_LABELS, MeanSquaredError, R2)}


def bounded_score(name, **parameters):
    """Return a score whose sensitivity is known, for `scoring` of the searches.

    Parameters
    ----------
    name : str
        "accuracy", "neg_error_count", "balanced_accuracy", "neg_log_loss", "neg_brier_score",
        "roc_auc", "neg_mean_squared_error" or "r2". As in scikit-learn, larger is better.
    **parameters
        What the score needs, all of it public: `class_counts` (dict of label to number of
        rows, of which only the ratios are read) for "balanced_accuracy" and "roc_auc", `bound`
        (default 5.0 nats) for "neg_log_loss", `target_bounds` for "neg_mean_squared_error"
        and "r2", and `target_variance` (default that of a uniform distribution) for "r2".

    Returns
    -------
    BoundedScore

    Raises
    ------
    ValueError
        If the sensitivity of such a score is not known, or a parameter is missing or wrong.

    Examples
    --------
    >>> from skdp.model_selection import bounded_score
    >>> score = bounded_score("roc_auc", class_counts={"no": 300, "yes": 100})
    >>> round(score.sensitivity(1000), 6)
    0.004
    """
    if isinstance(name, BoundedScore) and not parameters:
        return name
    if not isinstance(name, str) or name not in SCORES:
        known = ", ".join(map(repr, SCORES))
        raise ValueError(
            f"the sensitivity of the score {name!r} is not known, so that no noise would protect "
            f"it; known are {known}, see skdp.model_selection.bounded_score"
        )
    try:
        return SCORES[name](**parameters)
    except TypeError:
        fields = list(SCORES[name].__dataclass_fields__)
        raise ValueError(
            f"the score {name!r} takes {fields or 'no parameters'}, got {sorted(parameters)}: "
            f"use bounded_score({name!r}, ...)"
        ) from None


def default_score(scoring, estimator):
    """Return the score that a user named, or the usual one of an estimator.

    Parameters
    ----------
    scoring : str, BoundedScore or None
    estimator : estimator

    Raises
    ------
    ValueError
        If its sensitivity is not known, or nothing is given for a regressor without bounds.
    """
    if scoring is not None:
        return bounded_score(scoring)
    if is_classifier(estimator):
        return bounded_score("accuracy")
    bounds = [v for k, v in estimator.get_params().items() if k.endswith("target_bounds")]
    if not bounds:
        raise ValueError("give scoring, for example bounded_score('r2', target_bounds=(low, high))")
    return bounded_score("r2", target_bounds=bounds[-1])


def _codes(class_counts, y):
    """Return the number of each row's label, -1 of others: a row has one."""
    return category_codes(y, categories_array([label for label, _ in class_counts]))


def _correct(estimator, X, y):
    """Return for each row whether it is predicted correctly: one entry a row, also of a column."""
    predicted = column_or_1d(estimator.predict(X))
    if predicted.shape != y.shape:
        raise ValueError(f"predict gave {len(predicted)} labels for {len(y)} rows")
    # The cells of y may raise when they are compared, and it is charged.
    codes = category_codes(predicted, predicted)
    return (codes >= 0) & (category_codes(y, predicted) == codes)


def _indicators(estimator, y):
    """Return of which of the estimator's classes each row is."""
    codes = category_codes(y, np.asarray(estimator.classes_))
    return codes[:, None] == np.arange(len(estimator.classes_))


def _first(row_weights, cap):
    """Return how much of each share is within the first `cap` of them, exactly."""
    return np.clip(cap - (np.cumsum(row_weights) - row_weights), 0.0, row_weights)


def _scores_of_second(estimator, X):
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=float)
    else:
        scores = np.asarray(estimator.predict_proba(X), dtype=float)[:, -1]
    if scores.ndim != 1:
        raise ValueError("roc_auc needs an estimator of two classes")
    return scores
