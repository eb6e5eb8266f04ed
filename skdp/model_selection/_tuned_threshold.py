"""The threshold of a classifier, chosen with released counts of its scores."""

import math
from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator

from skdp.ledger import PrivacyAccountant
from skdp.metrics._counts import accuracy, balanced_accuracy, f1, ratio
from skdp.metrics._grid import number_of_cells, probability_edges
from skdp.model_selection._counted_scores import RESPONSE_METHODS, BaseCountedScores
from skdp.utils._validation import as_doubles, check_boolean, check_choice


def matthews_corrcoef(matrix):
    """Return the correlation between labels and predictions, from confusion matrices."""
    (tn, fp), (fn, tp) = np.moveaxis(matrix, (-2, -1), (0, 1))
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return ratio(tp * tn - fp * fn, np.sqrt(product))


# Metrics of a confusion matrix that can be used to choose a threshold. Precision or recall alone
# would be best at an extreme threshold.
METRICS = {
    "balanced_accuracy": balanced_accuracy,
    "accuracy": accuracy,
    "f1": f1,
    "matthews_corrcoef": matthews_corrcoef,
}
# Largest number of thresholds that can be declared.
MAX_THRESHOLDS = 1000
# Factor of the number of cells, which replaces the one for metrics: cells are merged until they can
# be distinguished from their noise, and a threshold can only be at an edge. This and the next
# constant were chosen by the balanced accuracy at the threshold, for held-out scores of fits to
# training rows of three tables and to simulated tables, with 1, 10 and 30 % of positives
# (`docs/benchmarks/metric_constants.py thresholds`).
CELLS_FACTOR = 3.0
# Largest weight of the logistic fit to the fractions of positives; the isotonic fit has the rest.
MAX_LOGISTIC_WEIGHT = 0.5
# Precisions of the prior of the slope and the intercept of this fit, and its Newton steps.
PRIOR = np.array([1.0, 1e-6])
LOGISTIC_STEPS = 50


class DPTunedThresholdClassifierCV(BaseCountedScores):
    """Classifier whose threshold is chosen privately, on rows that it was not fitted to.

    The counts of rows by class and score are released with noise, on a public grid of scores. The
    threshold is the edge that maximizes the metric according to these counts, minus the noise in
    its difference from the metric at 1/2. The fit of the classifier and the counts together cost
    one (`epsilon`, `delta`), which is charged before the fit. By default, a quarter of the rows is
    held out for the counts. No row is then in both, so the fit and the counts each have the whole
    budget.

    Parameters
    ----------
    estimator : estimator
        A private classifier of two classes with `predict_proba` or `decision_function`, or a
        pipeline as in `DPGridSearchCV`. This estimator sets its epsilon, delta, accountant and
        random_state, unless it is already fitted (see `cv`).
    epsilon : float, default=1.0
        Budget of the fits and the counts together, positive.
    delta : float, default=1e-6
        Budget of the fits and the counts together, in [0, 1).
    scoring : {"balanced_accuracy", "accuracy", "f1", "matthews_corrcoef"}, \
default="balanced_accuracy"
        Metric that the threshold maximizes. Scorers are refused, since they read raw rows.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        Method whose result is compared with the threshold. "auto" means `predict_proba` if the
        estimator has it, otherwise `decision_function`.
    thresholds : "auto" or array-like of float, default="auto"
        Public candidates, in the units of the scores. "auto" is a grid that is fine in the range of
        the scores of rare classes; its size depends on the number of rows and the budget.
        Thresholds with too few rows between them to be distinguished are not considered.
    cv : float, int, splitter, iterable or "prefit", default=0.25
        Rows whose scores are counted. A float is the fraction of rows that a public seed holds out.
        An int is a number of folds; ints and splitters are as in `DPGridSearchCV`, and None means 5
        folds. "prefit", or an estimator in `sklearn.frozen.FrozenEstimator`, counts the scores of a
        fitted estimator on all rows, which must not be those of its fit.
    refit : bool, default=False
        If True, fit the estimator to all rows, with half of the budget. Required if `cv` has
        several splits. If False, the model fitted without the held-out rows is published.
    store_cv_results : bool, default=False
        Whether to publish `cv_results_`, which costs nothing.
    public_steps : tuple of str, default=()
        Names of steps that learn from data and are declared public. `privacy_` lists them.
    n_jobs : int, default=None
        Number of fits that run at a time, by joblib.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged. None charges nothing and protects under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.
    verbose : int, default=0
        1 prints one line. Nothing that depends on the data is printed.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model, whose scores are compared with the threshold.
    best_threshold_ : float
        Scores of at least this value are predicted as the second class.
    best_score_ : float
        The metric at this threshold, according to the noisy counts. It is optimistic, since the
        threshold was chosen with the same counts; evaluate the model on other rows with
        `dp_evaluate`.
    score_counts_ : ndarray of shape (2, n_cells)
        Noisy counts of the first and the second class by cell of the score, from which everything
        else is computed.
    score_edges_ : ndarray of shape (n_cells - 1,)
        Inner edges of the cells, as probabilities. The logistic function maps decision values to
        them.
    response_method_ : {"predict_proba", "decision_function"}
        The method that was used.
    cv_results_ : dict
        `thresholds` and noisy `scores`; only with `store_cv_results`.
    classes_ : ndarray of shape (2,)
        Class labels.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        The guarantee and its assumptions. With a fitted estimator, it covers only the counts.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the remaining budget is too small; nothing was fitted.

    See Also
    --------
    skdp.calibration.DPCalibratedClassifierCV : Correct the probabilities instead.

    Notes
    -----
    The parameters are those of scikit-learn's `TunedThresholdClassifierCV`, with these differences.
    `scoring` is a name. `thresholds` cannot be a number of thresholds. `cv` and `refit` have
    different defaults, because held-out rows cost less accuracy than the fits of folds, which
    divide the budget. Each counted row is in one cell, so the noise is that of one count. The
    guarantee is proved in ``docs/theory/model_selection.md``.

    References
    ----------
    F. Provost and T. Fawcett. Robust classification for imprecise environments. Machine Learning
    2001.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPLogisticRegression
    >>> from skdp.model_selection import DPTunedThresholdClassifierCV
    >>> X, y = make_classification(n_samples=20000, weights=[0.95], random_state=0)
    >>> model = DPTunedThresholdClassifierCV(DPLogisticRegression(data_norm=8.0), epsilon=2.0)
    >>> bool(model.fit(X, y).best_threshold_ < 0.5)
    True
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        scoring: Literal[
            "balanced_accuracy", "accuracy", "f1", "matthews_corrcoef"
        ] = "balanced_accuracy",
        response_method: Literal["auto", "predict_proba", "decision_function"] = "auto",
        thresholds: ArrayLike | Literal["auto"] = "auto",
        cv: float | int | BaseCrossValidator | Iterable | Literal["prefit"] | None = 0.25,
        refit: bool = False,
        store_cv_results: bool = False,
        public_steps: tuple[str, ...] = (),
        n_jobs: int | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ):
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.scoring = scoring
        self.response_method = response_method
        self.thresholds = thresholds
        self.cv = cv
        self.refit = refit
        self.store_cv_results = store_cv_results
        self.public_steps = public_steps
        self.n_jobs = n_jobs
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _response_methods(self):
        """Methods of the estimator that may be used, in order of preference."""
        if self.response_method == "auto":
            return RESPONSE_METHODS
        return (self.response_method,)

    def _check_parameters(self):
        """Raise `ValueError` for parameters that are wrong for every table."""
        check_choice(self.scoring, "scoring", tuple(METRICS))
        check_choice(self.response_method, "response_method", ("auto", *RESPONSE_METHODS))
        check_boolean(self.store_cv_results, "store_cv_results")
        super()._check_parameters()
        # Thresholds are checked in the units of the scores.
        method = self._response_method(self._prefit_model)
        self._public_edges((0.0, 1.0) if method == "predict_proba" else None)

    def _grid_edges(self, n_units, guarantee):
        """Return inner edges of cells whose number suits the noise in their counts."""
        n_cells = number_of_cells(n_units, guarantee, CELLS_FACTOR)
        return tuple(probability_edges(n_cells).tolist())

    def _public_edges(self, score_bounds):
        """Return the inner edges of cells from declared `thresholds`, or None for "auto".

        Edges are probabilities. Decision values, which have no `score_bounds`, are mapped to
        probabilities by the logistic function.
        """
        if isinstance(self.thresholds, str) and self.thresholds == "auto":
            return None
        thresholds = np.unique(as_doubles(self.thresholds))
        if np.isnan(thresholds).any():
            raise ValueError(
                f"thresholds must be 'auto' or a list of numbers, got {self.thresholds!r}"
            )
        if thresholds.ndim != 1 or not 1 <= thresholds.size <= MAX_THRESHOLDS:
            raise ValueError(
                f"thresholds must be 'auto' or a list of 1 to {MAX_THRESHOLDS} numbers, got "
                f"{self.thresholds!r}"
            )
        # A cell contains its upper edge, but a score equal to a threshold must be above the edge.
        edges = np.nextafter(thresholds, -np.inf)
        if score_bounds is None:
            edges = expit(edges)
        if not (np.all((edges > 0.0) & (edges < 1.0)) and np.all(np.diff(edges) > 0.0)):
            units = "probabilities in (0, 1)"
            if score_bounds is None:
                units = "decision values between -30 and 30 that differ by more than rounding"
            raise ValueError(f"thresholds must be {units}, got {self.thresholds!r}")
        return tuple(edges.tolist())

    def _publish_model(self, fit, plan, model, cells, method, *, public, stages, sampler):
        """Publish the model and the threshold with the best metric of the released counts."""
        bins = cells.bins()
        # If thresholds cannot be distinguished, the usual one is used.
        thresholds = np.array([0.5 if method == "predict_proba" else 0.0])
        if bins.n_bins > 1:
            thresholds = bins.thresholds
        scores, noise_stds = threshold_scores(bins, METRICS[self.scoring])
        # A threshold that is better by less than the noise does not replace the usual one.
        best = int(np.argmax(scores - noise_stds))
        fit.publish(
            plan,
            public=public,
            stages=stages,
            sampler=sampler,
            estimator_=model,
            best_threshold_=float(thresholds[best]),
            best_score_=float(scores[best]),
            response_method_=method,
            score_counts_=cells.counts,
            score_edges_=np.asarray(cells.edges),
        )
        if self.store_cv_results:
            self.cv_results_ = {"thresholds": thresholds, "scores": scores}

    def predict(self, X):
        """Return the second class where the score reaches `best_threshold_`, otherwise the first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        scores = self._scores(X)
        return self.classes_[(scores >= self.best_threshold_).astype(int)]


def threshold_scores(bins, metric):
    """Return the metric of predictions at each threshold between bins, and its noise.

    The metric is computed twice: from fractions of positives that rise with the score in any way,
    and from fractions that are a logistic function of the logit. The former follow the noise, and
    the latter may not fit the data. The result is a mean in which the second metric has weight
    `logistic_weight`. With a single bin, the result has one entry, as if the bin's middle were the
    threshold.

    Parameters
    ----------
    bins : ScoreBins
    metric : callable
        Function of confusion matrices.

    Returns
    -------
    scores, noise_stds : ndarray of shape (max(n_bins - 1, 1),)
        The noise is that of the difference from the score at the usual threshold.
    """
    totals, fractions = bins.positive_fractions()
    n_rows, positive = _rows_above(totals, fractions)
    if bins.n_bins == 1:
        positive = 0.5 * n_rows[np.newaxis]

    def score(positive, n_rows):
        positive = np.clip(positive, 0.0, n_rows)
        return np.asarray(metric(np.stack([n_rows - positive, positive], axis=-1)))

    scores = score(positive, n_rows)
    if bins.n_bins == 1:
        return scores, np.zeros(1)
    # The counts of the two classes have independent noise.
    noise = bins.threshold_stds[:, np.newaxis]
    changes = [score(positive - noise * one_class, n_rows) - scores for one_class in np.eye(2)]
    noise_stds = np.hypot(*changes)
    logistic_rows, logistic_positive = _rows_above(totals, logistic_fractions(bins))
    differences = score(logistic_positive, logistic_rows) - scores
    weight = logistic_weight(differences, noise_stds)
    return scores + weight * differences, (1.0 - weight) * noise_stds


def _rows_above(totals, fractions):
    """Return the number of rows per class, in total and above each threshold (n_bins - 1, 2)."""
    by_class = np.stack([totals * (1.0 - fractions), totals * fractions])
    above = np.cumsum(by_class[:, ::-1], axis=1)[:, ::-1]
    return above[:, 0], above[:, 1:].T


def logistic_weight(differences, noise_stds):
    """Return the weight of the logistic fractions, from their differences from the isotonic ones.

    Differences no larger than the noise are considered noise, and larger ones errors of the
    logistic function. The weight is the fraction of their squares that is due to noise, which
    minimizes the expected squared error if the logistic function holds on average (James and Stein
    1961). It vanishes with the noise, and is limited because the logistic function holds exactly
    for no model.
    """
    squares = float(np.sum(differences**2))
    noise = float(np.sum(noise_stds**2))
    if squares <= noise:
        return MAX_LOGISTIC_WEIGHT
    return min(MAX_LOGISTIC_WEIGHT, noise / squares)


def logistic_fractions(bins):
    """Return the fractions of positives from a logistic function that rises with the logit.

    The function maximizes the likelihood of the released counts, with a prior on the slope of about
    1 per standard deviation of the logits. The prior keeps it finite if few rows are positive.
    """
    logits = bins.logits
    counts = np.maximum(bins.counts, 0.0)
    totals = counts.sum(axis=0)
    # The last term handles bins without rows.
    weights = (totals + 1e-9) / (totals + 1e-9).sum()
    centered = logits - weights @ logits
    design = np.stack(
        [centered / max(math.sqrt(weights @ centered**2), 1e-9), np.ones(len(logits))]
    )
    n_negative, n_positive = counts.sum(axis=1)
    coefficients = np.array([1.0, math.log((n_positive + 0.5) / (n_negative + 0.5))])
    for _ in range(LOGISTIC_STEPS):
        p = expit(coefficients @ design)
        gradient = design @ (totals * p - counts[1]) + PRIOR * (coefficients - [1.0, 0.0])
        hessian = (design * (totals * p * (1.0 - p))) @ design.T + np.diag(PRIOR)
        step = np.linalg.solve(hessian, gradient)
        # The step is bounded, since the curvature vanishes where all fractions are 0 or 1.
        coefficients = coefficients - step / max(1.0, float(np.abs(step).max()))
        coefficients[0] = max(coefficients[0], 0.0)
    return expit(coefficients @ design)
