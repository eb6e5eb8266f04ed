"""Linear least squares with differential privacy, with and without a ridge."""

import math

from skdp._losses._numbers import HuberLoss
from skdp._sgd._defaults import Task
from skdp.linear_model._adassp import plan_adassp
from skdp.linear_model._centre import with_mean_centre
from skdp.linear_model._data_norm import WeightsFit, plan_rows
from skdp.linear_model._mechanism_choice import descent_choice
from skdp.linear_model._regressor import PrivateLinearRegressor
from skdp.utils._validation import check_choice, check_within

MECHANISMS = ("auto", "sufficient_statistics", "gradient")

# For targets in [-1, 1]; chosen with made tables and training rows of California housing in view.
TASK = Task(
    HuberLoss(1.0),
    slope=1.0,
    curvature=1.0,
    weights_norm=10.0,
    signal=0.003,
    least_clip=0.05,
    knee=0.03,
    checked=0.15,
    spread_from="residuals",
)

# The norm of weights, times that of rows, at which statistics are expected to be as good as they
# were beside gradients on the same tables.
WEIGHTS_NORM_OF_STATISTICS = 4.0


class LeastSquaresRegressor(PrivateLinearRegressor):
    """The plan that `DPLinearRegression` and `DPRidge` share; they differ in the ridge.

    Parameters
    ----------
    delta : float, default=1e-6
        The delta of a fit, in [0, 1). 0 gives pure differential privacy with noise that grows
        faster with the number of features.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not regularised, by a constant feature of value
        ``intercept_scaling * data_norm``.
    intercept_scaling : float, default=0.3
        The size of the constant feature relative to `data_norm`. Larger values release the
        means of X and y with less noise and all else with more.
    mechanism : {"auto", "sufficient_statistics", "gradient"}, default="auto"
        "sufficient_statistics" releases the products of the columns and the targets once. A row
        longer than `data_norm` is divided by its norm over `data_norm`, together with its target.
        "gradient" releases the gradients of the steps of an accelerated descent, each row's
        clipped at a share of its bound. "auto" takes the one with less expected loss, which
        follows from public quantities: gradients, unless there is next to no noise. Gradients
        raise the ridge to the one that balances regularisation against noise; the intercept has
        none. Their last steps check the weights, which move back towards the noisy mean as far as
        they explain no more than chance.
    target_bounds : tuple of (low, high)
        The range of targets, low < high. It must be given and must not be computed from the
        data. The noise grows with the range; without `fit_intercept`, with the larger
        magnitude.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, from what was released alone.
    intercept_ : float
        Intercept, 0 without `fit_intercept`.
    """

    mechanism: str = "auto"
    # No parameter, but of DPRidge.
    alpha = 0.0

    def plan_fit(self, shape, guarantee):
        alpha = check_within(self.alpha, "alpha", 0.0, math.inf, "[)")
        unit = self._units.half**2
        rows = plan_rows(self, shape.n_rows, guarantee)
        mechanism = check_choice(self.mechanism, "mechanism", MECHANISMS)
        centred = with_mean_centre(rows, shape.n_rows)
        descent = descent_choice(centred, shape, TASK, least_alpha=alpha / shape.n_rows)
        if mechanism != "gradient":
            problem, weights = rows.problem(TASK, shape), plan_adassp(rows, shape, alpha)
            excess = weights.expected_excess(problem, WEIGHTS_NORM_OF_STATISTICS / rows.norm)
            if mechanism != "auto" or excess < descent.expected:
                return WeightsFit(rows=rows, problem=problem, weights=weights, excess=unit * excess)
        return WeightsFit.of(descent, centred, unit)


class DPLinearRegression(LeastSquaresRegressor):
    r"""Ordinary least squares from noisy clipped gradients or noisy sufficient statistics.

    What `mechanism` takes is regularised as far as the noise needs it, which vanishes as the noise
    does. Rows longer than `data_norm` count less in `fit`, by the square of ``data_norm / norm``,
    or their gradients are clipped. Targets and predictions are clipped to `target_bounds`.

    Parameters
    ----------
    {epsilon}
    {delta}
    {data_norm}
    {fit_intercept}
    {intercept_scaling}
    {target_bounds}
    {mechanism}
    {accountant}
    {random_state}
    {verbose}

    Attributes
    ----------
    {coef_}
    {intercept_}
    {target_bounds_}
    {data_norm_}
    {n_features_in_}
    {feature_names_in_}
    {privacy_}

    Raises
    ------
    {raises}

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The numbers of rows and columns are public. The proof is in
    ``docs/guarantees.md``. With little noise the answer is that of scikit-learn's
    ``LinearRegression`` on the clipped targets, with the weights above as ``sample_weight``.

    References
    ----------
    Y.-X. Wang. Revisiting differentially private linear regression: optimal and adaptive
    prediction and estimation in unbounded domain. UAI 2018.

    R. Bassily, A. Smith and A. Thakurta. Private empirical risk minimization: efficient
    algorithms and tight error bounds. FOCS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2))
    >>> y = X @ [1.0, -2.0] + 3.0 + 0.1 * rng.normal(size=20_000)
    >>> model = DPLinearRegression(epsilon=1.0, data_norm=1.5, target_bounds=(0, 6)).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """


class DPRidge(LeastSquaresRegressor):
    r"""Ridge regression from noisy clipped gradients or noisy sufficient statistics.

    The ridge is `alpha`, or the one that the noise of the `mechanism` needs if that is more. Rows
    longer than `data_norm` count less in `fit`, by the square of ``data_norm / norm``, or their
    gradients are clipped. Targets and predictions are clipped to `target_bounds`.

    Parameters
    ----------
    {epsilon}
    {delta}
    {data_norm}
    {fit_intercept}
    {intercept_scaling}
    {target_bounds}
    {mechanism}
    alpha : float, default=1.0
        Regularisation strength as in scikit-learn: the objective is the summed squared error
        plus alpha times the squared norm of `coef_`. At least 0.
    {accountant}
    {random_state}
    {verbose}

    Attributes
    ----------
    {coef_}
    {intercept_}
    {target_bounds_}
    {data_norm_}
    {n_features_in_}
    {feature_names_in_}
    {privacy_}

    Raises
    ------
    {raises}

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The numbers of rows and columns are public. The proof is in
    ``docs/guarantees.md``. With little noise the answer is that of scikit-learn's
    ``Ridge`` on the clipped targets, with the weights above as ``sample_weight``.

    References
    ----------
    Y.-X. Wang. Revisiting differentially private linear regression: optimal and adaptive
    prediction and estimation in unbounded domain. UAI 2018.

    R. Bassily, A. Smith and A. Thakurta. Private empirical risk minimization: efficient
    algorithms and tight error bounds. FOCS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2))
    >>> y = X @ [1.0, -2.0] + 3.0 + 0.1 * rng.normal(size=20_000)
    >>> model = DPRidge(epsilon=1.0, data_norm=1.5, target_bounds=(0, 6)).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    alpha: float = 1.0
