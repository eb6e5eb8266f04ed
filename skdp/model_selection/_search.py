"""Grid search and randomized search within one privacy budget."""

from collections.abc import Iterable, Mapping
from typing import Literal

from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator, ParameterGrid, ParameterSampler

from skdp.ledger import PrivacyAccountant
from skdp.model_selection._base_search import BasePrivateSearch
from skdp.model_selection._scores import BoundedScore
from skdp.utils._validation import check_integer

# The largest seed that scikit-learn's sampler of candidates accepts.
MAX_SAMPLING_SEED = 2**32 - 1


class DPGridSearchCV(BasePrivateSearch):
    """Search a grid of hyperparameters within one privacy budget.

    The whole search, including the published model, costs one (`epsilon`, `delta`), which is
    charged before the first fit. The search sets epsilon, delta, accountant and random_state of
    every inner fit.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a pipeline of steps that are private, stateless, frozen or have
        a declared schema.
    param_grid : dict or list of dict
        As in scikit-learn; public. No parameter may end in epsilon, delta, accountant or
        random_state.
    epsilon : float, default=1.0
        Budget of the whole search, positive.
    delta : float, default=1e-6
        Budget of the whole search, in [0, 1).
    strategy : {"auto", "disjoint", "holdout", "cv", "random_stopping"}, default="auto"
        "disjoint": each candidate is fitted on a separate subset of the training rows.
        "holdout": all candidates are fitted on the same training rows. Both compare candidates
        on held-out rows. "cv": cross-validation. "random_stopping": a random number of runs, each
        with a candidate drawn with replacement, of which the one with the best noisy score is
        chosen; the cost hardly grows with the number of candidates. "auto" chooses the strategy
        with the smallest expected loss under a rough model, which uses the table's shape, the
        number of candidates, epsilon and delta.
    selection : {"exponential", "permute_and_flip", "noisy_max"}, default="exponential"
        Mechanism that chooses a candidate by raw scores. "noisy_max" adds Laplace noise. Not
        used by "random_stopping", which chooses by noisy scores.
    cv : int, splitter or iterable, default=None
        For "cv", None means 5 folds and an int means ``KFold(cv, shuffle=True, random_state=0)``.
        Splitters must depend only on row numbers: `KFold`, `RepeatedKFold`, `ShuffleSplit`,
        `LeaveOneOut`, `TimeSeriesSplit` and `PredefinedSplit` are accepted. A list of (train, test)
        index arrays declares them public. With persons, only `PersonKFold` is accepted, and an int
        means a `PersonKFold`. The other strategies need one split; None holds out a quarter of the
        rows.
    scoring : str or BoundedScore, default=None
        A score with a known sensitivity, see `skdp.model_selection.bounded_score`. None means
        "accuracy" for classifiers, and "r2" for regressors with `target_bounds`.
    refit : bool, default=True
        If True, fit the chosen candidate to all rows, with half of the budget. If False, the scored
        fit is published, but "cv" publishes no model.
    mean_runs : int, default=None
        Mean of the geometric number of runs in "random_stopping". None means twice the number of
        candidates, at least 50. The actual number stays secret.
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
        1 prints one line with the number of candidates and the strategy. Neither the number of runs
        nor anything that depends on the data is printed.

    Attributes
    ----------
    best_estimator_ : estimator
        The published model. Fitting it again charges `accountant`.
    best_params_ : dict
        Parameters of the chosen candidate.
    best_index_ : int
        Index of the chosen candidate.
    best_score_ : float
        Noisy score of the chosen candidate.
    cv_results_ : dict
        `params`, one column per parameter, noisy `mean_test_score`, the standard deviation
        `noise_std_test_score` of the noise, and `rank_test_score`. The chosen candidate has rank 1
        but, because a separate release chose it, not necessarily the best noisy score. The others
        are ranked by their noisy scores. "random_stopping" releases only the score of the chosen
        candidate.
    strategy_ : str
        The strategy that was used.
    classes_ : ndarray of shape (n_classes,)
        Class labels, if the estimator is a classifier.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        The guarantee and its assumptions. The statement of `best_estimator_` has the same
        epsilon and delta, because the model also reveals the choice of its parameters, and
        describes the noise of its last fit.

    Raises
    ------
    ValueError
        If a parameter or the data are not as described; nothing was charged.
    BudgetExceededError
        If the remaining budget is too small for the whole search; nothing was fitted.

    Notes
    -----
    Everything that is published is (`epsilon`, `delta`)-differentially private under the
    accountant's relation, if the candidates and the label set are public. The running time depends
    on the number of runs. If an inner fit raises an error after the charge, the search ends and
    nothing is published. ``docs/theory/model_selection.md`` has the derivations, and lists the
    errors that are still possible then, mostly in third-party steps that follow a private step.

    References
    ----------
    K. Chaudhuri, C. Monteleoni and A. D. Sarwate. Differentially private empirical risk
    minimization. JMLR 12, 2011.

    J. Liu and K. Talwar. Private selection from private candidates. STOC 2019.

    N. Papernot and T. Steinke. Hyperparameter tuning with Renyi differential privacy. ICLR 2022.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPGridSearchCV, DPLogisticRegression, PrivacyAccountant
    >>> X, y = make_classification(n_samples=5000, n_features=5, random_state=0)
    >>> accountant = PrivacyAccountant(epsilon=1.0, delta=1e-6)
    >>> search = DPGridSearchCV(
    ...     DPLogisticRegression(), {"C": [0.01, 0.1, 1.0]}, accountant=accountant
    ... )
    >>> search.fit(X, y).cost()
    (1.0, 1e-06)
    >>> accountant.epsilon_spent, len(accountant.charges)
    (1.0, 1)
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        param_grid: dict | list[dict],
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        strategy: Literal["auto", "disjoint", "holdout", "cv", "random_stopping"] = "auto",
        selection: Literal["exponential", "permute_and_flip", "noisy_max"] = "exponential",
        cv: int | BaseCrossValidator | Iterable | None = None,
        scoring: str | BoundedScore | None = None,
        refit: bool = True,
        mean_runs: int | None = None,
        public_steps: tuple[str, ...] = (),
        n_jobs: int | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ):
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.strategy = strategy
        self.selection = selection
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.mean_runs = mean_runs
        self.public_steps = public_steps
        self.n_jobs = n_jobs
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _candidate_params(self):
        """Return the parameters of all candidates of the grid."""
        _check_names_of_parameters(self.param_grid, "param_grid")
        try:
            return ParameterGrid(self.param_grid)
        except (TypeError, ValueError) as error:
            raise ValueError(f"param_grid: {error}") from error


class DPRandomizedSearchCV(BasePrivateSearch):
    """Search candidates drawn from distributions, within one privacy budget.

    The whole search, including the published model, costs one (`epsilon`, `delta`), which is
    charged before the first fit. The search sets epsilon, delta, accountant and random_state of
    every inner fit.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a pipeline of steps that are private, stateless, frozen or have
        a declared schema.
    param_distributions : dict or list of dict
        As in scikit-learn; public. No parameter may end in epsilon, delta, accountant or
        random_state.
    epsilon : float, default=1.0
        Budget of the whole search, positive.
    delta : float, default=1e-6
        Budget of the whole search, in [0, 1).
    strategy : {"auto", "disjoint", "holdout", "cv", "random_stopping"}, default="auto"
        "disjoint": each candidate is fitted on a separate subset of the training rows.
        "holdout": all candidates are fitted on the same training rows. Both compare candidates
        on held-out rows. "cv": cross-validation. "random_stopping": a random number of runs, each
        with a candidate drawn with replacement, of which the one with the best noisy score is
        chosen; the cost hardly grows with the number of candidates. "auto" chooses the strategy
        with the smallest expected loss under a rough model, which uses the table's shape, the
        number of candidates, epsilon and delta.
    selection : {"exponential", "permute_and_flip", "noisy_max"}, default="exponential"
        Mechanism that chooses a candidate by raw scores. "noisy_max" adds Laplace noise. Not
        used by "random_stopping", which chooses by noisy scores.
    cv : int, splitter or iterable, default=None
        For "cv", None means 5 folds and an int means ``KFold(cv, shuffle=True, random_state=0)``.
        Splitters must depend only on row numbers: `KFold`, `RepeatedKFold`, `ShuffleSplit`,
        `LeaveOneOut`, `TimeSeriesSplit` and `PredefinedSplit` are accepted. A list of (train, test)
        index arrays declares them public. With persons, only `PersonKFold` is accepted, and an int
        means a `PersonKFold`. The other strategies need one split; None holds out a quarter of the
        rows.
    scoring : str or BoundedScore, default=None
        A score with a known sensitivity, see `skdp.model_selection.bounded_score`. None means
        "accuracy" for classifiers, and "r2" for regressors with `target_bounds`.
    refit : bool, default=True
        If True, fit the chosen candidate to all rows, with half of the budget. If False, the scored
        fit is published, but "cv" publishes no model.
    mean_runs : int, default=None
        Mean of the geometric number of runs in "random_stopping". None means twice the number of
        candidates, at least 50. The actual number stays secret.
    public_steps : tuple of str, default=()
        Names of steps that learn from data and are declared public. `privacy_` lists them.
    n_jobs : int, default=None
        Number of fits that run at a time, by joblib.
    n_iter : int, default=10
        Number of candidates. They are drawn before anything is computed from the data.
    sampling_seed : int or None, default=0
        Public seed of the draw of candidates.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged. None charges nothing and protects under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.
    verbose : int, default=0
        1 prints one line with the number of candidates and the strategy. Neither the number of runs
        nor anything that depends on the data is printed.

    Attributes
    ----------
    best_estimator_ : estimator
        The published model. Fitting it again charges `accountant`.
    best_params_ : dict
        Parameters of the chosen candidate.
    best_index_ : int
        Index of the chosen candidate.
    best_score_ : float
        Noisy score of the chosen candidate.
    cv_results_ : dict
        `params`, one column per parameter, noisy `mean_test_score`, the standard deviation
        `noise_std_test_score` of the noise, and `rank_test_score`. The chosen candidate has rank 1
        but, because a separate release chose it, not necessarily the best noisy score. The others
        are ranked by their noisy scores. "random_stopping" releases only the score of the chosen
        candidate.
    strategy_ : str
        The strategy that was used.
    classes_ : ndarray of shape (n_classes,)
        Class labels, if the estimator is a classifier.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        The guarantee and its assumptions. The statement of `best_estimator_` has the same
        epsilon and delta, because the model also reveals the choice of its parameters, and
        describes the noise of its last fit.

    Raises
    ------
    ValueError
        If a parameter or the data are not as described; nothing was charged.
    BudgetExceededError
        If the remaining budget is too small for the whole search; nothing was fitted.

    Notes
    -----
    Everything that is published is (`epsilon`, `delta`)-differentially private under the
    accountant's relation, if the candidates and the label set are public. The running time depends
    on the number of runs. If an inner fit raises an error after the charge, the search ends and
    nothing is published. ``docs/theory/model_selection.md`` has the derivations, and lists the
    errors that are still possible then, mostly in third-party steps that follow a private step.

    References
    ----------
    K. Chaudhuri, C. Monteleoni and A. D. Sarwate. Differentially private empirical risk
    minimization. JMLR 12, 2011.

    J. Liu and K. Talwar. Private selection from private candidates. STOC 2019.

    N. Papernot and T. Steinke. Hyperparameter tuning with Renyi differential privacy. ICLR 2022.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPRandomizedSearchCV, DPLogisticRegression, PrivacyAccountant
    >>> X, y = make_classification(n_samples=5000, n_features=5, random_state=0)
    >>> accountant = PrivacyAccountant(epsilon=1.0, delta=1e-6)
    >>> search = DPRandomizedSearchCV(
    ...     DPLogisticRegression(), {"C": [0.01, 0.1, 1.0]}, n_iter=3, accountant=accountant
    ... )
    >>> search.fit(X, y).cost()
    (1.0, 1e-06)
    >>> accountant.epsilon_spent, len(accountant.charges)
    (1.0, 1)
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        param_distributions: dict | list[dict],
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        strategy: Literal["auto", "disjoint", "holdout", "cv", "random_stopping"] = "auto",
        selection: Literal["exponential", "permute_and_flip", "noisy_max"] = "exponential",
        cv: int | BaseCrossValidator | Iterable | None = None,
        scoring: str | BoundedScore | None = None,
        refit: bool = True,
        mean_runs: int | None = None,
        public_steps: tuple[str, ...] = (),
        n_jobs: int | None = None,
        n_iter: int = 10,
        sampling_seed: int = 0,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ):
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.epsilon = epsilon
        self.delta = delta
        self.strategy = strategy
        self.selection = selection
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.mean_runs = mean_runs
        self.public_steps = public_steps
        self.n_jobs = n_jobs
        self.n_iter = n_iter
        self.sampling_seed = sampling_seed
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _candidate_params(self):
        """Return the parameters of `n_iter` candidates, drawn with the seed `sampling_seed`."""
        n_iter = check_integer(self.n_iter, "n_iter", 1)
        seed = self.sampling_seed
        if seed is not None:
            seed = check_integer(seed, "sampling_seed", 0, MAX_SAMPLING_SEED)
        _check_names_of_parameters(self.param_distributions, "param_distributions")
        try:
            return ParameterSampler(self.param_distributions, n_iter, random_state=seed)
        except (TypeError, ValueError) as error:
            raise ValueError(f"param_distributions: {error}") from error


def _check_names_of_parameters(grid, parameter):
    """Raise `ValueError` if a grid, or one of a list of grids, has a key that is not a string."""
    grids = grid if isinstance(grid, list | tuple) else [grid]
    for entries in grids:
        if not isinstance(entries, Mapping):
            continue
        for name in entries:
            if not isinstance(name, str):
                raise ValueError(
                    f"{parameter} must name parameters by strings, such as 'C' or 'step__C', got "
                    f"{name!r}"
                )
