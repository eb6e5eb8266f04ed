"""Poisson regression with differential privacy."""

import numpy as np
from sklearn.metrics import d2_tweedie_score

from skdp._losses._numbers import ClippedPoissonLoss
from skdp._sgd._defaults import Task
from skdp.linear_model._centre import with_mean_centre
from skdp.linear_model._data_norm import WeightsFit, plan_rows
from skdp.linear_model._mechanism_choice import choose_mechanism, descent_choice
from skdp.linear_model._output_perturbation import check_strength
from skdp.linear_model._regressor import PrivateLinearRegressor, TargetScale
from skdp.utils._validation import check_choice, check_target_bounds

MECHANISMS = ("auto", "output", "gradient")

# What is expected of counts, for bounds of 0 and 1; chosen with made tables in view.
CURVATURE, WEIGHTS_NORM, SIGNAL, LEAST_CLIP, KNEE = 1.0, 10.0, 0.003, 0.05, 0.03
CHECKED, USUAL_CURVATURE = 0.15, 0.3


class DPPoissonRegressor(PrivateLinearRegressor):
    r"""Poisson regression with a log link by noisy clipped gradients or output perturbation.

    The regularised Poisson deviance, its slope bounded, is minimised by noisy steps, or to a
    certified gradient norm before noise is added to the weights. Rows longer than `data_norm` are
    scaled down to it in `fit` only, or their gradients are clipped. Targets and predictions are
    clipped to `target_bounds`.

    Parameters
    ----------
    {epsilon}
    {delta}
    {data_norm}
    {fit_intercept}
    {intercept_scaling}
    target_bounds : tuple of (low, high)
        The range of targets, 0 <= low < high. It must be given and must not be computed from
        the data. The noise grows with high.
    alpha : float or "auto", default="auto"
        Regularisation strength as in scikit-learn: the objective is half the mean deviance
        plus alpha / 2 times the squared norm of `coef_`, for "output" that of all weights. "auto"
        balances regularisation against noise from public quantities; "gradient" raises a smaller
        one to that.
    mechanism : {"auto", "output", "gradient"}, default="auto"
        "output" adds noise to the minimiser, "gradient" to the gradients of the steps of an
        accelerated descent, each row's clipped at a share of its bound, the last of which check
        the weights as those of `DPRidge` do. "auto" takes the one with
        less expected loss, which follows from public quantities: gradients, unless there is next
        to no noise.
    {accountant}
    {random_state}
    {verbose}

    Attributes
    ----------
    {coef_}
    {intercept_}
    alpha_ : float
        The regularisation used, from public quantities.
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
    ``docs/guarantees.md``. A row whose predicted mean exceeds its target by more than high counts
    with the slope high; where no row does and noise is little, the answer is that of
    scikit-learn's ``PoissonRegressor`` on the clipped rows with the constant feature.

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

    alpha: float | str = "auto"
    mechanism: str = "auto"

    def plan_fit(self, shape, guarantee):
        alpha = check_strength(self.alpha, "alpha")
        if alpha is not None and not 1e-100 <= alpha * shape.n_rows <= 1e100:
            raise ValueError(f"alpha={alpha!r} is out of range for {shape.n_rows} rows")
        C = None if alpha is None else 1.0 / (shape.n_rows * alpha)
        high = self._units.high
        loss, rows = ClippedPoissonLoss(high), plan_rows(self, shape.n_rows, guarantee)
        known = high, CURVATURE * high, WEIGHTS_NORM, SIGNAL * high, LEAST_CLIP, KNEE
        checked = CHECKED * high, USUAL_CURVATURE * high
        expected = Task(loss, *known, *checked, null_decrease_factor=2.0)
        centred = with_mean_centre(rows, shape.n_rows, high)
        descent = descent_choice(centred, shape, expected, least_alpha=alpha or 0.0)
        rows = centred if C is None else rows
        output = choose_mechanism("output", C, rows, shape, expected)
        mechanism = check_choice(self.mechanism, "mechanism", MECHANISMS)
        better = mechanism == "auto" and descent.expected <= output.expected
        if better or mechanism == "gradient":
            return WeightsFit.of(descent, centred)
        return WeightsFit.of(output, rows)

    @property
    def _units(self):
        """Counts stay as they are."""
        low, high = check_target_bounds(self.target_bounds, smallest=0.0)
        return TargetScale(low, high, 0.0, 1.0)

    def _released(self, run, plan):
        alpha = 1.0 / (plan.problem.n_rows * plan.weights.C)
        return super()._released(run, plan) | {"alpha_": alpha}

    def score(self, X, y):
        """Return the fraction of the Poisson deviance that is explained (D²).

        Parameters
        ----------
        X : array-like, sparse matrix or what ChunkedArray reads, of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Targets, at least 0.

        Returns
        -------
        float
            At most 1; 0 for predicting the mean of y.
        """
        return d2_tweedie_score(y, np.maximum(self.predict(X), np.finfo(np.float64).tiny), power=1)

    def _means(self, scores):
        return np.exp(np.minimum(scores, np.log(self.target_bounds_[1]) + 1.0))
