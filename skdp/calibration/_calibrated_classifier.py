"""Calibration of a classifier's probabilities from released counts of its scores."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit, log_expit, logit
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator

from skdp.ledger import PrivacyAccountant
from skdp.model_selection._counted_scores import RESPONSE_METHODS, BaseCountedScores
from skdp.utils._validation import check_choice
from skdp.utils._values import FrozenValue

METHODS = ("sigmoid", "isotonic")
# Scores are limited to this magnitude on the scale of the logit.
MAX_SCORE = 30.0
# Prior standard deviations of the slope around 1 and of the intercept around 0, and a precision
# that keeps both finite without noise. Chosen with docs/benchmarks/rare_classes.py.
PRIOR_STDS = np.array([0.5, 1.0])
MIN_PRECISION = 1e-2
# Number of standard deviations of the noise by which a changed sigmoid must fit better.
NOISE_STDS = 1.0
# Newton steps of the two parameters, and the largest step.
N_STEPS = 50
MAX_STEP = 1.0
# Smallest number of bins to which an increasing function is fitted.
MIN_BINS = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreCalibrator(FrozenValue):
    """Map from the score of a two-class classifier to a calibrated probability.

    Parameters
    ----------
    method : {"sigmoid", "isotonic"}
    slope, intercept : float, default=None
        Coefficients of "sigmoid": the probability is the logistic function of
        ``slope * score + intercept``. The slope is not negative.
    scores, probabilities : ndarray of shape (n_bins,), default=None
        Points of "isotonic", increasing; values between them are interpolated.

    Examples
    --------
    >>> from skdp.calibration import ScoreCalibrator
    >>> float(ScoreCalibrator(method="sigmoid", slope=1.0, intercept=0.0).predict(0.0))
    0.5
    """

    method: str
    slope: float | None = None
    intercept: float | None = None
    scores: np.ndarray | None = None
    probabilities: np.ndarray | None = None

    def predict(self, scores):
        """Return the probability of each score; each is computed independently of the others.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            Scores on the scale of the logit.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = np.clip(np.asarray(scores, dtype=np.float64), -MAX_SCORE, MAX_SCORE)
        if self.method == "sigmoid":
            return expit(self.slope * scores + self.intercept)
        return np.interp(scores, self.scores, self.probabilities)


def fit_sigmoid(bins):
    r"""Return the sigmoid with the largest likelihood of released counts (Platt 1999).

    The likelihood is linear in the counts, so the noise does not bias its gradient. A prior with
    slope 1 and intercept 0, which leaves probabilities unchanged, gets more weight the more noise
    there is. If the gradient has noise of variance V, the curvature is H, and the parameter is
    expected to differ by s from its prior, then the precision :math:`V / (H s^2)` shrinks the
    estimate by :math:`s^2 / (s^2 + V / H^2)`, which minimizes the expected squared error.

    Parameters
    ----------
    bins : ScoreBins

    Returns
    -------
    ScoreCalibrator
    """
    negatives, positives = bins.counts
    totals = negatives + positives
    weights_of_bins = np.maximum(totals, 0.0)
    design = np.stack([bins.logits, np.ones(len(totals))])
    prior = np.array([1.0, 0.0])
    p = expit(prior @ design)
    noise_variance = design**2 @ (bins.count_stds**2 * (p**2 + (1.0 - p) ** 2))
    curvature = design**2 @ (weights_of_bins * p * (1.0 - p))
    precision = noise_variance / np.maximum(curvature, 1e-9) / PRIOR_STDS**2 + MIN_PRECISION
    weights = prior
    for _ in range(N_STEPS):
        p = expit(weights @ design)
        gradient = design @ (totals * p - positives) + precision * (weights - prior)
        hessian = (design * (weights_of_bins * p * (1.0 - p))) @ design.T + np.diag(precision)
        step = np.linalg.solve(hessian, gradient)
        # The step is bounded, since the curvature vanishes where all probabilities are 0 or 1.
        weights = weights - step / max(1.0, float(np.abs(step).max()) / MAX_STEP)
    weights = prior + _significant_fraction(bins, design, prior, weights) * (weights - prior)
    slope, intercept = np.clip(weights, [0.0, -MAX_SCORE], [MAX_SCORE, MAX_SCORE]).tolist()
    return ScoreCalibrator(method="sigmoid", slope=slope, intercept=intercept)


def _significant_fraction(bins, design, prior, weights):
    """Return the fraction of a change of weights that exceeds the noise.

    The fraction maximizes the gain in likelihood minus `NOISE_STDS` standard deviations of its
    noise. With few rows, for which the fitted weights follow the noise, it is 0.
    """
    fractions = np.linspace(0.0, 1.0, 101)
    scores = (prior + fractions[:, np.newaxis] * (weights - prior)) @ design
    # Changes in the log-likelihood of a negative and of a positive in each bin.
    changes = np.stack([log_expit(-scores), log_expit(scores)], axis=1)
    changes -= changes[0]
    gains = (changes * bins.counts).sum(axis=(1, 2))
    noise_stds = np.sqrt((changes**2 * bins.count_stds**2).sum(axis=(1, 2)))
    return fractions[np.argmax(gains - NOISE_STDS * noise_stds)]


def fit_isotonic(bins):
    """Return the increasing function that best fits the fractions of positives in released counts.

    The fractions are those in bins that can be distinguished from their noise. If there are fewer
    than `MIN_BINS` such bins, the sigmoid is returned.

    Parameters
    ----------
    bins : ScoreBins

    Returns
    -------
    ScoreCalibrator
    """
    if bins.n_bins < MIN_BINS:
        return fit_sigmoid(bins)
    totals, fractions = bins.positive_fractions()
    # No label is impossible, because each probability corresponds to at least half a counted row.
    smallest = 0.5 / max(totals.sum(), 1.0)
    return ScoreCalibrator(
        method="isotonic",
        scores=np.maximum.accumulate(bins.logits),
        probabilities=np.clip(fractions, smallest, 1.0 - smallest),
    )


class DPCalibratedClassifierCV(BaseCountedScores):
    """Classifier whose probabilities are calibrated privately, on rows that it was not fitted to.

    The counts of rows by class and score are released with noise, on a public grid of scores. A
    sigmoid or an increasing function from the score to the probability is fitted to them. The fit
    of the classifier and the counts together cost one (`epsilon`, `delta`), which is charged before
    the fit. By default, a quarter of the rows is held out for the counts. No row is then in both,
    so the fit and the counts each have the whole budget.

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
    method : {"sigmoid", "isotonic"}, default="sigmoid"
        "sigmoid" is Platt's method, applied to the logit of the probability or to the decision
        value; with few rows, it changes little. "isotonic" is an increasing function, or the
        sigmoid if there are too few rows.
    cv : float, int, splitter, iterable or "prefit", default=0.25
        Rows whose scores are counted. A float is the fraction of rows that a public seed holds out.
        An int is a number of folds; ints and splitters are as in `DPGridSearchCV`, and None means 5
        folds. "prefit", or an estimator in `sklearn.frozen.FrozenEstimator`, counts the scores of a
        fitted estimator on all rows, which must not be those of its fit.
    refit : bool, default=False
        If True, fit the estimator to all rows, with half of the budget. Required if `cv` has
        several splits. If False, the model fitted without the held-out rows is published.
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
        The fitted model, whose scores are calibrated.
    calibrator_ : ScoreCalibrator
        The map from scores to probabilities.
    score_counts_ : ndarray of shape (2, n_cells)
        Noisy counts of the first and the second class by cell of the score, from which everything
        else is computed.
    score_edges_ : ndarray of shape (n_cells - 1,)
        Inner edges of the cells, as probabilities. The logistic function maps decision values to
        them.
    response_method_ : {"predict_proba", "decision_function"}
        The method whose scores are calibrated.
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
    skdp.model_selection.DPTunedThresholdClassifierCV : Choose a threshold instead.

    Notes
    -----
    The parameters `estimator`, `method`, `cv` and `n_jobs` of scikit-learn's
    `CalibratedClassifierCV` exist. `ensemble` does not, because it would publish the models of all
    folds; there is a single model, as with ``ensemble=False``. Only two classes are supported,
    because counts of each of k classes against the others would have k times the sensitivity. Each
    counted row is in one cell, so the noise is that of one count. The guarantee is proved in
    ``docs/theory/model_selection.md``.

    References
    ----------
    J. Platt. Probabilistic outputs for support vector machines and comparisons to regularized
    likelihood methods. Advances in Large Margin Classifiers 1999.

    B. Zadrozny and C. Elkan. Transforming classifier scores into accurate multiclass probability
    estimates. KDD 2002.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPLinearSVC
    >>> from skdp.calibration import DPCalibratedClassifierCV
    >>> X, y = make_classification(n_samples=20000, random_state=0)
    >>> model = DPCalibratedClassifierCV(DPLinearSVC(data_norm=8.0), epsilon=2.0).fit(X, y)
    >>> model.predict_proba(X).shape
    (20000, 2)
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        method: Literal["sigmoid", "isotonic"] = "sigmoid",
        cv: float | int | BaseCrossValidator | Iterable | Literal["prefit"] | None = 0.25,
        refit: bool = False,
        public_steps: tuple[str, ...] = (),
        n_jobs: int | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ):
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.cv = cv
        self.refit = refit
        self.public_steps = public_steps
        self.n_jobs = n_jobs
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    _response_methods = RESPONSE_METHODS

    def _check_parameters(self):
        """Raise `ValueError` for parameters that are wrong for every table."""
        check_choice(self.method, "method", METHODS)
        super()._check_parameters()

    def _publish_model(self, fit, plan, model, cells, method, *, public, stages, sampler):
        """Publish the model and the calibrator that is fitted to the released counts."""
        make_calibrator = fit_isotonic
        if self.method == "sigmoid":
            make_calibrator = fit_sigmoid
        fit.publish(
            plan,
            public=public,
            stages=stages,
            sampler=sampler,
            estimator_=model,
            calibrator_=make_calibrator(cells.bins()),
            response_method_=method,
            score_counts_=cells.counts,
            score_edges_=np.asarray(cells.edges),
        )

    def predict_proba(self, X):
        """Return the calibrated probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Values in the order of `classes_`.
        """
        scores = self._scores(X)
        with np.errstate(all="ignore"):
            if self.response_method_ == "predict_proba":
                scores = logit(np.clip(scores, 0.0, 1.0))
            probabilities = self.calibrator_.predict(np.nan_to_num(scores, nan=-MAX_SCORE))
        return np.column_stack([1.0 - probabilities, probabilities])

    def predict_log_proba(self, X):
        """Return the logarithms of the calibrated probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Values in the order of `classes_`.
        """
        with np.errstate(all="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X):
        """Return the class with the higher calibrated probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        probabilities = self.predict_proba(X)
        return self.classes_[(probabilities[:, 1] > 0.5).astype(int)]

    def decision_function(self, X):
        """Return the logit of the calibrated probability of the second class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Positive where `predict` returns the second class.
        """
        with np.errstate(all="ignore"):
            return logit(self.predict_proba(X)[:, 1])
