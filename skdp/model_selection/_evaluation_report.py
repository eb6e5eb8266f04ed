"""The result of a private evaluation, as a printed table, a dict or a picture."""

import numpy as np

from skdp.ledger import PrivacyAccountant
from skdp.metrics import NoisyConfusionMatrix, NoisyScore
from skdp.utils._documents import PrintedDocument, Section

# Half the width of a noise interval above which a metric with a range of 1 counts as unknown.
MAX_HALF_WIDTH = 0.05
# Half the width of a 95 % interval of a normal distribution, in standard deviations.
NORMAL_QUANTILE = 1.96
# Metrics for which smaller values are better.
LOSSES = (
    "brier_score",
    "log_loss",
    "mean_absolute_error",
    "mean_squared_error",
    "root_mean_squared_error",
)
# Metrics whose range is [0, 1].
FRACTIONS = (
    "roc_auc",
    "roc_auc_ovr",
    "average_precision",
    "accuracy",
    "balanced_accuracy",
    "precision",
    "recall",
    "f1",
)


class EvaluationReport(PrintedDocument):
    """Released metrics of a model, from `dp_evaluate` or `dp_cross_validate`.

    Metrics are accessed by name, such as ``report["roc_auc"]``.

    Parameters
    ----------
    accountant : PrivacyAccountant or None
        The accountant that is charged.
    random_state : int or None
        None uses the operating system's generator.
    label : str, default="dp_evaluate"
        Name of the function, for the ledger.

    Attributes
    ----------
    scores_ : dict of str to NoisyScore
        The metrics by name, each with its intervals.
    baselines_ : dict of str to float
        Noisy metrics of a model that always predicts the most frequent class, or the mean.
    confusion_matrix_ : NoisyConfusionMatrix or None
        None for regressors.
    roc_curve_ : NoisyCurve or None
        None for regressors and for several classes.
    calibration_curve_ : NoisyCurve or None
        Calibration of the positive class or, with several classes, of the predicted label. None for
        models without probabilities.
    fold_scores_ : dict of str to ndarray
        Noisy metrics of the folds of a cross-validation; empty for `dp_evaluate`.
    fold_spread_ : dict of str to float
        Standard deviation of each metric over the folds, if it exceeds that of the noise.
    privacy_ : PrivacyStatement
        Privacy statement of the one charge. It covers the scored rows and, in a cross-validation,
        the rows of the fits.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPLogisticRegression, dp_evaluate
    >>> X, y = make_classification(n_samples=5000, n_features=5, random_state=0)
    >>> model = DPLogisticRegression(delta=1e-6).fit(X[:2500], y[:2500])
    >>> report = dp_evaluate(model, X[2500:], y[2500:], epsilon=1.0)
    >>> bool(report["accuracy"] > report.baselines_["accuracy"])
    True
    """

    scores_: dict[str, NoisyScore]

    def __init__(
        self,
        accountant: PrivacyAccountant | None,
        random_state: int | None,
        label: str = "dp_evaluate",
    ):
        self.accountant = accountant
        self.random_state = random_state
        # Name of the release in the ledger.
        self._release_label = label

    def __getitem__(self, name: str) -> NoisyScore:
        return self.scores_[name]

    def __repr__(self):
        if not hasattr(self, "privacy_"):
            return "EvaluationReport()"
        scores = ", ".join(f"{name}={score}" for name, score in self.scores_.items())
        return f"EvaluationReport({scores})"

    def section(self):
        """Return the report as a section of a printed document.

        Returns
        -------
        Section
        """
        head = ("metric", "value", "noise: 95 %", "noise and sampling: 95 %", "guessing")
        table = [head]
        for name, score in self.scores_.items():
            baseline = self.baselines_.get(name)
            table.append(
                (
                    name,
                    _number(score),
                    _interval(score.noise_interval),
                    _interval(score.interval),
                    "" if baseline is None else _number(baseline),
                )
            )
        tables = [table]
        if self.confusion_matrix_ is not None:
            tables.append(_confusion_table(self.confusion_matrix_))
        rows = [("guarantee", self.privacy_.section().heading), ("protects", self._protected())]
        if self.roc_curve_ is not None:
            # The order of 0 and 1 is known to everyone, that of other labels is not.
            positive = np.asarray(self.confusion_matrix_.classes).tolist()[1]
            if isinstance(positive, str):
                rows.append(("positive class", f"{positive}, the last of the sorted labels"))
        return Section("Private evaluation", tuple(rows), tuple(tables), tuple(self._notes()))

    def to_dict(self):
        """Return the report as JSON values.

        Returns
        -------
        dict
        """
        curves = {}
        for name in ("confusion_matrix", "roc_curve", "calibration_curve"):
            value = getattr(self, f"{name}_")
            curves[name] = None if value is None else value.to_dict()
        return {
            "scores": {name: score.to_dict() for name, score in self.scores_.items()},
            "baselines": dict(self.baselines_),
            **curves,
            "fold_scores": {name: values.tolist() for name, values in self.fold_scores_.items()},
            "fold_spread": dict(self.fold_spread_),
            "notes": list(self._notes()),
            "privacy": self.privacy_.to_dict(),
        }

    def plot(self, axes=None):
        """Draw the ROC curve, the calibration curve and the confusion matrix, or the errors.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, default=None
            One for each picture; None creates a new figure.

        Returns
        -------
        skdp.display.EvaluationDisplay
        """
        from skdp.display import EvaluationDisplay

        return EvaluationDisplay(self).plot(axes)

    def _protected(self):
        """Return a description of the rows that the guarantee covers."""
        if self._release_label == "dp_cross_validate":
            return "all rows: those used for fitting, and those that were scored"
        return "the scored rows, but not the rows of the model's fit, unless that was private"

    def _notes(self):
        """Yield remarks on facts that the noise hides."""
        for name, score in self.scores_.items():
            low, high = score.noise_interval
            width = high - low
            if name == "average_precision":
                # The metric's interval also includes the error bound of the grid.
                width = min(width, 2.0 * NORMAL_QUANTILE * score.noise_std)
            if name in FRACTIONS and not width <= 2.0 * MAX_HALF_WIDTH:
                yield (
                    f"{name} is not known: the noise alone leaves it between {_number(low)} and "
                    f"{_number(high)}. Use a larger epsilon or more rows"
                )
            elif name == "r2" and not np.isfinite(low):
                yield (
                    "r2 is not known: the variance of the targets is not visible above the noise. "
                    "Use a larger epsilon, more rows or narrower target_bounds"
                )
            elif name in self.baselines_ and not self.is_better_than_guessing(name):
                yield f"{name} is not clearly better than guessing"
        for name, spread in self.fold_spread_.items():
            yield f"{name} differs between folds by more than the noise: standard deviation " + (
                f"{spread:.2g}"
            )

    def is_better_than_guessing(self, name):
        """Return True if a metric is better than its baseline by more than the noise.

        Parameters
        ----------
        name : str
            Name of a metric with a baseline.

        Returns
        -------
        bool
        """
        if name in self._gains:
            return self._gains[name].noise_interval[0] > 0.0
        low, high = self.scores_[name].noise_interval
        if name in LOSSES:
            return bool(high < self.baselines_[name])
        return bool(low > self.baselines_[name])


def _number(value):
    """Return the text of a number, with three or four significant digits."""
    if not np.isfinite(value):
        return "unknown"
    if abs(value) < 1e5:
        return f"{float(value):.3g}"
    return f"{float(value):.4g}"


def _interval(interval):
    return " to ".join(map(_number, interval))


def _confusion_table(matrix: NoisyConfusionMatrix):
    """Return the rows of the printed confusion matrix, with rounded counts."""
    labels = [str(label) for label in np.asarray(matrix.classes).tolist()]
    table = [("true label", *(f"predicted {label}" for label in labels))]
    for label, counts in zip(labels, np.rint(matrix.counts), strict=True):
        table.append((label, *(f"{count:.0f}" for count in counts)))
    return table
