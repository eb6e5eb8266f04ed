"""Search for hyperparameters within one privacy budget."""

from dataclasses import field

from sklearn.model_selection import ParameterGrid, ParameterSampler

from skdp.model_selection._base_search import BasePrivateSearch
from skdp.utils._validation import check_integer


class DPGridSearchCV(BasePrivateSearch):
    """Search a grid of hyperparameters within one privacy budget.

    The whole search, the published model included, costs one (`epsilon`, `delta`), charged
    before the first fit. The epsilon, delta, accountant and random_state of every inner fit are
    set by the search, calibrated together.

    Parameters
    ----------
    {estimator}
    param_grid : dict or list of dict
        As in scikit-learn; public. No parameter may end in epsilon, delta, accountant or
        random_state.
    {epsilon}
    {delta}
    {strategy}
    {selection}
    {cv}
    {scoring}
    {refit}
    {mean_runs}
    {public_steps}
    {n_jobs}
    {accountant}
    {random_state}
    {verbose}

    Attributes
    ----------
    {best_estimator_}
    {best_params_}
    {best_index_}
    {best_score_}
    {cv_results_}
    {strategy_}
    {classes_}
    {n_features_in_}
    {feature_names_in_}
    {privacy_}

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

    param_grid: dict | list = field(kw_only=False)

    def _candidate_params(self):
        return ParameterGrid(self.param_grid)


class DPRandomizedSearchCV(BasePrivateSearch):
    """Search candidates drawn from distributions, within one privacy budget.

    The whole search, the published model included, costs one (`epsilon`, `delta`), charged
    before the first fit. The epsilon, delta, accountant and random_state of every inner fit are
    set by the search, calibrated together.

    Parameters
    ----------
    {estimator}
    param_distributions : dict or list of dict
        As in scikit-learn; public. No parameter may end in epsilon, delta, accountant or
        random_state.
    {epsilon}
    {delta}
    {strategy}
    {selection}
    {cv}
    {scoring}
    {refit}
    {mean_runs}
    {public_steps}
    {n_jobs}
    n_iter : int, default=10
        How many candidates are drawn, before anything is computed from the data.
    sampling_seed : int or None, default=0
        The public seed of that draw.
    {accountant}
    {random_state}
    {verbose}

    Attributes
    ----------
    {best_estimator_}
    {best_params_}
    {best_index_}
    {best_score_}
    {cv_results_}
    {strategy_}
    {classes_}
    {n_features_in_}
    {feature_names_in_}
    {privacy_}

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

    param_distributions: dict | list = field(kw_only=False)
    n_iter: int = 10
    sampling_seed: int = 0

    def _candidate_params(self):
        n_iter = check_integer(self.n_iter, "n_iter", 1)
        return ParameterSampler(self.param_distributions, n_iter, random_state=self.sampling_seed)
