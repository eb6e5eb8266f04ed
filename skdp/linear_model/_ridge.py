"""Linear least squares with differential privacy, with and without a ridge."""

import math
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from skdp.accounting import PrivacyAccountant
from skdp.linear_model._adassp import AdaSSP, plan_adassp
from skdp.linear_model._data_norm import RowPlan, plan_rows
from skdp.linear_model._least_squares_descent import LeastSquaresDescent, plan_descent
from skdp.linear_model._regressor import PrivateLinearRegressor
from skdp.mechanisms._plan import MechanismPlan
from skdp.utils._validation import check_choice, check_target_bounds, check_within

MECHANISMS = ("sufficient_statistics", "gradient")


class LeastSquaresRegressor(PrivateLinearRegressor):
    """The plan that `DPLinearRegression` and `DPRidge` share; they differ in the ridge."""

    mechanism: str = "sufficient_statistics"

    def plan_fit(self, shape, guarantee):
        """Return what a fit to a table of that shape will release.

        Parameters
        ----------
        shape : TableShape
            Of the table.
        guarantee : Guarantee
            What the fit must meet. The estimator's accountant is not read.

        Returns
        -------
        Plan
            Its price, its noise, and how to run it.

        Raises
        ------
        ValueError
            If a fit would refuse a parameter.
        """
        check_choice(self.mechanism, "mechanism", MECHANISMS)
        if self.mechanism == "gradient" and guarantee.delta == 0.0:
            raise ValueError(
                "mechanism='gradient' needs delta > 0; 'sufficient_statistics' takes delta = 0"
            )
        alpha = self._check_alpha()
        low, high = check_target_bounds(self.target_bounds)
        middle = low + (high - low) / 2 if self.fit_intercept else 0.0
        rows = plan_rows(self, shape.n_rows, guarantee)
        target_norm = max(abs(high - middle), abs(low - middle))
        if self.mechanism == "gradient":
            model = plan_descent(rows, shape, target_norm, alpha)
        else:
            model = plan_adassp(rows, shape, target_norm)
        targets = {"low": low, "high": high, "middle": middle}
        return _LeastSquaresFit(rows=rows, model=model, alpha=alpha, **targets)

    def _check_alpha(self):
        return 0.0


@dataclass(frozen=True, kw_only=True)
class _LeastSquaresFit(MechanismPlan):
    """What a fit will release, from targets that are clipped and centred."""

    rows: RowPlan
    model: AdaSSP | LeastSquaresDescent
    alpha: float
    low: float
    high: float
    middle: float

    sampler = property(attrgetter("model.sampler"))

    @property
    def mechanism(self):
        return self.rows.joined(self.model.mechanism)

    def run(self, table, source):
        rows = self.rows.run(table.X, source)
        targets = _centred(table.y, self.low, self.high, self.middle)
        coef, intercept = self.model.run(rows, targets, self.alpha, source)
        return {
            "coef_": coef / rows.unit,
            "intercept_": intercept + self.middle,
            "target_bounds_": (self.low, self.high),
            "data_norm_": rows.unit * rows.data_norm,
        }


class DPLinearRegression(LeastSquaresRegressor):
    r"""Ordinary least squares from noisy sufficient statistics (AdaSSP) or noisy gradients.

    By default one joint release holds the noisy Gram matrix of X, its least eigenvalue and the
    product of X and y; the model is solved from it with the ridge that their noise needs,
    which vanishes as the noise does. Rows longer than
    `data_norm` are scaled down to it in `fit` only. Targets and predictions are clipped to
    `target_bounds`.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive.
    delta : float, default=1e-6
        The delta of a fit, in [0, 1). 0 gives pure differential privacy with noise that grows
        with the number of features.
    data_norm : float or "auto", default=1.0
        The bound on the Euclidean norm of a row of X, between 1e-50 and 1e50. It must not
        be computed from the data.
        "auto" spends a fifth of epsilon, in the same charge, on a norm that about 98 % of the rows
        do not exceed. The model is then fitted on rows divided by it, with a bound of 1, so
        that regularisation acts on these, and its coefficients are returned in the data's units.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not regularised, by a constant feature of value
        ``intercept_scaling * data_norm``.
    intercept_scaling : float, default=0.3
        The size of the constant feature relative to `data_norm`. Larger values release the
        means of X and y with less noise and all else with more.
    target_bounds : tuple of (low, high)
        The range of targets, low < high. It must be given and must not be computed from the
        data. The noise grows with the range; without `fit_intercept`, with the larger
        magnitude.
    mechanism : {"sufficient_statistics", "gradient"}, default="sufficient_statistics"
        "gradient" releases each gradient of an accelerated descent on all rows, with errors
        clipped at half the range of targets, or the larger magnitude without `fit_intercept`.
        It needs delta > 0 and penalises all weights, the intercept's too, with at least the
        ridge that balances regularisation against noise. It was better on tables whose features
        explain much of the target, the more so the more features; worse where they explain
        little. With next to no noise a small ridge remains.
    {accountant}
    {random_state}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, from what was released alone.
    intercept_ : float
        Intercept, 0 without `fit_intercept`.
    target_bounds_ : tuple of (float, float)
        The bounds that predictions are clipped to.
    data_norm_ : float
        The given `data_norm`, or the released one.
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
    ``LinearRegression`` on the clipped rows and targets.

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

    accountant: PrivacyAccountant | None = None
    random_state: int | None = None


class DPRidge(LeastSquaresRegressor):
    r"""Ridge regression from noisy sufficient statistics (AdaSSP) or noisy gradients.

    By default one joint release holds the noisy Gram matrix of X, its least eigenvalue and the
    product of X and y; the model is solved from it with `alpha`, or with the ridge that
    their noise needs if that is more. Rows longer than
    `data_norm` are scaled down to it in `fit` only. Targets and predictions are clipped to
    `target_bounds`.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive.
    delta : float, default=1e-6
        The delta of a fit, in [0, 1). 0 gives pure differential privacy with noise that grows
        with the number of features.
    data_norm : float or "auto", default=1.0
        The bound on the Euclidean norm of a row of X, between 1e-50 and 1e50. It must not
        be computed from the data.
        "auto" spends a fifth of epsilon, in the same charge, on a norm that about 98 % of the rows
        do not exceed. The model is then fitted on rows divided by it, with a bound of 1, so
        that regularisation acts on these, and its coefficients are returned in the data's units.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not regularised, by a constant feature of value
        ``intercept_scaling * data_norm``.
    intercept_scaling : float, default=0.3
        The size of the constant feature relative to `data_norm`. Larger values release the
        means of X and y with less noise and all else with more.
    target_bounds : tuple of (low, high)
        The range of targets, low < high. It must be given and must not be computed from the
        data. The noise grows with the range; without `fit_intercept`, with the larger
        magnitude.
    mechanism : {"sufficient_statistics", "gradient"}, default="sufficient_statistics"
        "gradient" releases each gradient of an accelerated descent on all rows, with errors
        clipped at half the range of targets, or the larger magnitude without `fit_intercept`.
        It needs delta > 0 and penalises all weights, the intercept's too, with at least the
        ridge that balances regularisation against noise. It was better on tables whose features
        explain much of the target, the more so the more features; worse where they explain
        little. With next to no noise a small ridge remains.
    alpha : float, default=1.0
        Regularisation strength as in scikit-learn: the objective is the summed squared error
        plus alpha times the squared norm of `coef_`. At least 0. With "sufficient_statistics"
        it does not change the noise.
    {accountant}
    {random_state}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, from what was released alone.
    intercept_ : float
        Intercept, 0 without `fit_intercept`.
    target_bounds_ : tuple of (float, float)
        The bounds that predictions are clipped to.
    data_norm_ : float
        The given `data_norm`, or the released one.
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
    ``Ridge`` on the clipped rows and targets.

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
    accountant: PrivacyAccountant | None = None
    random_state: int | None = None

    def _check_alpha(self):
        return check_within(self.alpha, "alpha", 0.0, math.inf, "[)")


def _centred(y, low, high, middle):
    return np.clip(y, low, high, dtype=np.float64) - middle
