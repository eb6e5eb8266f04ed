"""Linear regression with noisy stochastic gradients."""

from dataclasses import replace
from typing import Literal

from skdp._optim._regression_losses import HuberLoss
from skdp.base import private_fit, private_fit_method
from skdp.ledger import PrivacyAccountant
from skdp.linear_model._baseline import reserve_for_mean_baseline
from skdp.linear_model._dp_sgd import PartialFit, PrivateSGDModel
from skdp.linear_model._regressor import PrivateLinearRegressor
from skdp.linear_model._ridge import LOSS_SPEC
from skdp.utils._validation import check_choice, check_positive, is_auto

# Default of the Huber threshold, in units of half the range of targets.
HUBER_THRESHOLD = 0.2


def _squared_error_spec(threshold):
    """Return the `LossSpec` of the squared error, which has no threshold."""
    return replace(LOSS_SPEC, loss=HuberLoss())


def _huber_spec(threshold):
    """Return the `LossSpec` of the Huber loss; the threshold is in units of half the range."""
    if not 1e-50 <= threshold <= 1e50:
        raise ValueError(
            f"huber_threshold divided by half the range of target_bounds is {threshold:g}; it must "
            "be between 1e-50 and 1e50"
        )
    return replace(LOSS_SPEC, loss=HuberLoss(threshold), residual_norm=min(1.0, threshold))


# The losses, each with the function that returns its `LossSpec` for a Huber threshold.
LOSSES = {"squared_error": _squared_error_spec, "huber": _huber_spec}


class DPSGDRegressor(PrivateSGDModel, PrivateLinearRegressor):
    """Linear regression with noisy stochastic gradients (DP-SGD).

    Each step draws a batch of rows, clips each row's gradient, adds noise to their sum and updates
    the weights with the result. Targets and predictions are clipped to `target_bounds`. All
    settings that are "auto" are computed from public quantities by a rule documented in
    ``docs/theory/dp_sgd.md``. The last steps of `fit` test the weights: to the extent that these
    explain no more than chance, they are shrunk towards the noisy mean of the targets.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a call of `fit` or of `partial_fit`, positive.
    delta : float, default=1e-6
        The delta of a call, in [0, 1). With 0, gradients are clipped in L1 norm and the noise is
        Laplace noise.
    data_norm : float, default=1.0
        Expected norm of rows, between 1e-50 and 1e50, which determines the automatic settings. It
        must not be computed from the data. Longer rows are not scaled down: their gradients are
        clipped, so the guarantee does not depend on this parameter.
    fit_intercept : bool, default=True
        Whether to fit an intercept, with a constant feature of value
        ``intercept_scaling * data_norm``. The feature is part of a gradient's norm.
    intercept_scaling : float, default=0.3
        Value of the constant feature relative to `data_norm`.
    target_bounds : tuple of (low, high)
        The range of targets, low < high. It must be given and must not be computed from the
        data.
    loss : {"squared_error", "huber"}, default="squared_error"
        Half the squared residual, or the Huber loss, which is linear beyond `huber_threshold`.
    penalty : {"l2", None}, default="l2"
        Penalty that is added to the mean loss: alpha times half the squared norm of `coef_`. In
        `fit`, the intercept is penalized by its distance from a noisy mean of the targets, and more
        strongly the more noise there is. A fraction of epsilon is spent on that mean.
    alpha : float or "auto", default="auto"
        Regularization strength as in scikit-learn, at least 0. "auto" balances regularization and
        noise.
    max_grad_norm : float or "auto", default="auto"
        Norm to which the gradient of a row, including the intercept, is clipped: the L2 norm, or L1
        with delta = 0, for targets in units of half their range. "auto" clips rows of norm
        `data_norm` whose residual exceeds a bound that grows as the noise falls: at epsilon = 1 and
        with a few features, about 0.05 half-ranges with 200 rows, 0.12 with 2,000, 0.4 with 20,000,
        and 1 with 200,000. For the Huber loss, it is multiplied by the threshold in half-ranges,
        but at most by 1.
    sampling : {"auto", "full", "poisson", "without_replacement"}, default="auto"
        "full": all rows in each step. "poisson" (delta > 0): each row with the same probability,
        independently. "without_replacement" (delta = 0): batches of fixed size. "auto" uses partial
        batches if `batch_size` is less than the number of rows, or if steps on all rows would take
        too long.
    batch_size : int or "auto", default="auto"
        Number of rows per step, at most the number of rows of the table; the expected number with
        "poisson".
    max_iter : int or "auto", default="auto"
        Number of epochs. In an epoch, the batches of `batch_size` rows together have as many rows
        as the table. There is no early stopping.
    optimizer : {"nesterov", "sgd", "adam"}, default="nesterov"
        Optimizer: Nesterov's accelerated gradient, gradient descent with momentum, or Adam. If
        all settings are automatic and rows are many, they are whitened, and the optimizer is
        gradient descent with momentum.
    learning_rate : {"constant", "invscaling", "linear"}, default="constant"
        Step size of step t of T: eta0, ``eta0 / t**power_t`` or ``eta0 * (T + 1 - t) / T``.
    eta0 : float or "auto", default="auto"
        First step size. "auto" uses the largest one that the smoothness of the loss allows.
    power_t : float, default=0.5
        Exponent of "invscaling".
    momentum : float or "auto", default="auto"
        Momentum, in [0, 1). "auto" depends on the condition number for "nesterov", and is 0 for
        "sgd" and 0.9 for "adam".
    average : bool, default=True
        Whether to return the mean of the last half of the iterates instead of the last one.
    projection_radius : float, default=None
        If not None, weights, for targets in units of half their range, are projected onto the ball
        of this norm after each step.
    partial_fit_rows : {"any", "disjoint"}, default="any"
        How the rows of several calls of `partial_fit` are related. "any": nothing is declared, and
        the costs of the calls add up. "disjoint" declares that no row is in two calls. The calls
        are then charged by parallel composition: only the most expensive one counts, or the two
        most expensive ones with "replace_one". For groups of k rows, k times as many count. With
        persons as the unit, costs still add up, because a person may have rows in any call.
    huber_threshold : float or "auto", default="auto"
        Threshold of the Huber loss in the units of targets, positive. "auto" is a tenth of their
        range. Ignored unless `loss` is "huber".
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws batches and noise from the operating system's cryptographic generator. An int
        makes them reproducible, for tests and examples: anyone who knows it can remove the noise.
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
    n_iter_ : int
        Number of epochs.
    alpha_, max_grad_norm_, eta0_, momentum_ : float
        Settings that were used. If all are automatic and there are many rows, rows are whitened by
        their released second moment (``docs/theory/linear_models.md``). The settings then refer to
        the whitened rows, and steps are scaled by the released second moment.
    batch_size_ : int
        Batch size that was used.
    sampling_ : str
        Sampling that was used.
    noise_multiplier_ : float
        Noise scale of a step divided by the sensitivity of the step's sum to one row or person.
    n_partial_fits_ : int
        Number of calls of `partial_fit` since the last `fit`; only after `partial_fit`.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        The guarantee of the model, for all calls together, and its assumptions.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed and nothing is fitted.

    Notes
    -----
    A call is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit, for any rows. The numbers of rows and columns are public. The proofs are in
    ``docs/theory/dp_sgd.md``.

    References
    ----------
    R. Bassily, A. Smith and A. Thakurta. Private empirical risk minimization: efficient
    algorithms and tight error bounds. FOCS 2014.

    M. Abadi et al. Deep learning with differential privacy. CCS 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPSGDRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2))
    >>> y = X @ [1.0, -2.0] + 3.0 + 0.1 * rng.normal(size=20_000)
    >>> model = DPSGDRegressor(epsilon=1.0, target_bounds=(0, 6)).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        data_norm: float = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.3,
        target_bounds: tuple[float, float] | None = None,
        loss: Literal["squared_error", "huber"] = "squared_error",
        penalty: Literal["l2"] | None = "l2",
        alpha: float | Literal["auto"] = "auto",
        max_grad_norm: float | Literal["auto"] = "auto",
        sampling: Literal["auto", "full", "poisson", "without_replacement"] = "auto",
        batch_size: int | Literal["auto"] = "auto",
        max_iter: int | Literal["auto"] = "auto",
        optimizer: Literal["nesterov", "sgd", "adam"] = "nesterov",
        learning_rate: Literal["constant", "invscaling", "linear"] = "constant",
        eta0: float | Literal["auto"] = "auto",
        power_t: float = 0.5,
        momentum: float | Literal["auto"] = "auto",
        average: bool = True,
        projection_radius: float | None = None,
        partial_fit_rows: Literal["any", "disjoint"] = "any",
        huber_threshold: float | Literal["auto"] = "auto",
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
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.max_grad_norm = max_grad_norm
        self.sampling = sampling
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.momentum = momentum
        self.average = average
        self.projection_radius = projection_radius
        self.partial_fit_rows = partial_fit_rows
        self.huber_threshold = huber_threshold
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
            weights = fit.run(plan, table)
            scale = self._target_scale
            coef, intercept = weights.in_target_units(scale)
            self._publish_weights(
                fit,
                plan,
                weights.solver,
                coef_=coef,
                intercept_=intercept,
                target_bounds_=(scale.low, scale.high),
            )
        return self

    @private_fit_method
    def partial_fit(self, X, y, *, groups=None):
        """Continue from the released weights with more rows, in another private run.

        Each call runs as many steps as a fit to its rows and is charged like a fit (see
        `partial_fit_rows`). Calls after the first one do not release a mean of targets. If a call
        fails or is refused, the estimator is unchanged.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix or ChunkedArray of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets; clipped to `target_bounds`.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

        Returns
        -------
        self : DPSGDRegressor
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; the estimator is unchanged.
        """
        with PartialFit(self) as fit:
            table = fit.read(X, y, groups=groups, reset=fit.is_first_call)
            plan = self._plan_call(table.shape, fit.guarantee, with_baseline=fit.is_first_call)
            weights = fit.run(plan, table, start=self._start_of_call(plan))
            scale = self._target_scale
            coef, intercept = weights.in_target_units(scale)
            self._publish_weights(
                fit,
                plan,
                weights.solver,
                coef_=coef,
                intercept_=intercept,
                target_bounds_=(scale.low, scale.high),
                n_partial_fits_=fit.call_number,
            )
        return self

    def _reserve_for_baseline(self, rows, shape):
        """Return the `RowsFit` with the noisy mean of the targets as the baseline."""
        return reserve_for_mean_baseline(rows, shape.n_rows)

    def _loss_spec(self, shape):
        """Return the `LossSpec` of the parameters `loss` and `huber_threshold`."""
        scale = self._target_scale
        if max(abs(scale.low), abs(scale.high)) > 1e100:
            raise ValueError(
                f"target_bounds must be between -1e100 and 1e100, got {self.target_bounds!r}"
            )
        threshold = HUBER_THRESHOLD
        if not is_auto(self.huber_threshold):
            threshold = check_positive(self.huber_threshold, "huber_threshold") / scale.half_range
        return LOSSES[check_choice(self.loss, "loss", tuple(LOSSES))](threshold)
