"""Private cross-validation: several metrics of pooled folds, in one charge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator

from skdp.accounting import gaussian_noise_multiplier
from skdp.base import PrivateFit
from skdp.ledger import PrivacyAccountant
from skdp.metrics._bootstrap import N_DRAWS, draw_noise
from skdp.model_selection._candidates import labels_of_candidate
from skdp.model_selection._evaluation import publish_evaluation
from skdp.model_selection._evaluation_report import EvaluationReport
from skdp.model_selection._evaluation_task import check_row_wise, make_task
from skdp.model_selection._fold_release import release_folds
from skdp.model_selection._plans import ONLY_SCORES_FRACTION
from skdp.model_selection._pooled import PooledStatistics
from skdp.utils._types import TableLike

# Quantile of the spread due to noise alone, above which the spread of folds is reported.
SPREAD_QUANTILE = 0.95


def dp_cross_validate(
    estimator: BaseEstimator,
    X: TableLike,
    y: ArrayLike,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    cv: int | BaseCrossValidator | Iterable | None = None,
    metrics: Sequence[str] | None = None,
    target_bounds: tuple[float, float] | None = None,
    groups: ArrayLike | None = None,
    public_steps: tuple[str, ...] = (),
    n_jobs: int | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> EvaluationReport:
    """Cross-validate a private estimator and release several metrics, for one budget.

    The predictions of all folds are pooled, as if they came from one model, before noise is added
    once. So the metrics and their standard errors are those of all rows together.

    Parameters
    ----------
    estimator : estimator
        Private, or a pipeline as in `DPGridSearchCV`.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Targets or labels.
    epsilon : float, default=1.0
        Budget of all fits and metrics together, positive.
    delta : float, default=1e-6
        Budget of all fits and metrics together, in [0, 1).
    cv : int, splitter or iterable, default=None
        As in `DPGridSearchCV`; None means 5 folds. No row may be in several test sets.
    metrics : sequence of str, default=None
        As in `dp_evaluate`; None means all metrics of the estimator.
    target_bounds : tuple of (low, high), default=None
        As in `dp_evaluate`.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    public_steps : tuple of str, default=()
        Names of steps that learn from data and are declared public. `privacy_` lists them.
    n_jobs : int, default=None
        Number of fits that run at a time.
    accountant : PrivacyAccountant, default=None
        Charged once, before the first fit, for all fits and metrics. None charges nothing and
        protects under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    EvaluationReport
        `fold_scores_` contains noisy metrics of single folds, and `fold_spread_` their standard
        deviation where it exceeds that of the noise.

    Raises
    ------
    ValueError
        If a parameter or the data are not as described; nothing was charged.
    BudgetExceededError
        If the remaining budget is too small; nothing was fitted.

    Notes
    -----
    All metrics and all fits, none of which is released, are together (`epsilon`,
    `delta`)-differentially private under the accountant's relation; see
    ``docs/theory/model_selection.md``. The estimator's own epsilon and delta are overwritten.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPLogisticRegression, dp_cross_validate
    >>> X, y = make_classification(n_samples=5000, n_features=5, random_state=0)
    >>> report = dp_cross_validate(DPLogisticRegression(), X, y, epsilon=2.0, cv=3)
    >>> bool(report["accuracy"] > 0.5)
    True
    """
    report = EvaluationReport(accountant, random_state, "dp_cross_validate")
    with PrivateFit(report) as fit:

        def make_score_of_folds(rows, splits, guarantee):
            """Return the function that makes the score of pooled folds, for `release_folds`."""
            tests = np.concatenate(splits.test)
            if len(np.unique(tests)) < len(tests):
                raise ValueError(
                    f"cv={cv!r} has a row in several test sets, which pooled metrics would count "
                    "repeatedly: use folds, such as cv=5"
                )

            def make_score(metrics, pipe):
                """Return the `PooledStatistics`, which read the predictions of each fold later."""
                if fit.terms.unit == "person":
                    check_row_wise(pipe)
                return PooledStatistics(
                    make_task(pipe, metrics, target_bounds, labels_of_candidate(pipe, rows.y)),
                    grid_guarantee(guarantee.per_row),
                    splits.test_sizes,
                )

            return make_score

        release = release_folds(
            report,
            fit,
            estimator,
            X,
            y,
            epsilon=epsilon,
            delta=delta,
            cv=cv,
            scoring=metrics,
            groups=groups,
            public_steps=public_steps,
            n_jobs=n_jobs,
            make_score_of_folds=make_score_of_folds,
        )
        score = release.score
        mechanism = release.search.noisy
        pooled, coarse = score.split(release.noisy)
        evaluation = score.task.evaluate(
            score.statistics.metrics(pooled, mechanism, release.source)
        )
        fold_scores, fold_spread = _scores_of_folds(score, coarse, mechanism, release.source)
        publish_evaluation(
            fit,
            release.search.plan(),
            evaluation,
            public=release.public,
            sampler=release.sampler,
            stages=release.stages,
            fold_scores=fold_scores,
            fold_spread=fold_spread,
        )
    return report


def grid_guarantee(guarantee):
    """Return a guarantee whose epsilon gives Laplace noise as large as that in the scores.

    This epsilon determines the grid of scores. Only public numbers are used.
    """
    if guarantee.delta == 0.0:
        return replace(guarantee, epsilon=guarantee.epsilon * ONLY_SCORES_FRACTION)
    rho = 0.5 / gaussian_noise_multiplier(guarantee.epsilon, guarantee.delta) ** 2
    # The standard deviations sqrt(2) / epsilon and 1 / sqrt(2 rho) are equal.
    return replace(guarantee, epsilon=2.0 * math.sqrt(ONLY_SCORES_FRACTION * rho))


def _scores_of_folds(score, coarse, mechanism, source):
    """Return noisy metrics of the folds, and their spread where it exceeds that of the noise.

    Parameters
    ----------
    score : PooledStatistics
    coarse : ndarray of shape (n_folds, n_statistics)
        Released coarse statistics of the folds.
    mechanism : mechanism
        The mechanism that added the noise.
    source : RandomSource
        Source of the simulated noise, with which the spread is compared.

    Returns
    -------
    fold_scores : dict of str to ndarray of shape (n_folds,)
    fold_spread : dict of str to float
        Standard deviations over folds, of the metrics for which noise does not explain it.
    """
    task = score.task
    sizes = np.array(score.fold_sizes, dtype=float)
    noise = draw_noise(mechanism, coarse.size, N_DRAWS, source.stream()) / score.fold_factor
    # The spread that noise alone causes if all folds are equal to their mean.
    shares = coarse.sum(axis=0) / sizes.sum()
    equal = sizes[:, np.newaxis] * shares
    drawn = task.coarse_scores(equal + noise.reshape(N_DRAWS, *coarse.shape), sizes)
    fold_scores = {}
    fold_spread = {}
    released = task.coarse_scores(coarse, sizes)
    for name, values, draws in zip(task.coarse_metrics, released, drawn, strict=True):
        if name not in task.metrics:
            continue
        fold_scores[name] = values
        spread = 0.0
        if len(values) > 1:
            spread = float(np.std(values, ddof=1))
        if len(values) > 1 and spread > np.quantile(
            np.std(draws, axis=-1, ddof=1), SPREAD_QUANTILE
        ):
            fold_spread[name] = spread
    return fold_scores, fold_spread
