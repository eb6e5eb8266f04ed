"""Private evaluation of a fitted model: all metrics from one release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skdp._data._classes import LABEL_SET
from skdp._data._dask import in_one_run
from skdp._data._tables import indexable_table, read_numeric_target, read_target
from skdp._fitting._scored_models import check_scored
from skdp.base import PrivateFit, raw_data_policy, terms_of
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms._plan import plan_for
from skdp.mechanisms._stages import stages_of
from skdp.model_selection._evaluation_report import EvaluationReport
from skdp.model_selection._evaluation_task import (
    NumbersTask,
    check_labels,
    check_row_wise,
    make_task,
)
from skdp.model_selection._scored_tables import check_scored_table, is_read_before_charge
from skdp.utils._documents import count_of
from skdp.utils._types import TableLike
from skdp.utils._units import UnitText
from skdp.utils._validation import SIZES

SCORED_ROWS = UnitText(lambda unit: f"the scored {unit}s, once")


@in_one_run
def dp_evaluate(
    model: BaseEstimator,
    X: TableLike,
    y: ArrayLike,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    metrics: Sequence[str] | None = None,
    target_bounds: tuple[float, float] | None = None,
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> EvaluationReport:
    """Evaluate a fitted model on private rows, with all metrics from one release.

    For two classes, the counts of rows by class and score are released on a public grid, and all
    metrics and curves are computed from them. For several classes, the confusion matrix and the
    calibration of the predicted label are released; for regressors, the sums of errors and targets.

    Parameters
    ----------
    model : estimator
        Fitted classifier or regressor. With `groups`, a prediction must not depend on other rows,
        not even in the last bit. This holds for skdp's models and for pipelines of them; other
        models are refused.
    X : array-like of shape (n_samples, n_features)
        Rows that were not used to fit the model.
    y : array-like of shape (n_samples,)
        Labels or targets. Their number is public.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With a positive delta, Gaussian noise is used if its
        expected error is smaller.
    metrics : sequence of str, default=None
        Metrics to report. None means all except those on request. Two classes: "roc_auc",
        "average_precision", "accuracy", "balanced_accuracy", "precision", "recall", "f1",
        "brier_score" and "log_loss". Several classes: "accuracy" and "balanced_accuracy", and on
        request "roc_auc_ovr", whose counts for k classes raise the sensitivity by k. Regressors:
        "r2", "mean_absolute_error", "mean_squared_error" and "root_mean_squared_error".
    target_bounds : tuple of (low, high), default=None
        Public range of a regressor's targets, to which targets and predictions are clipped. None
        uses the model's range.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        Charged once, before the first prediction. None charges nothing and protects under
        "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    EvaluationReport

    Raises
    ------
    ValueError
        If a parameter or the data are invalid, or the model cannot be evaluated; nothing was
        charged. If the model is from neither skdp nor scikit-learn, errors in its `predict` are
        raised after the charge.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Warns
    -----
    RawDataWarning
        Before the charge, if the model learned from raw rows, which the charge does not cover.

    Notes
    -----
    The release is (`epsilon`, `delta`)-differentially private for the scored rows, or persons. The
    rows that the model was fitted to are covered by its own fit, if that was private. The threshold
    for predicted labels is a probability of 1/2 or a decision value of 0, unless the model is
    scikit-learn's `FixedThresholdClassifier` or `TunedThresholdClassifierCV`. The log loss is
    computed at the middle of a score's cell and clipped to 5 nats.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPLogisticRegression, dp_evaluate
    >>> X, y = make_classification(n_samples=5000, n_features=5, random_state=0)
    >>> model = DPLogisticRegression(delta=1e-6).fit(X[:2500], y[:2500])
    >>> report = dp_evaluate(model, X[2500:], y[2500:], epsilon=1.0)
    >>> sorted(report.scores_)[:3]
    ['accuracy', 'average_precision', 'balanced_accuracy']
    """
    report = EvaluationReport(accountant, random_state)
    check_scored(model, report, lambda: raw_data_policy(terms_of(accountant)))
    with PrivateFit(report) as fit:
        task = make_task(model, metrics, target_bounds)
        table, targets = read_scored_rows(model, X, y, task)
        n_units = fit.read_groups(groups, len(targets))
        if fit.terms.unit == "person":
            check_row_wise(model)

        def plan_for_unit(guarantee):
            return task.statistics(n_units, guarantee).plan()

        plan = plan_for(plan_for_unit, fit.make_guarantee(epsilon, delta))
        # The prediction shows whether the model refuses a cell. Nothing is combined over rows or
        # released before the charge.
        rows = None
        if is_read_before_charge(model) and fit.can_charge(plan):
            rows = task.rows(model, table, targets)
        source = fit.charge(plan)
        if rows is None:
            rows = task.rows(model, table, targets)
        known = LABEL_SET
        if isinstance(task, NumbersTask):
            known = "target_bounds"
        publish_evaluation(
            fit,
            plan,
            task.evaluate(fit.run_charged(plan, rows, source)),
            public=(SIZES, "the model", known),
            sampler=SCORED_ROWS,
            stages=tuple(replace(stage, reads=SCORED_ROWS) for stage in stages_of(plan)),
        )
    return report


def read_scored_rows(model, X, y, task):
    """Return the table and the targets after checking them; nothing is computed from values."""
    X = indexable_table(X)
    if isinstance(task, NumbersTask):
        y = read_numeric_target(model, y, X.shape[0])
    else:
        y = read_target(model, y, X.shape[0])
        check_labels(y, task.classes)
    n_features = getattr(model, "n_features_in_", None)
    if n_features is not None and X.shape[1:] != (n_features,):
        raise ValueError(
            f"X has shape {X.shape}, but {type(model).__name__} was fitted to "
            f"{count_of(n_features, 'feature')}: pass the columns of its fit"
        )
    check_scored_table(model, X)
    return X, y


def publish_evaluation(
    fit, plan, evaluation, *, public, sampler, stages=None, fold_scores=None, fold_spread=None
):
    """Set the attributes of the report of a private evaluation, and its privacy statement.

    Parameters
    ----------
    fit : PrivateFit
        The context in which the evaluation was charged.
    plan : Plan
        The plan that was charged.
    evaluation : Evaluation
        The released scores, matrices and curves.
    public, sampler, stages
        Arguments of `PrivateFit.publish` for the privacy statement.
    fold_scores : dict of str to ndarray, default=None
        The released scores of each fold, by the name of the score; None without folds.
    fold_spread : dict of str to float, default=None
        The standard deviation of each score over the folds; None without folds.
    """
    fit.publish(
        plan,
        public=public,
        sampler=sampler,
        stages=stages,
        scores_=evaluation.scores,
        baselines_=evaluation.baselines,
        _gains=evaluation.gains,
        confusion_matrix_=evaluation.confusion_matrix,
        roc_curve_=evaluation.roc_curve,
        calibration_curve_=evaluation.calibration_curve,
        fold_scores_=fold_scores or {},
        fold_spread_=fold_spread or {},
    )
