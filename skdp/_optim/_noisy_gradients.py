"""The loop of noisy gradient steps: learning rates, averages, projections and final shrinkage.

The plan releases the noisy sums. Everything in this module is post-processing of these sums and has
no effect on the guarantee.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp._data._one_thread import one_thread
from skdp._optim._clipped_sums import MAX_DECREASE_NORM, SQUARED_RESIDUAL_WEIGHT
from skdp.utils._documents import count_of
from skdp.utils._values import FrozenValue

LEARNING_RATES = ("constant", "invscaling", "linear")

# Bound on the magnitude of weights, gradients and velocities. It keeps them finite for every
# learning rate and noise.
MAX_MAGNITUDE = 1e100

# Constants of Adam that are not parameters: beta_2 and epsilon of Kingma and Ba (2015).
ADAM_SECOND_MOMENT = 0.999
ADAM_EPSILON = 1e-8

# Clip of the change in a score in the shrinkage rule, relative to the typical change.
DISPLACEMENT_CLIP = 0.5
# Smallest clip of the change of a score, to avoid a division by zero.
MIN_DISPLACEMENT = 1e-200
# Weights are not shrunk if their optimal norm is at least this fraction of their actual norm.
NO_SHRINKAGE_FRACTION = 0.8


@dataclass(frozen=True)
class ShrinkageRule(FrozenValue):
    """Shrinkage of weights toward the start of a run, based on a noisy test of their quality.

    The last steps of a run release decreases of the loss instead of gradients (see
    `ClippedSums.loss_decreases`). The released decrease is compared with the decrease that is
    expected under the null hypothesis that features are not related to the target.

    Parameters
    ----------
    n_steps : int
        Number of steps that release decreases of the loss instead of gradients.
    norm : float
        Typical norm of a row.
    residual : float
        Residuals are clipped to this norm.
    null_fraction : float
        Fraction of the targets' variance that weights explain under the null hypothesis.
    min_shrinkage_factor : float, default=0.0
        Lower bound on the shrinkage factor.
    null_decrease_factor : float, default=1.0
        Multiple of the null decrease of the loss that is subtracted from the released decrease.
    """

    n_steps: int
    norm: float
    residual: float
    null_fraction: float
    min_shrinkage_factor: float = 0.0
    null_decrease_factor: float = 1.0

    def estimate_null_fraction(self, decreases, displacement):
        """Return the fraction of the residual variance that weights explain under the null.

        Parameters
        ----------
        decreases : (float, float, float)
            Released means over the rows, in units of the clips: the two products of score changes
            and residuals, and the squared residuals.
        displacement : ndarray
            The weights minus the start.

        Returns
        -------
        float
        """
        return self.null_fraction

    def clip_norms(self, displacement):
        """Return the norms to which score changes and residuals are clipped."""
        typical_change = self.norm * math.sqrt(np.mean(displacement**2))
        return max(DISPLACEMENT_CLIP * typical_change, MIN_DISPLACEMENT), self.residual

    def null_decrease(self, decreases, displacement):
        """Return the decrease of the loss expected under the null, times the rule's multiple.

        The parameters are as in `shrinkage_factor`.
        """
        first, last, squares = np.ravel(decreases)[:3].tolist()
        change, residual = self.clip_norms(displacement)
        unexplained = max(squares * (residual / change / SQUARED_RESIDUAL_WEIGHT) - first, 0.0)
        released = (first, last, squares / SQUARED_RESIDUAL_WEIGHT)
        null_fraction = self.estimate_null_fraction(released, displacement)
        return self.null_decrease_factor * null_fraction * unexplained

    def shrinkage_factor(self, decreases, displacement, noise_std=0.0):
        """Return the factor that keeps only the part of the displacement beyond chance and noise.

        With a factor of 1, the weights are unchanged; with 0, they are those at the start.

        Parameters
        ----------
        decreases : ndarray
            Noisy means or sums over the rows; the first three values are as in
            `sum_loss_decreases`.
        displacement : ndarray
            The weights minus the start.
        noise_std : float, default=0.0
            Noise level that is subtracted from the released decrease in addition to the null
            decrease: that of the means or of the sums, as in `decreases`.

        Returns
        -------
        float
        """
        first, last = np.ravel(decreases)[:2].tolist()
        null_decrease = self.null_decrease(decreases, displacement)
        net_decrease = max(first - null_decrease - noise_std, 0.0)
        # Along the displacement, the directional derivative goes from -first to last, so the
        # quadratic model has its minimum at first / (first + last).
        scale = max(NO_SHRINKAGE_FRACTION * (first + last), net_decrease, MIN_DISPLACEMENT)
        return max(self.min_shrinkage_factor, net_decrease / scale)


# A rule without test steps, which leaves the weights unchanged.
NO_SHRINKAGE = ShrinkageRule(0, 1.0, 1.0, 0.0)


def run_sgd(
    run,
    sums,
    update,
    start,
    alpha,
    source,
    after_step=None,
    intercept_l2_reg=0.0,
    shrinkage=NO_SHRINKAGE,
    l2_reg_matrix=None,
):
    r"""Return the weights after all steps of a run.

    The objective is the mean loss per row plus :math:`\tfrac\alpha2 \|w\|^2` for the features'
    weights. The weights of the constant feature are penalized by their distance from the start,
    with the strength `intercept_l2_reg`.

    Parameters
    ----------
    run : SGDRun
        Run that has already been charged.
    sums : ClippedSums
        Clipped sums of the table.
    update : Update
        Optimizer for ``run.n_steps - shrinkage.n_steps`` steps.
    start : ndarray of shape (..., n_features)
        Weights that do not depend on the rows, or were released.
    alpha : float
        L2 regularization strength of the mean loss.
    source : RandomSource
        Random source of the charge.
    after_step : callable, default=None
        Function that is called with the number of steps taken. It receives no iterate.
    intercept_l2_reg : float, default=0.0
        L2 regularization strength of the constant feature's weights.
    shrinkage : ShrinkageRule, default=NO_SHRINKAGE
        Rule that shrinks the weights toward the start, based on the releases of the last steps.
    l2_reg_matrix : ndarray of shape (n_columns, n_columns), default=None
        Symmetric matrix of a further quadratic penalty on the features' weights, the gradient of
        which is the matrix times the weights.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If the numbers of steps of the update and the shrinkage rule do not add up to those of the
        run.
    """
    if update.n_steps + shrinkage.n_steps != run.n_steps:
        raise ValueError(
            f"the update has {count_of(update.n_steps, 'step')} and the shrinkage rule "
            f"{shrinkage.n_steps}, "
            f"and the run has {run.n_steps}"
        )
    n_columns = run.problem.n_columns
    state = update.begin(np.array(start, dtype=np.float64))
    decreases = 0.0

    def next_sum(rows):
        """Return the sum over a batch that the next step needs.

        It is the sum of clipped gradients, or, in the steps after the last update, the sums that
        estimate the decrease of the loss.
        """
        if state.n_steps_taken < update.n_steps:
            return sums.sums(state.lookahead, rows)
        weights = state.average
        return sums.loss_decreases(start, weights, rows, shrinkage.clip_norms(weights - start))

    means = run.noisy_means(next_sum, source)
    # One thread is used: the products are too small for more, and BLAS must round them in the same
    # way in each step.
    with one_thread():
        for n_taken, gradient in enumerate(means, start=1):
            if n_taken <= update.n_steps:
                distance = state.lookahead - start
                gradient[..., :n_columns] += alpha * state.lookahead[..., :n_columns]
                if l2_reg_matrix is not None:
                    gradient[..., :n_columns] += state.lookahead[..., :n_columns] @ l2_reg_matrix
                gradient[..., n_columns:] += intercept_l2_reg * distance[..., n_columns:]
                state.step(gradient)
            else:
                decreases += gradient
            if after_step is not None:
                after_step(n_taken)
    if not shrinkage.n_steps:
        return state.average
    displacement = state.average - start
    # Convert sums over the steps to means over the rows; see `ClippedSums.loss_decreases`.
    decreases *= MAX_DECREASE_NORM[run.norm] / (run.clip * shrinkage.n_steps)
    return start + shrinkage.shrinkage_factor(decreases, displacement) * displacement


@dataclass(frozen=True)
class Update(FrozenValue):
    r"""An optimizer with its learning rates, averaging and projection.

    Parameters
    ----------
    optimizer : {"sgd", "nesterov", "adam"}
        "sgd": :math:`v \gets \mu v + g,\ w \gets w - \eta v` (Polyak's heavy ball).
        "nesterov": the gradient is evaluated at :math:`w + \mu (w - w_{previous})` (Nesterov
        1983). "adam": Kingma and Ba 2015, with :math:`\beta_1 = \mu, \beta_2 = .999`.
    learning_rate : {"constant", "invscaling", "linear"}
        :math:`\eta_t` in step t = 1 to T: :math:`\eta_0`, :math:`\eta_0 / t^p` or
        :math:`\eta_0 (T + 1 - t) / T`.
    eta0, power_t, momentum : float
        The symbols :math:`\eta_0, p, \mu`.
    n_steps : int
        The number of steps T.
    n_averaged : int
        The result is the mean of this many last iterates; 1 returns the last iterate.
    radius : float, default=inf
        Weights are projected onto the ball with this radius around 0.
    """

    optimizer: str
    learning_rate: str
    eta0: float
    power_t: float
    momentum: float
    n_steps: int
    n_averaged: int
    radius: float = math.inf

    def rate(self, t):
        """Return the learning rate of step t, counted from 1."""
        if self.learning_rate == "constant":
            return self.eta0
        if self.learning_rate == "invscaling":
            return self.eta0 * t**-self.power_t
        return self.eta0 * (self.n_steps + 1 - t) / self.n_steps

    def begin(self, weights):
        """Return the `OptimizerState` that starts at these weights."""
        return OPTIMIZERS[self.optimizer](self, self.project(weights))

    def project(self, weights):
        """Return the projection of weights onto the ball, with finite values."""
        weights = _finite(weights)
        norm = np.linalg.norm(weights)
        if norm <= self.radius:
            return weights
        return weights * (self.radius / norm)


class OptimizerState:
    """The state of an optimizer between steps.

    Attributes
    ----------
    n_steps_taken : int
    iterate : ndarray
        The current weights.
    lookahead : ndarray
        The weights at which the next gradient is to be evaluated.
    average : ndarray
        The mean of the last iterates, see `Update.n_averaged`.
    """

    def __init__(self, update, start):
        self._update = update
        self.n_steps_taken = 0
        self.iterate = start
        self.lookahead = start
        self.average = np.zeros_like(start)

    def step(self, gradient):
        """Take a step along a gradient that was evaluated at `lookahead`."""
        self.n_steps_taken += 1
        self._take_step(_finite(gradient), self._update.rate(self.n_steps_taken))
        n_skipped = self._update.n_steps - self._update.n_averaged
        if self.n_steps_taken > n_skipped:
            n_averaged = self.n_steps_taken - n_skipped
            self.average += (self.iterate - self.average) / n_averaged


class _GradientDescent(OptimizerState):
    _velocity = 0.0

    def _take_step(self, gradient, rate):
        """Move along the velocity: the gradient plus `momentum` times the last velocity."""
        self._velocity = _finite(self._update.momentum * self._velocity + gradient)
        self.iterate = self._update.project(self.lookahead - rate * self._velocity)
        self.lookahead = self.iterate


class _NesterovDescent(OptimizerState):
    def _take_step(self, gradient, rate):
        """Move from `lookahead` along the gradient; the next `lookahead` extrapolates the move."""
        previous = self.iterate
        self.iterate = self._update.project(self.lookahead - rate * gradient)
        extrapolated = self.iterate + self._update.momentum * (self.iterate - previous)
        self.lookahead = self._update.project(extrapolated)


class _Adam(OptimizerState):
    def __init__(self, update, start):
        super().__init__(update, start)
        self._mean = 0.0
        self._square = 0.0

    def _take_step(self, gradient, rate):
        """Move by Adam's ratio of moving averages, which are corrected for their start at zero.

        See Kingma and Ba (2015); the first average decays by `momentum`.
        """
        momentum = self._update.momentum
        t = self.n_steps_taken
        self._mean += (1.0 - momentum) * (gradient - self._mean)
        self._square += (1.0 - ADAM_SECOND_MOMENT) * (gradient**2 - self._square)
        mean = self._mean / (1.0 - momentum**t)
        root = np.sqrt(self._square / (1.0 - ADAM_SECOND_MOMENT**t))
        self.iterate = self._update.project(self.lookahead - rate * mean / (root + ADAM_EPSILON))
        self.lookahead = self.iterate


def _finite(values):
    """Return the values clipped to a finite range."""
    return np.clip(values, -MAX_MAGNITUDE, MAX_MAGNITUDE)


OPTIMIZERS = {"sgd": _GradientDescent, "nesterov": _NesterovDescent, "adam": _Adam}
