"""Linear least squares with differential privacy, with and without an L2 penalty."""

import math
from typing import Literal

from skdp._optim._default_settings import LossSpec
from skdp._optim._regression_losses import HuberLoss
from skdp.base import plans_for_groups, private_fit, private_fit_method
from skdp.ledger import PrivacyAccountant
from skdp.linear_model._adassp import plan_adassp
from skdp.linear_model._baseline import reserve_for_mean_baseline
from skdp.linear_model._data_norm import WeightsFit, plan_rows
from skdp.linear_model._mechanism_choice import descent_candidate, statistics_are_better
from skdp.linear_model._regressor import PrivateLinearRegressor
from skdp.utils._validation import check_choice, check_within

MECHANISMS = ("auto", "sufficient_statistics", "gradient")
# Maximum number of features for sufficient statistics. Their matrix then takes 20 GB.
MAX_FEATURES_OF_STATISTICS = 50_000

# Squared loss of targets in [-1, 1], with residuals bounded by 1. Tuned on synthetic tables and
# California housing (train); see `LossSpec` for the meaning of the constants.
LOSS_SPEC = LossSpec(
    HuberLoss(1.0),
    residual_norm=1.0,
    curvature=1.0,
    weights_norm=10.0,
    signal=0.003,
    min_clip_fraction=0.05,
    clip_noise_threshold=0.03,
    shrinkage_residual=0.15,
    curvature_from="residuals",
    whitened_condition=50.0,
    whitened_steps=24,
    whitened_steps_per_decade=6,
    whitened_optimizer="sgd",
    whitened_average=0.6,
)

# Norm of the weights, times that of the rows, for the expected loss of sufficient statistics. Tuned
# so that the comparison with gradients comes out right on the same tables.
WEIGHTS_NORM_OF_STATISTICS = 4.0


class LeastSquaresRegressor(PrivateLinearRegressor):
    """Common part of `DPLinearRegression` and `DPRidge`, which differ only in the L2 penalty.

    Each of the two has its own `fit`, so that a reader finds its parameters, its fit and its
    published attributes in one place.
    """

    # A parameter of DPRidge only.
    alpha = 0.0

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a table of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table. If the number of rows or of columns is None, the plan's event
            holds for every shape; parameters that need no shape are still checked.
        guarantee : Guarantee
            Guarantee that the fit must meet; `epsilon`, `delta` and `accountant` are not read.

        Returns
        -------
        Plan
            Made from public information only: no data, no charge, no noise.

        Raises
        ------
        ValueError
            If `fit` would refuse a parameter.
        """
        alpha = check_within(self.alpha, "alpha", 0.0, math.inf, "[)")
        loss_unit = self._target_scale.half_range**2
        rows = plan_rows(self, shape.n_rows, guarantee)
        mechanism = check_choice(self.mechanism, "mechanism", MECHANISMS)
        # Sufficient statistics include the mean of the targets and need no baseline.
        rows_with_baseline = reserve_for_mean_baseline(rows, shape.n_rows)
        min_alpha = alpha / shape.n_rows
        descent = descent_candidate(
            rows_with_baseline, shape, LOSS_SPEC, min_alpha=min_alpha, is_whitened=True
        )
        n_features = rows.n_features(shape.n_columns)
        is_too_wide = n_features > MAX_FEATURES_OF_STATISTICS
        if mechanism == "sufficient_statistics" and is_too_wide:
            raise ValueError(
                f"mechanism='sufficient_statistics' needs a matrix of {n_features} rows and "
                f"columns, and supports at most {MAX_FEATURES_OF_STATISTICS} features: use "
                "mechanism='gradient'"
            )
        if mechanism != "gradient" and not is_too_wide:
            problem = rows.problem(LOSS_SPEC, shape)
            weights = plan_adassp(rows, shape, alpha)
            weights_norm = WEIGHTS_NORM_OF_STATISTICS / rows.norm
            excess_loss = weights.expected_excess(problem, weights_norm)
            if mechanism != "auto" or statistics_are_better(
                excess_loss, rows_with_baseline, shape, LOSS_SPEC, min_alpha
            ):
                fit = WeightsFit(
                    rows=rows,
                    problem=problem,
                    weights=weights,
                    total_excess_loss=loss_unit * excess_loss,
                )
                return fit.plan()
        return WeightsFit.from_candidate(descent, loss_unit).plan()


class DPLinearRegression(LeastSquaresRegressor):
    """Ordinary least squares by noisy clipped gradients or from noisy sufficient statistics.

    The model is regularized only as much as the noise requires, and not at all as the noise
    vanishes. Rows longer than `data_norm` get the weight ``(data_norm / norm)**2`` in `fit`, or
    their gradients are clipped; with many rows and gradients, rows far from the mean row may also
    get a smaller weight (``docs/theory/linear_models.md``). Targets and predictions are clipped to
    `target_bounds`.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive.
    delta : float, default=1e-6
        The delta of a fit, in [0, 1). 0 gives pure differential privacy with noise that grows
        faster with the number of features.
    data_norm : float or "auto", default=1.0
        The bound on the Euclidean norm of a row of X, between 1e-50 and 1e50. It must not
        be computed from the data.
        "auto" spends a fifth of epsilon, in the same charge, on a norm that about 98 % of the rows
        do not exceed. Rows are divided by that norm, so the bound is 1 and regularization refers to
        the scaled rows. Coefficients are returned in the data's units.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not regularized, with a constant feature of value
        ``intercept_scaling * data_norm``.
    intercept_scaling : float, default=0.3
        Value of the constant feature relative to `data_norm`. Larger values decrease the noise in
        the means of X and y and increase the noise in all other statistics.
    target_bounds : tuple of (low, high)
        The range of targets, low < high. It must be given and must not be computed from the
        data. The noise grows with the range or, without `fit_intercept`, with the larger of the
        bounds' magnitudes.
    mechanism : {"auto", "sufficient_statistics", "gradient"}, default="auto"
        "sufficient_statistics" releases the products of the columns and the targets once. Rows
        longer than `data_norm` are scaled down to it, together with their targets. "gradient"
        releases each gradient of an accelerated descent, in which each row's gradient is clipped to
        a fraction of its bound. "auto" uses the mechanism with the smaller expected loss, computed
        from public quantities, which is "gradient" unless there is almost no noise. "gradient"
        raises the regularization strength to the value that balances regularization and noise, but
        does not regularize the intercept. Its last steps test the weights: to the extent that these
        explain no more than chance, they are shrunk towards the noisy mean of the targets.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.
    verbose : int, default=0
        0 is silent, 1 prints the charge and, for fits that take steps, about ten progress lines,
        2 prints one line per epoch. No loss is printed, since the guarantee would not cover it.
        scikit-learn's callbacks (1.9 and later, ``set_callbacks``) receive the same progress.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Noisy coefficients.
    intercept_ : float
        Noisy intercept, 0 without `fit_intercept`.
    target_bounds_ : tuple of (float, float)
        Bounds to which predictions are clipped.
    data_norm_ : float
        The declared `data_norm`, or the released one.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        The guarantee of the fit and its assumptions.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed and nothing is fitted.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The numbers of rows and columns are public. The proof is in
    ``docs/theory/guarantees.md``. With little noise, the model agrees with scikit-learn's
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

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        data_norm: float | Literal["auto"] = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.3,
        target_bounds: tuple[float, float] | None = None,
        mechanism: Literal["auto", "sufficient_statistics", "gradient"] = "auto",
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.target_bounds = target_bounds
        self.mechanism = mechanism
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    @private_fit_method
    def fit(self, X, y, *, groups=None):
        """Fit the model and charge the accountant.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows. Linear models also accept sparse rows. Data larger than memory are read block by
            block.
        y : array-like of shape (n_samples,)
            Targets, which are clipped to `target_bounds`.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; nothing was computed and nothing is fitted.
        """
        with private_fit(self) as fit:
            table = fit.read(X, y, groups=groups)
            plan = self.plan_fit(table.shape, fit.guarantee)
            scale = self._target_scale
            weights = fit.run(plan, table)
            coef, intercept = weights.in_target_units(scale)
            fit.publish(
                plan,
                coef_=coef,
                intercept_=intercept,
                target_bounds_=(scale.low, scale.high),
                data_norm_=weights.data_norm,
            )
        return self


class DPRidge(LeastSquaresRegressor):
    """Ridge regression by noisy clipped gradients or from noisy sufficient statistics.

    The regularization strength is the larger of `alpha` and the strength that the noise of the
    `mechanism` requires. Rows longer than `data_norm` get the weight ``(data_norm / norm)**2`` in
    `fit`, or their gradients are clipped; with many rows and gradients, rows far from the mean row
    may also get a smaller weight (``docs/theory/linear_models.md``). Targets and predictions are
    clipped to `target_bounds`.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive.
    delta : float, default=1e-6
        The delta of a fit, in [0, 1). 0 gives pure differential privacy with noise that grows
        faster with the number of features.
    data_norm : float or "auto", default=1.0
        The bound on the Euclidean norm of a row of X, between 1e-50 and 1e50. It must not
        be computed from the data.
        "auto" spends a fifth of epsilon, in the same charge, on a norm that about 98 % of the rows
        do not exceed. Rows are divided by that norm, so the bound is 1 and regularization refers to
        the scaled rows. Coefficients are returned in the data's units.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not regularized, with a constant feature of value
        ``intercept_scaling * data_norm``.
    intercept_scaling : float, default=0.3
        Value of the constant feature relative to `data_norm`. Larger values decrease the noise in
        the means of X and y and increase the noise in all other statistics.
    target_bounds : tuple of (low, high)
        The range of targets, low < high. It must be given and must not be computed from the
        data. The noise grows with the range or, without `fit_intercept`, with the larger of the
        bounds' magnitudes.
    mechanism : {"auto", "sufficient_statistics", "gradient"}, default="auto"
        "sufficient_statistics" releases the products of the columns and the targets once. Rows
        longer than `data_norm` are scaled down to it, together with their targets. "gradient"
        releases each gradient of an accelerated descent, in which each row's gradient is clipped to
        a fraction of its bound. "auto" uses the mechanism with the smaller expected loss, computed
        from public quantities, which is "gradient" unless there is almost no noise. "gradient"
        raises the regularization strength to the value that balances regularization and noise, but
        does not regularize the intercept. Its last steps test the weights: to the extent that these
        explain no more than chance, they are shrunk towards the noisy mean of the targets.
    alpha : float, default=1.0
        Regularization strength as in scikit-learn: the objective is the summed squared error
        plus alpha times the squared norm of `coef_`. At least 0.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.
    verbose : int, default=0
        0 is silent, 1 prints the charge and, for fits that take steps, about ten progress lines,
        2 prints one line per epoch. No loss is printed, since the guarantee would not cover it.
        scikit-learn's callbacks (1.9 and later, ``set_callbacks``) receive the same progress.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Noisy coefficients.
    intercept_ : float
        Noisy intercept, 0 without `fit_intercept`.
    target_bounds_ : tuple of (float, float)
        Bounds to which predictions are clipped.
    data_norm_ : float
        The declared `data_norm`, or the released one.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        The guarantee of the fit and its assumptions.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed and nothing is fitted.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The numbers of rows and columns are public. The proof is in
    ``docs/theory/guarantees.md``. With little noise, the model agrees with scikit-learn's
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

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        data_norm: float | Literal["auto"] = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.3,
        target_bounds: tuple[float, float] | None = None,
        mechanism: Literal["auto", "sufficient_statistics", "gradient"] = "auto",
        alpha: float = 1.0,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.target_bounds = target_bounds
        self.mechanism = mechanism
        self.alpha = alpha
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    @private_fit_method
    def fit(self, X, y, *, groups=None):
        """Fit the model and charge the accountant.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows. Linear models also accept sparse rows. Data larger than memory are read block by
            block.
        y : array-like of shape (n_samples,)
            Targets, which are clipped to `target_bounds`.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; nothing was computed and nothing is fitted.
        """
        with private_fit(self) as fit:
            table = fit.read(X, y, groups=groups)
            plan = self.plan_fit(table.shape, fit.guarantee)
            scale = self._target_scale
            weights = fit.run(plan, table)
            coef, intercept = weights.in_target_units(scale)
            fit.publish(
                plan,
                coef_=coef,
                intercept_=intercept,
                target_bounds_=(scale.low, scale.high),
                data_norm_=weights.data_norm,
            )
        return self
