"""Search for hyperparameters within one privacy budget."""

from sklearn.base import BaseEstimator
from sklearn.model_selection import ParameterGrid, ParameterSampler

from skdp.ledger import PrivacyAccountant
from skdp.model_selection._base_search import BasePrivateSearch
from skdp.utils._validation import check_integer


class DPGridSearchCV(BasePrivateSearch):
    """Search a grid of hyperparameters within one privacy budget.

    The whole search, the published model included, costs one (`epsilon`, `delta`), charged
    before the first fit. The epsilon, delta, accountant and random_state of every inner fit are
    set by the search, calibrated together.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a pipeline whose every step is private, stateless, frozen or of
        a declared schema.
    param_grid : dict or list of dict
        As in scikit-learn; public. No parameter may end in epsilon, delta, accountant or
        random_state.
    epsilon : float, default=1.0
        Of the whole search, positive.
    delta : float, default=1e-6
        Of the whole search, in [0, 1).
    strategy : {"auto", "disjoint", "holdout", "cv", "random_stopping"}, default="auto"
        "disjoint": every candidate learns on a part of its own. "holdout": all candidates learn
        on the same training rows. Both compare on held-out rows. "cv": cross-validation.
        "random_stopping": a random number of runs, each of a candidate drawn with
        replacement, of which the best by a noisy score is kept; the cost hardly grows with the
        number of candidates. "auto" takes the one that a model of utility likes best, from the
        table's shape, the number of candidates, epsilon and delta.
    selection : {"exponential", "permute_and_flip", "noisy_max"}, default="exponential"
        How a candidate is chosen by raw scores; not used by "random_stopping", which chooses by
        noisy ones. "noisy_max" adds Laplace noise.
    cv : int, splitter or iterable, default=None
        For "cv", None is 5 folds and an int is ``KFold(cv, shuffle=True, random_state=0)``. Of
        splitters those are taken that look at row numbers alone: `KFold`, `RepeatedKFold`,
        `ShuffleSplit`, `LeaveOneOut`, `TimeSeriesSplit` and `PredefinedSplit`. A list of (train,
        test) index arrays declares them public. Of persons it is `PersonKFold` alone, which an
        int then is. The other strategies take one split; None holds out a quarter of the rows.
    scoring : str or BoundedScore, default=None
        A score of known sensitivity, see `skdp.model_selection.bounded_score`. None is
        "accuracy" for classifiers, and "r2" for regressors with `target_bounds`.
    refit : bool, default=True
        Whether the published model is fitted anew to all rows, for half of the budget. Without,
        it is the chosen candidate's own fit; "cv" then publishes none.
    mean_runs : int, default=None
        The mean of the geometric number of runs of "random_stopping"; None takes twice the
        number of candidates, 50 at least. The number itself stays secret.
    public_steps : tuple of str, default=()
        Names of steps that learn from data and are declared public; `privacy_` repeats them.
    n_jobs : int, default=None
        How many fits run at a time, by joblib.
    accountant : PrivacyAccountant, default=None
        Where the search is charged. None charges nothing and protects under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.
    verbose : int, default=0
        Whether to print, in one line, what was planned. Nothing that depends on the data, nor
        the number of runs, is printed.

    Attributes
    ----------
    best_estimator_ : estimator
        The published model; later fits of it charge `accountant`.
    best_params_ : dict
        The chosen candidate's parameters.
    best_index_ : int
        Its number.
    best_score_ : float
        Its noisy score.
    cv_results_ : dict
        `params`, a column for each parameter, noisy `mean_test_score`, the standard deviation
        `noise_std_test_score` of the noise, and `rank_test_score`: 1 for the chosen candidate,
        which was chosen by a release of its own and need not have the best noisy score, then the
        others by their noisy scores. "random_stopping" releases the winner's score alone.
    strategy_ : str
        The strategy used, from public quantities.
    classes_ : ndarray of shape (n_classes,)
        The class labels, of a classifier.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        What was guaranteed, and under which assumptions. That of `best_estimator_` has the same
        epsilon and delta, as the choice of its parameters is a part of what it tells, and
        describes the noise of its own fit.

    Raises
    ------
    ValueError
        If a parameter or the data are not as described; nothing was charged.
    BudgetExceededError
        If the accountant cannot pay for the whole search; no fit was made.

    Notes
    -----
    Everything that is published is (`epsilon`, `delta`)-differentially private under the
    accountant's relation, if the candidates and the label set are public. Running time tells
    about the number of runs. An inner fit that raises after the charge ends the search; nothing
    is published. What may still raise then, above all what stands behind a private step if it is
    not of skdp or reads filled-in words, is listed in ``docs/model_selection.md``, with the
    derivations.

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
        param_grid: dict | list,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        strategy: str = "auto",
        selection: str = "exponential",
        cv: object = None,
        scoring: object = None,
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
        return ParameterGrid(self.param_grid)


class DPRandomizedSearchCV(BasePrivateSearch):
    """Search candidates drawn from distributions, within one privacy budget.

    The whole search, the published model included, costs one (`epsilon`, `delta`), charged
    before the first fit. The epsilon, delta, accountant and random_state of every inner fit are
    set by the search, calibrated together.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a pipeline whose every step is private, stateless, frozen or of
        a declared schema.
    param_distributions : dict or list of dict
        As in scikit-learn; public. No parameter may end in epsilon, delta, accountant or
        random_state.
    epsilon : float, default=1.0
        Of the whole search, positive.
    delta : float, default=1e-6
        Of the whole search, in [0, 1).
    strategy : {"auto", "disjoint", "holdout", "cv", "random_stopping"}, default="auto"
        "disjoint": every candidate learns on a part of its own. "holdout": all candidates learn
        on the same training rows. Both compare on held-out rows. "cv": cross-validation.
        "random_stopping": a random number of runs, each of a candidate drawn with
        replacement, of which the best by a noisy score is kept; the cost hardly grows with the
        number of candidates. "auto" takes the one that a model of utility likes best, from the
        table's shape, the number of candidates, epsilon and delta.
    selection : {"exponential", "permute_and_flip", "noisy_max"}, default="exponential"
        How a candidate is chosen by raw scores; not used by "random_stopping", which chooses by
        noisy ones. "noisy_max" adds Laplace noise.
    cv : int, splitter or iterable, default=None
        For "cv", None is 5 folds and an int is ``KFold(cv, shuffle=True, random_state=0)``. Of
        splitters those are taken that look at row numbers alone: `KFold`, `RepeatedKFold`,
        `ShuffleSplit`, `LeaveOneOut`, `TimeSeriesSplit` and `PredefinedSplit`. A list of (train,
        test) index arrays declares them public. Of persons it is `PersonKFold` alone, which an
        int then is. The other strategies take one split; None holds out a quarter of the rows.
    scoring : str or BoundedScore, default=None
        A score of known sensitivity, see `skdp.model_selection.bounded_score`. None is
        "accuracy" for classifiers, and "r2" for regressors with `target_bounds`.
    refit : bool, default=True
        Whether the published model is fitted anew to all rows, for half of the budget. Without,
        it is the chosen candidate's own fit; "cv" then publishes none.
    mean_runs : int, default=None
        The mean of the geometric number of runs of "random_stopping"; None takes twice the
        number of candidates, 50 at least. The number itself stays secret.
    public_steps : tuple of str, default=()
        Names of steps that learn from data and are declared public; `privacy_` repeats them.
    n_jobs : int, default=None
        How many fits run at a time, by joblib.
    n_iter : int, default=10
        How many candidates are drawn, before anything is computed from the data.
    sampling_seed : int or None, default=0
        The public seed of that draw.
    accountant : PrivacyAccountant, default=None
        Where the search is charged. None charges nothing and protects under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.
    verbose : int, default=0
        Whether to print, in one line, what was planned. Nothing that depends on the data, nor
        the number of runs, is printed.

    Attributes
    ----------
    best_estimator_ : estimator
        The published model; later fits of it charge `accountant`.
    best_params_ : dict
        The chosen candidate's parameters.
    best_index_ : int
        Its number.
    best_score_ : float
        Its noisy score.
    cv_results_ : dict
        `params`, a column for each parameter, noisy `mean_test_score`, the standard deviation
        `noise_std_test_score` of the noise, and `rank_test_score`: 1 for the chosen candidate,
        which was chosen by a release of its own and need not have the best noisy score, then the
        others by their noisy scores. "random_stopping" releases the winner's score alone.
    strategy_ : str
        The strategy used, from public quantities.
    classes_ : ndarray of shape (n_classes,)
        The class labels, of a classifier.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        What was guaranteed, and under which assumptions. That of `best_estimator_` has the same
        epsilon and delta, as the choice of its parameters is a part of what it tells, and
        describes the noise of its own fit.

    Raises
    ------
    ValueError
        If a parameter or the data are not as described; nothing was charged.
    BudgetExceededError
        If the accountant cannot pay for the whole search; no fit was made.

    Notes
    -----
    Everything that is published is (`epsilon`, `delta`)-differentially private under the
    accountant's relation, if the candidates and the label set are public. Running time tells
    about the number of runs. An inner fit that raises after the charge ends the search; nothing
    is published. What may still raise then, above all what stands behind a private step if it is
    not of skdp or reads filled-in words, is listed in ``docs/model_selection.md``, with the
    derivations.

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
        param_distributions: dict | list,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        strategy: str = "auto",
        selection: str = "exponential",
        cv: object = None,
        scoring: object = None,
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
        n_iter = check_integer(self.n_iter, "n_iter", 1)
        return ParameterSampler(self.param_distributions, n_iter, random_state=self.sampling_seed)
