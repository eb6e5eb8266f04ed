"""Cross-validation and curves: many noisy scores for one charge."""

from inspect import signature

import numpy as np

from skdp.base import PrivateFit
from skdp.model_selection._base_search import make_task
from skdp.model_selection._candidates import Rows
from skdp.model_selection._plans import plan_runs
from skdp.model_selection._runs import SearchRun
from skdp.model_selection._splits import Layout, Splits, make_share, make_splits
from skdp.pipeline._selectable import check_selectable
from skdp.utils._documents import PrintedDocument, Section
from skdp.utils._units import UnitText


class DPScores(PrintedDocument):
    """Noisy scores of cross-validation that were released together.

    Parameters
    ----------
    accountant : PrivacyAccountant or None
        Where the plan is charged.
    random_state : int or None
        None is the operating system's generator.

    Attributes
    ----------
    scores_ : ndarray
        Noisy scores; the last axis is the folds.
    noise_ : float
        The standard deviation of the noise in each of them.
    mean_ : float or ndarray
        Their mean over folds.
    mean_noise_ : float
        The standard deviation of the noise in each mean.
    privacy_ : PrivacyStatement
        What everything together was charged for.
    """

    def __init__(self, accountant, random_state):
        self.accountant = accountant
        self.random_state = random_state

    def __repr__(self):
        if not hasattr(self, "privacy_"):
            return "DPScores()"
        return f"DPScores(mean={self.mean_}, noise ± {self.mean_noise_:.3g})"

    def section(self):
        """Return the scores as a part of a document.

        Returns
        -------
        Section
        """
        rows = {"mean": (self.mean_, self.mean_noise_), "scores": (self.scores_, self.noise_)}
        words = [(n, f"{np.round(v, 4).tolist()} ± {noise:.2g}") for n, (v, noise) in rows.items()]
        words.append(("guarantee", self.privacy_.section().heading))
        return Section("Noisy scores of cross-validation", tuple(words))


def dp_cross_val_score(
    estimator,
    X,
    y,
    *,
    epsilon=1.0,
    delta=1e-6,
    cv=None,
    scoring=None,
    groups=None,
    public_steps=(),
    n_jobs=None,
    accountant=None,
    random_state=None,
):
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
        Of everything together, positive.
    delta : float, default=1e-6
        Of everything together, in [0, 1).
    cv : int, splitter or iterable, default=None
        As in `DPGridSearchCV`; None is 5 folds.
    scoring : str or BoundedScore, default=None
        As in `DPGridSearchCV`.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, however many rows each has,
        and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
        accountant with unit="person", or none.
    public_steps : tuple of str, default=()
        Names of steps that learn from data and are declared public; `privacy_` repeats them.
    n_jobs : int, default=None
        How many fits run at a time.
    accountant : PrivacyAccountant, default=None
        Where all of it is charged, once and before the first fit.
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    DPScores
        With `scores_` of shape (n_folds,), the standard deviation `noise_` of the
        noise in each, `mean_`, `mean_noise_` and `privacy_`.

    Raises
    ------
    ValueError
        If a parameter or the data are not as described; nothing was charged.
    BudgetExceededError
        If the accountant cannot pay for all of it; no fit was made.

    Notes
    -----
    All fits, none of which is released, and all scores together are
    (`epsilon`, `delta`)-differentially private under the accountant's relation. With k folds a
    row is in k - 1 training sets and in one test set; the guarantee composes these, see
    ``docs/model_selection.md``. The estimator's own epsilon and delta are set here.

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
    options = {"cv": cv, "groups": groups, "scoring": scoring, "public_steps": public_steps}
    options |= {"n_jobs": n_jobs, "accountant": accountant, "random_state": random_state}
    options |= {"epsilon": epsilon, "delta": delta, "is_curve": False}
    return _scored(estimator, X, y, **options)


def dp_validation_curve(estimator, X, y, *, param_name, param_range, **options):
    """Release noisy cross-validated scores over the values of one parameter.

    Parameters
    ----------
    estimator : estimator
        Private, or a pipeline as in `DPGridSearchCV`.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Targets or labels.
    param_name : str
        Not one of epsilon, delta, accountant and random_state, which are set here.
    param_range : sequence
        Public values.
    **options
        The others of `dp_cross_val_score`, with its defaults: `epsilon`, `delta`, `cv`, `scoring`,
        `groups`, `public_steps`, `n_jobs`, `accountant` and `random_state`.

    Returns
    -------
    DPScores
        With `scores_` of shape (n_values, n_folds), the standard deviation `noise_` of the
        noise in each, `mean_`, `mean_noise_` and `privacy_`.

    Raises
    ------
    ValueError
        If a parameter or the data are not as described; nothing was charged.
    BudgetExceededError
        If the accountant cannot pay for all of it; no fit was made.

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
    return _scored(estimator, X, y, grid=[{param_name: value} for value in param_range], **options)


def dp_learning_curve(estimator, X, y, *, train_sizes=(0.1, 0.33, 1.0), **options):
    """Release noisy cross-validated scores over the number of training rows.

    Parameters
    ----------
    estimator : estimator
        Private, or a pipeline as in `DPGridSearchCV`.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Targets or labels.
    train_sizes : sequence of float, default=(0.1, 0.33, 1.0)
        Shares of the training rows of each fold; smaller sets are within larger ones.
    **options
        The others of `dp_cross_val_score`, with its defaults: `epsilon`, `delta`, `cv`, `scoring`,
        `groups`, `public_steps`, `n_jobs`, `accountant` and `random_state`.

    Returns
    -------
    DPScores
        With `scores_` of shape (n_sizes, n_folds), the standard deviation `noise_` of the
        noise in each, `mean_`, `mean_noise_` and `privacy_`.

    Raises
    ------
    ValueError
        If a parameter or the data are not as described; nothing was charged.
    BudgetExceededError
        If the accountant cannot pay for all of it; no fit was made.

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
    sizes = np.asarray(train_sizes, dtype=float)
    if sizes.ndim != 1 or not sizes.size or not ((sizes > 0.0) & (sizes <= 1.0)).all():
        raise ValueError(f"train_sizes must be shares in (0, 1], got {train_sizes!r}")
    return _scored(estimator, X, y, sizes=sizes, **options)


def _scored(estimator, X, y, *, grid=({},), sizes=(1.0,), is_curve=True, **options):
    """Release the scores of every candidate, on every share of the training rows of every fold."""
    given = signature(dp_cross_val_score).bind(estimator, X, y, **options)
    given.apply_defaults()
    options = given.arguments
    asked = {name: options[name] for name in ("accountant", "scoring", "public_steps")}
    result = DPScores(options["accountant"], options["random_state"])
    with PrivateFit(result) as fit:
        check_selectable(estimator, X)
        rows = Rows.read(result, fit, X, y, options["groups"])
        price = fit.make_guarantee(options["epsilon"], options["delta"])
        task = make_task(estimator, grid, rows, price, **asked)
        splits = make_splits(options["cv"], rows.n_units, rows.ids)
        train = [make_share(part, share, rows.ids) for share in sizes for part in splits.train]
        nested = Splits(tuple(train), splits.test * len(sizes), rows.n_units)
        plan = plan_runs(task, "scores", Layout.all_on_all(nested, len(grid)))
        run = SearchRun.charged(plan, rows, options["n_jobs"], fit)
        raw = [value for value, _ in run.fit(list(plan.runs))]
        noisy = plan.noisy.release(raw, random_state=run.source)
        if is_curve:
            noisy = noisy.reshape(-1, len(splits.test))
        noise = plan.noisy.deviation(plan.released_together)
        fit.publish(
            plan,
            public=task.public("the parameters"),
            # The scores depend on the fits, which were charged with them.
            stages=(*plan.training_stages, *plan.stages),
            sampler=UnitText(
                lambda unit: f"each {unit} in all training sets but its own, and scored in its own"
            ),
            scores_=noisy,
            noise_=float(noise),
            mean_=noisy.mean(axis=-1) if is_curve else float(noisy.mean()),
            mean_noise_=float(noise / np.sqrt(noisy.shape[-1])),
        )
    return result
