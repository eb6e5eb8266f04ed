"""Cross-validation, validation curves and learning curves: many noisy scores, one charge."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator

from skdp.base import PrivateFit
from skdp.ledger import PrivacyAccountant
from skdp.model_selection._fold_release import release_folds
from skdp.model_selection._scores import BoundedScore
from skdp.utils._documents import PrintedDocument, Section
from skdp.utils._types import TableLike
from skdp.utils._validation import as_doubles


class DPScores(PrintedDocument):
    """Noisy cross-validation scores that were released together.

    Parameters
    ----------
    accountant : PrivacyAccountant or None
        The accountant that is charged.
    random_state : int or None
        None uses the operating system's generator.

    Attributes
    ----------
    scores_ : ndarray
        Noisy scores; the last axis corresponds to the folds.
    noise_ : float
        Standard deviation of the noise in each score.
    mean_ : float or ndarray
        Mean of the scores over folds.
    mean_noise_ : float
        Standard deviation of the noise in each mean.
    privacy_ : PrivacyStatement
        Privacy statement of the one charge for all fits and scores.
    """

    def __init__(self, accountant: PrivacyAccountant | None, random_state: int | None):
        self.accountant = accountant
        self.random_state = random_state

    def __repr__(self):
        if not hasattr(self, "privacy_"):
            return "DPScores()"
        return f"DPScores(mean={self.mean_}, noise ± {self.mean_noise_:.3g})"

    def section(self):
        """Return the scores as a section of a printed document.

        Returns
        -------
        Section
        """

        def with_noise(values, noise_std):
            return f"{np.round(values, 4).tolist()} ± {noise_std:.2g}"

        entries = (
            ("mean", with_noise(self.mean_, self.mean_noise_)),
            ("scores", with_noise(self.scores_, self.noise_)),
            ("guarantee", self.privacy_.section().heading),
        )
        return Section("Noisy scores of cross-validation", entries)


def dp_cross_val_score(
    estimator: BaseEstimator,
    X: TableLike,
    y: ArrayLike,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    cv: int | BaseCrossValidator | Iterable | None = None,
    scoring: str | BoundedScore | None = None,
    groups: ArrayLike | None = None,
    public_steps: tuple[str, ...] = (),
    n_jobs: int | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> DPScores:
    """Cross-validate a private estimator and release noisy scores, for one budget.

    Parameters
    ----------
    estimator : estimator
        Private, or a pipeline as in `DPGridSearchCV`.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Targets or labels.
    epsilon : float, default=1.0
        Budget of all fits and scores together, positive.
    delta : float, default=1e-6
        Budget of all fits and scores together, in [0, 1).
    cv : int, splitter or iterable, default=None
        As in `DPGridSearchCV`; None means 5 folds.
    scoring : str or BoundedScore, default=None
        As in `DPGridSearchCV`.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    public_steps : tuple of str, default=()
        Names of steps that learn from data and are declared public. `privacy_` lists them.
    n_jobs : int, default=None
        Number of fits that run at a time.
    accountant : PrivacyAccountant, default=None
        Charged once, before the first fit, for all fits and scores. None charges nothing and
        protects under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    DPScores
        It has `scores_` of shape (n_folds,), `noise_` (the standard deviation of the noise in each
        score), `mean_`, `mean_noise_` and `privacy_`.

    Raises
    ------
    ValueError
        If a parameter or the data are not as described; nothing was charged.
    BudgetExceededError
        If the remaining budget is too small; nothing was fitted.

    Notes
    -----
    All scores and all fits, none of which is released, are together (`epsilon`,
    `delta`)-differentially private under the accountant's relation. With k folds, a row is in k - 1
    training sets and in one test set, and the guarantee composes these (see
    ``docs/theory/model_selection.md``). The estimator's own epsilon and delta are overwritten.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPLogisticRegression
    >>> from skdp.model_selection import dp_cross_val_score
    >>> X, y = make_classification(n_samples=5000, n_features=5, random_state=0)
    >>> result = dp_cross_val_score(DPLogisticRegression(), X, y, epsilon=1.0)
    >>> result.scores_.shape
    (5,)
    """
    return _release_scores(
        estimator,
        X,
        y,
        is_curve=False,
        epsilon=epsilon,
        delta=delta,
        cv=cv,
        scoring=scoring,
        groups=groups,
        public_steps=public_steps,
        n_jobs=n_jobs,
        accountant=accountant,
        random_state=random_state,
    )


def dp_validation_curve(
    estimator: BaseEstimator,
    X: TableLike,
    y: ArrayLike,
    *,
    param_name: str,
    param_range: Sequence,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    cv: int | BaseCrossValidator | Iterable | None = None,
    scoring: str | BoundedScore | None = None,
    groups: ArrayLike | None = None,
    public_steps: tuple[str, ...] = (),
    n_jobs: int | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> DPScores:
    """Release noisy cross-validated scores for several values of one parameter.

    Parameters
    ----------
    estimator : estimator
        Private, or a pipeline as in `DPGridSearchCV`.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Targets or labels.
    param_name : str
        Name of the parameter. It cannot be epsilon, delta, accountant or random_state, which are
        arguments of this function.
    param_range : sequence
        Values of the parameter; public.
    epsilon : float, default=1.0
        Budget of all fits and scores together, positive.
    delta : float, default=1e-6
        Budget of all fits and scores together, in [0, 1).
    cv : int, splitter or iterable, default=None
        As in `DPGridSearchCV`; None means 5 folds.
    scoring : str or BoundedScore, default=None
        As in `DPGridSearchCV`.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    public_steps : tuple of str, default=()
        Names of steps that learn from data and are declared public. `privacy_` lists them.
    n_jobs : int, default=None
        Number of fits that run at a time.
    accountant : PrivacyAccountant, default=None
        Charged once, before the first fit, for all fits and scores. None charges nothing and
        protects under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    DPScores
        It has `scores_` of shape (n_values, n_folds), `noise_` (the standard deviation of the noise
        in each score), `mean_`, `mean_noise_` and `privacy_`.

    Raises
    ------
    ValueError
        If a parameter or the data are not as described; nothing was charged.
    BudgetExceededError
        If the remaining budget is too small; nothing was fitted.

    Notes
    -----
    The guarantee is that of `dp_cross_val_score`, for all scores together.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPLogisticRegression
    >>> from skdp.model_selection import dp_validation_curve
    >>> X, y = make_classification(n_samples=5000, n_features=5, random_state=0)
    >>> result = dp_validation_curve(
    ...     DPLogisticRegression(), X, y, param_name="C", param_range=[0.01, 0.1], cv=3
    ... )
    >>> result.scores_.shape
    (2, 3)
    """
    if not isinstance(param_name, str):
        raise ValueError(f"param_name must be the name of a parameter, got {param_name!r}")
    if isinstance(param_range, str | bytes | Mapping) or not isinstance(param_range, Iterable):
        raise ValueError(f"param_range must be a list of values, got {param_range!r}")
    grid = [{param_name: value} for value in param_range]
    return _release_scores(
        estimator,
        X,
        y,
        grid=grid,
        epsilon=epsilon,
        delta=delta,
        cv=cv,
        scoring=scoring,
        groups=groups,
        public_steps=public_steps,
        n_jobs=n_jobs,
        accountant=accountant,
        random_state=random_state,
    )


def dp_learning_curve(
    estimator: BaseEstimator,
    X: TableLike,
    y: ArrayLike,
    *,
    train_sizes: Sequence[float] = (0.1, 0.33, 1.0),
    epsilon: float = 1.0,
    delta: float = 1e-6,
    cv: int | BaseCrossValidator | Iterable | None = None,
    scoring: str | BoundedScore | None = None,
    groups: ArrayLike | None = None,
    public_steps: tuple[str, ...] = (),
    n_jobs: int | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> DPScores:
    """Release noisy cross-validated scores for several numbers of training rows.

    Parameters
    ----------
    estimator : estimator
        Private, or a pipeline as in `DPGridSearchCV`.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Targets or labels.
    train_sizes : sequence of float, default=(0.1, 0.33, 1.0)
        Fractions of the training rows of each fold; smaller sets are subsets of larger ones.
    epsilon : float, default=1.0
        Budget of all fits and scores together, positive.
    delta : float, default=1e-6
        Budget of all fits and scores together, in [0, 1).
    cv : int, splitter or iterable, default=None
        As in `DPGridSearchCV`; None means 5 folds.
    scoring : str or BoundedScore, default=None
        As in `DPGridSearchCV`.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    public_steps : tuple of str, default=()
        Names of steps that learn from data and are declared public. `privacy_` lists them.
    n_jobs : int, default=None
        Number of fits that run at a time.
    accountant : PrivacyAccountant, default=None
        Charged once, before the first fit, for all fits and scores. None charges nothing and
        protects under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    DPScores
        It has `scores_` of shape (n_sizes, n_folds), `noise_` (the standard deviation of the noise
        in each score), `mean_`, `mean_noise_` and `privacy_`.

    Raises
    ------
    ValueError
        If a parameter or the data are not as described; nothing was charged.
    BudgetExceededError
        If the remaining budget is too small; nothing was fitted.

    Notes
    -----
    The guarantee is that of `dp_cross_val_score`, for all scores together.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPLogisticRegression
    >>> from skdp.model_selection import dp_learning_curve
    >>> X, y = make_classification(n_samples=5000, n_features=5, random_state=0)
    >>> result = dp_learning_curve(DPLogisticRegression(), X, y, cv=3)
    >>> result.scores_.shape
    (3, 3)
    """
    sizes = as_doubles(train_sizes)
    if sizes.ndim != 1 or not sizes.size or not ((sizes > 0.0) & (sizes <= 1.0)).all():
        raise ValueError(f"train_sizes must be fractions in (0, 1], got {train_sizes!r}")
    return _release_scores(
        estimator,
        X,
        y,
        sizes=sizes,
        epsilon=epsilon,
        delta=delta,
        cv=cv,
        scoring=scoring,
        groups=groups,
        public_steps=public_steps,
        n_jobs=n_jobs,
        accountant=accountant,
        random_state=random_state,
    )


def _release_scores(
    estimator,
    X,
    y,
    *,
    grid=({},),
    sizes=(1.0,),
    is_curve=True,
    epsilon,
    delta,
    cv,
    scoring,
    groups,
    public_steps,
    n_jobs,
    accountant,
    random_state,
):
    """Return the noisy scores of all candidates, folds and fractions of the training rows."""
    result = DPScores(accountant, random_state)
    with PrivateFit(result) as fit:
        release = release_folds(
            result,
            fit,
            estimator,
            X,
            y,
            epsilon=epsilon,
            delta=delta,
            cv=cv,
            scoring=scoring,
            groups=groups,
            public_steps=public_steps,
            n_jobs=n_jobs,
            grid=grid,
            sizes=sizes,
        )
        search = release.search
        if is_curve:
            noisy = release.noisy.reshape(-1, release.n_folds)
            mean = noisy.mean(axis=-1)
        else:
            noisy = release.noisy
            mean = float(noisy.mean())
        noise_std = search.noisy.deviation(search.released_together)
        fit.publish(
            search.plan(),
            public=release.public,
            sampler=release.sampler,
            stages=release.stages,
            scores_=noisy,
            noise_=float(noise_std),
            mean_=mean,
            mean_noise_=float(noise_std / np.sqrt(noisy.shape[-1])),
        )
    return result
