"""Poisson regression with differential privacy."""

from typing import Literal

import numpy as np
from sklearn.metrics import d2_tweedie_score

from skdp._optim._default_settings import LossSpec
from skdp._optim._regression_losses import ClippedPoissonLoss
from skdp.base import plans_for_groups, private_fit, private_fit_method
from skdp.ledger import PrivacyAccountant
from skdp.linear_model._baseline import reserve_for_mean_baseline
from skdp.linear_model._data_norm import WeightsFit, plan_rows
from skdp.linear_model._mechanism_choice import choose_mechanism, descent_candidate
from skdp.linear_model._output_perturbation import check_reg_strength
from skdp.linear_model._regressor import PrivateLinearRegressor, TargetScale
from skdp.utils._validation import check_choice, check_target_bounds

MECHANISMS = ("auto", "output", "gradient")

# Constants of the `LossSpec` for targets in [0, 1], tuned on synthetic tables.
# Curvature of the loss for step sizes, and typical curvature in the shrinkage rule.
CURVATURE = 1.0
TYPICAL_CURVATURE = 0.3
# Expected norm of the weights, times the norm of rows.
WEIGHTS_NORM = 10.0
# Expected variance of a score, times the curvature.
SIGNAL = 0.003
# Smallest clip for residuals, and the noise in the mean gradient below which the clip grows.
MIN_CLIP_FRACTION = 0.05
CLIP_NOISE_THRESHOLD = 0.03
# Clip for residuals in the shrinkage rule, and multiple of the null decrease that the rule
# subtracts.
SHRINKAGE_RESIDUAL = 0.15
NULL_DECREASE_FACTOR = 2.0


class DPPoissonRegressor(PrivateLinearRegressor):
    """Poisson regression with a log link, by noisy clipped gradients or output perturbation.

    The regularized Poisson deviance, modified to have a bounded derivative, is minimized by noisy
    gradient steps. Alternatively, it is minimized without noise to a certified gradient norm, and
    noise is added to the weights. Rows longer than `data_norm` are scaled down to it in `fit` only,
    or their gradients are clipped; with many rows and gradients, rows far from the mean row may
    also get a smaller weight (``docs/theory/linear_models.md``). Targets and predictions are
    clipped to `target_bounds`.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive.
    delta : float, default=1e-6
        The delta of a fit, in [0, 1). 0 gives pure differential privacy with noise that grows
        with the number of weights.
    data_norm : float or "auto", default=1.0
        The bound on the Euclidean norm of a row of X, between 1e-50 and 1e50. It must not
        be computed from the data.
        "auto" spends a fifth of epsilon, in the same charge, on a norm that about 98 % of the rows
        do not exceed. Rows are divided by that norm, so the bound is 1 and regularization refers to
        the scaled rows. Coefficients are returned in the data's units.
    fit_intercept : bool, default=True
        Whether to fit an intercept, with a constant feature of value
        ``intercept_scaling * data_norm``.
    intercept_scaling : float, default=0.3
        Value of the constant feature relative to `data_norm`. Larger values regularize the
        intercept less and increase the noise in all weights.
    target_bounds : tuple of (low, high)
        The range of targets, 0 <= low < high. It must be given and must not be computed from the
        data. The noise grows with `high`.
    alpha : float or "auto", default="auto"
        Regularization strength as in scikit-learn: the objective is half the mean deviance
        plus alpha / 2 times the squared norm of `coef_`, or of all weights with "output". "auto"
        balances regularization and noise using public quantities. "gradient" increases a smaller
        alpha to that value.
    mechanism : {"auto", "output", "gradient"}, default="auto"
        "output" adds noise to the minimizer. "gradient" adds noise to each gradient of an
        accelerated descent, in which each row's gradient is clipped to a fraction of its bound. The
        last steps test the weights as in `DPRidge`. "auto" uses the mechanism with the smaller
        expected loss, computed from public quantities, which is "gradient" unless there is almost
        no noise.
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
    alpha_ : float
        Regularization strength that was used; it depends only on public quantities.
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
    ``docs/theory/guarantees.md``. The derivative of the loss is limited to `high`, the value that
    it takes for rows whose predicted mean exceeds the target by `high` or more. If there are no
    such rows and there is little noise, the model agrees with scikit-learn's ``PoissonRegressor``
    on the clipped rows with the constant feature.

    References
    ----------
    K. Chaudhuri, C. Monteleoni and A. D. Sarwate. Differentially private empirical risk
    minimization. JMLR 12, 2011.

    S. Song, O. Thakkar and A. Thakurta. Characterizing private clipped gradient descent on
    convex generalized linear problems. 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2))
    >>> y = rng.poisson(np.exp(X @ [1.0, -0.5]))
    >>> model = DPPoissonRegressor(epsilon=1.0, data_norm=1.5, target_bounds=(0, 10)).fit(X, y)
    >>> model.coef_.shape
    (2,)
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
        alpha: float | Literal["auto"] = "auto",
        mechanism: Literal["auto", "output", "gradient"] = "auto",
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
        self.alpha = alpha
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
                alpha_=1.0 / (table.shape.n_rows * plan.mechanism.weights.C),
            )
        return self

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
        alpha = check_reg_strength(self.alpha, "alpha")
        if alpha is not None and not 1e-100 <= alpha * shape.n_rows <= 1e100:
            raise ValueError(
                f"alpha={alpha!r} times the number of rows must be between 1e-100 and 1e100"
            )
        C = None
        if alpha is not None:
            C = 1.0 / (shape.n_rows * alpha)
        high = self._target_scale.high
        loss = ClippedPoissonLoss(high)
        rows = plan_rows(self, shape.n_rows, guarantee)
        loss_spec = LossSpec(
            loss,
            residual_norm=high,
            curvature=CURVATURE * high,
            weights_norm=WEIGHTS_NORM,
            signal=SIGNAL * high,
            min_clip_fraction=MIN_CLIP_FRACTION,
            clip_noise_threshold=CLIP_NOISE_THRESHOLD,
            shrinkage_residual=SHRINKAGE_RESIDUAL * high,
            typical_curvature=TYPICAL_CURVATURE * high,
            null_decrease_factor=NULL_DECREASE_FACTOR,
        )
        rows_with_baseline = reserve_for_mean_baseline(rows, shape.n_rows, high)
        descent = descent_candidate(
            rows_with_baseline, shape, loss_spec, min_alpha=alpha or 0.0, is_whitened=alpha is None
        )
        output_rows = rows
        if C is None:
            output_rows = rows_with_baseline
        output = choose_mechanism("output", C, output_rows, shape, loss_spec)
        mechanism = check_choice(self.mechanism, "mechanism", MECHANISMS)
        if mechanism == "auto":
            mechanism = "output"
            if descent.bounded_excess_loss <= output.bounded_excess_loss:
                mechanism = "gradient"
        if mechanism == "gradient":
            return WeightsFit.from_candidate(descent).plan()
        return WeightsFit.from_candidate(output).plan()

    @property
    def _target_scale(self):
        """The scale of counts, which are clipped but not scaled."""
        low, high = check_target_bounds(self.target_bounds, minimum=0.0)
        return TargetScale(low, high, 0.0, 1.0)

    def score(self, X, y):
        """Return D², the fraction of the Poisson deviance that the model explains.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix or ChunkedArray of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Targets, at least 0.

        Returns
        -------
        float
            At most 1; predicting the mean of y scores 0.
        """
        return d2_tweedie_score(y, np.maximum(self.predict(X), np.finfo(np.float64).tiny), power=1)

    def _means(self, scores):
        return np.exp(np.minimum(scores, np.log(self.target_bounds_[1]) + 1.0))
