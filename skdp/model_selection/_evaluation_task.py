"""Evaluation of a model: the plan of the release, the rows that it reads, and the metrics."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit
from sklearn.base import is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import column_or_1d

from skdp._data._labels import category_codes
from skdp.metrics._binary import confusion
from skdp.metrics._counts import (
    accuracy,
    balanced_accuracy,
    confusion_value,
    f1,
    majority_share,
    precision,
    recall,
)
from skdp.metrics._grid import CALIBRATION_BINS
from skdp.metrics._multiclass import one_against_rest_auc
from skdp.metrics._releases import BinaryCounts, ErrorSums, MulticlassCounts
from skdp.metrics._statistics import REGRESSION_FACTORS
from skdp.pipeline._checked_fits import SplitColumnTransformer, SplitFeatureUnion, SplitPipeline
from skdp.pipeline._instances import of_skdp, reason_for_missing
from skdp.pipeline._known import accepted_entry
from skdp.utils._validation import check_target_bounds, is_auto
from skdp.utils._values import FrozenValue

# A model has at least one of these methods.
ANSWERS = ("predict", "predict_proba", "decision_function")

BINARY_METRICS = (
    "roc_auc",
    "average_precision",
    "accuracy",
    "balanced_accuracy",
    "precision",
    "recall",
    "f1",
    "brier_score",
    "log_loss",
)
# Metrics for two classes if the model only predicts labels.
LABEL_METRICS = ("accuracy", "balanced_accuracy", "precision", "recall", "f1")
MULTICLASS_METRICS = ("accuracy", "balanced_accuracy")
# Metrics for several classes that need further counts, so they are released only on request.
REQUESTED_METRICS = ("roc_auc_ovr",)
REGRESSION_METRICS = ("r2", "mean_absolute_error", "root_mean_squared_error", "mean_squared_error")


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation(FrozenValue):
    """Released metrics of a model.

    Parameters
    ----------
    scores : dict of str to NoisyScore
    baselines : dict of str to float
        Metrics, where known, of guessing the most frequent class or the mean.
    gains : dict of str to NoisyScore
        Differences from the baseline, for metrics that are compared with a noisy baseline.
    confusion_matrix : NoisyConfusionMatrix or None
    roc_curve, calibration_curve : NoisyCurve or None
    """

    scores: dict
    baselines: dict
    gains: dict
    confusion_matrix: object = None
    roc_curve: object = None
    calibration_curve: object = None


@dataclass(frozen=True, kw_only=True, eq=False)
class BinaryTask(FrozenValue):
    """Evaluation of a two-class classifier by its probabilities or decision values.

    Parameters
    ----------
    classes : ndarray of shape (2,)
    metrics : tuple of str
    method : {"predict_proba", "decision_function"}
    threshold : float, default=0.5
        Public probability above which the positive class is predicted.
    """

    classes: np.ndarray
    metrics: tuple
    method: str
    threshold: float = 0.5

    def statistics(self, n_units, guarantee):
        """Return the `MetricStatistics` for a number of rows, or of persons."""
        bounds = None
        if self.method == "predict_proba":
            bounds = (0.0, 1.0)
        return BinaryCounts.on_grid(
            n_units, guarantee, self.classes, bounds, threshold=self.threshold
        )

    def rows(self, model, X, y):
        """Return the arguments of the `statistics`: codes and scores."""
        scores = np.asarray(getattr(model, self.method)(X), dtype=np.float64)
        if self.method == "predict_proba":
            scores = np.ascontiguousarray(scores[:, 1])
        return label_codes(y, self.classes), scores

    def coarse(self, values, statistics):
        """Return the counts of right and wrong predictions by class, from those of a fold."""
        first = int(np.searchsorted(statistics.edges, statistics.threshold)) + 1
        (true_negative, false_positive), (false_negative, true_positive) = confusion(
            np.asarray(values).reshape(2, -1), first
        )
        return np.array([false_positive, true_negative, false_negative, true_positive])

    coarse_metrics = ("accuracy", "balanced_accuracy")
    n_coarse = 4

    def coarse_scores(self, coarse, fold_sizes):
        """Return the metrics of each fold, arrays (..., n_folds), from noisy coarse counts."""
        return hit_scores(coarse.reshape(*coarse.shape[:-1], 2, 2))

    def evaluate(self, cells):
        """Return the `Evaluation` from the released `BinaryCells`."""
        matrix = cells.at_threshold
        available = {
            "roc_auc": cells.roc_auc,
            "average_precision": cells.average_precision,
            "brier_score": cells.brier_score,
            "log_loss": cells.log_loss,
        }
        scores = {}
        for name in self.metrics:
            scores[name] = available[name]() if name in available else matrix_score(matrix, name)
        share = float(np.clip(matrix.counts[1].sum() / cells.matrix.total, 0.0, 1.0))
        known = {
            **matrix_baselines(matrix, 2),
            "roc_auc": 0.5,
            "average_precision": share,
            "precision": share,
            "brier_score": share * (1.0 - share),
            "log_loss": entropy(share),
        }
        calibration_curve = None
        if bounds_known(cells):
            # Bins of equal width would contain few rows of a rare class and mostly noise.
            calibration_curve = cells.calibration_curve(CALIBRATION_BINS, "quantile")
        return Evaluation(
            scores=scores,
            baselines={name: known[name] for name in scores if name in known},
            gains=gains_of(matrix, scores),
            confusion_matrix=confusion_value(matrix, self.classes),
            roc_curve=cells.roc_curve(),
            calibration_curve=calibration_curve,
        )


def bounds_known(cells):
    """Return True if the scores are probabilities, so that they can be calibrated."""
    return cells.score_bounds is not None


def entropy(share):
    """Return the log loss of predicting the frequency of the positive class."""
    if not 0.0 < share < 1.0:
        return 0.0
    return -share * math.log(share) - (1.0 - share) * math.log1p(-share)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassesTask(FrozenValue):
    """Evaluation of a classifier with several classes, or of one that only predicts labels.

    Parameters
    ----------
    classes : ndarray
    metrics : tuple of str
    has_probabilities : bool
    """

    classes: np.ndarray
    metrics: tuple
    has_probabilities: bool

    def statistics(self, n_units, guarantee):
        """Return the `MetricStatistics` for a number of rows, or of persons."""
        return MulticlassCounts.of_classes(
            n_units,
            guarantee,
            len(self.classes),
            has_probabilities=self.has_probabilities,
            has_areas="roc_auc_ovr" in self.metrics,
        )

    def rows(self, model, X, y):
        """Return the arguments of the `statistics`."""
        predicted = category_codes(column_or_1d(np.asarray(model.predict(X))), self.classes)
        probabilities = None
        if self.has_probabilities:
            probabilities = np.asarray(model.predict_proba(X), dtype=np.float64)
        # Labels unknown to the model count as the first class in all rows.
        return label_codes(y, self.classes), np.maximum(predicted, 0), probabilities

    def coarse(self, values, statistics):
        """Return the counts of right and wrong predictions by class, from those of a fold."""
        k = len(self.classes)
        matrix = np.asarray(values)[: k * k].reshape(k, k)
        right = np.diagonal(matrix)
        return np.column_stack([matrix.sum(axis=1) - right, right]).ravel()

    coarse_metrics = ("accuracy", "balanced_accuracy")

    @property
    def n_coarse(self):
        """Number of coarse statistics of a fold."""
        return 2 * len(self.classes)

    def coarse_scores(self, coarse, fold_sizes):
        """Return the metrics of each fold, arrays (..., n_folds), from noisy coarse counts."""
        return hit_scores(coarse.reshape(*coarse.shape[:-1], -1, 2))

    def evaluate(self, released):
        """Return the `Evaluation` from the released `MulticlassMetrics`."""
        matrix = released.matrix
        scores = {}
        for name in self.metrics:
            if name == "roc_auc_ovr":
                scores[name] = one_against_rest_auc(released.one_against_rest)
            else:
                scores[name] = matrix_score(matrix, name)
        known = {**matrix_baselines(matrix, len(self.classes)), "roc_auc_ovr": 0.5}
        top_label = released.top_label
        return Evaluation(
            scores=scores,
            baselines={name: known[name] for name in scores if name in known},
            gains=gains_of(matrix, scores),
            confusion_matrix=confusion_value(matrix, self.classes),
            calibration_curve=None if top_label is None else top_label.calibration_curve(),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class NumbersTask(FrozenValue):
    """Evaluation of a regressor.

    Parameters
    ----------
    target_bounds : tuple of (low, high)
    metrics : tuple of str
    """

    target_bounds: tuple
    metrics: tuple

    def statistics(self, n_units, guarantee):
        """Return the `MetricStatistics` for a number of rows, or of persons."""
        return ErrorSums(n_units=n_units, guarantee=guarantee, target_bounds=self.target_bounds)

    def rows(self, model, X, y):
        """Return the arguments of the `statistics`: targets and predictions."""
        with np.errstate(all="ignore"):
            predicted = np.asarray(column_or_1d(np.asarray(model.predict(X))), dtype=np.float64)
            return np.asarray(y, dtype=np.float64), predicted

    coarse_metrics = ("mean_squared_error", "mean_absolute_error")
    n_coarse = 2

    def coarse(self, values, statistics):
        """Return the sums of squared and absolute errors, from the statistics of a fold."""
        return np.asarray(values)[:2]

    def coarse_scores(self, coarse, fold_sizes):
        """Return the metrics of each fold, arrays (..., n_folds), from noisy coarse sums."""
        width = self.target_bounds[1] - self.target_bounds[0]
        sizes = np.maximum(fold_sizes, 1.0)[:, np.newaxis]
        means = coarse / np.array(REGRESSION_FACTORS[:2]) / sizes + 0.5
        means = np.clip(means, 0.0, 1.0)
        return width**2 * means[..., 0], width * means[..., 1]

    def evaluate(self, sums):
        """Return the `Evaluation` from the released `RegressionSums`."""
        available = {
            "r2": sums.r2,
            "mean_absolute_error": sums.mean_absolute_error,
            "mean_squared_error": sums.mean_squared_error,
            "root_mean_squared_error": sums.root_mean_squared_error,
        }
        scores = {name: available[name]() for name in self.metrics}
        std = sums.target_std()
        known = {"r2": 0.0, "mean_squared_error": std**2, "root_mean_squared_error": std}
        return Evaluation(
            scores=scores,
            baselines={name: known[name] for name in scores if name in known},
            gains={},
        )


def hit_scores(counts):
    """Return accuracy and balanced accuracy from (..., n_classes, 2) counts of wrong and right."""
    counts = np.maximum(counts, 0.0)
    right = counts[..., 1]
    totals = counts.sum(axis=-1)
    accuracies = right.sum(axis=-1) / np.maximum(totals.sum(axis=-1), 1.0)
    recalls = right / np.maximum(totals, 1.0)
    return accuracies, recalls.mean(axis=-1)


def matrix_score(matrix, name):
    """Return the `NoisyScore` of a released confusion matrix."""
    if name == "precision":
        return matrix.ratio(name, precision, lambda counts: counts[..., :, 1].sum(axis=-1))
    if name == "recall":
        return matrix.ratio(name, recall, lambda counts: counts[..., 1, :].sum(axis=-1))
    if name == "f1":
        return matrix.ratio(
            name, f1, lambda counts: counts[..., 1, :].sum(axis=-1) + counts[..., :, 1].sum(axis=-1)
        )
    return matrix.score(name, {"accuracy": accuracy, "balanced_accuracy": balanced_accuracy}[name])


def matrix_baselines(matrix, n_classes):
    """Return the metrics of predicting the most frequent class."""
    return {
        "accuracy": float(np.clip(majority_share(matrix.counts), 0.0, 1.0)),
        "balanced_accuracy": 1.0 / n_classes,
    }


def gains_of(matrix, scores):
    """Return the gain in accuracy over the most frequent class, if the accuracy is released."""
    if "accuracy" not in scores:
        return {}

    def gain(counts):
        return accuracy(counts) - majority_share(counts)

    return {"accuracy": matrix.score("accuracy gain", gain, low=-1.0)}


def label_codes(y, classes):
    """Return the code of each label; `check_labels` refused others before the charge."""
    return category_codes(column_or_1d(np.asarray(y)), classes)


def check_labels(y, classes):
    """Raise `ValueError` if a label is not among the classes of the model."""
    if (label_codes(y, classes) < 0).any():
        raise ValueError(
            f"y has labels that the model does not know; its classes are {classes.tolist()}. "
            "Remove these rows, or fit the model with classes=[...] that declares all labels"
        )


def make_task(model, metrics, target_bounds, classes=None):
    """Return the task for a model: its metrics and their plan.

    Parameters
    ----------
    model : estimator
        Fitted model; a classifier may be unfitted if `classes` are passed.
    metrics : list of str or None
        None means all metrics that exist for this kind of model.
    target_bounds : tuple of (low, high) or None
        None uses the model's bounds.
    classes : ndarray, default=None
        The label set; None uses that of the model.

    Raises
    ------
    ValueError
        If the model is neither a classifier nor a regressor, a metric does not exist for it, or
        a regressor has no target bounds.
    """
    # A classifier may have scores alone, from which classes follow.
    if not any(hasattr(model, method) for method in ANSWERS):
        raise ValueError(
            f"the model has no method predict{reason_for_missing(model, 'predict')}: evaluate a "
            "classifier or a regressor"
        )
    if is_classifier(model):
        if target_bounds is not None:
            raise ValueError("target_bounds is for regressors, and the model is a classifier")
        classes = np.asarray(model.classes_ if classes is None else classes)
        has_probabilities = hasattr(model, "predict_proba")
        has_scores = has_probabilities or hasattr(model, "decision_function")
        if has_tuned_threshold(model):
            # The threshold refers to the scores that this method returns.
            has_probabilities = model.response_method_ == "predict_proba"
        if len(classes) == 2 and has_scores:
            return BinaryTask(
                classes=classes,
                metrics=check_metrics(metrics, BINARY_METRICS),
                method="predict_proba" if has_probabilities else "decision_function",
                threshold=threshold_of(model, has_probabilities),
            )
        existing = MULTICLASS_METRICS
        if len(classes) == 2:
            existing = LABEL_METRICS
        requested = ()
        if has_probabilities and len(classes) > 2:
            requested = REQUESTED_METRICS
        return ClassesTask(
            classes=classes,
            metrics=check_metrics(metrics, existing, requested),
            has_probabilities=has_probabilities,
        )
    if not is_regressor(model):
        raise ValueError(f"model must be a classifier or a regressor, got {type(model).__name__}")
    return NumbersTask(
        target_bounds=bounds_of(model, target_bounds),
        metrics=check_metrics(metrics, REGRESSION_METRICS),
    )


def check_metrics(metrics, existing, requested=()):
    """Return the names of the metrics as a tuple; None means all existing ones."""
    if metrics is None:
        return existing
    if isinstance(metrics, str):
        metrics = (metrics,)
    try:
        metrics = tuple(metrics)
    except TypeError:
        raise ValueError(f"metrics must be a list of names, got {metrics!r}") from None
    unknown = [name for name in metrics if name not in (*existing, *requested)]
    if unknown or not metrics:
        names = ", ".join(map(repr, (*existing, *requested)))
        raise ValueError(f"metrics={list(metrics)!r}: the metrics of this model are {names}")
    return tuple(dict.fromkeys(metrics))


def bounds_of(model, target_bounds):
    """Return the target bounds that were passed, or those of the model."""
    if target_bounds is None and hasattr(model, "get_params"):
        declared = [
            value
            for name, value in model.get_params().items()
            if name.endswith("target_bounds") and value is not None and not is_auto(value)
        ]
        target_bounds = None
        if declared:
            target_bounds = declared[-1]
    return check_target_bounds(target_bounds)


def has_tuned_threshold(model):
    """Return True for a `DPTunedThresholdClassifierCV`, recognized by its attribute."""
    return of_skdp(model) and hasattr(model, "best_threshold_")


def threshold_of(model, has_probabilities=True):
    """Return the public probability above which a model predicts the positive class.

    Decision values correspond to the probabilities of their logistic function.
    """
    threshold = 0.5
    if has_tuned_threshold(model):
        threshold = model.best_threshold_
        if not has_probabilities:
            threshold = float(expit(np.nextafter(threshold, -np.inf)))
            if 0.0 < threshold < 1.0:
                return threshold
            return 0.5
    elif not has_probabilities:
        return 0.5
    elif type(model) is TunedThresholdClassifierCV:
        threshold = model.best_threshold_
    elif type(model) is FixedThresholdClassifier and not isinstance(model.threshold, str):
        threshold = model.threshold
    if threshold == 0.5 or not 0.0 < threshold < 1.0:
        return 0.5
    # These classes predict the positive class from the threshold on, and cells contain their
    # upper edges.
    return float(np.nextafter(threshold, 0.0))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Parts(FrozenValue):
    """Parts of a model that rows pass through."""

    model: object

    @cached_property
    def parts(self):
        """Tuple of the steps or models inside the model; () if it has none or is unknown."""
        model = self.model
        kind = type(model)
        if kind is FrozenEstimator:
            return (model.estimator,)
        if kind in (Pipeline, SplitPipeline):
            return tuple(step for _, step in model.steps)
        if kind in (FeatureUnion, SplitFeatureUnion):
            return tuple(step for _, step in model.transformer_list)
        if kind in (ColumnTransformer, SplitColumnTransformer):
            steps = getattr(model, "transformers_", model.transformers)
            return tuple(step[1] for step in steps)
        if kind in (FixedThresholdClassifier, TunedThresholdClassifierCV):
            return (getattr(model, "estimator_", model.estimator),)
        if of_skdp(model) and hasattr(model, "best_estimator_"):
            return (model.best_estimator_,)
        return ()


def check_row_wise(model):
    """Raise `ValueError` unless each prediction depends on its row alone, to the last bit.

    With persons as the unit, the number of rows is private. If predictions depended on other rows,
    one person's rows could change the rounding of other rows' scores, and thus their cells of the
    grid. The sensitivity of the counts would then be larger than assumed.
    """
    parts = _Parts(model=model).parts
    for part in parts:
        check_row_wise(part)
    if parts or model is None or isinstance(model, str) or of_skdp(model):
        return
    entry = accepted_entry(model)
    if entry is not None and entry.is_row_wise(model):
        return
    raise ValueError(
        f"{type(model).__name__} may compute a row's prediction differently if there are other "
        "rows (a matrix product rounds blocks of rows at once), and the number of rows is "
        "private if the unit is a person. Evaluate a model of skdp, or evaluate by rows: leave "
        "groups out and use an accountant with unit='row' or 'group'"
    )
