"""Linear regression by noisy stochastic gradients."""

from dataclasses import replace

from skdp._losses._numbers import HuberLoss
from skdp.linear_model._centre import with_mean_centre
from skdp.linear_model._dp_sgd import PrivateSGDModel
from skdp.linear_model._regressor import PrivateLinearRegressor
from skdp.linear_model._ridge import TASK
from skdp.utils._validation import check_choice, check_positive, is_auto

LOSSES = ("squared_error", "huber")

# In units of half the range of targets.
HUBER_THRESHOLD = 0.2


class DPSGDRegressor(PrivateSGDModel, PrivateLinearRegressor):
    r"""Linear regression by noisy stochastic gradients (DP-SGD).

    Each step takes a batch of rows, clips each row's gradient, adds noise to their sum and moves
    the weights by the result. Targets and predictions are clipped to `target_bounds`. Everything
    that is not given follows from public quantities by a rule that is written down in
    ``docs/dp_sgd.md``. The last steps check the weights, which move back towards the noisy mean as
    far as they explain no more than chance.

    Parameters
    ----------
    {epsilon}
    {delta}
    {data_norm}
    {fit_intercept}
    {intercept_scaling}
    target_bounds : tuple of (low, high)
        The range of targets, low < high. It must be given and must not be computed from the
        data.
    loss : {"squared_error", "huber"}, default="squared_error"
        Half the squared residual, or Huber's: linear beyond `huber_threshold`.
    penalty : {"l2", None}, default="l2"
        What is added to the mean loss: alpha times half the squared norm of `coef_`. The
        intercept is not penalised; in `fit` it is held to a noisy mean, which a share of epsilon
        pays for, as far as there is noise.
    {alpha}
    max_grad_norm : float or "auto", default="auto"
        The bound on the norm of a row's gradient, the intercept's included, for targets in units
        of half their range: L2, or L1 with delta = 0. "auto" clips rows of norm `data_norm` whose
        residual exceeds a quarter of the range, or Huber's threshold.
    {sampling}
    {batch_size}
    {max_iter}
    {optimizer}
    {learning_rate}
    {eta0}
    {power_t}
    {momentum}
    {average}
    projection_radius : float, default=None
        Weights, for targets in units of half their range, are projected on the ball of this norm
        after each step. None: on none.
    {partial_fit_rows}
    huber_threshold : float or "auto", default="auto"
        In the units of targets, positive. "auto" is a tenth of their range.
    {accountant}
    {random_state}
    {verbose}

    Attributes
    ----------
    {coef_}
    {intercept_}
    {target_bounds_}
    {n_iter_}
    alpha_, max_grad_norm_, eta0_, momentum_ : float
        The settings used.
    {batch_size_}
    {sampling_}
    {noise_multiplier_}
    {n_partial_fits_}
    {n_features_in_}
    {feature_names_in_}
    {privacy_}

    Raises
    ------
    ValueError
        If a parameter or the data are not as described; nothing was charged.
    BudgetExceededError
        If the accountant refuses.

    Notes
    -----
    A call is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit, whatever the rows. The numbers of rows and columns are public. The proofs
    are in ``docs/dp_sgd.md``.

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

    loss: str = "squared_error"
    huber_threshold: float | str = "auto"

    def partial_fit(self, X, y, *, groups=None):
        """Go on from the released weights with more rows, as one more private run.

        Each call runs all the steps of a fit on its rows and is charged as one, see
        `partial_fit_rows`. If it fails or is refused the estimator stays as it was.

        Parameters
        ----------
        X : array-like, sparse matrix or what ChunkedArray reads, of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets; clipped to `target_bounds`.
        {groups}

        Returns
        -------
        self : DPSGDRegressor
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are not as described; nothing was charged.
        BudgetExceededError
            If the accountant refuses.
        """
        return self._go_on(X, y, groups)

    def _with_centre(self, rows, shape):
        return with_mean_centre(rows, shape.n_rows)

    def _task(self, shape):
        units = self._units
        if max(abs(units.low), abs(units.high)) > 1e100:
            raise ValueError("target_bounds must lie within -1e100 and 1e100")
        if check_choice(self.loss, "loss", LOSSES) == "squared_error":
            return replace(TASK, loss=HuberLoss())
        threshold = HUBER_THRESHOLD
        if not is_auto(self.huber_threshold):
            threshold = check_positive(self.huber_threshold, "huber_threshold") / units.half
        if not 1e-50 <= threshold <= 1e50:
            raise ValueError(f"huber_threshold={self.huber_threshold!r} is out of range")
        return replace(TASK, loss=HuberLoss(threshold), slope=min(1.0, threshold))
